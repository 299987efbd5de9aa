/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * struct atp_plan -> a source file for C11 and C++11 that defines the same plan as one constant.
 */
#ifndef EMIT_C_H
#define EMIT_C_H

#include <stdbool.h>
#include <stdio.h>

#include <atp/plan.h>
#include <atp/status.h>

/* What C and C++ take for an identifier with external linkage, whatever the compiler. */
bool emit_c_is_symbol(const char *text);

/* For a plan that atp_plan_check accepts; `symbol` is one. The same plan gives the same
 * bytes. ATP_ERR_IO when `out` cannot be written. */
ATP_MUST_USE enum atp_status emit_c(const struct atp_plan *plan, const char *symbol, FILE *out,
                                    struct atp_error *err);

#endif
