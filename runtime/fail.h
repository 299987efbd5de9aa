/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and passing on errors, for the library's own files and the planner.
 */
#ifndef ATP_FAIL_H
#define ATP_FAIL_H

#include <atp/status.h>

/* Fills *err (NULL allowed) and returns `status`: `return atp_fail(err, ATP_ERR_IO, "cannot open
 * %s", path);` */
__attribute__((format(printf, 3, 4))) enum atp_status
atp_fail(struct atp_error *err, enum atp_status status, const char *format, ...);

/* Passes a failure on. For functions that own nothing. */
#define ATP_TRY(expr)                                                                              \
    do {                                                                                           \
        enum atp_status atp_try_status = (expr);                                                   \
        if (atp_try_status != ATP_OK) {                                                            \
            return atp_try_status;                                                                 \
        }                                                                                          \
    } while (0)

#endif
