/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Assertions on errors: status, place and text at once.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <atp/status.h>
#include <check.h>
#include <string.h>

/* `err` is that status at that line and column, with `text` in its message. */
#define expect_error(err, want_status, want_line, want_column, want_text)                          \
    do {                                                                                           \
        const struct atp_error *e_ = (err);                                                        \
        const char *text_ = (want_text);                                                           \
        ck_assert_msg(strstr(e_->text, text_) != NULL, "message is \"%s\", expected \"%s\" in it", \
                      e_->text, text_);                                                            \
        ck_assert_str_eq(atp_status_name(e_->status), atp_status_name(want_status));               \
        ck_assert_msg(e_->line == (want_line) && e_->column == (want_column),                      \
                      "place is %u:%u, expected %u:%u: %s", e_->line, e_->column,                  \
                      (unsigned)(want_line), (unsigned)(want_column), e_->text);                   \
    } while (0)

#endif
