/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Ends solve early, always at the same point: after so many plans, or at one that is good enough.
 *
 *     struct patience patience = {.plans = 1};
 *     struct solve_options options = patience_options(&patience, budget_bytes);
 */
#ifndef PATIENCE_H
#define PATIENCE_H

#include "solve.h"

struct patience {
    uint32_t plans;    /* stop at this many; 0: never for that */
    int64_t enough_ns; /* stop at a plan of this time; 0: never for that */
    uint32_t seen;
    int64_t bound_ns, iteration_ns; /* the last that were told */
    int stop;
};

static inline void patience_on_progress(void *ctx, const struct solve_progress *progress)
{
    struct patience *patience = ctx;
    patience->bound_ns = progress->bound_ns;
    if (progress->iteration_ns == 0) {
        return;
    }
    patience->iteration_ns = progress->iteration_ns;
    patience->seen++;
    if ((patience->plans != 0 && patience->seen >= patience->plans) ||
        progress->iteration_ns <= patience->enough_ns) {
        patience->stop = 1;
    }
}

static inline struct solve_options patience_options(struct patience *patience,
                                                    uint64_t budget_bytes)
{
    return (struct solve_options){.budget_bytes = budget_bytes,
                                  .stop = &patience->stop,
                                  .progress = patience_on_progress,
                                  .progress_ctx = patience};
}

#endif
