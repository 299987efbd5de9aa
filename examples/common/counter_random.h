/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers without state: each is a hash of a key and a counter, so that whoever needs one
 * again, a step that runs again or its backward step, computes it again. The same on host and
 * device.
 */
#ifndef COUNTER_RANDOM_H
#define COUNTER_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* SplitMix64 (public domain) of key and counter. */
ON_BOTH static inline uint64_t random_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = (key ^ (counter * 0xD1342543DE82EF95u)) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* In [0, 1). */
ON_BOTH static inline float random_uniform(uint64_t key, uint64_t counter)
{
    return (float)(random_bits(key, counter) >> 40) / 16777216.0f;
}

/* Of deviation 1: the sum of twelve uniform numbers is normal enough. */
ON_BOTH static inline float random_normal(uint64_t key, uint64_t counter)
{
    float sum = -6;
    for (uint64_t i = 0; i < 12; i++) {
        sum += random_uniform(key, counter * 12 + i);
    }
    return sum;
}

#endif
