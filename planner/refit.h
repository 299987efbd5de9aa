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

/* Changes `choices` (one per access, feasible) gap by gap to swap, each time the one that lowers
 * the arena most, until the plan can be placed, nothing helps or `stop` (NULL: none) is set. Fills
 * *out_plan and *out_result like assemble. */
void refit(const struct problem *problem, uint8_t *choices, uint64_t budget_bytes,
           const volatile int *stop, struct region *region, struct atp_plan *out_plan,
           struct assemble_result *out_result);

/* The last resort, which always fits where the host arena and pins allow: every tensor leaves the
 * device after every step. Overwrites `choices`. */
void refit_with_barriers(const struct problem *problem, uint8_t *choices, uint64_t budget_bytes,
                         struct region *region, struct atp_plan *out_plan,
                         struct assemble_result *out_result);

#endif
