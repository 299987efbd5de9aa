/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * When a plan fits in sum but not in offsets, and the arena limit cannot be lowered because a
 * working set is as large as the arena: cut residences. A tensor that leaves and comes back may lie
 * somewhere else.
 */
#ifndef REFIT_H
#define REFIT_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "assemble.h"
#include "problem.h"
#include "region.h"
#include "schedule.h"

struct refit_options {
    uint64_t place_work;      /* of the exact placement search, per round */
    const volatile int *stop; /* once set, only the last resort is tried; NULL: none */
};

/* Changes `selection` (feasible) gap by gap to swap, each time the one that lowers
 * the arena most, until the plan can be placed. Where nothing is pinned and the host has room,
 * there is always a plan in the end, if a slow one. Fills *out_plan and *out_result like assemble;
 * gives the plan's iteration time. */
int64_t refit(const struct problem *problem, struct selection *selection,
              const struct refit_options *options, struct region *region, struct atp_plan *out_plan,
              struct assemble_result *out_result);

#endif
