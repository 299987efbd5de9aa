/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Small profiles written as code:
 *
 *     struct profile_builder *b = profile_builder_create(region);
 *     uint32_t x = profile_builder_tensor(b, 64), y = profile_builder_tensor(b, 64);
 *     uint32_t f = profile_builder_step(b, ATP_PHASE_FORWARD, 100, IDS(x), IDS(y));
 *     b->profile.clock.copy_latency_ns = 5;
 *
 * Copies move a byte a nanosecond each way, nothing is resident, pinned memory is not limited:
 * change it in `profile`. Running out of room aborts the test.
 */
#ifndef PROFILE_BUILDER_H
#define PROFILE_BUILDER_H

#include "plan_builder.h"
#include "profile.h"
#include "region.h"

struct profile_builder {
    struct profile profile; /* points at the arrays below */
    struct region *region;
    struct atp_tensor *tensors;
    struct atp_step *steps;
    int64_t *step_ns;
    enum profile_pin *pins;
};

struct profile_builder *profile_builder_create(struct region *region);

/* Each returns the new id; the names are t0, t1, ... and s0, s1, ... */
uint32_t profile_builder_tensor(struct profile_builder *builder, uint64_t bytes);
uint32_t profile_builder_step(struct profile_builder *builder, enum atp_phase phase,
                              int64_t step_ns, struct ids reads, struct ids writes);

/* A chain of `count` forward steps and as many backward: forward step i turns tensor i into tensor
 * i + 1, backward step i reads tensor i, tensor i + 1 and the gradient, and writes a new gradient.
 * Tensor 0 is an input. All tensors are of one size, all steps take the same time. Tensor ids are
 * 0 to count for activations, then gradients. */
struct profile_builder *profile_builder_chain(uint32_t count, uint64_t bytes, int64_t step_ns,
                                              struct region *region);

#endif
