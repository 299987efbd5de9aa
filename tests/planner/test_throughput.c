/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "throughput.h"

#include "problem.h"
#include "profile_builder.h"
#include "random.h"
#include "random_profile.h"
#include "random_program.h"
#include "relax.h"
#include "run_tests.h"
#include "search.h"

#include <inttypes.h>
#include <stdio.h>

#define MB UINT64_C(1000000)
#define US INT64_C(1000)

static struct region *region;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static struct throughput_point find(const struct profile *profile, uint64_t budget_bytes)
{
    struct throughput *throughput = NULL;
    struct throughput_point point;
    ck_assert_msg(throughput_create(profile, region, &throughput, &err) == ATP_OK, "%s", err.text);
    throughput_find(throughput, profile, budget_bytes, &point);
    return point;
}

/* profiles/tiny.yaml, with a link of 5 GB/s each way: the example of throughput.md. */
static struct profile_builder *tiny(void)
{
    struct profile_builder *b = profile_builder_create(region);
    uint32_t x = profile_builder_tensor(b, 4 * MB), a = profile_builder_tensor(b, 8 * MB);
    uint32_t y = profile_builder_tensor(b, 8 * MB), c = profile_builder_tensor(b, 4 * MB);
    uint32_t gc = profile_builder_tensor(b, 4 * MB), gb = profile_builder_tensor(b, 8 * MB);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 400 * US, IDS(x), IDS(a));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 100 * US, IDS(a), IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 400 * US, IDS(y), IDS(c));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 80 * US, IDS(c), IDS(gc));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 400 * US, IDS(y, gc), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 400 * US, IDS(gc), IDS(gb));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 100 * US, IDS(a, gb), IDS(gb));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 400 * US, IDS(x, gb), NO_IDS);
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 50 * US, NO_IDS, NO_IDS);
    b->profile.resident_bytes = 12 * MB;
    b->profile.clock.d2h_bytes_per_second = b->profile.clock.h2d_bytes_per_second = 5000 * MB;
    return b;
}

START_TEST(the_example_of_the_derivation_comes_out)
{
    struct throughput_point p = find(&tiny()->profile, 32 * MB);
    ck_assert_int_eq(p.compute_ns, 2330 * US);
    ck_assert_uint_eq(p.keep_all_bytes, 40 * MB);
    ck_assert_uint_eq(p.least_budget_bytes, 28 * MB);
    ck_assert_uint_eq(p.step, 5);
    ck_assert_uint_eq(p.excess_bytes, 4 * MB);
    ck_assert_uint_eq(p.hidden_bytes, MB / 2);
    ck_assert_uint_eq(p.recompute_bytes, 2800000);
    ck_assert_uint_eq(p.swap_bytes, 1200000);
    ck_assert_int_eq(p.recompute_ns, 140 * US);
    ck_assert_int_eq(p.d2h_ns + p.h2d_ns, 0);
    ck_assert_int_eq(p.bound_ns, 2470 * US);
    ck_assert_int_eq(p.limit, THROUGHPUT_RECOMPUTE);
}
END_TEST

START_TEST(costs_nothing_where_everything_fits)
{
    struct throughput_point p = find(&tiny()->profile, 40 * MB);
    ck_assert_int_eq(p.bound_ns, p.compute_ns);
    ck_assert_uint_eq(p.step, ATP_NONE);
    ck_assert_uint_eq(p.excess_bytes, 0);
    ck_assert_int_eq(p.limit, THROUGHPUT_COMPUTE);
}
END_TEST

START_TEST(copies_that_hide_cost_nothing)
{
    struct profile_builder *b = tiny();
    b->profile.clock.d2h_bytes_per_second = b->profile.clock.h2d_bytes_per_second = 100000 * MB;
    struct throughput_point p = find(&b->profile, 36 * MB);
    ck_assert_int_eq(p.bound_ns, p.compute_ns);
    ck_assert_uint_eq(p.excess_bytes, 4 * MB);
    ck_assert_uint_eq(p.swap_bytes, 4 * MB);
    ck_assert_int_eq(p.limit, THROUGHPUT_COMPUTE);
}
END_TEST

START_TEST(the_slower_direction_of_the_link_is_named)
{
    struct profile_builder *b = tiny();
    for (uint32_t s = 0; s < 3; s++) {
        b->steps[s].rerun_never = true;
    }
    b->profile.clock.d2h_bytes_per_second = 1000 * MB;
    ck_assert_int_eq(find(&b->profile, 32 * MB).limit, THROUGHPUT_D2H);
    b->profile.clock.d2h_bytes_per_second = 100000 * MB;
    b->profile.clock.h2d_bytes_per_second = 1000 * MB;
    ck_assert_int_eq(find(&b->profile, 32 * MB).limit, THROUGHPUT_H2D);
}
END_TEST

START_TEST(copies_pay_their_latency)
{
    struct profile_builder *b = tiny();
    for (uint32_t s = 0; s < 3; s++) {
        b->steps[s].rerun_never = true;
    }
    int64_t before = find(&b->profile, 32 * MB).bound_ns;
    b->profile.clock.copy_latency_ns = 100 * US;
    ck_assert_int_gt(find(&b->profile, 32 * MB).bound_ns, before);
}
END_TEST

START_TEST(says_when_no_plan_exists)
{
    struct profile_builder *b = tiny();
    struct throughput_point p = find(&b->profile, 28 * MB - 1);
    ck_assert_int_eq(p.bound_ns, INT64_MAX);
    ck_assert_int_eq(p.limit, THROUGHPUT_MEMORY);
    b->profile.pinned_bytes = MB;
    for (uint32_t s = 0; s < 3; s++) {
        b->steps[s].rerun_never = true;
    }
    p = find(&b->profile, 28 * MB);
    ck_assert_int_eq(p.bound_ns, INT64_MAX);
    ck_assert_int_eq(p.limit, THROUGHPUT_HOST);
    ck_assert_str_eq(throughput_limit_name(p.limit), "host memory");
}
END_TEST

START_TEST(a_tensor_of_several_writers_waits_for_all_of_them)
{
    struct profile_builder *b = profile_builder_create(region);
    uint32_t x = profile_builder_tensor(b, 100), y = profile_builder_tensor(b, 100);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 7, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 90, IDS(x), IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 3, NO_IDS, IDS(y));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 10, IDS(x), NO_IDS);
    b->profile.clock.d2h_bytes_per_second = 1;
    struct throughput_point p = find(&b->profile, 100);
    ck_assert_int_eq(p.bound_ns - p.compute_ns, 97);
    ck_assert_uint_eq(p.recompute_bytes, 100);
}
END_TEST

START_TEST(one_rerun_brings_back_all_outputs_of_its_step)
{
    struct profile_builder *b = profile_builder_create(region);
    uint32_t x = profile_builder_tensor(b, 60), y = profile_builder_tensor(b, 40);
    uint32_t z = profile_builder_tensor(b, 100);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 50, NO_IDS, IDS(x, y));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 3, NO_IDS, IDS(z));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 10, IDS(x, y), NO_IDS);
    b->profile.clock.d2h_bytes_per_second = 1;
    struct throughput_point p = find(&b->profile, 100);
    ck_assert_int_eq(p.bound_ns - p.compute_ns, 50);
    ck_assert_uint_eq(p.recompute_bytes, 100);
}
END_TEST

struct tally {
    uint32_t bounds, programs, plans, relaxed_above, relaxed_below;
};

static void check_programs(const struct problem *problem, struct random *random, int64_t bound_ns,
                           uint64_t seed, struct tally *tally)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct region_mark mark = region_mark(region);
        struct atp_plan plan;
        if (random_program_build(problem, problem->arena_limit, random, region, &plan)) {
            int64_t ns =
                random_program_improve(problem, problem->arena_limit, 60, random, region, &plan);
            ck_assert_msg(ns >= bound_ns,
                          "seed %" PRIu64 ", program %u: %" PRId64 " ns, the model says %" PRId64,
                          seed, i, ns, bound_ns);
            tally->programs++;
        }
        region_reset(region, mark);
    }
}

static void check_plan(const struct problem *problem, const struct throughput_point *point,
                       uint64_t seed, struct tally *tally)
{
    struct relax_solution relaxed;
    struct relax_options relaxing = {.iteration_limit = 3000};
    struct search_options searching = {.work_limit = 20000};
    struct search_result found;
    ck_assert_int_eq(relax_solve(problem, &relaxing, region, &relaxed, &err), ATP_OK);
    tally->relaxed_above += relaxed.bound_ns > point->bound_ns;
    tally->relaxed_below += relaxed.bound_ns < point->bound_ns;
    search_run(problem, &relaxed, &searching, region, &found);
    if (found.found) {
        ck_assert_msg(found.iteration_ns >= point->bound_ns,
                      "seed %" PRIu64 ": a plan takes %" PRId64 " ns, the model says %" PRId64,
                      seed, found.iteration_ns, point->bound_ns);
        ck_assert_int_ge(found.iteration_ns, relaxed.bound_ns);
        tally->plans++;
    }
}

START_TEST(no_program_beats_the_model)
{
    struct tally tally = {0};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem;
        struct region_mark mark = region_mark(region);
        random_profile_build(&random, 2 + random_below(&random, 9), region, &profile);
        ck_assert_int_eq(problem_build(&profile, UINT64_MAX / 4, 1, region, &problem, &err),
                         ATP_OK);
        uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
        uint64_t budget = least + room * random_below(&random, 8) / 8;
        if (random_chance(&random, 20)) {
            profile.pinned_bytes = problem.peak_bytes / 4;
        }
        ck_assert_int_eq(problem_build(&profile, budget, 1, region, &problem, &err), ATP_OK);
        struct throughput_point point = find(&profile, budget);
        ck_assert_uint_eq(point.keep_all_bytes, problem.peak_bytes);
        ck_assert_uint_eq(point.least_budget_bytes, least);
        ck_assert_int_ge(point.bound_ns, problem.compute_ns);
        ck_assert_int_ne(point.limit, THROUGHPUT_MEMORY);
        tally.bounds += point.bound_ns > point.compute_ns;
        if (point.limit != THROUGHPUT_HOST) { /* programs by chance know no pinned limit */
            profile.pinned_bytes = UINT64_MAX;
            point = find(&profile, budget);
            check_programs(&problem, &random, point.bound_ns, seed, &tally);
        }
        check_plan(&problem, &point, seed, &tally);
        region_reset(region, mark);
    }
    (void)printf("%u bounds above the step times; %u programs and %u plans, none faster; "
                 "relaxation above the model %u times, below %u\n",
                 tally.bounds, tally.programs, tally.plans, tally.relaxed_above,
                 tally.relaxed_below);
    ck_assert_uint_gt(tally.bounds, 100);
    ck_assert_uint_gt(tally.programs, 1000);
    ck_assert_uint_gt(tally.plans, 200);
}
END_TEST

/* More memory and a faster link never make the bound larger. */
START_TEST(the_bound_falls_with_the_budget_and_the_link)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct random random = {seed};
        struct profile profile;
        random_profile_build(&random, 6, region, &profile);
        struct throughput_point whole = find(&profile, UINT64_MAX / 4);
        uint64_t least = whole.least_budget_bytes, room = whole.keep_all_bytes - least;
        int64_t last_ns = INT64_MAX;
        for (uint64_t i = 0; i <= 8; i++) {
            struct throughput_point p = find(&profile, least + room * i / 8);
            profile.clock.d2h_bytes_per_second *= 2;
            struct throughput_point faster = find(&profile, least + room * i / 8);
            profile.clock.d2h_bytes_per_second /= 2;
            ck_assert_int_le(faster.bound_ns, p.bound_ns);
            last_ns = i == 8 ? p.bound_ns : last_ns;
        }
        ck_assert_int_eq(last_ns, whole.compute_ns);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_example_of_the_derivation_comes_out,
        costs_nothing_where_everything_fits,
        copies_that_hide_cost_nothing,
        the_slower_direction_of_the_link_is_named,
        copies_pay_their_latency,
        says_when_no_plan_exists,
        a_tensor_of_several_writers_waits_for_all_of_them,
        one_rerun_brings_back_all_outputs_of_its_step,
        no_program_beats_the_model,
        the_bound_falls_with_the_budget_and_the_link,
    };
    return RUN_TESTS("throughput", tests, set_up, tear_down);
}
