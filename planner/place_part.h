/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between the files of placement: one independent part of a problem (no block of another part is
 * live at the same time), in the form in which the stages work on it. Only place*.c include this.
 *
 * Time is counted in *cliques*: the maximal sets of blocks that are live at once, in time order.
 * Two blocks overlap in time exactly when they share a clique, so that nothing else of time is
 * needed, and there are never more cliques than blocks.
 */
#ifndef PLACE_PART_H
#define PLACE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "region.h"

struct place_part {
    uint32_t count, clique_count;
    const uint32_t *first, *end; /* per block: live in cliques [first, end) */
    const uint64_t *bytes;       /* per block, > 0 */
    const uint64_t *live_bytes;  /* per clique */
    uint64_t peak_bytes;         /* largest of live_bytes */
};

/* Work is counted, never timed. One unit is a search node, or 4096 elementary steps where a node
 * or a greedy attempt takes more than that: microseconds, whatever the size of the problem. */
struct place_work {
    uint64_t spent, limit;
};
#define PLACE_STEPS_PER_WORK 4096U

/* Takes offsets for all blocks in the given order, each in a gap between blocks placed before that
 * are live at the same time: the lowest gap that is large enough, or with `tight` the smallest.
 * Adds the steps taken to *io_steps, gives the height reached. */
uint64_t place_in_order(const struct place_part *part, const uint32_t *order, bool tight,
                        struct region *region, uint64_t *offsets, uint64_t *io_steps);

/* Parts with more blocks are beyond place_search. */
#define PLACE_SEARCH_COUNT_MAX 1024U

/* Fast heuristics, then greedy placement in orders that learn from failure, with the share of the
 * work that place_search does not use better. Stops at `target_bytes` or lower. Fills `offsets`
 * with the lowest placement found and gives its height. */
uint64_t place_greedy(const struct place_part *part, uint64_t target_bytes,
                      struct place_work *io_work, struct region *region, uint64_t *offsets);

enum place_answer { PLACE_FOUND, PLACE_IMPOSSIBLE, PLACE_GAVE_UP };

/* Looks for a placement of height `capacity_bytes` or lower, by exhaustive search. FOUND fills
 * `offsets`; IMPOSSIBLE is proven; otherwise `offsets` stays as it was. Gives up at once on parts
 * of more than PLACE_SEARCH_COUNT_MAX blocks. */
enum place_answer place_search(const struct place_part *part, uint64_t capacity_bytes,
                               struct place_work *io_work, struct region *region,
                               uint64_t *offsets);

#endif
