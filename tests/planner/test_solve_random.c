/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Whatever the profile: from the least budget on there is a plan, all judges accept it, and it is
 * not faster than the bound. The argument is a shipped profile.
 */
#include "problem.h"
#include "solve.h"

#include "assert_judges.h"
#include "byte_machine.h"
#include "patience.h"
#include "plan_equal.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SMALL_COUNT (SANITIZED ? 60U : 300U)
#define LARGE_COUNT (SANITIZED ? 30U : 100U)
#define SWEPT_COUNT (SANITIZED ? 6U : 25U)

static const char *shipped_path; /* of a profile */

struct random_case {
    struct region *region;
    struct profile profile;
    uint64_t seed, budget_bytes, alignment_bytes, least_bytes, keep_all_bytes;
    uint32_t plans;
    bool is_large; /* too large for the tests' own judges; solve asks two */
    const struct solve_start *start;
    struct solve_report report;
    char where[120];
};

/* What keeping everything needs, and what is needed at least. */
static void measure(struct random_case *c, uint64_t alignment_bytes, uint64_t least_alignment_bytes)
{
    struct problem problem;
    ck_assert_int_eq(
        problem_build(&c->profile, UINT64_MAX / 4, alignment_bytes, c->region, &problem, NULL),
        ATP_OK);
    c->keep_all_bytes = c->profile.resident_bytes + problem.peak_bytes;
    ck_assert_int_eq(problem_build(&c->profile, UINT64_MAX / 4, least_alignment_bytes, c->region,
                                   &problem, NULL),
                     ATP_OK);
    c->least_bytes = c->profile.resident_bytes + problem.least_arena_bytes;
}

/* A profile, and what it needs at `alignment_bytes` (0: problem_alignment chooses). */
static void make(struct random_case *c, uint32_t forward_count, uint64_t alignment_bytes,
                 struct random *random)
{
    c->alignment_bytes = alignment_bytes;
    random_profile_build(random, forward_count, c->region, &c->profile);
    c->profile.resident_bytes = random_below(random, 1000);
    /* The last bytes count more than alignment, where the caller leaves it open. */
    measure(c, alignment_bytes == 0 ? problem_alignment(&c->profile, c->region) : alignment_bytes,
            alignment_bytes == 0 ? 1 : alignment_bytes);
}

static void name(struct random_case *c)
{
    (void)snprintf(c->where, sizeof(c->where),
                   "seed %" PRIu64 ", budget %" PRIu64 " of %" PRIu64 " to %" PRIu64
                   ", alignment %" PRIu64,
                   c->seed, c->budget_bytes, c->least_bytes, c->keep_all_bytes, c->alignment_bytes);
}

static void solve_case(struct random_case *c, struct atp_plan *out_plan)
{
    struct patience patience = {.plans = c->plans};
    struct solve_options options = patience_options(&patience, c->budget_bytes);
    struct atp_error err = {0};
    options.alignment_bytes = c->alignment_bytes;
    options.start = c->start;
    name(c);
    enum atp_status status = solve(&c->profile, &options, c->region, out_plan, &c->report, &err);
    ck_assert_msg(status == ATP_OK, "%s: %s", c->where, err.text);
    ck_assert_msg(out_plan->predicted.bound_ns <= out_plan->predicted.iteration_ns,
                  "%s: below the bound", c->where);
    ck_assert_msg(out_plan->resident_bytes + out_plan->arena_bytes <= c->budget_bytes,
                  "%s: over the budget", c->where);
    if (!c->is_large) {
        assert_judges_accept(out_plan, &c->profile.clock, c->where);
    }
}

START_TEST(the_least_budget_gives_a_plan)
{
    for (uint64_t seed = 1; seed <= SMALL_COUNT; seed++) {
        struct random random = {seed};
        struct random_case c = {.region = region_create(), .seed = seed, .plans = 1};
        struct atp_plan plan;
        make(&c, 1 + random_below(&random, 12), seed % 2 == 0 ? 0 : 1, &random);
        c.budget_bytes = c.least_bytes;
        solve_case(&c, &plan);
        ck_assert_msg(byte_machine_always_agrees(&plan), "%s: wrong bytes", c.where);
        region_destroy(c.region);
    }
}
END_TEST

START_TEST(any_budget_from_least_to_all_gives_a_plan)
{
    for (uint64_t seed = 1; seed <= LARGE_COUNT; seed++) {
        struct random random = {seed + 1000000};
        struct random_case c = {.region = region_create(), .seed = random.state, .plans = 1};
        struct atp_plan plan;
        make(&c, 15 + random_below(&random, 26), 0, &random);
        uint64_t room = c.keep_all_bytes > c.least_bytes ? c.keep_all_bytes - c.least_bytes : 0;
        c.budget_bytes = c.least_bytes + room * random_below(&random, 101) / 100;
        solve_case(&c, &plan);
        if (seed % 8 == 0) {
            ck_assert_msg(byte_machine_always_agrees(&plan), "%s: wrong bytes", c.where);
        }
        region_destroy(c.region);
    }
}
END_TEST

struct swept {
    uint32_t faster; /* than the plan of the smaller budget */
    uint32_t saved;  /* from a slower plan by that of the smaller budget */
};

/* Budgets up from the least, each from the plan of the one below, and alone: stopped early,
 * searches for larger budgets find worse plans often enough. */
static void sweep(struct random_case *c, uint32_t points, struct swept *swept)
{
    struct atp_plan plan, last = {0}, alone;
    struct selection selection;
    const struct solve_start start = {&last, &selection};
    for (uint32_t i = 0; i < points; i++) {
        c->budget_bytes = c->least_bytes + (c->keep_all_bytes - c->least_bytes) * i / (points - 1);
        c->start = NULL;
        solve_case(c, &alone);
        c->start = i > 0 ? &start : NULL;
        solve_case(c, &plan);
        if (i > 0) {
            ck_assert_msg(plan.predicted.iteration_ns <= last.predicted.iteration_ns,
                          "%s: %" PRId64 " ns, the smaller budget's plan takes %" PRId64, c->where,
                          plan.predicted.iteration_ns, last.predicted.iteration_ns);
            swept->faster += plan.predicted.iteration_ns < last.predicted.iteration_ns;
            swept->saved += plan.predicted.iteration_ns < alone.predicted.iteration_ns;
        }
        last = plan;
        selection = c->report.selection;
    }
}

START_TEST(a_larger_budget_that_starts_from_a_smaller_ones_plan_is_never_slower)
{
    struct swept swept = {0};
    for (uint64_t seed = 1; seed <= SWEPT_COUNT; seed++) {
        struct random random = {seed + 5000000};
        struct random_case c = {.region = region_create(), .seed = random.state, .plans = 1};
        make(&c, 5 + random_below(&random, 12), 1, &random);
        sweep(&c, 6, &swept);
        region_destroy(c.region);
    }
    ck_assert_uint_gt(swept.faster, SWEPT_COUNT);
    ck_assert_uint_gt(swept.saved, 0);
}
END_TEST

START_TEST(nor_is_it_for_a_shipped_profile)
{
    struct random_case c = {
        .region = region_create(), .plans = 2, .is_large = true, .alignment_bytes = 256};
    const struct profile_file *file = NULL;
    struct swept swept = {0};
    struct atp_error err;
    ck_assert_msg(profile_read(shipped_path, c.region, &file, &err) == ATP_OK, "%s: %s",
                  shipped_path, err.text);
    ck_assert_msg(profile_at_batch(file, 0, c.region, &c.profile, &err) == ATP_OK, "%s", err.text);
    measure(&c, c.alignment_bytes, c.alignment_bytes);
    sweep(&c, 4, &swept);
    ck_assert_uint_ge(swept.faster, 2);
    region_destroy(c.region);
}
END_TEST

START_TEST(all_bytes_give_the_plain_iteration)
{
    for (uint64_t seed = 1; seed <= SMALL_COUNT; seed++) {
        struct random random = {seed + 2000000};
        struct random_case c = {.region = region_create(), .seed = random.state};
        struct atp_plan plan;
        make(&c, 1 + random_below(&random, 20), 1, &random);
        c.budget_bytes = c.keep_all_bytes;
        solve_case(&c, &plan);
        ck_assert_msg(plan.predicted.iteration_ns == plan.predicted.compute_ns, "%s: slower",
                      c.where);
        ck_assert_uint_eq(plan.predicted.evicted_bytes, 0);
        ck_assert_uint_eq(plan.host_arena_bytes, 0);
        region_destroy(c.region);
    }
}
END_TEST

START_TEST(one_byte_less_than_the_least_is_refused)
{
    for (uint64_t seed = 1; seed <= SMALL_COUNT; seed++) {
        struct random random = {seed + 3000000};
        struct random_case c = {.region = region_create(), .seed = random.state};
        struct atp_plan plan;
        struct solve_report report;
        struct atp_error err;
        char least[64];
        make(&c, 1 + random_below(&random, 12), seed % 2 == 0 ? 0 : 1, &random);
        struct solve_options options = {.budget_bytes = c.least_bytes - 1,
                                        .alignment_bytes = c.alignment_bytes};
        ck_assert_int_eq(solve(&c.profile, &options, c.region, &plan, &report, &err),
                         ATP_ERR_INFEASIBLE);
        (void)snprintf(least, sizeof(least), "least budget is %" PRIu64, c.least_bytes);
        ck_assert_msg(strstr(err.text, least) != NULL, "seed %" PRIu64 ": \"%s\" lacks \"%s\"",
                      c.seed, err.text, least);
        ck_assert_uint_eq(report.least_budget_bytes, c.least_bytes);
        region_destroy(c.region);
    }
}
END_TEST

START_TEST(the_same_profile_and_options_give_the_same_plan)
{
    for (uint64_t seed = 1; seed <= LARGE_COUNT / 4; seed++) {
        struct random random = {seed + 4000000};
        struct random_case c = {.region = region_create(), .seed = random.state, .plans = 1};
        struct atp_plan one, two;
        make(&c, 5 + random_below(&random, 30), 0, &random);
        c.budget_bytes = (c.least_bytes + c.keep_all_bytes) / 2;
        c.budget_bytes = c.budget_bytes < c.least_bytes ? c.least_bytes : c.budget_bytes;
        solve_case(&c, &one);
        solve_case(&c, &two);
        ck_assert_msg(plan_difference(&one, &two) == NULL, "%s: other %s", c.where,
                      plan_difference(&one, &two));
        region_destroy(c.region);
    }
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        the_least_budget_gives_a_plan,
        any_budget_from_least_to_all_gives_a_plan,
        a_larger_budget_that_starts_from_a_smaller_ones_plan_is_never_slower,
        nor_is_it_for_a_shipped_profile,
        all_bytes_give_the_plain_iteration,
        one_byte_less_than_the_least_is_refused,
        the_same_profile_and_options_give_the_same_plan,
    };
    shipped_path = argc > 1 ? argv[1] : "profiles/gpt2-small_b8_v100-modelled.yaml";
    return RUN_TESTS("solve_random", tests, NULL, NULL);
}
