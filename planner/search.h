/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Search over selections, judged by the schedule's own clock.
 */
#ifndef SEARCH_H
#define SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "baseline.h"
#include "problem.h"
#include "region.h"
#include "relax.h"
#include "schedule.h"

struct search_options {
    const struct selection *start; /* walk on from here alone; NULL: from all built-in starts */
    const struct selection *known; /* judged first, then one of the starts; NULL: none */
    const struct baseline_list *baselines; /* judged first: the result is never worse; NULL: none */
    uint64_t work_limit;                   /* ops scheduled: counted, not timed */
    uint32_t seed;                         /* of the random numbers */
    const volatile int *stop;              /* set by a signal handler or a timer; NULL: none */
    void (*progress)(void *ctx, int64_t iteration_ns,
                     uint64_t work); /* at each new best; NULL: none */
    void *progress_ctx;
    /* A selection that would be the best is the best only where this says so; NULL: always. Not
     * asked for every one: the more often it has said no, the less often. */
    bool (*accept)(void *ctx, const struct selection *selection);
    void *accept_ctx;
};

struct search_result {
    bool found;
    struct selection selection; /* the best found */
    int64_t iteration_ns;
    struct selection fit; /* the best that fits, accepted or not */
    int64_t fit_ns;       /* 0: none fits */
    uint64_t work;
    uint32_t candidate_count; /* gaps that had a choice */
    /* Where nothing was found: what came closest. */
    uint64_t excess_bytes;
    uint32_t excess_step;    /* ATP_NONE: the beginning */
    uint32_t missing_tensor; /* pinned away from what a rerun needs; ATP_NONE */
    uint64_t host_excess_bytes;
};

/* `relaxed` guides the start; NULL: none. */
void search_run(const struct problem *problem, const struct relax_solution *relaxed,
                const struct search_options *options, struct region *region,
                struct search_result *out_result);

#endif
