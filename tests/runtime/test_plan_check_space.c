/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One good plan, and one test per way to damage its use of space, its beginning and end, its header
 * and its ids.
 */
#include "assert_plan.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

START_TEST(rejects_two_live_tensors_at_one_offset)
{
    rich->program[at(ATP_OP_ALLOC, RICH_M, 0)].offset = 192;
    assert_refused(rich, at(ATP_OP_ALLOC, RICH_M, 0),
                   "bytes [192, 224) overlap \"b\", which is live at "
                   "[192, 256)");
}
END_TEST

START_TEST(rejects_two_live_tensors_that_overlap_in_part)
{
    rich->program[at(ATP_OP_RESTORE, RICH_A, 0)].offset = 80;
    rich->program[at(ATP_OP_ALLOC, RICH_G, 0)].offset = 128;
    assert_refused(rich, at(ATP_OP_RESTORE, RICH_A, 0), "bytes [80, 144) overlap \"g\"");
}
END_TEST

START_TEST(rejects_a_double_alloc)
{
    uint32_t twice = at(ATP_OP_ALLOC, RICH_D, 0) + 1;
    plan_builder_insert(rich, twice, ATP_OP_ALLOC, RICH_D, 288);
    assert_refused(rich, twice, "alloc d: it is on the device already");
}
END_TEST

START_TEST(rejects_a_workspace_on_a_live_tensor)
{
    rich->program[at(ATP_OP_RUN, RICH_F1, 0)].offset = 256;
    assert_refused(rich, at(ATP_OP_RUN, RICH_F1, 0),
                   "run l1 forward: bytes [256, 288) overlap \"m\"");
}
END_TEST

START_TEST(rejects_a_workspace_of_a_rerun_on_a_live_tensor)
{
    rich->program[at(ATP_OP_RERUN, RICH_F1, 0)].offset = 16;
    assert_refused(rich, at(ATP_OP_RERUN, RICH_F1, 0), "bytes [16, 48) overlap \"b\"");
}
END_TEST

START_TEST(rejects_a_workspace_outside_the_arena)
{
    rich->program[at(ATP_OP_RUN, RICH_B1, 0)].offset = 304;
    assert_refused(rich, at(ATP_OP_RUN, RICH_B1, 0), "leave the arena of 320 bytes");
}
END_TEST

START_TEST(rejects_an_offset_for_a_step_without_workspace)
{
    rich->program[at(ATP_OP_RUN, RICH_F2, 0)].offset = 16;
    assert_refused(rich, at(ATP_OP_RUN, RICH_F2, 0), "it has no workspace, expected offset 0");
}
END_TEST

START_TEST(rejects_an_offset_for_an_instruction_that_takes_none)
{
    rich->program[at(ATP_OP_FREE, RICH_D, 0)].offset = 16;
    assert_refused(rich, at(ATP_OP_FREE, RICH_D, 0), "it takes no offset, expected 0");
}
END_TEST

START_TEST(rejects_an_arena_that_is_too_small)
{
    rich->plan.arena_bytes--;
    assert_refused(rich, at(ATP_OP_RUN, RICH_F1, 0), "leave the arena of 319 bytes");
}
END_TEST

START_TEST(rejects_a_host_arena_that_is_too_small)
{
    rich->plan.host_arena_bytes--;
    assert_refused(rich, at(ATP_OP_EVICT, RICH_ACC, 0), "leave the host arena of 191 bytes");
}
END_TEST

START_TEST(rejects_an_offset_whose_end_overflows)
{
    rich->program[at(ATP_OP_ALLOC, RICH_D, 0)].offset = UINT64_MAX - 15;
    assert_refused(rich, at(ATP_OP_ALLOC, RICH_D, 0), "leave the arena");
}
END_TEST

START_TEST(rejects_a_misaligned_device_offset)
{
    rich->program[at(ATP_OP_ALLOC, RICH_W, 0)].offset = 72;
    assert_refused(rich, at(ATP_OP_ALLOC, RICH_W, 0),
                   "offset 72 is no multiple of the alignment of 16");
}
END_TEST

START_TEST(rejects_a_misaligned_host_offset)
{
    rich->program[at(ATP_OP_EVICT, RICH_M, 0)].offset = 130;
    assert_refused(rich, at(ATP_OP_EVICT, RICH_M, 0), "offset 130 is no multiple");
}
END_TEST

START_TEST(rejects_a_misaligned_workspace)
{
    rich->program[at(ATP_OP_RUN, RICH_B1, 0)].offset = 280;
    assert_refused(rich, at(ATP_OP_RUN, RICH_B1, 0), "offset 280 is no multiple");
}
END_TEST

START_TEST(rejects_an_alignment_that_is_no_power_of_two)
{
    rich->plan.alignment_bytes = 24;
    assert_refused(rich, ATP_NONE, "alignment_bytes: 24, expected a power of two");
    rich->plan.alignment_bytes = 0;
    assert_refused(rich, ATP_NONE, "alignment_bytes: 0, expected a power of two");
}
END_TEST

START_TEST(rejects_a_plan_above_its_budget)
{
    rich->plan.budget_bytes--;
    assert_refused(rich, ATP_NONE,
                   "budget_bytes: 1319 are fewer than 1000 resident and 320 arena bytes");
}
END_TEST

START_TEST(rejects_resident_bytes_that_overflow)
{
    rich->plan.budget_bytes = UINT64_MAX;
    rich->plan.resident_bytes = UINT64_MAX - 100;
    assert_refused(rich, ATP_NONE, "budget_bytes");
}
END_TEST

START_TEST(rejects_an_input_that_is_not_allocated_first)
{
    plan_builder_move(rich, 0, 2);
    assert_refused(rich, 0, "the program begins with the alloc of each of the 1 inputs");
}
END_TEST

START_TEST(rejects_an_input_that_is_never_allocated)
{
    plan_builder_remove(rich, 0);
    assert_refused(rich, 0, "the program begins with the alloc of each of the 1 inputs");
}
END_TEST

START_TEST(rejects_a_tensor_left_at_the_end)
{
    plan_builder_remove(rich, at(ATP_OP_FREE, RICH_W, 0));
    assert_refused(rich, ATP_NONE, "it ends with \"w\" on the device");
}
END_TEST

START_TEST(rejects_a_copy_in_flight_at_the_end)
{
    uint32_t end = at(ATP_OP_FREE, RICH_W, 0);
    plan_builder_insert(rich, end, ATP_OP_EVICT, RICH_W, 0);
    plan_builder_remove(rich, end + 1);
    assert_refused(rich, ATP_NONE, "it ends with \"w\" being evicted");
}
END_TEST

START_TEST(rejects_a_fingerprint_of_another_model)
{
    rich->plan.fingerprint[31] ^= 1;
    assert_refused(rich, ATP_NONE, "fingerprint: it is not that of");
}
END_TEST

START_TEST(rejects_a_model_that_changed_under_its_fingerprint)
{
    rich->steps[RICH_F1].workspace_bytes = 16;
    assert_refused(rich, ATP_NONE, "fingerprint: it is not that of");
}
END_TEST

START_TEST(rejects_a_broken_model)
{
    rich->steps[RICH_F0].phase = ATP_PHASE_UPDATE;
    assert_refused(rich, ATP_NONE, "steps[1]: phase forward follows phase update");
}
END_TEST

START_TEST(rejects_a_false_peak)
{
    ck_assert_uint_eq(rich->plan.predicted.peak_bytes, 320);
    rich->plan.predicted.peak_bytes--;
    assert_refused(rich, ATP_NONE, "predicted.peak_bytes: 319, but the program's peak is 320");
}
END_TEST

START_TEST(rejects_a_false_decision)
{
    rich->decisions[RICH_B] = ATP_DECISION_KEEP;
    assert_refused(rich, ATP_NONE,
                   "tensors[3] \"b\": the decision is keep, but the program's is recompute");
}
END_TEST

START_TEST(rejects_a_decision_to_swap_what_is_kept)
{
    rich->decisions[RICH_C] = ATP_DECISION_SWAP;
    assert_refused(rich, ATP_NONE,
                   "tensors[5] \"c\": the decision is swap, but the program's is keep");
}
END_TEST

START_TEST(rejects_a_missing_program)
{
    rich->plan.program = NULL;
    assert_refused(rich, ATP_NONE, "program: it is NULL");
}
END_TEST

START_TEST(rejects_missing_decisions)
{
    rich->plan.decisions = NULL;
    assert_refused(rich, ATP_NONE, "decisions: they are NULL");
}
END_TEST

START_TEST(rejects_a_tensor_id_out_of_range)
{
    rich->program[at(ATP_OP_FREE, RICH_D, 0)].id = 9;
    assert_refused(rich, at(ATP_OP_FREE, 9, 0), "free: no tensor has id 9, there are 9");
}
END_TEST

START_TEST(rejects_a_step_id_out_of_range)
{
    rich->program[at(ATP_OP_RUN, RICH_F2, 0)].id = ATP_NONE;
    assert_refused(rich, at(ATP_OP_RUN, ATP_NONE, 0),
                   "run: no step has id 4294967295, there are 9");
}
END_TEST

START_TEST(rejects_an_operation_out_of_range)
{
    uint32_t free_d = at(ATP_OP_FREE, RICH_D, 0);
    int unknown = ATP_OP_COUNT;
    memcpy(&rich->program[free_d].op, &unknown, sizeof(unknown));
    assert_refused(rich, free_d, "no operation has number 8");
}
END_TEST

/* A window of 1,500 live tensors moves over 3,250 layers; what leaves it is swapped. Every step has
 * a workspace, so that every instruction but the waits and the frees scans the live ranges. */
static struct plan_builder *long_plan(void)
{
    enum { LAYERS = 3250, WINDOW = 1500 };
    struct plan_builder *b = plan_builder_create("long");
    char name[16];
    for (uint32_t i = 0; i < LAYERS; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        plan_builder_tensor(b, name, 64);
        plan_builder_step(b, ATP_PHASE_FORWARD, name, NO_IDS, IDS(i));
    }
    for (uint32_t i = LAYERS; i > 0; i--) {
        (void)snprintf(name, sizeof(name), "t%u", i - 1);
        plan_builder_step(b, ATP_PHASE_BACKWARD, name, IDS(i - 1), NO_IDS);
    }
    for (uint32_t i = 0; i < LAYERS; i++) {
        if (i >= WINDOW) {
            plan_builder_add(b, ATP_OP_EVICT, i - WINDOW, (i - WINDOW) * UINT64_C(64));
            plan_builder_add(b, ATP_OP_EVICTED, i - WINDOW, 0);
        }
        plan_builder_add(b, ATP_OP_ALLOC, i, i % WINDOW * UINT64_C(64));
        plan_builder_add(b, ATP_OP_RUN, i, WINDOW * UINT64_C(64));
    }
    for (uint32_t i = LAYERS; i-- > 0;) {
        plan_builder_add(b, ATP_OP_RUN, 2 * LAYERS - 1 - i, WINDOW * UINT64_C(64));
        plan_builder_add(b, ATP_OP_FREE, i, 0);
        if (i >= WINDOW) {
            plan_builder_add(b, ATP_OP_RESTORE, i - WINDOW, i % WINDOW * UINT64_C(64));
            plan_builder_add(b, ATP_OP_RESTORED, i - WINDOW, 0);
        }
    }
    for (uint32_t s = 0; s < 2 * LAYERS; s++) {
        b->steps[s].workspace_bytes = 64;
    }
    plan_builder_seal(b);
    return b;
}

START_TEST(checks_a_long_plan_in_a_moment)
{
    struct plan_builder *b = long_plan();
    struct atp_error err = {0};
    ck_assert_uint_eq(b->plan.instruction_count, 20000);
    clock_t start = clock();
    assert_ok(atp_plan_check(&b->plan, &err), err);
    double ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
    (void)printf("atp_plan_check: 20,000 instructions, 1,500 live tensors: %.1f ms\n", ms);
    ck_assert(ms < 2000);
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rejects_two_live_tensors_at_one_offset,
        rejects_two_live_tensors_that_overlap_in_part,
        rejects_a_double_alloc,
        rejects_a_workspace_on_a_live_tensor,
        rejects_a_workspace_of_a_rerun_on_a_live_tensor,
        rejects_a_workspace_outside_the_arena,
        rejects_an_offset_for_a_step_without_workspace,
        rejects_an_offset_for_an_instruction_that_takes_none,
        rejects_an_arena_that_is_too_small,
        rejects_a_host_arena_that_is_too_small,
        rejects_an_offset_whose_end_overflows,
        rejects_a_misaligned_device_offset,
        rejects_a_misaligned_host_offset,
        rejects_a_misaligned_workspace,
        rejects_an_alignment_that_is_no_power_of_two,
        rejects_a_plan_above_its_budget,
        rejects_resident_bytes_that_overflow,
        rejects_an_input_that_is_not_allocated_first,
        rejects_an_input_that_is_never_allocated,
        rejects_a_tensor_left_at_the_end,
        rejects_a_copy_in_flight_at_the_end,
        rejects_a_fingerprint_of_another_model,
        rejects_a_model_that_changed_under_its_fingerprint,
        rejects_a_broken_model,
        rejects_a_false_peak,
        rejects_a_false_decision,
        rejects_a_decision_to_swap_what_is_kept,
        rejects_a_missing_program,
        rejects_missing_decisions,
        rejects_a_tensor_id_out_of_range,
        rejects_a_step_id_out_of_range,
        rejects_an_operation_out_of_range,
        checks_a_long_plan_in_a_moment,
    };
    return RUN_TESTS("plan_check_space", tests, set_up, tear_down);
}
