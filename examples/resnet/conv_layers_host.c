/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels are dealt out to a fixed number of lanes, and lanes to however many threads there are: so
 * the threads have no say in the order of sums. A lane convolves UNIT_PIXELS at a time: it copies
 * the windows around them into rows of a matrix (im2col) and multiplies that by the weights.
 */
#include "conv_layers.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#define LANES       UINT64_C(8)
#define UNIT_PIXELS UINT64_C(64)
#define EPSILON     1e-5

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- convolution ---- */

/* Forward a convolution takes the pixels around each output from `in`. The gradient of an input is
 * the sum over the outputs in whose windows it is: a convolution of d_out that takes pixels the
 * other way. */
enum direction { FORWARD, BACKWARD };

static uint32_t out_size(const struct conv *l)
{
    return l->in_size / l->stride;
}

/* Which pixel, along one axis, is number `k` of the window at `at`; -1: none. */
static int64_t source(const struct conv *l, enum direction direction, uint32_t at, uint32_t k)
{
    int64_t reach = l->kernel / 2, stride = l->stride;
    if (direction == FORWARD) {
        int64_t from = at * stride + k - reach;
        return from < l->in_size ? from : -1; /* below 0: none, too */
    }
    int64_t from = (int64_t)at + reach - k;
    return from >= 0 && from % stride == 0 && from / stride < out_size(l) ? from / stride : -1;
}

/* One row for each of `count` pixels: its window. */
static void gather(const struct conv *l, enum direction direction, float *rows, const float *in,
                   uint64_t first, uint64_t count)
{
    bool is_forward = direction == FORWARD;
    uint32_t size = is_forward ? out_size(l) : l->in_size;
    uint32_t from_size = is_forward ? l->in_size : out_size(l);
    uint64_t channels = is_forward ? l->in_channels : l->out_channels;
    for (uint64_t pixel = first; pixel < first + count; pixel++) {
        const float *image = in + pixel / size / size * from_size * from_size * channels;
        uint32_t row = (uint32_t)(pixel / size % size), column = (uint32_t)(pixel % size);
        for (uint32_t i = 0; i < l->kernel * l->kernel; i++, rows += channels) {
            int64_t y = source(l, direction, row, i / l->kernel);
            int64_t x = source(l, direction, column, i % l->kernel);
            if (y < 0 || x < 0) {
                memset(rows, 0, channels * sizeof(float));
            } else {
                memcpy(rows, image + ((uint64_t)y * from_size + (uint64_t)x) * channels,
                       channels * sizeof(float));
            }
        }
    }
}

static uint64_t window_values(const struct conv *l, enum direction direction)
{
    uint64_t channels = direction == FORWARD ? l->in_channels : l->out_channels;
    return channels * l->kernel * l->kernel;
}

/* Of what comes out. */
static uint64_t pixels_of(const struct conv *l, enum direction direction)
{
    uint64_t size = direction == FORWARD ? out_size(l) : l->in_size;
    return l->batch * size * size;
}

/* `weight`: one row for each channel of `out`. */
static void convolve(const struct conv *l, enum direction direction, float *out, const float *in,
                     const float *weight, bool adds, float *scratch)
{
    uint64_t pixels = pixels_of(l, direction), window = window_values(l, direction);
    uint64_t channels = direction == FORWARD ? l->out_channels : l->in_channels;
#pragma omp parallel for
    for (uint64_t lane = 0; lane < LANES; lane++) {
        float *rows = scratch + lane * UNIT_PIXELS * window;
        for (uint64_t p = lane * UNIT_PIXELS; p < pixels; p += LANES * UNIT_PIXELS) {
            uint64_t count = least_of(pixels - p, UNIT_PIXELS);
            gather(l, direction, rows, in, p, count);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)channels,
                        (int)window, 1, rows, (int)window, weight, (int)window, adds ? 1 : 0,
                        out + p * channels, (int)channels);
        }
    }
}

/* Each lane sums over its own pixels. */
static void weight_gradient(const struct conv *l, const float *d_out, const float *in,
                            float *scratch)
{
    uint64_t pixels = pixels_of(l, FORWARD);
    uint64_t window = window_values(l, FORWARD), weights = conv_weights(l);
    float *sums = scratch + LANES * UNIT_PIXELS * window;
    memset(sums, 0, LANES * weights * sizeof(float));
#pragma omp parallel for
    for (uint64_t lane = 0; lane < LANES; lane++) {
        float *rows = scratch + lane * UNIT_PIXELS * window;
        for (uint64_t p = lane * UNIT_PIXELS; p < pixels; p += LANES * UNIT_PIXELS) {
            uint64_t count = least_of(pixels - p, UNIT_PIXELS);
            gather(l, FORWARD, rows, in, p, count);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l->out_channels, (int)window,
                        (int)count, 1, d_out + p * l->out_channels, (int)l->out_channels, rows,
                        (int)window, 1, sums + lane * weights, (int)window);
        }
    }
#pragma omp parallel for
    for (uint64_t i = 0; i < weights; i++) {
        l->d_weight[i] = 0;
        for (uint64_t lane = 0; lane < LANES; lane++) {
            l->d_weight[i] += sums[lane * weights + i];
        }
    }
}

uint64_t conv_weights(const struct conv *l)
{
    return l->out_channels * window_values(l, FORWARD);
}

/* The same for every batch, so that profiles of two tell that of a third. */
uint64_t conv_forward_scratch(const struct conv *l)
{
    return LANES * UNIT_PIXELS * window_values(l, FORWARD) * sizeof(float);
}

/* Of the two gradients, which come one after the other. */
uint64_t conv_backward_scratch(const struct conv *l)
{
    uint64_t of_weight = LANES * (UNIT_PIXELS * window_values(l, FORWARD) + conv_weights(l));
    uint64_t of_in = LANES * UNIT_PIXELS * window_values(l, BACKWARD) + conv_weights(l);
    return (of_weight > of_in ? of_weight : of_in) * sizeof(float);
}

void conv_forward(const struct conv *l, float *out, const float *in, float *scratch)
{
    convolve(l, FORWARD, out, in, l->weight, false, scratch);
}

void conv_backward(const struct conv *l, float *d_in, const float *d_out, const float *in,
                   bool adds, float *scratch)
{
    uint64_t places = (uint64_t)l->kernel * l->kernel;
    float *turned = scratch, *rest = scratch + conv_weights(l);
    weight_gradient(l, d_out, in, scratch);
    if (d_in == NULL) {
        return;
    }
    for (uint64_t o = 0; o < l->out_channels; o++) {
        for (uint64_t place = 0; place < places; place++) {
            for (uint64_t c = 0; c < l->in_channels; c++) {
                turned[(c * places + place) * l->out_channels + o] =
                    l->weight[(o * places + place) * l->in_channels + c];
            }
        }
    }
    convolve(l, BACKWARD, d_in, d_out, turned, adds, rest);
}

/* ---- batch normalisation ---- */

uint64_t batch_norm_scratch(const struct batch_norm *l)
{
    return (LANES + 1) * 2 * l->channels * sizeof(double);
}

/* Sums over rows of in and in * in, or of d_out and d_out * normalised in: two for each channel.
 * They end up at the beginning of the scratch. */
static void sum_channels(const struct batch_norm *l, const float *in, const float *d_out,
                         const float *stats, double *scratch)
{
    uint64_t channels = l->channels;
    memset(scratch, 0, batch_norm_scratch(l));
#pragma omp parallel for
    for (uint64_t lane = 0; lane < LANES; lane++) {
        double *first = scratch + (lane + 1) * 2 * channels, *second = first + channels;
        uint64_t end = (lane + 1) * l->rows / LANES;
        for (uint64_t r = lane * l->rows / LANES; r < end; r++) {
            const float *x = in + r * channels;
            for (uint64_t c = 0; c < channels; c++) {
                float a = d_out == NULL ? x[c] : d_out[r * channels + c];
                float b = d_out == NULL ? x[c] : (x[c] - stats[c]) * stats[channels + c];
                first[c] += (double)a;
                second[c] += (double)a * (double)b;
            }
        }
    }
    for (uint64_t lane = 0; lane < LANES; lane++) {
        for (uint64_t i = 0; i < 2 * channels; i++) {
            scratch[i] += scratch[(lane + 1) * 2 * channels + i];
        }
    }
}

/* As is usual, the running variance is that of a sample. */
static void update_running(const struct batch_norm *l, uint64_t channel, double mean,
                           double variance)
{
    double rows = (double)l->rows, share = (double)l->momentum;
    double of_sample = l->rows > 1 ? variance * rows / (rows - 1) : variance;
    float *at = l->running + channel;
    at[0] = (float)((1 - share) * (double)at[0] + share * mean);
    at[l->channels] = (float)((1 - share) * (double)at[l->channels] + share * of_sample);
}

void batch_norm_forward(const struct batch_norm *l, float *out, float *stats, const float *in,
                        bool updates, double *scratch)
{
    uint64_t channels = l->channels;
    sum_channels(l, in, NULL, NULL, scratch);
    for (uint64_t c = 0; c < channels; c++) {
        double mean = scratch[c] / (double)l->rows;
        double variance = scratch[channels + c] / (double)l->rows - mean * mean;
        variance = variance > 0 ? variance : 0;
        stats[c] = (float)mean;
        stats[channels + c] = (float)(1 / sqrt(variance + EPSILON));
        if (updates) {
            update_running(l, c, mean, variance);
        }
    }
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        const float *x = in + r * channels;
        float *y = out + r * channels;
        for (uint64_t c = 0; c < channels; c++) {
            y[c] = (x[c] - stats[c]) * stats[channels + c] * l->gain[c] + l->bias[c];
        }
    }
}

void batch_norm_backward(const struct batch_norm *l, float *d_in, const float *d_out,
                         const float *in, const float *stats, double *scratch)
{
    uint64_t channels = l->channels;
    float rows = (float)l->rows;
    sum_channels(l, in, d_out, stats, scratch);
    for (uint64_t c = 0; c < channels; c++) {
        l->d_bias[c] = (float)scratch[c];
        l->d_gain[c] = (float)scratch[channels + c];
    }
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        const float *x = in + r * channels, *dy = d_out + r * channels;
        float *dx = d_in + r * channels;
        for (uint64_t c = 0; c < channels; c++) {
            float normal = (x[c] - stats[c]) * stats[channels + c];
            float d = dy[c] - (l->d_bias[c] + normal * l->d_gain[c]) / rows;
            dx[c] = d * l->gain[c] * stats[channels + c];
        }
    }
}

/* ---- ReLU, shortcut, pooling ---- */

void relu_forward(float *values, uint64_t count)
{
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        values[i] = values[i] > 0 ? values[i] : 0;
    }
}

void relu_backward(float *d, const float *out, uint64_t count)
{
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        d[i] = out[i] > 0 ? d[i] : 0;
    }
}

void add_forward(float *values, const float *around, uint64_t count)
{
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        float sum = values[i] + around[i];
        values[i] = sum > 0 ? sum : 0;
    }
}

void pool_forward(const struct pool *l, float *out, const float *in)
{
    uint64_t pixels = (uint64_t)l->size * l->size, channels = l->channels;
#pragma omp parallel for
    for (uint64_t n = 0; n < l->batch; n++) {
        float *y = out + n * channels;
        memset(y, 0, channels * sizeof(float));
        for (uint64_t p = 0; p < pixels; p++) {
            for (uint64_t c = 0; c < channels; c++) {
                y[c] += in[(n * pixels + p) * channels + c] / (float)pixels;
            }
        }
    }
}

void pool_backward(const struct pool *l, float *d_in, const float *d_out)
{
    uint64_t pixels = (uint64_t)l->size * l->size, channels = l->channels;
#pragma omp parallel for
    for (uint64_t n = 0; n < l->batch; n++) {
        for (uint64_t i = 0; i < pixels * channels; i++) {
            d_in[n * pixels * channels + i] = d_out[n * channels + i % channels] / (float)pixels;
        }
    }
}
