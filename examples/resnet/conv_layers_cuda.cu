/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers on a CUDA device: windows are copied into rows of a matrix (im2col), some at a time,
 * and cuBLAS multiplies that by the weights. Plain rather than fast, and without atomics: as in
 * ../common/layers_cuda.cu equal inputs give equal bits, and they are not the host version's.
 */
#include "conv_layers.h"

#include "conv_elements.h"
#include "layers_cuda.h"

#define GATHERED  (UINT64_C(1) << 19) /* values of windows at a time: 2 MiB */
#define LANES     64                  /* blocks that share the rows of one sum */
#define LANE_ROWS 8                   /* rows of threads in such a block */

/* ---- convolution ---- */

static uint64_t pixels_at_a_time(const struct conv *l, enum direction direction)
{
    return GATHERED / window_values(l, direction) + 1;
}

/* The windows of pixels from `first` on, a row each. */
static __global__ void gather(struct conv l, enum direction direction, float *rows, const float *in,
                              uint64_t first, uint64_t count)
{
    uint64_t i = my_value(), window = window_values(&l, direction);
    uint32_t channels = taken_channels(&l, direction);
    if (i < count * window) {
        struct pixel pixel = pixel_at(&l, direction, first + i / window);
        uint32_t place = (uint32_t)(i % window / channels);
        int64_t from = taken_pixel(&l, direction, pixel, place);
        rows[i] = from < 0 ? 0 : in[(uint64_t)from * channels + i % channels];
    }
}

/* From pixel `first` on; returns how many. */
static uint64_t launch_gather(struct device *device, const struct conv *l, enum direction direction,
                              float *rows, const float *in, uint64_t first)
{
    uint64_t left = given_pixels(l, direction) - first, most = pixels_at_a_time(l, direction);
    uint64_t count = left < most ? left : most;
    unsigned blocks = blocks_of(count * window_values(l, direction));
    gather<<<blocks, BLOCK, 0, device->stream>>>(*l, direction, rows, in, first, count);
    return count;
}

/* `weight`: one row for each channel of `out`. */
static void convolve(struct device *device, const struct conv *l, enum direction direction,
                     float *out, const float *in, const float *weight, bool adds, float *rows)
{
    uint64_t window = window_values(l, direction), channels = given_channels(l, direction);
    uint64_t count;
    for (uint64_t p = 0; p < given_pixels(l, direction); p += count) {
        count = launch_gather(device, l, direction, rows, in, p);
        const uint64_t size[3] = {count, channels, window};
        struct matrix a = {rows, window, false}, b = {weight, window, true};
        struct result result = {out + p * channels, channels, adds};
        multiply_one(device, size, a, b, result);
    }
}

static void weight_gradient(struct device *device, const struct conv *l, const float *d_out,
                            const float *in, float *rows)
{
    uint64_t window = window_values(l, FORWARD), channels = l->out_channels, count;
    for (uint64_t p = 0; p < given_pixels(l, FORWARD); p += count) {
        count = launch_gather(device, l, FORWARD, rows, in, p);
        const uint64_t size[3] = {channels, window, count};
        struct matrix a = {d_out + p * channels, channels, true}, b = {rows, window, false};
        struct result result = {l->d_weight, window, p > 0};
        multiply_one(device, size, a, b, result);
    }
}

static uint64_t gathered_bytes(const struct conv *l, enum direction direction)
{
    return pixels_at_a_time(l, direction) * window_values(l, direction) * sizeof(float);
}

uint64_t conv_forward_scratch(const struct conv *l)
{
    return gathered_bytes(l, FORWARD);
}

/* Of the two gradients, which come one after the other. */
uint64_t conv_backward_scratch(const struct conv *l)
{
    uint64_t of_weight = gathered_bytes(l, FORWARD);
    uint64_t of_in = gathered_bytes(l, BACKWARD) + conv_weights(l) * sizeof(float);
    return of_weight > of_in ? of_weight : of_in;
}

void conv_forward(struct device *device, const struct conv *l, float *out, const float *in,
                  float *scratch)
{
    convolve(device, l, FORWARD, out, in, l->weight, false, scratch);
}

static __global__ void turn(struct conv l, float *turned, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        turned[i] = l.weight[turned_from(&l, i)];
    }
}

void conv_backward(struct device *device, const struct conv *l, float *d_in, const float *d_out,
                   const float *in, bool adds, float *scratch)
{
    uint64_t weights = conv_weights(l);
    float *turned = scratch, *rest = scratch + weights;
    weight_gradient(device, l, d_out, in, scratch);
    if (d_in != NULL) {
        turn<<<blocks_of(weights), BLOCK, 0, device->stream>>>(*l, turned, weights);
        convolve(device, l, BACKWARD, d_in, d_out, turned, adds, rest);
    }
}

/* ---- batch normalisation ---- */

/* What a lane sums, for each channel, and lane after lane. */
uint64_t batch_norm_scratch(const struct batch_norm *l)
{
    return (uint64_t)LANES * l->channels * sizeof(struct addends);
}

static __device__ struct addends add(struct addends a, struct addends b)
{
    a.first += b.first;
    a.second += b.second;
    return a;
}

/* `d_out` NULL: forward. */
static __global__ void sum_lane(struct batch_norm l, struct addends *sums, const float *in,
                                const float *d_out, const float *stats)
{
    __shared__ struct addends parts[LANE_ROWS][WARP];
    uint32_t c = blockIdx.x * WARP + threadIdx.x;
    uint64_t lane = blockIdx.y, end = (lane + 1) * l.rows / LANES;
    struct addends sum = {0, 0};
    for (uint64_t r = lane * l.rows / LANES + threadIdx.y; c < l.channels && r < end;
         r += LANE_ROWS) {
        uint64_t at = r * l.channels + c;
        sum = add(sum, d_out == NULL ? addends_forward(in[at])
                                     : addends_backward(&l, stats, d_out[at], in[at], c));
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < l.channels) {
        for (int part = 1; part < LANE_ROWS; part++) {
            sum = add(sum, parts[part][threadIdx.x]);
        }
        sums[lane * l.channels + c] = sum;
    }
}

static void launch_sum_lanes(struct device *device, const struct batch_norm *l,
                             struct addends *sums, const float *in, const float *d_out,
                             const float *stats)
{
    dim3 blocks((l->channels + WARP - 1) / WARP, LANES), threads(WARP, LANE_ROWS);
    sum_lane<<<blocks, threads, 0, device->stream>>>(*l, sums, in, d_out, stats);
}

static __device__ struct addends sum_of_lanes(const struct batch_norm *l,
                                              const struct addends *sums, uint64_t channel)
{
    struct addends sum = sums[channel];
    for (uint64_t lane = 1; lane < LANES; lane++) {
        sum = add(sum, sums[lane * l->channels + channel]);
    }
    return sum;
}

static __global__ void finish_stats(struct batch_norm l, float *stats, const struct addends *sums,
                                    bool updates)
{
    uint64_t c = my_value();
    if (c < l.channels) {
        batch_norm_finish(&l, stats, sum_of_lanes(&l, sums, c), c, updates);
    }
}

static __global__ void normalise(struct batch_norm l, float *out, const float *stats,
                                 const float *in)
{
    uint64_t i = my_value();
    if (i < l.rows * l.channels) {
        out[i] = batch_norm_value(&l, stats, in[i], i % l.channels);
    }
}

void batch_norm_forward(struct device *device, const struct batch_norm *l, float *out, float *stats,
                        const float *in, bool updates, double *scratch)
{
    struct addends *sums = (struct addends *)scratch;
    unsigned blocks = blocks_of(l->rows * l->channels);
    launch_sum_lanes(device, l, sums, in, NULL, NULL);
    finish_stats<<<blocks_of(l->channels), BLOCK, 0, device->stream>>>(*l, stats, sums, updates);
    normalise<<<blocks, BLOCK, 0, device->stream>>>(*l, out, stats, in);
}

static __global__ void finish_gradients(struct batch_norm l, const struct addends *sums)
{
    uint64_t c = my_value();
    if (c < l.channels) {
        struct addends sum = sum_of_lanes(&l, sums, c);
        l.d_bias[c] = (float)sum.first;
        l.d_gain[c] = (float)sum.second;
    }
}

static __global__ void normalise_back(struct batch_norm l, float *d_in, const float *d_out,
                                      const float *in, const float *stats)
{
    uint64_t i = my_value();
    if (i < l.rows * l.channels) {
        d_in[i] = batch_norm_gradient(&l, stats, d_out[i], in[i], i % l.channels);
    }
}

void batch_norm_backward(struct device *device, const struct batch_norm *l, float *d_in,
                         const float *d_out, const float *in, const float *stats, double *scratch)
{
    struct addends *sums = (struct addends *)scratch;
    unsigned blocks = blocks_of(l->rows * l->channels);
    launch_sum_lanes(device, l, sums, in, d_out, stats);
    finish_gradients<<<blocks_of(l->channels), BLOCK, 0, device->stream>>>(*l, sums);
    normalise_back<<<blocks, BLOCK, 0, device->stream>>>(*l, d_in, d_out, in, stats);
}

/* ---- ReLU, shortcut, pooling ---- */

static __global__ void relu(float *values, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        values[i] = values[i] > 0 ? values[i] : 0;
    }
}

void relu_forward(struct device *device, float *values, uint64_t count)
{
    relu<<<blocks_of(count), BLOCK, 0, device->stream>>>(values, count);
}

static __global__ void relu_back(float *d, const float *out, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        d[i] = out[i] > 0 ? d[i] : 0;
    }
}

void relu_backward(struct device *device, float *d, const float *out, uint64_t count)
{
    relu_back<<<blocks_of(count), BLOCK, 0, device->stream>>>(d, out, count);
}

static __global__ void add_relu(float *values, const float *around, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        float sum = values[i] + around[i];
        values[i] = sum > 0 ? sum : 0;
    }
}

void add_forward(struct device *device, float *values, const float *around, uint64_t count)
{
    add_relu<<<blocks_of(count), BLOCK, 0, device->stream>>>(values, around, count);
}

/* One thread a channel of an image. */
static __global__ void mean_of_pixels(struct pool l, float *out, const float *in)
{
    uint64_t i = my_value(), pixels = (uint64_t)l.size * l.size;
    if (i < (uint64_t)l.batch * l.channels) {
        const float *x = in + i / l.channels * pixels * l.channels + i % l.channels;
        float sum = 0;
        for (uint64_t p = 0; p < pixels; p++) {
            sum += x[p * l.channels] / (float)pixels;
        }
        out[i] = sum;
    }
}

void pool_forward(struct device *device, const struct pool *l, float *out, const float *in)
{
    unsigned blocks = blocks_of((uint64_t)l->batch * l->channels);
    mean_of_pixels<<<blocks, BLOCK, 0, device->stream>>>(*l, out, in);
}

static __global__ void mean_of_pixels_back(struct pool l, float *d_in, const float *d_out)
{
    uint64_t i = my_value(), pixels = (uint64_t)l.size * l.size;
    if (i < l.batch * pixels * l.channels) {
        uint64_t image = i / l.channels / pixels;
        d_in[i] = d_out[image * l.channels + i % l.channels] / (float)pixels;
    }
}

void pool_backward(struct device *device, const struct pool *l, float *d_in, const float *d_out)
{
    unsigned blocks = blocks_of((uint64_t)l->batch * l->size * l->size * l->channels);
    mean_of_pixels_back<<<blocks, BLOCK, 0, device->stream>>>(*l, d_in, d_out);
}

/* ---- images ---- */

/* One thread a pixel. */
static __global__ void draw(struct stripes s, float *images, int32_t *labels)
{
    uint64_t i = my_value(), pixels = (uint64_t)s.size * s.size, image = i / pixels;
    if (image < s.batch) {
        struct look look = look_of(&s, s.first + image);
        draw_pixel(&s, &look, (uint32_t)(i % pixels), images + 3 * i);
        if (i % pixels == 0) {
            labels[image] = look.label;
        }
    }
}

void stripes_draw(struct device *device, const struct stripes *s, float *images, int32_t *labels)
{
    unsigned blocks = blocks_of((uint64_t)s->batch * s->size * s->size);
    draw<<<blocks, BLOCK, 0, device->stream>>>(*s, images, labels);
}
