/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain iteration as a plan: every tensor gets its bytes at its first use and gives them up
 * after its last; nothing is copied or run again. This is what a program without a planner does,
 * and what a plan must equal bit for bit.
 */
#ifndef ATP_PLAIN_H
#define ATP_PLAIN_H

#include <atp/plan.h>

#include "carve.h"

#define PLAIN_ALIGNMENT 256

struct plain_hole {
    uint64_t offset, end;
};

struct plain {
    struct atp_plan plan; /* times in `predicted` are 0: nothing was measured */
    /* Behind it; the plan points into the first two, build uses the rest. */
    struct atp_instruction *program; /* 2 * tensor_count + step_count */
    enum atp_decision *decisions;
    uint64_t *offsets;               /* per tensor */
    uint32_t *first_step, *end_step; /* per tensor, half-open */
    struct plain_hole *holes;        /* free bytes below the arena's end, by offset */
    uint32_t hole_count;
};

/* Takes the arrays for a model from the block. */
void plain_lay_out(struct plain *plain, const struct atp_model *model, struct carve *carve);

/* Fills the laid-out plan. The model passed atp_model_check, and is borrowed. ATP_ERR_NO_MEMORY
 * when the arena leaves uint64_t. */
ATP_MUST_USE enum atp_status plain_build(struct plain *plain, const struct atp_model *model,
                                         struct atp_error *err);

#endif
