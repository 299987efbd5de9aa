/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The example network gpt: each layer's backward is the derivative of its forward, each parameter's
 * gradient is that of the loss, and two ranks compute together what one computes alone.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <atp/model.h>

#include "assert_error.h"
#include "gpt.h"
#include "layers.h"
#include "noise.h"
#include "run_tests.h"
#include "slopes.h"

/* ---- layers alone ---- */

#define ROWS        UINT64_C(6) /* batch 2, context 3 */
#define WIDTH       UINT64_C(8)
#define VALUES_MAX  512
#define HEAD_VALUES UINT64_C(36) /* 2 heads */

static const struct attention attention = {.batch = 2, .heads = 2, .context = 3, .head_width = 4};
static const struct dropout drop = {.rate = 0.3f, .key = 5, .first = 1000};
static const struct loss loss = {.rows = ROWS, .classes = WIDTH, .scale = 0.5f};
static const int32_t targets[ROWS] = {3, 0, 7, 7, 2, 1};

struct scratch {
    struct device *device;
    float parameters[VALUES_MAX], gradients[VALUES_MAX], more[VALUES_MAX], stats[2 * ROWS];
};

/* Fills `out` from `in`; and d_in from d_out, with all that a forward pass leaves in the scratch.
 */
struct layer_case {
    const char *name;
    uint64_t in_count, out_count;
    void (*forward)(struct scratch *s, float *out, const float *in);
    void (*backward)(struct scratch *s, float *d_in, const float *d_out, const float *in,
                     const float *out);
};

static struct linear linear(struct scratch *s)
{
    return (struct linear){.rows = ROWS,
                           .in_width = WIDTH,
                           .out_width = 5,
                           .weight = s->parameters,
                           .bias = s->parameters + WIDTH * 5,
                           .d_weight = s->gradients,
                           .d_bias = s->gradients + WIDTH * 5};
}
static void run_linear(struct scratch *s, float *out, const float *in)
{
    struct linear l = linear(s);
    linear_forward(s->device, &l, out, in);
}
static void back_linear(struct scratch *s, float *d_in, const float *d_out, const float *in,
                        const float *out)
{
    struct linear l = linear(s);
    (void)out;
    linear_backward(s->device, &l, d_in, d_out, in);
}

static struct norm norm(struct scratch *s)
{
    return (struct norm){.rows = ROWS,
                         .width = WIDTH,
                         .gain = s->parameters,
                         .bias = s->parameters + WIDTH,
                         .d_gain = s->gradients,
                         .d_bias = s->gradients + WIDTH};
}
static void run_norm(struct scratch *s, float *out, const float *in)
{
    struct norm l = norm(s);
    norm_forward(s->device, &l, out, s->stats, in);
}
static void back_norm(struct scratch *s, float *d_in, const float *d_out, const float *in,
                      const float *out)
{
    struct norm l = norm(s);
    (void)out;
    norm_backward(s->device, &l, d_in, d_out, in, s->stats, false);
}

static void run_gelu(struct scratch *s, float *out, const float *in)
{
    gelu_forward(s->device, out, in, ROWS * WIDTH);
}
static void back_gelu(struct scratch *s, float *d_in, const float *d_out, const float *in,
                      const float *out)
{
    (void)out;
    memcpy(d_in, d_out, ROWS * WIDTH * sizeof(float));
    gelu_backward(s->device, d_in, in, ROWS * WIDTH);
}

static void run_dropout(struct scratch *s, float *out, const float *in)
{
    dropout(s->device, &drop, out, in, ROWS * WIDTH);
}
static void run_residual(struct scratch *s, float *out, const float *in)
{
    residual(s->device, &drop, out, s->more, in, ROWS * WIDTH);
}
static void back_dropout(struct scratch *s, float *d_in, const float *d_out, const float *in,
                         const float *out)
{
    (void)in;
    (void)out;
    dropout(s->device, &drop, d_in, d_out, ROWS * WIDTH);
}

static void run_scores(struct scratch *s, float *out, const float *in)
{
    scores_forward(s->device, &attention, out, in);
}
static void back_scores(struct scratch *s, float *d_in, const float *d_out, const float *in,
                        const float *out)
{
    /* Values are not this layer's to fill. */
    memset(d_in, 0, ROWS * 3 * WIDTH * sizeof(float));
    memcpy(s->more, d_out, HEAD_VALUES * sizeof(float));
    scores_backward(s->device, &attention, d_in, s->more, out, in);
}

/* One array for both inputs: the scores, then qkv. */
static void run_mix(struct scratch *s, float *out, const float *in)
{
    mix_forward(s->device, &attention, out, in, in + HEAD_VALUES);
}
static void back_mix(struct scratch *s, float *d_in, const float *d_out, const float *in,
                     const float *out)
{
    (void)out;
    memset(d_in, 0, (HEAD_VALUES + ROWS * 3 * WIDTH) * sizeof(float));
    mix_backward(s->device, &attention, d_in, d_in + HEAD_VALUES, d_out, in, in + HEAD_VALUES);
}

static void run_loss(struct scratch *s, float *out, const float *in)
{
    memcpy(s->more, in, ROWS * WIDTH * sizeof(float));
    loss_forward(s->device, &loss, s->more, targets, s->stats, out);
}
static void back_loss(struct scratch *s, float *d_in, const float *d_out, const float *in,
                      const float *out)
{
    (void)in;
    (void)out;
    loss_backward(s->device, &loss, d_in, s->more, targets);
    for (uint64_t i = 0; i < ROWS * WIDTH; i++) {
        d_in[i] *= d_out[0];
    }
}

static const struct layer_case layer_cases[] = {
    {"linear", ROWS *WIDTH, ROWS * 5, run_linear, back_linear},
    {"norm", ROWS *WIDTH, ROWS *WIDTH, run_norm, back_norm},
    {"gelu", ROWS *WIDTH, ROWS *WIDTH, run_gelu, back_gelu},
    {"dropout", ROWS *WIDTH, ROWS *WIDTH, run_dropout, back_dropout},
    {"residual", ROWS *WIDTH, ROWS *WIDTH, run_residual, back_dropout},
    {"scores", ROWS * 3 * WIDTH, HEAD_VALUES, run_scores, back_scores},
    {"mix", HEAD_VALUES + ROWS * 3 * WIDTH, ROWS *WIDTH, run_mix, back_mix},
    {"loss", ROWS *WIDTH, 1, run_loss, back_loss},
};

/* The output along a fixed direction. */
static double project(const struct layer_case *c, struct scratch *s, float *out, const float *in)
{
    double sum = 0;
    c->forward(s, out, in);
    for (uint64_t i = 0; i < c->out_count; i++) {
        sum += (double)(out[i] * noise(2, i));
    }
    return sum;
}

static void assert_derivative(const struct layer_case *c)
{
    const float delta = 4e-3f;
    struct scratch s = {.device = device_open()};
    float in[VALUES_MAX], out[VALUES_MAX], d_in[VALUES_MAX], d_out[VALUES_MAX];
    ck_assert_ptr_nonnull(s.device);
    for (uint64_t i = 0; i < VALUES_MAX; i++) {
        s.parameters[i] = 1 + noise(3, i);
        s.more[i] = noise(4, i);
        in[i] = 2 * noise(1, i);
        d_out[i] = noise(2, i);
    }
    (void)project(c, &s, out, in);
    c->backward(&s, d_in, d_out, in, out);
    for (uint64_t i = 0; i < c->in_count; i++) {
        float at = in[i];
        in[i] = at + delta;
        double above = project(c, &s, out, in), step = (double)in[i];
        in[i] = at - delta;
        double below = project(c, &s, out, in);
        step -= (double)in[i];
        in[i] = at;
        double slope = (above - below) / step;
        ck_assert_msg(fabs(slope - (double)d_in[i]) < 3e-3 + 5e-3 * fabs(slope),
                      "%s: value %d: slope %g, gradient %g", c->name, (int)i, slope,
                      (double)d_in[i]);
    }
    device_close(s.device);
}

START_TEST(backward_is_the_derivative_of_forward)
{
    for (size_t i = 0; i < sizeof(layer_cases) / sizeof(layer_cases[0]); i++) {
        assert_derivative(&layer_cases[i]);
    }
}
END_TEST

START_TEST(attention_sees_no_future)
{
    struct device *device = device_open();
    float qkv[ROWS * 3 * WIDTH], p[HEAD_VALUES];
    for (uint64_t i = 0; i < ROWS * 3 * WIDTH; i++) {
        qkv[i] = noise(1, i);
    }
    scores_forward(device, &attention, p, qkv);
    for (uint64_t i = 0; i < HEAD_VALUES; i++) {
        bool is_future = i % 3 > i / 3 % 3;
        ck_assert_msg(is_future ? p[i] == 0 : p[i] > 0, "value %d is %g", (int)i, (double)p[i]);
    }
    device_close(device);
}
END_TEST

START_TEST(dropout_drops_its_rate_and_keeps_the_mean)
{
    enum { COUNT = 20000 };
    struct device *device = device_open();
    float *values = (float *)malloc(COUNT * sizeof(float));
    ck_assert_ptr_nonnull(values);
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = 1;
    }
    dropout(device, &drop, values, values, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        dropped += values[i] == 0;
        ck_assert(values[i] == 0 || fabsf(values[i] - 1 / 0.7f) < 1e-6f);
    }
    ck_assert_uint_gt(dropped, 5700);
    ck_assert_uint_lt(dropped, 6300);
    free(values);
    device_close(device);
}
END_TEST

/* ---- the network ---- */

static const struct gpt_config tiny = {.layers = 2,
                                       .heads = 2,
                                       .width = 8,
                                       .context = 6,
                                       .batch = 4,
                                       .ranks = 1,
                                       .dropout = 0.2f,
                                       .rate = 3e-3f,
                                       .decay = 0.1f,
                                       .seed = 3};
static const char text[] = "It was the best of texts, it was the worst of texts, and it was short.";

static void init(struct gpt *gpt, const struct gpt_config *config)
{
    ck_assert(gpt_init(gpt, config, text, sizeof(text) - 1));
}

/* One iteration with all tensors in memory of their own: no libatp. `updates`: or stops before. */
static double iterate(struct gpt *gpt, uint64_t iteration, bool updates)
{
    void *tensors[128] = {NULL}, *reads[USES_MAX], *writes[USES_MAX];
    uint64_t bytes = 0, workspace_bytes = 0;
    ck_assert_uint_le(gpt->model.tensor_count, 128);
    for (uint32_t s = 0; s < gpt->model.step_count; s++) {
        workspace_bytes += gpt->model.steps[s].workspace_bytes;
    }
    for (uint32_t t = 0; t < gpt->model.tensor_count; t++) {
        bytes += gpt->model.tensors[t].bytes;
    }
    ck_assert_uint_gt(bytes, 0);
    char *memory = (char *)malloc(bytes + workspace_bytes), *workspace = memory + bytes;
    ck_assert_ptr_nonnull(memory);
    char *free_bytes = memory;
    for (uint32_t t = 0; t < gpt->model.tensor_count; t++) {
        tensors[t] = free_bytes;
        free_bytes += gpt->model.tensors[t].bytes;
    }
    gpt_load_batch(gpt, iteration, tensors[GPT_TOKENS], tensors[GPT_TARGETS]);
    for (uint32_t s = 0; s < gpt->model.step_count; s++) {
        const struct atp_step *step = &gpt->model.steps[s];
        memset(reads, 0, sizeof(reads));
        memset(writes, 0, sizeof(writes));
        for (uint32_t i = 0; i < step->read_count; i++) {
            reads[i] = tensors[step->reads[i]];
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            writes[i] = tensors[step->writes[i]];
        }
        if (updates || step->phase != ATP_PHASE_UPDATE) {
            ck_assert(gpt_work(gpt, s, iteration, reads, writes, workspace));
        }
    }
    free(memory);
    return (double)gpt_loss(gpt);
}

static double loss_of_first(void *gpt)
{
    return iterate((struct gpt *)gpt, 0, false);
}

START_TEST(has_the_gradients_of_its_loss)
{
    struct gpt gpt;
    init(&gpt, &tiny);
    const struct slopes slopes = {.loss = loss_of_first,
                                  .ctx = &gpt,
                                  .values = gpt.parameters.values,
                                  .delta = 1e-2f,
                                  .least_slope = 1e-3,
                                  .absolute = 3e-4,
                                  .relative = 0.02};
    uint64_t bytes = gpt.parameter_count * sizeof(float);
    float *gradients = (float *)malloc(bytes);
    ck_assert_ptr_nonnull(gradients);
    for (uint64_t i = 0; i < gpt.parameter_count; i++) {
        gpt.parameters.values[i] += 0.3f * noise(9, i); /* gains and biases get a life too */
    }
    (void)iterate(&gpt, 0, false);
    memcpy(gradients, gpt.parameters.gradients, bytes);
    for (uint32_t s = 0; gpt.model.steps[s].phase == ATP_PHASE_FORWARD; s++) {
        struct gpt_place place = gpt_step_parameters(&gpt, s);
        const char *name = gpt.model.steps[s].name;
        if (place.weights > 0) {
            slopes_assert(&slopes, gradients, place.weight, place.weights, name);
        }
        if (place.biases > 0) {
            slopes_assert(&slopes, gradients, place.bias, place.biases, name);
        }
    }
    free(gradients);
    gpt_finish(&gpt);
}
END_TEST

START_TEST(learns)
{
    struct gpt gpt;
    double first = 0, last = 0;
    init(&gpt, &tiny);
    for (uint64_t i = 0; i < 150; i++) {
        double value = iterate(&gpt, i, true);
        first += i < 5 ? value / 5 : 0;
        last += i >= 145 ? value / 5 : 0;
    }
    ck_assert_msg(first > 5.3 && last < 3.7, "the loss went from %g to %g", first, last);
    gpt_finish(&gpt);
}
END_TEST

START_TEST(two_ranks_have_the_gradients_of_one_with_twice_the_batch)
{
    struct gpt whole, parts[2];
    struct gpt_config config = tiny;
    double sum = 0;
    init(&whole, &tiny);
    double together = iterate(&whole, 7, false);
    config.batch /= 2;
    config.ranks = 2;
    for (config.rank = 0; config.rank < 2; config.rank++) {
        init(&parts[config.rank], &config);
        sum += iterate(&parts[config.rank], 7, false);
    }
    ck_assert_double_eq_tol(sum, together, 1e-5);
    for (uint64_t i = 0; i < whole.parameter_count; i++) {
        float added = parts[0].parameters.gradients[i] + parts[1].parameters.gradients[i];
        ck_assert_msg(fabsf(added - whole.parameters.gradients[i]) < 1e-6f + 1e-4f * fabsf(added),
                      "parameter %d: %g instead of %g", (int)i, (double)added,
                      (double)whole.parameters.gradients[i]);
    }
    gpt_finish(&parts[0]);
    gpt_finish(&parts[1]);
    gpt_finish(&whole);
}
END_TEST

START_TEST(declares_what_a_planner_must_know)
{
    struct gpt gpt;
    struct atp_error err;
    struct gpt_config config = tiny;
    uint32_t never = 0, in_place = 0, workspaces = 0, phases[3] = {0};
    config.ranks = 2;
    init(&gpt, &config);
    assert_ok(atp_model_check(&gpt.model, NULL, &err), err);
    for (uint32_t s = 0; s < gpt.model.step_count; s++) {
        const struct atp_step *step = &gpt.model.steps[s];
        never += step->rerun_never;
        workspaces += step->workspace_bytes > 0;
        phases[step->phase]++;
        for (uint32_t i = 0; i < step->read_count; i++) {
            for (uint32_t o = 0; o < step->write_count; o++) {
                in_place += step->reads[i] == step->writes[o];
            }
        }
    }
    ck_assert_uint_eq(never, 1); /* the all-reduce */
    ck_assert_uint_eq(workspaces, 1);
    ck_assert_uint_eq(in_place, 1 + 6 * config.layers);
    ck_assert_uint_eq(phases[ATP_PHASE_FORWARD], 4 + 12 * config.layers);
    ck_assert_uint_eq(phases[ATP_PHASE_BACKWARD], 4 + 12 * config.layers);
    ck_assert_uint_eq(phases[ATP_PHASE_UPDATE], 2);
    gpt_finish(&gpt);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {backward_is_the_derivative_of_forward,
                                  attention_sees_no_future,
                                  dropout_drops_its_rate_and_keeps_the_mean,
                                  has_the_gradients_of_its_loss,
                                  learns,
                                  two_ranks_have_the_gradients_of_one_with_twice_the_batch,
                                  declares_what_a_planner_must_know};
    return RUN_TESTS("gpt", tests, NULL, NULL);
}
