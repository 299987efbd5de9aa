/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a selection that fits in sum to a plan whose tensors have offsets. Plans that cost nearly
 * the same differ much in how well they can be placed, so a short search goes on around the
 * selection, with every better plan tried, under a limit that falls until something is placed.
 */
#ifndef SETTLE_H
#define SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "assemble.h"
#include "problem.h"
#include "region.h"
#include "relax.h"
#include "schedule.h"

struct settle_options {
    uint64_t search_work;     /* at each limit */
    uint64_t place_work;      /* of the exact placement search, for the most promising plans */
    const volatile int *stop; /* once set, only what ends soon is tried; NULL: none */
};

struct settle_result {
    struct assemble_result placed; /* of the plan; where there is none, of the closest */
    int64_t iteration_ns;
    uint64_t search_work;
};

/* Fills *out_plan like assemble where `placed.fits`. Leaves `selection`, which fits, as it is when
 * nothing can be placed, else sets it to the plan's. */
void settle(const struct problem *problem, const struct relax_solution *relaxed,
            struct selection *selection, const struct settle_options *options,
            struct region *region, struct atp_plan *out_plan, struct settle_result *out_result);

#endif
