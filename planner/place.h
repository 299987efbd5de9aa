/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Placement: lifetimes in, offsets out. Knows nothing of tensors or plans, so that it serves the
 * device arena, the host arena and the public test cases alike.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "region.h"

/* Bytes that are live in [first, end), half-open. Sizes are multiples of the alignment; offsets
 * become such too when all sizes are. */
struct place_block {
    uint32_t first, end;
    uint64_t bytes;
};

struct place_result {
    uint64_t *offsets;     /* one per block, in the region */
    uint64_t height_bytes; /* largest offset + bytes */
    uint64_t peak_bytes;   /* largest sum of live bytes: no placement is lower */
    bool fits;             /* height_bytes <= capacity */
    uint64_t work;         /* nodes spent, see below */
};

/* Places all blocks, below `capacity_bytes` if it can: fast heuristics first, then improvement and,
 * for up to about a thousand blocks that are connected in time, an exact search, all of it given up
 * after `work_limit` nodes (0: heuristics only). A node takes microseconds, whatever the number of
 * blocks: those that take longer count as several. The limit is overrun by one greedy attempt at
 * most. Deterministic. Blocks of 0 bytes or an empty life get offset 0. When nothing fits, the
 * lowest placement found is returned. With capacity_bytes 0, or one below the peak, it looks for
 * the lowest it can find, and stops at height_bytes == peak_bytes. The sizes add up to 2^62 at
 * most.
 */
void place_offsets(const struct place_block *blocks, uint32_t count, uint64_t capacity_bytes,
                   uint64_t work_limit, struct region *region, struct place_result *out_result);

#endif
