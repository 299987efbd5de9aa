/* SPDX-License-Identifier: Apache-2.0
 *
 * Pre-norm residual blocks: h[i+1] = h[i] + dropout(fc2(gelu(fc1(norm(h[i]))))). The gradient of
 * the residual stream is one tensor, updated in place by every block on the way back.
 *
 * Three things here are told to libatp and matter to a planner: dropout is `rerun_never`, it and
 * the backward of gelu and norm work in place, and norm has two outputs.
 */
#include "net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

#define SAMPLES           1024 /* the data set: batches go round in it */
#define FORWARD_OF_BLOCK  6
#define STEPS_PER_BLOCK   (FORWARD_OF_BLOCK + 5)
#define STEPS_OUTSIDE     9
#define TENSORS_PER_BLOCK 10
#define TENSORS_OUTSIDE   10

/* What the random numbers are for: part of their key. */
enum stream { STREAM_PARAMETERS, STREAM_SAMPLES, STREAM_TEACHER, STREAM_DROPOUT };

/* ---- the table ---- */

static uint32_t add_tensor(struct net *net, const char *name, uint32_t block, uint64_t bytes)
{
    uint32_t id = net->model.tensor_count++;
    if (block == ATP_NONE) {
        (void)snprintf(net->names[id], sizeof(net->names[id]), "%s", name);
    } else {
        (void)snprintf(net->names[id], sizeof(net->names[id]), "b%u.%s", block, name);
    }
    net->tensors[id] = (struct atp_tensor){.name = net->names[id], .bytes = bytes};
    return id;
}

static uint32_t add_floats(struct net *net, const char *name, uint32_t block, uint64_t width)
{
    return add_tensor(net, name, block, net->config.batch * width * sizeof(float));
}

static struct op *add_step(struct net *net, enum op_kind kind, enum atp_phase phase)
{
    uint32_t s = net->model.step_count++;
    struct op *op = &net->ops[s];
    *op = (struct op){.kind = kind};
    net->steps[s] = (struct atp_step){
        .name = op->name, .phase = phase, .reads = op->reads, .writes = op->writes};
    return op;
}

static struct op *add_op(struct net *net, enum op_kind kind, enum atp_phase phase, const char *name,
                         uint32_t block)
{
    struct op *op = add_step(net, kind, phase);
    if (block == ATP_NONE) {
        memmove(op->name, name, strlen(name) + 1); /* of another op, the compiler cannot know */
    } else {
        (void)snprintf(op->name, sizeof(op->name), "b%u.%s", block, name);
    }
    return op;
}

static void reads(struct net *net, uint32_t tensor)
{
    struct atp_step *step = &net->steps[net->model.step_count - 1];
    net->ops[net->model.step_count - 1].reads[step->read_count++] = tensor;
}

static void writes(struct net *net, uint32_t tensor)
{
    struct atp_step *step = &net->steps[net->model.step_count - 1];
    net->ops[net->model.step_count - 1].writes[step->write_count++] = tensor;
}

static uint64_t add_parameters(struct net *net, uint64_t count)
{
    uint64_t at = net->parameter_count;
    net->parameter_count += count;
    return at;
}

static void add_linear(struct net *net, const char *name, uint32_t block, uint32_t in_width,
                       uint32_t out_width)
{
    struct op *op = add_op(net, OP_LINEAR, ATP_PHASE_FORWARD, name, block);
    op->in_width = in_width;
    op->out_width = out_width;
    op->weight = add_parameters(net, (uint64_t)in_width * out_width);
    op->bias = add_parameters(net, out_width);
}

static void add_norm(struct net *net, const char *name, uint32_t block)
{
    struct op *op = add_op(net, OP_NORM, ATP_PHASE_FORWARD, name, block);
    op->in_width = op->out_width = net->config.width;
    op->weight = add_parameters(net, net->config.width);
    op->bias = add_parameters(net, net->config.width);
}

/* The backward step of the forward step `forward`: of its name, on its parameters. */
static void add_backward(struct net *net, enum op_kind kind, const struct op *forward)
{
    struct op *op = add_step(net, kind, ATP_PHASE_BACKWARD);
    net->steps[net->model.step_count - 1].name = forward->name;
    op->in_width = forward->in_width;
    op->out_width = forward->out_width;
    op->weight = forward->weight;
    op->bias = forward->bias;
}

/* Appends the block's forward steps and returns its output. */
static uint32_t add_block(struct net *net, uint32_t i, uint32_t h)
{
    uint32_t width = net->config.width, wide_width = 4 * width;
    uint32_t normed = add_floats(net, "normed", i, width);
    uint32_t stats = add_floats(net, "stats", i, 2);
    uint32_t wide = add_floats(net, "wide", i, wide_width);
    uint32_t active = add_floats(net, "active", i, wide_width);
    uint32_t narrow = add_floats(net, "narrow", i, width);
    uint32_t mask = add_tensor(net, "mask", i, (uint64_t)net->config.batch * width);
    uint32_t out = add_floats(net, "h", i + 1, width);
    add_norm(net, "norm", i);
    reads(net, h);
    writes(net, normed);
    writes(net, stats);
    add_linear(net, "fc1", i, width, wide_width);
    reads(net, normed);
    writes(net, wide);
    add_op(net, OP_GELU, ATP_PHASE_FORWARD, "gelu", i)->in_width = wide_width;
    reads(net, wide);
    writes(net, active);
    add_linear(net, "fc2", i, wide_width, width);
    reads(net, active);
    writes(net, narrow);
    add_op(net, OP_DROPOUT, ATP_PHASE_FORWARD, "dropout", i)->in_width = width;
    net->steps[net->model.step_count - 1].rerun_never = true;
    reads(net, narrow);
    writes(net, narrow);
    writes(net, mask);
    add_op(net, OP_ADD, ATP_PHASE_FORWARD, "add", i)->in_width = width;
    reads(net, h);
    reads(net, narrow);
    writes(net, out);
    return out;
}

/* Appends its backward steps; d_h is the gradient of its output and becomes that of its input. */
static void add_block_backward(struct net *net, uint32_t i, uint32_t d_h)
{
    const struct op *norm = &net->ops[1 + i * FORWARD_OF_BLOCK], *fc1 = norm + 1, *gelu = norm + 2;
    const struct op *fc2 = norm + 3, *dropout = norm + 4;
    uint32_t d_narrow = add_floats(net, "d_narrow", i, net->config.width);
    uint32_t d_wide = add_floats(net, "d_wide", i, (uint64_t)4 * net->config.width);
    uint32_t d_normed = add_floats(net, "d_normed", i, net->config.width);
    add_backward(net, OP_DROPOUT_BACKWARD, dropout);
    reads(net, d_h);
    reads(net, dropout->writes[1]);
    writes(net, d_narrow);
    add_backward(net, OP_LINEAR_BACKWARD, fc2);
    reads(net, d_narrow);
    reads(net, fc2->reads[0]);
    writes(net, d_wide);
    add_backward(net, OP_GELU_BACKWARD, gelu);
    reads(net, d_wide);
    reads(net, gelu->reads[0]);
    writes(net, d_wide);
    add_backward(net, OP_LINEAR_BACKWARD, fc1);
    reads(net, d_wide);
    reads(net, fc1->reads[0]);
    writes(net, d_normed);
    add_backward(net, OP_NORM_BACKWARD, norm);
    reads(net, d_normed);
    reads(net, norm->reads[0]);
    reads(net, norm->writes[1]);
    reads(net, d_h);
    writes(net, d_h);
}

/* From the last block's output to the loss; returns the first of these steps. */
static const struct op *add_head(struct net *net, uint32_t h)
{
    const struct op *first = &net->ops[net->model.step_count];
    uint32_t normed = add_floats(net, "normed", ATP_NONE, net->config.width);
    uint32_t stats = add_floats(net, "stats", ATP_NONE, 2);
    uint32_t logits = add_floats(net, "logits", ATP_NONE, NET_CLASSES);
    uint32_t probabilities = add_floats(net, "probabilities", ATP_NONE, NET_CLASSES);
    add_norm(net, "norm", ATP_NONE);
    reads(net, h);
    writes(net, normed);
    writes(net, stats);
    add_linear(net, "head", ATP_NONE, net->config.width, NET_CLASSES);
    reads(net, normed);
    writes(net, logits);
    (void)add_op(net, OP_LOSS, ATP_PHASE_FORWARD, "loss", ATP_NONE);
    reads(net, logits);
    reads(net, net->labels);
    writes(net, probabilities);
    return first;
}

/* Returns the gradient of the last block's output. */
static uint32_t add_head_backward(struct net *net, const struct op *norm)
{
    const struct op *head = norm + 1, *loss = norm + 2;
    uint32_t d_logits = add_floats(net, "d_logits", ATP_NONE, NET_CLASSES);
    uint32_t d_normed = add_floats(net, "d_normed", ATP_NONE, net->config.width);
    uint32_t d_h = add_floats(net, "d_h", ATP_NONE, net->config.width);
    add_backward(net, OP_LOSS_BACKWARD, loss);
    reads(net, loss->writes[0]);
    reads(net, net->labels);
    writes(net, d_logits);
    add_backward(net, OP_LINEAR_BACKWARD, head);
    reads(net, d_logits);
    reads(net, head->reads[0]);
    writes(net, d_normed);
    add_backward(net, OP_NORM_BACKWARD, norm);
    reads(net, d_normed);
    reads(net, norm->reads[0]);
    reads(net, norm->writes[1]);
    writes(net, d_h);
    return d_h;
}

static void add_all(struct net *net)
{
    net->input = add_floats(net, "x", ATP_NONE, NET_INPUT_WIDTH);
    net->labels = add_tensor(net, "labels", ATP_NONE, net->config.batch * sizeof(int32_t));
    uint32_t h = add_floats(net, "h", 0, net->config.width);
    add_linear(net, "embed", ATP_NONE, NET_INPUT_WIDTH, net->config.width);
    reads(net, net->input);
    writes(net, h);
    for (uint32_t i = 0; i < net->config.blocks; i++) {
        h = add_block(net, i, h);
    }
    uint32_t d_h = add_head_backward(net, add_head(net, h));
    for (uint32_t i = net->config.blocks; i > 0; i--) {
        add_block_backward(net, i - 1, d_h);
    }
    add_backward(net, OP_LINEAR_BACKWARD, &net->ops[0]);
    reads(net, d_h);
    reads(net, net->input);
    (void)add_op(net, OP_UPDATE, ATP_PHASE_UPDATE, "sgd", ATP_NONE);
}

/* ---- the parameters ---- */

static uint64_t key_of(const struct net *net, enum stream stream, uint64_t number)
{
    return net->config.seed * 0x9E3779B97F4A7C15u + number * 8 + stream;
}

static void set_parameters(struct net *net)
{
    for (uint32_t s = 0; s < net->model.step_count; s++) {
        const struct op *op = &net->ops[s];
        if (op->kind == OP_NORM) {
            for (uint32_t i = 0; i < op->in_width; i++) {
                net->parameters[op->weight + i] = 1;
            }
        } else if (op->kind == OP_LINEAR) {
            float deviation = 1 / sqrtf((float)op->in_width);
            for (uint64_t i = op->weight; i < op->bias; i++) {
                net->parameters[i] =
                    deviation * random_normal(key_of(net, STREAM_PARAMETERS, 0), i);
            }
        }
    }
}

bool net_init(struct net *net, const struct net_config *config)
{
    size_t steps = STEPS_OUTSIDE + (size_t)config->blocks * STEPS_PER_BLOCK;
    size_t tensors = TENSORS_OUTSIDE + (size_t)config->blocks * TENSORS_PER_BLOCK;
    *net = (struct net){.config = *config};
    net->tensors = (struct atp_tensor *)calloc(tensors, sizeof(*net->tensors));
    net->names = (char(*)[NET_NAME_SIZE])calloc(tensors, sizeof(*net->names));
    net->steps = (struct atp_step *)calloc(steps, sizeof(*net->steps));
    net->ops = (struct op *)calloc(steps, sizeof(*net->ops));
    if (net->tensors == NULL || net->names == NULL || net->steps == NULL || net->ops == NULL) {
        net_finish(net);
        return false;
    }
    net->model = (struct atp_model){
        .name = "mlp", .batch_size = config->batch, .tensors = net->tensors, .steps = net->steps};
    add_all(net);
    net->parameters = (float *)calloc(net->parameter_count, sizeof(float));
    net->gradients = (float *)calloc(net->parameter_count, sizeof(float));
    net->velocities = (float *)calloc(net->parameter_count, sizeof(float));
    if (net->parameters == NULL || net->gradients == NULL || net->velocities == NULL) {
        net_finish(net);
        return false;
    }
    set_parameters(net);
    return true;
}

void net_finish(struct net *net)
{
    free(net->velocities);
    free(net->gradients);
    free(net->parameters);
    free(net->ops);
    free(net->steps);
    free(net->names);
    free(net->tensors);
    *net = (struct net){0};
}

uint64_t net_resident_bytes(const struct net *net)
{
    return 3 * net->parameter_count * sizeof(float);
}

/* ---- the work of the steps ---- */

/* The class of a sample: which sides of three random planes it lies on, the third one bent, so that
 * no linear map can tell. */
static void make_sample(const struct net *net, uint64_t sample, float *x, int32_t *out_label)
{
    uint64_t key = key_of(net, STREAM_SAMPLES, sample);
    float sides[3] = {0};
    for (uint32_t i = 0; i < NET_INPUT_WIDTH; i++) {
        x[i] = random_normal(key, i);
        for (uint32_t p = 0; p < 3; p++) {
            sides[p] += x[i] * random_normal(key_of(net, STREAM_TEACHER, p), i);
        }
    }
    bool is_bent = sides[0] * sides[1] > 0;
    *out_label = (sides[0] > 0) + 2 * (sides[1] > 0) + 4 * ((sides[2] > 0) != is_bent);
}

static void make_batch(const struct net *net, uint64_t iteration, float *x, int32_t *labels)
{
    for (uint32_t r = 0; r < net->config.batch; r++) {
        uint64_t sample = (iteration * net->config.batch + r) % SAMPLES;
        make_sample(net, sample, x + (uint64_t)r * NET_INPUT_WIDTH, &labels[r]);
    }
}

static struct linear linear_of(const struct net *net, const struct op *op)
{
    return (struct linear){.rows = net->config.batch,
                           .in_width = op->in_width,
                           .out_width = op->out_width,
                           .weight = net->parameters + op->weight,
                           .bias = net->parameters + op->bias,
                           .d_weight = net->gradients + op->weight,
                           .d_bias = net->gradients + op->bias};
}

static struct norm norm_of(const struct net *net, const struct op *op)
{
    return (struct norm){.rows = net->config.batch,
                         .width = op->in_width,
                         .gain = net->parameters + op->weight,
                         .bias = net->parameters + op->bias,
                         .d_gain = net->gradients + op->weight,
                         .d_bias = net->gradients + op->bias};
}

/* A step's tensors as addresses; those that it does not have are NULL. */
struct operands {
    void *in[NET_USES_MAX], *out[NET_USES_MAX];
};

static void work_forward(struct net *net, const struct op *op, const struct operands *at,
                         uint64_t key)
{
    uint64_t count = (uint64_t)net->config.batch * op->in_width;
    struct linear linear = linear_of(net, op);
    struct norm norm = norm_of(net, op);
    if (op->kind == OP_LINEAR) {
        linear_forward(&linear, at->out[0], at->in[0]);
    } else if (op->kind == OP_NORM) {
        norm_forward(&norm, at->out[0], at->out[1], at->in[0]);
    } else if (op->kind == OP_GELU) {
        gelu_forward(at->out[0], at->in[0], count);
    } else if (op->kind == OP_DROPOUT) {
        dropout_forward(at->out[0], at->out[1], count, net->config.dropout, key);
    } else if (op->kind == OP_ADD) {
        add(at->out[0], at->in[0], at->in[1], count);
    } else {
        net->loss = softmax_loss(at->out[0], at->in[0], at->in[1], net->config.batch, NET_CLASSES);
    }
}

static void work_backward(const struct net *net, const struct op *op, const struct operands *at)
{
    uint64_t count = (uint64_t)net->config.batch * op->in_width;
    struct linear linear = linear_of(net, op);
    struct norm norm = norm_of(net, op);
    if (op->kind == OP_LINEAR_BACKWARD) {
        linear_backward(&linear, at->out[0], at->in[0], at->in[1]);
    } else if (op->kind == OP_NORM_BACKWARD) {
        /* Nothing came around the last norm. */
        norm_backward(&norm, at->out[0], at->in[0], at->in[1], at->in[2], at->in[3] != NULL);
    } else if (op->kind == OP_GELU_BACKWARD) {
        gelu_backward(at->out[0], at->in[1], count);
    } else if (op->kind == OP_DROPOUT_BACKWARD) {
        dropout_backward(at->out[0], at->in[0], at->in[1], count, net->config.dropout);
    } else {
        softmax_backward(at->out[0], at->in[0], at->in[1], net->config.batch, NET_CLASSES);
    }
}

enum atp_status net_step(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct net *net = (struct net *)ctx;
    struct operands at = {{NULL}, {NULL}};
    (void)err;
    if (call->step == ATP_NONE) {
        make_batch(net, call->iteration, (float *)atp_replay_tensor_data(call->replay, net->input),
                   (int32_t *)atp_replay_tensor_data(call->replay, net->labels));
        return ATP_OK;
    }
    const struct op *op = &net->ops[call->step];
    const struct atp_step *step = &net->steps[call->step];
    for (uint32_t i = 0; i < step->read_count; i++) {
        at.in[i] = atp_replay_tensor_data(call->replay, op->reads[i]);
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        at.out[i] = atp_replay_tensor_data(call->replay, op->writes[i]);
    }
    if (step->phase == ATP_PHASE_FORWARD) {
        uint64_t number = call->iteration * net->model.step_count + call->step;
        work_forward(net, op, &at, key_of(net, STREAM_DROPOUT, number));
    } else if (step->phase == ATP_PHASE_BACKWARD) {
        work_backward(net, op, &at);
    } else {
        sgd(net->parameters, net->velocities, net->gradients, net->parameter_count,
            net->config.rate, net->config.momentum);
    }
    return ATP_OK;
}
