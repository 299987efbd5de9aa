/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include <math.h>
#include <string.h>

#define NORM_EPSILON 1e-5f

void linear_forward(const struct linear *l, float *out, const float *in)
{
    for (uint32_t r = 0; r < l->rows; r++) {
        float *row = out + (uint64_t)r * l->out_width;
        memcpy(row, l->bias, l->out_width * sizeof(float));
        for (uint32_t i = 0; i < l->in_width; i++) {
            float x = in[(uint64_t)r * l->in_width + i];
            const float *weight = l->weight + (uint64_t)i * l->out_width;
            for (uint32_t o = 0; o < l->out_width; o++) {
                row[o] += x * weight[o];
            }
        }
    }
}

void linear_backward(const struct linear *l, float *d_in, const float *d_out, const float *in)
{
    memset(l->d_weight, 0, (uint64_t)l->in_width * l->out_width * sizeof(float));
    memset(l->d_bias, 0, l->out_width * sizeof(float));
    for (uint32_t r = 0; r < l->rows; r++) {
        const float *d_row = d_out + (uint64_t)r * l->out_width;
        for (uint32_t o = 0; o < l->out_width; o++) {
            l->d_bias[o] += d_row[o];
        }
        for (uint32_t i = 0; i < l->in_width; i++) {
            uint64_t at = (uint64_t)r * l->in_width + i;
            const float *weight = l->weight + (uint64_t)i * l->out_width;
            float *d_weight = l->d_weight + (uint64_t)i * l->out_width;
            float x = in[at], sum = 0;
            for (uint32_t o = 0; o < l->out_width; o++) {
                d_weight[o] += x * d_row[o];
                sum += d_row[o] * weight[o];
            }
            if (d_in != NULL) {
                d_in[at] = sum;
            }
        }
    }
}

void norm_forward(const struct norm *l, float *out, float *stats, const float *in)
{
    for (uint32_t r = 0; r < l->rows; r++) {
        const float *x = in + (uint64_t)r * l->width;
        float *y = out + (uint64_t)r * l->width;
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
        stats[2 * (uint64_t)r] = mean;
        stats[2 * (uint64_t)r + 1] = scale;
    }
}

void norm_backward(const struct norm *l, float *d_in, const float *d_out, const float *in,
                   const float *stats, bool adds)
{
    memset(l->d_gain, 0, l->width * sizeof(float));
    memset(l->d_bias, 0, l->width * sizeof(float));
    for (uint32_t r = 0; r < l->rows; r++) {
        const float *x = in + (uint64_t)r * l->width, *dy = d_out + (uint64_t)r * l->width;
        float *dx = d_in + (uint64_t)r * l->width;
        float mean = stats[2 * (uint64_t)r], scale = stats[2 * (uint64_t)r + 1];
        float sum = 0, dot = 0;
        for (uint32_t i = 0; i < l->width; i++) {
            float normal = (x[i] - mean) * scale, d = dy[i] * l->gain[i];
            l->d_gain[i] += dy[i] * normal;
            l->d_bias[i] += dy[i];
            sum += d;
            dot += d * normal;
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

void gelu_forward(float *out, const float *in, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float x = in[i];
        out[i] = 0.5f * x * (1 + tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x)));
    }
}

void gelu_backward(float *d, const float *in, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float x = in[i], t = tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
        float inner = GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x);
        d[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    }
}

void dropout_forward(float *values, uint8_t *mask, uint64_t count, float rate, uint64_t key)
{
    for (uint64_t i = 0; i < count; i++) {
        mask[i] = random_uniform(key, i) >= rate;
        values[i] = mask[i] ? values[i] / (1 - rate) : 0;
    }
}

void dropout_backward(float *d_in, const float *d_out, const uint8_t *mask, uint64_t count,
                      float rate)
{
    for (uint64_t i = 0; i < count; i++) {
        d_in[i] = mask[i] ? d_out[i] / (1 - rate) : 0;
    }
}

void add(float *out, const float *a, const float *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

double softmax_loss(float *probabilities, const float *logits, const int32_t *labels, uint32_t rows,
                    uint32_t classes)
{
    double loss = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const float *x = logits + (uint64_t)r * classes;
        float *p = probabilities + (uint64_t)r * classes;
        float largest = x[0];
        double sum = 0;
        for (uint32_t c = 1; c < classes; c++) {
            largest = x[c] > largest ? x[c] : largest;
        }
        for (uint32_t c = 0; c < classes; c++) {
            sum += exp((double)(x[c] - largest));
        }
        for (uint32_t c = 0; c < classes; c++) {
            p[c] = (float)(exp((double)(x[c] - largest)) / sum);
        }
        loss += log(sum) - (double)(x[labels[r]] - largest);
    }
    return loss / rows;
}

void softmax_backward(float *d_logits, const float *probabilities, const int32_t *labels,
                      uint32_t rows, uint32_t classes)
{
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < classes; c++) {
            uint64_t at = (uint64_t)r * classes + c;
            float target = labels[r] == (int32_t)c ? 1 : 0;
            d_logits[at] = (probabilities[at] - target) / (float)rows;
        }
    }
}

void sgd(float *values, float *velocities, const float *gradients, uint64_t count, float rate,
         float momentum)
{
    for (uint64_t i = 0; i < count; i++) {
        velocities[i] = momentum * velocities[i] + gradients[i];
        values[i] -= rate * velocities[i];
    }
}

/* SplitMix64 (public domain), used as a hash of key and index. */
static uint64_t hash(uint64_t key, uint64_t index)
{
    uint64_t z = (key ^ (index * 0xD1342543DE82EF95u)) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

float random_uniform(uint64_t key, uint64_t index)
{
    return (float)(hash(key, index) >> 40) / 16777216.0f;
}

/* The sum of twelve uniform numbers: normal enough, and without libm. */
float random_normal(uint64_t key, uint64_t index)
{
    float sum = -6;
    for (uint64_t i = 0; i < 12; i++) {
        sum += random_uniform(key, index * 12 + i);
    }
    return sum;
}
