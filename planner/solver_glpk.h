/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GLPK behind plain arrays: the only file that knows it. GLPK writes nothing and ends nothing: its
 * output is dropped, its fatal errors come back as ATP_ERR_INTERNAL.
 */
#ifndef SOLVER_GLPK_H
#define SOLVER_GLPK_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/status.h>

#include "lp.h"
#include "region.h"

struct solver_options {
    uint64_t iteration_limit; /* simplex iterations */
    const volatile int *stop; /* looked at now and then; NULL: none */
};

/* Where the solver got to. Whether optimal or cut short, multipliers and values are its last. */
struct solver_result {
    bool optimal;
    double *values;      /* per column */
    double *multipliers; /* per row: the price of its right-hand side */
    uint64_t iterations;
};

/* Solves the linear relaxation with the dual simplex method from the basis of slacks, which is dual
 * feasible where no cost is negative: a solve that is cut short leaves multipliers that prove
 * something. */
ATP_MUST_USE enum atp_status solver_solve(const struct lp *lp, const struct solver_options *options,
                                          struct region *region, struct solver_result *out_result,
                                          struct atp_error *err);

#endif
