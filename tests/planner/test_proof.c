/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proof.h"

#include "assert_error.h"
#include "certificate_text.h"
#include "random_profile.h"
#include "relax.h"
#include "run_tests.h"
#include "tamper.h"

#include <math.h>
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

struct scene {
    struct profile profile;
    struct problem problem;
    struct relax_solution relaxed;
    struct atp_plan plan; /* all that a proof looks at */
};

/* A problem whose bound needs a certificate; `seed` begins the search for one. */
static void build(struct scene *s, uint64_t seed)
{
    struct relax_options options = {.iteration_limit = 100000};
    struct random random = {seed};
    do {
        random_profile_build(&random, 6, region, &s->profile);
        assert_ok(problem_build(&s->profile, UINT64_MAX / 4, 1, region, &s->problem, &err), err);
        uint64_t least = s->problem.least_arena_bytes, room = s->problem.peak_bytes - least;
        assert_ok(problem_build(&s->profile, least + room / 3, 1, region, &s->problem, &err), err);
        assert_ok(relax_solve(&s->problem, &options, region, &s->relaxed, &err), err);
    } while (s->relaxed.certificate == NULL);
    s->plan = (struct atp_plan){.certificate = certificate_write(s->relaxed.certificate, region)};
}

START_TEST(a_certificate_proves_its_bound)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene s;
        struct proof proof;
        build(&s, seed);
        proof_find(&s.plan, &s.problem, region, &proof);
        ck_assert_msg(proof.is_certified, "%s", proof.why_not);
        ck_assert_int_eq(proof.bound_ns, s.relaxed.bound_ns);
        ck_assert_int_gt(proof.bound_ns, s.problem.compute_ns);
    }
}
END_TEST

START_TEST(what_the_plan_states_is_not_looked_at)
{
    struct scene s;
    struct proof proof;
    build(&s, 1);
    s.plan.predicted.bound_ns = INT64_MAX;
    proof_find(&s.plan, &s.problem, region, &proof);
    ck_assert_int_eq(proof.bound_ns, s.relaxed.bound_ns);
}
END_TEST

START_TEST(without_a_certificate_only_step_times_count)
{
    struct scene s;
    struct proof proof;
    build(&s, 1);
    s.plan.certificate = NULL;
    proof_find(&s.plan, &s.problem, region, &proof);
    ck_assert(!proof.is_certified);
    ck_assert_int_eq(proof.bound_ns, s.problem.compute_ns);
    ck_assert_ptr_nonnull(strstr(proof.why_not, "there is none"));
}
END_TEST

START_TEST(a_certificate_for_other_rows_proves_nothing)
{
    struct scene one, other;
    struct proof proof;
    build(&one, 1);
    build(&other, 1000);
    proof_find(&other.plan, &one.problem, region, &proof);
    ck_assert(!proof.is_certified);
    ck_assert_int_eq(proof.bound_ns, one.problem.compute_ns);
    ck_assert(proof.why_not[0] != '\0');
}
END_TEST

START_TEST(a_changed_identity_is_named)
{
    struct scene s;
    struct proof proof;
    struct certificate changed;
    build(&s, 1);
    changed = *s.relaxed.certificate;
    changed.identity ^= 1;
    s.plan.certificate = certificate_write(&changed, region);
    proof_find(&s.plan, &s.problem, region, &proof);
    ck_assert(!proof.is_certified);
    ck_assert_ptr_nonnull(strstr(proof.why_not, "it belongs to another profile, budget"));
}
END_TEST

/* The budget is another one by a byte, which leaves the rows' columns as they are. */
START_TEST(a_certificate_of_another_budget_says_so)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene s;
        struct proof proof;
        struct problem other;
        build(&s, seed);
        uint64_t budget = s.problem.budget_bytes;
        assert_ok(problem_build(&s.profile, budget + 1, 1, region, &other, &err), err);
        proof_find(&s.plan, &other, region, &proof);
        ck_assert(!proof.is_certified);
        ck_assert_int_eq(proof.bound_ns, other.compute_ns);
        ck_assert_msg(strstr(proof.why_not, "it belongs to another profile, budget") != NULL ||
                          strstr(proof.why_not, "expected ") != NULL,
                      "%s", proof.why_not);
    }
}
END_TEST

START_TEST(one_of_other_times_says_so)
{
    struct scene s;
    struct proof proof;
    struct problem other;
    build(&s, 1);
    /* All steps take a nanosecond longer; nothing else is new. */
    struct profile slower = s.profile;
    int64_t *step_ns = REGION_NEW(region, int64_t, slower.model.step_count);
    for (uint32_t i = 0; i < slower.model.step_count; i++) {
        step_ns[i] = s.profile.clock.step_ns[i] + 1;
    }
    slower.clock.step_ns = step_ns;
    assert_ok(problem_build(&slower, s.problem.budget_bytes, 1, region, &other, &err), err);
    proof_find(&s.plan, &other, region, &proof);
    ck_assert(!proof.is_certified);
    ck_assert_int_eq(proof.bound_ns, other.compute_ns);
    ck_assert_ptr_nonnull(strstr(proof.why_not, "it belongs to another profile"));
}
END_TEST

static void prove_changed(struct scene *s, const struct certificate *changed, struct proof *proof)
{
    struct certificate adapted = *changed;
    (void)tamper_identity(&s->problem, region, &adapted);
    s->plan.certificate = certificate_write(&adapted, region);
    proof_find(&s->plan, &s->problem, region, proof);
    ck_assert_int_le(proof->bound_ns, s->relaxed.bound_ns);
}

/* One at a time, with the identity that its rows then have: the rest must be found out by what it
 * proves. Only a grid of another kind may prove more, which test_exhaustive.c looks at. */
START_TEST(each_field_counts)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene s;
        struct proof proof;
        build(&s, seed);
        const struct certificate *true_one = s.relaxed.certificate;
        struct certificate changed = *true_one;
        prove_changed(&s, &changed, &proof);
        ck_assert_int_eq(proof.bound_ns, s.relaxed.bound_ns);

        changed.row_count--;
        prove_changed(&s, &changed, &proof);
        ck_assert(!proof.is_certified && strstr(proof.why_not, "expected") != NULL);

        changed = *true_one;
        changed.grid.count--;
        prove_changed(&s, &changed, &proof);
        ck_assert(!proof.is_certified && strstr(proof.why_not, "expected") != NULL);

        /* The multipliers of the text are then 2^20 times as large, and as small. */
        changed = *true_one;
        changed.multipliers = REGION_NEW(region, double, changed.row_count);
        for (int sign = -1; sign <= 1; sign += 2) {
            changed.exponent = true_one->exponent + 20 * sign;
            for (uint32_t i = 0; i < changed.row_count; i++) {
                changed.multipliers[i] = ldexp(true_one->multipliers[i], 20 * sign);
            }
            prove_changed(&s, &changed, &proof);
            ck_assert_int_le(proof.bound_ns, s.problem.compute_ns + 1);
        }
    }
}
END_TEST

START_TEST(what_fits_needs_no_certificate)
{
    struct scene s;
    struct proof proof;
    struct relax_options options = {.iteration_limit = 100000};
    build(&s, 1);
    assert_ok(problem_build(&s.profile, s.problem.peak_bytes, 1, region, &s.problem, &err), err);
    assert_ok(relax_solve(&s.problem, &options, region, &s.relaxed, &err), err);
    ck_assert_ptr_null(s.relaxed.certificate);
    s.plan.certificate = NULL;
    s.plan.predicted.bound_ns = s.problem.compute_ns;
    proof_find(&s.plan, &s.problem, region, &proof);
    ck_assert_int_eq(proof.bound_ns, s.plan.predicted.bound_ns);
}
END_TEST

START_TEST(words_that_make_no_sense_are_named)
{
    struct scene s;
    struct proof proof;
    build(&s, 1);
    s.plan.certificate = "rows many";
    proof_find(&s.plan, &s.problem, region, &proof);
    ck_assert_int_eq(proof.bound_ns, s.problem.compute_ns);
    ck_assert_ptr_nonnull(strstr(proof.why_not, "line 1: \"many\""));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_certificate_proves_its_bound,
        what_the_plan_states_is_not_looked_at,
        without_a_certificate_only_step_times_count,
        a_certificate_for_other_rows_proves_nothing,
        a_changed_identity_is_named,
        a_certificate_of_another_budget_says_so,
        one_of_other_times_says_so,
        each_field_counts,
        what_fits_needs_no_certificate,
        words_that_make_no_sense_are_named,
    };
    return RUN_TESTS("proof", tests, set_up, tear_down);
}
