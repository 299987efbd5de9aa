/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Errors of the readers as tables: a text, and the status, place and message that it must give.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <atp/status.h>
#include <check.h>
#include <string.h>

struct bad_text {
    const char *text;
    enum atp_status status;
    uint32_t line, column;
    const char *message; /* a part of it that says path and rule */
};

/* `err` is what reading `bad->text` gave. */
static inline void expect_error(const struct atp_error *err, enum atp_status status,
                                const struct bad_text *bad)
{
    ck_assert_msg(status != ATP_OK, "accepted, expected \"%s\":\n%s", bad->message, bad->text);
    ck_assert_msg(strstr(err->text, bad->message) != NULL,
                  "message is \"%s\", expected \"%s\" in it:\n%s", err->text, bad->message,
                  bad->text);
    ck_assert_msg(err->line == bad->line && err->column == bad->column,
                  "place is %u:%u, expected %u:%u: %s", err->line, err->column, bad->line,
                  bad->column, err->text);
    ck_assert_str_eq(atp_status_name(status), atp_status_name(bad->status));
    ck_assert_str_eq(atp_status_name(err->status), atp_status_name(bad->status));
}

#endif
