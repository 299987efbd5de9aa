/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels are dealt out to a fixed number of lanes, and lanes to however many threads there are: so
 * the threads have no say in the order of sums. A lane convolves UNIT_PIXELS at a time: it copies
 * the windows around them into rows of a matrix (im2col) and multiplies that by the weights.
 */
#include "conv_layers.h"

#include <cblas.h>
#include <string.h>

#include "conv_elements.h"

#define LANES       UINT64_C(8)
#define UNIT_PIXELS UINT64_C(64)

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- convolution ---- */

/* One row for each of `count` pixels: its window. */
static void gather(const struct conv *l, enum direction direction, float *rows, const float *in,
                   uint64_t first, uint64_t count)
{
    uint64_t channels = taken_channels(l, direction);
    for (uint64_t number = first; number < first + count; number++) {
        struct pixel pixel = pixel_at(l, direction, number);
        for (uint32_t place = 0; place < l->kernel * l->kernel; place++, rows += channels) {
            int64_t from = taken_pixel(l, direction, pixel, place);
            if (from < 0) {
                memset(rows, 0, channels * sizeof(float));
            } else {
                memcpy(rows, in + (uint64_t)from * channels, channels * sizeof(float));
            }
        }
    }
}

/* `weight`: one row for each channel of `out`. */
static void convolve(const struct conv *l, enum direction direction, float *out, const float *in,
                     const float *weight, bool adds, float *scratch)
{
    uint64_t pixels = given_pixels(l, direction), window = window_values(l, direction);
    uint64_t channels = given_channels(l, direction);
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
    uint64_t pixels = given_pixels(l, FORWARD);
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

void conv_forward(struct device *device, const struct conv *l, float *out, const float *in,
                  float *scratch)
{
    (void)device;
    convolve(l, FORWARD, out, in, l->weight, false, scratch);
}

void conv_backward(struct device *device, const struct conv *l, float *d_in, const float *d_out,
                   const float *in, bool adds, float *scratch)
{
    (void)device;
    float *turned = scratch, *rest = scratch + conv_weights(l);
    weight_gradient(l, d_out, in, scratch);
    if (d_in == NULL) {
        return;
    }
    for (uint64_t i = 0; i < conv_weights(l); i++) {
        turned[i] = l->weight[turned_from(l, i)];
    }
    convolve(l, BACKWARD, d_in, d_out, turned, adds, rest);
}

/* ---- batch normalisation ---- */

uint64_t batch_norm_scratch(const struct batch_norm *l)
{
    return (LANES + 1) * 2 * l->channels * sizeof(double);
}

/* Of the rows: the channels' first sums, then the second. They end up at the beginning of the
 * scratch. `d_out` NULL: the forward ones. */
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
                struct addends a =
                    d_out == NULL ? addends_forward(x[c])
                                  : addends_backward(l, stats, d_out[r * channels + c], x[c], c);
                first[c] += a.first;
                second[c] += a.second;
            }
        }
    }
    for (uint64_t lane = 0; lane < LANES; lane++) {
        for (uint64_t i = 0; i < 2 * channels; i++) {
            scratch[i] += scratch[(lane + 1) * 2 * channels + i];
        }
    }
}

void batch_norm_forward(struct device *device, const struct batch_norm *l, float *out, float *stats,
                        const float *in, bool updates, double *scratch)
{
    uint64_t channels = l->channels;
    (void)device;
    sum_channels(l, in, NULL, NULL, scratch);
    for (uint64_t c = 0; c < channels; c++) {
        struct addends sums = {scratch[c], scratch[channels + c]};
        batch_norm_finish(l, stats, sums, c, updates);
    }
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        for (uint64_t c = 0; c < channels; c++) {
            out[r * channels + c] = batch_norm_value(l, stats, in[r * channels + c], c);
        }
    }
}

void batch_norm_backward(struct device *device, const struct batch_norm *l, float *d_in,
                         const float *d_out, const float *in, const float *stats, double *scratch)
{
    uint64_t channels = l->channels;
    (void)device;
    sum_channels(l, in, d_out, stats, scratch);
    for (uint64_t c = 0; c < channels; c++) {
        l->d_bias[c] = (float)scratch[c];
        l->d_gain[c] = (float)scratch[channels + c];
    }
#pragma omp parallel for
    for (uint64_t r = 0; r < l->rows; r++) {
        for (uint64_t c = 0; c < channels; c++) {
            uint64_t at = r * channels + c;
            d_in[at] = batch_norm_gradient(l, stats, d_out[at], in[at], c);
        }
    }
}

/* ---- ReLU, shortcut, pooling ---- */

void relu_forward(struct device *device, float *values, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        values[i] = values[i] > 0 ? values[i] : 0;
    }
}

void relu_backward(struct device *device, float *d, const float *out, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        d[i] = out[i] > 0 ? d[i] : 0;
    }
}

void add_forward(struct device *device, float *values, const float *around, uint64_t count)
{
    (void)device;
#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        float sum = values[i] + around[i];
        values[i] = sum > 0 ? sum : 0;
    }
}

void pool_forward(struct device *device, const struct pool *l, float *out, const float *in)
{
    (void)device;
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

void pool_backward(struct device *device, const struct pool *l, float *d_in, const float *d_out)
{
    (void)device;
    uint64_t pixels = (uint64_t)l->size * l->size, channels = l->channels;
#pragma omp parallel for
    for (uint64_t n = 0; n < l->batch; n++) {
        for (uint64_t i = 0; i < pixels * channels; i++) {
            d_in[n * pixels * channels + i] = d_out[n * channels + i % channels] / (float)pixels;
        }
    }
}

/* ---- images ---- */

void stripes_draw(struct device *device, const struct stripes *s, float *images, int32_t *labels)
{
    uint32_t pixels = s->size * s->size;
    (void)device;
#pragma omp parallel for
    for (uint64_t n = 0; n < s->batch; n++) {
        struct look look = look_of(s, s->first + n);
        labels[n] = look.label;
        for (uint32_t p = 0; p < pixels; p++) {
            draw_pixel(s, &look, p, images + 3 * (n * pixels + p));
        }
    }
}
