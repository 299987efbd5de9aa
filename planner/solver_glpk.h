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
    uint64_t iteration_limit; /* simplex iterations, without those of branch and cut */
    uint64_t node_limit;      /* subproblems of branch and cut */
    const volatile int *stop; /* looked at now and then; NULL: none */
};

/* Where the solver got to. Whether optimal or cut short, multipliers and values are its last; whole
 * values belong to the best solution found by branch and cut. */
struct solver_result {
    bool optimal;
    bool whole, whole_optimal; /* such a solution was found; GLPK takes it for the best */
    uint64_t nodes;
    double *values;       /* per column */
    double *whole_values; /* per column; NULL without one */
    double *multipliers;  /* per row: the price of its right-hand side */
    uint64_t iterations;
};

/* Solves the linear relaxation with the dual simplex method from the basis of slacks, which is dual
 * feasible where no cost is negative: a solve that is cut short leaves multipliers that prove
 * something. */
ATP_MUST_USE enum atp_status solver_solve(const struct lp *lp, const struct solver_options *options,
                                          struct region *region, struct solver_result *out_result,
                                          struct atp_error *err);

/* The same, then branch and cut over the integer columns, where the relaxation was solved to its
 * end. For small programs: a node can take as long as the relaxation. */
ATP_MUST_USE enum atp_status
solver_solve_whole(const struct lp *lp, const struct solver_options *options, struct region *region,
                   struct solver_result *out_result, struct atp_error *err);

#endif
