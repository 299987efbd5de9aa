/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a timed schedule to a plan: offsets for every residence, workspace and host copy, then the
 * instructions.
 */
#ifndef ASSEMBLE_H
#define ASSEMBLE_H

#include <atp/plan.h>

#include "problem.h"
#include "region.h"
#include "schedule.h"

struct assemble_result {
    bool fits;            /* both arenas within their limits */
    uint64_t arena_bytes; /* what placement needs; the plan is filled only where it fits */
    uint64_t live_bytes;  /* largest sum of live bytes, sizes rounded: no placement is lower */
    uint64_t host_arena_bytes;
    uint32_t crowded_op; /* an op at which the arena is fullest */
};

/* `schedule` has just made `sequence` and `timeline`, with actions. `place_work` limits the exact
 * placement search. Fills all of *out_plan but its bound and time_limited. */
void assemble(const struct problem *problem, const struct sequence *sequence,
              const struct timeline *timeline, uint64_t place_work, struct region *region,
              struct atp_plan *out_plan, struct assemble_result *out_result);

#endif
