/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "planning.h"
#include "run_tests.h"

/* Steps of 100 ns over tensors of 100 bytes; copies take 100 ns unless a test says otherwise. */
#define BYTES  UINT64_C(100)
#define NS     INT64_C(100)
#define PLENTY 100000U

static struct region *region;
static struct profile_builder *b;
static struct planning p;

static void set_up(void)
{
    region = region_create();
    b = profile_builder_create(region);
}

static void tear_down(void)
{
    region_destroy(region);
}

/* Step 0 makes tensor 0, step 1 makes tensor 1 and step 2 reads it, step 3 reads tensor 0, which is
 * swapped in between. */
static void begin_pair(uint64_t budget_bytes)
{
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(x), NO_IDS);
    planning_begin(&p, b, budget_bytes, region);
    planning_choose(&p, x, 0, CHOICE_SWAP);
}

START_TEST(without_copies_there_is_no_stall)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_assemble(&p);
    ck_assert_int_eq(p.timeline->iteration_ns, 8 * NS);
    ck_assert_int_eq(p.timeline->stall_ns, 0);
    ck_assert_uint_eq(p.timeline->host_bytes, 0);
    /* Alloc and free of each tensor, 8 steps, and the beginning. */
    ck_assert_uint_eq(p.timeline->action_count, 2 * 9 + 8 + 1);
}
END_TEST

START_TEST(copies_hide_behind_steps)
{
    begin_pair(2 * BYTES);
    planning_assemble(&p);
    ck_assert_int_eq(p.timeline->iteration_ns, 4 * NS);
    ck_assert_int_eq(p.timeline->stall_ns, 0);
    ck_assert_uint_eq(p.timeline->host_bytes, BYTES);
}
END_TEST

START_TEST(compute_waits_where_memory_demands_it)
{
    begin_pair(BYTES);
    planning_assemble(&p);
    /* Out before step 1, which has no room else; in before step 3, behind step 2. */
    ck_assert_int_eq(p.timeline->stall_ns, 200);
    ck_assert_uint_lt(planning_find(&p, ACTION_EVICTED, 0, 0), planning_find_op(&p, 2));
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORE, 0, 1), planning_find_op(&p, 3));
}
END_TEST

START_TEST(compute_does_not_wait_while_there_is_room)
{
    b->profile.clock.d2h_bytes_per_second /= 2; /* 200 ns */
    begin_pair(2 * BYTES);
    planning_assemble(&p);
    /* On its way until 300 ns; step 3 could start then, and waits for the copy back. */
    ck_assert_int_eq(p.timeline->stall_ns, 100);
    ck_assert_uint_gt(planning_find(&p, ACTION_EVICTED, 0, 0), planning_find_op(&p, 3));
}
END_TEST

START_TEST(memory_beyond_the_limit_is_granted_where_the_sequence_needs_it)
{
    begin_pair(BYTES);
    planning_choose(&p, 0, 0, CHOICE_KEEP);
    planning_run(&p);
    ck_assert_uint_eq(p.sequence->excess_bytes, BYTES);
    ck_assert_int_eq(p.timeline->iteration_ns, 4 * NS); /* as with 2 * BYTES */
    ck_assert(!p.timeline->stuck);
}
END_TEST

START_TEST(a_step_may_use_its_working_set_beyond_a_lowered_limit)
{
    begin_pair(BYTES / 2);
    planning_run(&p);
    ck_assert_uint_eq(p.sequence->excess_bytes, 0);
    ck_assert_int_eq(p.timeline->iteration_ns, 4 * NS + 200); /* as with BYTES */
}
END_TEST

START_TEST(an_eviction_starts_while_the_tensor_is_still_read)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    /* Step 0 writes tensor 1 and step 1 reads it. */
    ck_assert_uint_gt(planning_find(&p, ACTION_EVICT, 1, 0), planning_find_op(&p, 1));
    ck_assert_uint_lt(planning_find(&p, ACTION_EVICT, 1, 0), planning_find_op(&p, 2));
    ck_assert_uint_gt(planning_find(&p, ACTION_EVICTED, 1, 0), planning_find_op(&p, 2));
}
END_TEST

START_TEST(a_tensor_that_is_updated_leaves_behind_its_last_writer)
{
    uint32_t x = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(x), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, x, 1, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_gt(planning_find(&p, ACTION_EVICT, x, 0), planning_find_op(&p, 2));
}
END_TEST

START_TEST(a_restore_is_issued_just_in_time)
{
    b = profile_builder_chain(6, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    /* Back for step 10, op 11; the copy takes as long as the step before. */
    ck_assert_int_eq(p.timeline->stall_ns, 0);
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORE, 1, 1), planning_find_op(&p, 9));
    ck_assert_uint_lt(planning_find(&p, ACTION_RESTORE, 1, 1), planning_find_op(&p, 10));
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORED, 1, 1), planning_find_op(&p, 10));
}
END_TEST

START_TEST(restores_that_queue_are_issued_earlier)
{
    b = profile_builder_chain(6, BYTES, NS, region);
    b->profile.clock.copy_latency_ns = 100; /* 200 ns each */
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 0, 0, CHOICE_SWAP);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    /* Tensor 0 is needed at 1100 ns, tensor 1 a step before: the copies start at 900 and, ahead of
     * it, at 700, with op 8. */
    ck_assert_int_eq(p.timeline->stall_ns, 0);
    ck_assert_uint_lt(planning_find(&p, ACTION_RESTORE, 1, 1), planning_find_op(&p, 8));
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORE, 1, 1), planning_find_op(&p, 7));
}
END_TEST

START_TEST(a_restore_waits_until_its_bytes_are_free)
{
    /* One more byte between step 2 and 3 would not fit, so the restore cannot be early. */
    begin_pair(2 * BYTES - 1);
    planning_assemble(&p);
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORE, 0, 1), planning_find_op(&p, 3));
    ck_assert_int_eq(p.timeline->stall_ns, 200);
}
END_TEST

START_TEST(evictions_leave_in_the_order_of_release)
{
    uint32_t late = profile_builder_tensor(b, BYTES), soon = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(late, soon));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(soon), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(late), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 4 * NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(late, soon), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, late, 2, CHOICE_SWAP);
    planning_choose(&p, soon, 1, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_lt(planning_find(&p, ACTION_EVICT, soon, 0),
                      planning_find(&p, ACTION_EVICT, late, 0));
    ck_assert_uint_eq(p.timeline->host_bytes, 2 * BYTES);
    ck_assert_int_eq(p.timeline->stall_ns, 0);
}
END_TEST

START_TEST(host_bytes_of_one_copy_serve_the_next)
{
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 4 * NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 4 * NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, x, 0, CHOICE_SWAP);
    planning_choose(&p, y, 2, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.predicted.evicted_bytes, 2 * BYTES);
    ck_assert_uint_eq(p.timeline->host_bytes, BYTES);
    ck_assert_uint_eq(p.plan.host_arena_bytes, BYTES);
}
END_TEST

START_TEST(a_stay_ends_before_the_next_begins)
{
    /* Tensor 0 goes to the host at version 2 and is made again at version 1, for tensor 1, while
     * the slow copy is still under way. */
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
    b->profile.clock.d2h_bytes_per_second /= 10;
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(y));
    uint32_t update = profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(x), NO_IDS);
    b->steps[update].rerun_never = true;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, y, 1, CHOICE_RECOMPUTE);
    planning_choose(&p, x, update, CHOICE_SWAP);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 r0 r1 3 4");
    ck_assert_uint_lt(planning_find(&p, ACTION_EVICTED, x, 0),
                      planning_find(&p, ACTION_ALLOC, x, 1));
    /* 1000 ns out from 300 ns on, two reruns and a step, then 100 ns in but for that step. */
    ck_assert_int_eq(p.timeline->iteration_ns, 300 + 1000 + 200 + 100 + 100);
}
END_TEST

START_TEST(latency_counts_for_each_copy)
{
    b->profile.clock.copy_latency_ns = 7;
    begin_pair(BYTES);
    planning_assemble(&p);
    ck_assert_int_eq(p.timeline->stall_ns, 214);
    ck_assert_int_eq(schedule_copy_out_ns(p.schedule)[0], 107);
    ck_assert_int_eq(schedule_copy_in_ns(p.schedule)[0], 107);
}
END_TEST

START_TEST(a_part_of_a_nanosecond_is_a_whole_one)
{
    b->profile.clock.h2d_bytes_per_second = 3000000000;
    begin_pair(BYTES);
    ck_assert_int_eq(schedule_copy_in_ns(p.schedule)[0], 34);
    planning_assemble(&p);
    ck_assert_int_eq(p.timeline->stall_ns, 134);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        without_copies_there_is_no_stall,
        copies_hide_behind_steps,
        compute_waits_where_memory_demands_it,
        compute_does_not_wait_while_there_is_room,
        memory_beyond_the_limit_is_granted_where_the_sequence_needs_it,
        a_step_may_use_its_working_set_beyond_a_lowered_limit,
        an_eviction_starts_while_the_tensor_is_still_read,
        a_tensor_that_is_updated_leaves_behind_its_last_writer,
        a_restore_is_issued_just_in_time,
        restores_that_queue_are_issued_earlier,
        a_restore_waits_until_its_bytes_are_free,
        evictions_leave_in_the_order_of_release,
        host_bytes_of_one_copy_serve_the_next,
        a_stay_ends_before_the_next_begins,
        latency_counts_for_each_copy,
        a_part_of_a_nanosecond_is_a_whole_one,
    };
    return RUN_TESTS("timeline", tests, set_up, tear_down);
}
