/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The fake driver finds what it is there to find: bugs planted in calls of the CUDA backend, each
 * with the fault that it must give, and right programs that must give none.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_scene.h"
#include "race_detector.h"
#include "run_tests.h"

/* Ends the session; the faults must be `count` of that kind and no others. */
static void finish_with(struct fake_scene *s, enum fake_fault fault, uint32_t count,
                        const char *text)
{
    fake_scene_finish(s);
    ck_assert_msg(s->report.counts[fault] == count && s->report.total == count,
                  "%u faults, %u of them \"%s\", expected %u:\n%s", s->report.total,
                  s->report.counts[fault], fake_fault_name(fault), count, s->report.text);
    ck_assert_msg(strstr(s->report.text, text) != NULL, "\"%s\" does not say \"%s\"",
                  s->report.text, text);
}

static void finish_clean(struct fake_scene *s)
{
    fake_scene_finish(s);
    ck_assert_msg(s->report.total == 0, "%s", s->report.text);
}

/* A tensor at 0 is made, evicted, its bytes are used for another, it comes back at 512 and is read.
 * The same events over and over, as a replay does it. `forgotten` (from 1) is left out. */
static void swap(struct fake_scene *s, int forgotten)
{
    fake_scene_write(s, s->compute, 0, 256);
    fake_scene_record(s, 0, s->compute);
    if (forgotten != 1) {
        fake_scene_wait(s, s->out, 0);
    }
    fake_scene_evict(s, 0, 0, 256);
    fake_scene_record(s, 1, s->out);
    if (forgotten != 2) {
        fake_scene_wait(s, s->compute, 1);
    }
    fake_scene_write(s, s->compute, 0, 256); /* another tensor */
    fake_scene_record(s, 0, s->compute);
    if (forgotten != 3) {
        fake_scene_wait(s, s->in, 0);
    }
    fake_scene_restore(s, 0, 512, 256);
    fake_scene_record(s, 2, s->in);
    if (forgotten != 4) {
        fake_scene_wait(s, s->compute, 2);
    }
    fake_scene_read(s, s->compute, 512, 256);
}

/* ---- right programs ---- */

START_TEST(finds_nothing_in_a_right_swap)
{
    struct fake_options options = {.seed = 11, .delay_max_us = 300};
    struct fake_scene s;
    fake_scene_init(&s, &options);
    for (int i = 0; i < 20; i++) {
        swap(&s, 0);
    }
    finish_clean(&s);
}
END_TEST

START_TEST(allows_reads_of_the_same_bytes_at_once)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_write(&s, s.compute, 0, 256);
    fake_scene_record(&s, 0, s.compute);
    fake_scene_wait(&s, s.out, 0);
    fake_scene_evict(&s, 0, 0, 256);
    fake_scene_read(&s, s.compute, 0, 256);
    finish_clean(&s);
}
END_TEST

START_TEST(allows_writes_side_by_side)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_write(&s, s.compute, 0, 100);
    fake_scene_write(&s, s.out, 100, 100);
    fake_scene_write(&s, s.in, 200, 1);
    finish_clean(&s);
}
END_TEST

START_TEST(passes_order_on_through_other_streams)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_write(&s, s.compute, 0, 256);
    fake_scene_record(&s, 0, s.compute);
    fake_scene_wait(&s, s.out, 0);
    fake_scene_record(&s, 1, s.out);
    fake_scene_wait(&s, s.in, 1);
    fake_scene_write(&s, s.in, 0, 256);
    finish_clean(&s);
}
END_TEST

START_TEST(takes_a_wait_of_the_host_for_order)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_cuda_touch(s.pinned, 256, true);
    fake_scene_restore(&s, 0, 0, 256);
    fake_scene_sync(&s, s.in);
    fake_cuda_touch(s.pinned, 256, true);
    fake_scene_write(&s, s.compute, 0, 256);
    finish_clean(&s);
}
END_TEST

/* ---- planted races ---- */

START_TEST(finds_a_copy_out_that_does_not_wait_for_the_step)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    swap(&s, 1);
    finish_with(&s, FAKE_RACE, 1,
                "race: copy to the host (work 1 of stream 2) reads bytes 0 to 255 of device memory "
                "that writer (work 1 of stream 1) wrote, and nothing orders them");
}
END_TEST

START_TEST(finds_bytes_used_again_before_their_copy_out_is_done)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    swap(&s, 2);
    /* The copy back does not know either that the copy out is done. */
    finish_with(&s, FAKE_RACE, 2, "writes bytes 0 to 255 of device memory that copy to the host");
    ck_assert_ptr_nonnull(strstr(s.report.text, "copy to the device (work 2 of stream 3) reads "
                                                "bytes 0 to 255 of pinned memory"));
}
END_TEST

START_TEST(finds_a_copy_back_that_does_not_wait_where_it_is_issued)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    swap(&s, 3);
    finish_with(&s, FAKE_RACE, 1, "reads bytes 0 to 255 of pinned memory that copy to the host");
}
END_TEST

START_TEST(finds_a_step_that_does_not_wait_for_its_copy_back)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    swap(&s, 4);
    finish_with(&s, FAKE_RACE, 1, "reader (work 6 of stream 1) reads bytes 512 to 767");
}
END_TEST

START_TEST(finds_a_copy_issued_before_its_step)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_record(&s, 0, s.compute); /* too early */
    fake_scene_write(&s, s.compute, 0, 256);
    fake_scene_wait(&s, s.out, 0);
    fake_scene_evict(&s, 0, 0, 256);
    finish_with(&s, FAKE_RACE, 1, "copy to the host");
}
END_TEST

START_TEST(finds_a_wait_for_an_older_record)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_record(&s, 0, s.compute);
    fake_scene_wait(&s, s.out, 0);
    fake_scene_write(&s, s.compute, 0, 256);
    fake_scene_record(&s, 0, s.compute); /* of no use to the wait before it */
    fake_scene_evict(&s, 0, 0, 256);
    finish_with(&s, FAKE_RACE, 1, "copy to the host");
}
END_TEST

START_TEST(finds_a_copy_back_into_bytes_still_read)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_read(&s, s.compute, 0, 256);
    fake_scene_restore(&s, 0, 255, 256); /* one byte too low */
    finish_with(&s, FAKE_RACE, 1, "writes bytes 255 to 255 of device memory that reader");
}
END_TEST

START_TEST(finds_host_bytes_given_away_while_a_copy_back_reads_them)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_restore(&s, 0, 0, 256);
    fake_scene_evict(&s, 512, 128, 256);
    finish_with(&s, FAKE_RACE, 1,
                "writes bytes 128 to 255 of pinned memory that copy to the device");
}
END_TEST

START_TEST(finds_two_steps_on_two_streams_in_one_workspace)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_write(&s, s.compute, 0, 64);
    fake_scene_write(&s, s.in, 32, 64);
    finish_with(&s, FAKE_RACE, 1, "writes bytes 32 to 63 of device memory that writer");
}
END_TEST

START_TEST(finds_a_host_that_reads_before_it_waits)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_evict(&s, 0, 0, 256);
    fake_cuda_touch(s.pinned, 1, false);
    finish_with(&s, FAKE_RACE, 1, "reading on the host reads bytes 0 to 0 of pinned memory");
}
END_TEST

START_TEST(finds_a_race_that_the_timing_hid)
{
    struct timespec a_while = {.tv_nsec = 20000000};
    struct fake_report report;
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_evict(&s, 0, 0, 256);
    (void)nanosleep(&a_while, NULL); /* the copy is long done, but nobody asked */
    fake_scene_write(&s, s.compute, 0, 256);
    fake_cuda_look(&report);
    ck_assert_uint_eq(report.counts[FAKE_RACE], 1);
    finish_with(&s, FAKE_RACE, 1, "writer");
}
END_TEST

START_TEST(finds_a_wait_that_the_driver_lost)
{
    struct fake_options options = {.lost_wait = 2};
    struct fake_scene s;
    fake_scene_init(&s, &options);
    swap(&s, 0);
    finish_with(&s, FAKE_RACE, 2, "writes bytes 0 to 255 of device memory that copy to the host");
}
END_TEST

/* ---- planted misuse ---- */

static void refused(const struct fake_scene *s, enum atp_status status)
{
    ck_assert_int_eq(status, ATP_ERR_DEVICE);
    ck_assert_int_eq(s->err.status, ATP_ERR_DEVICE);
}

START_TEST(finds_a_copy_from_memory_that_is_not_pinned)
{
    static uint8_t plain[64];
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    refused(&s, s.ops->copy(s.backend, s.in, s.arena, plain, sizeof(plain), ATP_COPY_TO_DEVICE,
                            &s.err));
    refused(&s,
            s.ops->copy(s.backend, s.out, plain, s.arena, sizeof(plain), ATP_COPY_TO_HOST, &s.err));
    finish_with(&s, FAKE_UNPINNED, 2, "copy to the device: host memory that is not pinned");
}
END_TEST

START_TEST(finds_work_that_leaves_its_memory)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    refused(&s, s.ops->fill(s.backend, s.compute, s.arena + 1000, 0, 25, &s.err));
    refused(&s,
            s.ops->copy(s.backend, s.out, s.pinned + 1023, s.arena, 2, ATP_COPY_TO_HOST, &s.err));
    fake_scene_write(&s, s.compute, 1024, 1); /* all of it */
    finish_with(&s, FAKE_OUT_OF_RANGE, 3, "fill: beyond the end of device memory");
}
END_TEST

START_TEST(finds_a_copy_in_the_wrong_direction)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    refused(&s, s.ops->copy(s.backend, s.out, s.arena, s.pinned, 64, ATP_COPY_TO_HOST, &s.err));
    finish_with(&s, FAKE_OUT_OF_RANGE, 2, "not in device memory");
}
END_TEST

START_TEST(finds_the_use_of_freed_memory)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    void *arena = s.arena, *pinned = s.pinned;
    s.ops->arena_free(s.backend, arena);
    s.ops->host_free(s.backend, pinned);
    s.arena = s.pinned = NULL;
    refused(&s, s.ops->fill(s.backend, s.compute, arena, 0, 64, &s.err));
    refused(&s, s.ops->copy(s.backend, s.out, pinned, arena, 64, ATP_COPY_TO_HOST, &s.err));
    s.ops->arena_free(s.backend, arena);
    finish_with(&s, FAKE_USE_AFTER_FREE, 4, "fill: device memory that has been freed");
}
END_TEST

START_TEST(finds_memory_freed_while_queued_work_needs_it)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_evict(&s, 0, 0, 256);
    s.ops->arena_free(s.backend, s.arena);
    s.arena = NULL;
    finish_with(&s, FAKE_FREED_IN_USE, 1,
                "free on the host writes bytes 0 to 255 of device memory that copy to the host");
}
END_TEST

START_TEST(finds_a_wait_for_an_event_that_was_never_recorded)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_wait(&s, s.out, 0);
    finish_with(&s, FAKE_UNRECORDED_WAIT, 1, "stream 2 waits for nothing");
}
END_TEST

START_TEST(finds_the_use_of_streams_and_events_that_are_gone)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    void *event = s.events[3], *stream = s.in;
    s.ops->event_destroy(s.backend, event);
    s.ops->stream_destroy(s.backend, stream);
    s.events[3] = s.in = NULL;
    refused(&s, s.ops->event_record(s.backend, event, s.compute, &s.err));
    refused(&s, s.ops->stream_wait(s.backend, stream, s.events[0], &s.err));
    refused(&s, s.ops->stream_sync(s.backend, stream, &s.err));
    s.ops->event_destroy(s.backend, event);
    finish_with(&s, FAKE_USE_AFTER_FREE, 4, "cuEventRecord: no such event, or no more");
}
END_TEST

START_TEST(finds_what_was_never_released)
{
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_scene_sync(&s, s.out);
    s.arena = s.pinned = NULL;
    s.in = s.events[2] = NULL;
    finish_with(&s, FAKE_LEAK, 4, "leak: 1024 bytes of pinned memory");
}
END_TEST

START_TEST(finds_a_context_that_is_not_current)
{
    struct fake_scene s;
    CUevent event;
    fake_scene_init(&s, NULL);
    ck_assert_int_eq(fake_cuda_api()->cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    finish_with(&s, FAKE_NO_CONTEXT, 1, "cuEventCreate: the primary context is not current");
}
END_TEST

/* ---- the detector by itself ---- */

START_TEST(splits_memory_where_accesses_begin_and_end)
{
    struct race_detector *d = race_create();
    struct race_conflict conflict;
    uint32_t a = race_add_agent(d), b = race_add_agent(d);
    race_add_memory(d, 1000, 100);
    race_add_memory(d, 2000, 100);
    race_tick(d, a);
    ck_assert(!race_access(d, a, 7, 1010, 20, true, &conflict));
    race_tick(d, a);
    ck_assert(!race_access(d, a, 8, 1020, 20, false, &conflict));
    race_tick(d, b);
    ck_assert(!race_access(d, b, 9, 1000, 10, true, &conflict));
    ck_assert(!race_access(d, b, 9, 1030, 70, false, &conflict));
    ck_assert(!race_access(d, b, 9, 2010, 20, true, &conflict));
    ck_assert(race_access(d, b, 9, 1025, 10, true, &conflict));
    ck_assert_uint_eq(conflict.earlier, 7);
    ck_assert(conflict.earlier_wrote);
    ck_assert_uint_eq(conflict.first, 1025);
    ck_assert_uint_eq(conflict.end, 1030);
    race_destroy(d);
}
END_TEST

START_TEST(knows_what_was_learned_and_no_more)
{
    struct race_detector *d = race_create();
    struct race_conflict conflict;
    uint32_t a = race_add_agent(d), b = race_add_agent(d);
    race_add_memory(d, 1000, 100);
    race_tick(d, a);
    ck_assert(!race_access(d, a, 1, 1000, 10, true, &conflict));
    struct race_clock then = *race_clock_of(d, a);
    race_tick(d, a);
    ck_assert(!race_access(d, a, 2, 1010, 10, true, &conflict));
    race_tick(d, b);
    race_learn(d, b, &then);
    ck_assert(!race_access(d, b, 3, 1000, 10, true, &conflict));
    ck_assert(race_access(d, b, 3, 1010, 10, false, &conflict));
    ck_assert_uint_eq(conflict.earlier, 2);
    race_destroy(d);
}
END_TEST

START_TEST(uses_the_number_of_an_agent_again_when_the_host_knows_its_work)
{
    struct race_detector *d = race_create();
    struct race_conflict conflict;
    uint32_t a = race_add_agent(d);
    race_add_memory(d, 1000, 100);
    race_tick(d, a);
    ck_assert(!race_access(d, a, 1, 1000, 10, true, &conflict));
    race_retire_agent(d, a);
    uint32_t b = race_add_agent(d);
    ck_assert_uint_ne(a, b);
    race_tick(d, b);
    ck_assert(race_access(d, b, 2, 1000, 10, true, &conflict));
    race_learn(d, RACE_HOST, race_clock_of(d, a));
    ck_assert_uint_eq(race_add_agent(d), a);
    race_tick(d, a);
    ck_assert(!race_access(d, a, 3, 1010, 10, true, &conflict));
    ck_assert(race_access(d, b, 4, 1010, 10, false, &conflict));
    race_destroy(d);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        allows_reads_of_the_same_bytes_at_once,
        allows_writes_side_by_side,
        passes_order_on_through_other_streams,
        takes_a_wait_of_the_host_for_order,
        finds_a_copy_out_that_does_not_wait_for_the_step,
        finds_bytes_used_again_before_their_copy_out_is_done,
        finds_a_copy_back_that_does_not_wait_where_it_is_issued,
        finds_a_step_that_does_not_wait_for_its_copy_back,
        finds_a_copy_issued_before_its_step,
        finds_a_wait_for_an_older_record,
        finds_a_copy_back_into_bytes_still_read,
        finds_host_bytes_given_away_while_a_copy_back_reads_them,
        finds_two_steps_on_two_streams_in_one_workspace,
        finds_a_host_that_reads_before_it_waits,
        finds_a_race_that_the_timing_hid,
        finds_a_wait_that_the_driver_lost,
        finds_a_copy_from_memory_that_is_not_pinned,
        finds_work_that_leaves_its_memory,
        finds_a_copy_in_the_wrong_direction,
        finds_the_use_of_freed_memory,
        finds_memory_freed_while_queued_work_needs_it,
        finds_a_wait_for_an_event_that_was_never_recorded,
        finds_the_use_of_streams_and_events_that_are_gone,
        finds_what_was_never_released,
        finds_a_context_that_is_not_current,
        splits_memory_where_accesses_begin_and_end,
        knows_what_was_learned_and_no_more,
        uses_the_number_of_an_agent_again_when_the_host_knows_its_work,
        finds_nothing_in_a_right_swap,
    };
    return RUN_TESTS("race_detector", tests, NULL, NULL);
}
