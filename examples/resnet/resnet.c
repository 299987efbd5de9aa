/* SPDX-License-Identifier: Apache-2.0
 *
 * The network's parameters, its images, and the work of its steps.
 *
 * Every step may run again. Only the normalisations leave something behind, their running
 * statistics, and for that they look at whether they run again.
 */
#include "resnet.h"

#include <math.h>
#include <stdlib.h>

#include "counter_random.h"
#include "parameters.h"
#include "resnet_table.h"

/* What random numbers are for: part of their key. */
enum stream { STREAM_PARAMETERS, STREAM_LABELS, STREAM_LOOKS, STREAM_NOISE };

static uint64_t stream_of(const struct resnet *net, enum stream stream)
{
    return net->config.seed * 4 + stream;
}

/* ---- parameters ---- */

struct resnet_place resnet_step_place(const struct resnet *net, uint32_t step)
{
    return net->ops[step].place;
}

/* Weights that keep the size of what they take; gains of 1, and running variances of 1. */
static void init_step(const struct resnet *net, const struct resnet_op *op, float *values,
                      float *running)
{
    const struct resnet_place *place = &op->place;
    uint64_t places = (uint64_t)op->kernel * op->kernel;
    float inputs = (float)(op->kind == CONV ? places * op->in_channels : op->channels);
    uint64_t key = random_bits(stream_of(net, STREAM_PARAMETERS), 0);
    for (uint64_t i = place->weight; i < place->weight + place->weights; i++) {
        float random = random_normal(key, i);
        values[i] = op->kind == NORM ? 1 : random * sqrtf(2 / inputs);
    }
    for (uint64_t i = 0; i < place->runnings; i++) {
        running[place->running + i] = i < op->channels ? 0 : 1;
    }
}

static bool init_parameters(struct resnet *net)
{
    uint64_t count = net->parameter_count, runnings = net->running_count;
    float *values = (float *)calloc(count + runnings, sizeof(float));
    if (values == NULL) {
        return false;
    }
    for (uint32_t s = 0; net->steps[s].phase == ATP_PHASE_FORWARD; s++) {
        init_step(net, &net->ops[s], values, values + count);
    }
    device_write(net->device, net->parameters.values, values, count * sizeof(float));
    device_write(net->device, net->running, values + count, runnings * sizeof(float));
    free(values);
    return true;
}

uint64_t resnet_resident_bytes(const struct resnet *net)
{
    return parameters_bytes(net->parameter_count) + net->running_count * sizeof(float);
}

static bool init_all(struct resnet *net)
{
    if (!resnet_make_table(net)) {
        return false;
    }
    net->device = device_open();
    if (net->device == NULL) {
        return false;
    }
    net->running = (float *)device_take(net->device, net->running_count * sizeof(float));
    net->loss = (float *)device_take(net->device, sizeof(float));
    return net->running != NULL && net->loss != NULL &&
           parameters_take(&net->parameters, net->device, net->parameter_count) &&
           init_parameters(net);
}

bool resnet_init(struct resnet *net, const struct resnet_config *config)
{
    *net = (struct resnet){.config = *config};
    if (!init_all(net)) {
        resnet_finish(net);
        return false;
    }
    return true;
}

void resnet_finish(struct resnet *net)
{
    if (net->device != NULL) {
        device_give(net->device, net->parameters.values);
        device_give(net->device, net->loss);
        device_give(net->device, net->running);
        device_close(net->device);
    }
    free(net->ops);
    free(net->steps);
    free(net->tensor_names);
    free(net->tensors);
    *net = (struct resnet){0};
}

float resnet_loss(struct resnet *net)
{
    float loss;
    device_read(net->device, &loss, net->loss, sizeof(loss));
    return loss;
}

uint64_t resnet_running_digest(struct resnet *net)
{
    unsigned char bytes[1024];
    uint64_t size = net->running_count * sizeof(float);
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (uint64_t begin = 0; begin < size; begin += sizeof(bytes)) {
        uint64_t count = size - begin < sizeof(bytes) ? size - begin : sizeof(bytes);
        device_read(net->device, bytes, (const char *)net->running + begin, count);
        for (uint64_t i = 0; i < count; i++) {
            hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

void resnet_load_batch(struct resnet *net, uint64_t iteration, float *images, int32_t *labels)
{
    const struct resnet_config *c = &net->config;
    const struct stripes stripes = {.batch = c->batch,
                                    .size = c->image,
                                    .classes = RESNET_CLASSES,
                                    .first = iteration * c->batch,
                                    .labels = random_bits(stream_of(net, STREAM_LABELS), 0),
                                    .looks = stream_of(net, STREAM_LOOKS),
                                    .noise = stream_of(net, STREAM_NOISE)};
    stripes_draw(net->device, &stripes, images, labels);
}

/* ---- the work of the steps ---- */

struct conv resnet_conv(const struct resnet *net, const struct resnet_op *op)
{
    return (struct conv){.batch = net->config.batch,
                         .in_size = op->size,
                         .in_channels = op->in_channels,
                         .out_channels = op->channels,
                         .kernel = op->kernel,
                         .stride = op->stride};
}

struct batch_norm resnet_norm(const struct resnet *net, const struct resnet_op *op)
{
    return (struct batch_norm){.rows = (uint64_t)net->config.batch * op->size * op->size,
                               .channels = op->channels,
                               .momentum = 0.1f};
}

static struct conv conv_of(const struct resnet *net, const struct resnet_op *op)
{
    struct conv conv = resnet_conv(net, op);
    conv.weight = net->parameters.values + op->place.weight;
    conv.d_weight = net->parameters.gradients + op->place.weight;
    return conv;
}

static struct batch_norm norm_of(const struct resnet *net, const struct resnet_op *op)
{
    struct batch_norm norm = resnet_norm(net, op);
    norm.gain = net->parameters.values + op->place.weight;
    norm.bias = net->parameters.values + op->place.bias;
    norm.d_gain = net->parameters.gradients + op->place.weight;
    norm.d_bias = net->parameters.gradients + op->place.bias;
    norm.running = net->running + op->place.running;
    return norm;
}

static struct linear head_of(const struct resnet *net, const struct resnet_op *op)
{
    return (struct linear){.rows = net->config.batch,
                           .in_width = op->channels,
                           .out_width = RESNET_CLASSES,
                           .weight = net->parameters.values + op->place.weight,
                           .bias = net->parameters.values + op->place.bias,
                           .d_weight = net->parameters.gradients + op->place.weight,
                           .d_bias = net->parameters.gradients + op->place.bias};
}

static struct pool pool_of(const struct resnet *net, const struct resnet_op *op)
{
    return (struct pool){.batch = net->config.batch, .size = op->size, .channels = op->channels};
}

static struct loss loss_of(const struct resnet *net)
{
    return (struct loss){.rows = net->config.batch,
                         .classes = RESNET_CLASSES,
                         .scale = 1 / (float)net->config.batch};
}

/* Weights decay, biases and gains do not. */
static void update(struct resnet *net, uint64_t iteration)
{
    struct adamw rule = {.rate = net->config.rate,
                         .beta1 = 0.9f,
                         .beta2 = 0.99f,
                         .epsilon = 1e-8f,
                         .iteration = iteration};
    for (uint32_t s = 0; net->steps[s].phase == ATP_PHASE_FORWARD; s++) {
        const struct resnet_op *op = &net->ops[s];
        uint64_t begins[] = {op->place.weight, op->place.bias};
        uint64_t counts[] = {op->place.weights, op->place.biases};
        for (int i = 0; i < 2 && counts[i] > 0; i++) {
            rule.decay = i == 0 && op->kind != NORM ? net->config.decay : 0;
            struct parameters part = parameters_part(&net->parameters, begins[i], counts[i]);
            adamw(net->device, &rule, &part);
        }
    }
}

static void work_forward(struct resnet *net, const struct resnet_op *op, const struct work *work)
{
    struct device *device = net->device;
    void *const *in = work->reads, *const *out = work->writes;
    if (op->kind == CONV) {
        struct conv conv = conv_of(net, op);
        conv_forward(device, &conv, out[0], in[0], work->workspace);
    } else if (op->kind == NORM) {
        struct batch_norm norm = norm_of(net, op);
        batch_norm_forward(device, &norm, out[0], out[1], in[0], !work->is_rerun, work->workspace);
    } else if (op->kind == RELU) {
        relu_forward(device, out[0], op->count);
    } else if (op->kind == ADD) {
        add_forward(device, out[0], in[1], op->count);
    } else if (op->kind == POOL) {
        struct pool pool = pool_of(net, op);
        pool_forward(device, &pool, out[0], in[0]);
    } else if (op->kind == LINEAR) {
        struct linear head = head_of(net, op);
        linear_forward(device, &head, out[0], in[0]);
    } else {
        struct loss loss = loss_of(net);
        loss_forward(device, &loss, out[0], in[1], work->workspace, net->loss);
    }
}

static void work_backward(struct resnet *net, const struct resnet_op *op, const struct work *work)
{
    struct device *device = net->device;
    void *const *in = work->reads, *const *out = work->writes;
    if (op->kind == LOSS_BACKWARD) {
        struct loss loss = loss_of(net);
        loss_backward(device, &loss, out[0], in[0], in[1]);
    } else if (op->kind == LINEAR_BACKWARD) {
        struct linear head = head_of(net, op);
        linear_backward(device, &head, out[0], in[0], in[1]);
    } else if (op->kind == POOL_BACKWARD) {
        struct pool pool = pool_of(net, op);
        pool_backward(device, &pool, out[0], in[0]);
    } else if (op->kind == RELU_BACKWARD) {
        relu_backward(device, out[0], in[1], op->count);
    } else if (op->kind == NORM_BACKWARD) {
        struct batch_norm norm = norm_of(net, op);
        batch_norm_backward(device, &norm, out[0], in[0], in[1], in[2], work->workspace);
    } else {
        /* Images have no gradient. Where a third tensor is read, it is the one that is written. */
        struct conv conv = conv_of(net, op);
        conv_backward(device, &conv, out[0], in[0], in[1], in[2] != NULL, work->workspace);
    }
}

void resnet_work(struct resnet *net, const struct work *work)
{
    const struct resnet_op *op = &net->ops[work->step];
    if (op->kind == ADAMW) {
        update(net, work->iteration);
    } else if (net->steps[work->step].phase == ATP_PHASE_FORWARD) {
        work_forward(net, op, work);
    } else {
        work_backward(net, op, work);
    }
}
