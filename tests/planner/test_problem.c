/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "problem.h"

#include "assert_error.h"
#include "profile_builder.h"
#include "run_tests.h"

static struct region *region;
static struct profile_builder *b;
static struct problem problem;

static void set_up(void)
{
    region = region_create();
    b = profile_builder_create(region);
}

static void tear_down(void)
{
    region_destroy(region);
}

static void build(uint64_t budget_bytes, uint64_t alignment_bytes)
{
    struct atp_error err = {0};
    assert_ok(problem_build(&b->profile, budget_bytes, alignment_bytes, region, &problem, &err),
              err);
}

/* The access of `tensor` that is the `nth` (from 0). */
static const struct access *access_of(uint32_t tensor, uint32_t nth)
{
    ck_assert_uint_lt(problem.first_access[tensor] + nth, problem.first_access[tensor + 1]);
    return &problem.accesses[problem.first_access[tensor] + nth];
}

static uint32_t access_count(uint32_t tensor)
{
    return problem.first_access[tensor + 1] - problem.first_access[tensor];
}

START_TEST(accesses_are_in_step_order_and_know_what_comes_next)
{
    uint32_t x = profile_builder_tensor(b, 10), y = profile_builder_tensor(b, 20);
    uint32_t f = profile_builder_step(b, ATP_PHASE_FORWARD, 1, NO_IDS, IDS(x));
    uint32_t g = profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), IDS(y));
    uint32_t h = profile_builder_step(b, ATP_PHASE_BACKWARD, 1, IDS(y, x), NO_IDS);
    build(1000, 1);
    ck_assert_uint_eq(problem.access_count, 5);
    ck_assert_uint_eq(access_count(x), 3);
    const uint32_t steps[] = {f, g, h};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(access_of(x, i)->tensor, x);
        ck_assert_uint_eq(access_of(x, i)->step, steps[i]);
        ck_assert_int_eq(access_of(x, i)->writes, i == 0);
        ck_assert_int_eq(access_of(x, i)->reads, i > 0);
        ck_assert_int_eq(access_of(x, i)->has_next, i < 2);
        ck_assert_uint_eq(access_of(x, i)->version, 1);
    }
    ck_assert(!problem.is_input[x]);
}
END_TEST

START_TEST(a_step_lists_reads_then_writes_and_each_tensor_once)
{
    uint32_t x = profile_builder_tensor(b, 1), y = profile_builder_tensor(b, 1),
             z = profile_builder_tensor(b, 1);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, NO_IDS, IDS(x, y));
    uint32_t s = profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(y, x), IDS(z, x));
    build(1000, 1);
    const uint32_t expected[] = {y, x, z};
    ck_assert_uint_eq(problem.step_first[s + 1] - problem.step_first[s], 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct access *access =
            &problem.accesses[problem.step_accesses[problem.step_first[s] + i]];
        ck_assert_uint_eq(access->tensor, expected[i]);
        ck_assert_uint_eq(access->step, s);
    }
    ck_assert(access_of(x, 1)->reads && access_of(x, 1)->writes);
}
END_TEST

START_TEST(an_input_has_a_gap_from_the_beginning)
{
    uint32_t x = profile_builder_tensor(b, 10), idle = profile_builder_tensor(b, 5),
             y = profile_builder_tensor(b, 1);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), IDS(y));
    build(1000, 1);
    ck_assert(problem.is_input[x]);
    ck_assert(problem.is_input[idle]);
    ck_assert(!problem.is_input[y]);
    ck_assert_uint_eq(access_count(x), 2);
    ck_assert_uint_eq(access_of(x, 0)->step, ATP_NONE);
    ck_assert(access_of(x, 0)->has_next);
    ck_assert_uint_eq(access_of(x, 1)->version, 0);
    ck_assert_uint_eq(access_of(x, 1)->read_version, 0);
    ck_assert_uint_eq(access_count(idle), 1);
    ck_assert(!access_of(idle, 0)->has_next);
    ck_assert_uint_eq(problem.input_bytes, 15);
}
END_TEST

START_TEST(every_writer_leaves_a_version_and_needs_the_one_before)
{
    uint32_t x = profile_builder_tensor(b, 10);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, NO_IDS, IDS(x)); /* may leave a part */
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 1, IDS(x), NO_IDS);
    build(1000, 1);
    const uint32_t versions[] = {1, 1, 2, 3, 3}, needs[] = {1, 1, 1, 2, 3};
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(access_of(x, i)->version, versions[i]);
        ck_assert_uint_eq(access_of(x, i)->read_version, needs[i]);
    }
}
END_TEST

START_TEST(only_what_forward_steps_that_may_rerun_wrote_can_be_recomputed)
{
    uint32_t input = profile_builder_tensor(b, 1), once = profile_builder_tensor(b, 1),
             good = profile_builder_tensor(b, 1), late = profile_builder_tensor(b, 1);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(input), IDS(good));
    uint32_t never = profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(good), IDS(once));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(once), IDS(once));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 1, IDS(once), IDS(late));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 1, IDS(good, late), IDS(good));
    b->steps[never].rerun_never = true;
    build(1000, 1);
    for (uint32_t i = 0; i < access_count(input); i++) {
        ck_assert(!problem.recomputable[problem.first_access[input] + i]);
    }
    for (uint32_t i = 0; i < access_count(once); i++) {
        ck_assert(!problem.recomputable[problem.first_access[once] + i]);
    }
    ck_assert(!problem.recomputable[problem.first_access[late]]);
    ck_assert(problem.recomputable[problem.first_access[good]]);
    ck_assert(problem.recomputable[problem.first_access[good] + 1]);
    /* A backward step has updated it: from there on it cannot. */
    ck_assert_uint_eq(access_of(good, 2)->version, 2);
    ck_assert(!problem.recomputable[problem.first_access[good] + 2]);
}
END_TEST

START_TEST(working_sets_and_live_bytes_count_tensors_and_workspace)
{
    uint32_t x = profile_builder_tensor(b, 100), y = profile_builder_tensor(b, 30),
             z = profile_builder_tensor(b, 7);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 5, NO_IDS, IDS(x));
    uint32_t wide = profile_builder_step(b, ATP_PHASE_FORWARD, 6, NO_IDS, IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 7, IDS(x, y), IDS(z));
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 8, IDS(z), NO_IDS);
    b->steps[wide].workspace_bytes = 11;
    build(1000, 1);
    const uint64_t working[] = {100, 41, 137, 7}, live[] = {100, 141, 137, 7};
    for (uint32_t s = 0; s < 4; s++) {
        ck_assert_uint_eq(problem.working_set_bytes[s], working[s]);
        ck_assert_uint_eq(problem.live_bytes[s], live[s]);
    }
    ck_assert_uint_eq(problem.peak_bytes, 141);
    ck_assert_uint_eq(problem.least_arena_bytes, 137);
    ck_assert_uint_eq(problem.least_step, 2);
    ck_assert_int_eq(problem.compute_ns, 26);
}
END_TEST

START_TEST(all_inputs_are_there_at_the_beginning)
{
    uint32_t x = profile_builder_tensor(b, 100), y = profile_builder_tensor(b, 50),
             z = profile_builder_tensor(b, 7);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), IDS(z));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(z, y), NO_IDS);
    build(1000, 1);
    ck_assert_uint_eq(problem.input_bytes, 150);
    ck_assert_uint_eq(problem.least_arena_bytes, 150);
    ck_assert_uint_eq(problem.least_step, ATP_NONE);
    ck_assert_uint_eq(problem.live_bytes[0], 157); /* y waits for its use */
    ck_assert_uint_eq(problem.live_bytes[1], 57);
}
END_TEST

START_TEST(an_input_that_no_step_uses_counts_only_at_the_beginning)
{
    uint32_t x = profile_builder_tensor(b, 10);
    (void)profile_builder_tensor(b, 500);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), NO_IDS);
    build(1000, 1);
    ck_assert_uint_eq(problem.live_bytes[0], 10);
    ck_assert_uint_eq(problem.input_bytes, 510);
    ck_assert_uint_eq(problem.peak_bytes, 510);
    ck_assert_uint_eq(problem.least_arena_bytes, 510);
}
END_TEST

START_TEST(sizes_are_rounded_up_and_limits_down)
{
    uint32_t x = profile_builder_tensor(b, 1), y = profile_builder_tensor(b, 64);
    uint32_t s = profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(x), IDS(y));
    b->steps[s].workspace_bytes = 65;
    b->profile.resident_bytes = 100;
    b->profile.pinned_bytes = 1000;
    build(1100, 64);
    ck_assert_uint_eq(problem.tensor_bytes[x], 64);
    ck_assert_uint_eq(problem.tensor_bytes[y], 64);
    ck_assert_uint_eq(problem.workspace_bytes[s], 128);
    ck_assert_uint_eq(problem.arena_limit, 960);
    ck_assert_uint_eq(problem.host_limit, 960);
    ck_assert_uint_eq(problem.working_set_bytes[s], 256);
}
END_TEST

START_TEST(refuses_a_budget_below_resident_bytes_only)
{
    uint32_t x = profile_builder_tensor(b, 50);
    struct atp_error err = {0};
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, NO_IDS, IDS(x));
    b->profile.resident_bytes = 100;
    enum atp_status status = problem_build(&b->profile, 99, 1, region, &problem, &err);
    ck_assert_int_eq(status, ATP_ERR_INFEASIBLE);
    ck_assert_ptr_nonnull(strstr(err.text, "100"));
    ck_assert_ptr_nonnull(strstr(err.text, "99"));
    build(100, 1);
    ck_assert_uint_eq(problem.arena_limit, 0);
    ck_assert_uint_eq(problem.least_arena_bytes, 50);
}
END_TEST

START_TEST(large_tensors_are_aligned_as_much_as_may_be)
{
    for (uint32_t i = 0; i < 4; i++) {
        (void)profile_builder_tensor(b, 1000001);
    }
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(0, 1), IDS(2, 3));
    ck_assert_uint_eq(problem_alignment(&b->profile, region), 256);
}
END_TEST

START_TEST(alignment_costs_a_thousandth_at_most)
{
    /* 4 tensors of 1001 bytes: 4 more bytes of 4004 are within a thousandth at alignment 2, and 12
     * of them, at alignment 4, are not. */
    for (uint32_t i = 0; i < 4; i++) {
        (void)profile_builder_tensor(b, 1001);
    }
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 1, IDS(0, 1), IDS(2, 3));
    ck_assert_uint_eq(problem_alignment(&b->profile, region), 2);
    b->tensors[0].bytes = 1;
    ck_assert_uint_eq(problem_alignment(&b->profile, region), 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        accesses_are_in_step_order_and_know_what_comes_next,
        a_step_lists_reads_then_writes_and_each_tensor_once,
        an_input_has_a_gap_from_the_beginning,
        every_writer_leaves_a_version_and_needs_the_one_before,
        only_what_forward_steps_that_may_rerun_wrote_can_be_recomputed,
        working_sets_and_live_bytes_count_tensors_and_workspace,
        all_inputs_are_there_at_the_beginning,
        an_input_that_no_step_uses_counts_only_at_the_beginning,
        sizes_are_rounded_up_and_limits_down,
        refuses_a_budget_below_resident_bytes_only,
        large_tensors_are_aligned_as_much_as_may_be,
        alignment_costs_a_thousandth_at_most,
    };
    return RUN_TESTS("problem", tests, set_up, tear_down);
}
