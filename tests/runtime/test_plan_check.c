/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One good plan, and one test per way to damage its order, its bytes and its copies. Space, header
 * and ids are in test_plan_check_space.c.
 */
#include "assert_plan.h"
#include "run_tests.h"

static struct plan_builder *rich;

static void set_up(void)
{
    rich = plan_builder_rich();
}

static void tear_down(void)
{
    plan_builder_destroy(rich);
}

static uint32_t at(enum atp_op op, uint32_t id, uint32_t nth)
{
    return plan_builder_find(rich, op, id, nth);
}

/* `acc` goes to the host and back before its update, and is freed where it was evicted. */
static void keep_only_the_first_version_of_acc(void)
{
    rich->program[at(ATP_OP_EVICTED, RICH_ACC, 0)].op = ATP_OP_FREE;
    plan_builder_remove(rich, at(ATP_OP_EVICT, RICH_ACC, 0));
    uint32_t run = at(ATP_OP_RUN, RICH_F0, 0);
    plan_builder_insert(rich, run + 1, ATP_OP_EVICT, RICH_ACC, 128);
    plan_builder_insert(rich, run + 2, ATP_OP_EVICTED, RICH_ACC, 0);
    plan_builder_insert(rich, run + 3, ATP_OP_RESTORE, RICH_ACC, 128);
    plan_builder_insert(rich, run + 4, ATP_OP_RESTORED, RICH_ACC, 0);
}

static void keep_m(void)
{
    plan_builder_remove(rich, at(ATP_OP_EVICT, RICH_M, 0));
    plan_builder_remove(rich, at(ATP_OP_EVICTED, RICH_M, 0));
    plan_builder_remove(rich, at(ATP_OP_RESTORE, RICH_M, 0));
    plan_builder_remove(rich, at(ATP_OP_RESTORED, RICH_M, 0));
}

START_TEST(accepts_a_plan_with_every_instruction)
{
    assert_accepted(rich);
}
END_TEST

START_TEST(accepts_a_read_while_the_tensor_is_being_evicted)
{
    plan_builder_move(rich, at(ATP_OP_EVICT, RICH_A, 0), at(ATP_OP_RUN, RICH_F1, 0));
    ck_assert_uint_lt(at(ATP_OP_EVICT, RICH_A, 0), at(ATP_OP_RUN, RICH_F1, 0));
    rich->program[at(ATP_OP_EVICT, RICH_A, 0)].offset = 64;
    assert_accepted(rich);
}
END_TEST

START_TEST(accepts_a_stale_host_copy_that_nobody_reads)
{
    keep_only_the_first_version_of_acc();
    plan_builder_remove(rich, at(ATP_OP_RESTORE, RICH_ACC, 1));
    plan_builder_remove(rich, at(ATP_OP_RESTORED, RICH_ACC, 1));
    uint32_t free_acc = at(ATP_OP_FREE, RICH_ACC, 0);
    plan_builder_remove(rich, free_acc);
    plan_builder_move(rich, at(ATP_OP_FREE, RICH_ACC, 0), at(ATP_OP_FREE, RICH_B, 1));
    assert_accepted(rich);
}
END_TEST

START_TEST(accepts_an_output_that_a_rerun_of_its_step_writes_while_it_is_kept)
{
    keep_m();
    assert_accepted(rich);
    ck_assert_int_eq(rich->decisions[RICH_M], ATP_DECISION_KEEP);
    ck_assert_int_eq(rich->decisions[RICH_B], ATP_DECISION_RECOMPUTE);
}
END_TEST

START_TEST(accepts_a_tensor_of_no_bytes_anywhere)
{
    rich->tensors[RICH_D].bytes = 0;
    rich->program[at(ATP_OP_ALLOC, RICH_D, 0)].offset = 128;
    assert_accepted(rich);
}
END_TEST

START_TEST(accepts_an_error_of_null)
{
    rich->plan.budget_bytes--;
    ck_assert_int_eq(atp_plan_check(&rich->plan, NULL), ATP_ERR_INVALID);
    rich->plan.budget_bytes++;
    ck_assert_int_eq(atp_plan_check(&rich->plan, NULL), ATP_OK);
}
END_TEST

START_TEST(rejects_a_free_before_the_last_read)
{
    plan_builder_move(rich, at(ATP_OP_FREE, RICH_C, 0), at(ATP_OP_RUN, RICH_B3, 0));
    assert_refused(rich, at(ATP_OP_RUN, RICH_B3, 0), "run l3 backward: \"c\" is not on the device");
}
END_TEST

START_TEST(rejects_a_read_without_the_wait_for_its_restore)
{
    plan_builder_remove(rich, at(ATP_OP_RESTORED, RICH_A, 0));
    assert_refused(rich, at(ATP_OP_RERUN, RICH_F1, 0), "rerun l1: \"a\" is still being restored");
}
END_TEST

START_TEST(rejects_a_read_before_the_wait_for_its_restore)
{
    plan_builder_move(rich, at(ATP_OP_RESTORED, RICH_X, 0), at(ATP_OP_RUN, RICH_B0, 0) + 1);
    assert_refused(rich, at(ATP_OP_RUN, RICH_B0, 0), "\"x\" is still being restored");
}
END_TEST

START_TEST(rejects_a_read_of_bytes_that_nothing_has_written)
{
    plan_builder_remove(rich, at(ATP_OP_RERUN, RICH_F1, 0));
    assert_refused(rich, at(ATP_OP_RUN, RICH_B2, 0), "the contents of \"b\" are undefined");
}
END_TEST

START_TEST(rejects_a_read_of_an_input_that_was_freed_and_allocated_again)
{
    uint32_t evicted = at(ATP_OP_EVICTED, RICH_X, 0);
    plan_builder_remove(rich, at(ATP_OP_RESTORED, RICH_X, 0));
    rich->program[at(ATP_OP_RESTORE, RICH_X, 0)].op = ATP_OP_ALLOC;
    ck_assert_uint_lt(evicted, at(ATP_OP_ALLOC, RICH_X, 1));
    assert_refused(rich, at(ATP_OP_RUN, RICH_B0, 0), "the contents of \"x\" are undefined");
}
END_TEST

START_TEST(rejects_a_stale_version_after_an_update_in_place)
{
    keep_only_the_first_version_of_acc();
    assert_refused(rich, at(ATP_OP_RUN, RICH_B2, 0), "\"acc\" is at version 1, expected version 2");
}
END_TEST

START_TEST(rejects_a_rerun_on_a_version_later_than_its_run_read)
{
    uint32_t run = at(ATP_OP_RUN, RICH_F2, 0);
    plan_builder_insert(rich, run + 1, ATP_OP_RERUN, RICH_F2, 0);
    assert_refused(rich, run + 1, "\"acc\" is at version 2, expected version 1");
}
END_TEST

START_TEST(rejects_a_later_writer_without_the_version_before_it)
{
    /* b2 lists g only as written, and still needs what b3 left. */
    struct plan_builder *b = plan_builder_create("partial");
    uint32_t g = plan_builder_tensor(b, "g", 16);
    plan_builder_step(b, ATP_PHASE_FORWARD, "first", NO_IDS, IDS(g));
    plan_builder_step(b, ATP_PHASE_FORWARD, "second", NO_IDS, IDS(g));
    plan_builder_add(b, ATP_OP_ALLOC, g, 0);
    plan_builder_add(b, ATP_OP_RUN, 0, 0);
    plan_builder_add(b, ATP_OP_FREE, g, 0);
    plan_builder_add(b, ATP_OP_ALLOC, g, 0);
    plan_builder_add(b, ATP_OP_RUN, 1, 0);
    plan_builder_add(b, ATP_OP_FREE, g, 0);
    plan_builder_seal(b);
    struct atp_error err = {0};
    enum atp_status status = atp_plan_check(&b->plan, &err);
    assert_error(status, err, ATP_ERR_INVALID, 4, "the contents of \"g\" are undefined");
    plan_builder_remove(b, 3);
    plan_builder_remove(b, 2);
    plan_builder_seal(b);
    assert_ok(atp_plan_check(&b->plan, &err), err);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(rejects_a_write_to_a_tensor_without_device_bytes)
{
    plan_builder_remove(rich, at(ATP_OP_ALLOC, RICH_D, 0));
    assert_refused(rich, at(ATP_OP_RUN, RICH_F3, 0), "\"d\" is not on the device");
}
END_TEST

START_TEST(rejects_steps_in_the_wrong_order)
{
    rich->program[at(ATP_OP_RUN, RICH_F2, 0)].id = RICH_F3;
    assert_refused(rich, at(ATP_OP_RUN, RICH_F3, 0),
                   "the next step to run is steps[2] \"l2\" forward");
}
END_TEST

START_TEST(rejects_a_step_that_runs_twice)
{
    uint32_t again = plan_builder_add(rich, ATP_OP_RUN, RICH_UP, 0);
    assert_refused(rich, again, "all steps have run already");
}
END_TEST

START_TEST(rejects_a_program_that_ends_before_the_last_step)
{
    plan_builder_remove(rich, at(ATP_OP_RUN, RICH_UP, 0));
    assert_refused(rich, ATP_NONE, "ends before steps[8] \"adam\" update has run");
}
END_TEST

START_TEST(rejects_an_empty_program)
{
    rich->plan.instruction_count = 0;
    assert_refused(rich, ATP_NONE, "ends before steps[0] \"l0\" forward has run");
}
END_TEST

START_TEST(rejects_a_rerun_of_a_step_that_must_never_run_twice)
{
    uint32_t again = at(ATP_OP_RUN, RICH_F3, 0) + 1;
    plan_builder_insert(rich, again, ATP_OP_RERUN, RICH_F3, 0);
    assert_refused(rich, again, "rerun l3: it must never run twice");
}
END_TEST

START_TEST(rejects_a_rerun_before_the_run)
{
    uint32_t early = at(ATP_OP_RUN, RICH_F1, 0);
    plan_builder_insert(rich, early, ATP_OP_RERUN, RICH_F1, 288);
    assert_refused(rich, early, "it has not run yet");
}
END_TEST

START_TEST(rejects_a_rerun_of_a_backward_step)
{
    uint32_t again = at(ATP_OP_RUN, RICH_B3, 0) + 1;
    plan_builder_insert(rich, again, ATP_OP_RERUN, RICH_B3, 0);
    assert_refused(rich, again, "it is a backward step, only forward steps run again");
}
END_TEST

START_TEST(rejects_an_alloc_in_the_bytes_of_an_eviction_without_its_wait)
{
    plan_builder_remove(rich, at(ATP_OP_EVICTED, RICH_X, 0));
    assert_refused(rich, at(ATP_OP_ALLOC, RICH_C, 0), "alloc c: bytes [0, 64) overlap \"x\"");
}
END_TEST

START_TEST(rejects_a_write_while_the_tensor_is_being_evicted)
{
    uint32_t run = at(ATP_OP_RUN, RICH_F2, 0);
    plan_builder_move(rich, at(ATP_OP_EVICT, RICH_ACC, 0), run);
    assert_refused(rich, run + 1, "\"acc\" is written while it is still being evicted");
}
END_TEST

START_TEST(rejects_a_write_while_the_tensor_is_being_restored)
{
    /* The rerun of l1 writes m. */
    uint32_t rerun = at(ATP_OP_RERUN, RICH_F1, 0);
    plan_builder_insert(rich, rerun, ATP_OP_RESTORE, RICH_M, 256);
    plan_builder_insert(rich, rerun, ATP_OP_EVICTED, RICH_M, 0);
    plan_builder_insert(rich, rerun, ATP_OP_EVICT, RICH_M, 192);
    rich->plan.host_arena_bytes = 1024;
    assert_refused(rich, rerun + 3, "\"m\" is written while it is still being restored");
}
END_TEST

START_TEST(rejects_a_free_while_the_tensor_is_being_evicted)
{
    rich->program[at(ATP_OP_EVICTED, RICH_X, 0)].op = ATP_OP_FREE;
    assert_refused(rich, at(ATP_OP_FREE, RICH_X, 0), "free x: it is still being evicted");
}
END_TEST

START_TEST(rejects_a_free_while_the_tensor_is_being_restored)
{
    uint32_t restored = at(ATP_OP_RESTORED, RICH_ACC, 0);
    rich->program[restored].op = ATP_OP_FREE;
    assert_refused(rich, restored, "free acc: it is still being restored");
}
END_TEST

START_TEST(rejects_an_eviction_while_another_is_in_flight)
{
    uint32_t evict = at(ATP_OP_EVICT, RICH_X, 0);
    plan_builder_insert(rich, evict + 1, ATP_OP_EVICT, RICH_X, 128);
    assert_refused(rich, evict + 1, "evict x: it is still being evicted");
}
END_TEST

START_TEST(rejects_an_eviction_while_the_tensor_is_being_restored)
{
    uint32_t restored = at(ATP_OP_RESTORED, RICH_ACC, 0);
    plan_builder_insert(rich, restored, ATP_OP_EVICT, RICH_ACC, 0);
    assert_refused(rich, restored, "evict acc: it is still being restored");
}
END_TEST

START_TEST(rejects_host_bytes_that_an_eviction_is_writing)
{
    plan_builder_move(rich, at(ATP_OP_EVICT, RICH_A, 0), at(ATP_OP_EVICTED, RICH_X, 0));
    rich->program[at(ATP_OP_EVICT, RICH_A, 0)].offset = 48;
    assert_refused(rich, at(ATP_OP_EVICT, RICH_A, 0),
                   "host bytes [48, 112) overlap those of \"x\" at [0, 64), which are still being "
                   "written");
}
END_TEST

START_TEST(rejects_host_bytes_that_a_restore_is_reading)
{
    plan_builder_move(rich, at(ATP_OP_EVICT, RICH_M, 0), at(ATP_OP_RESTORED, RICH_ACC, 0));
    assert_refused(rich, at(ATP_OP_EVICT, RICH_M, 0),
                   "\"acc\" at [128, 192), which are still being read");
}
END_TEST

START_TEST(rejects_a_restore_from_an_overwritten_host_copy)
{
    rich->program[at(ATP_OP_EVICT, RICH_A, 0)].offset = 48;
    assert_refused(rich, at(ATP_OP_RESTORE, RICH_X, 0), "restore x: it has no good host copy");
}
END_TEST

START_TEST(rejects_a_second_restore_from_an_overwritten_host_copy)
{
    rich->program[at(ATP_OP_EVICT, RICH_M, 0)].offset = 96;
    assert_refused(rich, at(ATP_OP_RESTORE, RICH_A, 1), "restore a: it has no good host copy");
}
END_TEST

START_TEST(rejects_a_restore_without_a_host_copy)
{
    uint32_t alloc = at(ATP_OP_ALLOC, RICH_B, 1);
    rich->program[alloc].op = ATP_OP_RESTORE;
    assert_refused(rich, alloc, "restore b: it has no good host copy");
}
END_TEST

START_TEST(rejects_a_restore_of_a_tensor_on_the_device)
{
    uint32_t evicted = at(ATP_OP_EVICTED, RICH_A, 0);
    plan_builder_insert(rich, evicted, ATP_OP_RESTORE, RICH_A, 0);
    assert_refused(rich, evicted, "restore a: it is on the device already");
}
END_TEST

START_TEST(rejects_an_eviction_of_undefined_contents)
{
    uint32_t run = at(ATP_OP_RUN, RICH_F0, 0);
    plan_builder_insert(rich, run, ATP_OP_EVICT, RICH_A, 64);
    assert_refused(rich, run, "evict a: its contents are undefined");
}
END_TEST

START_TEST(rejects_an_eviction_of_a_tensor_off_the_device)
{
    uint32_t run = at(ATP_OP_RUN, RICH_F0, 0);
    plan_builder_insert(rich, run, ATP_OP_EVICT, RICH_B, 64);
    assert_refused(rich, run, "evict b: it is not on the device");
}
END_TEST

START_TEST(rejects_a_wait_for_an_eviction_that_is_not_in_flight)
{
    plan_builder_remove(rich, at(ATP_OP_EVICT, RICH_A, 0));
    assert_refused(rich, at(ATP_OP_EVICTED, RICH_A, 0),
                   "evicted a: no eviction of it is in flight");
}
END_TEST

START_TEST(rejects_a_wait_for_a_restore_that_is_not_in_flight)
{
    uint32_t restored = at(ATP_OP_RESTORED, RICH_A, 0);
    plan_builder_insert(rich, restored, ATP_OP_RESTORED, RICH_A, 0);
    assert_refused(rich, restored + 1, "restored a: no restore of it is in flight");
}
END_TEST

START_TEST(rejects_a_free_of_a_tensor_off_the_device)
{
    uint32_t twice = at(ATP_OP_FREE, RICH_D, 0) + 1;
    plan_builder_insert(rich, twice, ATP_OP_FREE, RICH_D, 0);
    assert_refused(rich, twice, "free d: it is not on the device");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        accepts_a_plan_with_every_instruction,
        accepts_a_read_while_the_tensor_is_being_evicted,
        accepts_a_stale_host_copy_that_nobody_reads,
        accepts_an_output_that_a_rerun_of_its_step_writes_while_it_is_kept,
        accepts_a_tensor_of_no_bytes_anywhere,
        accepts_an_error_of_null,
        rejects_a_free_before_the_last_read,
        rejects_a_read_without_the_wait_for_its_restore,
        rejects_a_read_before_the_wait_for_its_restore,
        rejects_a_read_of_bytes_that_nothing_has_written,
        rejects_a_read_of_an_input_that_was_freed_and_allocated_again,
        rejects_a_stale_version_after_an_update_in_place,
        rejects_a_rerun_on_a_version_later_than_its_run_read,
        rejects_a_later_writer_without_the_version_before_it,
        rejects_a_write_to_a_tensor_without_device_bytes,
        rejects_steps_in_the_wrong_order,
        rejects_a_step_that_runs_twice,
        rejects_a_program_that_ends_before_the_last_step,
        rejects_an_empty_program,
        rejects_a_rerun_of_a_step_that_must_never_run_twice,
        rejects_a_rerun_before_the_run,
        rejects_a_rerun_of_a_backward_step,
        rejects_an_alloc_in_the_bytes_of_an_eviction_without_its_wait,
        rejects_a_write_while_the_tensor_is_being_evicted,
        rejects_a_write_while_the_tensor_is_being_restored,
        rejects_a_free_while_the_tensor_is_being_evicted,
        rejects_a_free_while_the_tensor_is_being_restored,
        rejects_an_eviction_while_another_is_in_flight,
        rejects_an_eviction_while_the_tensor_is_being_restored,
        rejects_host_bytes_that_an_eviction_is_writing,
        rejects_host_bytes_that_a_restore_is_reading,
        rejects_a_restore_from_an_overwritten_host_copy,
        rejects_a_second_restore_from_an_overwritten_host_copy,
        rejects_a_restore_without_a_host_copy,
        rejects_a_restore_of_a_tensor_on_the_device,
        rejects_an_eviction_of_undefined_contents,
        rejects_an_eviction_of_a_tensor_off_the_device,
        rejects_a_wait_for_an_eviction_that_is_not_in_flight,
        rejects_a_wait_for_a_restore_that_is_not_in_flight,
        rejects_a_free_of_a_tensor_off_the_device,
    };
    return RUN_TESTS("plan_check", tests, set_up, tear_down);
}
