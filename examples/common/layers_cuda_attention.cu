/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on a CUDA device: products of all heads of a sequence at once, softmax by a warp a row.
 */
#include "layers_cuda.h"

/* The heads of one sequence: where the first one's parts of each array begin. */
struct heads {
    uint64_t scores, q, k, v, out;
    uint64_t stride, width; /* from row to row in qkv, and in the output */
    uint64_t square;        /* scores of one head */
};

static struct heads heads_of(const struct attention *l, uint32_t sequence)
{
    struct heads h;
    h.width = (uint64_t)l->heads * l->head_width;
    h.stride = 3 * h.width;
    h.square = (uint64_t)l->context * l->context;
    h.scores = sequence * l->heads * h.square;
    h.q = sequence * l->context * h.stride;
    h.k = h.q + h.width;
    h.v = h.k + h.width;
    h.out = sequence * l->context * h.width;
    return h;
}

/* Row r of each head is over its first r % context + 1 values; the future gets nothing. */
static __global__ void softmax_causal(float *p, uint64_t rows, uint32_t context)
{
    uint64_t r = my_row();
    if (r >= rows) {
        return;
    }
    float *row = p + r * context, largest = row[0], sum = 0;
    uint32_t past = (uint32_t)(r % context);
    for (uint32_t i = my_lane(); i <= past; i += WARP) {
        largest = fmaxf(largest, row[i]);
    }
    largest = warp_max(largest);
    __syncwarp(); /* all lanes have read row[0] */
    for (uint32_t i = my_lane(); i <= past; i += WARP) {
        row[i] = expf(row[i] - largest);
        sum += row[i];
    }
    sum = warp_sum(sum);
    for (uint32_t i = my_lane(); i < context; i += WARP) {
        row[i] = i <= past ? row[i] / sum : 0;
    }
}

void scores_forward(struct device *device, const struct attention *l, float *p, const float *qkv)
{
    const uint64_t size[3] = {l->context, l->context, l->head_width};
    uint64_t rows = (uint64_t)l->batch * l->heads * l->context;
    for (uint32_t n = 0; n < l->batch; n++) {
        struct heads h = heads_of(l, n);
        struct matrix q = {qkv + h.q, h.stride, false}, k = {qkv + h.k, h.stride, true};
        struct batch batch = {l->heads, l->head_width, l->head_width, h.square};
        multiply(device, size, q, k, 1 / sqrtf((float)l->head_width),
                 {p + h.scores, l->context, false}, batch);
    }
    softmax_causal<<<blocks_of_rows(rows), BLOCK, 0, device->stream>>>(p, rows, l->context);
}

static __global__ void softmax_causal_back(float *d_p, const float *p, uint64_t rows,
                                           uint32_t context)
{
    uint64_t r = my_row();
    if (r >= rows) {
        return;
    }
    float *d = d_p + r * context, dot = 0;
    const float *row = p + r * context;
    uint32_t past = (uint32_t)(r % context);
    for (uint32_t i = my_lane(); i <= past; i += WARP) {
        dot += d[i] * row[i];
    }
    dot = warp_sum(dot);
    for (uint32_t i = my_lane(); i < context; i += WARP) {
        d[i] = i <= past ? row[i] * (d[i] - dot) : 0;
    }
}

void scores_backward(struct device *device, const struct attention *l, float *d_qkv, float *d_p,
                     const float *p, const float *qkv)
{
    const uint64_t size[3] = {l->context, l->head_width, l->context};
    float scale = 1 / sqrtf((float)l->head_width);
    uint64_t rows = (uint64_t)l->batch * l->heads * l->context;
    softmax_causal_back<<<blocks_of_rows(rows), BLOCK, 0, device->stream>>>(d_p, p, rows,
                                                                            l->context);
    for (uint32_t n = 0; n < l->batch; n++) {
        struct heads h = heads_of(l, n);
        struct matrix d = {d_p + h.scores, l->context, false};
        struct matrix d_transposed = {d_p + h.scores, l->context, true};
        struct matrix q = {qkv + h.q, h.stride, false}, k = {qkv + h.k, h.stride, false};
        struct batch batch = {l->heads, h.square, l->head_width, l->head_width};
        multiply(device, size, d, k, scale, {d_qkv + h.q, h.stride, false}, batch);
        multiply(device, size, d_transposed, q, scale, {d_qkv + h.k, h.stride, false}, batch);
    }
}

void mix_forward(struct device *device, const struct attention *l, float *out, const float *p,
                 const float *qkv)
{
    const uint64_t size[3] = {l->context, l->head_width, l->context};
    for (uint32_t n = 0; n < l->batch; n++) {
        struct heads h = heads_of(l, n);
        struct matrix scores = {p + h.scores, l->context, false};
        struct matrix v = {qkv + h.v, h.stride, false};
        struct batch batch = {l->heads, h.square, l->head_width, l->head_width};
        multiply(device, size, scores, v, 1, {out + h.out, h.width, false}, batch);
    }
}

void mix_backward(struct device *device, const struct attention *l, float *d_p, float *d_qkv,
                  const float *d_out, const float *p, const float *qkv)
{
    const uint64_t p_size[3] = {l->context, l->context, l->head_width};
    const uint64_t v_size[3] = {l->context, l->head_width, l->context};
    for (uint32_t n = 0; n < l->batch; n++) {
        struct heads h = heads_of(l, n);
        struct matrix d = {d_out + h.out, h.width, false}, v = {qkv + h.v, h.stride, true};
        struct matrix scores = {p + h.scores, l->context, true};
        struct batch p_batch = {l->heads, l->head_width, l->head_width, h.square};
        struct batch v_batch = {l->heads, h.square, l->head_width, l->head_width};
        multiply(device, p_size, d, v, 1, {d_p + h.scores, l->context, false}, p_batch);
        multiply(device, v_size, scores, d, 1, {d_qkv + h.v, h.stride, false}, v_batch);
    }
}
