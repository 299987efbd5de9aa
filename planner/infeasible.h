/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why no plan fits, and what would help: the step that needs most, what it needs it for, pins,
 * pinned host memory, a smaller batch.
 */
#ifndef INFEASIBLE_H
#define INFEASIBLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "problem.h"
#include "region.h"

/* What to take into account. */
struct infeasible_rules {
    bool keep_pins;      /* `decide: keep` */
    bool reruns_allowed; /* as if no forward step were `rerun: never` */
    uint64_t host_bytes; /* what the host may hold; UINT64_MAX: no limit */
};

/* No program that keeps the rules needs less arena than this. With an unlimited host, one that
 * needs no more exists unless `decide: recompute` stands in the way; else there may be none. */
struct infeasible_need {
    uint64_t arena_bytes;       /* the sum of the three */
    uint64_t working_set_bytes; /* or all inputs, where step is ATP_NONE */
    uint64_t kept_bytes;        /* pinned to the device while the step runs */
    uint64_t stuck_bytes;       /* what cannot be recomputed and is more than the host may hold */
    uint32_t step;              /* ATP_NONE: the beginning of the iteration */
};

void infeasible_need(const struct problem *problem, const struct infeasible_rules *rules,
                     struct region *region, struct infeasible_need *out_need);

/* Writes the explanation, a few lines, on `out`. `path` is the profile's file, read again for other
 * batch sizes; where it cannot be, nothing is said of them. `alignment_bytes` 0 means 1. */
void infeasible_explain(const struct profile *profile, const char *path, uint64_t budget_bytes,
                        uint64_t alignment_bytes, struct region *region, FILE *out);

#endif
