/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"
#include "scene.h"

#define STEP_NS ((int64_t)700)

/* Toy work on the spy's clock; runs and reruns take the same. The context is the scene. */
static enum atp_status timed_work(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    struct scene *s = (struct scene *)ctx;
    if (call->step != ATP_NONE) {
        s->spy.clock_ns += STEP_NS;
    }
    return toy_work(&s->toy, call, err);
}

static void report_scene(struct scene *s, bool with_plan, int iterations)
{
    scene_init(s, ATP_HOST_EAGER);
    s->options.report = true;
    s->options.step = timed_work;
    s->options.step_ctx = s;
    s->spy.has_clock = true;
    assert_ok(scene_open(s, with_plan), s->err);
    for (int i = 0; i < iterations; i++) {
        assert_ok(atp_replay_run_iteration(s->replay, timed_work, &s->err), s->err);
    }
}

START_TEST(measures_an_iteration_and_each_of_its_copies)
{
    struct scene s;
    struct atp_iteration_report report;
    report_scene(&s, true, 3);
    s.builder->plan.predicted.iteration_ns = 12345;
    assert_ok(atp_replay_report(s.replay, &report, &s.err), s.err);
    const struct atp_plan *plan = &s.builder->plan;
    int64_t copy_ns = 0;
    uint32_t step_count = 0, wait_count = 0;
    uint64_t evicted_bytes = 0, restored_bytes = 0;
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        enum atp_op op = plan->program[i].op;
        uint64_t bytes = plan->model.tensors[plan->program[i].id].bytes;
        step_count += op == ATP_OP_RUN || op == ATP_OP_RERUN;
        wait_count += op == ATP_OP_EVICTED || op == ATP_OP_RESTORED;
        evicted_bytes += op == ATP_OP_EVICT ? bytes : 0;
        restored_bytes += op == ATP_OP_RESTORE ? bytes : 0;
    }
    copy_ns = (int64_t)wait_count * SPY_LATENCY_NS + (int64_t)(evicted_bytes + restored_bytes);
    ck_assert_uint_eq(report.iteration, 2);
    ck_assert_int_eq(report.predicted.iteration_ns, 12345);
    ck_assert_int_eq(report.copy_ns, copy_ns);
    ck_assert_int_eq(report.iteration_ns, copy_ns + step_count * STEP_NS);
    ck_assert_int_eq(report.stall_ns, 0); /* the spy's clock stands still in waits */
    ck_assert_uint_eq(report.evicted_bytes, evicted_bytes);
    ck_assert_uint_eq(report.restored_bytes, restored_bytes);
    ck_assert_uint_eq(report.wait_count, wait_count);
    for (uint32_t w = 0; w < wait_count; w++) {
        const struct atp_instruction *at = &plan->program[report.waits[w].instruction];
        ck_assert(at->op == ATP_OP_EVICTED || at->op == ATP_OP_RESTORED);
        ck_assert_int_eq(report.waits[w].copy_ns,
                         SPY_LATENCY_NS + (int64_t)plan->model.tensors[at->id].bytes);
    }
    scene_finish(&s);
}
END_TEST

START_TEST(names_the_wait_of_each_copy)
{
    struct scene s;
    struct atp_iteration_report report;
    report_scene(&s, true, 1);
    assert_ok(atp_replay_report(s.replay, &report, &s.err), s.err);
    /* The first copy is that of `x`, and so is the first `evicted`. */
    ck_assert_uint_eq(report.waits[0].instruction,
                      plan_builder_find(s.builder, ATP_OP_EVICTED, RICH_X, 0));
    for (uint32_t w = 1; w < report.wait_count; w++) {
        for (uint32_t v = 0; v < w; v++) {
            ck_assert_uint_ne(report.waits[v].instruction, report.waits[w].instruction);
        }
    }
    scene_finish(&s);
}
END_TEST

START_TEST(reports_an_iteration_without_a_plan)
{
    struct scene s;
    struct atp_iteration_report report;
    report_scene(&s, false, 1);
    assert_ok(atp_replay_report(s.replay, &report, &s.err), s.err);
    ck_assert_uint_eq(report.wait_count, 0);
    ck_assert_int_eq(report.iteration_ns, s.toy.model->step_count * STEP_NS);
    ck_assert_int_eq(report.predicted.iteration_ns, 0);
    scene_finish(&s);
}
END_TEST

START_TEST(sees_where_compute_waits_for_slow_copies)
{
    struct atp_host_options host = {.copies = ATP_HOST_THREADS, .bytes_per_second = 20000};
    struct plan_builder *b = plan_builder_rich();
    struct atp_backend *backend;
    struct atp_replay *replay;
    struct atp_iteration_report report;
    struct atp_error err;
    struct toy toy;
    toy_init(&toy, &b->plan.model, 3);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy, .report = true};
    assert_ok(atp_backend_host_create(&host, &backend, &err), err);
    assert_ok(atp_replay_open(&b->plan, &b->plan.model, backend, &options, &replay, &err), err);
    assert_ok(atp_replay_run_iteration(replay, toy_work, &err), err);
    assert_ok(atp_replay_report(replay, &report, &err), err);
    ck_assert_int_gt(report.stall_ns, 3000000); /* a copy takes 3.2 ms, a step next to nothing */
    ck_assert_int_ge(report.iteration_ns, report.stall_ns);
    ck_assert_int_ge(report.copy_ns, 3000000 * (int64_t)report.wait_count / 2);
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    toy_finish(&toy);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(refuses_when_there_is_nothing_to_report)
{
    struct scene s;
    struct atp_iteration_report report;
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(scene_open(&s, true), s.err);
    enum atp_status status = atp_replay_report(s.replay, &report, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "without options.report");
    scene_finish(&s);
    report_scene(&s, true, 0);
    status = atp_replay_report(s.replay, &report, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "no iteration is complete");
    assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
    status = atp_replay_report(s.replay, &report, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "between two steps");
    ck_assert_int_eq(atp_replay_end_iteration(s.replay, &s.err), ATP_ERR_STATE);
    status = atp_replay_report(s.replay, &report, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "lost");
    ck_assert_ptr_null(report.waits);
    scene_finish(&s);
}
END_TEST

START_TEST(makes_no_event_for_it_unless_asked)
{
    struct scene plain, timed;
    scene_init(&plain, ATP_HOST_EAGER);
    assert_ok(scene_open(&plain, true), plain.err);
    report_scene(&timed, true, 0);
    uint32_t copy_count = 0, work_count = 0;
    for (uint32_t i = 0; i < timed.builder->plan.instruction_count; i++) {
        enum atp_op op = timed.builder->program[i].op;
        copy_count += op == ATP_OP_EVICT || op == ATP_OP_RESTORE;
        work_count += op == ATP_OP_RUN || op == ATP_OP_RERUN;
    }
    ck_assert_uint_eq(timed.spy.create_count - plain.spy.create_count,
                      2 + 4 * copy_count + 2 * work_count);
    scene_finish(&timed);
    scene_finish(&plain);
}
END_TEST

START_TEST(releases_all_when_any_call_fails)
{
    for (uint64_t n = 1, is_over = 0; !is_over; n++) {
        struct scene s;
        struct atp_iteration_report report;
        scene_init(&s, ATP_HOST_LATE);
        s.options.report = true;
        s.spy.failing = n;
        enum atp_status status = scene_open(&s, true);
        if (status == ATP_OK) {
            status = atp_replay_run_iteration(s.replay, toy_work, &s.err);
        }
        if (status == ATP_OK) {
            status = atp_replay_report(s.replay, &report, &s.err);
        }
        ck_assert(status == ATP_OK || status == ATP_ERR_DEVICE);
        is_over = status == ATP_OK;
        ck_assert(!is_over || n > 100);
        scene_finish(&s); /* asserts that nothing is left */
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        measures_an_iteration_and_each_of_its_copies,
        names_the_wait_of_each_copy,
        reports_an_iteration_without_a_plan,
        sees_where_compute_waits_for_slow_copies,
        refuses_when_there_is_nothing_to_report,
        makes_no_event_for_it_unless_asked,
        releases_all_when_any_call_fails,
    };
    return RUN_TESTS("report", tests, NULL, NULL);
}
