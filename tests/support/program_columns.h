/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The argument of relax_rows.c as a machine: sets the columns of a relaxed selection to what a
 * legal program does. Every row must then hold.
 */
#ifndef PROGRAM_COLUMNS_H
#define PROGRAM_COLUMNS_H

#include <atp/plan.h>

#include "relax_rows.h"

/* The value of every column, in the region. The plan passes atp_plan_check and its time is within
 * the rows' extra_limit_ns. */
double *program_columns(const struct relax_model *model, const struct relax_rows *rows,
                        const struct atp_plan *plan, struct region *region);

/* The first row that does not hold, by more than rounding explains; row_count: all hold. */
uint32_t program_columns_check(const struct lp *lp, const double *values);

#endif
