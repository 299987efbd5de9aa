/* SPDX-License-Identifier: Apache-2.0
 *
 * The network's parameters and data, and the work of its steps.
 *
 * All random numbers, those of dropout too, come from a key and a counter (counter_random.h). So
 * every step may run again, and the ranks of a parallel run draw together what one rank would draw
 * alone.
 */
#include "gpt.h"

#include <math.h>
#include <stdlib.h>

#include "counter_random.h"
#include "parameters.h"
#include "table.h"

/* What random numbers are for: part of their key. */
enum stream { STREAM_PARAMETERS, STREAM_TEXT, STREAM_DROPOUT };

static uint64_t key_of(const struct gpt *gpt, enum stream stream, uint64_t number)
{
    return random_bits(gpt->config.seed * 4 + stream, number);
}

/* ---- parameters ---- */

static void draw(const struct gpt *gpt, float *values, uint64_t begin, uint64_t end,
                 float deviation)
{
    for (uint64_t i = begin; i < end; i++) {
        values[i] = deviation * random_normal(key_of(gpt, STREAM_PARAMETERS, 0), i);
    }
}

struct gpt_place gpt_step_parameters(const struct gpt *gpt, uint32_t step)
{
    const struct gpt_op *op = &gpt->ops[step];
    struct gpt_place place = {.weight = op->weight, .bias = op->bias};
    place.weights = (uint64_t)op->in_width * op->out_width;
    bool has_bias = place.weights > 0 && op->bias != NO_BIAS;
    place.biases = op->kind == EMBED ? (uint64_t)gpt->config.context * op->out_width
                   : has_bias        ? op->out_width
                                     : 0;
    return place;
}

/* As GPT-2 begins: what goes into the residual stream is smaller, the deeper the network. */
static bool init_parameters(struct gpt *gpt)
{
    float *values = (float *)calloc(gpt->parameter_count, sizeof(float));
    float deviation = 0.02f, into_stream = deviation / sqrtf(2 * (float)gpt->config.layers);
    if (values == NULL) {
        return false;
    }
    for (uint32_t s = 0; s < gpt->model.step_count; s++) {
        const struct gpt_op *op = &gpt->ops[s];
        struct gpt_place place = gpt_step_parameters(gpt, s);
        if (op->kind == NORM) {
            for (uint64_t i = 0; i < place.weights; i++) {
                values[place.weight + i] = 1;
            }
        } else if (op->kind == EMBED) {
            draw(gpt, values, place.weight, place.weight + place.weights + place.biases, deviation);
        } else if (op->kind == LINEAR && place.biases > 0) {
            draw(gpt, values, place.weight, place.weight + place.weights,
                 op->out_width == gpt->config.width ? into_stream : deviation);
        }
    }
    device_write(gpt->device, gpt->parameters.values, values, gpt->parameter_count * 4);
    free(values);
    return true;
}

uint64_t gpt_resident_bytes(const struct gpt *gpt)
{
    return parameters_bytes(gpt->parameter_count);
}

static bool init_all(struct gpt *gpt)
{
    if (!gpt_make_table(gpt)) {
        return false;
    }
    gpt->device = device_open();
    if (gpt->device == NULL) {
        return false;
    }
    gpt->loss = (float *)device_take(gpt->device, sizeof(float));
    uint64_t tokens = (uint64_t)gpt->config.batch * gpt->config.context;
    gpt->batch_tokens = (int32_t *)calloc(2 * tokens, sizeof(int32_t));
    gpt->sums =
        (float *)calloc(gpt->config.ranks > 1 ? gpt->parameter_count + 1 : 1, sizeof(float));
    return gpt->loss != NULL && gpt->batch_tokens != NULL && gpt->sums != NULL &&
           parameters_take(&gpt->parameters, gpt->device, gpt->parameter_count) &&
           init_parameters(gpt);
}

bool gpt_init(struct gpt *gpt, const struct gpt_config *config, const char *text,
              uint64_t text_size)
{
    *gpt = (struct gpt){.config = *config, .text = text, .text_size = text_size};
    if (!init_all(gpt)) {
        gpt_finish(gpt);
        return false;
    }
    return true;
}

void gpt_finish(struct gpt *gpt)
{
    if (gpt->device != NULL) {
        device_give(gpt->device, gpt->parameters.values);
        device_give(gpt->device, gpt->loss);
        device_close(gpt->device);
    }
    free(gpt->sums);
    free(gpt->batch_tokens);
    free(gpt->ops);
    free(gpt->steps);
    free(gpt->tensor_names);
    free(gpt->tensors);
    *gpt = (struct gpt){0};
}

/* ---- data ---- */

void gpt_load_batch(struct gpt *gpt, uint64_t iteration, int32_t *tokens, int32_t *targets)
{
    const struct gpt_config *c = &gpt->config;
    uint64_t count = (uint64_t)c->batch * c->context;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t sequence = (iteration * c->ranks + c->rank) * c->batch + i / c->context;
        uint64_t choices = gpt->text_size - c->context;
        uint64_t begin = random_bits(key_of(gpt, STREAM_TEXT, 0), sequence) % choices;
        const char *at = gpt->text + begin + i % c->context;
        gpt->batch_tokens[i] = (unsigned char)at[0];
        gpt->batch_tokens[count + i] = (unsigned char)at[1];
    }
    device_write(gpt->device, tokens, gpt->batch_tokens, count * sizeof(int32_t));
    device_write(gpt->device, targets, gpt->batch_tokens + count, count * sizeof(int32_t));
}

float gpt_loss(struct gpt *gpt)
{
    float loss;
    device_read(gpt->device, &loss, gpt->loss, sizeof(loss));
    return loss;
}

/* ---- the work of the steps ---- */

/* Descriptions of all layers are made for each step, of which one is used: a step without
 * biases is given the place of its weights. */
static uint64_t bias_place(const struct gpt_op *op)
{
    return op->bias != NO_BIAS ? op->bias : op->weight;
}

static struct linear linear_of(const struct gpt *gpt, const struct gpt_op *op)
{
    bool has_bias = op->bias != NO_BIAS;
    return (struct linear){.rows = (uint64_t)gpt->config.batch * gpt->config.context,
                           .in_width = op->in_width,
                           .out_width = op->out_width,
                           .weight = gpt->parameters.values + op->weight,
                           .bias = has_bias ? gpt->parameters.values + op->bias : NULL,
                           .d_weight = gpt->parameters.gradients + op->weight,
                           .d_bias = has_bias ? gpt->parameters.gradients + op->bias : NULL};
}

static struct norm norm_of(const struct gpt *gpt, const struct gpt_op *op)
{
    return (struct norm){.rows = (uint64_t)gpt->config.batch * gpt->config.context,
                         .width = op->out_width,
                         .gain = gpt->parameters.values + op->weight,
                         .bias = gpt->parameters.values + bias_place(op),
                         .d_gain = gpt->parameters.gradients + op->weight,
                         .d_bias = gpt->parameters.gradients + bias_place(op)};
}

/* `count`: the values of this rank's part, the places of which follow those of lower ranks. */
static struct dropout dropout_of(const struct gpt *gpt, const struct gpt_op *op, uint64_t count,
                                 uint64_t iteration)
{
    uint64_t key = random_bits(key_of(gpt, STREAM_DROPOUT, op->drop), iteration);
    return (struct dropout){
        .rate = gpt->config.dropout, .key = key, .first = gpt->config.rank * count};
}

static struct embed embed_of(const struct gpt *gpt, const struct gpt_op *op, uint64_t iteration)
{
    uint64_t rows = (uint64_t)gpt->config.batch * gpt->config.context;
    return (struct embed){.rows = rows,
                          .vocabulary = GPT_VOCABULARY,
                          .context = gpt->config.context,
                          .width = gpt->config.width,
                          .token = gpt->parameters.values + op->weight,
                          .position = gpt->parameters.values + bias_place(op),
                          .d_token = gpt->parameters.gradients + op->weight,
                          .d_position = gpt->parameters.gradients + bias_place(op),
                          .drop = dropout_of(gpt, op, rows * gpt->config.width, iteration)};
}

static struct attention attention_of(const struct gpt *gpt)
{
    return (struct attention){.batch = gpt->config.batch,
                              .heads = gpt->config.heads,
                              .context = gpt->config.context,
                              .head_width = gpt->config.width / gpt->config.heads};
}

/* The mean over all tokens of all ranks. */
static struct loss loss_of(const struct gpt *gpt)
{
    uint64_t rows = (uint64_t)gpt->config.batch * gpt->config.context;
    return (struct loss){
        .rows = rows, .classes = GPT_VOCABULARY, .scale = 1 / (float)(rows * gpt->config.ranks)};
}

/* Weights decay, biases and gains do not. */
static void update(struct gpt *gpt, uint64_t iteration)
{
    struct adamw rule = {.rate = gpt->config.rate,
                         .beta1 = 0.9f,
                         .beta2 = 0.95f,
                         .epsilon = 1e-8f,
                         .iteration = iteration};
    for (uint32_t s = 0; gpt->steps[s].phase == ATP_PHASE_FORWARD; s++) {
        struct gpt_place place = gpt_step_parameters(gpt, s);
        if (place.biases == 0) {
            continue; /* none, or the head's, which are the embedding's */
        }
        uint64_t begins[] = {place.weight, place.bias}, counts[] = {place.weights, place.biases};
        for (int i = 0; i < 2; i++) {
            bool decays = i == 0 && gpt->ops[s].kind != NORM;
            struct parameters part = parameters_part(&gpt->parameters, begins[i], counts[i]);
            rule.decay = decays ? gpt->config.decay : 0;
            adamw(gpt->device, &rule, &part);
        }
    }
}

static void work_forward(struct gpt *gpt, const struct gpt_op *op, uint64_t iteration,
                         void *const *in, void *const *out, void *workspace)
{
    struct device *device = gpt->device;
    if (op->kind == EMBED) {
        struct embed embed = embed_of(gpt, op, iteration);
        embed_forward(device, &embed, out[0], in[0]);
    } else if (op->kind == NORM) {
        struct norm norm = norm_of(gpt, op);
        norm_forward(device, &norm, out[0], out[1], in[0]);
    } else if (op->kind == LINEAR) {
        struct linear linear = linear_of(gpt, op);
        linear_forward(device, &linear, out[0], in[0]);
    } else if (op->kind == SCORES) {
        struct attention attention = attention_of(gpt);
        scores_forward(device, &attention, out[0], in[0]);
    } else if (op->kind == DROPOUT) {
        struct dropout drop = dropout_of(gpt, op, op->count, iteration);
        dropout(device, &drop, out[0], in[0], op->count);
    } else if (op->kind == MIX) {
        struct attention attention = attention_of(gpt);
        mix_forward(device, &attention, out[0], in[0], in[1]);
    } else if (op->kind == RESIDUAL) {
        struct dropout drop = dropout_of(gpt, op, op->count, iteration);
        residual(device, &drop, out[0], in[0], in[1], op->count);
    } else if (op->kind == GELU) {
        gelu_forward(device, out[0], in[0], op->count);
    } else {
        struct loss loss = loss_of(gpt);
        loss_forward(device, &loss, out[0], in[1], workspace, gpt->loss);
    }
}

static void work_backward(struct gpt *gpt, const struct gpt_op *op, uint64_t iteration,
                          void *const *in, void *const *out)
{
    struct device *device = gpt->device;
    if (op->kind == LOSS_BACKWARD) {
        struct loss loss = loss_of(gpt);
        loss_backward(device, &loss, out[0], in[0], in[1]);
    } else if (op->kind == LINEAR_BACKWARD) {
        struct linear linear = linear_of(gpt, op);
        linear_backward(device, &linear, out[0], in[0], in[1]);
    } else if (op->kind == NORM_BACKWARD) {
        /* Nothing came around the last norm. */
        struct norm norm = norm_of(gpt, op);
        norm_backward(device, &norm, out[0], in[0], in[1], in[2], in[3] != NULL);
    } else if (op->kind == DROPOUT_BACKWARD) {
        struct dropout drop = dropout_of(gpt, op, op->count, iteration);
        dropout(device, &drop, out[0], in[0], op->count);
    } else if (op->kind == GELU_BACKWARD) {
        gelu_backward(device, out[0], in[1], op->count);
    } else if (op->kind == MIX_BACKWARD) {
        struct attention attention = attention_of(gpt);
        mix_backward(device, &attention, out[0], out[1], in[0], in[1], in[2]);
    } else if (op->kind == SCORES_BACKWARD) {
        struct attention attention = attention_of(gpt);
        scores_backward(device, &attention, out[0], in[0], in[1], in[2]);
    } else {
        struct embed embed = embed_of(gpt, op, iteration);
        embed_backward(device, &embed, in[0], in[1]);
    }
}

/* By way of the host: MPI need not know the device. */
static bool all_reduce(struct gpt *gpt)
{
    uint64_t count = gpt->parameter_count;
    device_read(gpt->device, gpt->sums, gpt->parameters.gradients, count * sizeof(float));
    device_read(gpt->device, gpt->sums + count, gpt->loss, sizeof(float));
    bool is_done = gpt->sum_over_ranks(gpt->sums, count + 1);
    device_write(gpt->device, gpt->parameters.gradients, gpt->sums, count * sizeof(float));
    device_write(gpt->device, gpt->loss, gpt->sums + count, sizeof(float));
    return is_done;
}

bool gpt_work(struct gpt *gpt, uint32_t step, uint64_t iteration, void *const *reads,
              void *const *writes, void *workspace)
{
    const struct gpt_op *op = &gpt->ops[step];
    if (op->kind == ALL_REDUCE) {
        return all_reduce(gpt);
    }
    if (op->kind == ADAMW) {
        update(gpt, iteration);
    } else if (gpt->steps[step].phase == ATP_PHASE_FORWARD) {
        work_forward(gpt, op, iteration, reads, writes, workspace);
    } else {
        work_backward(gpt, op, iteration, reads, writes);
    }
    return true;
}
