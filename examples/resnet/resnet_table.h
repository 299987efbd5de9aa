/* SPDX-License-Identifier: Apache-2.0
 *
 * The network's table: inside resnet*.c only.
 */
#ifndef RESNET_TABLE_H
#define RESNET_TABLE_H

#include "conv_layers.h"
#include "resnet.h"

enum resnet_kind {
    CONV,
    NORM,
    RELU,
    ADD,
    POOL,
    LINEAR,
    LOSS,
    CONV_BACKWARD,
    NORM_BACKWARD,
    RELU_BACKWARD, /* of ADD too */
    POOL_BACKWARD,
    LINEAR_BACKWARD,
    LOSS_BACKWARD,
    ADAMW
};

struct resnet_op {
    enum resnet_kind kind;
    char name[RESNET_NAME_SIZE];
    uint32_t size, in_channels, channels; /* of what the layer takes; of what it gives */
    uint32_t kernel, stride;
    struct resnet_place place; /* forward and backward share it */
    uint64_t count;            /* values in the first tensor that it writes */
    uint32_t reads[USES_MAX], writes[USES_MAX];
};

/* Without its addresses of parameters. */
struct conv resnet_conv(const struct resnet *net, const struct resnet_op *op);
struct batch_norm resnet_norm(const struct resnet *net, const struct resnet_op *op);

/* Fills model, tensors, steps, ops, parameter_count and running_count; false: no memory. */
bool resnet_make_table(struct resnet *net);

#endif
