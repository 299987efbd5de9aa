/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Plans replayed by the CUDA backend on the fake driver: the bytes of the plain iteration and not
 * one race, whatever the delays; and the right end whatever fails.
 *
 * ATP_CHAOS_ITERATIONS and ATP_CHAOS_SEED in the environment make the chaos longer and other.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assert_error.h"
#include "fake_rig.h"
#include "random.h"
#include "random_plan.h"
#include "run_tests.h"

/* Every iteration gives the bytes of the plain one; the host waits only to look. */
static void expect_right(const struct plan_builder *b, uint32_t iterations,
                         const struct fake_options *options)
{
    uint64_t expected = rig_plain_digest(&b->plan.model);
    struct rig r;
    rig_start(&r, &b->plan.model, options);
    assert_ok(rig_open(&r, &b->plan), r.err);
    rig_iterate(&r, iterations);
    rig_close(&r);
    uint64_t digest = toy_digest(&r.kernels.toy);
    rig_finish_clean(&r);
    ck_assert_uint_eq(digest, expected);
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

START_TEST(runs_the_plain_iteration_itself)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t expected = rig_plain_digest(&b->plan.model);
    struct rig r;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(rig_open(&r, NULL), r.err);
    rig_iterate(&r, 3);
    rig_close(&r);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), expected);
    rig_finish_clean(&r);
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
        uint32_t iterations = 2 + random_below(&random, 5);
        struct fake_options options = {.seed = plan_seed,
                                       .delay_max_us = random_below(&random, 3) * 100};
        expect_right(b, iterations, &options);
        plan_builder_destroy(b);
        done += iterations;
    }
    (void)printf("%" PRIu64 " iterations of random plans from seed %" PRIu64
                 ": right bytes, no race\n",
                 done, seed);
}
END_TEST

/* ---- what the waits are for ---- */

/* Two iterations in which that wait does nothing. */
static struct fake_report lose_wait(const struct plan_builder *b, uint64_t wait,
                                    uint32_t delay_max_us, uint64_t *out_digest)
{
    struct fake_options options = {.seed = wait, .delay_max_us = delay_max_us, .lost_wait = wait};
    struct rig r;
    rig_start(&r, &b->plan.model, &options);
    assert_ok(rig_open(&r, &b->plan), r.err);
    rig_iterate(&r, 2);
    rig_close(&r);
    *out_digest = toy_digest(&r.kernels.toy);
    rig_finish(&r);
    return r.report;
}

/* 18 waits in each of two iterations, of which five order what others have ordered already: copies
 * issued one after the other with no work between, and the last waits of copies on one stream. */
START_TEST(sees_a_race_wherever_the_replay_forgets_a_wait)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t digest, found = 0, wait_count = lose_wait(b, 0, 0, &digest).wait_count;
    ck_assert_uint_eq(wait_count, 36);
    for (uint64_t wait = 1; wait <= wait_count; wait++) {
        struct fake_report report = lose_wait(b, wait, 0, &digest);
        ck_assert_msg(report.counts[FAKE_RACE] == report.total, "%s", report.text);
        found += report.total > 0;
    }
    ck_assert_uint_eq(found, 26);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(gives_right_bytes_where_a_forgotten_wait_is_no_race)
{
    struct random random = {77};
    uint32_t race_count = 0, harmless_count = 0;
    for (uint32_t i = 0; i < 60; i++) {
        struct plan_builder *b = random_plan(random_next(&random), 2 + random_below(&random, 8));
        uint64_t digest, expected = rig_plain_digest(&b->plan.model);
        uint64_t wait_count = lose_wait(b, 0, 0, &digest).wait_count;
        if (wait_count > 0) {
            uint64_t wait = 1 + random_next(&random) % wait_count;
            struct fake_report report = lose_wait(b, wait, 200, &digest);
            ck_assert_msg(report.total > 0 || digest == expected, "plan %u, wait %" PRIu64, i,
                          wait);
            race_count += report.total > 0;
            harmless_count += report.total == 0;
        }
        plan_builder_destroy(b);
    }
    ck_assert_uint_gt(race_count, 10);
    ck_assert_uint_gt(harmless_count, 10);
}
END_TEST

/* ---- what an iteration may not do ---- */

START_TEST(takes_releases_and_waits_for_nothing_inside_an_iteration)
{
    static const char *const forbidden[] = {
        "cuMemAlloc",    "cuMemFree",      "cuMemHostAlloc",
        "cuMemFreeHost", "cuStreamCreate", "cuStreamDestroy",
        "cuEventCreate", "cuEventDestroy", "cuStreamSynchronize"};
    enum { COUNT = sizeof(forbidden) / sizeof(forbidden[0]) };
    struct plan_builder *b = plan_builder_rich();
    uint64_t before[COUNT];
    struct rig r;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(rig_open(&r, &b->plan), r.err);
    for (int i = 0; i < COUNT; i++) {
        before[i] = fake_cuda_calls(forbidden[i]);
    }
    rig_iterate(&r, 3);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_msg(fake_cuda_calls(forbidden[i]) == before[i], "%s", forbidden[i]);
    }
    ck_assert_uint_gt(fake_cuda_calls("cuMemcpyDtoHAsync"), 0);
    rig_finish_clean(&r);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(runs_on_the_stream_of_the_caller_and_leaves_his_context_alone)
{
    struct plan_builder *b = plan_builder_rich();
    const struct cuda_api *api = fake_cuda_api();
    CUcontext popped;
    struct rig r;
    rig_start(&r, &b->plan.model, NULL);
    assert_ok(cuda_backend_create(api, 0, &r.backend, &r.err), r.err);
    void *mine;
    assert_ok(r.backend->ops->stream_create(r.backend, ATP_STREAM_COMPUTE, &mine, &r.err), r.err);
    r.options.compute_stream = mine;
    ck_assert_int_eq(api->cuCtxPushCurrent(fake_cuda_other_context()), CUDA_SUCCESS);
    assert_ok(rig_open(&r, &b->plan), r.err);
    rig_iterate(&r, 2);
    rig_close(&r);
    ck_assert_ptr_eq(fake_cuda_current(), fake_cuda_other_context());
    ck_assert_int_eq(api->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    ck_assert_uint_eq(toy_digest(&r.kernels.toy), rig_plain_digest(&b->plan.model));
    r.backend->ops->stream_destroy(r.backend, mine);
    rig_finish_clean(&r);
    plan_builder_destroy(b);
}
END_TEST

/* ---- failures ---- */

/* Opens, iterates three times, and once more after a failure. False: something failed. */
static bool live(struct rig *r, const struct plan_builder *b)
{
    bool is_good = rig_open(r, &b->plan) == ATP_OK;
    for (int i = 0; is_good && i < 3; i++) {
        enum atp_status status = atp_replay_run_iteration(r->replay, fake_kernels_step, &r->err);
        if (status != ATP_OK) {
            is_good = false;
            ck_assert_int_eq(status, ATP_ERR_DEVICE);
            assert_ok(atp_replay_run_iteration(r->replay, fake_kernels_step, &r->err), r->err);
        }
    }
    rig_close(r);
    return is_good;
}

/* A session in which that call fails: the status is the driver's, nothing is left over, the next
 * iteration or the next open works and has the right bytes. Returns the calls of the session. */
static uint64_t survive(const struct plan_builder *b, struct fake_options options,
                        uint64_t expected, enum atp_status status)
{
    struct rig r;
    rig_start(&r, &b->plan.model, &options);
    r.options.record = r.options.report = true;
    if (!live(&r, b)) {
        ck_assert_ptr_nonnull(strstr(r.err.text, "CUDA"));
    }
    if (r.backend == NULL || r.kernels.toy.run_count == 0) { /* it failed before an iteration */
        ck_assert_int_eq(r.err.status, status);
        ck_assert(live(&r, b));
    }
    uint64_t digest = toy_digest(&r.kernels.toy);
    rig_finish_clean(&r);
    ck_assert_msg(digest == expected, "call %" PRIu64 ", allocation %" PRIu64, options.failing_call,
                  options.failing_allocation);
    return r.report.call_count;
}

START_TEST(survives_the_failure_of_every_driver_call)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t expected = rig_plain_digest(&b->plan.model);
    uint64_t call_count = survive(b, (struct fake_options){0}, expected, ATP_OK);
    ck_assert_uint_gt(call_count, 300);
    for (uint64_t call = 1; call <= call_count; call++) {
        (void)survive(b, (struct fake_options){.failing_call = call}, expected, ATP_ERR_DEVICE);
    }
    plan_builder_destroy(b);
}
END_TEST

START_TEST(ends_in_order_on_a_device_that_is_gone)
{
    struct plan_builder *b = plan_builder_rich();
    for (uint64_t call = 1; call < 1200; call += 7) {
        struct fake_options options = {.failing_call = call, .fails_from_then_on = true};
        struct rig r;
        rig_start(&r, &b->plan.model, &options);
        enum atp_status status = rig_open(&r, &b->plan);
        for (int i = 0; status == ATP_OK && i < 3; i++) {
            status = atp_replay_run_iteration(r.replay, fake_kernels_step, &r.err);
        }
        if (r.replay != NULL && status != ATP_OK) {
            ck_assert_int_ne(atp_replay_run_iteration(r.replay, fake_kernels_step, NULL), ATP_OK);
        }
        ck_assert(status == ATP_OK || status == ATP_ERR_DEVICE);
        rig_finish(&r);
        ck_assert_msg(r.report.total == 0, "call %" PRIu64 ": %s", call, r.report.text);
    }
    plan_builder_destroy(b);
}
END_TEST

START_TEST(survives_memory_that_cannot_be_had)
{
    struct plan_builder *b = plan_builder_rich();
    uint64_t expected = rig_plain_digest(&b->plan.model);
    for (uint64_t allocation = 1; allocation <= 2; allocation++) {
        (void)survive(b, (struct fake_options){.failing_allocation = allocation}, expected,
                      ATP_ERR_NO_MEMORY);
    }
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gives_every_step_the_bytes_of_the_plain_iteration,
        runs_the_plain_iteration_itself,
        keeps_random_plans_right_at_any_timing,
        sees_a_race_wherever_the_replay_forgets_a_wait,
        gives_right_bytes_where_a_forgotten_wait_is_no_race,
        takes_releases_and_waits_for_nothing_inside_an_iteration,
        runs_on_the_stream_of_the_caller_and_leaves_his_context_alone,
        survives_the_failure_of_every_driver_call,
        ends_in_order_on_a_device_that_is_gone,
        survives_memory_that_cannot_be_had,
    };
    return RUN_TESTS("replay_cuda", tests, NULL, NULL);
}
