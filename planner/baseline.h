/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Simple policies that people use instead of a plan, as choices for the same schedule: what a plan
 * is compared with, what it is never worse than, and starts for the search.
 *
 *   keep-all         keeps everything
 *   recompute-all    recomputes all that may be between the phases; where that does not fit, drops
 *                    again what reruns bring back early
 *   checkpoint-sqrt  cuts the forward pass into sqrt(n) segments of equal length where the fewest
 *                    bytes cross, keeps what crosses a cut and recomputes the rest, the last
 *                    segment excepted (Chen's checkpoints)
 *   checkpoint-best  the same with as many segments as is fastest
 *   swap-all         swaps everything between the phases; where that does not fit, in all idle
 *                    gaps; then tiny tensors too
 *   swap-inputs      swaps the inputs of the forward steps that make four fifths of the forward
 *                    time, the longest first: convolutions and matrix products (vDNN)
 *   swap-recompute   swaps the tensors that idle longest beyond their copies, until the copies fill
 *                    the engines; then recomputes by bytes saved per time (Capuchin)
 *   greedy-size      drops the largest tensors first: by rerun where that takes less time than the
 *                    copies, else by swap
 *
 * The last two drop as few tensors as will fit, and only then drop again what reruns bring back
 * early. A policy that fits at no level shows the one that needs the least memory. Pins (`decide`)
 * are obeyed by all. Where a rerun would miss bytes that are nowhere any more, those are swapped
 * too.
 */
#ifndef BASELINE_H
#define BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "problem.h"
#include "region.h"

enum baseline_verdict {
    BASELINE_FITS,
    BASELINE_OVER_BUDGET,
    BASELINE_OVER_HOST, /* fits the device; its host copies exceed the pinned bytes */
    BASELINE_LOST,      /* a rerun needs bytes that are nowhere any more */
    BASELINE_ENDLESS    /* reruns of reruns: given up */
};

struct baseline {
    const char *name;
    enum baseline_verdict verdict;
    uint8_t *choices; /* one per access */
    /* Where it does not fit: with as much memory as it needs. 0 where LOST or ENDLESS. */
    int64_t iteration_ns, recompute_ns, stall_ns;
    uint64_t peak_bytes; /* of the arena, workspaces included */
    uint64_t host_bytes;
};

struct baseline_list {
    uint32_t count;
    struct baseline *items; /* in the order above */
    uint64_t work;          /* ops scheduled */
};

/* All policies at the problem's arena limit. Deterministic. Costs at most a few hundred
 * schedules. */
void baseline_list_build(const struct problem *problem, struct region *region,
                         struct baseline_list *out_list);

/* "fits", "over budget", ... */
const char *baseline_verdict_name(enum baseline_verdict verdict);

/* The baseline as a plan with its predicted numbers (bound: the compute time). Where its tensors
 * cannot be placed, the policy is told a lower limit, a few times. False when it does not fit or
 * cannot be placed; *out_plan is then of no use. */
bool baseline_plan(const struct problem *problem, const struct baseline *baseline,
                   uint64_t place_work, struct region *region, struct atp_plan *out_plan);

/* Replaces a plan with predicted numbers by the fastest baseline that is faster and can be placed,
 * and keeps the plan's bound. False when there is none. */
bool baseline_overtake(const struct problem *problem, const struct baseline_list *list,
                       uint64_t place_work, struct region *region, struct atp_plan *plan);

#endif
