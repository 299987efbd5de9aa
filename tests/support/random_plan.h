/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Good plans nobody would write: random models with updates in place, several outputs and steps
 * that never run twice, and a random legal program for each, with evictions, prefetches, drops,
 * recomputation chains, shared host bytes and second restores from one copy.
 */
#ifndef RANDOM_PLAN_H
#define RANDOM_PLAN_H

#include <stdint.h>

#include "plan_builder.h"

/* A sealed plan with `layer_count` (2 to 60) forward steps, as many backward steps and an update.
 * Equal arguments give equal plans. */
struct plan_builder *random_plan(uint64_t seed, uint32_t layer_count);

#endif
