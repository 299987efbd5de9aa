/* SPDX-License-Identifier: Apache-2.0
 *
 * The network's table: inside gpt_*.c only.
 */
#ifndef TABLE_H
#define TABLE_H

#include "gpt.h"

enum gpt_kind {
    EMBED,
    NORM,
    LINEAR,
    SCORES,
    DROPOUT,
    MIX,
    RESIDUAL,
    GELU,
    LOSS,
    EMBED_BACKWARD,
    NORM_BACKWARD,
    LINEAR_BACKWARD,
    SCORES_BACKWARD,
    DROPOUT_BACKWARD, /* of residual too */
    MIX_BACKWARD,
    GELU_BACKWARD,
    LOSS_BACKWARD,
    ALL_REDUCE,
    ADAMW
};

struct gpt_op {
    enum gpt_kind kind;
    char name[GPT_NAME_SIZE];
    uint32_t in_width, out_width; /* of parameters; 0: none */
    uint64_t weight, bias;        /* places in the parameters; NO_BIAS: none */
    uint32_t drop;                /* number of the dropout: forward and backward share it */
    uint64_t count;               /* values in the first tensor that it writes */
    uint32_t reads[USES_MAX], writes[USES_MAX];
};

#define NO_BIAS UINT64_MAX

/* Fills model, tensors, steps, ops and parameter_count; false: no memory. */
bool gpt_make_table(struct gpt *gpt);

#endif
