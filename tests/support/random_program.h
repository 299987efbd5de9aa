/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Legal programs by chance: a walk over the steps that brings what the next one needs by restores
 * and reruns, makes room by evictions and releases, and does either early now and then. A walk has
 * a temper of its own, from careless to nearly greedy, so that many walks come near the best
 * program. What it makes passes atp_plan_check, with a budget that leaves room for any placement;
 * its peak is within the limit given.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stdbool.h>

#include <atp/plan.h>

#include "problem.h"
#include "random.h"
#include "region.h"

/* False when the walk ran into a dead end: a value lost for good, or no room. The plan borrows the
 * problem's model; the rest is in the region. */
bool random_program_build(const struct problem *problem, uint64_t limit_bytes,
                          struct random *random, struct region *region, struct atp_plan *out_plan);

/* Where such programs keep each tensor, in both arenas, and behind them the workspace of each step.
 * Returns the end of all. */
uint64_t random_program_offsets(const struct atp_model *model, uint64_t *out_offsets);

/* Tries `tries` small changes of the program, keeps those that stay legal and within the limit and
 * do not make it slower. Returns the time of the best. */
int64_t random_program_improve(const struct problem *problem, uint64_t limit_bytes, uint32_t tries,
                               struct random *random, struct region *region, struct atp_plan *plan);

#endif
