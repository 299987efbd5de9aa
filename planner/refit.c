/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Greedy: of the gaps around the ops that are nearly full, try each as a swap with the fast
 * placement, keep the best, repeat. A gap here may be as short as two steps in a row. Copies that
 * are early or late lie in the way too: where cuts alone do not help, serial copies are tried, and
 * last a cut of everything. Cost: rounds x candidates placements.
 */
#include "refit.h"

#include "schedule.h"

#include <string.h>

#define ROUNDS_MAX     8U
#define CANDIDATES_MAX 12U

struct refit {
    const struct problem *problem;
    struct schedule *schedule;
    struct selection *selection;
    const struct refit_options *options;
    struct region *region;
};

struct trial {
    bool is_legal;
    uint64_t arena_bytes;
    int64_t iteration_ns;
};

static struct trial try_selection(struct refit *r, uint64_t place_work, struct atp_plan *plan,
                                  struct assemble_result *result)
{
    const struct sequence *sequence = schedule_sequence(r->schedule, r->selection);
    if (sequence->missing_tensor != ATP_NONE || sequence->too_long || sequence->excess_bytes > 0) {
        return (struct trial){.is_legal = false};
    }
    const struct timeline *timeline = schedule_timeline(r->schedule, true);
    if (timeline->stuck || timeline->host_bytes > r->problem->host_limit) {
        return (struct trial){.is_legal = false};
    }
    assemble(r->problem, sequence, timeline, place_work, r->region, plan, result);
    return (struct trial){true, result->arena_bytes, timeline->iteration_ns};
}

/* Steps at which less is free than the placement lacks, widened by the steps next to them. */
static void mark_tight_steps(struct refit *r, uint64_t lacking, uint32_t *tight_before)
{
    const struct problem *problem = r->problem;
    uint32_t step_count = problem->model->step_count;
    const struct sequence *sequence = schedule_sequence(r->schedule, r->selection);
    memset(tight_before, 0, ((size_t)step_count + 1) * sizeof(*tight_before));
    for (uint32_t op = 1; op < sequence->op_count; op++) {
        if (sequence->memory_bytes[op] + lacking <= problem->arena_capacity) {
            continue;
        }
        /* A rerun belongs to the step that it is run for: the next run. */
        uint32_t at = op;
        while (sequence->ops[at].is_rerun) {
            at++;
        }
        uint32_t step = sequence->ops[at].step;
        tight_before[step + 1] = 1;
        if (step > 0) {
            tight_before[step] = 1;
        }
        if (step + 1 < step_count) {
            tight_before[step + 2] = 1;
        }
    }
    for (uint32_t s = 0; s < step_count; s++) {
        tight_before[s + 1] += tight_before[s];
    }
}

static bool may_be_kept(uint8_t choice)
{
    return choice == CHOICE_KEEP || (choice & CHOICE_LAZY) != 0;
}

/* Kept gaps that touch a tight step, largest tensors first. */
static uint32_t list_candidates(const struct refit *r, const uint32_t *tight_before, uint32_t *out)
{
    const struct problem *problem = r->problem;
    uint32_t count = 0;
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        if (!access->has_next || !may_be_kept(r->selection->choices[a]) ||
            problem->profile->pins[access->tensor] != PROFILE_PIN_NONE) {
            continue;
        }
        uint32_t first = access->step == ATP_NONE ? 0 : access->step;
        if (tight_before[problem->accesses[a + 1].step + 1] == tight_before[first]) {
            continue;
        }
        uint64_t bytes = problem->tensor_bytes[access->tensor];
        uint32_t at = count < CANDIDATES_MAX ? count++ : count;
        while (at > 0 && problem->tensor_bytes[problem->accesses[out[at - 1]].tensor] < bytes) {
            if (at < CANDIDATES_MAX) {
                out[at] = out[at - 1];
            }
            at--;
        }
        if (at < CANDIDATES_MAX) {
            out[at] = a;
        }
    }
    return count;
}

/* Returns the best single cut, ATP_NONE when none is legal. */
static uint32_t find_cut(struct refit *r, const uint32_t *candidates, uint32_t count,
                         struct trial *out_best)
{
    uint32_t best = ATP_NONE;
    for (uint32_t i = 0; i < count; i++) {
        struct region_mark mark = region_mark(r->region);
        struct atp_plan plan;
        struct assemble_result result;
        uint8_t old = r->selection->choices[candidates[i]];
        r->selection->choices[candidates[i]] = CHOICE_SWAP;
        struct trial trial = try_selection(r, 0, &plan, &result);
        r->selection->choices[candidates[i]] = old;
        region_reset(r->region, mark);
        if (trial.is_legal && (best == ATP_NONE || trial.arena_bytes < out_best->arena_bytes ||
                               (trial.arena_bytes == out_best->arena_bytes &&
                                trial.iteration_ns < out_best->iteration_ns))) {
            best = candidates[i];
            *out_best = trial;
        }
    }
    return best;
}

static bool is_stopped(const struct refit *r)
{
    return r->options->stop != NULL && *r->options->stop != 0;
}

/* Leaves the selection as far cut as helped. */
static struct trial cut_until_placed(struct refit *r, struct atp_plan *plan,
                                     struct assemble_result *result)
{
    const struct problem *problem = r->problem;
    struct region *region = r->region;
    struct trial trial = {.is_legal = false};
    uint32_t *tight_before = REGION_NEW(region, uint32_t, (size_t)problem->model->step_count + 2);
    uint32_t *candidates = REGION_NEW(region, uint32_t, CANDIDATES_MAX + 1);
    for (uint32_t round = 0; round < ROUNDS_MAX && !is_stopped(r); round++) {
        trial = try_selection(r, r->options->place_work, plan, result);
        if (!trial.is_legal || result->fits) {
            break;
        }
        struct trial best = {0};
        uint64_t limit = problem->arena_capacity;
        uint64_t lacking = result->arena_bytes > limit ? result->arena_bytes - limit : 0;
        mark_tight_steps(r, lacking, tight_before);
        uint32_t count = list_candidates(r, tight_before, candidates);
        uint32_t cut = find_cut(r, candidates, count, &best);
        if (cut == ATP_NONE) {
            break;
        }
        r->selection->choices[cut] = CHOICE_SWAP;
    }
    return trial;
}

/* With copies that are serial, no two ops share a residence then, and every op's fit in any order:
 * there is a plan wherever the largest working set fits. */
static void cut_all(struct refit *r)
{
    const struct problem *problem = r->problem;
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool is_pinned = problem->profile->pins[access->tensor] != PROFILE_PIN_NONE;
        if (!is_pinned && access->has_next) {
            r->selection->choices[a] = CHOICE_SWAP;
        }
    }
}

int64_t refit(const struct problem *problem, struct selection *selection,
              const struct refit_options *options, struct region *region, struct atp_plan *out_plan,
              struct assemble_result *out_result)
{
    struct refit r = {problem, schedule_create(problem, region), selection, options, region};
    struct selection uncut = selection_create(problem, region);
    selection_copy(problem, selection, &uncut);
    struct trial trial = cut_until_placed(&r, out_plan, out_result);
    if (!out_result->fits) {
        schedule_set_serial(r.schedule);
        selection_copy(problem, &uncut, selection);
        trial = cut_until_placed(&r, out_plan, out_result);
    }
    if (!out_result->fits) {
        cut_all(&r);
        trial = try_selection(&r, options->place_work, out_plan, out_result);
    }
    return trial.iteration_ns;
}
