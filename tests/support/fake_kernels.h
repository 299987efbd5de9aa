/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Toy work (toy_work.h) as kernels of the fake driver: each declares what its step reads and
 * writes, and touches just that when its stream comes to it.
 */
#ifndef FAKE_KERNELS_H
#define FAKE_KERNELS_H

#include <atp/replay.h>

#include "toy_work.h"

struct fake_kernels {
    struct toy toy;
    struct atp_error late;   /* the first failure of a kernel; read it after a sync */
    struct launch *captured; /* what graphs run; finish releases it */
};

void fake_kernels_init(struct fake_kernels *kernels, const struct atp_model *model, uint64_t salt);
void fake_kernels_finish(struct fake_kernels *kernels);

/* An atp_step_fn whose ctx is a struct fake_kernels; fills the inputs when the step is ATP_NONE. */
enum atp_status fake_kernels_step(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err);

#endif
