/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

/* ---- memory ---- */

struct counter {
    uint32_t alloc_count, free_count;
    size_t bytes;
    bool is_dry;
};

static void *counted_alloc(void *ctx, size_t bytes)
{
    struct counter *counter = (struct counter *)ctx;
    counter->alloc_count++;
    counter->bytes += bytes;
    return counter->is_dry ? NULL : malloc(bytes);
}

static void counted_free(void *ctx, void *memory)
{
    ((struct counter *)ctx)->free_count++;
    free(memory);
}

START_TEST(allocates_once_in_open_and_frees_once_in_close)
{
    struct scene s;
    struct counter counter = {0};
    struct atp_allocator allocator = {counted_alloc, counted_free, &counter};
    scene_init(&s, ATP_HOST_LATE);
    s.options.allocator = &allocator;
    s.options.record = _i % 2 == 1;
    assert_ok(scene_open(&s, _i / 2 == 1), s.err);
    ck_assert_uint_eq(counter.alloc_count, 1);
    uint64_t create_count = s.spy.create_count;
    for (int i = 0; i < 3; i++) {
        assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    }
    ck_assert_uint_eq(counter.alloc_count, 1);
    ck_assert_uint_eq(counter.free_count, 0);
    ck_assert_uint_eq(s.spy.create_count, create_count);
    ck_assert_int_eq(s.spy.live_count, (int64_t)create_count);
    atp_replay_close(s.replay);
    s.replay = NULL;
    ck_assert_uint_eq(counter.alloc_count, 1);
    ck_assert_uint_eq(counter.free_count, 1);
    scene_finish(&s);
}
END_TEST

START_TEST(makes_one_event_per_copy_in_flight_and_one_for_the_issue)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    /* Two arenas, three streams; two copies in flight at most. */
    ck_assert_uint_eq(s.spy.create_count, 2 + 3 + 2 + 1);
    scene_finish(&s);
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, false), s.err);
    ck_assert_uint_eq(s.spy.create_count, 2); /* nothing to copy: an arena and a stream */
    scene_finish(&s);
}
END_TEST

/* Addresses, and not only offsets. In 16 openings at least one arena is no multiple by itself. */
START_TEST(puts_tensors_at_multiples_of_the_alignment_of_the_plan)
{
    const uint64_t alignment = (uint64_t)1 << 16;
    struct scene scenes[16];
    for (size_t i = 0; i < 16; i++) {
        struct scene *s = &scenes[i];
        scene_init(s, ATP_HOST_LATE);
        for (uint32_t n = 0; n < s->builder->plan.instruction_count; n++) {
            s->builder->program[n].offset *= alignment / 16;
        }
        s->builder->plan.alignment_bytes = alignment;
        plan_builder_seal(s->builder);
        assert_ok(scene_open(s, true), s->err);
        assert_ok(atp_replay_begin_iteration(s->replay, &s->err), s->err);
        uintptr_t address = (uintptr_t)atp_replay_tensor_data(s->replay, RICH_X);
        ck_assert_uint_ne(address, 0);
        ck_assert_uint_eq(address % alignment, 0);
    }
    for (size_t i = 0; i < 16; i++) {
        struct scene *s = &scenes[i];
        ck_assert_int_eq(atp_replay_begin_iteration(s->replay, NULL), ATP_ERR_STATE);
        assert_ok(atp_replay_run_iteration(s->replay, toy_work, &s->err), s->err);
        ck_assert_uint_eq(toy_digest(&s->toy), scene_plain_digest());
        scene_finish(s);
    }
}
END_TEST

START_TEST(closes_only_when_the_streams_are_done)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    s.spy.log[0] = '\0';
    atp_replay_close(s.replay);
    s.replay = NULL;
    ck_assert_str_eq(s.spy.log, "sync(0) sync(1) sync(2) ");
    scene_finish(&s);
}
END_TEST

START_TEST(reports_that_bookkeeping_memory_cannot_be_had)
{
    struct scene s;
    struct counter counter = {.is_dry = true};
    struct atp_allocator allocator = {counted_alloc, counted_free, &counter};
    scene_init(&s, ATP_HOST_LATE);
    s.options.allocator = &allocator;
    s.replay = (struct atp_replay *)&s;
    enum atp_status status = scene_open(&s, true);
    assert_error(status, s.err, ATP_ERR_NO_MEMORY, ATP_NONE, "bookkeeping");
    ck_assert_ptr_null(s.replay);
    ck_assert_uint_eq(counter.free_count, 0);
    ck_assert_uint_eq(s.spy.create_count, 0);
    scene_finish(&s);
}
END_TEST

/* ---- what open refuses ---- */

START_TEST(refuses_a_plan_for_another_model_and_names_the_difference)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    struct plan_builder *other = plan_builder_rich();
    other->steps[RICH_B1].workspace_bytes = 48;
    enum atp_status status = atp_replay_open(&s.builder->plan, &other->plan.model, &s.spy.base,
                                             &s.options, &s.replay, &s.err);
    assert_error(status, s.err, ATP_ERR_MISMATCH, ATP_NONE, "workspace");
    ck_assert_ptr_nonnull(strstr(s.err.text, "l1"));
    ck_assert_ptr_nonnull(strstr(s.err.text, "the program"));
    ck_assert_ptr_null(s.replay);
    plan_builder_destroy(other);
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_a_plan_that_the_checker_refuses)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    uint32_t wait = plan_builder_find(s.builder, ATP_OP_EVICTED, RICH_X, 0);
    plan_builder_remove(s.builder, wait);
    plan_builder_seal(s.builder);
    enum atp_status status = scene_open(&s, true);
    ck_assert_int_eq(status, ATP_ERR_INVALID);
    ck_assert_uint_ne(s.err.instruction, ATP_NONE);
    ck_assert_ptr_null(s.replay);
    ck_assert_uint_eq(s.spy.call_count, 0);
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_a_malformed_model)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    const char *name = s.builder->steps[RICH_B1].name;
    s.builder->steps[RICH_B1].name = "";
    ck_assert_int_eq(scene_open(&s, _i == 1), ATP_ERR_INVALID);
    ck_assert_ptr_null(s.replay);
    s.builder->steps[RICH_B1].name = NULL;
    ck_assert_int_eq(scene_open(&s, _i == 1), ATP_ERR_INVALID);
    s.builder->steps[RICH_B1].name = name;
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_a_plan_with_reruns_without_a_step_function)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    enum atp_status status = atp_replay_open(&s.builder->plan, &s.builder->plan.model, &s.spy.base,
                                             NULL, &s.replay, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "rerun");
    ck_assert_ptr_null(s.replay);
    scene_finish(&s);
}
END_TEST

START_TEST(opens_without_options_when_nothing_is_rerun)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(atp_replay_open(NULL, &s.builder->plan.model, &s.spy.base, NULL, &s.replay, &s.err),
              s.err);
    enum atp_status status = atp_replay_run_iteration(s.replay, toy_work, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "options.step");
    assert_ok(scene_drive(&s), s.err);
    ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());
    scene_finish(&s);
}
END_TEST

/* ---- failures ---- */

START_TEST(passes_on_what_a_failing_step_function_says)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    for (uint32_t step = 0; step <= RICH_UP; step++) {
        s.toy.failing_step = step;
        ck_assert_int_eq(atp_replay_run_iteration(s.replay, toy_work, &s.err), ATP_ERR_CALLBACK);
        ck_assert_ptr_nonnull(strstr(s.err.text, s.builder->steps[step].name));
        ck_assert_ptr_nonnull(strstr(s.err.text, "fails, as asked"));
        s.toy.failing_step = ATP_NONE;
        assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
        ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());
    }
    scene_finish(&s);
}
END_TEST

static enum atp_status fail_reruns(void *ctx, const struct atp_step_call *call,
                                   struct atp_error *err)
{
    (void)ctx;
    (void)err;
    return call->is_rerun ? ATP_ERR_LIMIT : ATP_OK;
}

START_TEST(names_the_instruction_of_a_rerun_that_fails)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    s.options.step = fail_reruns;
    assert_ok(scene_open(&s, true), s.err);
    enum atp_status status = atp_replay_run_iteration(s.replay, NULL, &s.err);
    assert_error(status, s.err, ATP_ERR_CALLBACK,
                 plan_builder_find(s.builder, ATP_OP_RERUN, RICH_F1, 0),
                 "\"l1\" forward, rerun: ATP_ERR_LIMIT");
    scene_finish(&s);
}
END_TEST

START_TEST(closes_in_any_state)
{
    for (uint32_t calls = 0; calls <= 2 * (RICH_UP + 1) + 2; calls++) {
        struct scene s;
        scene_init(&s, (enum atp_host_copies)_i);
        s.options.step = do_nothing;
        assert_ok(scene_open(&s, true), s.err);
        if (calls > 0) {
            assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
        }
        for (uint32_t c = 1; c < calls && c <= 2 * (RICH_UP + 1); c++) {
            uint32_t step = (c - 1) / 2;
            assert_ok(c % 2 == 1 ? atp_replay_begin_step(s.replay, step, NULL, &s.err)
                                 : atp_replay_end_step(s.replay, step, &s.err),
                      s.err);
        }
        scene_finish(&s);
    }
    atp_replay_close(NULL);
}
END_TEST

/* Two iterations with the n-th backend call failing, for every n: the failure comes out as it is,
 * the next iteration is right again if the replay was open, and nothing leaks. */
START_TEST(survives_the_failure_of_any_backend_call)
{
    uint64_t expected = scene_plain_digest(), call_count = UINT64_MAX;
    for (uint64_t n = 1; n <= call_count; n++) {
        struct scene s;
        scene_init(&s, (enum atp_host_copies)_i);
        s.options.record = true;
        s.spy.failing = n;
        enum atp_status status = scene_open(&s, true);
        ck_assert_int_eq(s.replay != NULL, status == ATP_OK);
        for (int i = 0; status == ATP_OK && i < 2; i++) {
            status = atp_replay_run_iteration(s.replay, toy_work, &s.err);
        }
        if (status == ATP_OK) {
            ck_assert_uint_lt(s.spy.call_count, n);
            call_count = s.spy.call_count;
        } else {
            ck_assert_int_eq(status, ATP_ERR_DEVICE);
            ck_assert_int_eq(s.err.status, ATP_ERR_DEVICE);
            ck_assert_ptr_nonnull(strstr(s.err.text, "as asked"));
        }
        s.spy.failing = 0;
        if (s.replay != NULL) {
            assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
            ck_assert_uint_eq(toy_digest(&s.toy), expected);
        }
        scene_finish(&s);
    }
    ck_assert_uint_gt(call_count, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay_open");
    TCase *memory = tcase_create("memory");
    TCase *open = tcase_create("open");
    TCase *failure = tcase_create("failure");
    tcase_add_loop_test(memory, allocates_once_in_open_and_frees_once_in_close, 0, 4);
    tcase_add_test(memory, makes_one_event_per_copy_in_flight_and_one_for_the_issue);
    tcase_add_test(memory, puts_tensors_at_multiples_of_the_alignment_of_the_plan);
    tcase_add_test(memory, closes_only_when_the_streams_are_done);
    tcase_add_test(memory, reports_that_bookkeeping_memory_cannot_be_had);
    tcase_add_test(open, refuses_a_plan_for_another_model_and_names_the_difference);
    tcase_add_test(open, refuses_a_plan_that_the_checker_refuses);
    tcase_add_loop_test(open, refuses_a_malformed_model, 0, 2);
    tcase_add_test(open, refuses_a_plan_with_reruns_without_a_step_function);
    tcase_add_test(open, opens_without_options_when_nothing_is_rerun);
    tcase_add_test(failure, passes_on_what_a_failing_step_function_says);
    tcase_add_test(failure, names_the_instruction_of_a_rerun_that_fails);
    tcase_add_loop_test(failure, closes_in_any_state, 0, 3);
    tcase_add_loop_test(failure, survives_the_failure_of_any_backend_call, 0, 3);
    tcase_set_timeout(failure, 120);
    suite_add_tcase(suite, memory);
    suite_add_tcase(suite, open);
    suite_add_tcase(suite, failure);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
