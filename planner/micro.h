/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gradient accumulation: the forward and backward steps that run several times before the update
 * steps run once.
 */
#ifndef MICRO_H
#define MICRO_H

#include <stdint.h>

#include "profile.h"
#include "region.h"

/* The profile without its update steps and without the tensors that only they use; borrows names
 * and uses from `profile`. What update steps read counts as dead behind its last other use: the
 * sums of gradients are resident bytes. `out_update_ns` is what the update steps take.
 * ATP_ERR_INVALID when nothing is left. */
ATP_MUST_USE enum atp_status micro_profile(const struct profile *profile, struct region *region,
                                           struct profile *out_profile, int64_t *out_update_ns,
                                           struct atp_error *err);

#endif
