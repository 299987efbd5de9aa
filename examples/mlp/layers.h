/* SPDX-License-Identifier: Apache-2.0
 *
 * The mathematics of the network, and nothing else: arrays in, arrays out, row-major, one row per
 * sample. Sums run in a fixed order, so that equal inputs give equal bits.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include <stdbool.h>
#include <stdint.h>

/* out = in * weight + bias. The gradients are overwritten, not added to. */
struct linear {
    uint32_t rows, in_width, out_width;
    const float *weight, *bias; /* in_width x out_width; out_width */
    float *d_weight, *d_bias;
};
void linear_forward(const struct linear *layer, float *out, const float *in);
/* `d_in` NULL: not wanted. */
void linear_backward(const struct linear *layer, float *d_in, const float *d_out, const float *in);

/* Layer normalisation of each row. `stats` holds mean and 1 / deviation of every row. */
struct norm {
    uint32_t rows, width;
    const float *gain, *bias; /* width */
    float *d_gain, *d_bias;
};
void norm_forward(const struct norm *layer, float *out, float *stats, const float *in);
/* `adds`: to what is in d_in already, the gradient that came around the block. */
void norm_backward(const struct norm *layer, float *d_in, const float *d_out, const float *in,
                   const float *stats, bool adds);

void gelu_forward(float *out, const float *in, uint64_t count);
/* In place: the gradient of the output becomes that of the input. */
void gelu_backward(float *d, const float *in, uint64_t count);

/* In place. Drops each value with probability `rate`, decided by `key` and its index alone. */
void dropout_forward(float *values, uint8_t *mask, uint64_t count, float rate, uint64_t key);
void dropout_backward(float *d_in, const float *d_out, const uint8_t *mask, uint64_t count,
                      float rate);

void add(float *out, const float *a, const float *b, uint64_t count);

/* Mean cross-entropy over the rows. */
double softmax_loss(float *probabilities, const float *logits, const int32_t *labels, uint32_t rows,
                    uint32_t classes);
void softmax_backward(float *d_logits, const float *probabilities, const int32_t *labels,
                      uint32_t rows, uint32_t classes);

/* velocity = momentum * velocity + gradient; value -= rate * velocity. */
void sgd(float *values, float *velocities, const float *gradients, uint64_t count, float rate,
         float momentum);

/* A number in [0, 1) that depends on `key` and `index` alone, and one with deviation 1 around 0. */
float random_uniform(uint64_t key, uint64_t index);
float random_normal(uint64_t key, uint64_t index);

#endif
