/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "peak.h"

#include "assert_error.h"
#include "batch_source.h"
#include "peak_policy.h"
#include "peak_range.h"
#include "problem.h"
#include "profile_builder.h"
#include "random.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define INSTANCE_COUNT (SANITIZED ? 20U : 200U)
#define LAST_BATCH     6U

static struct region *region;
static struct atp_error err;
static struct peak peak;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    peak_finish(&peak);
    region_destroy(region);
}

static enum atp_status begin(struct batch_source *source, const struct peak_options *options)
{
    const struct peak_source opened = batch_source_open(source);
    return peak_begin(&opened, options, region, &peak, &err);
}

/* Four layers of 100 bytes a tensor: 900 live at most, 300 at least, per sample. */
static struct batch_source chain(void)
{
    return (struct batch_source){&profile_builder_chain(4, 100, 1000, region)->profile, 2};
}

START_TEST(the_range_ends_where_no_plan_fits)
{
    struct batch_source source = chain();
    uint64_t least = 0;
    const struct peak_options options = {.budget_bytes = 5000, .plan_limit = 20};
    assert_ok(begin(&source, &options), err);
    least = peak.batches[0].model.least_budget_bytes;
    ck_assert_uint_eq(peak.batches[0].batch_size, 1);
    ck_assert_uint_eq(peak.count, 5000 / least);
    for (uint32_t i = 0; i < peak.count; i++) {
        ck_assert_uint_eq(peak.batches[i].batch_size, i + 1);
        ck_assert_int_ne(peak.batches[i].bound_ns, INT64_MAX);
        ck_assert(peak.batches[i].grows || i + 1 == peak.count);
    }
    ck_assert_uint_eq(peak_largest_planned(&peak), peak.count - 1);
    ck_assert_uint_eq(peak_largest_unplanned(&peak),
                      5000 / peak.batches[0].model.keep_all_bytes - 1);
    ck_assert_uint_eq(peak_find(&peak, 3), 2);
    ck_assert_uint_eq(peak_find(&peak, 1000), peak.count - 1);
    ck_assert_uint_eq(peak_find(&peak, 0), ATP_NONE);
}
END_TEST

START_TEST(the_range_keeps_to_multiples)
{
    struct batch_source source = chain();
    const struct peak_options options = {
        .budget_bytes = 5000, .first_batch = 2, .last_batch = 9, .multiple = 4};
    assert_ok(begin(&source, &options), err);
    ck_assert_uint_eq(peak.count, 2);
    ck_assert_uint_eq(peak.batches[0].batch_size, 4);
    ck_assert_uint_eq(peak.batches[1].batch_size, 8);
}
END_TEST

START_TEST(refuses_ranges_without_batch_sizes)
{
    enum atp_status status;
    struct batch_source source = chain();
    struct peak_options options = {
        .budget_bytes = 5000, .first_batch = 5, .last_batch = 7, .multiple = 4};
    status = begin(&source, &options);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "no multiple of 4");
    options = (struct peak_options){
        .budget_bytes = 5000, .first_batch = 2, .last_batch = 3, .global_batch = 7};
    status = begin(&source, &options);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "divides the global batch of 7");
    options = (struct peak_options){.budget_bytes = 5000, .last_batch = 1000000};
    status = begin(&source, &options);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "65536 at most");
}
END_TEST

START_TEST(names_the_least_budget_of_the_smallest_batch)
{
    enum atp_status status;
    struct batch_source source = chain();
    const struct peak_options options = {.budget_bytes = 10};
    char text[64];
    (void)begin(&source, &options);
    (void)snprintf(text, sizeof(text), "the least budget is %" PRIu64 ", at batch size 1",
                   peak.batches[0].model.least_budget_bytes);
    status = begin(&source, &options);
    assert_error(status, err, ATP_ERR_INFEASIBLE, ATP_NONE, text);
}
END_TEST

/* Update steps of 3000 ns at batch size 1 would count for every batch; here once for 12 samples. */
START_TEST(a_global_batch_counts_update_steps_once)
{
    struct profile_builder *b = profile_builder_chain(2, 100, 1000, region);
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 3000, NO_IDS, NO_IDS);
    struct batch_source source = {&b->profile, 0};
    const struct peak_options options = {
        .budget_bytes = 100000, .last_batch = 12, .global_batch = 12, .plan_limit = 20};
    assert_ok(begin(&source, &options), err);
    ck_assert_uint_eq(peak.count, 6); /* 1 2 3 4 6 12 */
    ck_assert_uint_eq(peak.batches[3].batch_size, 4);
    ck_assert_uint_eq(peak.batches[3].repeats, 3);
    ck_assert_int_eq(peak.batches[3].update_ns, 12000);
    ck_assert_int_eq(peak.batches[3].model.compute_ns, 16000);
    ck_assert_double_eq_tol(peak_rate(&peak.batches[3], 16000), 12e9 / (3 * 16000 + 12000), 1e-6);
    assert_ok(peak_search(&peak, &err), err);
    ck_assert_uint_eq(peak.best_plan.model.step_count, 4);
}
END_TEST

START_TEST(an_iteration_takes_a_nanosecond_at_least)
{
    const struct peak_batch batch = {.batch_size = 8, .repeats = 1};
    ck_assert_double_eq(peak_rate(&batch, 0), 8e9);
    ck_assert_double_eq(peak_rate(&batch, INT64_MAX), 0);
}
END_TEST

START_TEST(the_model_alone_settles_a_range_that_fits)
{
    struct batch_source source = chain();
    const struct peak_options options = {
        .budget_bytes = 100000, .last_batch = 100, .plan_limit = 20, .gap = 0.01};
    assert_ok(begin(&source, &options), err);
    assert_ok(peak_search(&peak, &err), err);
    ck_assert_uint_eq(peak.batches[peak.best].batch_size, 100);
    ck_assert_uint_eq(peak.plan_count, 1);
    ck_assert_uint_eq(peak.relaxation_count, 0);
    ck_assert_double_le(peak.proven_gap, 0.01);
}
END_TEST

START_TEST(the_search_stops_at_its_plan_limit)
{
    struct batch_source source = chain();
    const struct peak_options options = {.budget_bytes = 5000, .plan_limit = 2};
    assert_ok(begin(&source, &options), err);
    assert_ok(peak_search(&peak, &err), err);
    ck_assert_uint_le(peak.search_plan_count, 2);
    assert_ok(peak_look(&peak, 0, &err), err);
    ck_assert(peak.batches[0].planned && peak.batches[0].relaxed);
}
END_TEST

START_TEST(a_raised_flag_ends_the_search)
{
    struct batch_source source = chain();
    const volatile int stop = 1;
    const struct peak_options options = {.budget_bytes = 5000, .plan_limit = 20, .stop = &stop};
    assert_ok(begin(&source, &options), err);
    assert_ok(peak_search(&peak, &err), err);
    ck_assert_uint_eq(peak.best, ATP_NONE);
    ck_assert(isinf(peak.proven_gap));
}
END_TEST

/* model >= bound >= plan, in throughput, at each batch size. */
static void check_order(uint64_t seed)
{
    for (uint32_t i = 0; i < peak.count; i++) {
        const struct peak_batch *batch = &peak.batches[i];
        ck_assert_int_ge(batch->bound_ns, batch->model.bound_ns);
        if (batch->has_plan) {
            ck_assert_msg(batch->predicted.iteration_ns >= batch->bound_ns,
                          "seed %" PRIu64 ", batch size %" PRIu64 ": a plan takes %" PRId64
                          " ns, the bound is %" PRId64,
                          seed, batch->batch_size, batch->predicted.iteration_ns, batch->bound_ns);
        }
    }
}

static double best_rate(void)
{
    return peak_rate(&peak.batches[peak.best], peak.batches[peak.best].predicted.iteration_ns);
}

/* Plans all batch sizes: the fastest, and whether the proof of the search is true of all others. */
static double brute_force(struct batch_source *source, const struct peak_options *options,
                          const struct peak *searched, uint64_t seed)
{
    double limit = peak_rate(&searched->batches[searched->best],
                             searched->batches[searched->best].predicted.iteration_ns) *
                   (1 + searched->proven_gap) * (1 + 1e-12);
    assert_ok(begin(source, options), err);
    for (uint32_t i = 0; i < peak.count; i++) {
        assert_ok(peak_look(&peak, i, &err), err);
        const struct peak_batch *batch = &peak.batches[i];
        ck_assert_msg(!batch->has_plan || i == searched->best ||
                          peak_rate(batch, batch->predicted.iteration_ns) <= limit,
                      "seed %" PRIu64 ": batch size %" PRIu64 " is faster than was proven", seed,
                      batch->batch_size);
    }
    check_order(seed);
    return best_rate();
}

START_TEST(finds_what_planning_every_batch_size_finds)
{
    uint32_t proven = 0, planned = 0, batches = 0;
    for (uint64_t seed = 1; seed <= INSTANCE_COUNT; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem;
        random_profile_build(&random, 2 + random_below(&random, 3), region, &profile);
        profile.resident_bytes = random_below(&random, 1000);
        ck_assert_int_eq(problem_build(&profile, UINT64_MAX / 4, 1, region, &problem, &err),
                         ATP_OK);
        struct batch_source source = {&profile, random_below(&random, 5)};
        const struct peak_options options = {.budget_bytes =
                                                 profile.resident_bytes + 4 * problem.peak_bytes,
                                             .last_batch = LAST_BATCH,
                                             .plan_limit = 100,
                                             .alignment_bytes = 1};
        struct peak_policies policies;
        assert_ok(begin(&source, &options), err);
        if (seed % 2 == 0) {
            assert_ok(peak_policies_rate(&peak, &policies, &err), err);
        }
        assert_ok(peak_search(&peak, &err), err);
        check_order(seed);
        proven += peak.proven_gap <= 0;
        planned += peak.plan_count;
        batches += peak.count;
        struct peak searched = peak;
        double found = best_rate(), best = brute_force(&source, &options, &searched, seed);
        ck_assert_msg(found >= best, "seed %" PRIu64 ": found %f a second, best is %f", seed, found,
                      best);
        peak_finish(&searched);
        peak_finish(&peak);
    }
    (void)printf("%u instances of %u batch sizes: %u planned by the search, %u peaks proven\n",
                 INSTANCE_COUNT, batches, planned, proven);
    ck_assert_uint_lt(planned, batches);
    ck_assert_uint_gt(proven, 0);
}
END_TEST

START_TEST(no_policy_at_its_best_beats_the_bounds)
{
    struct batch_source source = chain();
    struct peak_policies policies;
    const struct peak_options options = {.budget_bytes = 5000, .plan_limit = 20};
    assert_ok(begin(&source, &options), err);
    assert_ok(peak_policies_rate(&peak, &policies, &err), err);
    assert_ok(peak_search(&peak, &err), err);
    assert_ok(peak_policies_place(&peak, &policies, &err), err);
    ck_assert_uint_eq(policies.count, 8);
    ck_assert_uint_eq(policies.tried_count, peak.count);
    ck_assert_str_eq(policies.items[0].name, "keep-all");
    ck_assert_uint_eq(policies.items[0].index, peak_largest_unplanned(&peak));
    for (uint32_t i = 0; i < policies.count; i++) {
        const struct peak_policy *policy = &policies.items[i];
        ck_assert_uint_ne(policy->index, ATP_NONE);
        ck_assert_int_ge(policy->iteration_ns, peak.batches[policy->index].bound_ns);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_range_ends_where_no_plan_fits,
        the_range_keeps_to_multiples,
        refuses_ranges_without_batch_sizes,
        names_the_least_budget_of_the_smallest_batch,
        a_global_batch_counts_update_steps_once,
        an_iteration_takes_a_nanosecond_at_least,
        the_model_alone_settles_a_range_that_fits,
        the_search_stops_at_its_plan_limit,
        a_raised_flag_ends_the_search,
        finds_what_planning_every_batch_size_finds,
        no_policy_at_its_best_beats_the_bounds,
    };
    return RUN_TESTS("peak", tests, set_up, tear_down);
}
