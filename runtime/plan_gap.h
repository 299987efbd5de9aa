/* SPDX-License-Identifier: Apache-2.0
 *
 * The gap of a plan as its file says it: (iteration - bound) / bound in millionths, to nearest.
 */
#ifndef ATP_PLAN_GAP_H
#define ATP_PLAN_GAP_H

#include <stdint.h>

/* Times in plan files stay below this: sixteen years. */
#define PLAN_NS_MAX  INT64_C(500000000000000000)
#define PLAN_GAP_MAX UINT64_C(1000000000000)

/* 0 when the bound is not below the iteration; PLAN_GAP_MAX when the gap is a million or more. Both
 * times are in [0, PLAN_NS_MAX], so that ten times a remainder stays within 64 bits. */
static inline uint64_t plan_gap_millionths(int64_t iteration_ns, int64_t bound_ns)
{
    if (iteration_ns <= bound_ns) {
        return 0;
    }
    uint64_t bound = (uint64_t)bound_ns, excess = (uint64_t)iteration_ns - bound;
    if (bound == 0 || excess / bound >= PLAN_GAP_MAX / 1000000) {
        return PLAN_GAP_MAX;
    }
    uint64_t gap = excess / bound, rest = excess % bound;
    for (int digit = 0; digit < 6; digit++) {
        gap = gap * 10 + rest * 10 / bound;
        rest = rest * 10 % bound;
    }
    return gap + (rest >= bound - rest);
}

#endif
