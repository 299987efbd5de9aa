/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Plans of any length, for measurements: a chain of layers, forward and backward.
 */
#ifndef LONG_PLAN_H
#define LONG_PLAN_H

#include <stdbool.h>

#include "plan_builder.h"

/* A sealed good plan of `layer_count` layers, an even number from 4 on, of two steps and six
 * instructions each. All activations are on the device at the turn; with `swaps` every second one
 * is on the host then, for four instructions more a pair of layers. Tensors of 256 bytes. */
struct plan_builder *long_plan(uint32_t layer_count, bool swaps);

#endif
