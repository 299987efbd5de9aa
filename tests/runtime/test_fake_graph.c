/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The fake driver's graphs: right ones run, again and again, and bugs planted in captures and
 * launches are found.
 */
#include <check.h>
#include <string.h>

#include "assert_error.h"
#include "fake_scene.h"
#include "run_tests.h"

static void begin(struct fake_scene *s)
{
    assert_ok(s->ops->capture_begin(s->backend, s->compute, &s->err), s->err);
}

static enum atp_status try_end(struct fake_scene *s, void **graph)
{
    return s->ops->capture_end(s->backend, s->compute, graph, &s->err);
}

static void *end(struct fake_scene *s)
{
    void *graph;
    assert_ok(try_end(s, &graph), s->err);
    ck_assert_ptr_nonnull(graph);
    return graph;
}

static void launch(struct fake_scene *s, void *graph)
{
    assert_ok(s->ops->graph_launch(s->backend, graph, s->compute, &s->err), s->err);
}

static void fill(struct fake_scene *s, void *stream, uint64_t offset, uint8_t value)
{
    assert_ok(s->ops->fill(s->backend, stream, s->arena + offset, value, 256, &s->err), s->err);
}

/* An eviction as a replay does it. `is_waited`: compute waits for the copy before it goes on. */
static void evict(struct fake_scene *s, bool forks, bool joins)
{
    fill(s, s->compute, 0, 7);
    fake_scene_record(s, 2, s->compute);
    if (forks) {
        fake_scene_wait(s, s->out, 2);
    }
    fake_scene_evict(s, 0, 0, 256);
    fake_scene_record(s, 3, s->out);
    if (joins) {
        fake_scene_wait(s, s->compute, 3);
    }
    fill(s, s->compute, 0, 9);
}

static void finish_with(struct fake_scene *s, void *graph, enum fake_fault fault, uint32_t count)
{
    if (graph != NULL) {
        s->ops->graph_destroy(s->backend, graph);
    }
    fake_scene_finish(s);
    ck_assert_msg(s->report.counts[fault] == count && s->report.total == count, "%s",
                  s->report.text);
}

START_TEST(does_nothing_at_the_capture_and_all_at_each_launch)
{
    struct fake_options options = {.seed = 3, .delay_max_us = 300};
    struct fake_scene s;
    fake_scene_init(&s, &options);
    memset(s.pinned, 1, 256);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    fake_scene_sync(&s, s.compute);
    ck_assert_uint_eq(s.pinned[255], 1);
    for (int i = 0; i < 5; i++) {
        launch(&s, graph);
        fake_scene_sync(&s, s.compute);
        fake_cuda_touch(s.pinned, 256, true); /* the launch as a whole comes before the host */
        ck_assert_uint_eq(s.pinned[0], 7);
        ck_assert_uint_eq(s.pinned[255], 7);
        memset(s.pinned, 1, 256);
    }
    finish_with(&s, graph, FAKE_RACE, 0);
}
END_TEST

START_TEST(orders_a_launch_with_the_work_around_it)
{
    struct fake_options options = {.seed = 3, .delay_max_us = 300};
    struct fake_scene s;
    fake_scene_init(&s, &options);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    for (int i = 0; i < 3; i++) {
        fill(&s, s.compute, 0, 3);
        launch(&s, graph);
        launch(&s, graph);
        fill(&s, s.compute, 0, 4);
    }
    finish_with(&s, graph, FAKE_RACE, 0);
}
END_TEST

START_TEST(finds_a_copy_that_was_not_joined_into_the_capture)
{
    struct fake_scene s;
    void *graph;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, false);
    enum atp_status status = try_end(&s, &graph);
    assert_error(status, s.err, ATP_ERR_UNSUPPORTED, ATP_NONE,
                 "CUDA_ERROR_STREAM_CAPTURE_UNJOINED 904");
    ck_assert_ptr_null(graph);
    finish_with(&s, NULL, FAKE_RACE, 0);
}
END_TEST

START_TEST(finds_a_copy_that_was_not_forked_into_the_capture)
{
    struct fake_scene s;
    void *graph;
    fake_scene_init(&s, NULL);
    begin(&s);
    fill(&s, s.compute, 0, 7);
    fake_scene_evict(&s, 0, 0, 256); /* runs at once, outside */
    fake_scene_record(&s, 3, s.out);
    enum atp_status status = s.ops->stream_wait(s.backend, s.compute, s.events[3], &s.err);
    assert_error(status, s.err, ATP_ERR_UNSUPPORTED, ATP_NONE,
                 "CUDA_ERROR_STREAM_CAPTURE_ISOLATION 905");
    ck_assert_int_eq(try_end(&s, &graph), ATP_ERR_UNSUPPORTED);
    finish_with(&s, NULL, FAKE_RACE, 0);
}
END_TEST

/* The copy is joined in the end, but the fill before that does not wait for it. Issued in a lucky
 * order, and found all the same: at each of two launches. */
START_TEST(finds_a_race_between_two_branches_of_a_graph)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, false);
    fake_scene_wait(&s, s.compute, 3);
    void *graph = end(&s);
    launch(&s, graph);
    launch(&s, graph);
    finish_with(&s, graph, FAKE_RACE, 2);
}
END_TEST

START_TEST(finds_a_copy_stream_whose_work_a_launch_does_not_know)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    fake_scene_evict(&s, 0, 256, 256); /* on the copy stream, not waited for by compute */
    launch(&s, graph);
    finish_with(&s, graph, FAKE_RACE, 1);
}
END_TEST

START_TEST(finds_a_host_that_writes_what_a_launch_still_reads)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    fake_scene_record(&s, 2, s.compute);
    fake_scene_wait(&s, s.in, 2);
    fake_scene_restore(&s, 0, 0, 256);
    fake_scene_record(&s, 3, s.in);
    fake_scene_wait(&s, s.compute, 3);
    void *graph = end(&s);
    launch(&s, graph);
    fake_cuda_touch(s.pinned, 1, true);
    finish_with(&s, graph, FAKE_RACE, 1);
}
END_TEST

START_TEST(finds_a_launch_after_its_memory_was_freed)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    s.ops->arena_free(s.backend, s.arena);
    s.arena = NULL;
    ck_assert_int_eq(s.ops->graph_launch(s.backend, graph, s.compute, NULL), ATP_ERR_DEVICE);
    finish_with(&s, graph, FAKE_USE_AFTER_FREE, 1);
}
END_TEST

START_TEST(finds_a_launch_after_the_graph_was_destroyed)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    launch(&s, graph);
    s.ops->graph_destroy(s.backend, graph); /* the launch is still done */
    fake_scene_sync(&s, s.compute);
    ck_assert_uint_eq(s.pinned[0], 7);
    ck_assert_int_eq(s.ops->graph_launch(s.backend, graph, s.compute, NULL), ATP_ERR_DEVICE);
    finish_with(&s, NULL, FAKE_USE_AFTER_FREE, 1);
}
END_TEST

START_TEST(finds_graphs_and_captures_that_are_left_over)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    fill(&s, s.compute, 0, 7);
    (void)end(&s);
    assert_ok(s.ops->capture_begin(s.backend, s.in, &s.err), s.err);
    s.in = NULL; /* left too */
    /* Within a capture the memory of the device cannot be freed either. */
    finish_with(&s, NULL, FAKE_LEAK, 4);
}
END_TEST

START_TEST(finds_a_wait_for_what_a_capture_has_recorded)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    begin(&s);
    evict(&s, true, true);
    void *graph = end(&s);
    enum atp_status status = s.ops->stream_wait(s.backend, s.in, s.events[3], &s.err);
    assert_error(status, s.err, ATP_ERR_UNSUPPORTED, ATP_NONE, " 907 ");
    finish_with(&s, graph, FAKE_RACE, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        does_nothing_at_the_capture_and_all_at_each_launch,
        orders_a_launch_with_the_work_around_it,
        finds_a_copy_that_was_not_joined_into_the_capture,
        finds_a_copy_that_was_not_forked_into_the_capture,
        finds_a_race_between_two_branches_of_a_graph,
        finds_a_copy_stream_whose_work_a_launch_does_not_know,
        finds_a_host_that_writes_what_a_launch_still_reads,
        finds_a_launch_after_its_memory_was_freed,
        finds_a_launch_after_the_graph_was_destroyed,
        finds_graphs_and_captures_that_are_left_over,
        finds_a_wait_for_what_a_capture_has_recorded,
    };
    return RUN_TESTS("fake_graph", tests, NULL, NULL);
}
