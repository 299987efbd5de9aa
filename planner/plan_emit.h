/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * struct atp_plan -> a plan file (version 1): the same plan gives the same bytes.
 */
#ifndef PLAN_EMIT_H
#define PLAN_EMIT_H

#include <stdio.h>

#include <atp/plan.h>
#include <atp/status.h>

/* ATP_ERR_INVALID for what a plan file cannot say: names that are empty, too long, not UTF-8 or
 * with control characters, times below zero or of many years, ids out of range. ATP_ERR_IO when
 * `out` cannot be written. */
ATP_MUST_USE enum atp_status plan_emit(const struct atp_plan *plan, FILE *out,
                                       struct atp_error *err);

/* The same into a file that appears under its name only when it is complete. */
ATP_MUST_USE enum atp_status plan_emit_file(const struct atp_plan *plan, const char *path,
                                            struct atp_error *err);

#endif
