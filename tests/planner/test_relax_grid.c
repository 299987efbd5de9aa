/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What leaving rows out costs the bound: on small random profiles, the bound of the rows that the
 * grid has is held against the bound with a row at every step.
 */
#include "relax_model.h"

#include "certificate.h"
#include "random_profile.h"
#include "relax_rows.h"
#include "run_tests.h"
#include "sanitized.h"
#include "solver_glpk.h"

#include <inttypes.h>
#include <stdio.h>

#define PROFILE_COUNT   (SANITIZED ? 40U : 300U)
#define ITERATION_LIMIT 20000U

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

/* Which steps have a memory row, of those whose working set fits. */
enum rows_at { ROWS_AT_PEAKS, ROWS_WHERE_SHORT, ROWS_EVERYWHERE };

static int64_t bound_with(const struct problem *problem, enum rows_at rows_at)
{
    struct relax_model model;
    struct relax_rows rows;
    struct solver_result result;
    struct relax_grid peaks, grid = {0};
    struct solver_options limits = {.iteration_limit = ITERATION_LIMIT};
    uint32_t step_count = problem->model->step_count, next = 0;
    relax_grid_build(problem, step_count, region, &peaks);
    grid.points = REGION_NEW(region, struct relax_checkpoint, step_count);
    for (uint32_t s = 0; s < step_count; s++) {
        bool is_peak = false;
        while (next < peaks.count && peaks.points[next].step <= s) {
            is_peak = peaks.points[next].step == s && peaks.points[next].memory;
            next++;
        }
        bool may = problem->working_set_bytes[s] <= problem->arena_limit;
        bool is_short = problem->live_bytes[s] > problem->arena_limit;
        grid.points[grid.count++] = (struct relax_checkpoint){
            .step = s,
            .memory = may && (is_peak || rows_at == ROWS_EVERYWHERE ||
                              (rows_at == ROWS_WHERE_SHORT && is_short)),
        };
    }
    relax_model_build(problem, &grid, region, &model);
    relax_rows_build(&model, region, &rows);
    ck_assert_int_eq(solver_solve(&rows.lp, &limits, region, &result, NULL), ATP_OK);
    return relax_bound_ns(&rows, problem, certificate_value(&rows.lp, result.multipliers, region));
}

START_TEST(rows_that_cannot_bind_add_nothing)
{
    uint32_t cases = 0, raised = 0, peaks_weaker = 0;
    for (uint64_t seed = 1; cases < PROFILE_COUNT; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem;
        region_destroy(region);
        region = region_create();
        random_profile_build(&random, 3 + random_below(&random, 8), region, &profile);
        ck_assert_int_eq(problem_build(&profile, UINT64_MAX / 4, 1, region, &problem, NULL),
                         ATP_OK);
        uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
        if (room == 0) {
            continue;
        }
        cases++;
        uint64_t limit = least + room * random_below(&random, 95) / 100;
        ck_assert_int_eq(problem_build(&profile, limit, 1, region, &problem, NULL), ATP_OK);
        int64_t peaks = bound_with(&problem, ROWS_AT_PEAKS);
        int64_t some = bound_with(&problem, ROWS_WHERE_SHORT);
        int64_t all = bound_with(&problem, ROWS_EVERYWHERE);
        /* Rounding may move a proven bound by a nanosecond. */
        ck_assert_msg(some <= all + 1 && peaks <= some + 1,
                      "seed %" PRIu64 ": fewer rows give a higher bound", seed);
        raised += all > some + 1;
        peaks_weaker += some > peaks + 1;
    }
    (void)printf("%" PRIu32 " cases: rows at steps that fit raise the bound of %" PRIu32
                 ", rows beside the peaks that of %" PRIu32 "\n",
                 cases, raised, peaks_weaker);
    ck_assert_uint_eq(raised, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {rows_that_cannot_bind_add_nothing};
    return RUN_TESTS("relax_grid", tests, set_up, tear_down);
}
