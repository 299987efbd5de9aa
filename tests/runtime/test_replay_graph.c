/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Iterations launched as one graph by the CUDA backend on the fake driver: the bytes of the plain
 * iteration, no race along the graph's edges, and a clear status where there can be no graph.
 *
 * ATP_CHAOS_ITERATIONS and ATP_CHAOS_SEED in the environment make the chaos longer and other.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "assert_error.h"
#include "backends.h"
#include "fake_rig.h"
#include "random.h"
#include "random_plan.h"
#include "run_tests.h"

static void capture(struct rig *r)
{
    assert_ok(atp_replay_capture(r->replay, &r->err), r->err);
}

/* Every launch gives the bytes of the plain iteration, and so do the iterations around it. */
static void expect_right(const struct plan_builder *b, uint32_t launches,
                         const struct fake_options *options)
{
    uint64_t expected = rig_plain_digest(&b->plan.model);
    struct rig r;
    rig_start(&r, &b->plan.model, options);
    assert_ok(rig_open(&r, &b->plan), r.err);
    rig_iterate(&r, 1);
    capture(&r);
    rig_iterate(&r, launches);
    rig_close(&r);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), expected);
    ck_assert_uint_eq(r.kernels.toy.run_count, (uint64_t)(launches + 1) * b->plan.model.step_count);
    rig_finish_clean(&r);
}

/* ---- the bytes ---- */

START_TEST(gives_every_step_the_bytes_of_the_plain_iteration)
{
    struct plan_builder *b = plan_builder_rich();
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct fake_options options = {.seed = seed, .delay_max_us = 300};
        expect_right(b, 3, &options);
    }
    plan_builder_destroy(b);
}
END_TEST

START_TEST(keeps_random_plans_right_at_any_timing)
{
    uint64_t seed = rig_setting("ATP_CHAOS_SEED", 1), done = 0;
    uint64_t wanted = rig_setting("ATP_CHAOS_ITERATIONS", 400);
    struct random random = {seed};
    while (done < wanted) {
        uint64_t plan_seed = random_next(&random);
        struct plan_builder *b = random_plan(plan_seed, 2 + random_below(&random, 12));
        uint32_t launches = 2 + random_below(&random, 5);
        struct fake_options options = {.seed = plan_seed,
                                       .delay_max_us = random_below(&random, 3) * 100};
        expect_right(b, launches, &options);
        plan_builder_destroy(b);
        done += launches;
    }
    (void)printf("%" PRIu64 " launches of random plans from seed %" PRIu64
                 ": right bytes, no race\n",
                 done, seed);
}
END_TEST

START_TEST(captures_the_plain_iteration_too)
{
    struct plan_builder *b = plan_builder_rich();
    struct rig r;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(rig_open(&r, NULL), r.err);
    capture(&r);
    rig_iterate(&r, 2);
    rig_close(&r);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), rig_plain_digest(&b->plan.model));
    rig_finish_clean(&r);
    plan_builder_destroy(b);
}
END_TEST

/* Launches, steps of the caller's own loop, a second capture: in any order. */
START_TEST(goes_with_iterations_step_by_step_and_with_another_capture)
{
    struct plan_builder *b = plan_builder_rich();
    struct fake_options options = {.seed = 5, .delay_max_us = 200};
    struct atp_step_call call;
    struct rig r;
    rig_start(&r, &b->plan.model, &options);
    assert_ok(rig_open(&r, &b->plan), r.err);
    for (int round = 0; round < 3; round++) {
        capture(&r);
        rig_iterate(&r, 2);
        assert_ok(atp_replay_begin_iteration(r.replay, &r.err), r.err);
        call = (struct atp_step_call){.replay = r.replay, .step = ATP_NONE};
        call.stream = r.options.compute_stream;
        for (uint32_t s = 0; s < b->plan.model.step_count; s++) {
            assert_ok(atp_replay_begin_step(r.replay, s, &call, &r.err), r.err);
            if (s == 0) { /* the inputs, late: nothing has read them yet */
                struct atp_step_call inputs = call;
                inputs.step = ATP_NONE;
                assert_ok(fake_kernels_step(&r.kernels, &inputs, &r.err), r.err);
            }
            ck_assert(!call.is_capture);
            ck_assert_uint_eq(call.iteration, (uint64_t)round * 3 + 2);
            assert_ok(fake_kernels_step(&r.kernels, &call, &r.err), r.err);
            assert_ok(atp_replay_end_step(r.replay, s, &r.err), r.err);
        }
        assert_ok(atp_replay_end_iteration(r.replay, &r.err), r.err);
    }
    rig_close(&r);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), rig_plain_digest(&b->plan.model));
    rig_finish(&r);
    ck_assert_msg(r.kernels.late.status == ATP_OK, "%s", r.kernels.late.text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(costs_one_launch_an_iteration)
{
    static const char *const calls[] = {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync",
                                        "cuMemsetD8Async",   "cuEventRecord",
                                        "cuStreamWaitEvent", "cuStreamSynchronize"};
    enum { COUNT = sizeof(calls) / sizeof(calls[0]) };
    struct plan_builder *b = plan_builder_rich();
    uint64_t before[COUNT];
    struct rig r;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(rig_open(&r, &b->plan), r.err);
    capture(&r);
    for (int i = 0; i < COUNT; i++) {
        before[i] = fake_cuda_calls(calls[i]);
    }
    rig_iterate(&r, 4);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_msg(fake_cuda_calls(calls[i]) == before[i], "%s", calls[i]);
    }
    ck_assert_uint_eq(fake_cuda_calls("cuGraphLaunch"), 4);
    rig_finish_clean(&r);
    plan_builder_destroy(b);
}
END_TEST

/* ---- what the waits are for ---- */

/* With any wait lost, the driver refuses the capture, or a launch is a race, or nothing was lost:
 * then the bytes are right. */
START_TEST(never_launches_wrong_bytes_where_a_wait_is_lost)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t expected = rig_plain_digest(&b->plan.model);
    uint32_t refused_count = 0, race_count = 0, harmless_count = 0;
    for (uint64_t wait = 1; wait <= 18; wait++) {
        struct fake_options options = {.seed = wait, .lost_wait = wait};
        struct rig r;
        rig_start(&r, &b->plan.model, &options);
        assert_ok(rig_open(&r, &b->plan), r.err);
        enum atp_status status = atp_replay_capture(r.replay, &r.err);
        if (status != ATP_OK) {
            ck_assert_int_eq(status, ATP_ERR_UNSUPPORTED);
            ck_assert_ptr_nonnull(strstr(r.err.text, "CUDA_ERROR_STREAM_CAPTURE_"));
            refused_count++;
        }
        rig_iterate(&r, 2);
        rig_close(&r);
        uint64_t digest = toy_digest(&r.kernels.toy);
        rig_finish(&r);
        if (status == ATP_OK && r.report.total == 0) {
            ck_assert_uint_eq(digest, expected);
            harmless_count++;
        } else if (status == ATP_OK) {
            ck_assert_msg(r.report.counts[FAKE_RACE] == r.report.total, "%s", r.report.text);
            race_count++;
        }
    }
    /* 13 of 18 waits matter without a graph too: see test_replay_cuda.c. */
    ck_assert_uint_eq(refused_count + race_count, 13);
    ck_assert_uint_gt(refused_count, 1);
    ck_assert_uint_gt(race_count, 4);
    ck_assert_uint_eq(harmless_count, 5);
    plan_builder_destroy(b);
}
END_TEST

/* ---- steps that cannot be captured ---- */

enum crime { SYNCHRONISES, ALLOCATES, LEAVES_A_STREAM, FAILS };

struct offender {
    struct rig *rig;
    enum crime crime;
    void *stream; /* another one */
    void *event;
};

static enum atp_status offend(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct offender *o = (struct offender *)ctx;
    struct atp_backend *backend = o->rig->backend;
    if (call->is_capture && call->step == RICH_F1 && !call->is_rerun) {
        void *memory = NULL;
        switch (o->crime) {
        case SYNCHRONISES: /* and looks away */
            ck_assert_int_ne(backend->ops->stream_sync(backend, call->stream, NULL), ATP_OK);
            break;
        case ALLOCATES:
            return backend->ops->arena_alloc(backend, 64, &memory, err);
        case LEAVES_A_STREAM:
            assert_ok(backend->ops->event_record(backend, o->event, call->stream, err), *err);
            assert_ok(backend->ops->stream_wait(backend, o->stream, o->event, err), *err);
            assert_ok(backend->ops->fill(backend, o->stream, call->workspace, 1, 1, err), *err);
            break;
        case FAILS:
            return ATP_ERR_IO;
        }
    }
    return fake_kernels_step(&o->rig->kernels, call, err);
}

static void refuse(enum crime crime, enum atp_status expected, const char *text)
{
    struct plan_builder *b = plan_builder_rich();
    struct rig r;
    struct offender o = {.rig = &r, .crime = crime};
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(cuda_backend_create(fake_cuda_api(), 0, &r.backend, &r.err), r.err);
    const struct atp_backend_ops *ops = r.backend->ops;
    assert_ok(ops->stream_create(r.backend, ATP_STREAM_COMPUTE, &o.stream, &r.err), r.err);
    assert_ok(ops->event_create(r.backend, false, &o.event, &r.err), r.err);
    r.options.step = offend;
    r.options.step_ctx = &o;
    assert_ok(rig_open(&r, &b->plan), r.err);
    enum atp_status status = atp_replay_capture(r.replay, &r.err);
    assert_error(status, r.err, expected, ATP_NONE, text);
    /* Without a graph it goes on as before. */
    assert_ok(atp_replay_begin_iteration(r.replay, &r.err), r.err);
    for (uint32_t s = 0; s < b->plan.model.step_count; s++) {
        struct atp_step_call call;
        assert_ok(atp_replay_begin_step(r.replay, s, &call, &r.err), r.err);
        if (s == 0) {
            struct atp_step_call inputs = call;
            inputs.step = ATP_NONE;
            assert_ok(offend(&o, &inputs, &r.err), r.err);
        }
        assert_ok(offend(&o, &call, &r.err), r.err);
        assert_ok(atp_replay_end_step(r.replay, s, &r.err), r.err);
    }
    assert_ok(atp_replay_end_iteration(r.replay, &r.err), r.err);
    ck_assert_uint_eq(fake_cuda_calls("cuGraphLaunch"), 0);
    rig_close(&r);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), rig_plain_digest(&b->plan.model));
    ops->event_destroy(r.backend, o.event);
    ops->stream_destroy(r.backend, o.stream);
    rig_finish(&r);
    ck_assert_msg(r.report.total == 0, "%s", r.report.text);
    plan_builder_destroy(b);
}

START_TEST(refuses_a_step_that_waits_for_the_device)
{
    refuse(SYNCHRONISES, ATP_ERR_CALLBACK, "steps[1] ");
}
END_TEST

START_TEST(refuses_a_step_that_takes_memory)
{
    refuse(ALLOCATES, ATP_ERR_CALLBACK, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED 900");
}
END_TEST

START_TEST(refuses_a_step_that_leaves_a_stream_behind)
{
    refuse(LEAVES_A_STREAM, ATP_ERR_UNSUPPORTED,
           "CUDA: cuStreamEndCapture of what the steps queued: "
           "CUDA_ERROR_STREAM_CAPTURE_UNJOINED 904");
}
END_TEST

START_TEST(passes_on_the_failure_of_a_step)
{
    refuse(FAILS, ATP_ERR_CALLBACK, "steps[1]");
}
END_TEST

START_TEST(says_that_a_driver_is_too_old)
{
    struct cuda_api old = *fake_cuda_api();
    struct plan_builder *b = plan_builder_rich();
    struct rig r;
    old.cuGraphInstantiateWithFlags = NULL;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(cuda_backend_create(&old, 0, &r.backend, &r.err), r.err);
    assert_ok(rig_open(&r, &b->plan), r.err);
    enum atp_status status = atp_replay_capture(r.replay, &r.err);
    assert_error(status, r.err, ATP_ERR_UNSUPPORTED, ATP_NONE, "too old for graphs");
    rig_iterate(&r, 2);
    rig_finish_clean(&r);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(says_that_the_host_cannot_capture_and_goes_on)
{
    struct plan_builder *b = plan_builder_rich();
    struct atp_backend *backend = test_host_create(ATP_HOST_LATE, 0, 0);
    struct atp_replay *replay;
    struct atp_error err;
    struct toy toy;
    toy_init(&toy, &b->plan.model, 41);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy};
    assert_ok(atp_replay_open(&b->plan, &b->plan.model, backend, &options, &replay, &err), err);
    enum atp_status status = atp_replay_capture(replay, &err);
    assert_error(status, err, ATP_ERR_UNSUPPORTED, ATP_NONE, "host backend: the work of steps");
    ck_assert_uint_eq(toy.run_count, 0);
    assert_ok(atp_replay_run_iteration(replay, toy_work, &err), err);
    ck_assert_uint_eq(toy_digest(&toy), rig_plain_digest(&b->plan.model));
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    toy_finish(&toy);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(captures_only_outside_of_iterations_and_without_times)
{
    struct plan_builder *b = plan_builder_rich();
    for (int kind = 0; kind < 4; kind++) {
        struct rig r;
        rig_start(&r, &b->plan.model, NULL);
        r.options.record = kind == 1;
        r.options.report = kind == 2;
        if (kind == 3) {
            r.options.step = NULL;
        }
        assert_ok(rig_open(&r, kind == 3 ? NULL : &b->plan), r.err);
        if (kind == 0) {
            assert_ok(atp_replay_begin_iteration(r.replay, &r.err), r.err);
        }
        static const char *const texts[] = {"capture: between two steps of an iteration",
                                            "opened with options.record",
                                            "opened with options.report", "needs options.step"};
        enum atp_status status = atp_replay_capture(r.replay, &r.err);
        assert_error(status, r.err, ATP_ERR_STATE, ATP_NONE, texts[kind]);
        if (kind == 0) {
            capture(&r); /* the iteration was lost by the call in the wrong place */
            rig_iterate(&r, 1);
        }
        rig_finish_clean(&r);
    }
    plan_builder_destroy(b);
}
END_TEST

/* ---- failures ---- */

/* Captures and launches; what fails may be tried again. Returns the calls of the session. */
static uint64_t survive(const struct plan_builder *b, uint64_t failing_call, uint64_t expected)
{
    struct fake_options options = {.failing_call = failing_call};
    struct rig r;
    rig_start(&r, &b->plan.model, &options);
    if (rig_open(&r, &b->plan) != ATP_OK) {
        assert_ok(rig_open(&r, &b->plan), r.err);
    }
    enum atp_status status = atp_replay_capture(r.replay, &r.err);
    if (status != ATP_OK) {
        ck_assert_int_eq(status, ATP_ERR_DEVICE);
        capture(&r);
    }
    for (int i = 0; i < 3; i++) {
        status = atp_replay_run_iteration(r.replay, fake_kernels_step, &r.err);
        ck_assert(status == ATP_OK || status == ATP_ERR_DEVICE);
    }
    if (status != ATP_OK) {
        rig_iterate(&r, 1);
    }
    rig_close(&r);
    uint64_t digest = toy_digest(&r.kernels.toy);
    rig_finish_clean(&r);
    ck_assert_msg(digest == expected, "call %" PRIu64, failing_call);
    return r.report.call_count;
}

START_TEST(survives_the_failure_of_every_driver_call)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t expected = rig_plain_digest(&b->plan.model);
    uint64_t call_count = survive(b, 0, expected);
    ck_assert_uint_gt(call_count, 200);
    for (uint64_t call = 1; call <= call_count; call++) {
        (void)survive(b, call, expected);
    }
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gives_every_step_the_bytes_of_the_plain_iteration,
        keeps_random_plans_right_at_any_timing,
        captures_the_plain_iteration_too,
        goes_with_iterations_step_by_step_and_with_another_capture,
        costs_one_launch_an_iteration,
        never_launches_wrong_bytes_where_a_wait_is_lost,
        refuses_a_step_that_waits_for_the_device,
        refuses_a_step_that_takes_memory,
        refuses_a_step_that_leaves_a_stream_behind,
        passes_on_the_failure_of_a_step,
        says_that_a_driver_is_too_old,
        says_that_the_host_cannot_capture_and_goes_on,
        captures_only_outside_of_iterations_and_without_times,
        survives_the_failure_of_every_driver_call,
    };
    return RUN_TESTS("replay_graph", tests, NULL, NULL);
}
