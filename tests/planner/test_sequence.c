/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "planning.h"
#include "run_tests.h"

/* Chains of steps of 5 ns over tensors of 10 bytes: of four forward steps, tensor 1 is idle from
 * step 1 to step 6, and tensor 2 from step 2 to step 5. */
#define BYTES  UINT64_C(10)
#define NS     INT64_C(5)
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

static void begin_chain(uint32_t count)
{
    b = profile_builder_chain(count, BYTES, NS, region);
    planning_begin(&p, b, PLENTY, region);
}

START_TEST(kept_tensors_stay_from_first_to_last_use)
{
    begin_chain(4);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 5 6 7");
    ck_assert_uint_eq(p.sequence->residence_count, b->profile.model.tensor_count);
    ck_assert_int_eq(p.sequence->rerun_ns, 0);
    for (uint32_t s = 0; s < b->profile.model.step_count; s++) {
        ck_assert_uint_eq(p.sequence->memory_bytes[s + 1], p.problem.live_bytes[s]);
    }
    const struct residence *x1 = planning_residence(&p, 1, 0);
    ck_assert_uint_eq(x1->first_op, 1);
    ck_assert_uint_eq(x1->last_op, 8);
    ck_assert_uint_eq(x1->ready_op, 1);
    ck_assert(!x1->by_restore && !x1->by_evict);
}
END_TEST

START_TEST(a_swapped_tensor_is_away_in_its_gap)
{
    begin_chain(4);
    planning_sequence(&p);
    uint64_t kept = p.sequence->memory_bytes[4];
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 5 6 7");
    const struct residence *before = planning_residence(&p, 1, 0),
                           *after = planning_residence(&p, 1, 1);
    ck_assert_uint_eq(before->last_op, 2);
    ck_assert(before->by_evict && !before->by_restore);
    ck_assert_uint_eq(after->first_op, 7);
    ck_assert(after->by_restore && !after->by_evict);
    ck_assert_ptr_eq(&p.sequence->residences[after->copy], before);
    ck_assert_uint_eq(p.sequence->memory_bytes[4], kept - BYTES);
}
END_TEST

START_TEST(a_recomputed_tensor_is_made_again_just_before_its_use)
{
    begin_chain(4);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 5 r0 6 7");
    ck_assert_int_eq(p.sequence->rerun_ns, NS);
    ck_assert_uint_eq(planning_residence_count(&p, 1), 2);
    ck_assert_uint_eq(planning_residence(&p, 1, 0)->last_op, 2);
    ck_assert_uint_eq(planning_residence(&p, 1, 1)->first_op, 7);
    ck_assert(!planning_residence(&p, 1, 1)->by_restore);
}
END_TEST

START_TEST(a_rerun_makes_its_inputs_by_reruns_and_they_stay)
{
    begin_chain(4);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_choose(&p, 2, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 r0 r1 5 6 7");
    ck_assert_uint_eq(planning_residence(&p, 1, 1)->last_op, 10);
}
END_TEST

START_TEST(what_is_dropped_again_is_made_twice)
{
    begin_chain(4);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE | CHOICE_AGAIN);
    planning_choose(&p, 2, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 r0 r1 5 r0 6 7");
    ck_assert_uint_eq(planning_residence_count(&p, 1), 3);
}
END_TEST

START_TEST(what_is_swapped_again_comes_back_from_one_copy)
{
    begin_chain(4);
    planning_choose(&p, 1, 1, CHOICE_SWAP | CHOICE_AGAIN);
    planning_choose(&p, 2, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 r1 5 6 7");
    ck_assert_uint_eq(planning_residence_count(&p, 1), 3);
    ck_assert(planning_residence(&p, 1, 0)->by_evict);
    ck_assert(!planning_residence(&p, 1, 1)->by_evict);
    ck_assert_uint_eq(planning_residence(&p, 1, 1)->copy, planning_residence(&p, 1, 2)->copy);
    ck_assert_uint_eq(p.plan.predicted.evicted_bytes, BYTES);
    ck_assert_uint_eq(p.plan.predicted.restored_bytes, 2 * BYTES);
}
END_TEST

START_TEST(what_cannot_be_recomputed_is_swapped)
{
    begin_chain(4);
    planning_choose(&p, 0, 0, CHOICE_RECOMPUTE); /* an input */
    b->steps[0].rerun_never = true;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 5 6 7");
    ck_assert(planning_residence(&p, 1, 0)->by_evict);
}
END_TEST

START_TEST(an_input_may_leave_before_its_first_use)
{
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), NO_IDS);
    uint32_t late = profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(y), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, y, ATP_NONE, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(planning_residence(&p, y, 0)->first_op, 0);
    ck_assert_uint_eq(planning_residence(&p, y, 0)->last_op, 0);
    ck_assert_uint_eq(planning_residence(&p, y, 1)->first_op, late + 1);
    ck_assert_uint_eq(p.sequence->memory_bytes[0], 2 * BYTES);
    ck_assert_uint_eq(p.sequence->memory_bytes[1], BYTES);
}
END_TEST

/* Step 0 makes u, step 1 makes v of u, step 2 reads v, step 3 is backward and does not need it,
 * step 4 reads v. Only forward steps read u. */
static void begin_forward_only(uint8_t tail)
{
    b = profile_builder_create(region);
    uint32_t u = profile_builder_tensor(b, BYTES), v = profile_builder_tensor(b, BYTES),
             w = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(u));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(u), IDS(v));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(v), IDS(w));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(w), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(v), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, u, 1, tail);
}

START_TEST(a_tail_costs_nothing_when_no_rerun_wants_it)
{
    begin_forward_only(CHOICE_KEEP);
    planning_assemble(&p);
    ck_assert_uint_eq(planning_residence(&p, 0, 0)->last_op, 2);
    begin_forward_only(CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_uint_eq(planning_residence(&p, 0, 0)->last_op, 2);
    ck_assert(!planning_residence(&p, 0, 0)->by_evict);
    ck_assert_uint_eq(p.plan.predicted.evicted_bytes, 0);
}
END_TEST

START_TEST(a_kept_tail_lasts_until_the_rerun_that_wants_it)
{
    begin_forward_only(CHOICE_KEEP);
    planning_choose(&p, 1, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 r1 4");
    ck_assert_uint_eq(planning_residence_count(&p, 0), 1);
    ck_assert_uint_eq(planning_residence(&p, 0, 0)->last_op, 5);
}
END_TEST

START_TEST(a_swapped_tail_comes_back_for_the_rerun)
{
    begin_forward_only(CHOICE_SWAP);
    planning_choose(&p, 1, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 r1 4");
    ck_assert(planning_residence(&p, 0, 0)->by_evict);
    ck_assert(planning_residence(&p, 0, 1)->by_restore);
    ck_assert_uint_eq(planning_residence(&p, 0, 1)->first_op, 5);
    ck_assert_uint_eq(planning_residence(&p, 0, 1)->last_op, 5);
}
END_TEST

START_TEST(a_dropped_tail_is_made_again_for_the_rerun)
{
    begin_forward_only(CHOICE_RECOMPUTE);
    planning_choose(&p, 1, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 r0 r1 4");
}
END_TEST

/* Step 0 makes y and z; steps 2 and 3 of the backward pass want one each. */
static void begin_two_outputs(uint8_t choice_z)
{
    uint32_t y = profile_builder_tensor(b, BYTES), z = profile_builder_tensor(b, BYTES),
             w = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(y, z));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(w));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(z), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, y, 0, CHOICE_RECOMPUTE);
    planning_choose(&p, z, 0, choice_z);
}

START_TEST(outputs_of_one_step_share_its_rerun)
{
    begin_two_outputs(CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 r0 2 3");
    ck_assert_uint_eq(planning_residence(&p, 1, 1)->last_op, 5);
}
END_TEST

START_TEST(an_output_dropped_again_has_a_rerun_of_its_own)
{
    begin_two_outputs(CHOICE_RECOMPUTE | CHOICE_AGAIN);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 r0 2 r0 3");
}
END_TEST

START_TEST(a_rerun_writes_over_an_output_that_is_there)
{
    begin_two_outputs(CHOICE_KEEP);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 r0 2 3");
    ck_assert_uint_eq(planning_residence_count(&p, 1), 1);
}
END_TEST

START_TEST(an_in_place_chain_is_made_again_in_order)
{
    uint32_t x = profile_builder_tensor(b, BYTES), w = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x)); /* a part of it */
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(w));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(x), NO_IDS);
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, x, 2, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 r0 r1 r2 4");
    ck_assert_uint_eq(planning_residence(&p, x, 1)->version, 3);
    ck_assert_uint_eq(planning_residence(&p, x, 1)->ready_op, 7);
}
END_TEST

/* Step 0 makes x, step 1 makes y of it, step 2 updates x, steps 3 and 4 want y and x. */
static uint32_t begin_overwritten(void)
{
    uint32_t x = profile_builder_tensor(b, BYTES), y = profile_builder_tensor(b, BYTES);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(y));
    uint32_t update = profile_builder_step(b, ATP_PHASE_FORWARD, NS, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(y), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, NS, IDS(x), NO_IDS);
    return update;
}

START_TEST(an_old_version_is_made_again_and_then_the_new_one)
{
    (void)begin_overwritten();
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 r0 r1 3 r2 4");
}
END_TEST

START_TEST(a_copy_of_the_new_version_survives_the_old_one)
{
    uint32_t update = begin_overwritten();
    b->steps[update].rerun_never = true;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_choose(&p, 0, update, CHOICE_SWAP);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 r0 r1 3 4");
    ck_assert_uint_eq(planning_residence_count(&p, 0), 3);
    ck_assert(planning_residence(&p, 0, 2)->by_restore);
    ck_assert_uint_eq(planning_residence(&p, 0, 2)->version, 2);
}
END_TEST

START_TEST(names_the_tensor_that_cannot_be_had)
{
    uint32_t update = begin_overwritten();
    b->steps[update].rerun_never = true;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_sequence(&p);
    ck_assert_uint_eq(p.sequence->missing_tensor, 0);
    ck_assert(!p.sequence->too_long);
    planning_choose(&p, 1, 1, CHOICE_KEEP);
    planning_sequence(&p);
    ck_assert_uint_eq(p.sequence->missing_tensor, ATP_NONE);
}
END_TEST

START_TEST(gives_up_on_reruns_without_end)
{
    begin_chain(30);
    memset(p.selection.choices, CHOICE_RECOMPUTE | CHOICE_AGAIN, p.problem.access_count);
    planning_sequence(&p);
    ck_assert(p.sequence->too_long);
    memset(p.selection.choices, CHOICE_RECOMPUTE, p.problem.access_count);
    planning_assemble(&p);
}
END_TEST

START_TEST(says_how_far_from_fitting_and_where)
{
    begin_chain(4);
    planning_sequence(&p);
    ck_assert_uint_eq(p.sequence->excess_bytes, 0);
    ck_assert_uint_eq(p.sequence->excess_op, ATP_NONE);
    /* Tensors 0 to 4 and a gradient are there in steps 4 and 5 (one more in 5), ops 5 and 6. */
    ck_assert_uint_eq(p.sequence->memory_bytes[5], 6 * BYTES);
    ck_assert_uint_eq(p.sequence->memory_bytes[6], 6 * BYTES);
    planning_begin(&p, b, 6 * BYTES - 4, region);
    planning_sequence(&p);
    ck_assert_uint_eq(p.sequence->excess_bytes, 4);
    ck_assert_uint_eq(p.sequence->excess_sum, 8);
    ck_assert_uint_eq(p.sequence->excess_op, 5);
}
END_TEST

START_TEST(workspace_counts_in_runs_and_reruns)
{
    b = profile_builder_chain(4, BYTES, NS, region);
    b->steps[0].workspace_bytes = 7;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, CHOICE_RECOMPUTE);
    planning_assemble(&p);
    planning_expect_ops(&p, "0 1 2 3 4 5 r0 6 7");
    ck_assert_uint_eq(p.sequence->memory_bytes[1], 2 * BYTES + 7);
    /* Tensors 0 to 2 and a gradient: 2 until step 6, 1 from the rerun on. */
    ck_assert_uint_eq(p.sequence->memory_bytes[7], 4 * BYTES + 7);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        kept_tensors_stay_from_first_to_last_use,
        a_swapped_tensor_is_away_in_its_gap,
        a_recomputed_tensor_is_made_again_just_before_its_use,
        a_rerun_makes_its_inputs_by_reruns_and_they_stay,
        what_is_dropped_again_is_made_twice,
        what_is_swapped_again_comes_back_from_one_copy,
        what_cannot_be_recomputed_is_swapped,
        an_input_may_leave_before_its_first_use,
        a_tail_costs_nothing_when_no_rerun_wants_it,
        a_kept_tail_lasts_until_the_rerun_that_wants_it,
        a_swapped_tail_comes_back_for_the_rerun,
        a_dropped_tail_is_made_again_for_the_rerun,
        outputs_of_one_step_share_its_rerun,
        an_output_dropped_again_has_a_rerun_of_its_own,
        a_rerun_writes_over_an_output_that_is_there,
        an_in_place_chain_is_made_again_in_order,
        an_old_version_is_made_again_and_then_the_new_one,
        a_copy_of_the_new_version_survives_the_old_one,
        names_the_tensor_that_cannot_be_had,
        gives_up_on_reruns_without_end,
        says_how_far_from_fitting_and_where,
        workspace_counts_in_runs_and_reruns,
    };
    return RUN_TESTS("sequence", tests, set_up, tear_down);
}
