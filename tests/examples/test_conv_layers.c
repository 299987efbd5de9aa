/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The layers of examples/resnet: each one's backward is the derivative of its forward, and a
 * normalisation moves its running statistics when it is told to.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "conv_layers.h"
#include "noise.h"
#include "run_tests.h"

static struct device *device;

static void set_up(void)
{
    device = device_open();
    ck_assert_ptr_nonnull(device);
}

static void tear_down(void)
{
    ck_assert_ptr_null(device_failure(device));
    device_close(device);
}

#define VALUES_MAX  1024
#define SCRATCH_MAX (4 << 20) /* bytes */

static double scratch[SCRATCH_MAX / sizeof(double)];
static float out[VALUES_MAX], d_out[VALUES_MAX];

/* Of the layer's output along the fixed direction d_out. */
typedef double (*project_fn)(const void *layer, const float *in);

static double along(uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)out[i] * (double)d_out[i];
    }
    return sum;
}

static void fill(float *values, uint64_t key, uint64_t count)
{
    ck_assert_uint_le(count, VALUES_MAX);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = noise(key, i);
    }
}

/* `values`: part of what `project` reads; `gradient`: of the projection by these values. */
static void assert_gradient(const char *name, project_fn project, const void *layer,
                            const float *in, float *values, const float *gradient, uint64_t count)
{
    const float delta = 4e-3f;
    double steepest = 0;
    for (uint64_t i = 0; i < count; i++) {
        float at = values[i];
        values[i] = at + delta;
        double above = project(layer, in), step = (double)values[i];
        values[i] = at - delta;
        double below = project(layer, in);
        step -= (double)values[i];
        values[i] = at;
        double slope = (above - below) / step;
        steepest = fabs(slope) > steepest ? fabs(slope) : steepest;
        ck_assert_msg(fabs(slope - (double)gradient[i]) < 3e-3 + 5e-3 * fabs(slope),
                      "%s: value %d: slope %g, gradient %g", name, (int)i, slope,
                      (double)gradient[i]);
    }
    ck_assert_msg(steepest > 0.1, "%s: nothing matters", name);
}

static uint64_t conv_in_values(const struct conv *l)
{
    return (uint64_t)l->batch * l->in_size * l->in_size * l->in_channels;
}

static uint64_t conv_out_values(const struct conv *l)
{
    uint64_t size = l->in_size / l->stride;
    return l->batch * size * size * l->out_channels;
}

static double project_conv(const void *layer, const float *in)
{
    const struct conv *l = (const struct conv *)layer;
    conv_forward(device, l, out, in, (float *)scratch);
    return along(conv_out_values(l));
}

/* More pixels than one lane takes at a time, in the first; strides and kernels of all kinds. */
static const struct conv convs[] = {
    {.batch = 2, .in_size = 6, .in_channels = 3, .out_channels = 4, .kernel = 3, .stride = 1},
    {.batch = 2, .in_size = 6, .in_channels = 4, .out_channels = 5, .kernel = 3, .stride = 2},
    {.batch = 3, .in_size = 4, .in_channels = 5, .out_channels = 3, .kernel = 1, .stride = 2},
    {.batch = 1, .in_size = 8, .in_channels = 2, .out_channels = 2, .kernel = 5, .stride = 1},
    {.batch = 1, .in_size = 2, .in_channels = 1, .out_channels = 2, .kernel = 3, .stride = 1},
};

struct conv_case {
    struct conv layer;
    float in[VALUES_MAX], weight[VALUES_MAX], d_in[VALUES_MAX], d_weight[VALUES_MAX];
};

static void init_conv(struct conv_case *c, const struct conv *shape)
{
    c->layer = *shape;
    c->layer.weight = c->weight;
    c->layer.d_weight = c->d_weight;
    ck_assert_uint_le(conv_forward_scratch(&c->layer), SCRATCH_MAX);
    ck_assert_uint_le(conv_backward_scratch(&c->layer), SCRATCH_MAX);
    fill(c->in, 1, conv_in_values(shape));
    fill(c->weight, 2, conv_weights(shape));
    fill(d_out, 3, conv_out_values(shape));
    /* To be overwritten: */
    fill(c->d_in, 4, conv_in_values(shape));
    fill(c->d_weight, 5, conv_weights(shape));
    fill(out, 6, conv_out_values(shape));
}

#define FOR_EACH_CONV(c)                                                                           \
    for (size_t at = 0; at < sizeof(convs) / sizeof(convs[0]) && (init_conv((c), &convs[at]), 1);  \
         at++)

START_TEST(convolution_has_the_gradients_of_its_output)
{
    struct conv_case c;
    const struct conv *l = &c.layer;
    FOR_EACH_CONV(&c)
    {
        conv_backward(device, l, c.d_in, d_out, c.in, false, (float *)scratch);
        assert_gradient("in", project_conv, l, c.in, c.in, c.d_in, conv_in_values(l));
        assert_gradient("weight", project_conv, l, c.in, c.weight, c.d_weight, conv_weights(l));
    }
}
END_TEST

/* The definition, pixel by pixel. */
static double convolve_at(const struct conv *l, const float *in, uint64_t index)
{
    int64_t size = l->in_size / l->stride, reach = l->kernel / 2, in_size = l->in_size;
    int64_t channels = l->in_channels, o = (int64_t)index % l->out_channels;
    int64_t pixel = (int64_t)index / l->out_channels;
    int64_t n = pixel / size / size, y = pixel / size % size, x = pixel % size;
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)l->kernel * l->kernel * channels; i++) {
        int64_t c = i % channels, place = i / channels;
        int64_t from_y = y * l->stride + place / l->kernel - reach;
        int64_t from_x = x * l->stride + place % l->kernel - reach;
        if (from_y >= 0 && from_y < in_size && from_x >= 0 && from_x < in_size) {
            int64_t at = ((n * in_size + from_y) * in_size + from_x) * channels + c;
            sum += (double)in[at] * (double)l->weight[o * l->kernel * l->kernel * channels + i];
        }
    }
    return sum;
}

START_TEST(convolution_is_what_its_definition_says)
{
    struct conv_case c;
    FOR_EACH_CONV(&c)
    {
        conv_forward(device, &c.layer, out, c.in, (float *)scratch);
        for (uint64_t i = 0; i < conv_out_values(&c.layer); i++) {
            ck_assert_double_eq_tol((double)out[i], convolve_at(&c.layer, c.in, i), 1e-5);
        }
    }
}
END_TEST

START_TEST(convolution_adds_its_gradient_where_it_is_told_to)
{
    struct conv_case c;
    float sum[VALUES_MAX];
    FOR_EACH_CONV(&c)
    {
        uint64_t count = conv_in_values(&c.layer);
        fill(sum, 7, count);
        conv_backward(device, &c.layer, c.d_in, d_out, c.in, false, (float *)scratch);
        conv_backward(device, &c.layer, sum, d_out, c.in, true, (float *)scratch);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_float_eq_tol(sum[i], noise(7, i) + c.d_in[i], 1e-5f);
        }
    }
}
END_TEST

START_TEST(convolution_of_images_needs_no_gradient_of_them)
{
    struct conv_case c;
    float d_weight[VALUES_MAX];
    FOR_EACH_CONV(&c)
    {
        conv_backward(device, &c.layer, c.d_in, d_out, c.in, false, (float *)scratch);
        memcpy(d_weight, c.d_weight, sizeof(d_weight));
        fill(c.d_weight, 8, conv_weights(&c.layer));
        conv_backward(device, &c.layer, NULL, d_out, c.in, false, (float *)scratch);
        ck_assert_mem_eq(d_weight, c.d_weight, conv_weights(&c.layer) * sizeof(float));
    }
}
END_TEST

/* More pixels than any device takes at a time: a batch of two images, and each of them alone. */
#define LARGE_SIZE 128
#define LARGE_IN   (UINT64_C(4) * LARGE_SIZE * LARGE_SIZE)
#define LARGE_OUT  (UINT64_C(3) * LARGE_SIZE * LARGE_SIZE)
#define LARGE_SUM  (UINT64_C(3) * 3 * 3 * 4) /* weights */

struct large {
    float in[2 * LARGE_IN], d_out[2 * LARGE_OUT], weight[LARGE_SUM];
    float out[2 * LARGE_OUT], d_in[2 * LARGE_IN], d_weight[LARGE_SUM];
    float out_alone[2 * LARGE_OUT], d_in_alone[2 * LARGE_IN], d_weight_alone[2][LARGE_SUM];
};

static void assert_near(const float *values, const float *expected, uint64_t count, float tolerance)
{
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_float_eq_tol(values[i], expected[i], tolerance);
    }
}

START_TEST(convolution_of_a_batch_is_that_of_its_images)
{
    static struct large s;
    struct conv l = {.batch = 2,
                     .in_size = LARGE_SIZE,
                     .in_channels = 4,
                     .out_channels = 3,
                     .kernel = 3,
                     .stride = 1,
                     .weight = s.weight,
                     .d_weight = s.d_weight};
    for (uint64_t i = 0; i < 2 * LARGE_IN; i++) {
        s.in[i] = noise(1, i);
        s.d_out[i % (2 * LARGE_OUT)] = noise(2, i);
        s.weight[i % LARGE_SUM] = noise(3, i);
    }
    conv_forward(device, &l, s.out, s.in, (float *)scratch);
    conv_backward(device, &l, s.d_in, s.d_out, s.in, false, (float *)scratch);
    l.batch = 1;
    for (uint64_t i = 0; i < 2; i++) {
        const float *in = s.in + i * LARGE_IN, *dy = s.d_out + i * LARGE_OUT;
        l.d_weight = s.d_weight_alone[i];
        conv_forward(device, &l, s.out_alone + i * LARGE_OUT, in, (float *)scratch);
        conv_backward(device, &l, s.d_in_alone + i * LARGE_IN, dy, in, false, (float *)scratch);
    }
    for (uint64_t i = 0; i < LARGE_SUM; i++) {
        s.d_weight_alone[0][i] += s.d_weight_alone[1][i];
    }
    assert_near(s.out, s.out_alone, 2 * LARGE_OUT, 1e-5f);
    assert_near(s.d_in, s.d_in_alone, 2 * LARGE_IN, 1e-5f);
    assert_near(s.d_weight, s.d_weight_alone[0], LARGE_SUM, 1e-2f);
}
END_TEST

#define ROWS     UINT64_C(21)
#define CHANNELS UINT64_C(5)

struct norm_case {
    struct batch_norm layer;
    float parameters[2 * CHANNELS], gradients[2 * CHANNELS], running[2 * CHANNELS];
    float in[ROWS * CHANNELS], d_in[ROWS * CHANNELS], stats[2 * CHANNELS];
};

static void init_norm(struct norm_case *n)
{
    n->layer = (struct batch_norm){.rows = ROWS,
                                   .channels = CHANNELS,
                                   .momentum = 0.25f,
                                   .gain = n->parameters,
                                   .bias = n->parameters + CHANNELS,
                                   .d_gain = n->gradients,
                                   .d_bias = n->gradients + CHANNELS,
                                   .running = n->running};
    fill(n->parameters, 1, 2 * CHANNELS);
    fill(n->running, 2, 2 * CHANNELS);
    fill(d_out, 3, ROWS * CHANNELS);
    for (uint64_t i = 0; i < ROWS * CHANNELS; i++) {
        n->in[i] = 3 * noise(4, i) + (float)(i % CHANNELS);
    }
    ck_assert_uint_le(batch_norm_scratch(&n->layer), SCRATCH_MAX);
}

static double project_norm(const void *layer, const float *in)
{
    const struct batch_norm *l = (const struct batch_norm *)layer;
    float stats[2 * CHANNELS];
    batch_norm_forward(device, l, out, stats, in, false, scratch);
    return along(ROWS * CHANNELS);
}

START_TEST(normalisation_has_the_gradients_of_its_output)
{
    struct norm_case n;
    init_norm(&n);
    batch_norm_forward(device, &n.layer, out, n.stats, n.in, false, scratch);
    batch_norm_backward(device, &n.layer, n.d_in, d_out, n.in, n.stats, scratch);
    assert_gradient("in", project_norm, &n.layer, n.in, n.in, n.d_in, ROWS * CHANNELS);
    assert_gradient("gain and bias", project_norm, &n.layer, n.in, n.parameters, n.gradients,
                    2 * CHANNELS);
}
END_TEST

START_TEST(normalisation_may_turn_its_gradient_in_place)
{
    struct norm_case n;
    init_norm(&n);
    batch_norm_forward(device, &n.layer, out, n.stats, n.in, false, scratch);
    batch_norm_backward(device, &n.layer, n.d_in, d_out, n.in, n.stats, scratch);
    batch_norm_backward(device, &n.layer, d_out, d_out, n.in, n.stats, scratch);
    ck_assert_mem_eq(d_out, n.d_in, sizeof(n.d_in));
}
END_TEST

START_TEST(running_statistics_move_by_the_momentum_and_only_when_told_to)
{
    struct norm_case n;
    float first[ROWS * CHANNELS];
    init_norm(&n);
    batch_norm_forward(device, &n.layer, first, n.stats, n.in, true, scratch);
    for (uint64_t c = 0; c < CHANNELS; c++) {
        double mean = 0, variance = 0;
        for (uint64_t r = 0; r < ROWS; r++) {
            mean += (double)n.in[r * CHANNELS + c] / (double)ROWS;
        }
        for (uint64_t r = 0; r < ROWS; r++) {
            double off = (double)n.in[r * CHANNELS + c] - mean;
            variance += off * off / (double)(ROWS - 1);
        }
        double was_mean = (double)noise(2, c), was_variance = (double)noise(2, CHANNELS + c);
        ck_assert_double_eq_tol((double)n.running[c], 0.75 * was_mean + 0.25 * mean, 1e-6);
        ck_assert_double_eq_tol((double)n.running[CHANNELS + c],
                                0.75 * was_variance + 0.25 * variance, 1e-5);
    }
    float kept[2 * CHANNELS];
    memcpy(kept, n.running, sizeof(kept));
    batch_norm_forward(device, &n.layer, out, n.stats, n.in, false, scratch);
    ck_assert_mem_eq(kept, n.running, sizeof(kept));
    ck_assert_mem_eq(first, out, sizeof(first));
}
END_TEST

START_TEST(the_small_layers_have_the_gradients_of_their_output)
{
    const struct pool pool = {.batch = 2, .size = 3, .channels = 4};
    float values[72], around[72], d[72], mean[8];
    fill(values, 1, 72);
    fill(around, 2, 72);
    for (int i = 0; i < 72; i++) {
        out[i] = values[i];
        d[i] = noise(3, (uint64_t)i);
    }
    add_forward(device, out, around, 72);
    relu_backward(device, d, out, 72);
    for (int i = 0; i < 72; i++) {
        float sum = values[i] + around[i];
        ck_assert_float_eq(out[i], sum > 0 ? sum : 0);
        ck_assert_float_eq(d[i], sum > 0 ? noise(3, (uint64_t)i) : 0);
    }
    memcpy(out, values, sizeof(values));
    relu_forward(device, out, 72);
    pool_forward(device, &pool, mean, values);
    pool_backward(device, &pool, d, mean);
    for (int i = 0; i < 72; i++) {
        double sum = 0;
        for (int p = 0; p < 9; p++) {
            sum += (double)values[i / 36 * 36 + 4 * p + i % 4];
        }
        ck_assert_float_eq(out[i], values[i] > 0 ? values[i] : 0);
        ck_assert_double_eq_tol((double)d[i], sum / 81, 1e-6);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        convolution_has_the_gradients_of_its_output,
        convolution_is_what_its_definition_says,
        convolution_adds_its_gradient_where_it_is_told_to,
        convolution_of_images_needs_no_gradient_of_them,
        convolution_of_a_batch_is_that_of_its_images,
        normalisation_has_the_gradients_of_its_output,
        normalisation_may_turn_its_gradient_in_place,
        running_statistics_move_by_the_momentum_and_only_when_told_to,
        the_small_layers_have_the_gradients_of_their_output,
    };
    return RUN_TESTS("conv_layers", tests, set_up, tear_down);
}
