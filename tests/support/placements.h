/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Makers of placement problems, all from a seed, and checks that are too simple to be wrong.
 */
#ifndef PLACEMENTS_H
#define PLACEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "place.h"
#include "region.h"

struct random {
    uint64_t state;
};

/* In [0, end). */
uint32_t random_below(struct random *random, uint32_t end);

struct placement_problem {
    uint32_t count;
    struct place_block *blocks;
};

/* Lives and sizes without structure; sizes are 1 to size_max times 256 bytes. */
struct placement_problem random_blocks(uint32_t count, uint32_t times, uint32_t size_max,
                                       uint64_t seed, struct region *region);

/* A rectangle of `times` by height_bytes, cut into `count` blocks that fill it without a gap. So
 * the largest sum of live bytes is height_bytes, and a placement of that height exists. */
struct placement_problem perfect_tiling(uint32_t count, uint32_t times, uint64_t height_bytes,
                                        uint64_t seed, struct region *region);

/* A perfect tiling of which one block in `one_in` is dropped, except in the middle of time, which
 * stays full. */
struct placement_problem thinned_tiling(struct placement_problem tiling, uint32_t one_in,
                                        uint64_t seed, struct region *region);

/* Tensors of one training iteration: kept, swapped (two lives) and recomputed activations,
 * gradients, workspaces, and many tiny ones. About 37 blocks per layer. */
struct placement_problem training_iteration(uint32_t layers, uint64_t seed, struct region *region);

/* Looks at all pairs: no overlap, nothing above the height, the height is reached, and the peak is
 * the largest sum of live bytes. */
bool is_placement_right(struct placement_problem problem, const struct place_result *result);

/* The least height of any placement, over all orders: at most 8 blocks. */
uint64_t least_height_by_brute_force(struct placement_problem problem);

#endif
