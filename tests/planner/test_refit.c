/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "refit.h"
#include "search.h"

#include "assert_judges.h"
#include "planning.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PLACE_WORK 300U

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

START_TEST(a_plan_that_can_be_placed_stays_as_it_is)
{
    struct profile_builder *b = profile_builder_chain(4, 100, 100, region);
    struct planning p;
    planning_begin(&p, b, 500, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    struct selection selection = selection_create(&p.problem, region);
    selection_copy(&p.problem, &p.selection, &selection);
    int64_t iteration_ns = p.timeline->iteration_ns;
    (void)refit(&p.problem, &p.selection, &(struct refit_options){.place_work = PLACE_WORK}, region,
                &p.plan, &p.result);
    ck_assert(p.result.fits);
    ck_assert_mem_eq(p.selection.choices, selection.choices, p.problem.access_count);
    assert_judges_accept_assembled(&p.plan, &b->profile.clock, "refitted");
    ck_assert_int_eq(p.plan.predicted.iteration_ns, iteration_ns);
}
END_TEST

START_TEST(serial_copies_meet_no_other_op)
{
    struct profile_builder *b = profile_builder_chain(4, 100, 100, region);
    struct planning p;
    planning_begin(&p, b, 100000, region);
    planning_choose(&p, 1, 1, CHOICE_SWAP);
    planning_assemble(&p);
    ck_assert_int_eq(p.timeline->stall_ns, 0);
    schedule_set_serial(p.schedule);
    planning_assemble(&p);
    /* Gone before step 2, its copy having begun with step 1; back only for step 6, op 7. */
    ck_assert_int_eq(p.timeline->stall_ns, 100);
    ck_assert_uint_lt(planning_find(&p, ACTION_EVICTED, 1, 0), planning_find_op(&p, 3));
    ck_assert_uint_gt(planning_find(&p, ACTION_RESTORE, 1, 1), planning_find_op(&p, 6));
}
END_TEST

/* Choices that a search of hardly any work finds, at a budget near the least. False when there are
 * none, or their plan can be placed as it is. */
static bool make_tight_case(uint64_t seed, struct profile *profile, struct problem *problem,
                            struct search_result *found)
{
    struct random random = {seed};
    struct search_options options = {.work_limit = 3000};
    struct atp_plan plan;
    struct assemble_result result;
    random_profile_build(&random, 8 + random_below(&random, 20), region, profile);
    ck_assert_int_eq(problem_build(profile, UINT64_MAX / 4, 1, region, problem, NULL), ATP_OK);
    uint64_t budget = problem->least_arena_bytes + random_below(&random, 3);
    ck_assert_int_eq(problem_build(profile, budget, 1, region, problem, NULL), ATP_OK);
    search_run(problem, NULL, &options, region, found);
    if (!found->found) {
        return false;
    }
    struct schedule *schedule = schedule_create(problem, region);
    const struct sequence *sequence = schedule_sequence(schedule, &found->selection);
    const struct timeline *timeline = schedule_timeline(schedule, true);
    assemble(problem, sequence, timeline, PLACE_WORK, region, &plan, &result);
    return !result.fits;
}

START_TEST(what_fits_in_sum_can_be_placed_in_the_end)
{
    uint32_t count = 0;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 150 : 600); seed++) {
        struct region_mark mark = region_mark(region);
        struct profile profile;
        struct problem problem;
        struct search_result found;
        if (make_tight_case(seed, &profile, &problem, &found)) {
            struct atp_plan plan;
            struct assemble_result result;
            char where[40];
            (void)snprintf(where, sizeof(where), "seed %" PRIu64, seed);
            count++;
            (void)refit(&problem, &found.selection,
                        &(struct refit_options){.place_work = PLACE_WORK}, region, &plan, &result);
            ck_assert_msg(result.fits, "%s: %" PRIu64 " bytes, %" PRIu64 " are there", where,
                          result.arena_bytes, problem.arena_limit);
            assert_judges_accept_assembled(&plan, &profile.clock, where);
        }
        region_reset(region, mark);
    }
    (void)printf("%" PRIu32 " plans had to be cut\n", count);
    (void)fflush(stdout);
    ck_assert_uint_ge(count, 3);
}
END_TEST

START_TEST(pinned_tensors_are_not_cut)
{
    struct region_mark mark = region_mark(region);
    uint32_t count = 0;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 150 : 600); seed++) {
        struct profile profile;
        struct problem problem;
        struct search_result found;
        if (make_tight_case(seed, &profile, &problem, &found)) {
            enum profile_pin *pins =
                REGION_NEW(region, enum profile_pin, profile.model.tensor_count);
            struct selection selection = selection_create(&problem, region);
            struct atp_plan plan;
            struct assemble_result result;
            for (uint32_t t = 0; t < profile.model.tensor_count; t++) {
                pins[t] = PROFILE_PIN_KEEP;
            }
            profile.pins = pins;
            selection_copy(&problem, &found.selection, &selection);
            (void)refit(&problem, &selection, &(struct refit_options){.place_work = PLACE_WORK},
                        region, &plan, &result);
            ck_assert_mem_eq(selection.choices, found.selection.choices, problem.access_count);
            count++;
        }
        region_reset(region, mark);
    }
    ck_assert_uint_ge(count, 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plan_that_can_be_placed_stays_as_it_is,
        serial_copies_meet_no_other_op,
        what_fits_in_sum_can_be_placed_in_the_end,
        pinned_tensors_are_not_cut,
    };
    return RUN_TESTS("refit", tests, set_up, tear_down);
}
