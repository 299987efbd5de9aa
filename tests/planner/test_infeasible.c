/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "infeasible.h"

#include "profile_builder.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"
#include "size.h"
#include "solve.h"

#include <inttypes.h>

#define BYTES         UINT64_C(100)
#define NS            INT64_C(100)
#define PROFILE_COUNT (SANITIZED ? 8U : 40U)

/* A chain of four forward steps: tensor 0 is the input, 1 to 4 are activations. The first backward
 * step, s4, uses three tensors; s5 uses four, 2 and 3 among them. */
static struct region *region;
static struct profile_builder *b;
static struct problem problem;
static struct infeasible_need need;

static void set_up(void)
{
    region = region_create();
    b = profile_builder_chain(4, BYTES, NS, region);
}

static void tear_down(void)
{
    region_destroy(region);
}

static uint64_t needed_of(const struct profile *profile, bool keep_pins, bool reruns_allowed,
                          uint64_t host_bytes)
{
    struct infeasible_rules rules = {keep_pins, reruns_allowed, host_bytes};
    ck_assert_int_eq(problem_build(profile, SIZE_BYTES_MAX, 1, region, &problem, NULL), ATP_OK);
    infeasible_need(&problem, &rules, region, &need);
    ck_assert_uint_eq(need.arena_bytes,
                      need.working_set_bytes + need.kept_bytes + need.stuck_bytes);
    return need.arena_bytes;
}

static enum atp_status solve_at(const struct profile *profile, uint64_t budget_bytes)
{
    struct atp_plan plan;
    struct solve_report report;
    struct solve_options options = {.budget_bytes = budget_bytes, .alignment_bytes = 1};
    return solve(profile, &options, region, &plan, &report, NULL);
}

START_TEST(without_pins_the_largest_working_set_is_needed)
{
    uint64_t needed = needed_of(&b->profile, true, false, UINT64_MAX);
    ck_assert_uint_eq(needed, problem.least_arena_bytes);
    ck_assert_uint_eq(need.step, problem.least_step);
    ck_assert_int_eq(solve_at(&b->profile, needed), ATP_OK);
}
END_TEST

START_TEST(a_kept_tensor_adds_to_the_steps_that_it_idles_over)
{
    b->pins[0] = b->pins[1] = PROFILE_PIN_KEEP;
    ck_assert_uint_eq(needed_of(&b->profile, true, false, UINT64_MAX), 4 * BYTES + 2 * BYTES);
    ck_assert_uint_eq(need.kept_bytes, 2 * BYTES);
    ck_assert_uint_eq(need.working_set_bytes, 4 * BYTES);
    ck_assert_int_eq(solve_at(&b->profile, 6 * BYTES), ATP_OK);
    ck_assert_int_eq(solve_at(&b->profile, 6 * BYTES - 1), ATP_ERR_INFEASIBLE);
    ck_assert_uint_eq(needed_of(&b->profile, false, false, UINT64_MAX), 4 * BYTES);
}
END_TEST

START_TEST(what_cannot_be_recomputed_needs_the_device_when_the_host_is_full)
{
    b->steps[0].rerun_never = b->steps[1].rerun_never = true;
    ck_assert_uint_eq(needed_of(&b->profile, true, false, UINT64_MAX), 4 * BYTES);
    /* Over s4 idle tensors 0, 1 and 2; over s5 only 0 and 1. */
    ck_assert_uint_eq(needed_of(&b->profile, true, false, BYTES), 3 * BYTES + 2 * BYTES);
    ck_assert_uint_eq(need.step, 4);
    ck_assert_uint_eq(need.stuck_bytes, 2 * BYTES);
    ck_assert_uint_eq(needed_of(&b->profile, true, false, 0), 6 * BYTES);
    ck_assert_uint_eq(needed_of(&b->profile, true, true, 0), 5 * BYTES);
}
END_TEST

START_TEST(inputs_alone_can_be_what_is_needed)
{
    struct profile_builder *wide = profile_builder_create(region);
    uint32_t x = profile_builder_tensor(wide, 5 * BYTES), y = profile_builder_tensor(wide, BYTES);
    (void)profile_builder_step(wide, ATP_PHASE_FORWARD, NS, IDS(x), NO_IDS);
    (void)profile_builder_step(wide, ATP_PHASE_FORWARD, NS, IDS(y), NO_IDS);
    ck_assert_uint_eq(needed_of(&wide->profile, true, false, UINT64_MAX), 6 * BYTES);
    ck_assert_uint_eq(need.step, ATP_NONE);
}
END_TEST

START_TEST(no_plan_is_found_below_what_is_needed)
{
    uint32_t tried = 0;
    for (uint64_t seed = 1; tried < PROFILE_COUNT; seed++) {
        struct random random = {seed};
        struct profile profile;
        random_profile_build(&random, 3, region, &profile);
        enum profile_pin *pins = REGION_NEW(region, enum profile_pin, profile.model.tensor_count);
        for (uint32_t t = 0; t < profile.model.tensor_count; t++) {
            pins[t] = random_chance(&random, 15) ? PROFILE_PIN_KEEP : PROFILE_PIN_NONE;
        }
        profile.pins = pins;
        (void)needed_of(&profile, true, false, UINT64_MAX);
        profile.pinned_bytes = random_below(&random, (uint32_t)problem.peak_bytes + 1);
        uint64_t needed = needed_of(&profile, true, false, profile.pinned_bytes);
        if (needed > problem.least_arena_bytes) {
            tried++;
            ck_assert_msg(solve_at(&profile, needed - 1) == ATP_ERR_INFEASIBLE,
                          "seed %" PRIu64 ": a plan below %" PRIu64 " bytes", seed, needed);
        }
    }
}
END_TEST

static void expect_words(const struct profile *profile, uint64_t budget_bytes, const char *expected)
{
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");
    ck_assert_ptr_nonnull(out);
    infeasible_explain(profile, "/dev/null", budget_bytes, 0, region, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(text, expected);
}

START_TEST(says_which_tensors_and_steps_stand_in_the_way)
{
    expect_words(&b->profile, 399,
                 "most needed   400 B at s5 (backward), beside 0 B resident: t2 100 B, t3 100 B, "
                 "t5 100 B, t6 100 B\n"
                 "too large     3 of 8 steps: s5 (backward), s6 (backward), s7 (backward)\n");
}
END_TEST

START_TEST(says_what_pins_cost)
{
    b->pins[0] = b->pins[1] = PROFILE_PIN_KEEP;
    expect_words(&b->profile, 599,
                 "least budget  600 (600 B)\n"
                 "most needed   600 B at s5 (backward), beside 0 B resident: t2 100 B, t3 100 B, "
                 "t5 100 B, t6 100 B, kept by pins 200 B\n"
                 "decide: keep  holds t0 100 B, t1 100 B; without any the least budget is 400\n");
}
END_TEST

START_TEST(says_how_much_host_memory_a_budget_needs)
{
    b->steps[0].rerun_never = true;
    b->profile.pinned_bytes = 0;
    expect_words(&b->profile, 500,
                 "least budget  at least 600 (600 B)\n"
                 "most needed   600 B at s5 (backward), beside 0 B resident: t2 100 B, t3 100 B, "
                 "t5 100 B, t6 100 B, not recomputable and beyond host.pinned_bytes 200 B\n"
                 "host memory   host.pinned_bytes is 0: a budget of 500 needs 100 at least\n"
                 "rerun: never  holds t1 100 B; without any the least budget is 500 or more\n");
}
END_TEST

START_TEST(says_when_the_resident_bytes_alone_are_too_many)
{
    b->profile.resident_bytes = 1000;
    expect_words(&b->profile, 1,
                 "most needed   400 B at s5 (backward), beside 1.00 KB resident: t2 100 B, "
                 "t3 100 B, t5 100 B, t6 100 B\n"
                 "resident      1.00 KB: alone as much as the budget or more\n");
}
END_TEST

START_TEST(says_that_a_budget_may_do_where_nothing_rules_it_out)
{
    expect_words(&b->profile, 400, "no budget below 400 can have a plan, this one might\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        without_pins_the_largest_working_set_is_needed,
        a_kept_tensor_adds_to_the_steps_that_it_idles_over,
        what_cannot_be_recomputed_needs_the_device_when_the_host_is_full,
        inputs_alone_can_be_what_is_needed,
        no_plan_is_found_below_what_is_needed,
        says_which_tensors_and_steps_stand_in_the_way,
        says_what_pins_cost,
        says_how_much_host_memory_a_budget_needs,
        says_when_the_resident_bytes_alone_are_too_many,
        says_that_a_budget_may_do_where_nothing_rules_it_out,
    };
    return RUN_TESTS("infeasible", tests, set_up, tear_down);
}
