/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Small profiles with everything that the format allows: inputs, skips, tensors that only the
 * forward pass reads, in-place updates in both passes, steps with two outputs, steps that must not
 * rerun, workspaces, update steps, idle tensors; copies about as slow as steps.
 */
#ifndef RANDOM_PROFILE_H
#define RANDOM_PROFILE_H

#include "profile.h"
#include "random.h"
#include "region.h"

/* With `forward_count` forward steps (1 or more) and about as many backward. Passes
 * atp_model_check. */
void random_profile_build(struct random *random, uint32_t forward_count, struct region *region,
                          struct profile *out_profile);

#endif
