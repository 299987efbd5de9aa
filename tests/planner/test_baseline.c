/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * On chains whose answers are known: forward step i turns tensor i into tensor i + 1, every tensor
 * has 100 bytes, every step takes 1000 ns and every copy 100 ns. What the last forward step reads
 * never idles: the first backward step reads it too.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <atp/plan.h>
#include <atp/simulate.h>

#include "baseline.h"
#include "profile_builder.h"
#include "random_profile.h"
#include "run_tests.h"
#include "schedule.h"

#define BYTES   UINT64_C(100)
#define STEP_NS INT64_C(1000)
#define ROOMY   (UINT64_C(1) << 40)

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static struct profile_builder *chain(uint32_t count)
{
    return profile_builder_chain(count, BYTES, STEP_NS, region);
}

static const struct problem *problem_at(const struct profile *profile, uint64_t budget_bytes)
{
    struct problem *problem = REGION_NEW(region, struct problem, 1);
    struct atp_error err;
    ck_assert_int_eq(problem_build(profile, budget_bytes, 1, region, problem, &err), ATP_OK);
    return problem;
}

static const struct baseline *find(const struct baseline_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    ck_abort_msg("there is no baseline %s", name);
}

static const struct baseline *run(const struct problem *problem, const char *name)
{
    struct baseline_list list;
    baseline_list_build(problem, region, &list);
    return find(&list, name);
}

/* The choice in the gap between the phases of a chain's tensor. */
static uint8_t choice_of(const struct problem *problem, const struct baseline *baseline,
                         uint32_t tensor)
{
    const struct access *accesses = problem->accesses;
    uint32_t a = problem->first_access[tensor];
    while (accesses[a + 1].tensor == tensor &&
           problem->model->steps[accesses[a + 1].step].phase == ATP_PHASE_FORWARD) {
        a++;
    }
    return baseline->choices[a];
}

/* One letter for each tensor from 0 on. */
static const char *letters(const struct problem *problem, const struct baseline *baseline,
                           uint32_t count)
{
    char *text = REGION_NEW(region, char, (size_t)count + 1);
    for (uint32_t t = 0; t < count; t++) {
        text[t] = "ksr"[CHOICE_KIND(choice_of(problem, baseline, t))];
    }
    return text;
}

START_TEST(keeps_everything_for_no_time_where_it_fits)
{
    const struct problem *problem = problem_at(&chain(4)->profile, ROOMY);
    const struct baseline *kept = run(problem, "keep-all");
    ck_assert_int_eq(kept->verdict, BASELINE_FITS);
    ck_assert_int_eq(kept->iteration_ns, 8 * STEP_NS);
    ck_assert_uint_eq(kept->peak_bytes, problem->peak_bytes);
}
END_TEST

START_TEST(does_not_keep_everything_in_a_byte_less)
{
    const struct profile *profile = &chain(4)->profile;
    uint64_t peak = problem_at(profile, ROOMY)->peak_bytes;
    const struct baseline *kept = run(problem_at(profile, peak - 1), "keep-all");
    ck_assert_int_eq(kept->verdict, BASELINE_OVER_BUDGET);
    ck_assert_uint_eq(kept->peak_bytes, peak);
}
END_TEST

/* The backward step that reads t2 makes t1 too, and both stay. */
START_TEST(recomputes_everything_once_where_memory_allows)
{
    const struct problem *problem = problem_at(&chain(4)->profile, ROOMY);
    const struct baseline *all = run(problem, "recompute-all");
    ck_assert_int_eq(all->verdict, BASELINE_FITS);
    ck_assert_str_eq(letters(problem, all, 4), "krrk");
    ck_assert_int_eq(all->recompute_ns, 2 * STEP_NS);
    ck_assert_int_eq(all->iteration_ns, 10 * STEP_NS);
}
END_TEST

/* Each backward step makes all anew up to the tensor that it reads: 2 + 1 steps. */
START_TEST(recomputes_everything_again_where_memory_is_short)
{
    const struct profile *profile = &chain(4)->profile;
    uint64_t peak = problem_at(profile, ROOMY)->peak_bytes;
    const struct problem *problem = problem_at(profile, peak - BYTES);
    const struct baseline *all = run(problem, "recompute-all");
    ck_assert_int_eq(all->verdict, BASELINE_FITS);
    ck_assert_int_eq(all->recompute_ns, 3 * STEP_NS);
    ck_assert_uint_lt(all->peak_bytes, peak);
}
END_TEST

/* Nine steps, three segments: t3 and t6 cross a cut, the last segment is kept. */
START_TEST(keeps_a_checkpoint_every_sqrt_n_steps)
{
    const struct problem *problem = problem_at(&chain(9)->profile, ROOMY);
    const struct baseline *sqrt = run(problem, "checkpoint-sqrt");
    ck_assert_str_eq(letters(problem, sqrt, 9), "krrkrrkkk");
    ck_assert_int_eq(sqrt->recompute_ns, 4 * STEP_NS);
}
END_TEST

/* Equal cuts would be behind steps 3 and 6; t2 and t7 are smaller. */
START_TEST(cuts_where_the_fewest_bytes_cross)
{
    struct profile_builder *b = chain(9);
    b->tensors[2].bytes = b->tensors[7].bytes = BYTES / 2;
    const struct problem *problem = problem_at(&b->profile, ROOMY);
    ck_assert_str_eq(letters(problem, run(problem, "checkpoint-sqrt"), 9), "krkrrrrkk");
}
END_TEST

START_TEST(takes_the_fastest_number_of_segments)
{
    const struct profile *profile = &chain(16)->profile;
    const struct baseline *roomy = run(problem_at(profile, ROOMY), "checkpoint-best");
    ck_assert_int_eq(roomy->recompute_ns, 0);
    uint64_t peak = problem_at(profile, ROOMY)->peak_bytes;
    /* Two segments: t1 to t7 are made anew. */
    const struct baseline *half = run(problem_at(profile, peak - 7 * BYTES), "checkpoint-best");
    ck_assert_int_eq(half->verdict, BASELINE_FITS);
    ck_assert_int_eq(half->recompute_ns, 7 * STEP_NS);
}
END_TEST

START_TEST(swaps_everything_behind_compute)
{
    const struct problem *problem = problem_at(&chain(4)->profile, ROOMY);
    const struct baseline *all = run(problem, "swap-all");
    ck_assert_str_eq(letters(problem, all, 4), "sssk");
    ck_assert_int_eq(all->iteration_ns, 8 * STEP_NS);
    ck_assert_uint_eq(all->host_bytes, 3 * BYTES);
}
END_TEST

START_TEST(says_that_pinned_memory_is_short)
{
    struct profile_builder *b = chain(4);
    b->profile.pinned_bytes = 3 * BYTES - 1;
    ck_assert_int_eq(run(problem_at(&b->profile, ROOMY), "swap-all")->verdict, BASELINE_OVER_HOST);
}
END_TEST

/* Step 1 takes half of the forward time, step 2 the next third. */
START_TEST(swaps_the_inputs_of_long_steps)
{
    struct profile_builder *b = chain(4);
    b->step_ns[1] = 6 * STEP_NS;
    b->step_ns[2] = 4 * STEP_NS;
    const struct problem *problem = problem_at(&b->profile, ROOMY);
    ck_assert_str_eq(letters(problem, run(problem, "swap-inputs"), 4), "kssk");
}
END_TEST

START_TEST(swaps_what_idles_longest_first_and_no_more_than_fits)
{
    const struct profile *profile = &chain(6)->profile;
    uint64_t peak = problem_at(profile, ROOMY)->peak_bytes;
    for (uint32_t count = 0; count < 4; count++) {
        const struct problem *problem = problem_at(profile, peak - count * BYTES);
        const struct baseline *found = run(problem, "swap-recompute");
        static const char *const expected[] = {"kkkkkk", "skkkkk", "sskkkk", "ssskkk"};
        ck_assert_int_eq(found->verdict, BASELINE_FITS);
        ck_assert_str_eq(letters(problem, found, 6), expected[count]);
    }
}
END_TEST

/* A copy takes as long as four steps: the engine is full after one tensor of six steps. */
START_TEST(recomputes_when_copies_hide_no_longer)
{
    struct profile_builder *b = chain(6);
    b->profile.clock.copy_latency_ns = 4 * STEP_NS;
    b->step_ns[2] = STEP_NS / 2; /* makes t3: the most bytes for its time */
    uint64_t peak = problem_at(&b->profile, ROOMY)->peak_bytes;
    const struct problem *problem = problem_at(&b->profile, peak - 2 * BYTES);
    const struct baseline *found = run(problem, "swap-recompute");
    ck_assert_int_eq(found->verdict, BASELINE_FITS);
    ck_assert_str_eq(letters(problem, found, 6), "skkrkk");
}
END_TEST

START_TEST(drops_the_largest_first)
{
    struct profile_builder *b = chain(6);
    b->tensors[2].bytes = 3 * BYTES;
    uint64_t peak = problem_at(&b->profile, ROOMY)->peak_bytes;
    const struct problem *problem = problem_at(&b->profile, peak - BYTES);
    /* Both copies of t2 take 600 ns, its step 1000. */
    ck_assert_str_eq(letters(problem, run(problem, "greedy-size"), 6), "kkskkk");
    b->step_ns[1] = 500;
    problem = problem_at(&b->profile, peak - BYTES);
    ck_assert_str_eq(letters(problem, run(problem, "greedy-size"), 6), "kkrkkk");
}
END_TEST

START_TEST(obeys_pins)
{
    struct profile_builder *b = chain(4);
    b->pins[1] = PROFILE_PIN_KEEP;
    b->pins[2] = PROFILE_PIN_SWAP;
    b->pins[3] = PROFILE_PIN_RECOMPUTE;
    const struct problem *problem = problem_at(&b->profile, ROOMY);
    struct baseline_list list;
    baseline_list_build(problem, region, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        ck_assert_str_eq(letters(problem, &list.items[i], 4) + 1, "ksr");
    }
}
END_TEST

START_TEST(fits_more_in_larger_budgets)
{
    struct random random = {1};
    for (uint32_t round = 0; round < 40; round++) {
        struct region_mark mark = region_mark(region);
        struct profile profile;
        random_profile_build(&random, 4 + round % 6, region, &profile);
        uint64_t least = problem_at(&profile, ROOMY)->least_arena_bytes;
        uint64_t peak = problem_at(&profile, ROOMY)->peak_bytes;
        struct baseline_list smaller = {0};
        for (uint32_t i = 0; i <= 6; i++) {
            struct baseline_list list;
            baseline_list_build(problem_at(&profile, least + (peak - least) * i / 6), region,
                                &list);
            ck_assert_int_eq(find(&list, "swap-all")->verdict, BASELINE_FITS);
            for (uint32_t k = 0; k < smaller.count; k++) {
                ck_assert_msg(smaller.items[k].verdict != BASELINE_FITS ||
                                  list.items[k].verdict == BASELINE_FITS,
                              "round %u: %s no longer fits", round, list.items[k].name);
            }
            smaller = list;
        }
        ck_assert_int_eq(find(&smaller, "keep-all")->verdict, BASELINE_FITS);
        region_reset(region, mark);
    }
}
END_TEST

START_TEST(is_no_slower_on_a_chain_in_larger_budgets)
{
    const struct profile *profile = &chain(12)->profile;
    uint64_t least = problem_at(profile, ROOMY)->least_arena_bytes;
    uint64_t peak = problem_at(profile, ROOMY)->peak_bytes;
    struct baseline_list smaller = {0};
    for (uint64_t budget = least; budget <= peak; budget += BYTES) {
        struct baseline_list list;
        baseline_list_build(problem_at(profile, budget), region, &list);
        for (uint32_t k = 0; k < smaller.count; k++) {
            ck_assert_msg(smaller.items[k].verdict != BASELINE_FITS ||
                              list.items[k].iteration_ns <= smaller.items[k].iteration_ns,
                          "%s at %u bytes", list.items[k].name, (unsigned)budget);
        }
        smaller = list;
    }
}
END_TEST

/* What is said to fit is a plan, and nearly always takes the time that was said: a policy whose
 * tensors have no place is told less memory. */
START_TEST(makes_plans_that_are_proved)
{
    struct random random = {2};
    uint32_t made = 0, fitting = 0, as_said = 0;
    for (uint32_t round = 0; round < 60; round++) {
        struct region_mark mark = region_mark(region);
        struct profile profile;
        random_profile_build(&random, 4 + round % 8, region, &profile);
        uint64_t least = problem_at(&profile, ROOMY)->least_arena_bytes;
        uint64_t peak = problem_at(&profile, ROOMY)->peak_bytes;
        uint64_t budget = least + (peak - least) * (round % 5) / 4;
        const struct problem *problem = problem_at(&profile, budget);
        struct baseline_list list;
        baseline_list_build(problem, region, &list);
        for (uint32_t i = 0; i < list.count; i++) {
            struct atp_plan plan;
            struct atp_error err;
            fitting += list.items[i].verdict == BASELINE_FITS;
            if (!baseline_plan(problem, &list.items[i], 10000, region, &plan)) {
                continue;
            }
            made++;
            ck_assert_int_eq(list.items[i].verdict, BASELINE_FITS);
            ck_assert_msg(atp_plan_check(&plan, &err) == ATP_OK, "round %u, %s: %s", round,
                          list.items[i].name, err.text);
            ck_assert_msg(atp_plan_check_predicted(&plan, &profile.clock, &err) == ATP_OK,
                          "round %u, %s: %s", round, list.items[i].name, err.text);
            as_said += plan.predicted.iteration_ns == list.items[i].iteration_ns;
        }
        region_reset(region, mark);
    }
    ck_assert_uint_ge(made, fitting * 9 / 10);
    ck_assert_uint_ge(as_said, made * 9 / 10);
}
END_TEST

START_TEST(overtakes_a_plan_that_is_slower)
{
    const struct profile *profile = &chain(4)->profile;
    const struct problem *problem = problem_at(profile, ROOMY);
    struct baseline_list list;
    struct atp_plan plan;
    baseline_list_build(problem, region, &list);
    ck_assert(baseline_plan(problem, find(&list, "recompute-all"), 10000, region, &plan));
    ck_assert_int_eq(plan.predicted.iteration_ns, 10 * STEP_NS);
    plan.predicted.bound_ns = 8 * STEP_NS;
    ck_assert(baseline_overtake(problem, &list, 10000, region, &plan));
    ck_assert_int_eq(plan.predicted.iteration_ns, 8 * STEP_NS);
    ck_assert_int_eq(plan.predicted.bound_ns, 8 * STEP_NS);
    ck_assert_int_eq(atp_plan_check(&plan, NULL), ATP_OK);
    ck_assert(!baseline_overtake(problem, &list, 10000, region, &plan));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        keeps_everything_for_no_time_where_it_fits,
        does_not_keep_everything_in_a_byte_less,
        recomputes_everything_once_where_memory_allows,
        recomputes_everything_again_where_memory_is_short,
        keeps_a_checkpoint_every_sqrt_n_steps,
        cuts_where_the_fewest_bytes_cross,
        takes_the_fastest_number_of_segments,
        swaps_everything_behind_compute,
        says_that_pinned_memory_is_short,
        swaps_the_inputs_of_long_steps,
        swaps_what_idles_longest_first_and_no_more_than_fits,
        recomputes_when_copies_hide_no_longer,
        drops_the_largest_first,
        obeys_pins,
        fits_more_in_larger_budgets,
        is_no_slower_on_a_chain_in_larger_budgets,
        makes_plans_that_are_proved,
        overtakes_a_plan_that_is_slower,
    };
    return RUN_TESTS("baseline", tests, set_up, tear_down);
}
