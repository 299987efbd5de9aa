/* SPDX-License-Identifier: Apache-2.0
 *
 * What a residual convolutional network has beside the layers of ../common/layers.h, on the same
 * devices: conv_layers_host.c on the CPU, conv_layers_cuda.cu on CUDA. Arrays of values are batch x
 * size x size x channels, so one row per pixel. The same rules: sums run in an order that depends
 * on the sizes alone, gradients of parameters are overwritten, scratch memory comes from the
 * caller. How much of that is the device's matter; it does not grow with the batch, so that
 * profiles of two batches tell that of a third.
 */
#ifndef CONV_LAYERS_H
#define CONV_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include "layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Without a bias: a normalisation follows. Zeros surround the images, so that only the stride,
 * which divides in_size, makes them smaller. */
struct conv {
    uint32_t batch, in_size, in_channels, out_channels, kernel, stride; /* kernel: odd */
    const float *weight; /* out_channels x kernel x kernel x in_channels */
    float *d_weight;
};
static inline uint64_t conv_weights(const struct conv *layer)
{
    return (uint64_t)layer->out_channels * layer->kernel * layer->kernel * layer->in_channels;
}
uint64_t conv_forward_scratch(const struct conv *layer); /* bytes */
uint64_t conv_backward_scratch(const struct conv *layer);
void conv_forward(struct device *device, const struct conv *layer, float *out, const float *in,
                  float *scratch);
/* `d_in` NULL: nobody asks. `adds`: to what is in d_in already, the gradient of another reader. */
void conv_backward(struct device *device, const struct conv *layer, float *d_in, const float *d_out,
                   const float *in, bool adds, float *scratch);

/* Normalisation of each channel over the batch. `stats` are of this batch: the channels' means,
 * then 1 / their deviations. `running` are of all batches, the latest the most: means, then
 * variances. */
struct batch_norm {
    uint64_t rows;
    uint32_t channels;
    float momentum; /* share of this batch in the running statistics */
    const float *gain, *bias;
    float *d_gain, *d_bias, *running;
};
uint64_t batch_norm_scratch(const struct batch_norm *layer); /* bytes, forward and backward */
/* `updates`: also the running statistics, in a rerun a second time: then it must be false. */
void batch_norm_forward(struct device *device, const struct batch_norm *layer, float *out,
                        float *stats, const float *in, bool updates, double *scratch);
/* `d_in` may be `d_out`. */
void batch_norm_backward(struct device *device, const struct batch_norm *layer, float *d_in,
                         const float *d_out, const float *in, const float *stats, double *scratch);

/* All in place, and the backward pass needs the output only. */
void relu_forward(struct device *device, float *values, uint64_t count);
void relu_backward(struct device *device, float *d, const float *out, uint64_t count);
/* values = relu(values + around) */
void add_forward(struct device *device, float *values, const float *around, uint64_t count);

/* Mean over each image's pixels. */
struct pool {
    uint32_t batch, size, channels;
};
void pool_forward(struct device *device, const struct pool *layer, float *out, const float *in);
void pool_backward(struct device *device, const struct pool *layer, float *d_in,
                   const float *d_out);

/* Images to learn from, of three channels: coloured stripes under noise. The class is their
 * direction; phase, width and colours are any. All of an image comes from its number. */
struct stripes {
    uint32_t batch, size, classes;
    uint64_t first;                /* number of the batch's first image */
    uint64_t labels, looks, noise; /* keys of random numbers */
};
void stripes_draw(struct device *device, const struct stripes *stripes, float *images,
                  int32_t *labels);

#ifdef __cplusplus
}
#endif
#endif
