/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The example network resnet: each parameter's gradient is that of the loss, and a normalisation
 * that runs again leaves its running statistics alone.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <atp/model.h>

#include "assert_error.h"
#include "noise.h"
#include "resnet.h"
#include "run_tests.h"
#include "slopes.h"

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
        has_the_gradients_of_its_loss,
        learns,
        a_rerun_of_any_step_changes_neither_running_statistics_nor_outputs,
        images_are_of_all_classes_and_the_same_for_the_same_number,
        declares_what_a_planner_must_know,
    };
    return RUN_TESTS("resnet", tests, NULL, NULL);
}
