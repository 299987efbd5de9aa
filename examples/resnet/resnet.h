/* SPDX-License-Identifier: Apache-2.0
 *
 * A residual network on small images, as a table: its tensors and steps are made once from the
 * configuration and declared as an atp_model; the table also says which layer each step computes,
 * so that resnet_work can do any step in any order that a plan asks for.
 *
 * Parameters, their gradients and moments, and the running statistics of the normalisations are
 * resident: they belong to the network and are no tensors.
 */
#ifndef RESNET_H
#define RESNET_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/model.h>

#include "train.h"

#define RESNET_STAGES    3 /* each but the first halves the size and doubles the channels */
#define RESNET_CLASSES   8
#define RESNET_NAME_SIZE 24

struct resnet_config {
    uint32_t blocks;       /* per stage, two convolutions each */
    uint32_t width;        /* channels of the first stage */
    uint32_t image, batch; /* image: pixels of a side, a multiple of 4 */
    float rate, decay;
    uint64_t seed; /* of parameters and images */
};

struct resnet_op; /* one step: what it computes, and on which parameters */

struct resnet {
    struct resnet_config config;
    struct atp_model model; /* points into the arrays below */
    struct atp_tensor *tensors;
    struct atp_step *steps;
    struct resnet_op *ops; /* one per step */
    char (*tensor_names)[RESNET_NAME_SIZE];
    struct device *device;
    uint64_t parameter_count, running_count;
    struct parameters parameters;
    float *running, *loss; /* on the device; the loss is that of the last forward pass */
};

/* Bytes that stay on the device: parameters, gradients, moments, running statistics. */
uint64_t resnet_resident_bytes(const struct resnet *net);

/* False when there is no device or no memory, and then there is nothing to finish. */
bool resnet_init(struct resnet *net, const struct resnet_config *config);
void resnet_finish(struct resnet *net);

/* Draws an iteration's images and their labels into the model's input tensors. */
void resnet_load_batch(struct resnet *net, uint64_t iteration, float *images, int32_t *labels);
#define RESNET_IMAGES 0 /* the tensors' ids */
#define RESNET_LABELS 1

/* Does the work of a step. A rerun leaves the running statistics alone. */
void resnet_work(struct resnet *net, const struct work *work);

float resnet_loss(struct resnet *net);

/* A hash of all bits of the running statistics. */
uint64_t resnet_running_digest(struct resnet *net);

/* Where a step's parameters and running statistics lie; none: a count of 0. For tests. */
struct resnet_place {
    uint64_t weight, weights, bias, biases, running, runnings;
};
struct resnet_place resnet_step_place(const struct resnet *net, uint32_t step);

#endif
