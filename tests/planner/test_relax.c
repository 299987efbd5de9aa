/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A bound is worth what its proof is worth. So every row of the relaxed selection is held against
 * what random legal programs do, on random small profiles with random checkpoints and cuts; and no
 * program, improved by chance until it hardly gets faster, may beat the bound.
 */
#include "relax.h"

#include "assert_error.h"
#include "certificate.h"
#include "program_columns.h"
#include "random.h"
#include "random_profile.h"
#include "random_program.h"
#include "relax_rows.h"
#include "run_tests.h"
#include "tamper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A problem with a limit between the least that works and what keeps everything. */
static void random_problem(struct random *random, uint32_t forward_count, struct profile *profile,
                           struct problem *problem)
{
    random_profile_build(random, forward_count, region, profile);
    assert_ok(atp_model_check(&profile->model, NULL, &err), err);
    assert_ok(problem_build(profile, UINT64_MAX / 4, 1, region, problem, &err), err);
    uint64_t least = problem->least_arena_bytes, room = problem->peak_bytes - least;
    uint64_t limit = least + room * random_below(random, 95) / 100;
    assert_ok(problem_build(profile, limit, 1, region, problem, &err), err);
}

static void random_grid(struct random *random, const struct problem *problem,
                        struct relax_grid *grid)
{
    relax_grid_build(problem, 1 + random_below(random, 30), region, grid);
    if (grid->count > 0 && random_chance(random, 40)) {
        tamper_grid(random, problem->model->step_count, region, grid);
        return;
    }
    uint32_t cuts = random_chance(random, 25) ? 0 : random_below(random, 101);
    for (uint32_t k = 0; k < grid->count; k++) {
        grid->points[k].cut = random_chance(random, cuts);
    }
}

START_TEST(each_row_is_true_of_random_programs)
{
    uint32_t proven = 0, drops = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem;
        struct relax_grid grid;
        struct relax_model model;
        struct relax_rows rows;
        random_problem(&random, 2 + random_below(&random, 10), &profile, &problem);
        random_grid(&random, &problem, &grid);
        if (grid.count == 0) {
            continue;
        }
        relax_model_build(&problem, &grid, region, &model);
        relax_rows_build(&model, region, &rows);
        for (uint32_t i = 0; i < 10; i++) {
            struct region_mark mark = region_mark(region);
            struct atp_plan plan;
            if (random_program_build(&problem, problem.arena_limit, &random, region, &plan)) {
                assert_ok(atp_plan_check(&plan, &err), err);
                const double *values = program_columns(&model, &rows, &plan, region);
                uint32_t row = program_columns_check(&rows.lp, values);
                ck_assert_msg(row == rows.lp.row_count, "seed %u, program %u: row %u of %u",
                              (unsigned)seed, i, row, rows.lp.row_count);
                proven++;
                for (uint32_t k = 0; k < grid.count; k++) {
                    drops += values[rows.released[k]] > 0;
                }
            }
            region_reset(region, mark);
        }
    }
    /* Else it would have shown nothing. */
    ck_assert_uint_gt(proven, 1000);
    ck_assert_uint_gt(drops, 300);
}
END_TEST

START_TEST(a_row_that_asks_too_much_is_found)
{
    struct random random = {3};
    struct profile profile;
    struct problem problem;
    struct relax_grid grid;
    struct relax_model model;
    struct relax_rows rows;
    uint32_t found = 0, rows_hurt = 0;
    for (uint32_t i = 0; i < 60; i++) {
        struct atp_plan plan;
        random_problem(&random, 6, &profile, &problem);
        random_grid(&random, &problem, &grid);
        if (grid.count == 0 ||
            !random_program_build(&problem, problem.arena_limit, &random, region, &plan)) {
            continue;
        }
        relax_model_build(&problem, &grid, region, &model);
        relax_rows_build(&model, region, &rows);
        const double *values = program_columns(&model, &rows, &plan, region);
        for (uint32_t k = 0; k < rows.lp.row_count; k++) {
            rows.lp.rows[k].rhs += 1e6;
            rows_hurt++;
            found += program_columns_check(&rows.lp, values) == k;
            rows.lp.rows[k].rhs -= 1e6;
        }
    }
    ck_assert_uint_gt(rows_hurt, 1000);
    ck_assert_uint_eq(found, rows_hurt);
}
END_TEST

START_TEST(no_program_beats_the_bound)
{
    uint32_t programs = 0, bounds = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct random random = {seed * 77};
        struct profile profile;
        struct problem problem;
        struct relax_solution relaxed;
        struct relax_options options = {.iteration_limit = 100000};
        random_problem(&random, 2 + random_below(&random, 8), &profile, &problem);
        assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
        ck_assert_int_ge(relaxed.bound_ns, problem.compute_ns);
        bounds += relaxed.bound_ns > problem.compute_ns;
        for (uint32_t i = 0; i < 12; i++) {
            struct region_mark mark = region_mark(region);
            struct atp_plan plan;
            if (random_program_build(&problem, problem.arena_limit, &random, region, &plan)) {
                int64_t ns = random_program_improve(&problem, problem.arena_limit, 60, &random,
                                                    region, &plan);
                ck_assert_msg(ns >= relaxed.bound_ns,
                              "seed %u, program %u: %lld ns, but the bound is %lld", (unsigned)seed,
                              i, (long long)ns, (long long)relaxed.bound_ns);
                programs++;
            }
            region_reset(region, mark);
        }
    }
    ck_assert_uint_gt(programs, 800);
    ck_assert_uint_gt(bounds, 40);
}
END_TEST

START_TEST(shares_of_each_gap_add_up_to_one)
{
    uint32_t decided = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random random = {seed * 131};
        struct profile profile;
        struct problem problem;
        struct relax_solution relaxed;
        struct relax_options options = {.iteration_limit = 100000};
        random_problem(&random, 6, &profile, &problem);
        assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
        for (uint32_t a = 0; a < problem.access_count; a++) {
            double keep = relaxed.keep[a], swap = relaxed.swap[a];
            double recompute = relaxed.recompute[a];
            ck_assert(keep >= 0 && swap >= -1e-12 && recompute >= 0);
            ck_assert(fabs(keep + swap + recompute - 1) < 1e-9);
            decided += keep < 0.5;
        }
    }
    ck_assert_uint_gt(decided, 50);
}
END_TEST

START_TEST(bound_is_the_compute_time_where_everything_fits)
{
    struct random random = {5};
    struct profile profile;
    struct problem problem;
    struct relax_solution relaxed;
    struct relax_options options = {.iteration_limit = 1000};
    random_profile_build(&random, 6, region, &profile);
    assert_ok(problem_build(&profile, UINT64_MAX / 4, 1, region, &problem, &err), err);
    assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
    ck_assert_int_eq(relaxed.bound_ns, problem.compute_ns);
    ck_assert_ptr_null(relaxed.certificate);
    ck_assert_uint_eq(relaxed.row_count, 0);
    for (uint32_t a = 0; a < problem.access_count; a++) {
        ck_assert(relaxed.keep[a] == 1);
    }
}
END_TEST

/* x (60 bytes) is made by the first step and read by the last; y (80 bytes) lives in between; of
 * both only 100 bytes fit. */
struct squeeze {
    struct atp_tensor tensors[2];
    struct atp_step steps[3];
    int64_t step_ns[3];
    struct profile profile;
};

static const uint32_t squeeze_x[] = {0}, squeeze_y[] = {1};

static void squeeze_build(struct squeeze *s, struct problem *problem)
{
    *s = (struct squeeze){
        .tensors = {{"x", 60}, {"y", 80}},
        .steps = {{.name = "a", .rerun_never = true, .write_count = 1, .writes = squeeze_x},
                  {.name = "b", .phase = ATP_PHASE_BACKWARD, .write_count = 1, .writes = squeeze_y},
                  {.name = "c", .phase = ATP_PHASE_BACKWARD, .read_count = 1, .reads = squeeze_x}},
        .step_ns = {100, 100, 100},
    };
    s->profile.model = (struct atp_model){.name = "squeeze",
                                          .tensor_count = 2,
                                          .step_count = 3,
                                          .tensors = s->tensors,
                                          .steps = s->steps};
    s->profile.clock = (struct atp_clock){.step_ns = s->step_ns,
                                          .d2h_bytes_per_second = 1000000000,
                                          .h2d_bytes_per_second = 2000000000};
    s->profile.pinned_bytes = UINT64_MAX;
    assert_ok(problem_build(&s->profile, 100, 1, region, problem, &err), err);
}

START_TEST(bound_of_one_swap_is_what_must_stall)
{
    struct squeeze s;
    struct problem problem;
    struct relax_solution relaxed;
    struct relax_options options = {.iteration_limit = 1000};
    squeeze_build(&s, &problem);
    assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
    /* 40 bytes have to be gone before b, for which there is time, and to come back behind it at
     * 2 bytes/ns. */
    ck_assert_int_eq(relaxed.bound_ns, 300 + 20);
    ck_assert_ptr_nonnull(relaxed.certificate);
    ck_assert(relaxed.swap[0] > 0.3);
}
END_TEST

/* Where doubles do not hold every byte nothing is proved. */
START_TEST(petabytes_are_not_bounded)
{
    struct squeeze s;
    struct problem problem;
    struct relax_solution relaxed;
    struct relax_options options = {.iteration_limit = 1000};
    for (unsigned shift = 40; shift <= 50; shift += 10) {
        squeeze_build(&s, &problem);
        s.tensors[0].bytes <<= shift;
        s.tensors[1].bytes <<= shift;
        assert_ok(problem_build(&s.profile, UINT64_C(100) << shift, 1, region, &problem, &err),
                  err);
        assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
        ck_assert_int_eq(relaxed.bound_ns > 300, shift == 40);
        ck_assert_int_eq(relaxed.certificate != NULL, shift == 40);
    }
}
END_TEST

START_TEST(a_bound_cut_short_is_weaker_and_true)
{
    uint32_t weaker = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random random = {seed * 1009};
        struct profile profile;
        struct problem problem;
        struct relax_solution whole, part;
        struct relax_options options = {.iteration_limit = 100000};
        random_problem(&random, 8, &profile, &problem);
        assert_ok(relax_solve(&problem, &options, region, &whole, &err), err);
        options.iteration_limit = random_below(&random, 40);
        assert_ok(relax_solve(&problem, &options, region, &part, &err), err);
        ck_assert_uint_le(part.iterations, options.iteration_limit);
        ck_assert_int_ge(part.bound_ns, problem.compute_ns);
        ck_assert_int_le(part.bound_ns, whole.bound_ns);
        weaker += part.bound_ns < whole.bound_ns;
    }
    ck_assert_uint_gt(weaker, 5);
}
END_TEST

START_TEST(a_stopped_relaxation_keeps_everything)
{
    volatile int stop = 1;
    struct squeeze s;
    struct problem problem;
    struct relax_solution relaxed;
    struct relax_options options = {.iteration_limit = 1000, .stop = &stop};
    squeeze_build(&s, &problem);
    assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
    ck_assert_int_eq(relaxed.bound_ns, problem.compute_ns);
    ck_assert(relaxed.keep[0] == 1);
}
END_TEST

START_TEST(the_same_problem_gives_the_same_solution)
{
    struct random random = {42};
    struct profile profile;
    struct problem problem;
    struct relax_solution one, other;
    struct relax_options options = {.iteration_limit = 100000};
    random_problem(&random, 10, &profile, &problem);
    assert_ok(relax_solve(&problem, &options, region, &one, &err), err);
    assert_ok(relax_solve(&problem, &options, region, &other, &err), err);
    ck_assert_int_eq(one.bound_ns, other.bound_ns);
    ck_assert_uint_eq(one.iterations, other.iterations);
    for (uint32_t a = 0; a < problem.access_count; a++) {
        ck_assert(one.keep[a] == other.keep[a] && one.recompute[a] == other.recompute[a]);
    }
}
END_TEST

START_TEST(a_certificate_proves_the_bound_again)
{
    uint32_t proven = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random random = {seed * 17};
        struct profile profile;
        struct problem problem;
        struct relax_solution relaxed;
        struct relax_options options = {.iteration_limit = 100000};
        random_problem(&random, 7, &profile, &problem);
        assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
        if (relaxed.certificate != NULL) {
            int64_t bound_ns;
            assert_ok(certificate_bound(&problem, relaxed.certificate, region, &bound_ns, &err),
                      err);
            ck_assert_int_eq(bound_ns, relaxed.bound_ns);
            proven++;
        }
    }
    ck_assert_uint_gt(proven, 15);
}
END_TEST

START_TEST(branch_and_cut_gives_whole_shares)
{
    uint32_t whole = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random random = {seed * 7};
        struct profile profile;
        struct problem problem;
        struct relax_solution relaxed, searched;
        struct relax_options options = {.iteration_limit = 100000};
        random_problem(&random, 3, &profile, &problem);
        assert_ok(relax_solve(&problem, &options, region, &relaxed, &err), err);
        options.node_limit = 200;
        assert_ok(relax_solve(&problem, &options, region, &searched, &err), err);
        ck_assert_int_eq(relaxed.bound_ns, searched.bound_ns);
        for (uint32_t a = 0; a < problem.access_count && searched.whole; a++) {
            ck_assert(fabs(searched.keep[a] - round(searched.keep[a])) < 1e-6);
            ck_assert(fabs(searched.swap[a] - round(searched.swap[a])) < 1e-6);
        }
        ck_assert(!searched.whole || searched.nodes > 0);
        ck_assert_uint_le(searched.nodes, options.node_limit + 2);
        whole += searched.whole;
    }
    ck_assert_uint_gt(whole, 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_row_is_true_of_random_programs,
        a_row_that_asks_too_much_is_found,
        no_program_beats_the_bound,
        shares_of_each_gap_add_up_to_one,
        bound_is_the_compute_time_where_everything_fits,
        bound_of_one_swap_is_what_must_stall,
        petabytes_are_not_bounded,
        a_bound_cut_short_is_weaker_and_true,
        a_stopped_relaxation_keeps_everything,
        the_same_problem_gives_the_same_solution,
        a_certificate_proves_the_bound_again,
        branch_and_cut_gives_whole_shares,
    };
    return RUN_TESTS("relax", tests, set_up, tear_down);
}
