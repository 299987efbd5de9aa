/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "assert_judges.h"
#include "planning.h"
#include "run_tests.h"

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

/* The `nth` (from 0) instruction `op` of `id`. */
static const struct atp_instruction *instruction(enum atp_op op, uint32_t id, uint32_t nth)
{
    for (uint32_t i = 0; i < p.plan.instruction_count; i++) {
        if (p.plan.program[i].op == op && p.plan.program[i].id == id && nth-- == 0) {
            return &p.plan.program[i];
        }
    }
    ck_abort_msg("%s %u: not in the program", atp_op_name(op), id);
    return NULL;
}

static uint32_t instruction_count(enum atp_op op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p.plan.instruction_count; i++) {
        count += p.plan.program[i].op == op;
    }
    return count;
}

START_TEST(a_kept_chain_is_the_plain_program)
{
    b = profile_builder_chain(2, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.instruction_count, 5 + 4 + 5);
    ck_assert_uint_eq(instruction_count(ATP_OP_RUN), 4);
    ck_assert_uint_eq(p.plan.host_arena_bytes, 0);
    ck_assert_uint_eq(p.result.host_arena_bytes, 0);
    ck_assert_uint_eq(p.plan.arena_bytes, p.problem.peak_bytes);
    ck_assert_uint_eq(p.result.live_bytes, p.problem.peak_bytes);
    ck_assert_uint_eq(p.plan.program[0].op, ATP_OP_ALLOC);
    ck_assert_uint_eq(p.plan.program[0].id, 0); /* the input */
    for (uint32_t t = 0; t < 5; t++) {
        ck_assert_int_eq(p.plan.decisions[t], ATP_DECISION_KEEP);
    }
}
END_TEST

START_TEST(the_header_is_the_problem_s)
{
    b = profile_builder_chain(2, BYTES, NS, region);
    b->profile.resident_bytes = 5000;
    planning_begin(&p, b, PLENTY, region);
    planning_assemble(&p);
    uint8_t fingerprint[32];
    atp_model_fingerprint(&b->profile.model, fingerprint);
    ck_assert_mem_eq(p.plan.fingerprint, fingerprint, sizeof(fingerprint));
    ck_assert_uint_eq(p.plan.budget_bytes, PLENTY);
    ck_assert_uint_eq(p.plan.resident_bytes, 5000);
    ck_assert_uint_eq(p.plan.alignment_bytes, 1);
    ck_assert(!p.plan.time_limited);
}
END_TEST

START_TEST(decisions_are_what_the_program_does)
{
    b = profile_builder_chain(5, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_choose(&p, 2, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    const enum atp_decision expected[] = {ATP_DECISION_KEEP, ATP_DECISION_SWAP,
                                          ATP_DECISION_RECOMPUTE, ATP_DECISION_KEEP};
    for (uint32_t t = 0; t < 4; t++) {
        ck_assert_int_eq(p.plan.decisions[t], expected[t]);
    }
}
END_TEST

START_TEST(an_output_that_a_rerun_writes_over_is_still_kept)
{
    uint32_t y = profile_builder_tensor(b, BYTES), z = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(y, z));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y, z), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, y, 0, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    ck_assert_int_eq(p.plan.decisions[y], ATP_DECISION_RECOMPUTE);
    ck_assert_int_eq(p.plan.decisions[z], ATP_DECISION_KEEP);
}
END_TEST

START_TEST(swapped_and_made_again_counts_as_swapped)
{
    /* Tensor 0 is at version 2 on the host while a rerun makes version 1 for tensor 1. */
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
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
    ck_assert_int_eq(p.plan.decisions[x], ATP_DECISION_SWAP);
    ck_assert_int_eq(p.plan.decisions[y], ATP_DECISION_RECOMPUTE);
}
END_TEST

START_TEST(a_workspace_has_a_place_while_its_step_runs)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    b->steps[0].workspace_bytes = 130;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    /* Fullest in the rerun: tensors 0 to 2, a gradient and the workspace. */
    ck_assert_uint_eq(p.result.live_bytes, 4 * BYTES + 130);
    ck_assert_uint_eq(p.sequence->ops[p.result.crowded_op].step, 0);
    ck_assert(p.sequence->ops[p.result.crowded_op].is_rerun);
    ck_assert_uint_eq(instruction(ATP_OP_RUN, 1, 0)->offset, 0);
    (void)instruction(ATP_OP_RERUN, 0, 0);
}
END_TEST

START_TEST(a_workspace_may_lie_where_tensors_will)
{
    uint32_t x = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    b->steps[0].workspace_bytes = BYTES;
    planning_begin(&p, b, BYTES, region);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.arena_bytes, BYTES);
}
END_TEST

START_TEST(host_copies_that_do_not_meet_share_their_bytes)
{
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES / 2);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 9 * NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 9 * NS, NO_IDS, NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, x, 0, CHOICE_SWAP);
    planning_choose(&p, y, 2, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.host_arena_bytes, BYTES);
    ck_assert_uint_eq(instruction(ATP_OP_EVICT, x, 0)->offset, 0);
    ck_assert_uint_eq(instruction(ATP_OP_EVICT, y, 0)->offset, 0);
}
END_TEST

START_TEST(host_copies_that_meet_lie_apart)
{
    b = profile_builder_chain(5, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_choose(&p, 2, 2, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.host_arena_bytes, 2 * BYTES);
    ck_assert_uint_ne(instruction(ATP_OP_EVICT, 1, 0)->offset,
                      instruction(ATP_OP_EVICT, 2, 0)->offset);
}
END_TEST

START_TEST(a_host_copy_lasts_until_its_last_restore)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP | CHOICE_AGAIN);
    planning_choose(&p, 2, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    ck_assert_uint_eq(instruction_count(ATP_OP_EVICT), 1);
    ck_assert_uint_eq(instruction_count(ATP_OP_RESTORE), 2);
    ck_assert_uint_eq(p.plan.host_arena_bytes, BYTES);
}
END_TEST

START_TEST(says_what_an_arena_that_is_too_small_lacks)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    planning_begin(&p, b, 600, region);
    planning_run(&p);
    ck_assert_uint_eq(p.problem.peak_bytes, 600);
    struct atp_plan untouched = {.arena_bytes = 12345};
    p.plan = untouched;
    p.problem.arena_capacity = 599;
    assemble(&p.problem, p.sequence, p.timeline, 1000, region, &p.plan, &p.result);
    ck_assert(!p.result.fits);
    ck_assert_uint_eq(p.result.arena_bytes, 600);
    ck_assert_uint_eq(p.result.live_bytes, 600);
    ck_assert_uint_eq(p.sequence->memory_bytes[p.result.crowded_op], 600);
    ck_assert_uint_eq(p.plan.arena_bytes, 12345);
}
END_TEST

START_TEST(host_copies_must_fit_too)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    b->profile.pinned_bytes = BYTES - 1;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_run(&p);
    assemble(&p.problem, p.sequence, p.timeline, 1000, region, &p.plan, &p.result);
    ck_assert(!p.result.fits);
    ck_assert_uint_eq(p.result.host_arena_bytes, BYTES);
}
END_TEST

START_TEST(offsets_are_multiples_of_the_alignment)
{
    b = profile_builder_chain(4, BYTES + 1, NS, region);
    b->steps[0].workspace_bytes = 3;
    planning_begin(&p, b, PLENTY, region);
    ck_assert_int_eq(problem_build(&b->profile, PLENTY, 64, region, &p.problem, NULL), ATP_OK);
    p.schedule = schedule_create(&p.problem, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(p.plan.alignment_bytes, 64);
    for (uint32_t i = 0; i < p.plan.instruction_count; i++) {
        ck_assert_uint_eq(p.plan.program[i].offset % 64, 0);
    }
    ck_assert_uint_eq(p.plan.arena_bytes % 64, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_kept_chain_is_the_plain_program,
        the_header_is_the_problem_s,
        decisions_are_what_the_program_does,
        an_output_that_a_rerun_writes_over_is_still_kept,
        swapped_and_made_again_counts_as_swapped,
        a_workspace_has_a_place_while_its_step_runs,
        a_workspace_may_lie_where_tensors_will,
        host_copies_that_do_not_meet_share_their_bytes,
        host_copies_that_meet_lie_apart,
        a_host_copy_lasts_until_its_last_restore,
        says_what_an_arena_that_is_too_small_lacks,
        host_copies_must_fit_too,
        offsets_are_multiples_of_the_alignment,
    };
    return RUN_TESTS("assemble", tests, set_up, tear_down);
}
