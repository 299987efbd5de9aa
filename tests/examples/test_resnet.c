/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The example network resnet: each layer's backward is the derivative of its forward, each
 * parameter's gradient is that of the loss, and a normalisation that runs again leaves its running
 * statistics alone.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <atp/model.h>

#include "assert_error.h"
#include "conv_layers.h"
#include "counter_random.h"
#include "layers.h"
#include "resnet.h"
#include "run_tests.h"
#include "slopes.h"

/* In (-1, 1). */
static float noise(uint64_t key, uint64_t i)
{
    return 2 * random_uniform(key, i) - 1;
}

static struct device *device; /* of the layers alone: a network has its own */

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

/* ---- layers alone ---- */

#define VALUES_MAX  1024
#define SCRATCH_MAX 200000 /* bytes */

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

/* ---- the network ---- */

static const struct resnet_config tiny = {
    .blocks = 2, .width = 4, .image = 8, .batch = 4, .rate = 5e-3f, .decay = 0.05f, .seed = 3};

#define TENSORS_MAX 128

/* All tensors in memory of their own: no libatp. */
struct run {
    struct resnet net;
    void *tensors[TENSORS_MAX], *workspace;
};

static void init(struct run *run, const struct resnet_config *config)
{
    uint64_t workspace_bytes = 0;
    *run = (struct run){0};
    ck_assert(resnet_init(&run->net, config));
    const struct atp_model *model = &run->net.model;
    ck_assert_uint_le(model->tensor_count, TENSORS_MAX);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        run->tensors[t] = malloc(model->tensors[t].bytes);
        ck_assert_ptr_nonnull(run->tensors[t]);
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        uint64_t bytes = model->steps[s].workspace_bytes;
        workspace_bytes = bytes > workspace_bytes ? bytes : workspace_bytes;
    }
    ck_assert_uint_gt(workspace_bytes, 0);
    run->workspace = malloc(workspace_bytes);
    ck_assert_ptr_nonnull(run->workspace);
}

static void finish(struct run *run)
{
    for (uint32_t t = 0; t < run->net.model.tensor_count; t++) {
        free(run->tensors[t]);
    }
    free(run->workspace);
    resnet_finish(&run->net);
}

static void work(struct run *run, uint32_t s, uint64_t iteration, bool is_rerun)
{
    const struct atp_step *step = &run->net.model.steps[s];
    struct work work = {
        .step = s, .is_rerun = is_rerun, .iteration = iteration, .workspace = run->workspace};
    for (uint32_t i = 0; i < step->read_count; i++) {
        work.reads[i] = run->tensors[step->reads[i]];
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        work.writes[i] = run->tensors[step->writes[i]];
    }
    resnet_work(&run->net, &work);
}

/* `updates`: or stops before. */
static double iterate(struct run *run, uint64_t iteration, bool updates)
{
    resnet_load_batch(&run->net, iteration, run->tensors[RESNET_IMAGES],
                      run->tensors[RESNET_LABELS]);
    for (uint32_t s = 0; s < run->net.model.step_count; s++) {
        if (updates || run->net.model.steps[s].phase != ATP_PHASE_UPDATE) {
            work(run, s, iteration, false);
        }
    }
    return (double)resnet_loss(&run->net);
}

static double loss_of_first(void *run)
{
    return iterate((struct run *)run, 0, false);
}

START_TEST(has_the_gradients_of_its_loss)
{
    struct run run;
    init(&run, &tiny);
    /* Kinks of ReLU within delta leave some percent. */
    const struct slopes slopes = {.loss = loss_of_first,
                                  .ctx = &run,
                                  .values = run.net.parameters.values,
                                  .delta = 2e-3f,
                                  .least_slope = 1e-2,
                                  .absolute = 1e-3,
                                  .relative = 0.05};
    uint64_t bytes = run.net.parameter_count * sizeof(float);
    float *gradients = (float *)malloc(bytes);
    ck_assert_ptr_nonnull(gradients);
    for (uint64_t i = 0; i < run.net.parameter_count; i++) {
        run.net.parameters.values[i] += 0.2f * noise(9, i); /* gains and biases get a life too */
    }
    (void)iterate(&run, 0, false);
    memcpy(gradients, run.net.parameters.gradients, bytes);
    for (uint32_t s = 0; run.net.model.steps[s].phase == ATP_PHASE_FORWARD; s++) {
        struct resnet_place place = resnet_step_place(&run.net, s);
        const char *name = run.net.model.steps[s].name;
        if (place.weights > 0) {
            slopes_assert(&slopes, gradients, place.weight, place.weights, name);
        }
        if (place.biases > 0) {
            slopes_assert(&slopes, gradients, place.bias, place.biases, name);
        }
    }
    free(gradients);
    finish(&run);
}
END_TEST

START_TEST(learns)
{
    struct run run;
    double first = 0, last = 0;
    struct resnet_config config = tiny;
    config.image = 16;
    config.batch = 16;
    init(&run, &config);
    for (uint64_t i = 0; i < 80; i++) {
        double value = iterate(&run, i, true);
        first += i < 5 ? value / 5 : 0;
        last += i >= 75 ? value / 5 : 0;
    }
    ck_assert_msg(first > 1.8 && last < 0.9, "the loss went from %g to %g", first, last);
    finish(&run);
}
END_TEST

/* Forward steps once as they are, then each again: nothing that a rerun may change. */
START_TEST(a_rerun_of_any_step_changes_neither_running_statistics_nor_outputs)
{
    struct run run;
    uint32_t norms = 0;
    init(&run, &tiny);
    uint64_t before = resnet_running_digest(&run.net);
    resnet_load_batch(&run.net, 0, run.tensors[RESNET_IMAGES], run.tensors[RESNET_LABELS]);
    for (uint32_t s = 0; run.net.model.steps[s].phase == ATP_PHASE_FORWARD; s++) {
        const struct atp_step *step = &run.net.model.steps[s];
        uint64_t bytes = run.net.model.tensors[step->writes[0]].bytes;
        work(&run, s, 0, false);
        if (resnet_step_place(&run.net, s).runnings == 0) {
            ck_assert_uint_eq(resnet_running_digest(&run.net), before);
            continue;
        }
        uint64_t after = resnet_running_digest(&run.net);
        void *copy = malloc(bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, run.tensors[step->writes[0]], bytes);
        ck_assert_uint_ne(after, before);
        work(&run, s, 0, true);
        ck_assert_uint_eq(resnet_running_digest(&run.net), after);
        ck_assert_mem_eq(copy, run.tensors[step->writes[0]], bytes);
        free(copy);
        before = after;
        norms++;
    }
    ck_assert_uint_eq(norms, 1 + 2 * RESNET_STAGES * tiny.blocks + 2);
    finish(&run);
}
END_TEST

START_TEST(images_are_of_all_classes_and_the_same_for_the_same_number)
{
    struct run run;
    bool seen[RESNET_CLASSES] = {false};
    init(&run, &tiny);
    uint64_t count = UINT64_C(4) * 8 * 8 * 3, bytes = count * sizeof(float);
    float *images = (float *)run.tensors[RESNET_IMAGES], *copy = (float *)malloc(bytes);
    int32_t *labels = (int32_t *)run.tensors[RESNET_LABELS];
    ck_assert_ptr_nonnull(copy);
    for (uint64_t iteration = 0; iteration < 20; iteration++) {
        resnet_load_batch(&run.net, iteration, images, labels);
        for (int i = 0; i < 4; i++) {
            ck_assert_int_ge(labels[i], 0);
            ck_assert_int_lt(labels[i], RESNET_CLASSES);
            seen[labels[i]] = true;
        }
        for (uint64_t i = 0; i < count; i++) {
            ck_assert(fabsf(images[i]) <= 1.5f);
        }
    }
    memcpy(copy, images, bytes);
    resnet_load_batch(&run.net, 18, images, labels);
    ck_assert_mem_ne(copy, images, bytes);
    resnet_load_batch(&run.net, 19, images, labels);
    ck_assert_mem_eq(copy, images, bytes);
    for (int i = 0; i < RESNET_CLASSES; i++) {
        ck_assert(seen[i]);
    }
    free(copy);
    finish(&run);
}
END_TEST

START_TEST(declares_what_a_planner_must_know)
{
    struct run run;
    struct atp_error err;
    uint32_t workspaces = 0, phases[3] = {0}, blocks = RESNET_STAGES * tiny.blocks;
    init(&run, &tiny);
    const struct atp_model *model = &run.net.model;
    assert_ok(atp_model_check(model, NULL, &err), err);
    for (uint32_t s = 0; s < model->step_count; s++) {
        ck_assert(!model->steps[s].rerun_never);
        workspaces += model->steps[s].workspace_bytes > 0;
        phases[model->steps[s].phase]++;
    }
    /* Two blocks halve: a convolution and a norm more. */
    ck_assert_uint_eq(phases[ATP_PHASE_FORWARD], 6 + 6 * blocks + 2 * 2);
    ck_assert_uint_eq(phases[ATP_PHASE_BACKWARD], 6 + 6 * blocks + 2 * 2);
    ck_assert_uint_eq(phases[ATP_PHASE_UPDATE], 1);
    ck_assert_uint_eq(workspaces, 2 * (2 + 4 * blocks + 2 * 2) + 1);
    ck_assert_uint_eq(model->tensor_count, 9 + RESNET_STAGES + 8 * blocks + 3 * 2);
    finish(&run);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        convolution_has_the_gradients_of_its_output,
        convolution_is_what_its_definition_says,
        convolution_adds_its_gradient_where_it_is_told_to,
        convolution_of_images_needs_no_gradient_of_them,
        normalisation_has_the_gradients_of_its_output,
        normalisation_may_turn_its_gradient_in_place,
        running_statistics_move_by_the_momentum_and_only_when_told_to,
        the_small_layers_have_the_gradients_of_their_output,
        has_the_gradients_of_its_loss,
        learns,
        a_rerun_of_any_step_changes_neither_running_statistics_nor_outputs,
        images_are_of_all_classes_and_the_same_for_the_same_number,
        declares_what_a_planner_must_know,
    };
    return RUN_TESTS("resnet", tests, set_up, tear_down);
}
