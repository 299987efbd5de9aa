/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The whole pipeline for one profile and budget: problem, relaxation, search, schedule, placement,
 * check, simulation.
 */
#ifndef SOLVE_H
#define SOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "profile.h"
#include "region.h"
#include "schedule.h"

/* What is known so far; sent whenever one of the numbers improves. */
struct solve_progress {
    int64_t bound_ns;     /* 0: none yet */
    int64_t iteration_ns; /* of the best plan so far; 0: none yet */
    double share_done;    /* of the work limit, 0 to 1 */
};

/* What a solve leaves to another of the same profile. Borrowed. */
struct solve_start {
    const struct atp_plan *plan;
    const struct selection *selection; /* what the plan was made from, or near it */
};

struct solve_options {
    uint64_t budget_bytes;
    uint64_t alignment_bytes;        /* a power of two; 0: problem_alignment chooses */
    const struct solve_start *start; /* of a budget that is not larger, with the same
                                        alignment; NULL: none. The plan is never slower, and the
                                        search takes half of the work that it else takes. Not used
                                        where everything fits */
    uint32_t effort; /* multiplies the counted work limits; 1 is the default, 0 counts as 1 */
    /* Set to nonzero by a signal handler or a timer: the search ends, and the best plan so far is
     * finished. */
    const volatile int *stop;
    void (*progress)(void *ctx, const struct solve_progress *progress); /* NULL: none */
    void *progress_ctx;
};

/* Numbers for people, beside the plan. */
struct solve_report {
    uint64_t least_budget_bytes; /* resident + the largest working set (or all inputs), at this
                                    alignment */
    uint32_t least_step;     /* the step it belongs to; ATP_NONE: the beginning of the iteration */
    uint64_t keep_all_bytes; /* resident + peak with everything kept: from there on a plan costs
                                nothing */
    int64_t compute_ns;
    uint32_t row_count, column_count, candidate_count;
    uint64_t simplex_iterations, search_work;
    bool stopped;               /* by options->stop */
    bool fits_unplanned;        /* everything fits; the plan is the plain iteration */
    struct selection selection; /* for solve_start; lives in the region */
};

/* Fills *out_plan, which lives in the region and passes atp_plan_check and
 * atp_plan_check_predicted. `out_report` is filled on failure too, as far as it is known.
 * ATP_ERR_INFEASIBLE, with what blocks and what budget would work in `err`, when there is no plan;
 * ATP_ERR_LIMIT when stopped before there was one; ATP_ERR_INTERNAL when a stage is wrong, with the
 * plan that shows it not written anywhere. */
ATP_MUST_USE enum atp_status solve(const struct profile *profile,
                                   const struct solve_options *options, struct region *region,
                                   struct atp_plan *out_plan, struct solve_report *out_report,
                                   struct atp_error *err);

#endif
