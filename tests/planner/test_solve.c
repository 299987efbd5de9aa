/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "solve.h"

#include "assert_judges.h"
#include "patience.h"
#include "plan_equal.h"
#include "profile_builder.h"
#include "run_tests.h"

/* A chain of four forward steps: six tensors of 100 bytes are live at most, four at least. */
#define BYTES    UINT64_C(100)
#define NS       INT64_C(100)
#define KEEP_ALL 600U
#define LEAST    400U

static struct region *region;
static struct profile_builder *b;
static struct atp_plan plan;
static struct solve_report report;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
    b = profile_builder_chain(4, BYTES, NS, region);
    err = (struct atp_error){0};
}

static void tear_down(void)
{
    region_destroy(region);
}

static enum atp_status solve_with(struct solve_options options)
{
    return solve(&b->profile, &options, region, &plan, &report, &err);
}

/* Asserts a plan that all judges accept. Stops the search at one that takes `enough_ns`. */
static void must_solve(uint64_t budget_bytes, int64_t enough_ns)
{
    struct patience patience = {.enough_ns = enough_ns};
    struct solve_options options = patience_options(&patience, budget_bytes);
    options.alignment_bytes = 1;
    ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
    assert_judges_accept(&plan, &b->profile.clock, "solved");
}

static void must_refuse(uint64_t budget_bytes, const char *text)
{
    struct solve_options options = {.budget_bytes = budget_bytes, .alignment_bytes = 1};
    ck_assert_int_eq(solve_with(options), ATP_ERR_INFEASIBLE);
    ck_assert_int_eq(err.status, ATP_ERR_INFEASIBLE);
    ck_assert_msg(strstr(err.text, text) != NULL, "\"%s\" does not say \"%s\"", err.text, text);
}

START_TEST(everything_fits_and_costs_nothing)
{
    must_solve(KEEP_ALL, 0);
    ck_assert(report.fits_unplanned);
    ck_assert(!report.stopped);
    ck_assert_int_eq(plan.predicted.iteration_ns, 8 * NS);
    ck_assert_int_eq(plan.predicted.bound_ns, 8 * NS);
    ck_assert_int_eq(plan.predicted.stall_ns, 0);
    ck_assert_int_eq(plan.predicted.recompute_ns, 0);
    ck_assert_uint_eq(plan.predicted.evicted_bytes, 0);
    ck_assert_uint_eq(plan.arena_bytes, KEEP_ALL);
    ck_assert_uint_eq(plan.host_arena_bytes, 0);
    for (uint32_t t = 0; t < b->profile.model.tensor_count; t++) {
        ck_assert_int_eq(plan.decisions[t], ATP_DECISION_KEEP);
    }
}
END_TEST

START_TEST(a_swap_that_hides_costs_nothing)
{
    must_solve(KEEP_ALL - BYTES, 8 * NS);
    ck_assert(!report.fits_unplanned);
    ck_assert_int_eq(plan.predicted.iteration_ns, 8 * NS);
    ck_assert_uint_le(plan.arena_bytes, KEEP_ALL - BYTES);
    ck_assert_uint_gt(plan.predicted.evicted_bytes, 0);
}
END_TEST

START_TEST(a_cheap_rerun_is_better_than_a_slow_copy)
{
    b->profile.clock.d2h_bytes_per_second = 10000000; /* 10000 ns */
    b->step_ns[0] = 7;
    must_solve(KEEP_ALL - BYTES, 7 * NS + 7 + 7);
    ck_assert_int_eq(plan.predicted.iteration_ns, 7 * NS + 7 + 7);
    ck_assert_int_eq(plan.decisions[1], ATP_DECISION_RECOMPUTE);
}
END_TEST

START_TEST(resident_bytes_are_part_of_the_budget)
{
    b->profile.resident_bytes = 5000;
    must_solve(5000 + KEEP_ALL, 0);
    ck_assert(report.fits_unplanned);
    ck_assert_uint_eq(report.keep_all_bytes, 5000 + KEEP_ALL);
    ck_assert_uint_eq(report.least_budget_bytes, 5000 + LEAST);
    ck_assert_uint_eq(plan.resident_bytes, 5000);
}
END_TEST

START_TEST(the_report_says_what_the_profile_needs)
{
    must_solve(KEEP_ALL, 0);
    ck_assert_uint_eq(report.least_budget_bytes, LEAST);
    ck_assert_uint_eq(report.least_step, 5); /* the first with two activations and two gradients */
    ck_assert_uint_eq(report.keep_all_bytes, KEEP_ALL);
    ck_assert_int_eq(report.compute_ns, 8 * NS);
}
END_TEST

START_TEST(less_than_the_least_is_refused_with_what_blocks)
{
    b->profile.resident_bytes = 50;
    must_refuse(50 + LEAST - 1, "least budget is 450");
    ck_assert_ptr_nonnull(strstr(err.text, "resident 50 + 400 for s5"));
    ck_assert_ptr_nonnull(strstr(err.text, "(100 bytes)"));
    ck_assert_uint_eq(report.least_budget_bytes, 50 + LEAST);
    ck_assert_uint_eq(report.least_step, 5);
}
END_TEST

START_TEST(less_than_resident_bytes_is_refused_with_the_least)
{
    b->profile.resident_bytes = 1000;
    must_refuse(999, "least budget is 1400");
    must_refuse(0, "least budget is 1400");
}
END_TEST

START_TEST(inputs_alone_may_block)
{
    b->tensors[0].bytes = 50;
    for (uint32_t i = 0; i < 5; i++) {
        (void)profile_builder_tensor(b, 200);
    }
    must_refuse(1049, "least budget is 1050");
    ck_assert_ptr_nonnull(strstr(err.text, "the beginning of the iteration"));
    ck_assert_uint_eq(report.least_step, ATP_NONE);
}
END_TEST

START_TEST(host_copies_stay_within_pinned_memory)
{
    /* Nothing may rerun, so tensors leave or stay; two leave at the least budget. */
    for (uint32_t s = 0; s < 8; s++) {
        b->steps[s].rerun_never = true;
    }
    b->profile.pinned_bytes = BYTES;
    struct patience patience = {.plans = 1};
    struct solve_options options = patience_options(&patience, KEEP_ALL - BYTES);
    options.alignment_bytes = 1;
    ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
    assert_judges_accept(&plan, &b->profile.clock, "pinned");
    ck_assert_uint_eq(plan.host_arena_bytes, BYTES);
}
END_TEST

START_TEST(too_little_pinned_memory_is_named)
{
    for (uint32_t s = 0; s < 8; s++) {
        b->steps[s].rerun_never = true;
    }
    b->profile.pinned_bytes = BYTES - 1;
    must_refuse(LEAST, "99 bytes of pinned memory");
}
END_TEST

START_TEST(pins_are_obeyed)
{
    static const struct {
        enum profile_pin pin;
        enum atp_decision decision;
    } cases[] = {{PROFILE_PIN_SWAP, ATP_DECISION_SWAP},
                 {PROFILE_PIN_RECOMPUTE, ATP_DECISION_RECOMPUTE}};
    b->pins[0] = b->pins[2] = PROFILE_PIN_KEEP;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        b->pins[1] = cases[i].pin;
        must_solve(KEEP_ALL - BYTES, INT64_MAX);
        ck_assert_int_eq(plan.decisions[0], ATP_DECISION_KEEP);
        ck_assert_int_eq(plan.decisions[1], cases[i].decision);
        ck_assert_int_eq(plan.decisions[2], ATP_DECISION_KEEP);
    }
}
END_TEST

START_TEST(pins_are_obeyed_where_everything_fits)
{
    b->pins[1] = PROFILE_PIN_SWAP;
    b->pins[2] = PROFILE_PIN_RECOMPUTE;
    must_solve(KEEP_ALL, INT64_MAX);
    ck_assert_int_eq(plan.decisions[1], ATP_DECISION_SWAP);
    ck_assert_int_eq(plan.decisions[2], ATP_DECISION_RECOMPUTE);
}
END_TEST

START_TEST(pins_that_leave_no_plan_are_named)
{
    for (uint32_t t = 0; t < b->profile.model.tensor_count; t++) {
        b->pins[t] = PROFILE_PIN_KEEP;
    }
    must_refuse(KEEP_ALL - BYTES, "decide");
}
END_TEST

START_TEST(stopped_from_the_start_gives_a_plan_or_says_so)
{
    for (uint64_t budget = LEAST; budget <= KEEP_ALL; budget += BYTES / 2) {
        int stop = 1;
        struct solve_options options = {.budget_bytes = budget, .stop = &stop};
        enum atp_status status = solve_with(options);
        if (status == ATP_OK) {
            assert_judges_accept(&plan, &b->profile.clock, "stopped");
            ck_assert(report.stopped);
        } else {
            ck_assert_int_eq(status, ATP_ERR_LIMIT);
            ck_assert_ptr_nonnull(strstr(err.text, "stopped"));
        }
    }
}
END_TEST

START_TEST(a_stop_ends_with_the_plan_at_hand)
{
    struct patience patience = {.plans = 1};
    struct solve_options options = patience_options(&patience, LEAST);
    options.alignment_bytes = 1;
    ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
    assert_judges_accept(&plan, &b->profile.clock, "stopped");
    ck_assert(report.stopped);
    ck_assert_int_eq(plan.predicted.iteration_ns, patience.iteration_ns);
    ck_assert_int_eq(plan.predicted.bound_ns, patience.bound_ns);
}
END_TEST

static void check_progress(void *ctx, const struct solve_progress *progress)
{
    struct solve_progress *last = ctx;
    ck_assert_int_gt(progress->bound_ns, 0); /* is told first */
    ck_assert_int_ge(progress->bound_ns, last->bound_ns);
    if (last->iteration_ns != 0) {
        ck_assert_int_lt(progress->iteration_ns, last->iteration_ns);
        ck_assert(progress->share_done >= last->share_done && progress->share_done <= 1.0);
    }
    *last = *progress;
}

START_TEST(progress_only_gets_better)
{
    struct solve_progress last = {0};
    struct solve_options options = {.budget_bytes = KEEP_ALL - BYTES,
                                    .alignment_bytes = 1,
                                    .progress = check_progress,
                                    .progress_ctx = &last};
    ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
    ck_assert_int_eq(last.iteration_ns, plan.predicted.iteration_ns);
    ck_assert_int_eq(last.bound_ns, plan.predicted.bound_ns);
}
END_TEST

static enum atp_status solve_from(const struct solve_start *start, uint64_t budget_bytes,
                                  const int *stop)
{
    struct solve_options options = {
        .budget_bytes = budget_bytes, .alignment_bytes = 1, .start = start, .stop = stop};
    return solve_with(options);
}

START_TEST(a_start_is_the_plan_where_nothing_else_is_found)
{
    int stop = 1;
    must_solve(LEAST, 0);
    struct atp_plan first = plan;
    struct selection selection = report.selection;
    const struct solve_start start = {&first, &selection};
    ck_assert_msg(solve_from(&start, LEAST + 1, &stop) == ATP_OK, "%s", err.text);
    assert_judges_accept(&plan, &b->profile.clock, "started");
    ck_assert_uint_eq(plan.budget_bytes, LEAST + 1);
    first.budget_bytes = LEAST + 1;
    first.predicted.bound_ns = plan.predicted.bound_ns;
    first.certificate = plan.certificate;
    ck_assert_msg(plan_difference(&first, &plan) == NULL, "%s", plan_difference(&first, &plan));
    ck_assert_uint_eq(report.search_work, 0);
}
END_TEST

START_TEST(a_start_that_is_not_the_best_is_overtaken)
{
    must_solve(LEAST, 0);
    struct atp_plan first = plan;
    struct selection selection = report.selection;
    const struct solve_start start = {&first, &selection};
    ck_assert_msg(solve_from(&start, KEEP_ALL - BYTES, NULL) == ATP_OK, "%s", err.text);
    assert_judges_accept(&plan, &b->profile.clock, "started");
    ck_assert_int_gt(first.predicted.iteration_ns, 8 * NS);
    ck_assert_int_eq(plan.predicted.iteration_ns, 8 * NS);
}
END_TEST

START_TEST(a_start_gives_way_where_everything_fits)
{
    must_solve(KEEP_ALL - BYTES, 0);
    struct atp_plan first = plan;
    struct selection selection = report.selection;
    const struct solve_start start = {&first, &selection};
    ck_assert_msg(solve_from(&start, KEEP_ALL, NULL) == ATP_OK, "%s", err.text);
    ck_assert_uint_gt(first.predicted.evicted_bytes, 0);
    ck_assert_uint_eq(plan.predicted.evicted_bytes, 0);
}
END_TEST

START_TEST(a_start_for_another_alignment_or_a_larger_budget_is_not_taken)
{
    int stop = 1;
    must_solve(KEEP_ALL - BYTES, 0);
    struct atp_plan first = plan;
    struct selection selection = report.selection;
    const struct solve_start start = {&first, &selection};
    ck_assert_uint_gt(first.arena_bytes, LEAST);
    enum atp_status status = solve_from(&start, LEAST, &stop);
    ck_assert(status != ATP_OK || plan.arena_bytes <= LEAST);
    first.alignment_bytes = 2;
    status = solve_from(&start, KEEP_ALL - BYTES, &stop);
    ck_assert(status != ATP_OK || plan.alignment_bytes == 1);
}
END_TEST

START_TEST(the_plan_keeps_the_alignment_asked_for)
{
    for (uint64_t alignment = 1; alignment <= 64; alignment *= 4) {
        struct patience patience = {.plans = 1};
        struct solve_options options = patience_options(&patience, 700);
        options.alignment_bytes = alignment;
        ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
        assert_judges_accept(&plan, &b->profile.clock, "aligned");
        ck_assert_uint_eq(plan.alignment_bytes, alignment);
    }
}
END_TEST

START_TEST(alignment_gives_way_where_every_byte_counts)
{
    for (uint32_t t = 0; t < b->profile.model.tensor_count; t++) {
        b->tensors[t].bytes = 1000001;
    }
    struct patience patience = {.plans = 1};
    struct solve_options options = patience_options(&patience, UINT64_C(4) * 1000001);
    ck_assert_msg(solve_with(options) == ATP_OK, "%s", err.text);
    ck_assert_uint_eq(plan.alignment_bytes, 1);
    ck_assert_uint_eq(report.least_budget_bytes, UINT64_C(4) * 1000001);
}
END_TEST

START_TEST(the_same_options_give_the_same_plan)
{
    b->profile.clock.h2d_bytes_per_second /= 3;
    must_solve(LEAST + BYTES / 2, 0);
    struct atp_plan first = plan;
    struct region *other = region_create();
    struct solve_options options = {.budget_bytes = LEAST + BYTES / 2, .alignment_bytes = 1};
    ck_assert_int_eq(solve(&b->profile, &options, other, &plan, &report, &err), ATP_OK);
    ck_assert_msg(plan_difference(&first, &plan) == NULL, "%s", plan_difference(&first, &plan));
    region_destroy(other);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        everything_fits_and_costs_nothing,
        a_swap_that_hides_costs_nothing,
        a_cheap_rerun_is_better_than_a_slow_copy,
        resident_bytes_are_part_of_the_budget,
        the_report_says_what_the_profile_needs,
        less_than_the_least_is_refused_with_what_blocks,
        less_than_resident_bytes_is_refused_with_the_least,
        inputs_alone_may_block,
        host_copies_stay_within_pinned_memory,
        too_little_pinned_memory_is_named,
        pins_are_obeyed,
        pins_are_obeyed_where_everything_fits,
        pins_that_leave_no_plan_are_named,
        stopped_from_the_start_gives_a_plan_or_says_so,
        a_stop_ends_with_the_plan_at_hand,
        progress_only_gets_better,
        a_start_is_the_plan_where_nothing_else_is_found,
        a_start_that_is_not_the_best_is_overtaken,
        a_start_gives_way_where_everything_fits,
        a_start_for_another_alignment_or_a_larger_budget_is_not_taken,
        the_plan_keeps_the_alignment_asked_for,
        alignment_gives_way_where_every_byte_counts,
        the_same_options_give_the_same_plan,
    };
    return RUN_TESTS("solve", tests, set_up, tear_down);
}
