/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a backend is. Every case runs on every backend of tests/support/backends.c. Device bytes
 * are written and read only through the backend, so that the cases hold where the host cannot touch
 * them; pinned bytes are plain memory everywhere.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <atp/backend.h>

#include "backends.h"

#define BYTES ((size_t)4096)

/* A compute stream, two copy streams, one event per need, device and pinned memory. */
struct bench {
    const struct test_backend *kind;
    struct atp_backend *backend;
    const struct atp_backend_ops *ops;
    void *compute, *out, *in;
    void *events[4];
    uint8_t *arena, *pinned;
    struct atp_error err;
};

#define OK(bench, call) ck_assert_msg((call) == ATP_OK, "%s: %s", #call, (bench)->err.text)

static bool bench_init(struct bench *b, int index)
{
    memset(b, 0, sizeof(*b));
    b->kind = &test_backends[index];
    b->backend = test_backend_create(index);
    if (b->backend == NULL) {
        return false;
    }
    b->ops = b->backend->ops;
    OK(b, b->ops->stream_create(b->backend, ATP_STREAM_COMPUTE, &b->compute, &b->err));
    OK(b, b->ops->stream_create(b->backend, ATP_STREAM_COPY, &b->out, &b->err));
    OK(b, b->ops->stream_create(b->backend, ATP_STREAM_COPY, &b->in, &b->err));
    for (int i = 0; i < 4; i++) {
        OK(b, b->ops->event_create(b->backend, true, &b->events[i], &b->err));
    }
    void *memory;
    OK(b, b->ops->arena_alloc(b->backend, 4 * BYTES, &memory, &b->err));
    b->arena = (uint8_t *)memory;
    OK(b, b->ops->host_alloc(b->backend, 4 * BYTES, &memory, &b->err));
    b->pinned = (uint8_t *)memory;
    memset(b->pinned, 0, 4 * (size_t)BYTES);
    return true;
}

static void bench_finish(struct bench *b)
{
    for (int i = 0; i < 4; i++) {
        b->ops->event_destroy(b->backend, b->events[i]);
    }
    b->ops->stream_destroy(b->backend, b->in);
    b->ops->stream_destroy(b->backend, b->out);
    b->ops->stream_destroy(b->backend, b->compute);
    b->ops->host_free(b->backend, b->pinned);
    b->ops->arena_free(b->backend, b->arena);
    atp_backend_destroy(b->backend);
    b->kind->settle();
}

static void fill(struct bench *b, void *stream, uint32_t slot, uint8_t value)
{
    OK(b, b->ops->fill(b->backend, stream, b->arena + slot * BYTES, value, BYTES, &b->err));
}

static void copy_out(struct bench *b, uint32_t arena_slot, uint32_t pinned_slot)
{
    OK(b, b->ops->copy(b->backend, b->out, b->pinned + pinned_slot * BYTES,
                       b->arena + arena_slot * BYTES, BYTES, ATP_COPY_TO_HOST, &b->err));
}

static void copy_in(struct bench *b, uint32_t pinned_slot, uint32_t arena_slot)
{
    OK(b, b->ops->copy(b->backend, b->in, b->arena + arena_slot * BYTES,
                       b->pinned + pinned_slot * BYTES, BYTES, ATP_COPY_TO_DEVICE, &b->err));
}

static void record(struct bench *b, int event, void *stream)
{
    OK(b, b->ops->event_record(b->backend, b->events[event], stream, &b->err));
}

static void wait(struct bench *b, void *stream, int event)
{
    OK(b, b->ops->stream_wait(b->backend, stream, b->events[event], &b->err));
}

static void sync(struct bench *b, void *stream)
{
    OK(b, b->ops->stream_sync(b->backend, stream, &b->err));
}

static void assert_pinned(const struct bench *b, uint32_t slot, uint8_t value)
{
    for (uint32_t i = 0; i < BYTES; i++) {
        ck_assert_uint_eq(b->pinned[slot * BYTES + i], value);
    }
}

START_TEST(gives_memory_aligned_to_256_bytes)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        ck_assert_uint_eq((uintptr_t)b.arena % 256, 0);
        ck_assert_uint_eq((uintptr_t)b.pinned % 256, 0);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(reports_memory_that_cannot_be_had)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        void *memory = &b;
        ck_assert_int_ne(b.ops->arena_alloc(b.backend, UINT64_MAX / 4, &memory, &b.err), ATP_OK);
        ck_assert_ptr_null(memory);
        ck_assert_uint_gt(strlen(b.err.text), 0);
        memory = &b;
        ck_assert_int_ne(b.ops->host_alloc(b.backend, UINT64_MAX / 4, &memory, &b.err), ATP_OK);
        ck_assert_ptr_null(memory);
        memory = &b;
        ck_assert_int_ne(b.ops->arena_alloc(b.backend, UINT64_MAX, &memory, NULL), ATP_OK);
        ck_assert_ptr_null(memory);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(fills_and_copies_in_the_order_of_one_stream)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.out, 0, 11);
        copy_out(&b, 0, 0);
        fill(&b, b.out, 0, 12);
        copy_out(&b, 0, 1);
        sync(&b, b.out);
        assert_pinned(&b, 0, 11);
        assert_pinned(&b, 1, 12);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(copies_to_the_device_and_back)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        for (uint32_t i = 0; i < BYTES; i++) {
            b.pinned[i] = (uint8_t)(i * 31u + 7u);
        }
        copy_in(&b, 0, 2);
        sync(&b, b.in);
        copy_out(&b, 2, 3);
        sync(&b, b.out);
        ck_assert_mem_eq(b.pinned, b.pinned + 3 * BYTES, BYTES);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(lets_a_copy_stream_wait_for_compute)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.compute, 0, 21);
        record(&b, 0, b.compute);
        wait(&b, b.out, 0);
        copy_out(&b, 0, 0);
        sync(&b, b.out);
        assert_pinned(&b, 0, 21);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(lets_compute_wait_for_a_copy)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.compute, 0, 31);
        record(&b, 0, b.compute);
        wait(&b, b.out, 0);
        copy_out(&b, 0, 0);
        record(&b, 1, b.out);
        wait(&b, b.compute, 1);
        fill(&b, b.compute, 0, 32); /* must not reach the copy */
        sync(&b, b.compute);
        sync(&b, b.out);
        assert_pinned(&b, 0, 31);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(lets_a_copy_stream_wait_for_another)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.compute, 0, 41);
        record(&b, 0, b.compute);
        wait(&b, b.out, 0);
        copy_out(&b, 0, 0);
        record(&b, 1, b.out);
        wait(&b, b.in, 1);
        copy_in(&b, 0, 1);
        record(&b, 2, b.in);
        wait(&b, b.out, 2);
        copy_out(&b, 1, 1);
        record(&b, 3, b.out);
        wait(&b, b.compute, 3); /* forces all three copies, across both streams */
        sync(&b, b.compute);
        assert_pinned(&b, 1, 41);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(waits_for_the_record_that_was_last_when_it_was_asked)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.compute, 0, 51);
        record(&b, 0, b.compute);
        wait(&b, b.out, 0);
        copy_out(&b, 0, 0);
        record(&b, 1, b.out);
        wait(&b, b.compute, 1);
        copy_out(&b, 0, 1);
        record(&b, 1, b.out); /* of the same event: no matter to the wait before it */
        wait(&b, b.compute, 1);
        fill(&b, b.compute, 0, 52);
        sync(&b, b.compute);
        assert_pinned(&b, 0, 51);
        assert_pinned(&b, 1, 51);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(goes_on_at_once_when_the_event_was_never_recorded)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        wait(&b, b.compute, 0);
        wait(&b, b.out, 0);
        fill(&b, b.out, 0, 61);
        copy_out(&b, 0, 0);
        sync(&b, b.out);
        assert_pinned(&b, 0, 61);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(lets_a_stream_wait_for_itself)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        fill(&b, b.out, 0, 71);
        record(&b, 0, b.out);
        wait(&b, b.out, 0);
        copy_out(&b, 0, 0);
        sync(&b, b.out);
        assert_pinned(&b, 0, 71);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(keeps_many_copies_in_order)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        for (int i = 0; i < 20;
             i++) { /* so that the many do not begin at the queue's first place */
            fill(&b, b.out, 0, 1);
        }
        sync(&b, b.out);
        for (uint32_t i = 0; i < 400; i++) {
            fill(&b, b.out, 0, (uint8_t)i);
            OK(&b, b.ops->copy(b.backend, b.out, b.pinned + (size_t)i * 32, b.arena, 32,
                               ATP_COPY_TO_HOST, &b.err));
        }
        sync(&b, b.out);
        for (uint32_t i = 0; i < 400 * 32; i++) {
            ck_assert_uint_eq(b.pinned[i], (uint8_t)(i / 32));
        }
        bench_finish(&b);
    }
}
END_TEST

START_TEST(measures_the_time_between_events)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        int64_t first_ns, second_ns, whole_ns;
        record(&b, 0, b.out);
        copy_out(&b, 0, 0);
        record(&b, 1, b.out);
        copy_out(&b, 0, 1);
        record(&b, 2, b.out);
        sync(&b, b.out);
        OK(&b, b.ops->event_elapsed(b.backend, b.events[0], b.events[1], &first_ns, &b.err));
        OK(&b, b.ops->event_elapsed(b.backend, b.events[1], b.events[2], &second_ns, &b.err));
        OK(&b, b.ops->event_elapsed(b.backend, b.events[0], b.events[2], &whole_ns, &b.err));
        ck_assert_int_ge(first_ns, 0);
        ck_assert_int_ge(second_ns, 0);
        ck_assert_int_gt(whole_ns, 0);
        ck_assert_int_lt(whole_ns, 60000000000);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(keeps_the_time_of_the_last_record_alone)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        int64_t ns;
        copy_out(&b, 0, 0);
        record(&b, 0, b.out);
        record(&b, 0, b.compute);
        record(&b, 1, b.compute);
        sync(&b, b.out); /* performs the first record, if it was not yet */
        sync(&b, b.compute);
        OK(&b, b.ops->event_elapsed(b.backend, b.events[0], b.events[1], &ns, &b.err));
        ck_assert_int_ge(ns, 0);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(refuses_the_time_of_an_event_that_is_not_timed)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        void *untimed;
        int64_t ns;
        OK(&b, b.ops->event_create(b.backend, false, &untimed, &b.err));
        record(&b, 0, b.compute);
        OK(&b, b.ops->event_record(b.backend, untimed, b.compute, &b.err));
        sync(&b, b.compute);
        ck_assert_int_ne(b.ops->event_elapsed(b.backend, b.events[0], untimed, &ns, &b.err),
                         ATP_OK);
        b.ops->event_destroy(b.backend, untimed);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(destroys_streams_and_events_whose_work_is_not_done)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        void *stream, *event;
        OK(&b, b.ops->stream_create(b.backend, ATP_STREAM_COPY, &stream, &b.err));
        OK(&b, b.ops->event_create(b.backend, true, &event, &b.err));
        fill(&b, stream, 0, 81);
        OK(&b, b.ops->event_record(b.backend, event, stream, &b.err));
        OK(&b, b.ops->stream_wait(b.backend, b.out, event, &b.err));
        copy_out(&b, 0, 0);
        OK(&b, b.ops->event_record(b.backend, event, stream, &b.err));
        b.ops->event_destroy(b.backend, event);
        OK(&b, b.ops->event_record(b.backend, b.events[0], stream, &b.err));
        b.ops->stream_destroy(b.backend, stream);
        wait(&b, b.out, 0); /* its stream is gone: nothing to wait for */
        wait(&b, b.compute, 0);
        sync(&b, b.out);
        assert_pinned(&b, 0, 81);
        bench_finish(&b);
    }
}
END_TEST

START_TEST(keeps_two_backends_apart)
{
    struct bench a, b;
    if (bench_init(&a, _i) && bench_init(&b, _i)) {
        fill(&a, a.out, 0, 91);
        fill(&b, b.out, 0, 92);
        copy_out(&a, 0, 0);
        copy_out(&b, 0, 0);
        sync(&b, b.out);
        bench_finish(&b);
        sync(&a, a.out);
        assert_pinned(&a, 0, 91);
        bench_finish(&a);
    }
}
END_TEST

/* Host backends have no graphs, and say so; where there are some, they do what was captured. */
START_TEST(captures_work_and_launches_it_or_says_that_it_cannot)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        void *graph = NULL;
        enum atp_status status = b.ops->capture_begin(b.backend, b.compute, &b.err);
        if (status == ATP_OK) {
            fill(&b, b.compute, 0, 101);
            record(&b, 2, b.compute);
            wait(&b, b.out, 2);
            copy_out(&b, 0, 0);
            record(&b, 3, b.out);
            wait(&b, b.compute, 3);
            OK(&b, b.ops->capture_end(b.backend, b.compute, &graph, &b.err));
            sync(&b, b.compute);
            assert_pinned(&b, 0, 0);
            for (int i = 0; i < 2; i++) {
                OK(&b, b.ops->graph_launch(b.backend, graph, b.compute, &b.err));
                fill(&b, b.compute, 0, 102); /* must not reach the copy */
            }
            sync(&b, b.compute);
            assert_pinned(&b, 0, 101);
            b.ops->graph_destroy(b.backend, graph);
        } else {
            ck_assert_int_eq(status, ATP_ERR_UNSUPPORTED);
            ck_assert_int_eq(b.ops->capture_end(b.backend, b.compute, &graph, NULL),
                             ATP_ERR_UNSUPPORTED);
            ck_assert_ptr_null(graph);
        }
        bench_finish(&b);
    }
}
END_TEST

START_TEST(has_no_empty_slot)
{
    struct bench b;
    if (bench_init(&b, _i)) {
        void (*const *slots)(void) = (void (*const *)(void))b.ops;
        for (size_t i = 0; i < sizeof(*b.ops) / sizeof(slots[0]); i++) {
            ck_assert_msg(slots[i] != NULL, "slot %zu is empty", i);
        }
        bench_finish(&b);
    }
}
END_TEST

/* The two cases that follow are about the host backend alone: they pin down what makes it a trap
 * for plans that forget a wait. */
START_TEST(late_copies_run_only_when_something_forces_them)
{
    struct bench b;
    ck_assert(bench_init(&b, 1));
    fill(&b, b.compute, 0, 1);
    record(&b, 0, b.compute);
    wait(&b, b.out, 0);
    copy_out(&b, 0, 0);
    record(&b, 1, b.out);
    copy_out(&b, 0, 1);
    fill(&b, b.compute, 0, 2); /* the plan forgot to wait: both copies are torn */
    sync(&b, b.compute);
    assert_pinned(&b, 0, 0);
    wait(&b, b.compute, 1);
    assert_pinned(&b, 0, 2);
    assert_pinned(&b, 1, 0); /* behind the event: not forced */
    sync(&b, b.out);
    assert_pinned(&b, 1, 2);
    bench_finish(&b);
}
END_TEST

START_TEST(threaded_copies_take_at_least_the_time_of_their_bytes)
{
    struct atp_host_options options = {.copies = ATP_HOST_THREADS,
                                       .bytes_per_second = 1000 * (uint64_t)BYTES};
    struct atp_backend *backend;
    struct atp_error err;
    void *stream, *start, *end;
    static uint8_t from[10 * BYTES], to[10 * BYTES];
    int64_t ns;
    ck_assert_int_eq(atp_backend_host_create(&options, &backend, &err), ATP_OK);
    const struct atp_backend_ops *ops = backend->ops;
    ck_assert_int_eq(ops->stream_create(backend, ATP_STREAM_COPY, &stream, &err), ATP_OK);
    ck_assert_int_eq(ops->event_create(backend, true, &start, &err), ATP_OK);
    ck_assert_int_eq(ops->event_create(backend, true, &end, &err), ATP_OK);
    ck_assert_int_eq(ops->event_record(backend, start, stream, &err), ATP_OK);
    ck_assert_int_eq(ops->copy(backend, stream, to, from, sizeof(from), ATP_COPY_TO_DEVICE, &err),
                     ATP_OK);
    ck_assert_int_eq(ops->event_record(backend, end, stream, &err), ATP_OK);
    ck_assert_int_eq(ops->event_elapsed(backend, start, end, &ns, &err), ATP_ERR_STATE);
    ck_assert_int_eq(ops->stream_sync(backend, stream, &err), ATP_OK);
    ck_assert_int_eq(ops->event_elapsed(backend, start, end, &ns, &err), ATP_OK);
    ck_assert_int_ge(ns, 10000000);
    ops->event_destroy(backend, end);
    ops->event_destroy(backend, start);
    ops->stream_destroy(backend, stream);
    atp_backend_destroy(backend);
}
END_TEST

START_TEST(destroys_no_backend_at_all)
{
    atp_backend_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backend");
    TCase *all = tcase_create("every backend");
    TCase *host = tcase_create("host");
    const int n = test_backend_count;
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, has_no_empty_slot, 0, n);
    tcase_add_loop_test(all, gives_memory_aligned_to_256_bytes, 0, n);
    tcase_add_loop_test(all, reports_memory_that_cannot_be_had, 0, n);
    tcase_add_loop_test(all, fills_and_copies_in_the_order_of_one_stream, 0, n);
    tcase_add_loop_test(all, copies_to_the_device_and_back, 0, n);
    tcase_add_loop_test(all, lets_a_copy_stream_wait_for_compute, 0, n);
    tcase_add_loop_test(all, lets_compute_wait_for_a_copy, 0, n);
    tcase_add_loop_test(all, lets_a_copy_stream_wait_for_another, 0, n);
    tcase_add_loop_test(all, waits_for_the_record_that_was_last_when_it_was_asked, 0, n);
    tcase_add_loop_test(all, goes_on_at_once_when_the_event_was_never_recorded, 0, n);
    tcase_add_loop_test(all, lets_a_stream_wait_for_itself, 0, n);
    tcase_add_loop_test(all, keeps_many_copies_in_order, 0, n);
    tcase_add_loop_test(all, measures_the_time_between_events, 0, n);
    tcase_add_loop_test(all, keeps_the_time_of_the_last_record_alone, 0, n);
    tcase_add_loop_test(all, refuses_the_time_of_an_event_that_is_not_timed, 0, n);
    tcase_add_loop_test(all, destroys_streams_and_events_whose_work_is_not_done, 0, n);
    tcase_add_loop_test(all, keeps_two_backends_apart, 0, n);
    tcase_add_loop_test(all, captures_work_and_launches_it_or_says_that_it_cannot, 0, n);
    tcase_add_test(host, late_copies_run_only_when_something_forces_them);
    tcase_add_test(host, threaded_copies_take_at_least_the_time_of_their_bytes);
    tcase_add_test(host, destroys_no_backend_at_all);
    suite_add_tcase(suite, all);
    suite_add_tcase(suite, host);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
