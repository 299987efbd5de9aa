/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Asserts an error as a whole: status, instruction, and a piece of its text.
 */
#ifndef ASSERT_ERROR_H
#define ASSERT_ERROR_H

#include <check.h>
#include <string.h>

#include <atp/status.h>

/* `err` is a struct atp_error, filled by the call that returned `status`. */
#define assert_error(status, err, want_status, want_instruction, want_text)                        \
    do {                                                                                           \
        ck_assert_str_eq(atp_status_name(status), atp_status_name(want_status));                   \
        ck_assert_int_eq((err).status, want_status);                                               \
        ck_assert_msg(strstr((err).text, (want_text)) != NULL, "\"%s\" does not say \"%s\"",       \
                      (err).text, (want_text));                                                    \
        ck_assert_uint_eq((err).instruction, want_instruction);                                    \
    } while (0)

#define assert_ok(status, err) ck_assert_msg((status) == ATP_OK, "%s", (err).text)

#endif
