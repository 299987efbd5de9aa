/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What atp_plan_check says of a plan made with a builder.
 */
#ifndef ASSERT_PLAN_H
#define ASSERT_PLAN_H

#include "assert_error.h"
#include "plan_builder.h"

#include <stdio.h>

/* What the header says is brought up to date first. */
static inline void assert_accepted(struct plan_builder *builder)
{
    struct atp_error err = {0};
    plan_builder_seal(builder);
    assert_ok(atp_plan_check(&builder->plan, &err), err);
}

/* `instruction` is ATP_NONE when the refusal is about none. The plan is taken as it is. */
static inline void assert_refused(const struct plan_builder *builder, uint32_t instruction,
                                  const char *text)
{
    struct atp_error err = {0};
    enum atp_status status = atp_plan_check(&builder->plan, &err);
    assert_error(status, err, ATP_ERR_INVALID, instruction, text);
    if (instruction != ATP_NONE) {
        char place[32];
        (void)snprintf(place, sizeof(place), "program[%u] ", instruction);
        ck_assert_msg(strncmp(err.text, place, strlen(place)) == 0, "%s", err.text);
    }
}

#endif
