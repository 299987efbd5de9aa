/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

/* ---- the bytes ---- */

START_TEST(gives_every_step_the_bytes_of_the_plain_iteration)
{
    struct scene s;
    uint64_t expected = scene_plain_digest();
    scene_init(&s, (enum atp_host_copies)_i);
    assert_ok(scene_open(&s, true), s.err);
    for (uint32_t iteration = 0; iteration < 5; iteration++) {
        memset(s.toy.digests, 0, s.toy.model->step_count * sizeof(*s.toy.digests));
        assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
        ck_assert_uint_eq(toy_digest(&s.toy), expected);
    }
    ck_assert_uint_eq(s.toy.rerun_count, 5);
    scene_finish(&s);
}
END_TEST

START_TEST(serves_a_loop_of_the_caller)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(scene_drive(&s), s.err);
    ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());
    scene_finish(&s);
}
END_TEST

START_TEST(takes_no_call_and_no_error_where_none_is_wanted)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(scene_open(&s, false), s.err);
    ck_assert_int_eq(atp_replay_begin_iteration(s.replay, NULL), ATP_OK);
    ck_assert_int_eq(atp_replay_begin_step(s.replay, 0, NULL, NULL), ATP_OK);
    ck_assert_int_eq(atp_replay_begin_step(s.replay, 0, NULL, NULL), ATP_ERR_STATE);
    scene_finish(&s);
}
END_TEST

/* What the callback saw, as text: "0:l1 rerun". */
struct diary {
    char text[512];
};

static enum atp_status keep_diary(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    struct diary *diary = (struct diary *)ctx;
    const struct atp_model *model = &atp_replay_plan(call->replay)->model;
    size_t used = strlen(diary->text);
    (void)err;
    (void)snprintf(diary->text + used, sizeof(diary->text) - used, "%llu:%s%s ",
                   (unsigned long long)call->iteration,
                   call->step == ATP_NONE ? "inputs" : model->steps[call->step].name,
                   call->is_rerun ? "*" : "");
    return ATP_OK;
}

START_TEST(tells_the_step_function_what_runs_and_in_which_iteration)
{
    struct scene s;
    struct diary diary = {{0}};
    scene_init(&s, ATP_HOST_LATE);
    s.options.step = keep_diary;
    s.options.step_ctx = &diary;
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, keep_diary, &s.err), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, NULL, &s.err), s.err);
    ck_assert_str_eq(diary.text, "0:inputs 0:l0 0:l1 0:l2 0:l3 0:l3 0:l1* 0:l2 0:l1 0:l0 0:adam "
                                 "1:l0 1:l1 1:l2 1:l3 1:l3 1:l1* 1:l2 1:l1 1:l0 1:adam ");
    scene_finish(&s);
}
END_TEST

START_TEST(shows_a_tensor_only_while_it_can_be_read)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    struct atp_replay *r = s.replay;
    ck_assert_ptr_null(atp_replay_tensor_data(r, RICH_X));
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    ck_assert_ptr_nonnull(atp_replay_tensor_data(r, RICH_X));
    for (uint32_t step = RICH_F0; step <= RICH_B3; step++) {
        ck_assert_ptr_eq(atp_replay_tensor_data(r, RICH_G), NULL);
        assert_ok(atp_replay_begin_step(r, step, NULL, &s.err), s.err);
        assert_ok(atp_replay_end_step(r, step, &s.err), s.err);
        /* Its eviction was issued, and is still in flight. */
        ck_assert_int_eq(atp_replay_tensor_data(r, RICH_X) != NULL, step < RICH_F2);
    }
    ck_assert_ptr_nonnull(atp_replay_tensor_data(r, RICH_G));
    ck_assert_ptr_null(atp_replay_tensor_data(r, RICH_A)); /* its restore is in flight */
    ck_assert_ptr_null(atp_replay_tensor_data(r, RICH_W + 1));
    ck_assert_ptr_null(atp_replay_tensor_data(r, ATP_NONE));
    scene_finish(&s);
}
END_TEST

START_TEST(poisons_bytes_that_become_free)
{
    struct scene s;
    uint8_t bytes[64];
    memset(bytes, 0xA5, sizeof(bytes));
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(scene_open(&s, false), s.err);
    assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
    const uint8_t *g = NULL, *x = (const uint8_t *)atp_replay_tensor_data(s.replay, RICH_X);
    ck_assert_mem_eq(x, bytes, sizeof(bytes)); /* what nobody wrote is poison too */
    struct atp_step_call call;
    for (uint32_t step = RICH_F0; step <= RICH_B0; step++) {
        assert_ok(atp_replay_begin_step(s.replay, step, &call, &s.err), s.err);
        g = (const uint8_t *)atp_replay_tensor_data(s.replay, RICH_G);
        if (g != NULL) {
            memset((uint8_t *)atp_replay_tensor_data(s.replay, RICH_G), 1, sizeof(bytes));
        }
        if (call.workspace != NULL) {
            memset(call.workspace, 1, 32);
        }
        assert_ok(atp_replay_end_step(s.replay, step, &s.err), s.err);
        if (call.workspace != NULL) {
            ck_assert_mem_eq(call.workspace, bytes, 32);
        }
    }
    ck_assert_mem_eq(g, bytes, sizeof(bytes));
    scene_finish(&s);
}
END_TEST

START_TEST(leaves_freed_bytes_alone_without_poison)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    s.options.poison = false;
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    ck_assert_ptr_null(strstr(s.spy.log, "fill"));
    ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());
    scene_finish(&s);
}
END_TEST

/* ---- odd models ---- */

START_TEST(replays_tensors_of_no_bytes)
{
    struct plan_builder *b = plan_builder_create("empty");
    struct toy toy;
    struct atp_replay *replay;
    struct atp_error err;
    struct atp_backend *backend = test_host_create(ATP_HOST_LATE, 1, 0);
    uint32_t x = plan_builder_tensor(b, "x", 0);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(x), NO_IDS);
    plan_builder_add(b, ATP_OP_ALLOC, x, 0);
    plan_builder_add(b, ATP_OP_EVICT, x, 0);
    plan_builder_add(b, ATP_OP_EVICTED, x, 0);
    plan_builder_add(b, ATP_OP_RESTORE, x, 0);
    plan_builder_add(b, ATP_OP_RESTORED, x, 0);
    plan_builder_add(b, ATP_OP_RUN, f, 0);
    plan_builder_add(b, ATP_OP_FREE, x, 0);
    plan_builder_seal(b);
    toy_init(&toy, &b->plan.model, SCENE_SALT);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy, .poison = true};
    assert_ok(atp_replay_open(&b->plan, &b->plan.model, backend, &options, &replay, &err), err);
    assert_ok(atp_replay_run_iteration(replay, toy_work, &err), err);
    ck_assert_uint_eq(toy.run_count, 1);
    atp_replay_close(replay);
    toy_finish(&toy);
    atp_backend_destroy(backend);
    plan_builder_destroy(b);
}
END_TEST

/* ---- the order of calls ---- */

START_TEST(starts_copies_behind_a_step_and_waits_before_the_next)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    s.options.poison = false;
    assert_ok(scene_open(&s, true), s.err);
    struct atp_replay *r = s.replay;
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    assert_ok(atp_replay_begin_step(r, RICH_F0, NULL, &s.err), s.err);
    ck_assert_str_eq(s.spy.log, "");
    assert_ok(atp_replay_end_step(r, RICH_F0, &s.err), s.err);
    ck_assert_str_eq(s.spy.log, "record(0) wait(1) copy(1) record(1) "); /* evict x */
    s.spy.log[0] = '\0';
    assert_ok(atp_replay_begin_step(r, RICH_F1, NULL, &s.err), s.err);
    assert_ok(atp_replay_end_step(r, RICH_F1, &s.err), s.err);
    ck_assert_str_eq(s.spy.log, "");
    assert_ok(atp_replay_begin_step(r, RICH_F2, NULL, &s.err), s.err);
    ck_assert_str_eq(s.spy.log,
                     "wait(0) record(0) wait(1) copy(1) record(1) "); /* evicted x, evict a */
    for (uint32_t step = RICH_F2; step <= RICH_F3; step++) {
        assert_ok(atp_replay_end_step(r, step, &s.err), s.err);
        assert_ok(atp_replay_begin_step(r, step + 1, NULL, &s.err), s.err);
    }
    s.spy.log[0] = '\0';
    assert_ok(atp_replay_end_step(r, RICH_B3, &s.err), s.err);
    ck_assert_str_eq(s.spy.log, "record(0) wait(2) copy(2) record(2) "
                                "record(0) wait(2) copy(2) record(2) "); /* restore a, acc */
    scene_finish(&s);
}
END_TEST

START_TEST(never_waits_for_the_device_inside_an_iteration)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    s.options.poison = false;
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    s.spy.log[0] = '\0';
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    ck_assert_ptr_null(strstr(s.spy.log, "sync"));
    scene_finish(&s);
}
END_TEST

START_TEST(uses_the_callers_compute_stream_and_leaves_it)
{
    struct scene s;
    void *stream;
    scene_init(&s, ATP_HOST_THREADS);
    const struct atp_backend_ops *ops = s.spy.base.ops;
    assert_ok(ops->stream_create(&s.spy.base, ATP_STREAM_COMPUTE, &stream, &s.err), s.err);
    s.options.compute_stream = stream;
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
    struct atp_step_call call;
    assert_ok(atp_replay_begin_step(s.replay, 0, &call, &s.err), s.err);
    ck_assert_ptr_eq(call.stream, stream);
    atp_replay_close(s.replay);
    s.replay = NULL;
    ck_assert_int_eq(s.spy.live_count, 1);
    ops->stream_destroy(&s.spy.base, stream);
    scene_finish(&s);
}
END_TEST

/* ---- calls in the wrong order ---- */

#define REFUSED(s, call, text)                                                                     \
    do {                                                                                           \
        enum atp_status status = (call);                                                           \
        assert_error(status, (s)->err, ATP_ERR_STATE, ATP_NONE, text);                             \
    } while (0)

START_TEST(refuses_steps_outside_an_iteration)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    REFUSED(&s, atp_replay_begin_step(s.replay, 0, NULL, &s.err), "no iteration has begun");
    assert_ok(scene_drive(&s), s.err);
    REFUSED(&s, atp_replay_end_step(s.replay, 8, &s.err), "no iteration has begun");
    assert_ok(scene_drive(&s), s.err);
    REFUSED(&s, atp_replay_end_iteration(s.replay, &s.err), "no iteration has begun");
    assert_ok(scene_drive(&s), s.err);
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_steps_out_of_order_and_names_the_next)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    struct atp_replay *r = s.replay;
    struct atp_step_call call;
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    assert_ok(atp_replay_begin_step(r, 0, &call, &s.err), s.err);
    assert_ok(atp_replay_end_step(r, 0, &s.err), s.err);
    REFUSED(&s, atp_replay_begin_step(r, 2, &call, &s.err), "steps[1] \"l1\" forward");
    ck_assert_ptr_null(call.replay); /* nothing of the last call is left in it */
    REFUSED(&s, atp_replay_begin_step(r, 1, &call, &s.err), "lost");
    assert_ok(scene_drive(&s), s.err);
    ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());

    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    assert_ok(atp_replay_begin_step(r, 0, &call, &s.err), s.err);
    REFUSED(&s, atp_replay_begin_step(r, 0, &call, &s.err), "not ended");
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    REFUSED(&s, atp_replay_end_step(r, 0, &s.err), "between two steps");
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    assert_ok(atp_replay_begin_step(r, 0, &call, &s.err), s.err);
    REFUSED(&s, atp_replay_end_step(r, 1, &s.err), "steps[0]");
    scene_finish(&s);
}
END_TEST

START_TEST(waits_for_the_copies_of_a_lost_iteration)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    s.options.poison = false;
    assert_ok(scene_open(&s, true), s.err);
    s.toy.failing_step = RICH_F1;
    ck_assert_int_eq(atp_replay_run_iteration(s.replay, toy_work, &s.err), ATP_ERR_CALLBACK);
    s.spy.log[0] = '\0';
    assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
    ck_assert_str_eq(s.spy.log, "sync(1) sync(2) ");
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_to_end_or_begin_an_iteration_midway)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    s.options.step = do_nothing;
    assert_ok(scene_open(&s, true), s.err);
    struct atp_replay *r = s.replay;
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    REFUSED(&s, atp_replay_end_iteration(r, &s.err), "steps[0]");
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    REFUSED(&s, atp_replay_begin_iteration(r, &s.err), "between two steps");
    assert_ok(scene_drive(&s), s.err);
    assert_ok(atp_replay_begin_iteration(r, &s.err), s.err);
    for (uint32_t step = 0; step <= RICH_UP; step++) {
        assert_ok(atp_replay_begin_step(r, step, NULL, &s.err), s.err);
        assert_ok(atp_replay_end_step(r, step, &s.err), s.err);
    }
    REFUSED(&s, atp_replay_begin_step(r, RICH_UP + 1, NULL, &s.err), "all steps have run");
    scene_finish(&s);
}
END_TEST

static enum atp_status call_the_replay(void *ctx, const struct atp_step_call *call,
                                       struct atp_error *err)
{
    (void)ctx;
    ck_assert_int_eq(atp_replay_begin_iteration(call->replay, err), ATP_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(err->text, "inside a step function"));
    return ATP_OK;
}

START_TEST(refuses_calls_from_inside_a_step_function)
{
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    assert_ok(scene_open(&s, true), s.err);
    REFUSED(&s, atp_replay_run_iteration(s.replay, call_the_replay, &s.err), "step function");
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    ck_assert_uint_eq(toy_digest(&s.toy), scene_plain_digest());
    scene_finish(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *bytes = tcase_create("bytes");
    TCase *order = tcase_create("order");
    TCase *state = tcase_create("state");
    tcase_add_loop_test(bytes, gives_every_step_the_bytes_of_the_plain_iteration, 0, 3);
    tcase_add_test(bytes, serves_a_loop_of_the_caller);
    tcase_add_test(bytes, takes_no_call_and_no_error_where_none_is_wanted);
    tcase_add_test(bytes, tells_the_step_function_what_runs_and_in_which_iteration);
    tcase_add_test(bytes, shows_a_tensor_only_while_it_can_be_read);
    tcase_add_test(bytes, poisons_bytes_that_become_free);
    tcase_add_test(bytes, leaves_freed_bytes_alone_without_poison);
    tcase_add_test(bytes, replays_tensors_of_no_bytes);
    tcase_add_test(order, starts_copies_behind_a_step_and_waits_before_the_next);
    tcase_add_test(order, never_waits_for_the_device_inside_an_iteration);
    tcase_add_test(order, uses_the_callers_compute_stream_and_leaves_it);
    tcase_add_test(state, refuses_steps_outside_an_iteration);
    tcase_add_test(state, refuses_steps_out_of_order_and_names_the_next);
    tcase_add_test(state, waits_for_the_copies_of_a_lost_iteration);
    tcase_add_test(state, refuses_to_end_or_begin_an_iteration_midway);
    tcase_add_test(state, refuses_calls_from_inside_a_step_function);
    suite_add_tcase(suite, bytes);
    suite_add_tcase(suite, order);
    suite_add_tcase(suite, state);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
