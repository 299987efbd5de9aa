/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finds for each policy the level that it needs at this budget. More dropped is not always less
 * memory (a rerun needs its inputs), so levels are tried in order; where there are many, on a grid,
 * and then by halves below the first point that fits.
 */
#include "baseline.h"

#include "assemble.h"
#include "baseline_policy.h"
#include "candidates.h"
#include "schedule.h"

#include <string.h>

#define GRID_POINTS      64U
#define HOLD_ROUNDS_MAX  64U
#define PLACE_ROUNDS_MAX 16U

struct maker {
    const struct problem *problem;
    struct schedule *schedule;
    struct policy_input input;
    const struct policy *policy;
    uint8_t *choices; /* of the level that was judged last */
    bool *is_held;    /* per tensor: swapped where it would be recomputed */
    uint32_t nearest; /* the level that comes nearest to fitting */
    uint64_t nearest_bytes;
    uint64_t work;
};

static void obey_pins(struct maker *m)
{
    for (uint32_t a = 0; a < m->problem->access_count; a++) {
        (void)candidates_is_pinned(m->problem, a, &m->choices[a]);
    }
}

/* False: nothing of it can be held any more. */
static bool hold(struct maker *m, uint32_t tensor)
{
    const struct problem *problem = m->problem;
    bool changed = false;
    m->is_held[tensor] = true;
    for (uint32_t a = problem->first_access[tensor]; a < problem->first_access[tensor + 1]; a++) {
        uint8_t pinned;
        if (CHOICE_KIND(m->choices[a]) == CHOICE_RECOMPUTE &&
            !candidates_is_pinned(problem, a, &pinned)) {
            m->choices[a] = CHOICE_SWAP;
            changed = true;
        }
    }
    return changed;
}

static void measure(struct maker *m, struct baseline *out)
{
    const struct sequence *sequence =
        schedule_sequence(m->schedule, &(struct selection){.choices = m->choices});
    m->work += sequence->op_count;
    for (uint32_t round = 0; round < HOLD_ROUNDS_MAX && sequence->missing_tensor != ATP_NONE;
         round++) {
        if (!hold(m, sequence->missing_tensor)) {
            break;
        }
        sequence = schedule_sequence(m->schedule, &(struct selection){.choices = m->choices});
        m->work += sequence->op_count;
    }
    *out = (struct baseline){.name = m->policy->name, .choices = m->choices};
    if (sequence->too_long || sequence->missing_tensor != ATP_NONE) {
        out->verdict = sequence->too_long ? BASELINE_ENDLESS : BASELINE_LOST;
        return;
    }
    for (uint32_t op = 0; op < sequence->op_count; op++) {
        uint64_t bytes = sequence->memory_bytes[op];
        out->peak_bytes = bytes > out->peak_bytes ? bytes : out->peak_bytes;
    }
    const struct timeline *timeline = schedule_timeline(m->schedule, false);
    out->iteration_ns = timeline->iteration_ns;
    out->recompute_ns = sequence->rerun_ns;
    out->stall_ns = timeline->stall_ns;
    out->host_bytes = timeline->host_bytes;
    bool is_over = sequence->excess_bytes > 0 || timeline->stuck;
    out->verdict = is_over                                         ? BASELINE_OVER_BUDGET
                   : timeline->host_bytes > m->problem->host_limit ? BASELINE_OVER_HOST
                                                                   : BASELINE_FITS;
}

static bool try_level(struct maker *m, uint32_t level, struct baseline *out)
{
    const struct problem *problem = m->problem;
    memcpy(m->choices, m->input.plain, problem->access_count);
    if (m->policy->fill != NULL) {
        m->policy->fill(&m->input, level, m->choices);
    }
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        if (m->is_held[t]) {
            (void)hold(m, t);
        }
    }
    obey_pins(m);
    measure(m, out);
    if (out->peak_bytes > 0 && out->peak_bytes < m->nearest_bytes) {
        m->nearest = level;
        m->nearest_bytes = out->peak_bytes;
    }
    return out->verdict == BASELINE_FITS;
}

/* The first level that fits. */
static void find_first(struct maker *m, uint32_t most, struct baseline *out)
{
    uint32_t stride = most / GRID_POINTS + 1, below = 0, fits = 0;
    while (!try_level(m, fits, out)) {
        if (fits == most) {
            (void)try_level(m, m->nearest, out);
            return;
        }
        below = fits;
        fits = most - fits > stride ? fits + stride : most;
    }
    while (fits - below > 1) {
        uint32_t middle = below + (fits - below) / 2;
        *(try_level(m, middle, out) ? &fits : &below) = middle;
    }
    (void)try_level(m, fits, out);
}

static void find_fastest(struct maker *m, uint32_t most, struct baseline *out)
{
    uint32_t best = 0;
    int64_t best_ns = INT64_MAX;
    for (uint32_t level = 0; level <= most; level++) {
        if (try_level(m, level, out) && out->iteration_ns < best_ns) {
            best = level;
            best_ns = out->iteration_ns;
        }
    }
    (void)try_level(m, best_ns == INT64_MAX ? m->nearest : best, out);
}

void baseline_list_build(const struct problem *problem, struct region *region,
                         struct baseline_list *out_list)
{
    struct maker m = {.problem = problem, .schedule = schedule_create(problem, region)};
    policy_input_build(problem, schedule_copy_out_ns(m.schedule), schedule_copy_in_ns(m.schedule),
                       region, &m.input);
    m.is_held = REGION_NEW(region, bool, problem->model->tensor_count);
    out_list->count = POLICY_COUNT;
    out_list->items = REGION_NEW(region, struct baseline, POLICY_COUNT);
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        m.policy = &POLICIES[i];
        m.choices = REGION_NEW(region, uint8_t, problem->access_count);
        memset(m.is_held, 0, problem->model->tensor_count * sizeof(*m.is_held));
        m.nearest = 0;
        m.nearest_bytes = UINT64_MAX;
        uint32_t most = m.policy->prepare(&m.input);
        (m.policy->fastest ? find_fastest : find_first)(&m, most, &out_list->items[i]);
    }
    out_list->work = m.work;
}

const char *baseline_verdict_name(enum baseline_verdict verdict)
{
    static const char *const names[] = {
        [BASELINE_FITS] = "fits",           [BASELINE_OVER_BUDGET] = "over budget",
        [BASELINE_OVER_HOST] = "over host", [BASELINE_LOST] = "loses bytes",
        [BASELINE_ENDLESS] = "endless",
    };
    return names[verdict];
}

/* Choices of the same policy for another limit; NULL: it does not fit. */
static uint8_t *choose_again(const struct problem *problem, const char *name, struct region *region)
{
    struct baseline_list list;
    baseline_list_build(problem, region, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].name == name) {
            return list.items[i].verdict == BASELINE_FITS ? list.items[i].choices : NULL;
        }
    }
    return NULL;
}

/* Copies in flight fill all memory that is left, which may leave no place for the next tensor: the
 * policy is given a little less, as the planner does it. */
static bool place(const struct problem *problem, const struct baseline *baseline,
                  uint64_t place_work, struct region *region, struct atp_plan *out_plan)
{
    struct problem tighter = *problem;
    struct schedule *schedule = schedule_create(&tighter, region);
    uint8_t *choices = baseline->choices;
    for (uint32_t round = 0; round < PLACE_ROUNDS_MAX; round++) {
        struct assemble_result placed;
        const struct sequence *sequence =
            schedule_sequence(schedule, &(struct selection){.choices = choices});
        if (sequence->excess_bytes > 0) {
            choices = choose_again(&tighter, baseline->name, region);
            if (choices == NULL) {
                return false;
            }
            sequence = schedule_sequence(schedule, &(struct selection){.choices = choices});
        }
        const struct timeline *timeline = schedule_timeline(schedule, true);
        assemble(&tighter, sequence, timeline, place_work, region, out_plan, &placed);
        if (placed.fits) {
            return true;
        }
        if (placed.arena_bytes <= problem->arena_capacity) {
            return false; /* the host arena has no place */
        }
        uint64_t over = placed.arena_bytes - problem->arena_capacity + problem->alignment_bytes;
        uint64_t most = problem->arena_capacity / 20;
        tighter.arena_limit -= over < most ? over : most;
        tighter.arena_limit &= ~(problem->alignment_bytes - 1);
    }
    return false;
}

bool baseline_plan(const struct problem *problem, const struct baseline *baseline,
                   uint64_t place_work, struct region *region, struct atp_plan *out_plan)
{
    if (baseline->verdict != BASELINE_FITS ||
        !place(problem, baseline, place_work, region, out_plan) ||
        atp_simulate(out_plan, &problem->profile->clock, NULL, NULL, &out_plan->predicted, NULL) !=
            ATP_OK) {
        return false;
    }
    out_plan->predicted.bound_ns = problem->compute_ns;
    return true;
}

bool baseline_overtake(const struct problem *problem, const struct baseline_list *list,
                       uint64_t place_work, struct region *region, struct atp_plan *plan)
{
    bool found = false;
    for (uint32_t i = 0; i < list->count; i++) {
        struct atp_plan other;
        if (list->items[i].verdict == BASELINE_FITS &&
            list->items[i].iteration_ns < plan->predicted.iteration_ns &&
            baseline_plan(problem, &list->items[i], place_work, region, &other) &&
            other.predicted.iteration_ns < plan->predicted.iteration_ns) {
            other.predicted.bound_ns = plan->predicted.bound_ns;
            other.time_limited = plan->time_limited;
            *plan = other;
            found = true;
        }
    }
    return found;
}
