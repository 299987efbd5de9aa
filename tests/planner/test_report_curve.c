/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "report_curve.h"

#include "assert_error.h"
#include "profile.h"
#include "run_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A step of 1 us and 1 us per sample, forward and backward; 100 bytes per sample between them. */
#define PROFILE(sizes, bytes, times)                                                               \
    "atp_profile: 1\nmodel: m\n"                                                                   \
    "device: {name: G, memory_bytes: 16e9, d2h_bytes_per_second: 12e9, "                           \
    "h2d_bytes_per_second: 12e9}\n" sizes "\nresident_bytes: 1000\ntensors:\n"                     \
    "  - {name: a, bytes: " bytes "}\nsteps:\n"                                                    \
    "  - {name: s, phase: forward, time_us: " times ", reads: [], writes: [a]}\n"                  \
    "  - {name: s, phase: backward, time_us: " times ", reads: [a], writes: []}\n"
#define TWO_SIZES PROFILE("batch_sizes: [2, 4]", "[200, 400]", "[3, 5]")

static struct region *region;
static struct atp_error err;
static const struct report_curve *curve;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

/* All that a curve needs of a plan. */
static struct atp_plan plan_at(uint64_t batch_size, uint64_t budget_bytes, int64_t iteration_ns)
{
    return (struct atp_plan){
        .model.batch_size = batch_size,
        .budget_bytes = budget_bytes,
        .predicted.iteration_ns = iteration_ns,
    };
}

static void build(const char *text, const struct atp_plan *plan)
{
    const struct profile_file *file = NULL;
    assert_ok(profile_parse(text, strlen(text), region, &file, &err), err);
    assert_ok(report_curve_build(plan, file, region, &curve, &err), err);
}

/* To be freed. */
static char *written(const struct atp_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    report_curve_write(curve, plan, out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(one_measured_size_gives_no_curve)
{
    const struct atp_plan plan = plan_at(2, 5000, 6000);
    build(PROFILE("batch_size: 2", "200", "3"), &plan);
    ck_assert_ptr_null(curve);
}
END_TEST

START_TEST(all_sizes_that_fit_are_drawn)
{
    const struct atp_plan plan = plan_at(2, 1700, 6000);
    build(TWO_SIZES, &plan);
    ck_assert_ptr_nonnull(curve);
    ck_assert_uint_eq(curve->peak.count, 7);
    ck_assert_uint_eq(curve->peak.batches[6].batch_size, 7);
    /* The fixed part weighs less and less. */
    ck_assert_uint_eq(curve->top, 6);
    ck_assert_uint_eq(curve->most_unplanned, 6);
}
END_TEST

START_TEST(the_range_ends_at_four_times_the_largest_size)
{
    const struct atp_plan small = plan_at(2, UINT64_C(1) << 30, 6000);
    build(TWO_SIZES, &small);
    ck_assert_uint_eq(curve->peak.batches[curve->peak.count - 1].batch_size, 16);
    const struct atp_plan large = plan_at(10, UINT64_C(1) << 30, 22000);
    build(TWO_SIZES, &large);
    ck_assert_uint_eq(curve->peak.batches[curve->peak.count - 1].batch_size, 40);
}
END_TEST

START_TEST(its_words_are_its_numbers)
{
    /* 7 samples in 16 us; the plan at hand: 2 in 8 us. */
    const struct atp_plan plan = plan_at(2, 1700, 8000);
    build(TWO_SIZES, &plan);
    char *text = written(&plan);
    ck_assert_ptr_nonnull(strstr(text, "trains 250000.00 samples a second at batch size 2."));
    ck_assert_ptr_nonnull(strstr(text, "no batch size from 1 to 7 can exceed 437500.00, the "
                                       "model's bound at batch size 7."));
    ck_assert_ptr_nonnull(strstr(text, "batch size 7 is the largest that fits: 437500.00"));
    ck_assert_ptr_nonnull(strstr(text, "class=\"dot\" style=\"left:28.57%;"));
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_measured_size_gives_no_curve,
        all_sizes_that_fit_are_drawn,
        the_range_ends_at_four_times_the_largest_size,
        its_words_are_its_numbers,
    };
    return RUN_TESTS("report_curve", tests, set_up, tear_down);
}
