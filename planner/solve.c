/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The stages in order. Where placement needs more than the arena, the search goes on under lower
 * limits (settle), and where that is not enough, residences are cut (refit). More effort is more
 * rounds of search and settling, each on from the one before: the plan of a round is kept unless a
 * later one is faster, so that more work never gives a slower plan.
 */
#include "solve.h"

#include "assemble.h"
#include "baseline.h"
#include "certificate_text.h"
#include "fail.h"
#include "problem.h"
#include "refit.h"
#include "relax.h"
#include "search.h"
#include "settle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Counted work of a round, chosen for some ten seconds on one core of 2020. */
#define SEARCH_WORK         UINT64_C(60000000)
#define FREE_SEARCH_WORK    UINT64_C(1000000)
#define STARTED_SEARCH_WORK (SEARCH_WORK / 2) /* where a plan is there to begin with */
#define SETTLE_WORK         UINT64_C(4000000)
#define SIMPLEX_WORK        UINT64_C(50000)
#define PLACE_WORK          UINT64_C(40000)
#define REFIT_PLACE_WORK    UINT64_C(20000)
#define BASELINE_PLACE_WORK UINT64_C(1000)

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

static uint64_t round_work(const struct solver *s)
{
    return s->options->start != NULL && !s->report->fits_unplanned ? STARTED_SEARCH_WORK
                                                                   : SEARCH_WORK;
}

static void on_incumbent(void *ctx, int64_t iteration_ns, uint64_t work)
{
    struct solver *s = ctx;
    s->progress.iteration_ns = iteration_ns;
    s->progress.share_done =
        (double)(s->report->search_work + work) / (double)(s->effort * round_work(s));
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
    s->progress.bound_ns = s->problem.compute_ns;
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

/* A plan of the selection, which fits in sum and is changed where it cannot be placed. */
static void place_selection(const struct solver *s, const struct relax_solution *relaxed,
                            struct selection *selection, struct atp_plan *plan,
                            struct settle_result *settled)
{
    const volatile int *stop = s->options->stop;
    struct settle_options options = {
        .search_work = SETTLE_WORK, .place_work = PLACE_WORK, .stop = stop};
    settle(&s->problem, relaxed, selection, &options, s->region, plan, settled);
    s->report->search_work += settled->search_work;
    if (!settled->placed.fits) {
        struct refit_options refit_options = {REFIT_PLACE_WORK, stop};
        settled->iteration_ns =
            refit(&s->problem, selection, &refit_options, s->region, plan, &settled->placed);
    }
}

static struct search_options round_options(struct solver *s, const struct baseline_list *baselines)
{
    const struct solve_start *start = s->options->start;
    return (struct search_options){
        .known = start != NULL ? start->selection : NULL,
        .baselines = baselines,
        .work_limit = round_work(s),
        .stop = s->options->stop,
        .progress = on_incumbent,
        .progress_ctx = s,
    };
}

/* One round of search. */
static void search_once(struct solver *s, const struct relax_solution *relaxed,
                        const struct search_options *options, struct search_result *found)
{
    search_run(&s->problem, relaxed, options, s->region, found);
    s->report->search_work += found->work;
    s->report->candidate_count = found->candidate_count;
}

static void *copied(struct region *region, const void *from, size_t count, size_t size)
{
    void *to = region_alloc(region, count, size);
    if (count > 0) {
        memcpy(to, from, count * size);
    }
    return to;
}

/* A plan that fits a smaller budget fits this one, unless its offsets are for another alignment.
 * Where everything fits nobody needs it. */
static void begin_with_start(struct solver *s, struct settle_result *best)
{
    const struct solve_start *start = s->options->start;
    const struct atp_plan *plan = start != NULL ? start->plan : NULL;
    *best = (struct settle_result){0};
    s->report->selection = selection_create(&s->problem, s->region);
    if (plan == NULL || s->report->fits_unplanned ||
        plan->alignment_bytes != s->problem.alignment_bytes ||
        plan->resident_bytes + plan->arena_bytes > s->options->budget_bytes) {
        return;
    }
    selection_copy(&s->problem, start->selection, &s->report->selection);
    *s->plan = *plan;
    s->plan->budget_bytes = s->options->budget_bytes;
    s->plan->program =
        copied(s->region, plan->program, plan->instruction_count, sizeof(*plan->program));
    s->plan->decisions =
        copied(s->region, plan->decisions, plan->model.tensor_count, sizeof(*plan->decisions));
    best->placed.fits = true;
    best->iteration_ns = plan->predicted.iteration_ns;
}

/* There is a plan, and nothing is faster or nothing will be looked for. */
static bool is_done(const struct solver *s, const struct settle_result *best, int64_t bound_ns)
{
    return best->placed.fits && (is_stopped(s) || best->iteration_ns <= bound_ns);
}

/* Goes on from `best`, where that fits. */
static enum atp_status search_until_placed(struct solver *s, const struct relax_solution *relaxed,
                                           const struct baseline_list *baselines,
                                           struct settle_result *best, struct atp_error *err)
{
    struct selection at = selection_create(&s->problem, s->region);
    struct selection trial = selection_create(&s->problem, s->region);
    for (uint32_t round = 0; round < s->effort; round++) {
        struct search_result found;
        struct settle_result settled;
        struct atp_plan plan;
        if (is_done(s, best, relaxed->bound_ns) || (round > 0 && is_stopped(s))) {
            break;
        }
        struct search_options options = round_options(s, baselines);
        options.seed = round;
        options.start = round > 0 ? &at : NULL;
        search_once(s, relaxed, &options, &found);
        if (!found.found) {
            return best->placed.fits ? ATP_OK : refuse_search(s, &found, err);
        }
        selection_copy(&s->problem, &found.selection, &at);
        if (best->placed.fits && found.iteration_ns >= best->iteration_ns) {
            continue;
        }
        selection_copy(&s->problem, &at, &trial);
        place_selection(s, relaxed, &trial, &plan, &settled);
        if (!best->placed.fits ||
            (settled.placed.fits && settled.iteration_ns < best->iteration_ns)) {
            *best = settled;
            *s->plan = plan;
            selection_copy(&s->problem, &trial, &s->report->selection);
        }
    }
    if (!best->placed.fits) {
        return atp_fail(err, ATP_ERR_INFEASIBLE,
                        "a plan fits in sum, but its tensors could not be placed: %" PRIu64
                        " bytes are needed, %" PRIu64 " are there, host copies take %" PRIu64
                        "; raise the budget a little",
                        best->placed.arena_bytes, s->problem.arena_capacity,
                        best->placed.host_arena_bytes);
    }
    return ATP_OK;
}

/* A plan that never waits, where a short search comes upon one: it needs no relaxation to prove
 * that none is faster. */
static bool find_free_plan(struct solver *s, const struct baseline_list *baselines)
{
    struct search_options options = round_options(s, baselines);
    struct search_result found;
    struct settle_result settled = {0};
    struct atp_plan plan;
    options.work_limit = FREE_SEARCH_WORK;
    search_once(s, NULL, &options, &found);
    if (found.found && found.iteration_ns == s->problem.compute_ns) {
        place_selection(s, NULL, &found.selection, &plan, &settled);
    }
    if (!settled.placed.fits || settled.iteration_ns != s->problem.compute_ns) {
        return false;
    }
    *s->plan = plan;
    selection_copy(&s->problem, &found.selection, &s->report->selection);
    return true;
}

/* The judges: nothing leaves that they have not accepted. */
static enum atp_status prove(const struct solver *s, const struct relax_solution *relaxed,
                             const struct baseline_list *baselines, struct atp_error *err)
{
    struct atp_plan *plan = s->plan;
    struct atp_error why;
    enum atp_status status =
        atp_simulate(plan, &s->profile->clock, NULL, NULL, &plan->predicted, &why);
    plan->predicted.bound_ns = relaxed->bound_ns;
    if (status == ATP_OK) {
        (void)baseline_overtake(&s->problem, baselines, BASELINE_PLACE_WORK, s->region, plan);
        plan->certificate = relaxed->certificate != NULL
                                ? certificate_write(relaxed->certificate, s->region)
                                : NULL;
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
    struct baseline_list baselines;
    baseline_list_build(&s.problem, region, &baselines);
    relax_trivially(&s.problem, region, &relaxed);
    struct settle_result best;
    begin_with_start(&s, &best);
    if (!is_done(&s, &best, s.problem.compute_ns) && !find_free_plan(&s, &baselines)) {
        ATP_TRY(bound_problem(&s, &relaxed, err));
        ATP_TRY(search_until_placed(&s, &relaxed, &baselines, &best, err));
    }
    out_report->stopped = is_stopped(&s);
    return prove(&s, &relaxed, &baselines, err);
}
