/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers of conv_layers.h do to one pixel, value or channel: the same on host and device,
 * which differ in how they go through all of them, and in how they sum.
 */
#ifndef CONV_ELEMENTS_H
#define CONV_ELEMENTS_H

#include <math.h>

#include "conv_layers.h"
#include "counter_random.h"

/* ---- convolution ---- */

/* Forward a convolution takes the pixels around each output from `in`. The gradient of an input is
 * the sum over the outputs in whose windows it is: a convolution of d_out that takes pixels the
 * other way. */
enum direction { FORWARD, BACKWARD };

/* Of the arrays that go in and come out: */
ON_BOTH static inline uint32_t taken_size(const struct conv *l, enum direction direction)
{
    return direction == FORWARD ? l->in_size : l->in_size / l->stride;
}

ON_BOTH static inline uint32_t given_size(const struct conv *l, enum direction direction)
{
    return direction == FORWARD ? l->in_size / l->stride : l->in_size;
}

ON_BOTH static inline uint32_t taken_channels(const struct conv *l, enum direction direction)
{
    return direction == FORWARD ? l->in_channels : l->out_channels;
}

ON_BOTH static inline uint32_t given_channels(const struct conv *l, enum direction direction)
{
    return direction == FORWARD ? l->out_channels : l->in_channels;
}

ON_BOTH static inline uint64_t given_pixels(const struct conv *l, enum direction direction)
{
    return (uint64_t)l->batch * given_size(l, direction) * given_size(l, direction);
}

/* Values of what goes in that make one pixel of what comes out. */
ON_BOTH static inline uint64_t window_values(const struct conv *l, enum direction direction)
{
    return (uint64_t)taken_channels(l, direction) * l->kernel * l->kernel;
}

/* A pixel of what comes out. */
struct pixel {
    uint64_t image;
    uint32_t row, column;
};

ON_BOTH static inline struct pixel pixel_at(const struct conv *l, enum direction direction,
                                            uint64_t number)
{
    uint32_t size = given_size(l, direction);
    struct pixel pixel;
    pixel.image = number / size / size;
    pixel.row = (uint32_t)(number / size % size);
    pixel.column = (uint32_t)(number % size);
    return pixel;
}

/* Which pixel, along one axis, is number `k` of the window at `at`; -1: none. */
ON_BOTH static inline int64_t taken_along(const struct conv *l, enum direction direction,
                                          uint32_t at, uint32_t k)
{
    int64_t reach = l->kernel / 2, stride = l->stride, size = taken_size(l, direction);
    int64_t from = direction == FORWARD ? at * stride + k - reach : (int64_t)at + reach - k;
    if (direction == BACKWARD) {
        from = from % stride == 0 ? from / stride : -1;
    }
    return from >= 0 && from < size ? from : -1;
}

/* Which pixel of what goes in is at `place` of the window around this one; -1: none. */
ON_BOTH static inline int64_t taken_pixel(const struct conv *l, enum direction direction,
                                          struct pixel pixel, uint32_t place)
{
    int64_t size = taken_size(l, direction);
    int64_t row = taken_along(l, direction, pixel.row, place / l->kernel);
    int64_t column = taken_along(l, direction, pixel.column, place % l->kernel);
    return row < 0 || column < 0 ? -1 : ((int64_t)pixel.image * size + row) * size + column;
}

/* The weights as the gradient of the input wants them, in_channels x kernel x kernel x
 * out_channels: where value `i` of that comes from. */
ON_BOTH static inline uint64_t turned_from(const struct conv *l, uint64_t i)
{
    uint64_t places = (uint64_t)l->kernel * l->kernel, o = i % l->out_channels;
    uint64_t place = i / l->out_channels % places, c = i / l->out_channels / places;
    return (o * places + place) * l->in_channels + c;
}

/* ---- batch normalisation ---- */

#define BATCH_NORM_EPSILON 1e-5

ON_BOTH static inline float normalised(const struct batch_norm *l, const float *stats, float x,
                                       uint64_t channel)
{
    return (x - stats[channel]) * stats[l->channels + channel];
}

/* What a channel is summed over, forward: x and x * x; backward: the gradient, and times the
 * normalised x. */
struct addends {
    double first, second;
};

ON_BOTH static inline struct addends addends_forward(float x)
{
    struct addends a;
    a.first = (double)x;
    a.second = (double)x * (double)x;
    return a;
}

ON_BOTH static inline struct addends addends_backward(const struct batch_norm *l,
                                                      const float *stats, float dy, float x,
                                                      uint64_t channel)
{
    struct addends a;
    a.first = (double)dy;
    a.second = (double)dy * (double)normalised(l, stats, x, channel);
    return a;
}

/* As is usual, the running variance is that of a sample. */
ON_BOTH static inline void batch_norm_finish(const struct batch_norm *l, float *stats,
                                             struct addends sums, uint64_t channel, bool updates)
{
    double rows = (double)l->rows, share = (double)l->momentum;
    double mean = sums.first / rows, variance = sums.second / rows - mean * mean;
    variance = variance > 0 ? variance : 0;
    stats[channel] = (float)mean;
    stats[l->channels + channel] = (float)(1 / sqrt(variance + BATCH_NORM_EPSILON));
    if (updates) {
        double of_sample = l->rows > 1 ? variance * rows / (rows - 1) : variance;
        float *at = l->running + channel;
        at[0] = (float)((1 - share) * (double)at[0] + share * mean);
        at[l->channels] = (float)((1 - share) * (double)at[l->channels] + share * of_sample);
    }
}

ON_BOTH static inline float batch_norm_value(const struct batch_norm *l, const float *stats,
                                             float x, uint64_t channel)
{
    return normalised(l, stats, x, channel) * l->gain[channel] + l->bias[channel];
}

/* Of x; d_bias and d_gain are the channels' sums. */
ON_BOTH static inline float batch_norm_gradient(const struct batch_norm *l, const float *stats,
                                                float dy, float x, uint64_t channel)
{
    float normal = normalised(l, stats, x, channel);
    float d = dy - (l->d_bias[channel] + normal * l->d_gain[channel]) / (float)l->rows;
    return d * l->gain[channel] * stats[l->channels + channel];
}

/* ---- images ---- */

struct look {
    int32_t label;
    uint64_t noise;     /* a key */
    float pace, phase;  /* radians: from pixel to pixel, and of the first */
    float across, down; /* the direction, of length 1 */
    float colours[3];
};

ON_BOTH static inline struct look look_of(const struct stripes *s, uint64_t number)
{
    const float half_turn = 3.14159265f;
    uint64_t key = random_bits(s->looks, number);
    struct look look;
    look.label = (int32_t)(random_bits(s->labels, number) % s->classes);
    look.noise = random_bits(s->noise, number);
    look.phase = 2 * half_turn * random_uniform(key, 0);
    look.pace = 0.6f + random_uniform(key, 1);
    float angle = half_turn * (float)look.label / (float)s->classes;
    look.across = cosf(angle);
    look.down = sinf(angle);
    for (uint32_t c = 0; c < 3; c++) {
        look.colours[c] = 2 * random_uniform(key, 2 + c) - 1;
    }
    return look;
}

/* All channels of the image's pixel number `pixel`. */
ON_BOTH static inline void draw_pixel(const struct stripes *s, const struct look *look,
                                      uint32_t pixel, float *values)
{
    uint32_t row = pixel / s->size, column = pixel % s->size;
    float x = (float)column, y = (float)row;
    float stripe = sinf(look->pace * (x * look->across + y * look->down) + look->phase);
    for (uint32_t c = 0; c < 3; c++) {
        float noise = random_uniform(look->noise, (uint64_t)3 * pixel + c);
        values[c] = look->colours[c] * stripe + noise - 0.5f;
    }
}

#endif
