/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "certificate.h"

#include "assert_error.h"
#include "random.h"
#include "run_tests.h"
#include "solver_glpk.h"

#include <math.h>

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

/* minimise x + 2 y with x + y >= 3, x - y = 1, both in [0, 10]: x = 2, y = 1, value 4. */
static void small_program(struct lp *lp)
{
    lp_init(lp, region);
    uint32_t x = lp_add_column(lp, 0, 10, 1), y = lp_add_column(lp, 0, 10, 2);
    (void)lp_begin_row(lp, 3, false);
    lp_add_term(lp, x, 1);
    lp_add_term(lp, y, 1);
    (void)lp_begin_row(lp, 1, true);
    lp_add_term(lp, x, 1);
    lp_add_term(lp, y, -1);
}

START_TEST(good_multipliers_prove_the_optimum)
{
    struct lp lp;
    small_program(&lp);
    const double multipliers[] = {1.5, -0.5};
    double value = certificate_value(&lp, multipliers, region);
    ck_assert(value <= 4);
    ck_assert(value > 4 - 1e-12);
}
END_TEST

START_TEST(no_multipliers_prove_too_much)
{
    struct random random = {9};
    struct lp lp;
    small_program(&lp);
    for (uint32_t i = 0; i < 20000; i++) {
        const double multipliers[] = {(double)random_below(&random, 4000) / 1000 - 1,
                                      (double)random_below(&random, 4000) / 1000 - 2};
        ck_assert(certificate_value(&lp, multipliers, region) <= 4);
    }
}
END_TEST

START_TEST(a_multiplier_of_the_wrong_sign_counts_nothing)
{
    struct lp lp;
    small_program(&lp);
    const double wrong[] = {-5, -0.5}, nothing[] = {0, -0.5};
    double value = certificate_value(&lp, wrong, region);
    ck_assert(fabs(value - certificate_value(&lp, nothing, region)) < 1e-12);
}
END_TEST

START_TEST(what_is_no_number_proves_nothing)
{
    struct lp lp;
    small_program(&lp);
    const double nan_first[] = {NAN, 0}, infinite[] = {INFINITY, 0}, huge[] = {1e308, 1e308};
    ck_assert(certificate_value(&lp, nan_first, region) == -INFINITY);
    ck_assert(certificate_value(&lp, infinite, region) == -INFINITY);
    ck_assert(certificate_value(&lp, huge, region) <= 4);
}
END_TEST

/* The value in exact arithmetic, for small whole numbers. */
START_TEST(rounding_never_lifts_the_value)
{
    struct random random = {77};
    for (uint32_t i = 0; i < 300; i++) {
        struct lp lp;
        double multipliers[6];
        int64_t slopes[5] = {0}, total = 0;
        lp_init(&lp, region);
        for (uint32_t j = 0; j < 5; j++) {
            slopes[j] = random_below(&random, 100);
            (void)lp_add_column(&lp, 0, 8, (double)slopes[j]);
        }
        for (uint32_t k = 0; k < 6; k++) {
            int64_t y = random_below(&random, 1000), rhs = random_below(&random, 1000);
            multipliers[k] = (double)y;
            (void)lp_begin_row(&lp, (double)rhs, k % 2 == 0);
            total += y * rhs;
            for (uint32_t j = 0; j < 5; j++) {
                int64_t a = (int64_t)random_below(&random, 2000) - 1000;
                lp_add_term(&lp, j, (double)a);
                slopes[j] -= y * a;
            }
        }
        for (uint32_t j = 0; j < 5; j++) {
            total += slopes[j] < 0 ? 8 * slopes[j] : 0;
        }
        double value = certificate_value(&lp, multipliers, region);
        ck_assert(value <= (double)total);
        ck_assert(value >= (double)total - 1e-4);
    }
}
END_TEST

START_TEST(solver_and_certificate_agree)
{
    struct lp lp;
    struct solver_result result;
    struct solver_options options = {.iteration_limit = 100};
    small_program(&lp);
    assert_ok(solver_solve(&lp, &options, region, &result, &err), err);
    ck_assert(result.optimal);
    ck_assert(fabs(result.values[0] - 2) < 1e-9 && fabs(result.values[1] - 1) < 1e-9);
    ck_assert(fabs(certificate_value(&lp, result.multipliers, region) - 4) < 1e-9);
}
END_TEST

START_TEST(repeated_columns_of_a_row_add_up_in_the_solver)
{
    struct lp lp;
    struct solver_result result;
    struct solver_options options = {.iteration_limit = 100};
    lp_init(&lp, region);
    uint32_t x = lp_add_column(&lp, 0, 10, 1);
    (void)lp_begin_row(&lp, 6, false);
    lp_add_term(&lp, x, 1);
    lp_add_term(&lp, x, 2);
    assert_ok(solver_solve(&lp, &options, region, &result, &err), err);
    ck_assert(fabs(result.values[0] - 2) < 1e-9);
}
END_TEST

static void solve_small_program(void)
{
    struct lp lp;
    struct solver_result result;
    struct solver_options options = {.iteration_limit = 100};
    small_program(&lp);
    assert_ok(solver_solve(&lp, &options, region, &result, &err), err);
    ck_assert(result.optimal);
}

/* GLPK checks that a column in a box has room in it, and ends the program where scaling
 * leaves none. */
START_TEST(where_glpk_would_end_the_program_an_error_comes_back)
{
    struct lp lp;
    struct solver_result result;
    struct solver_options options = {.iteration_limit = 100};
    lp_init(&lp, region);
    uint32_t x = lp_add_column(&lp, 0, 0x1p-1074, 1), y = lp_add_column(&lp, 0, 0x1p-1074, 1);
    for (uint32_t i = 0; i < 2; i++) {
        (void)lp_begin_row(&lp, 0, false);
        lp_add_term(&lp, x, i == 0 ? 1024 : 1000);
        lp_add_term(&lp, y, -0x1p-10);
    }
    enum atp_status status = solver_solve(&lp, &options, region, &result, &err);
    assert_error(status, err, ATP_ERR_INTERNAL, ATP_NONE, "GLPK gave up");
    solve_small_program();
}
END_TEST

START_TEST(a_certificate_for_another_grid_is_refused)
{
    struct atp_tensor tensors[] = {{"x", 60}, {"y", 80}};
    const uint32_t x[] = {0}, y[] = {1};
    struct atp_step steps[] = {
        {.name = "a", .write_count = 1, .writes = x},
        {.name = "b", .write_count = 1, .writes = y},
        {.name = "c", .phase = ATP_PHASE_BACKWARD, .read_count = 1, .reads = x},
    };
    const int64_t step_ns[] = {1, 1, 1};
    struct profile profile = {
        .model =
            {.name = "m", .tensor_count = 2, .step_count = 3, .tensors = tensors, .steps = steps},
        .clock = {.step_ns = step_ns, .d2h_bytes_per_second = 1, .h2d_bytes_per_second = 1},
    };
    struct problem problem;
    struct relax_checkpoint points[] = {{.step = 1, .memory = true}, {.step = 2}};
    double multipliers[] = {0, 0};
    struct certificate certificate = {
        .grid = {.count = 2, .points = points}, .row_count = 2, .multipliers = multipliers};
    int64_t bound_ns;
    enum atp_status status;
    assert_ok(problem_build(&profile, 100, 1, region, &problem, &err), err);
    status = certificate_bound(&problem, &certificate, region, &bound_ns, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "2 multipliers, expected");
    points[1].step = 1;
    status = certificate_bound(&problem, &certificate, region, &bound_ns, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "checkpoint 1 is step 1");
    points[1].step = 3;
    status = certificate_bound(&problem, &certificate, region, &bound_ns, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "checkpoint 1 is step 3");
    ck_assert_int_eq(bound_ns, problem.compute_ns);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        good_multipliers_prove_the_optimum,
        no_multipliers_prove_too_much,
        a_multiplier_of_the_wrong_sign_counts_nothing,
        what_is_no_number_proves_nothing,
        rounding_never_lifts_the_value,
        solver_and_certificate_agree,
        repeated_columns_of_a_row_add_up_in_the_solver,
        where_glpk_would_end_the_program_an_error_comes_back,
        a_certificate_for_another_grid_is_refused,
    };
    return RUN_TESTS("certificate", tests, set_up, tear_down);
}
