/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on sizes that says when it leaves uint64_t. Each returns false on overflow and then
 * leaves *out alone.
 */
#ifndef ATP_CHECKED_H
#define ATP_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

/* Rounds up to a multiple of `alignment`, a power of two. */
static inline bool checked_align(uint64_t bytes, uint64_t alignment, uint64_t *out)
{
    uint64_t sum;
    if (!checked_add(bytes, alignment - 1, &sum)) {
        return false;
    }
    *out = sum & ~(alignment - 1);
    return true;
}

#endif
