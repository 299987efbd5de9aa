/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tensors: 0 is the input, l + 1 the activation of layer l, layer_count + 1 + l the gradient of
 * that activation. Steps: the forward steps, then the backward steps from the last layer down; the
 * last layer is the loss, whose backward step starts the gradients.
 */
#include "random_layers.h"

#include <stdio.h>
#include <string.h>

#define SKIPS_MAX 3U
#define SCALE     UINT64_C(1000)

struct layer {
    uint32_t source_count;
    uint32_t sources[SKIPS_MAX]; /* layers plus one; 0 is the input */
};

static const char *name_of(struct region *region, const char *word, uint32_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%s%u", word, number);
    return region_copy_text(region, text);
}

static void add_source(struct layer *layer, uint32_t source)
{
    for (uint32_t i = 0; i < layer->source_count; i++) {
        if (layer->sources[i] == source) {
            return;
        }
    }
    layer->sources[layer->source_count++] = source;
}

static uint32_t add_read(uint32_t *reads, uint32_t count, uint32_t tensor)
{
    for (uint32_t i = 0; i < count; i++) {
        if (reads[i] == tensor) {
            return count;
        }
    }
    reads[count] = tensor;
    return count + 1;
}

/* What the backward step of a layer reads: of each layer that it fed, its gradient and its inputs,
 * and its output where a coin says so; of the loss, its inputs. */
static uint32_t list_backward_reads(struct random *random, const struct layer *layers,
                                    uint32_t layer_count, uint32_t layer, uint32_t *reads)
{
    uint32_t count = 0;
    for (uint32_t user = layer + 1; user < layer_count; user++) {
        for (uint32_t i = 0; i < layers[user].source_count; i++) {
            if (layers[user].sources[i] != layer + 1) {
                continue;
            }
            count = add_read(reads, count, layer_count + 1 + user);
            for (uint32_t j = 0; j < layers[user].source_count; j++) {
                count = add_read(reads, count, layers[user].sources[j]);
            }
            if (random_chance(random, 30)) {
                count = add_read(reads, count, user + 1);
            }
        }
    }
    if (layer + 1 == layer_count) {
        count = add_read(reads, count, layer + 1);
    }
    return count;
}

static void set_clock(struct profile *profile, uint32_t copy_iterations)
{
    const struct atp_model *model = &profile->model;
    uint64_t smallest = UINT64_MAX, total = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        smallest = model->tensors[t].bytes < smallest ? model->tensors[t].bytes : smallest;
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        total += (uint64_t)profile->clock.step_ns[s];
    }
    profile->clock.d2h_bytes_per_second = profile->clock.h2d_bytes_per_second =
        smallest * UINT64_C(1000000000) / (total * copy_iterations + 1) + 1;
}

void random_layers_build(struct random *random, uint32_t layer_count, bool skips,
                         uint32_t copy_iterations, struct region *region,
                         struct profile *out_profile)
{
    uint32_t tensor_count = 2 * layer_count + 1, step_count = 2 * layer_count;
    struct layer *layers = REGION_NEW(region, struct layer, layer_count);
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, tensor_count);
    struct atp_step *steps = REGION_NEW(region, struct atp_step, step_count);
    int64_t *step_ns = REGION_NEW(region, int64_t, step_count);
    uint32_t *ids = REGION_NEW(region, uint32_t, tensor_count);
    tensors[0] = (struct atp_tensor){"input", SCALE * (1 + random_below(random, 8))};
    ids[0] = 0;
    for (uint32_t l = 0; l < layer_count; l++) {
        bool is_loss = l + 1 == layer_count;
        uint64_t bytes = is_loss ? SCALE : SCALE * (1 + random_below(random, 12));
        tensors[l + 1] = (struct atp_tensor){name_of(region, "a", l), bytes};
        tensors[layer_count + 1 + l] = (struct atp_tensor){name_of(region, "g", l), bytes};
        ids[l + 1] = l + 1;
        ids[layer_count + 1 + l] = layer_count + 1 + l;
        add_source(&layers[l], l);
        if (skips && !is_loss && l > 1 && random_chance(random, 40)) {
            add_source(&layers[l], 1 + random_below(random, l));
        }
        steps[l] = (struct atp_step){.name = name_of(region, "layer", l),
                                     .phase = ATP_PHASE_FORWARD,
                                     .read_count = layers[l].source_count,
                                     .write_count = 1,
                                     .reads = layers[l].sources,
                                     .writes = &ids[l + 1]};
        step_ns[l] = (int64_t)(SCALE * (1 + random_below(random, 20)));
    }
    for (uint32_t i = 0; i < layer_count; i++) {
        uint32_t l = layer_count - 1 - i;
        uint32_t *reads = REGION_NEW(region, uint32_t, tensor_count);
        uint32_t count = list_backward_reads(random, layers, layer_count, l, reads);
        steps[layer_count + i] = (struct atp_step){.name = steps[l].name,
                                                   .phase = ATP_PHASE_BACKWARD,
                                                   .read_count = count,
                                                   .write_count = 1,
                                                   .reads = reads,
                                                   .writes = &ids[layer_count + 1 + l]};
        step_ns[layer_count + i] = step_ns[l] + step_ns[l] * random_below(random, 101) / 100;
    }
    memset(out_profile, 0, sizeof(*out_profile));
    out_profile->model = (struct atp_model){.name = skips ? "dag" : "chain",
                                            .batch_size = 1,
                                            .tensor_count = tensor_count,
                                            .step_count = step_count,
                                            .tensors = tensors,
                                            .steps = steps};
    out_profile->clock.step_ns = step_ns;
    out_profile->pinned_bytes = UINT64_MAX;
    out_profile->pins = REGION_NEW(region, enum profile_pin, tensor_count);
    set_clock(out_profile, copy_iterations);
}
