/* SPDX-License-Identifier: Apache-2.0
 *
 * Apart from status.c because each library has a copy of its own, so that libatp_yaml needs nothing
 * that libatp hides.
 */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

enum atp_status atp_fail(struct atp_error *err, enum atp_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        err->status = status;
        err->line = 0;
        err->column = 0;
        err->instruction = ATP_NONE;
        va_start(args, format);
        /* clang-tidy 14 forgets va_start in files that are compiled more than once. */
        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
        (void)vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return status;
}
