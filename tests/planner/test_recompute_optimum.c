/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The exact search that plans are measured against (support/recompute_optimum.h): its programs are
 * what it says, an independent computation finds the same time, and neither plans nor bounds pass
 * it on the wrong side.
 */
#include "recompute_optimum.h"

#include "problem.h"
#include "random_layers.h"
#include "random_program.h"
#include "solve.h"

#include "assert_judges.h"
#include "run_tests.h"
#include "sanitized.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROFILE_COUNT (SANITIZED ? 12U : 40U)
#define LAYERS_MAX    5U
#define TENSORS_MAX   (LAYERS_MAX + 1)
#define SETS_MAX      (1U << TENSORS_MAX)
#define WALKS         100U

/* ---- the same by value iteration: times improve until none does ---- */

struct table {
    const struct profile *profile;
    uint32_t tensor_count; /* input and activations: the model's first tensors */
    uint64_t limit;
    int64_t time[2 * LAYERS_MAX + 1][SETS_MAX]; /* [steps run][set on the device] */
    bool changed;
};

static uint32_t set_of(const struct table *table, const uint32_t *tensors, uint32_t count)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i++) {
        set |= tensors[i] < table->tensor_count ? UINT32_C(1) << tensors[i] : 0;
    }
    return set;
}

static bool uses(const struct atp_step *step, uint32_t tensor)
{
    for (uint32_t i = 0; i < step->read_count + step->write_count; i++) {
        uint32_t used = i < step->read_count ? step->reads[i] : step->writes[i - step->read_count];
        if (used == tensor) {
            return true;
        }
    }
    return false;
}

/* A gradient is there from its writer to its last reader. */
static bool gradient_is_there(const struct atp_model *model, uint32_t tensor, uint32_t steps_run,
                              uint32_t step)
{
    bool before = false, after = false;
    for (uint32_t s = 0; s < model->step_count; s++) {
        before = before || (s < steps_run && uses(&model->steps[s], tensor));
        after = after || (s >= steps_run && uses(&model->steps[s], tensor));
    }
    return (before && after) || uses(&model->steps[step], tensor);
}

static uint64_t bytes_while(const struct table *table, uint32_t set, uint32_t steps_run,
                            uint32_t step)
{
    const struct atp_model *model = &table->profile->model;
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        bool is_there = t < table->tensor_count ? (set >> t & 1) != 0
                                                : gradient_is_there(model, t, steps_run, step);
        bytes += is_there ? model->tensors[t].bytes : 0;
    }
    return bytes;
}

/* The step runs or reruns, and what is left is any part of what was there. */
static void relax_step(struct table *table, uint32_t steps_run, uint32_t set, uint32_t step)
{
    const struct atp_step *model_step = &table->profile->model.steps[step];
    uint32_t needed = set_of(table, model_step->reads, model_step->read_count);
    uint32_t full = set | set_of(table, model_step->writes, model_step->write_count);
    if ((set & needed) != needed || bytes_while(table, full, steps_run, step) > table->limit) {
        return;
    }
    int64_t time = table->time[steps_run][set] + table->profile->clock.step_ns[step];
    int64_t *after = table->time[steps_run + (step == steps_run)];
    for (uint32_t left = full;; left = (left - 1) & full) {
        if (time < after[left]) {
            after[left] = time;
            table->changed = true;
        }
        if (left == 0) {
            break;
        }
    }
}

/* INT64_MAX: none. */
static int64_t iterate_values(const struct profile *profile, uint64_t limit)
{
    static struct table table;
    const struct atp_model *model = &profile->model;
    uint32_t sets = 0;
    table.profile = profile;
    table.tensor_count = model->step_count / 2 + 1;
    table.limit = limit;
    sets = UINT32_C(1) << table.tensor_count;
    for (uint32_t l = 0; l <= model->step_count; l++) {
        for (uint32_t set = 0; set < sets; set++) {
            table.time[l][set] = l == 0 && set <= 1 ? 0 : INT64_MAX;
        }
    }
    do {
        table.changed = false;
        for (uint32_t l = 0; l < model->step_count; l++) {
            for (uint32_t set = 0; set < sets; set++) {
                for (uint32_t s = 0; table.time[l][set] != INT64_MAX && s <= l; s++) {
                    bool may_run = s == l || model->steps[s].phase == ATP_PHASE_FORWARD;
                    if (may_run) {
                        relax_step(&table, l, set, s);
                    }
                }
            }
        }
    } while (table.changed);
    return table.time[model->step_count][0];
}

/* ---- tests ---- */

struct trial {
    struct region *region;
    struct random random;
    struct profile profile;
    struct problem problem;
    uint64_t limit;
    char where[80];
};

static void begin_trial(struct trial *trial, uint64_t seed, uint32_t limit_percent)
{
    trial->region = region_create();
    trial->random.state = seed;
    random_layers_build(&trial->random, 2 + (uint32_t)seed % (LAYERS_MAX - 1), seed % 2 == 0, 20,
                        trial->region, &trial->profile);
    ck_assert_int_eq(
        problem_build(&trial->profile, UINT64_MAX / 4, 1, trial->region, &trial->problem, NULL),
        ATP_OK);
    ck_assert(recompute_optimum_applies(&trial->problem));
    uint64_t least = trial->problem.least_arena_bytes;
    trial->limit = least + (trial->problem.peak_bytes - least) * limit_percent / 100;
    (void)snprintf(trial->where, sizeof(trial->where), "seed %" PRIu64 ", limit %" PRIu64, seed,
                   trial->limit);
}

START_TEST(value_iteration_finds_the_same_time)
{
    uint32_t found_count = 0, rerun_count = 0;
    for (uint64_t seed = 1; seed <= PROFILE_COUNT; seed++) {
        for (uint32_t percent = 0; percent <= 100; percent += 20) {
            struct trial trial;
            struct atp_plan optimum;
            begin_trial(&trial, seed, percent);
            int64_t expected = iterate_values(&trial.profile, trial.limit);
            bool found = recompute_optimum(&trial.problem, trial.limit, trial.region, &optimum);
            ck_assert_msg(found == (expected != INT64_MAX), "%s: found: %d", trial.where, found);
            if (found) {
                ck_assert_msg(optimum.predicted.iteration_ns == expected,
                              "%s: %" PRId64 " ns, values say %" PRId64, trial.where,
                              optimum.predicted.iteration_ns, expected);
                found_count++;
                rerun_count += expected > trial.problem.compute_ns;
            }
            region_destroy(trial.region);
        }
    }
    ck_assert_uint_ge(found_count, PROFILE_COUNT);
    ck_assert_uint_ge(rerun_count, PROFILE_COUNT / 2);
}
END_TEST

START_TEST(its_programs_are_accepted_and_take_the_time_it_says)
{
    for (uint64_t seed = 1; seed <= PROFILE_COUNT; seed++) {
        struct trial trial;
        struct atp_plan optimum;
        begin_trial(&trial, seed, 20);
        if (recompute_optimum(&trial.problem, trial.limit, trial.region, &optimum)) {
            int64_t claimed_ns = optimum.predicted.iteration_ns;
            assert_judges_accept_assembled(&optimum, &trial.profile.clock, trial.where);
            ck_assert_int_eq(optimum.predicted.iteration_ns, claimed_ns);
            ck_assert_uint_le(optimum.predicted.peak_bytes, trial.limit);
            ck_assert_uint_eq(optimum.predicted.evicted_bytes, 0);
        }
        region_destroy(trial.region);
    }
}
END_TEST

/* Copies take ages, so that a program with some is slower than any without. */
START_TEST(no_random_program_and_no_plan_is_faster)
{
    for (uint64_t seed = 1; seed <= PROFILE_COUNT; seed++) {
        struct trial trial;
        struct atp_plan optimum, other;
        struct solve_report report;
        struct atp_error err = {0};
        begin_trial(&trial, seed, 30);
        if (recompute_optimum(&trial.problem, trial.limit, trial.region, &optimum)) {
            int64_t best_ns = optimum.predicted.iteration_ns;
            for (uint32_t i = 0; i < WALKS; i++) {
                if (random_program_build(&trial.problem, trial.limit, &trial.random, trial.region,
                                         &other)) {
                    assert_judges_accept_assembled(&other, &trial.profile.clock, trial.where);
                    ck_assert_msg(other.predicted.iteration_ns >= best_ns, "%s: walk %" PRIu32,
                                  trial.where, i);
                }
            }
            struct solve_options options = {.budget_bytes = trial.limit, .alignment_bytes = 1};
            ck_assert_msg(solve(&trial.profile, &options, trial.region, &other, &report, &err) ==
                              ATP_OK,
                          "%s: %s", trial.where, err.text);
            ck_assert_msg(other.predicted.iteration_ns >= best_ns, "%s: the plan", trial.where);
            ck_assert_msg(other.predicted.bound_ns <= best_ns,
                          "%s: the bound of %" PRId64 " ns is above the optimum of %" PRId64,
                          trial.where, other.predicted.bound_ns, best_ns);
        }
        region_destroy(trial.region);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {value_iteration_finds_the_same_time,
                                  its_programs_are_accepted_and_take_the_time_it_says,
                                  no_random_program_and_no_plan_is_faster};
    return RUN_TESTS("recompute_optimum", tests, NULL, NULL);
}
