/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The stages in order. Where placement needs more than the arena, the search is told a lower limit
 * and goes on from what it had. Mostly a round or two is enough; at tight budgets all rounds may be
 * spent, and then residences are cut (refit).
 */
#include "solve.h"

#include "assemble.h"
#include "baseline.h"
#include "fail.h"
#include "problem.h"
#include "refit.h"
#include "relax.h"
#include "schedule.h"
#include "search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Counted work at effort 1, chosen for some ten seconds on one core of 2020. */
#define SEARCH_WORK         UINT64_C(100000000)
#define SIMPLEX_WORK        UINT64_C(50000)
#define PLACE_WORK          UINT64_C(100000)
#define BASELINE_PLACE_WORK UINT64_C(1000)
#define PLACE_ROUNDS_MAX    4U

struct solver {
    const struct profile *profile;
    const struct solve_options *options;
    struct region *region;
    struct problem problem;
    struct solve_progress progress;
    uint64_t effort;
    struct solve_report *report;
    struct atp_plan *plan;
};

static void send_progress(struct solver *s)
{
    if (s->options->progress != NULL) {
        s->options->progress(s->options->progress_ctx, &s->progress);
    }
}

static void on_incumbent(void *ctx, int64_t iteration_ns, uint64_t work)
{
    struct solver *s = ctx;
    s->progress.iteration_ns = iteration_ns;
    s->progress.share_done = (double)work / (double)(s->effort * SEARCH_WORK);
    send_progress(s);
}

static bool is_stopped(const struct solver *s)
{
    return s->options->stop != NULL && *s->options->stop != 0;
}

static const char *step_name(const struct solver *s, uint32_t step)
{
    return step == ATP_NONE ? "the beginning of the iteration" : s->profile->model.steps[step].name;
}

/* The few largest tensors of a step, in words: what would have to shrink. */
static void describe_step(const struct solver *s, uint32_t step, char *text, size_t size)
{
    const struct problem *problem = &s->problem;
    size_t used = 0;
    uint64_t below = UINT64_MAX;
    text[0] = '\0';
    if (step == ATP_NONE) {
        (void)snprintf(text, size, "all inputs are on the device then");
        return;
    }
    for (uint32_t shown = 0; shown < 3; shown++) {
        uint32_t largest = ATP_NONE;
        for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
            uint32_t t = problem->accesses[problem->step_accesses[i]].tensor;
            uint64_t bytes = problem->tensor_bytes[t];
            if (bytes < below && (largest == ATP_NONE || bytes > problem->tensor_bytes[largest])) {
                largest = t;
            }
        }
        if (largest == ATP_NONE || used >= size) {
            break;
        }
        below = problem->tensor_bytes[largest];
        int written = snprintf(
            text + used, size - used, "%s%s (%" PRIu64 " bytes)", shown > 0 ? ", " : "its tensors ",
            s->profile->model.tensors[largest].name, s->profile->model.tensors[largest].bytes);
        used += written > 0 ? (size_t)written : 0;
    }
}

static enum atp_status refuse_budget(const struct solver *s, struct atp_error *err)
{
    char tensors[200];
    describe_step(s, s->problem.least_step, tensors, sizeof(tensors));
    return atp_fail(err, ATP_ERR_INFEASIBLE,
                    "the budget of %" PRIu64 " bytes is too small, the least budget is %" PRIu64
                    ": resident %" PRIu64 " + %" PRIu64 " for %s; %s",
                    s->options->budget_bytes, s->report->least_budget_bytes,
                    s->profile->resident_bytes, s->problem.least_arena_bytes,
                    step_name(s, s->problem.least_step), tensors);
}

static enum atp_status build_problem(struct solver *s, struct atp_error *err)
{
    uint64_t alignment = s->options->alignment_bytes;
    if (alignment == 0) {
        alignment = problem_alignment(s->profile, s->region);
    }
    uint64_t budget = s->options->budget_bytes;
    bool is_hopeless = budget < s->profile->resident_bytes;
    ATP_TRY(problem_build(s->profile, is_hopeless ? s->profile->resident_bytes : budget, alignment,
                          s->region, &s->problem, err));
    /* Rounding must not make a budget impossible that is not: the last few bytes are worth more
     * than alignment. */
    if (s->options->alignment_bytes == 0 && s->problem.arena_limit < s->problem.least_arena_bytes &&
        alignment > 1) {
        ATP_TRY(problem_build(s->profile, is_hopeless ? s->profile->resident_bytes : budget, 1,
                              s->region, &s->problem, err));
    }
    s->report->least_budget_bytes = s->profile->resident_bytes + s->problem.least_arena_bytes;
    s->report->least_step = s->problem.least_step;
    s->report->keep_all_bytes = s->profile->resident_bytes + s->problem.peak_bytes;
    s->report->compute_ns = s->problem.compute_ns;
    if (is_hopeless || s->problem.arena_limit < s->problem.least_arena_bytes) {
        return refuse_budget(s, err);
    }
    return ATP_OK;
}

static enum atp_status bound_problem(struct solver *s, struct relax_solution *relaxed,
                                     struct atp_error *err)
{
    struct relax_options options = {.iteration_limit = s->effort * SIMPLEX_WORK,
                                    .stop = s->options->stop};
    ATP_TRY(relax_solve(&s->problem, &options, s->region, relaxed, err));
    s->report->row_count = relaxed->row_count;
    s->report->column_count = relaxed->column_count;
    s->report->simplex_iterations = relaxed->iterations;
    s->progress.bound_ns = relaxed->bound_ns;
    send_progress(s);
    return ATP_OK;
}

static enum atp_status refuse_search(const struct solver *s, const struct search_result *found,
                                     struct atp_error *err)
{
    if (is_stopped(s)) {
        return atp_fail(err, ATP_ERR_LIMIT, "stopped before a plan was found");
    }
    if (found->missing_tensor != ATP_NONE) {
        return atp_fail(
            err, ATP_ERR_INFEASIBLE,
            "tensors[%" PRIu32 "] \"%s\": a recomputation needs it, but `decide` or `rerun: never` "
            "forbids every way to have it then",
            found->missing_tensor, s->profile->model.tensors[found->missing_tensor].name);
    }
    if (found->host_excess_bytes > 0) {
        return atp_fail(err, ATP_ERR_INFEASIBLE,
                        "no plan keeps its host copies within the %" PRIu64
                        " bytes of pinned memory (closest: %" PRIu64
                        " bytes more); raise host.pinned_bytes or the budget",
                        s->profile->pinned_bytes, found->host_excess_bytes);
    }
    return atp_fail(err, ATP_ERR_INFEASIBLE,
                    "no plan fits: closest is %" PRIu64
                    " bytes over the budget at %s; `decide` flags may stand in the "
                    "way",
                    found->excess_bytes, step_name(s, found->excess_step));
}

static void assemble_choices(struct solver *s, const uint8_t *choices,
                             struct assemble_result *placed)
{
    struct schedule *schedule = schedule_create(&s->problem, s->region);
    const struct sequence *sequence = schedule_sequence(schedule, choices);
    const struct timeline *timeline = schedule_timeline(schedule, true);
    assemble(&s->problem, sequence, timeline, s->effort * PLACE_WORK, s->region, s->plan, placed);
}

/* Lowers the limit by what placement lacked and searches on from there, a little even when stopped:
 * a plan that cannot be placed is no plan. */
static void search_lower(struct solver *s, const struct relax_solution *relaxed, uint8_t *choices,
                         struct assemble_result *placed)
{
    const uint64_t capacity = s->problem.arena_capacity;
    for (uint32_t round = 0; round < PLACE_ROUNDS_MAX && !placed->fits; round++) {
        uint64_t over = placed->arena_bytes > capacity ? placed->arena_bytes - capacity : 0;
        uint64_t next = s->problem.arena_limit - (over < capacity / 20 ? over : capacity / 20);
        bool stopped = is_stopped(s);
        struct search_result found;
        struct search_options options = {
            .start = choices,
            .work_limit = s->effort * SEARCH_WORK / (stopped ? 32 : 8),
            .stop = stopped ? NULL : s->options->stop,
        };
        s->problem.arena_limit = next & ~(s->problem.alignment_bytes - 1);
        search_run(&s->problem, relaxed, &options, s->region, &found);
        s->report->search_work += found.work;
        if (!found.found) {
            break;
        }
        memcpy(choices, found.choices, s->problem.access_count);
        assemble_choices(s, choices, placed);
    }
    s->problem.arena_limit = capacity;
}

static enum atp_status search_until_placed(struct solver *s, const struct relax_solution *relaxed,
                                           const struct baseline_list *baselines,
                                           struct atp_error *err)
{
    struct assemble_result placed = {0};
    struct search_result found;
    struct search_options options = {
        .baselines = baselines,
        .work_limit = s->effort * SEARCH_WORK,
        .stop = s->options->stop,
        .progress = on_incumbent,
        .progress_ctx = s,
    };
    search_run(&s->problem, relaxed, &options, s->region, &found);
    s->report->search_work += found.work;
    s->report->candidate_count = found.candidate_count;
    if (!found.found) {
        return refuse_search(s, &found, err);
    }
    assemble_choices(s, found.choices, &placed);
    search_lower(s, relaxed, found.choices, &placed);
    if (!placed.fits) {
        struct refit_options refit_options = {20000, s->options->stop};
        refit(&s->problem, found.choices, &refit_options, s->region, s->plan, &placed);
    }
    if (!placed.fits) {
        return atp_fail(err, ATP_ERR_INFEASIBLE,
                        "a plan fits in sum, but its tensors could not be placed: %" PRIu64
                        " bytes are needed, %" PRIu64 " are there, host copies take %" PRIu64
                        "; raise the budget a little",
                        placed.arena_bytes, s->problem.arena_capacity, placed.host_arena_bytes);
    }
    return ATP_OK;
}

/* The judges: nothing leaves that they have not accepted. */
static enum atp_status prove(const struct solver *s, int64_t bound_ns,
                             const struct baseline_list *baselines, struct atp_error *err)
{
    struct atp_plan *plan = s->plan;
    struct atp_error why;
    enum atp_status status =
        atp_simulate(plan, &s->profile->clock, NULL, NULL, &plan->predicted, &why);
    plan->predicted.bound_ns = bound_ns;
    if (status == ATP_OK) {
        (void)baseline_overtake(&s->problem, baselines, BASELINE_PLACE_WORK, s->region, plan);
        status = atp_plan_check(plan, &why);
    }
    if (status == ATP_OK) {
        status = atp_plan_check_predicted(plan, &s->profile->clock, &why);
    }
    if (status != ATP_OK) {
        return atp_fail(err, ATP_ERR_INTERNAL, "the plan that was made is refused: %s", why.text);
    }
    return ATP_OK;
}

enum atp_status solve(const struct profile *profile, const struct solve_options *options,
                      struct region *region, struct atp_plan *out_plan,
                      struct solve_report *out_report, struct atp_error *err)
{
    struct solver s = {
        .profile = profile,
        .options = options,
        .region = region,
        .effort = options->effort == 0 ? 1 : options->effort,
        .report = out_report,
        .plan = out_plan,
    };
    struct relax_solution relaxed;
    *out_report = (struct solve_report){.least_step = ATP_NONE};
    ATP_TRY(build_problem(&s, err));
    out_report->fits_unplanned = s.problem.peak_bytes <= s.problem.arena_limit;
    ATP_TRY(bound_problem(&s, &relaxed, err));
    struct baseline_list baselines;
    baseline_list_build(&s.problem, region, &baselines);
    ATP_TRY(search_until_placed(&s, &relaxed, &baselines, err));
    out_report->stopped = is_stopped(&s);
    return prove(&s, relaxed.bound_ns, &baselines, err);
}
