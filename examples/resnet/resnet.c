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

static uint64_t key_of(const struct resnet *net, enum stream stream, uint64_t number)
{
    return random_bits(net->config.seed * 4 + stream, number);
}

/* ---- parameters ---- */

struct resnet_place resnet_step_place(const struct resnet *net, uint32_t step)
{
    return net->ops[step].place;
}

/* Weights that keep the size of what they take; gains of 1, and running variances of 1. */
static void init_step(struct resnet *net, const struct resnet_op *op)
{
    const struct resnet_place *place = &op->place;
    uint64_t places = (uint64_t)op->kernel * op->kernel;
    float *weights = net->parameters.values + place->weight;
    float inputs = (float)(op->kind == CONV ? places * op->in_channels : op->channels);
    for (uint64_t i = 0; i < place->weights; i++) {
        float random = random_normal(key_of(net, STREAM_PARAMETERS, 0), place->weight + i);
        weights[i] = op->kind == NORM ? 1 : random * sqrtf(2 / inputs);
    }
    for (uint64_t i = 0; i < place->runnings; i++) {
        net->running[place->running + i] = i < op->channels ? 0 : 1;
    }
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
    if (net->running == NULL ||
        !parameters_take(&net->parameters, net->device, net->parameter_count)) {
        return false;
    }
    for (uint32_t s = 0; net->steps[s].phase == ATP_PHASE_FORWARD; s++) {
        init_step(net, &net->ops[s]);
    }
    return true;
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
        device_give(net->device, net->running);
        device_close(net->device);
    }
    free(net->ops);
    free(net->steps);
    free(net->tensor_names);
    free(net->tensors);
    *net = (struct resnet){0};
}

uint64_t resnet_running_digest(const struct resnet *net)
{
    const unsigned char *bytes = (const unsigned char *)net->running;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (uint64_t i = 0; i < net->running_count * sizeof(float); i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* ---- images ---- */

/* Coloured stripes under noise; the class is their direction. Phase, width and colours are any. */
static void draw_image(const struct resnet *net, uint64_t number, int32_t label, float *pixels)
{
    const float half_turn = 3.14159265f;
    uint64_t looks = key_of(net, STREAM_LOOKS, number), noise = key_of(net, STREAM_NOISE, number);
    uint32_t size = net->config.image;
    float angle = half_turn * (float)label / RESNET_CLASSES;
    float phase = 2 * half_turn * random_uniform(looks, 0);
    float pace = 0.6f + random_uniform(looks, 1); /* radians a pixel */
    for (uint32_t i = 0; i < size * size; i++) {
        uint32_t row = i / size, column = i % size;
        float x = (float)column, y = (float)row;
        float stripe = sinf(pace * (x * cosf(angle) + y * sinf(angle)) + phase);
        for (uint32_t c = 0; c < 3; c++) {
            float colour = 2 * random_uniform(looks, 2 + c) - 1;
            pixels[3 * i + c] = colour * stripe + random_uniform(noise, 3 * i + c) - 0.5f;
        }
    }
}

void resnet_load_batch(struct resnet *net, uint64_t iteration, float *images, int32_t *labels)
{
    uint64_t batch = net->config.batch,
             values = 3 * (uint64_t)net->config.image * net->config.image;
#pragma omp parallel for
    for (uint64_t i = 0; i < batch; i++) {
        uint64_t number = iteration * batch + i;
        labels[i] = (int32_t)(random_bits(key_of(net, STREAM_LABELS, 0), number) % RESNET_CLASSES);
        draw_image(net, number, labels[i], images + i * values);
    }
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
    void *const *in = work->reads, *const *out = work->writes;
    if (op->kind == CONV) {
        struct conv conv = conv_of(net, op);
        conv_forward(&conv, out[0], in[0], work->workspace);
    } else if (op->kind == NORM) {
        struct batch_norm norm = norm_of(net, op);
        batch_norm_forward(&norm, out[0], out[1], in[0], !work->is_rerun, work->workspace);
    } else if (op->kind == RELU) {
        relu_forward(out[0], op->count);
    } else if (op->kind == ADD) {
        add_forward(out[0], in[1], op->count);
    } else if (op->kind == POOL) {
        struct pool pool = pool_of(net, op);
        pool_forward(&pool, out[0], in[0]);
    } else if (op->kind == LINEAR) {
        struct linear head = head_of(net, op);
        linear_forward(net->device, &head, out[0], in[0]);
    } else {
        struct loss loss = loss_of(net);
        loss_forward(net->device, &loss, out[0], in[1], work->workspace, &net->loss);
    }
}

static void work_backward(struct resnet *net, const struct resnet_op *op, const struct work *work)
{
    void *const *in = work->reads, *const *out = work->writes;
    if (op->kind == LOSS_BACKWARD) {
        struct loss loss = loss_of(net);
        loss_backward(net->device, &loss, out[0], in[0], in[1]);
    } else if (op->kind == LINEAR_BACKWARD) {
        struct linear head = head_of(net, op);
        linear_backward(net->device, &head, out[0], in[0], in[1]);
    } else if (op->kind == POOL_BACKWARD) {
        struct pool pool = pool_of(net, op);
        pool_backward(&pool, out[0], in[0]);
    } else if (op->kind == RELU_BACKWARD) {
        relu_backward(out[0], in[1], op->count);
    } else if (op->kind == NORM_BACKWARD) {
        struct batch_norm norm = norm_of(net, op);
        batch_norm_backward(&norm, out[0], in[0], in[1], in[2], work->workspace);
    } else {
        /* Images have no gradient. Where a third tensor is read, it is the one that is written. */
        struct conv conv = conv_of(net, op);
        conv_backward(&conv, out[0], in[0], in[1], in[2] != NULL, work->workspace);
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
