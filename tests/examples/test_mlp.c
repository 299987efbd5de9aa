/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The example network: its gradients are those of its loss, it learns, and it computes the same
 * bits when every tensor is copied out and back between any two uses.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <atp/replay.h>

#include "assert_error.h"
#include "backends.h"
#include "layers.h"
#include "net.h"

static const struct net_config tiny = {
    .batch = 4, .width = 8, .blocks = 2, .dropout = 0.2f, .seed = 3};
static const struct net_config small = {.batch = 32,
                                        .width = 16,
                                        .blocks = 3,
                                        .dropout = 0.1f,
                                        .rate = 0.02f,
                                        .momentum = 0.9f,
                                        .seed = 5};

/* Losses of `count` iterations. */
static void train(const struct net_config *config, const struct atp_plan *plan,
                  enum atp_host_copies copies, double *out_losses, int count)
{
    struct atp_backend *backend = test_host_create(copies, 11, 50);
    struct atp_replay *replay;
    struct atp_error err;
    struct net net;
    ck_assert(net_init(&net, config));
    struct atp_replay_options options = {.step = net_step, .step_ctx = &net, .poison = true};
    assert_ok(atp_replay_open(plan, &net.model, backend, &options, &replay, &err), err);
    for (int i = 0; i < count; i++) {
        assert_ok(atp_replay_run_iteration(replay, net_step, &err), err);
        out_losses[i] = net.loss;
    }
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    net_finish(&net);
}

/* One iteration with parameter `at` moved by `delta`; the gradient too where it is wanted. */
static double loss_at(uint64_t at, float delta, float *out_gradients)
{
    struct atp_backend *backend = test_host_create(ATP_HOST_EAGER, 0, 0);
    struct atp_replay *replay;
    struct atp_error err;
    struct net net;
    ck_assert(net_init(&net, &tiny));
    for (uint64_t i = 0; i < net.parameter_count; i++) {
        net.parameters[i] += 0.1f * random_normal(77, i); /* gains and biases get a life too */
    }
    net.parameters[at] += delta;
    struct atp_replay_options options = {.step = net_step, .step_ctx = &net};
    assert_ok(atp_replay_open(NULL, &net.model, backend, &options, &replay, &err), err);
    assert_ok(atp_replay_run_iteration(replay, net_step, &err), err);
    if (out_gradients != NULL) {
        memcpy(out_gradients, net.gradients, net.parameter_count * sizeof(float));
    }
    double loss = net.loss;
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    net_finish(&net);
    return loss;
}

/* The steepest of parameters [begin, end): there a wrong gradient shows best. */
static uint64_t steepest(const float *gradients, uint64_t begin, uint64_t end)
{
    uint64_t best = begin;
    for (uint64_t i = begin; i < end; i++) {
        best = fabsf(gradients[i]) > fabsf(gradients[best]) ? i : best;
    }
    return best;
}

static void assert_slope(const float *gradients, uint64_t at, const char *name)
{
    const float delta = 5e-3f;
    double slope = (loss_at(at, delta, NULL) - loss_at(at, -delta, NULL)) / (2 * (double)delta);
    double gradient = (double)gradients[at];
    ck_assert_msg(fabs(slope) > 1e-4, "%s: parameter %llu does not matter", name,
                  (unsigned long long)at);
    ck_assert_msg(fabs(slope - gradient) < 2e-4 + 0.02 * fabs(slope),
                  "%s: parameter %llu: slope %g, gradient %g", name, (unsigned long long)at, slope,
                  gradient);
}

START_TEST(has_the_gradients_of_its_loss)
{
    struct net net;
    ck_assert(net_init(&net, &tiny));
    float *gradients = (float *)malloc(net.parameter_count * sizeof(float));
    ck_assert_ptr_nonnull(gradients);
    (void)loss_at(0, 0, gradients);
    for (uint32_t s = 0; s < net.model.step_count; s++) {
        const struct op *op = &net.ops[s];
        uint64_t weights = (op->kind == OP_NORM ? 1 : op->in_width) * (uint64_t)op->out_width;
        if (op->kind == OP_NORM || op->kind == OP_LINEAR) {
            assert_slope(gradients, steepest(gradients, op->weight, op->weight + weights),
                         op->name);
            assert_slope(gradients, steepest(gradients, op->bias, op->bias + op->out_width),
                         op->name);
        }
    }
    free(gradients);
    net_finish(&net);
}
END_TEST

START_TEST(learns)
{
    double losses[120];
    train(&small, NULL, ATP_HOST_EAGER, losses, 120);
    ck_assert(losses[0] > 1.5);
    for (int i = 110; i < 120; i++) {
        ck_assert_msg(losses[i] < 0.6 * losses[0], "iteration %d: loss %g", i, losses[i]);
    }
}
END_TEST

START_TEST(declares_what_a_planner_must_know)
{
    struct net net;
    struct atp_error err;
    uint32_t never = 0, in_place = 0, two_outputs = 0, updates = 0;
    ck_assert(net_init(&net, &small));
    assert_ok(atp_model_check(&net.model, NULL, &err), err);
    for (uint32_t s = 0; s < net.model.step_count; s++) {
        const struct atp_step *step = &net.model.steps[s];
        never += step->rerun_never;
        two_outputs += step->write_count == 2;
        updates += step->phase == ATP_PHASE_UPDATE;
        for (uint32_t i = 0; i < step->read_count; i++) {
            for (uint32_t o = 0; o < step->write_count; o++) {
                in_place += step->reads[i] == step->writes[o];
            }
        }
    }
    ck_assert_uint_eq(never, small.blocks);
    ck_assert_uint_eq(in_place, (uint64_t)3 * small.blocks);
    ck_assert_uint_eq(two_outputs, (uint64_t)2 * small.blocks + 1);
    ck_assert_uint_eq(updates, 1);
    net_finish(&net);
}
END_TEST

/* ---- a plan that copies everything out between any two uses ---- */

#define INSTRUCTIONS_MAX 4096

struct hard_plan {
    struct atp_plan plan;
    struct atp_instruction program[INSTRUCTIONS_MAX];
    enum atp_decision decisions[256];
    uint64_t places[256]; /* of every tensor, in both arenas */
    bool has_copy[256], is_input[256];
    uint32_t last_use[256];
    uint64_t live_bytes;
};

static void emit(struct hard_plan *p, enum atp_op op, uint32_t id)
{
    bool has_place = op == ATP_OP_ALLOC || op == ATP_OP_EVICT || op == ATP_OP_RESTORE;
    ck_assert_uint_lt(p->plan.instruction_count, INSTRUCTIONS_MAX);
    p->program[p->plan.instruction_count++] =
        (struct atp_instruction){.op = op, .id = id, .offset = has_place ? p->places[id] : 0};
}

static void take(struct hard_plan *p, uint32_t tensor)
{
    emit(p, p->has_copy[tensor] ? ATP_OP_RESTORE : ATP_OP_ALLOC, tensor);
    if (p->has_copy[tensor]) {
        emit(p, ATP_OP_RESTORED, tensor);
    }
    p->live_bytes += p->plan.model.tensors[tensor].bytes;
    if (p->live_bytes > p->plan.predicted.peak_bytes) {
        p->plan.predicted.peak_bytes = p->live_bytes;
    }
}

static void put(struct hard_plan *p, uint32_t tensor, uint32_t step, bool is_changed)
{
    if (p->last_use[tensor] == step || (p->has_copy[tensor] && !is_changed)) {
        emit(p, ATP_OP_FREE, tensor);
    } else {
        emit(p, ATP_OP_EVICT, tensor);
        emit(p, ATP_OP_EVICTED, tensor);
        p->has_copy[tensor] = true;
        p->decisions[tensor] = ATP_DECISION_SWAP;
    }
    p->live_bytes -= p->plan.model.tensors[tensor].bytes;
}

static bool is_read(const struct atp_step *step, uint32_t tensor)
{
    for (uint32_t i = 0; i < step->read_count; i++) {
        if (step->reads[i] == tensor) {
            return true;
        }
    }
    return false;
}

static bool is_written(const struct atp_step *step, uint32_t tensor)
{
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (step->writes[i] == tensor) {
            return true;
        }
    }
    return false;
}

static void add_step(struct hard_plan *p, uint32_t s)
{
    const struct atp_step *step = &p->plan.model.steps[s];
    uint32_t count = p->plan.model.tensor_count;
    for (uint32_t t = 0; t < count; t++) {
        if (is_read(step, t) || is_written(step, t)) {
            take(p, t);
        }
    }
    emit(p, ATP_OP_RUN, s);
    for (uint32_t t = 0; t < count; t++) {
        if (is_read(step, t) || is_written(step, t)) {
            put(p, t, s, is_written(step, t));
        }
    }
}

static struct hard_plan *make_hard_plan(const struct atp_model *model)
{
    struct hard_plan *p = (struct hard_plan *)calloc(1, sizeof(*p));
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_le(model->tensor_count, 256);
    p->plan.model = *model;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        p->is_input[t] = true;
        p->places[t] = p->plan.arena_bytes;
        p->plan.arena_bytes += (model->tensors[t].bytes + 255) / 256 * 256;
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        for (uint32_t t = 0; t < model->tensor_count; t++) {
            bool writes = is_written(&model->steps[s], t);
            p->last_use[t] = writes || is_read(&model->steps[s], t) ? s : p->last_use[t];
            p->is_input[t] = p->is_input[t] && !writes;
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (p->is_input[t]) {
            take(p, t);
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (p->is_input[t]) {
            put(p, t, ATP_NONE, true);
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        add_step(p, s);
    }
    p->plan.alignment_bytes = 256;
    p->plan.host_arena_bytes = p->plan.budget_bytes = p->plan.arena_bytes;
    p->plan.program = p->program;
    p->plan.decisions = p->decisions;
    atp_model_fingerprint(model, p->plan.fingerprint);
    return p;
}

START_TEST(computes_the_same_bits_when_everything_is_copied_out_and_back)
{
    double plain[8], planned[8];
    struct net net;
    ck_assert(net_init(&net, &small));
    struct hard_plan *hard = make_hard_plan(&net.model);
    train(&small, NULL, ATP_HOST_EAGER, plain, 8);
    train(&small, &hard->plan, (enum atp_host_copies)_i, planned, 8);
    ck_assert_mem_eq(plain, planned, sizeof(plain));
    free(hard);
    net_finish(&net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mlp");
    TCase *tests = tcase_create("mlp");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, has_the_gradients_of_its_loss);
    tcase_add_test(tests, learns);
    tcase_add_test(tests, declares_what_a_planner_must_know);
    tcase_add_loop_test(tests, computes_the_same_bits_when_everything_is_copied_out_and_back, 0, 3);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
