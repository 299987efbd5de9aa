/* SPDX-License-Identifier: Apache-2.0
 *
 * A deep residual network as a table: its tensors and steps, made once from the configuration and
 * declared to libatp as an atp_model. The table also says which layer each step computes, so that
 * net_step can do the work of any step, in any order that libatp asks for.
 *
 * Weights, their gradients and momenta are resident: they belong to the net and are no tensors.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/model.h>
#include <atp/replay.h>

#define NET_INPUT_WIDTH 16
#define NET_CLASSES     8
#define NET_USES_MAX    4
#define NET_NAME_SIZE   24

struct net_config {
    uint32_t batch, width, blocks; /* the layers inside a block are 4 * width wide */
    float dropout, rate, momentum;
    uint64_t seed; /* of weights, data and dropout */
};

enum op_kind {
    OP_LINEAR,
    OP_NORM,
    OP_GELU,
    OP_DROPOUT,
    OP_ADD,
    OP_LOSS,
    OP_LINEAR_BACKWARD,
    OP_NORM_BACKWARD,
    OP_GELU_BACKWARD,
    OP_DROPOUT_BACKWARD,
    OP_LOSS_BACKWARD,
    OP_UPDATE
};

/* One step: what it computes, and its tensors in the order that net_step expects. */
struct op {
    enum op_kind kind;
    char name[NET_NAME_SIZE]; /* empty for backward steps: they share that of the forward step */
    uint32_t in_width, out_width;
    uint64_t weight, bias; /* places in the parameters; of linear and norm */
    uint32_t reads[NET_USES_MAX], writes[NET_USES_MAX];
};

struct net {
    struct net_config config;
    struct atp_model model; /* points into the arrays below */
    struct atp_tensor *tensors;
    struct atp_step *steps;
    struct op *ops;               /* one per step */
    char (*names)[NET_NAME_SIZE]; /* of the tensors */
    uint64_t parameter_count;
    float *parameters, *gradients, *velocities;
    uint32_t input, labels; /* tensors that the data goes into */
    double loss;            /* of the last forward pass */
};

/* False when there is no memory, and then there is nothing to finish. */
bool net_init(struct net *net, const struct net_config *config);
void net_finish(struct net *net);

/* Bytes that stay on the device: parameters, gradients, momenta. */
uint64_t net_resident_bytes(const struct net *net);

/* An atp_step_fn whose ctx is a struct net. With step = ATP_NONE it puts the iteration's batch into
 * the input tensors. */
enum atp_status net_step(void *ctx, const struct atp_step_call *call, struct atp_error *err);

#endif
