/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * On profiles so small that every vector of choices can be tried: the search finds the best of
 * them (nearly always), every one of them becomes a right plan that takes exactly the time that its
 * schedule says, and none is below the bound or the throughput model's.
 */
#include "assemble.h"
#include "candidates.h"
#include "certificate_text.h"
#include "relax.h"
#include "schedule.h"
#include "search.h"
#include "solver_glpk.h"
#include "throughput.h"

#include "assert_judges.h"
#include "byte_machine.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"
#include "tamper.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROFILE_COUNT  240U
#define VECTORS_MAX    2187U /* three ways for seven gaps */
#define GAPS_MAX       12U
#define ASSEMBLED_MAX  (SANITIZED ? 40U : VECTORS_MAX) /* per profile and budget */
#define SEARCH_WORK    (SANITIZED ? 60000U : 200000U)
#define PLACE_WORK     1000U
#define TAMPERED_COUNT (SANITIZED ? 10U : 60U)
#define CHOSEN_COUNT   (SANITIZED ? 2U : 6U)
/* The search leaves out gaps over steps where memory is short only while something is rerun there,
 * and tails that end before it is; and its descent may end in a plan that does not fit. */
#define WORSE_MAX 0U

struct gaps {
    uint32_t count;
    uint32_t access[GAPS_MAX];
    uint32_t ways[GAPS_MAX]; /* keep and swap, and recompute where it can be */
    uint32_t vector_count;   /* above VECTORS_MAX: too many to try */
};

struct tally {
    uint32_t profiles, cases, impossible, equal, better, worse;
    uint64_t vectors, fitting, assembled, unplaced;
    uint64_t chosen, tampered, refused, weaker, stronger;
};

static bool is_rerun_input(const struct problem *problem, uint32_t tensor)
{
    for (uint32_t a = problem->first_access[tensor]; a < problem->first_access[tensor + 1]; a++) {
        const struct access *access = &problem->accesses[a];
        if (access->step != ATP_NONE && access->reads &&
            problem->model->steps[access->step].phase == ATP_PHASE_FORWARD) {
            return true;
        }
    }
    return false;
}

/* All gaps with a choice that can matter: idle ones, and tails that a rerun may need. */
static void list_gaps(const struct problem *problem, struct gaps *gaps)
{
    gaps->count = 0;
    gaps->vector_count = 1;
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        uint32_t first = access->step == ATP_NONE ? 0 : access->step + 1;
        bool is_idle = access->has_next ? problem->accesses[a + 1].step > first
                                        : is_rerun_input(problem, access->tensor);
        if (!is_idle) {
            continue;
        }
        uint32_t ways = problem->recomputable[a] ? 3 : 2;
        if (gaps->count == GAPS_MAX || gaps->vector_count * ways > VECTORS_MAX) {
            gaps->vector_count = VECTORS_MAX + 1;
            return;
        }
        gaps->access[gaps->count] = a;
        gaps->ways[gaps->count++] = ways;
        gaps->vector_count *= ways;
    }
}

static void set_vector(const struct gaps *gaps, uint32_t vector, uint8_t *choices)
{
    for (uint32_t i = 0; i < gaps->count; i++) {
        choices[gaps->access[i]] = (uint8_t)(vector % gaps->ways[i]);
        vector /= gaps->ways[i];
    }
}

struct trial {
    const struct problem *problem;
    struct region *region;
    struct schedule *schedule;
    struct gaps gaps;
    uint64_t seed, budget_bytes;
    int64_t model_ns, bound_ns, best_ns; /* best_ns INT64_MAX: nothing fits */
    uint32_t best_vector;
    char where[120];
    struct tally *tally;
};

/* False when the schedule misses something or does not fit. */
static bool fits(struct trial *trial, const struct selection *selection,
                 const struct sequence **out_sequence, const struct timeline **out_timeline)
{
    const struct sequence *sequence = schedule_sequence(trial->schedule, selection);
    if (sequence->missing_tensor != ATP_NONE || sequence->too_long) {
        return false;
    }
    const struct timeline *timeline = schedule_timeline(trial->schedule, true);
    ck_assert_msg(!timeline->stuck, "%s: the timeline is stuck", trial->where);
    *out_sequence = sequence;
    *out_timeline = timeline;
    return sequence->excess_bytes == 0 && timeline->host_bytes <= trial->problem->host_limit;
}

static void judge(struct trial *trial, const struct sequence *sequence,
                  const struct timeline *timeline)
{
    struct region_mark mark = region_mark(trial->region);
    struct atp_plan plan;
    struct assemble_result result;
    assemble(trial->problem, sequence, timeline, PLACE_WORK, trial->region, &plan, &result);
    if (result.fits) {
        trial->tally->assembled++;
        assert_judges_accept_assembled(&plan, &trial->problem->profile->clock, trial->where);
        ck_assert_msg(plan.predicted.iteration_ns == timeline->iteration_ns &&
                          plan.predicted.stall_ns == timeline->stall_ns &&
                          plan.predicted.recompute_ns == sequence->rerun_ns,
                      "%s: simulated %" PRId64 " ns with %" PRId64 " stalled and %" PRId64
                      " rerun, scheduled %" PRId64 ", %" PRId64 " and %" PRId64,
                      trial->where, plan.predicted.iteration_ns, plan.predicted.stall_ns,
                      plan.predicted.recompute_ns, timeline->iteration_ns, timeline->stall_ns,
                      sequence->rerun_ns);
        if (trial->tally->assembled % 16 == 0) {
            ck_assert_msg(byte_machine_always_agrees(&plan), "%s: wrong bytes", trial->where);
        }
    } else {
        trial->tally->unplaced++;
    }
    region_reset(trial->region, mark);
}

static void try_all(struct trial *trial)
{
    struct selection selection = selection_create(trial->problem, trial->region);
    uint32_t stride = trial->gaps.vector_count / ASSEMBLED_MAX + 1;
    candidates_default(trial->problem, selection.choices);
    trial->best_ns = INT64_MAX;
    for (uint32_t v = 0; v < trial->gaps.vector_count; v++) {
        const struct sequence *sequence = NULL;
        const struct timeline *timeline = NULL;
        (void)snprintf(trial->where, sizeof(trial->where),
                       "seed %" PRIu64 ", budget %" PRIu64 ", vector %" PRIu32, trial->seed,
                       trial->budget_bytes, v);
        set_vector(&trial->gaps, v, selection.choices);
        trial->tally->vectors++;
        if (!fits(trial, &selection, &sequence, &timeline)) {
            continue;
        }
        trial->tally->fitting++;
        ck_assert_msg(timeline->iteration_ns >= trial->bound_ns,
                      "%s: takes %" PRId64 " ns, below the bound of %" PRId64, trial->where,
                      timeline->iteration_ns, trial->bound_ns);
        ck_assert_msg(timeline->iteration_ns >= trial->model_ns,
                      "%s: takes %" PRId64 " ns, the throughput model says %" PRId64, trial->where,
                      timeline->iteration_ns, trial->model_ns);
        bool is_best = timeline->iteration_ns < trial->best_ns;
        if (is_best) {
            trial->best_ns = timeline->iteration_ns;
            trial->best_vector = v;
        }
        if (is_best || v % stride == 0) {
            judge(trial, sequence, timeline);
        }
    }
}

static void compare_search(struct trial *trial, const struct relax_solution *relaxed)
{
    struct search_options options = {.work_limit = SEARCH_WORK};
    struct search_result found;
    struct tally *tally = trial->tally;
    search_run(trial->problem, relaxed, &options, trial->region, &found);
    tally->cases++;
    if (trial->best_ns == INT64_MAX && !found.found) {
        ck_assert_msg(trial->problem->host_limit < trial->problem->peak_bytes,
                      "seed %" PRIu64 ", budget %" PRIu64 ": no plan, and the host is large",
                      trial->seed, trial->budget_bytes);
        tally->impossible++;
        return;
    }
    if (!found.found || found.iteration_ns > trial->best_ns) {
        tally->worse++;
        (void)printf("seed %" PRIu64 ", budget %" PRIu64 ": search %" PRId64 " ns, vector %" PRIu32
                     " takes %" PRId64 " ns, bound %" PRId64 " ns\n",
                     trial->seed, trial->budget_bytes, found.found ? found.iteration_ns : -1,
                     trial->best_vector, trial->best_ns, trial->bound_ns);
        return;
    }
    tally->equal += found.iteration_ns == trial->best_ns;
    tally->better += found.iteration_ns < trial->best_ns;
    trial->best_ns = found.iteration_ns;
    const struct sequence *sequence = NULL;
    const struct timeline *timeline = NULL;
    (void)snprintf(trial->where, sizeof(trial->where),
                   "seed %" PRIu64 ", budget %" PRIu64 ", search", trial->seed,
                   trial->budget_bytes);
    ck_assert_msg(fits(trial, &found.selection, &sequence, &timeline), "%s: does not fit",
                  trial->where);
    ck_assert_int_eq(timeline->iteration_ns, found.iteration_ns);
    ck_assert_msg(found.iteration_ns >= trial->bound_ns, "%s: below the bound", trial->where);
    judge(trial, sequence, timeline);
}

static int64_t model_bound_ns(const struct profile *profile, uint64_t budget_bytes,
                              struct region *region)
{
    struct throughput *throughput = NULL;
    struct throughput_point point;
    ck_assert_int_eq(throughput_create(profile, region, &throughput, NULL), ATP_OK);
    throughput_find(throughput, profile, budget_bytes, &point);
    return point.bound_ns;
}

/* A bound that somebody would like to be larger. Never above the best plan, whatever he does. */
static void expect_true_bound(struct trial *trial, const struct certificate *certificate,
                              const char *how)
{
    struct certificate adapted = *certificate;
    int64_t bound_ns = 0;
    trial->tally->tampered++;
    bool has_rows = tamper_identity(trial->problem, trial->region, &adapted) == ATP_OK;
    enum atp_status status =
        certificate_bound(trial->problem, &adapted, trial->region, &bound_ns, NULL);
    if (status != ATP_OK) {
        ck_assert_int_eq(status, ATP_ERR_INVALID);
        trial->tally->refused++;
        return;
    }
    ck_assert(has_rows);
    trial->tally->weaker += bound_ns < trial->bound_ns;
    trial->tally->stronger += bound_ns > trial->bound_ns;
    ck_assert_msg(bound_ns <= trial->best_ns,
                  "seed %" PRIu64 ", budget %" PRIu64 ": %s: a bound of %" PRId64
                  " ns, but there is a plan of %" PRId64,
                  trial->seed, trial->budget_bytes, how, bound_ns, trial->best_ns);
}

/* Rows of his own choice, and the best multipliers that there are for them. */
static void choose_rows(struct trial *trial, struct random *random)
{
    struct relax_model model;
    struct relax_rows rows;
    struct solver_result result;
    struct certificate certificate = {0};
    const struct solver_options options = {.iteration_limit = 20000};
    tamper_grid(random, trial->problem->model->step_count, trial->region, &certificate.grid);
    if (certificate.grid.count == 0) {
        return;
    }
    relax_model_build(trial->problem, &certificate.grid, trial->region, &model);
    relax_rows_build(&model, trial->region, &rows);
    ck_assert_int_eq(solver_solve(&rows.lp, &options, trial->region, &result, NULL), ATP_OK);
    certificate.row_count = rows.lp.row_count;
    certificate.multipliers = result.multipliers;
    trial->tally->chosen++;
    expect_true_bound(trial, &certificate, "rows of choice");
}

/* Whoever changes a certificate can make it prove less, or something else that is true. */
static void tamper_often(struct trial *trial, const struct relax_solution *relaxed)
{
    struct random random = {trial->seed};
    for (uint32_t i = 0; i < CHOSEN_COUNT; i++) {
        struct region_mark mark = region_mark(trial->region);
        choose_rows(trial, &random);
        region_reset(trial->region, mark);
    }
    if (relaxed->certificate == NULL) {
        return;
    }
    const char *text = certificate_write(relaxed->certificate, trial->region);
    char *changed = REGION_NEW(trial->region, char, strlen(text) + 1);
    for (uint32_t i = 0; i < TAMPERED_COUNT; i++) {
        struct region_mark mark = region_mark(trial->region);
        struct certificate certificate;
        tamper_text(&random, text, changed);
        if (certificate_read(changed, trial->region, &certificate, NULL) == ATP_OK) {
            expect_true_bound(trial, &certificate, changed);
        } else {
            trial->tally->tampered++;
            trial->tally->refused++;
        }
        tamper_numbers(&random, relaxed->certificate, trial->region, &certificate);
        expect_true_bound(trial, &certificate, "numbers");
        region_reset(trial->region, mark);
    }
}

static void try_budget(const struct profile *profile, uint64_t seed, uint64_t budget_bytes,
                       struct region *region, struct tally *tally)
{
    struct problem problem;
    struct relax_solution relaxed;
    struct relax_options options = {.iteration_limit = 20000};
    struct trial trial = {.problem = &problem,
                          .region = region,
                          .seed = seed,
                          .budget_bytes = budget_bytes,
                          .tally = tally};
    ck_assert_int_eq(problem_build(profile, budget_bytes, 1, region, &problem, NULL), ATP_OK);
    ck_assert_int_eq(relax_solve(&problem, &options, region, &relaxed, NULL), ATP_OK);
    trial.schedule = schedule_create(&problem, region);
    trial.bound_ns = relaxed.bound_ns;
    trial.model_ns = model_bound_ns(profile, budget_bytes, region);
    list_gaps(&problem, &trial.gaps);
    try_all(&trial);
    compare_search(&trial, &relaxed);
    tamper_often(&trial, &relaxed);
}

/* False when the profile has too many gaps, or memory can never be short. */
static bool try_profile(uint64_t seed, struct tally *tally)
{
    struct region *region = region_create();
    struct random random = {seed};
    struct profile profile;
    struct problem problem;
    struct gaps gaps;
    random_profile_build(&random, 2 + random_below(&random, 3), region, &profile);
    ck_assert_int_eq(problem_build(&profile, UINT64_MAX / 4, 1, region, &problem, NULL), ATP_OK);
    list_gaps(&problem, &gaps);
    uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
    bool is_useful = gaps.count >= 3 && gaps.vector_count <= VECTORS_MAX && room > 0;
    if (is_useful) {
        tally->profiles++;
        if (random_chance(&random, 20)) {
            profile.pinned_bytes = problem.peak_bytes / 3;
        }
        try_budget(&profile, seed, least, region, tally);
        try_budget(&profile, seed, least + room / 3, region, tally);
        try_budget(&profile, seed, least + room * 3 / 4, region, tally);
    }
    region_destroy(region);
    return is_useful;
}

START_TEST(no_vector_of_choices_beats_the_search)
{
    struct tally tally = {0};
    for (uint64_t seed = 1; tally.profiles < PROFILE_COUNT; seed++) {
        (void)try_profile(seed, &tally);
    }
    (void)printf("%" PRIu32 " profiles, %" PRIu32 " cases: %" PRIu32 " optimal, %" PRIu32
                 " better than every vector, %" PRIu32 " worse, %" PRIu32 " impossible; %" PRIu64
                 " vectors, %" PRIu64 " fit, %" PRIu64 " assembled, %" PRIu64 " not placed\n",
                 tally.profiles, tally.cases, tally.equal, tally.better, tally.worse,
                 tally.impossible, tally.vectors, tally.fitting, tally.assembled, tally.unplaced);
    (void)printf("%" PRIu64 " certificates of rows of choice, %" PRIu64 " changed ones; %" PRIu64
                 " refused, %" PRIu64 " weaker, %" PRIu64 " stronger and true\n",
                 tally.chosen, tally.tampered - tally.chosen, tally.refused, tally.weaker,
                 tally.stronger);
    (void)fflush(stdout);
    ck_assert_uint_gt(tally.weaker, tally.tampered / 10);
    ck_assert_uint_gt(tally.refused, tally.tampered / 100);
    ck_assert_uint_gt(tally.stronger, 0);
    ck_assert_uint_le(tally.worse, WORSE_MAX);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {no_vector_of_choices_beats_the_search};
    return RUN_TESTS("exhaustive", tests, NULL, NULL);
}
