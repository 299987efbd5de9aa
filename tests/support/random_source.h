/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers that look random and are the same everywhere: splitmix64.
 */
#ifndef RANDOM_SOURCE_H
#define RANDOM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct random_source {
    uint64_t state; /* the seed */
};

static inline uint64_t random_next(struct random_source *random)
{
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* In [0, limit); limit > 0. */
static inline uint32_t random_below(struct random_source *random, uint32_t limit)
{
    return (uint32_t)(random_next(random) % limit);
}

static inline bool random_percent(struct random_source *random, uint32_t percent)
{
    return random_below(random, 100) < percent;
}

#endif
