/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers on the CPU. OpenBLAS runs single-threaded inside blocks that OpenMP deals out; the
 * blocks, and so all sums, depend on the sizes alone and not on how many threads there are.
 */
#include "layers.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counter_random.h"

#define NORM_EPSILON 1e-5f
#define BLOCK_ROWS   128 /* of one matrix product */
#define BLOCK_SUMS   64  /* columns of one sum over rows */

const bool device_is_cuda = false;

struct device {
    char nothing; /* the CPU has no state */
};

struct device *device_open(void)
{
    openblas_set_num_threads(1);
    return (struct device *)calloc(1, sizeof(struct device));
}

void device_close(struct device *device)
{
    free(device);
}

void device_use_stream(struct device *device, void *stream)
{
    (void)device;
    (void)stream;
}

void *device_take(struct device *device, uint64_t bytes)
{
    (void)device;
    return bytes <= SIZE_MAX ? calloc(1, (size_t)bytes) : NULL;
}

void device_give(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

void device_write(struct device *device, void *to, const void *from, uint64_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

void device_read(struct device *device, void *to, const void *from, uint64_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

const char *device_failure(struct device *device)
{
    (void)device;
    return NULL;
}

/* ---- products ---- */

struct matrix {
    const float *values;
    uint64_t stride; /* from row to row as it is stored */
    bool transposed;
};

/* out (m x n) = scale * a (m x k) * b (k x n); size is m, n, k. */
static void multiply(const uint64_t size[3], struct matrix a, struct matrix b, float scale,
                     float *out, uint64_t out_stride)
{
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, (int)size[0], (int)size[1], (int)size[2],
                scale, a.values, (int)a.stride, b.values, (int)b.stride, 0, out, (int)out_stride);
}

/* The same in blocks of rows, in parallel. */
static void multiply_large(const uint64_t size[3], struct matrix a, struct matrix b, float *out,
                           uint64_t out_stride)
{
#pragma omp parallel for schedule(dynamic)
    for (uint64_t r = 0; r < size[0]; r += BLOCK_ROWS) {
        uint64_t rows = size[0] - r < BLOCK_ROWS ? size[0] - r : BLOCK_ROWS;
        struct matrix block = a;
        block.values += a.transposed ? r : r * a.stride;
        multiply((const uint64_t[3]){rows, size[1], size[2]}, block, b, 1, out + r * out_stride,
                 out_stride);
    }
}

static void sum_rows(float *out, const float *in, uint64_t rows, uint32_t width)
{
#pragma omp parallel for
    for (uint32_t begin = 0; begin < width; begin += BLOCK_SUMS) {
        uint32_t end = width - begin < BLOCK_SUMS ? width : begin + BLOCK_SUMS;
        memset(out + begin, 0, (end - begin) * sizeof(float));
        for (uint64_t r = 0; r < rows; r++) {
            for (uint32_t i = begin; i < end; i++) {
                out[i] += in[r * width + i];
            }
        }
    }
}

void linear_forward(struct device *device, const struct linear *l, float *out, const float *in)
{
    (void)device;
    multiply_large((const uint64_t[3]){l->rows, l->out_width, l->in_width},
                   (struct matrix){in, l->in_width, false},
                   (struct matrix){l->weight, l->in_width, true}, out, l->out_width);
    if (l->bias != NULL) {
#pragma omp parallel for
        for (uint64_t r = 0; r < l->rows; r++) {
            for (uint32_t o = 0; o < l->out_width; o++) {
                out[r * l->out_width + o] += l->bias[o];
            }
        }
    }
}

void linear_backward(struct device *device, const struct linear *l, float *d_in, const float *d_out,
                     const float *in)
{
    (void)device;
    multiply_large((const uint64_t[3]){l->out_width, l->in_width, l->rows},
                   (struct matrix){d_out, l->out_width, true},
                   (struct matrix){in, l->in_width, false}, l->d_weight, l->in_width);
    multiply_large((const uint64_t[3]){l->rows, l->in_width, l->out_width},
                   (struct matrix){d_out, l->out_width, false},
                   (struct matrix){l->weight, l->in_width, false}, d_in, l->in_width);
    if (l->bias != NULL) {
        sum_rows(l->d_bias, d_out, l->rows, l->out_width);
    }
}

/* ---- dropout, residual, embedding ---- */

static float drop_one(const struct dropout *drop, uint64_t place, float value)
{
    bool is_kept = random_uniform(drop->key, drop->first + place) >= drop->rate;
    return is_kept ? value / (1 - drop->rate) : 0;
}

void dropout(struct device *device, const struct dropout *drop, float *out, const float *in,
             uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        out[i] = drop_one(drop, i, in[i]);
    }
}

void residual(struct device *device, const struct dropout *drop, float *out, const float *around,
              const float *in, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        out[i] = around[i] + drop_one(drop, i, in[i]);
    }
}

void embed_forward(struct device *device, const struct embed *l, float *out, const int32_t *tokens)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        const float *token = l->token + (uint64_t)tokens[r] * l->width;
        const float *position = l->position + r % l->context * l->width;
        for (uint32_t i = 0; i < l->width; i++) {
            out[r * l->width + i] = drop_one(&l->drop, r * l->width + i, token[i] + position[i]);
        }
    }
}

void embed_backward(struct device *device, const struct embed *l, const float *d_out,
                    const int32_t *tokens)
{
    (void)device;
    memset(l->d_position, 0, (uint64_t)l->context * l->width * sizeof(float));
#pragma omp parallel for
    for (uint32_t begin = 0; begin < l->width; begin += BLOCK_SUMS) {
        uint32_t end = l->width - begin < BLOCK_SUMS ? l->width : begin + BLOCK_SUMS;
        for (uint64_t r = 0; r < l->rows; r++) {
            float *d_token = l->d_token + (uint64_t)tokens[r] * l->width;
            float *d_position = l->d_position + r % l->context * l->width;
            for (uint32_t i = begin; i < end; i++) {
                float d = drop_one(&l->drop, r * l->width + i, d_out[r * l->width + i]);
                d_token[i] += d;
                d_position[i] += d;
            }
        }
    }
}

/* ---- normalisation, GELU ---- */

void norm_forward(struct device *device, const struct norm *l, float *out, float *stats,
                  const float *in)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        const float *x = in + r * l->width;
        float *y = out + r * l->width;
        float mean = 0, variance = 0;
        for (uint32_t i = 0; i < l->width; i++) {
            mean += x[i];
        }
        mean /= (float)l->width;
        for (uint32_t i = 0; i < l->width; i++) {
            variance += (x[i] - mean) * (x[i] - mean);
        }
        float scale = 1 / sqrtf(variance / (float)l->width + NORM_EPSILON);
        for (uint32_t i = 0; i < l->width; i++) {
            y[i] = (x[i] - mean) * scale * l->gain[i] + l->bias[i];
        }
        stats[2 * r] = mean;
        stats[2 * r + 1] = scale;
    }
}

static void norm_backward_parameters(const struct norm *l, const float *d_out, const float *in,
                                     const float *stats)
{
    sum_rows(l->d_bias, d_out, l->rows, l->width);
#pragma omp parallel for
    for (uint32_t begin = 0; begin < l->width; begin += BLOCK_SUMS) {
        uint32_t end = l->width - begin < BLOCK_SUMS ? l->width : begin + BLOCK_SUMS;
        memset(l->d_gain + begin, 0, (end - begin) * sizeof(float));
        for (uint64_t r = 0; r < l->rows; r++) {
            for (uint32_t i = begin; i < end; i++) {
                uint64_t at = r * l->width + i;
                l->d_gain[i] += d_out[at] * (in[at] - stats[2 * r]) * stats[2 * r + 1];
            }
        }
    }
}

void norm_backward(struct device *device, const struct norm *l, float *d_in, const float *d_out,
                   const float *in, const float *stats, bool adds)
{
    (void)device;
    norm_backward_parameters(l, d_out, in, stats);
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        const float *x = in + r * l->width, *dy = d_out + r * l->width;
        float *dx = d_in + r * l->width;
        float mean = stats[2 * r], scale = stats[2 * r + 1], sum = 0, dot = 0;
        for (uint32_t i = 0; i < l->width; i++) {
            float d = dy[i] * l->gain[i];
            sum += d;
            dot += d * (x[i] - mean) * scale;
        }
        sum /= (float)l->width;
        dot /= (float)l->width;
        for (uint32_t i = 0; i < l->width; i++) {
            float normal = (x[i] - mean) * scale;
            dx[i] = (adds ? dx[i] : 0) + (dy[i] * l->gain[i] - sum - normal * dot) * scale;
        }
    }
}

/* The approximation by tanh; sqrt(2 / pi). */
#define GELU_SCALE 0.7978845608f
#define GELU_CUBIC 0.044715f

void gelu_forward(struct device *device, float *out, const float *in, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        float x = in[i];
        out[i] = 0.5f * x * (1 + tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x)));
    }
}

void gelu_backward(struct device *device, float *d, const float *in, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        float x = in[i], t = tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
        float inner = GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x);
        d[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    }
}

/* ---- attention ---- */

/* One head of one sequence: where its parts of each array begin, and their strides. */
struct head {
    uint64_t scores;        /* in p */
    uint64_t q, k, v, out;  /* in qkv, and in the output */
    uint64_t stride, width; /* from row to row in qkv, and in the output */
};

static struct head head_of(const struct attention *l, uint64_t number)
{
    uint64_t sequence = number / l->heads, head = number % l->heads;
    uint64_t width = (uint64_t)l->heads * l->head_width;
    struct head h = {.stride = 3 * width, .width = width};
    h.scores = number * l->context * l->context;
    h.q = sequence * l->context * h.stride + head * l->head_width;
    h.k = h.q + width;
    h.v = h.k + width;
    h.out = sequence * l->context * width + head * l->head_width;
    return h;
}

/* Over the past of each row; the future gets nothing. */
static void softmax_causal(float *p, uint32_t context)
{
    for (uint64_t r = 0; r < context; r++) {
        float *row = p + r * context, largest = row[0], sum = 0;
        for (uint64_t i = 1; i <= r; i++) {
            largest = row[i] > largest ? row[i] : largest;
        }
        for (uint64_t i = 0; i <= r; i++) {
            row[i] = expf(row[i] - largest);
            sum += row[i];
        }
        for (uint64_t i = 0; i <= r; i++) {
            row[i] /= sum;
        }
        memset(row + r + 1, 0, (context - 1 - r) * sizeof(float));
    }
}

void scores_forward(struct device *device, const struct attention *l, float *p, const float *qkv)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t n = 0; n < (uint64_t)l->batch * l->heads; n++) {
        struct head h = head_of(l, n);
        multiply((const uint64_t[3]){l->context, l->context, l->head_width},
                 (struct matrix){qkv + h.q, h.stride, false},
                 (struct matrix){qkv + h.k, h.stride, true}, 1 / sqrtf((float)l->head_width),
                 p + h.scores, l->context);
        softmax_causal(p + h.scores, l->context);
    }
}

static void softmax_causal_backward(float *d_p, const float *p, uint32_t context)
{
    for (uint64_t r = 0; r < context; r++) {
        float *d = d_p + r * context, dot = 0;
        const float *row = p + r * context;
        for (uint64_t i = 0; i <= r; i++) {
            dot += d[i] * row[i];
        }
        for (uint64_t i = 0; i <= r; i++) {
            d[i] = row[i] * (d[i] - dot);
        }
        memset(d + r + 1, 0, (context - 1 - r) * sizeof(float));
    }
}

void scores_backward(struct device *device, const struct attention *l, float *d_qkv, float *d_p,
                     const float *p, const float *qkv)
{
    float scale = 1 / sqrtf((float)l->head_width);
    const uint64_t size[3] = {l->context, l->head_width, l->context};
    (void)device;
#pragma omp parallel for
    for (uint64_t n = 0; n < (uint64_t)l->batch * l->heads; n++) {
        struct head h = head_of(l, n);
        softmax_causal_backward(d_p + h.scores, p + h.scores, l->context);
        multiply(size, (struct matrix){d_p + h.scores, l->context, false},
                 (struct matrix){qkv + h.k, h.stride, false}, scale, d_qkv + h.q, h.stride);
        multiply(size, (struct matrix){d_p + h.scores, l->context, true},
                 (struct matrix){qkv + h.q, h.stride, false}, scale, d_qkv + h.k, h.stride);
    }
}

void mix_forward(struct device *device, const struct attention *l, float *out, const float *p,
                 const float *qkv)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t n = 0; n < (uint64_t)l->batch * l->heads; n++) {
        struct head h = head_of(l, n);
        multiply((const uint64_t[3]){l->context, l->head_width, l->context},
                 (struct matrix){p + h.scores, l->context, false},
                 (struct matrix){qkv + h.v, h.stride, false}, 1, out + h.out, h.width);
    }
}

void mix_backward(struct device *device, const struct attention *l, float *d_p, float *d_qkv,
                  const float *d_out, const float *p, const float *qkv)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t n = 0; n < (uint64_t)l->batch * l->heads; n++) {
        struct head h = head_of(l, n);
        multiply((const uint64_t[3]){l->context, l->context, l->head_width},
                 (struct matrix){d_out + h.out, h.width, false},
                 (struct matrix){qkv + h.v, h.stride, true}, 1, d_p + h.scores, l->context);
        multiply((const uint64_t[3]){l->context, l->head_width, l->context},
                 (struct matrix){p + h.scores, l->context, true},
                 (struct matrix){d_out + h.out, h.width, false}, 1, d_qkv + h.v, h.stride);
    }
}

/* ---- loss, optimizer ---- */

void loss_forward(struct device *device, const struct loss *l, float *logits,
                  const int32_t *targets, float *of_rows, float *out_sum)
{
    double sum_of_rows = 0;
    (void)device;
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        float *x = logits + r * l->classes, largest = x[0], sum = 0, target = x[targets[r]];
        for (uint32_t c = 1; c < l->classes; c++) {
            largest = x[c] > largest ? x[c] : largest;
        }
        for (uint32_t c = 0; c < l->classes; c++) {
            x[c] = expf(x[c] - largest);
            sum += x[c];
        }
        for (uint32_t c = 0; c < l->classes; c++) {
            x[c] /= sum;
        }
        of_rows[r] = logf(sum) - (target - largest);
    }
    for (uint64_t r = 0; r < l->rows; r++) {
        sum_of_rows += (double)of_rows[r];
    }
    *out_sum = (float)(sum_of_rows * (double)l->scale);
}

void loss_backward(struct device *device, const struct loss *l, float *d_logits,
                   const float *probabilities, const int32_t *targets)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        for (uint32_t c = 0; c < l->classes; c++) {
            float target = targets[r] == (int32_t)c ? 1 : 0;
            d_logits[r * l->classes + c] = (probabilities[r * l->classes + c] - target) * l->scale;
        }
    }
}

void adamw(struct device *device, const struct adamw *rule, const struct parameters *p)
{
    float correct1 = 1 - powf(rule->beta1, (float)(rule->iteration + 1));
    float correct2 = 1 - powf(rule->beta2, (float)(rule->iteration + 1));
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < p->count; i++) {
        float g = p->gradients[i];
        p->first[i] = rule->beta1 * p->first[i] + (1 - rule->beta1) * g;
        p->second[i] = rule->beta2 * p->second[i] + (1 - rule->beta2) * g * g;
        float step = p->first[i] / correct1 / (sqrtf(p->second[i] / correct2) + rule->epsilon);
        p->values[i] -= rule->rate * (step + rule->decay * p->values[i]);
    }
}
