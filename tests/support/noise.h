/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Values for layers under test, the same in every run.
 */
#ifndef NOISE_H
#define NOISE_H

#include <stdint.h>

#include "counter_random.h"

/* In (-1, 1). */
static inline float noise(uint64_t key, uint64_t i)
{
    return 2 * random_uniform(key, i) - 1;
}

#endif
