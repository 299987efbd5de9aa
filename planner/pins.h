/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `decide` in a profile, for one idle gap.
 */
#ifndef PINS_H
#define PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"

/* The access behind which the tensor is idle between the phases: of the forward pass, or the
 * beginning of the iteration, with a next use in a later phase. */
bool pins_is_phase_gap(const struct problem *problem, uint32_t access);

/* Does the profile pin the gap behind `access`, and to which choice (schedule.h)? `keep` pins all
 * gaps of its tensor, `swap` and `recompute` pin the one between the phases. Tails are never
 * pinned. */
bool pins_find(const struct problem *problem, uint32_t access, uint8_t *out_choice);

#endif
