/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "planning.h"
#include "report_data.h"
#include "run_tests.h"

#define BYTES  UINT64_C(100)
#define NS     INT64_C(100)
#define PLENTY 100000U

static struct region *region;
static struct planning p;
static struct report report;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

/* A chain of three with t1 swapped or recomputed behind its use by step 1. */
static void build_chain(uint8_t choice, int64_t latency_ns)
{
    struct atp_error err;
    struct profile_builder *b = profile_builder_chain(3, BYTES, NS, region);
    b->profile.clock.copy_latency_ns = latency_ns;
    planning_begin(&p, b, PLENTY, region);
    planning_choose(&p, 1, 1, choice);
    planning_assemble(&p);
    ck_assert_int_eq(report_build(&p.plan, &b->profile, region, &report, &err), ATP_OK);
}

static int64_t time_of(const struct report_marks *marks, enum report_kind kind)
{
    int64_t sum_ns = 0;
    for (uint32_t i = 0; i < marks->count; i++) {
        const struct report_mark *mark = &marks->items[i];
        sum_ns += mark->kind == kind ? mark->end_ns - mark->start_ns : 0;
    }
    return sum_ns;
}

/* What holds for every report. */
static void expect_whole(void)
{
    int64_t now_ns = 0;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < report.compute.count; i++) {
        ck_assert_int_eq(report.compute.items[i].start_ns, now_ns);
        now_ns = report.compute.items[i].end_ns;
    }
    ck_assert_int_eq(now_ns, p.plan.predicted.iteration_ns);
    for (uint32_t i = 0; i < report.level_count; i++) {
        peak = report.levels[i].bytes > peak ? report.levels[i].bytes : peak;
    }
    ck_assert_uint_eq(peak, p.plan.resident_bytes + p.plan.predicted.peak_bytes);
    for (uint32_t i = 0; i < report.place_count; i++) {
        ck_assert_int_le(report.places[i].start_ns, report.places[i].end_ns);
        ck_assert_int_le(report.places[i].end_ns, p.plan.predicted.iteration_ns);
    }
}

START_TEST(a_kept_chain_is_forward_and_backward_alone)
{
    build_chain(CHOICE_KEEP, 0);
    expect_whole();
    ck_assert_int_eq(time_of(&report.compute, REPORT_FORWARD), 3 * NS);
    ck_assert_int_eq(time_of(&report.compute, REPORT_BACKWARD), 3 * NS);
    ck_assert_uint_eq(report.out.count + report.in.count, 0);
    ck_assert_uint_eq(report.place_count, p.plan.model.tensor_count);
    ck_assert_uint_eq(report.keep_all_peak_bytes, p.plan.predicted.peak_bytes);
}
END_TEST

START_TEST(a_swap_has_two_copies_two_places_and_its_stall)
{
    build_chain(CHOICE_SWAP, 4 * NS);
    expect_whole();
    ck_assert_uint_eq(report.out.count, 1);
    ck_assert_uint_eq(report.in.count, 1);
    ck_assert_uint_eq(report.out.items[0].id, 1);
    ck_assert_uint_eq(report.place_count, p.plan.model.tensor_count + 1);
    ck_assert_int_gt(p.plan.predicted.stall_ns, 0);
    ck_assert_int_eq(time_of(&report.compute, REPORT_STALL), p.plan.predicted.stall_ns);
    ck_assert_int_eq(report.tensors[1].stall_ns, p.plan.predicted.stall_ns);
    ck_assert_int_eq(report.tensors[1].copy_ns, 2 * (4 * NS + (int64_t)BYTES));
}
END_TEST

START_TEST(a_rerun_is_marked_and_no_copy_is)
{
    build_chain(CHOICE_RECOMPUTE, 0);
    expect_whole();
    ck_assert_int_eq(time_of(&report.compute, REPORT_RERUN), NS);
    ck_assert_uint_eq(report.out.count + report.in.count, 0);
    ck_assert_uint_eq(report.place_count, p.plan.model.tensor_count + 1);
}
END_TEST

START_TEST(tensors_have_their_longest_gap_and_own_steps)
{
    build_chain(CHOICE_KEEP, 0);
    /* t1 is read by step 1, then by backward step 4: steps 2 and 3 lie between. */
    ck_assert_uint_eq(report.tensors[1].first_step, 2);
    ck_assert_uint_eq(report.tensors[1].end_step, 4);
    ck_assert_int_eq(report.tensors[1].gap_ns, 2 * NS);
    ck_assert_int_eq(report.tensors[1].rerun_ns, NS);
    ck_assert_int_eq(report.tensors[0].rerun_ns, -1); /* an input */
    ck_assert(!report.tensors[1].is_short);
}
END_TEST

START_TEST(memory_is_short_below_what_keeping_everything_needs)
{
    struct atp_error err;
    build_chain(CHOICE_RECOMPUTE, 0);
    p.plan.budget_bytes = report.keep_all_peak_bytes - 1;
    ck_assert_int_eq(report_build(&p.plan, &p.builder->profile, region, &report, &err), ATP_OK);
    ck_assert(report.tensors[1].is_short);
    ck_assert_uint_gt(report.keep_all_peak_bytes, p.plan.budget_bytes);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_kept_chain_is_forward_and_backward_alone,
        a_swap_has_two_copies_two_places_and_its_stall,
        a_rerun_is_marked_and_no_copy_is,
        tensors_have_their_longest_gap_and_own_steps,
        memory_is_short_below_what_keeping_everything_needs,
    };
    return RUN_TESTS("report_data", tests, set_up, tear_down);
}
