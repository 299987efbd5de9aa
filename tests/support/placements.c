/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "placements.h"

#include <stdlib.h>

uint32_t random_below(struct random *random, uint32_t end)
{
    random->state = random->state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((random->state >> 33) % end);
}

struct placement_problem random_blocks(uint32_t count, uint32_t times, uint32_t size_max,
                                       uint64_t seed, struct region *region)
{
    struct random random = {.state = seed};
    struct place_block *blocks = REGION_NEW(region, struct place_block, count);
    for (uint32_t b = 0; b < count; b++) {
        uint32_t first = random_below(&random, times);
        uint32_t end = first + 1 + random_below(&random, times - first);
        uint64_t bytes = 256 * (uint64_t)(1 + random_below(&random, size_max));
        blocks[b] = (struct place_block){.first = first, .end = end, .bytes = bytes};
    }
    return (struct placement_problem){.count = count, .blocks = blocks};
}

/* Halves the block somewhere, in time or in height; the other half is the result. */
static struct place_block cut(struct place_block *block, struct random *random)
{
    struct place_block other = *block;
    uint32_t life = block->end - block->first;
    uint32_t height = (uint32_t)(block->bytes / 256);
    if (life > 1 && (height < 2 || random_below(random, 2) == 0)) {
        other.first = block->first + 1 + random_below(random, life - 1);
        block->end = other.first;
    } else if (height > 1) {
        other.bytes = 256 * (uint64_t)(1 + random_below(random, height - 1));
        block->bytes -= other.bytes;
    } else {
        other.bytes = 0;
    }
    return other;
}

struct placement_problem perfect_tiling(uint32_t count, uint32_t times, uint64_t height_bytes,
                                        uint64_t seed, struct region *region)
{
    struct random random = {.state = seed};
    struct place_block *blocks = REGION_NEW(region, struct place_block, count);
    uint32_t used = 1;
    blocks[0] = (struct place_block){.first = 0, .end = times, .bytes = height_bytes};
    while (used < count) {
        /* The largest of a few, so that no piece stays huge. */
        uint32_t largest = random_below(&random, used);
        for (int i = 0; i < 3; i++) {
            uint32_t other = random_below(&random, used);
            uint64_t area = blocks[other].bytes * (blocks[other].end - blocks[other].first);
            if (area > blocks[largest].bytes * (blocks[largest].end - blocks[largest].first)) {
                largest = other;
            }
        }
        struct place_block piece = cut(&blocks[largest], &random);
        if (piece.bytes > 0) {
            blocks[used++] = piece;
        }
    }
    return (struct placement_problem){.count = count, .blocks = blocks};
}

struct placement_problem thinned_tiling(struct placement_problem tiling, uint32_t one_in,
                                        uint64_t seed, struct region *region)
{
    struct random random = {.state = seed};
    struct place_block *blocks = REGION_NEW(region, struct place_block, tiling.count);
    uint32_t middle = 0;
    for (uint32_t b = 0; b < tiling.count; b++) {
        middle = tiling.blocks[b].end / 2 > middle ? tiling.blocks[b].end / 2 : middle;
    }
    uint32_t used = 0;
    for (uint32_t b = 0; b < tiling.count; b++) {
        struct place_block block = tiling.blocks[b];
        bool is_central = block.first <= middle && middle < block.end;
        if (is_central || random_below(&random, one_in) != 0) {
            blocks[used++] = block;
        }
    }
    return (struct placement_problem){.count = used, .blocks = blocks};
}

#define STEPS_PER_LAYER 8U

/* The blocks of one forward step, its tensor and its backward step. */
static uint32_t layer_step(struct place_block *out, uint32_t step, uint32_t steps, uint64_t bytes,
                           struct random *random)
{
    uint32_t back = 2 * steps - 1 - step;
    uint32_t way = random_below(random, 10);
    uint32_t used = 0;
    if (way < 5 && back - step > 32) {
        /* Away in between: swapped, or recomputed just before its use. */
        uint32_t ahead = way < 3 ? 2 + random_below(random, 12) : 1;
        out[used++] = (struct place_block){step, step + 2 + random_below(random, 12), bytes};
        out[used++] = (struct place_block){back - ahead, back + 1, bytes};
    } else {
        out[used++] = (struct place_block){step, back + 1, bytes};
    }
    out[used++] = (struct place_block){back, back + 1 + random_below(random, 3), bytes};
    for (uint32_t i = random_below(random, 4); i > 0; i--) {
        uint64_t tiny = 256 * (uint64_t)(1 + random_below(random, 16));
        out[used++] = (struct place_block){step, back + 1, tiny};
    }
    if (random_below(random, 3) == 0) {
        uint64_t workspace = ((uint64_t)1 + random_below(random, 16)) << 19;
        out[used++] = (struct place_block){back, back + 1, workspace};
    }
    return used;
}

struct placement_problem training_iteration(uint32_t layers, uint64_t seed, struct region *region)
{
    struct random random = {.state = seed};
    uint32_t steps = layers * STEPS_PER_LAYER;
    struct place_block *blocks = REGION_NEW(region, struct place_block, 8 * (size_t)steps);
    uint64_t sizes[STEPS_PER_LAYER];
    for (uint32_t i = 0; i < STEPS_PER_LAYER; i++) {
        sizes[i] = ((uint64_t)1 + random_below(&random, 12)) << 20;
    }
    uint32_t used = 0;
    for (uint32_t step = 0; step < steps; step++) {
        used += layer_step(blocks + used, step, steps, sizes[step % STEPS_PER_LAYER], &random);
    }
    return (struct placement_problem){.count = used, .blocks = blocks};
}

static bool is_empty(const struct place_block *block)
{
    return block->bytes == 0 || block->first >= block->end;
}

bool is_placement_right(struct placement_problem problem, const struct place_result *result)
{
    uint64_t height = 0;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < problem.count; i++) {
        const struct place_block *a = &problem.blocks[i];
        if (is_empty(a)) {
            if (result->offsets[i] != 0) {
                return false;
            }
            continue;
        }
        uint64_t a_top = result->offsets[i] + a->bytes;
        uint64_t live = 0; /* at the start of a: the peak is at the start of some block */
        height = a_top > height ? a_top : height;
        for (uint32_t j = 0; j < problem.count; j++) {
            const struct place_block *b = &problem.blocks[j];
            if (is_empty(b)) {
                continue;
            }
            live += b->first <= a->first && a->first < b->end ? b->bytes : 0;
            if (i != j && a->first < b->end && b->first < a->end &&
                result->offsets[i] < result->offsets[j] + b->bytes && result->offsets[j] < a_top) {
                return false;
            }
        }
        peak = live > peak ? live : peak;
    }
    return height == result->height_bytes && peak == result->peak_bytes;
}

/* Every placement can be pushed down until each block lies on the highest block below it, and then
 * is what dropping the blocks in order of offset gives. */
static uint64_t drop_all(struct placement_problem problem, uint64_t *tops, uint32_t placed,
                         uint64_t height)
{
    uint64_t best = UINT64_MAX;
    if (placed == (1U << problem.count) - 1) {
        return height;
    }
    for (uint32_t i = 0; i < problem.count; i++) {
        if ((placed >> i & 1U) != 0) {
            continue;
        }
        uint64_t offset = 0;
        for (uint32_t j = 0; j < problem.count; j++) {
            bool is_beside = (placed >> j & 1U) != 0 &&
                             problem.blocks[i].first < problem.blocks[j].end &&
                             problem.blocks[j].first < problem.blocks[i].end;
            offset = is_beside && tops[j] > offset ? tops[j] : offset;
        }
        tops[i] = offset + problem.blocks[i].bytes;
        uint64_t reached =
            drop_all(problem, tops, placed | 1U << i, tops[i] > height ? tops[i] : height);
        best = reached < best ? reached : best;
    }
    return best;
}

uint64_t least_height_by_brute_force(struct placement_problem problem)
{
    uint64_t tops[8] = {0};
    if (problem.count > 8) {
        abort();
    }
    return drop_all(problem, tops, 0, 0);
}
