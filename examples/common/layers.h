/* SPDX-License-Identifier: Apache-2.0
 *
 * The mathematics of the networks and nothing else: arrays in, arrays out, row-major, one row per
 * token. What only convolutional networks need is in ../resnet/conv_layers.h.
 * layers_host.c implements this on the CPU (OpenBLAS, OpenMP), layers_cuda*.cu on a CUDA device
 * (cuBLAS); the link line chooses. All sums run in an order that depends on the sizes alone, so
 * that equal inputs give equal bits. Gradients of parameters are overwritten, not added to, but
 * where it says so.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where the arrays are ---- */

struct device;

extern const bool device_is_cuda;

struct device *device_open(void); /* NULL: there is none, or no memory */
void device_close(struct device *device);
/* All later work is queued on this stream; NULL, as after device_open: on the device's own. */
void device_use_stream(struct device *device, void *stream);
void *device_take(struct device *device, uint64_t bytes); /* zeroes; NULL: no memory */
void device_give(struct device *device, void *memory);
/* `from` may be changed when it returns. */
void device_write(struct device *device, void *to, const void *from, uint64_t bytes);
/* Waits for what is queued. */
void device_read(struct device *device, void *to, const void *from, uint64_t bytes);
/* What has gone wrong since the device was opened; NULL: nothing. */
const char *device_failure(struct device *device);

/* ---- layers ---- */

/* Keeps a value with probability 1 - rate, decided by the key and the value's place: that in its
 * array plus `first`. So the backward pass needs no mask, and a rerun draws the same numbers. */
struct dropout {
    float rate;
    uint64_t key, first;
};
/* Forward and backward; `out` may be `in`. */
void dropout(struct device *device, const struct dropout *drop, float *out, const float *in,
             uint64_t count);
/* out = around + dropout(in) */
void residual(struct device *device, const struct dropout *drop, float *out, const float *around,
              const float *in, uint64_t count);

/* out = dropout(token[tokens[r]] + position[r % context]) */
struct embed {
    uint64_t rows;
    uint32_t vocabulary, context, width;
    const float *token, *position;
    float *d_token, *d_position;
    struct dropout drop;
};
void embed_forward(struct device *device, const struct embed *layer, float *out,
                   const int32_t *tokens);
/* Adds to d_token: the head, whose weights these are too, has been there. */
void embed_backward(struct device *device, const struct embed *layer, const float *d_out,
                    const int32_t *tokens);

/* out = in * weight^T + bias */
struct linear {
    uint64_t rows;
    uint32_t in_width, out_width;
    const float *weight, *bias; /* out_width x in_width; out_width, or NULL: none */
    float *d_weight, *d_bias;
};
void linear_forward(struct device *device, const struct linear *layer, float *out, const float *in);
void linear_backward(struct device *device, const struct linear *layer, float *d_in,
                     const float *d_out, const float *in);

/* Layer normalisation of each row. `stats`: mean and 1 / deviation of every row. */
struct norm {
    uint64_t rows;
    uint32_t width;
    const float *gain, *bias;
    float *d_gain, *d_bias;
};
void norm_forward(struct device *device, const struct norm *layer, float *out, float *stats,
                  const float *in);
/* `adds`: to what is in d_in already, the gradient that came around the block. */
void norm_backward(struct device *device, const struct norm *layer, float *d_in, const float *d_out,
                   const float *in, const float *stats, bool adds);

void gelu_forward(struct device *device, float *out, const float *in, uint64_t count);
/* In place: the gradient of the output becomes that of the input. */
void gelu_backward(struct device *device, float *d, const float *in, uint64_t count);

/* Causal attention. Rows of qkv are queries, keys and values of all heads; p is batch x heads x
 * context x context. */
struct attention {
    uint32_t batch, heads, context, head_width;
};
/* p = softmax(q * k^T / sqrt(head_width)) over the past */
void scores_forward(struct device *device, const struct attention *layer, float *p,
                    const float *qkv);
/* Fills queries and keys of d_qkv; works in d_p, which is lost. */
void scores_backward(struct device *device, const struct attention *layer, float *d_qkv, float *d_p,
                     const float *p, const float *qkv);
/* out = p * v */
void mix_forward(struct device *device, const struct attention *layer, float *out, const float *p,
                 const float *qkv);
/* Fills the values of d_qkv. */
void mix_backward(struct device *device, const struct attention *layer, float *d_p, float *d_qkv,
                  const float *d_out, const float *p, const float *qkv);

/* Cross-entropy of the rows, each times `scale`. */
struct loss {
    uint64_t rows;
    uint32_t classes;
    float scale;
};
/* In place: logits become probabilities. `of_rows` is scratch, one float a row; `out_sum` is on the
 * device. */
void loss_forward(struct device *device, const struct loss *layer, float *logits,
                  const int32_t *targets, float *of_rows, float *out_sum);
void loss_backward(struct device *device, const struct loss *layer, float *d_logits,
                   const float *probabilities, const int32_t *targets);

struct adamw {
    float rate, beta1, beta2, epsilon, decay;
    uint64_t iteration; /* from 0 */
};
/* Parameters, their gradients and moments. */
struct parameters {
    uint64_t count;
    float *values, *gradients, *first, *second;
};
void adamw(struct device *device, const struct adamw *rule, const struct parameters *parameters);

#ifdef __cplusplus
}
#endif
#endif
