/* SPDX-License-Identifier: Apache-2.0
 *
 * Many arrays in one allocation. The same code takes the arrays twice: with base NULL to learn the
 * exact size, then with the block itself to place them.
 */
#ifndef ATP_CARVE_H
#define ATP_CARVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checked.h"

struct carve {
    unsigned char *base; /* NULL: only measure */
    uint64_t used_bytes;
    bool overflowed; /* the sizes left uint64_t or size_t; nothing was handed out since */
};

/* Room for `count` elements of `size` bytes, aligned for any type; NULL while measuring. */
static inline void *carve_take(struct carve *carve, uint64_t count, uint64_t size)
{
    uint64_t bytes, start, end;
    if (!checked_mul(count, size, &bytes) ||
        !checked_align(carve->used_bytes, _Alignof(max_align_t), &start) ||
        !checked_add(start, bytes, &end) || end > SIZE_MAX) {
        carve->overflowed = true;
    }
    if (carve->overflowed) {
        return NULL;
    }
    carve->used_bytes = end;
    return carve->base == NULL ? NULL : carve->base + start;
}

#define CARVE(carve, type, count) ((type *)carve_take((carve), (count), sizeof(type)))

#endif
