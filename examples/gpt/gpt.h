/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoder in the shape of GPT-2 over bytes, as a table: its tensors and steps are made once from
 * the configuration and declared as an atp_model; the table also says which layer each step
 * computes, so that gpt_work can do any step in any order that a plan asks for.
 *
 * Parameters, their gradients and moments are resident: they belong to the network and are no
 * tensors. Everything else is a tensor, down to the statistics of a normalisation.
 */
#ifndef GPT_H
#define GPT_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/model.h>

#include "train.h"

#define GPT_VOCABULARY 256
#define GPT_NAME_SIZE  24

struct gpt_config {
    uint32_t layers, heads, width, context; /* width is a multiple of heads */
    uint32_t batch;                         /* sequences per iteration and rank */
    uint32_t rank, ranks;                   /* the batches of all ranks make one */
    float dropout, rate, decay;
    uint64_t seed; /* of parameters, choice of text and dropout */
};

struct gpt_op; /* one step: what it computes, and on which parameters */

struct gpt {
    struct gpt_config config;
    struct atp_model model; /* points into the arrays below */
    struct atp_tensor *tensors;
    struct atp_step *steps;
    struct gpt_op *ops; /* one per step */
    char (*tensor_names)[GPT_NAME_SIZE];
    struct device *device;
    uint64_t parameter_count;
    struct parameters parameters;
    float *loss;      /* on the device, of the last forward pass */
    const char *text; /* borrowed; longer than the context */
    uint64_t text_size;
    int32_t *batch_tokens; /* scratch: one batch */
    float *sums;           /* scratch: what ranks add up */
    /* Adds up `count` values over all ranks: the gradients and the loss, in the step "all_reduce",
     * which is there when there are several. */
    bool (*sum_over_ranks)(float *values, uint64_t count);
};

/* Bytes that stay on the device: parameters, gradients, moments. */
uint64_t gpt_resident_bytes(const struct gpt *gpt);

/* False when there is no device or no memory, and then there is nothing to finish. */
bool gpt_init(struct gpt *gpt, const struct gpt_config *config, const char *text,
              uint64_t text_size);
void gpt_finish(struct gpt *gpt);

/* Puts an iteration's part of the text into the model's input tensors. */
void gpt_load_batch(struct gpt *gpt, uint64_t iteration, int32_t *tokens, int32_t *targets);
#define GPT_TOKENS  0 /* the tensors' ids */
#define GPT_TARGETS 1

/* Does the work of a step. Its tensors' addresses come in the order of the model's step. False when
 * ranks do not answer. */
bool gpt_work(struct gpt *gpt, uint32_t step, uint64_t iteration, void *const *reads,
              void *const *writes, void *workspace);

float gpt_loss(struct gpt *gpt);

/* Where a step's parameters lie; none: `weights` and `biases` are 0. For tests. */
struct gpt_place {
    uint64_t weight, weights, bias, biases;
};
struct gpt_place gpt_step_parameters(const struct gpt *gpt, uint32_t step);

#endif
