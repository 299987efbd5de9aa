/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The relaxed selection: one mixed-integer program over idle gaps, whose linear relaxation bounds
 * the iteration time of every legal plan from below, and whose values guide the search.
 */
#ifndef RELAX_H
#define RELAX_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"

struct certificate;

/* Shares in [0, 1] per gap (indexed by access id): how much of the tensor the relaxation keeps,
 * swaps and recomputes there. Gaps that the program left out (tiny tensors, no idle step, memory
 * never short) have keep = 1. */
struct relax_solution {
    int64_t bound_ns; /* proven: no program that atp_plan_check accepts for this model, budget and
                         clock is faster. problem.compute_ns at least */
    double *keep, *swap, *recompute;
    uint32_t row_count, column_count; /* given to GLPK */
    uint64_t iterations;              /* simplex iterations spent */
    uint64_t nodes;                   /* subproblems of branch and cut */
    bool whole; /* branch and cut found shares that are all 0 or 1; the bound stays that of the
                   relaxation, which alone is proven */
    const struct certificate *certificate; /* proves the bound without a solver (certificate.h);
                                              NULL: the bound is compute_ns, which needs no proof */
};

/* Work limits are counted, never timed. */
struct relax_options {
    uint64_t iteration_limit; /* simplex iterations in all */
    uint64_t node_limit;      /* then, subproblems of branch and cut; 0: only the relaxation */
    const volatile int *stop; /* set by a signal handler; NULL: none. A stopped relaxation still
                                 gives a valid bound */
};

/* The relaxation that knows nothing: all kept, bounded by the compute time. */
void relax_trivially(const struct problem *problem, struct region *region,
                     struct relax_solution *out_solution);

/* Always gives a valid bound (compute_ns if nothing better) and shares (all kept if nothing
 * better). */
ATP_MUST_USE enum atp_status relax_solve(const struct problem *problem,
                                         const struct relax_options *options, struct region *region,
                                         struct relax_solution *out_solution,
                                         struct atp_error *err);

#endif
