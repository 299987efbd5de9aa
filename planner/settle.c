/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Most plans are placed by the fast heuristics or not at all, so those are tried often, the exact
 * search once for each limit, on the plan that came closest. Cost: a few dozen fast placements and
 * one exact one for each limit.
 */
#include "settle.h"

#include "search.h"

/* Parts of the arena's capacity that a search may use, in turn. */
static const double limits[] = {1, 0.995, 0.99, 0.985, 0.98, 0.97, 0.96, 0.945, 0.93, 0.91, 0.88};
#define LIMIT_COUNT (sizeof(limits) / sizeof(limits[0]))
#define FAST_WORK   200U /* of placement, for each plan that is tried */

struct settling {
    struct problem problem; /* with the limit at hand */
    struct schedule *schedule;
    struct region *region;
    struct atp_plan *plan;
    struct settle_result *result;
    struct selection best;    /* of the plan */
    struct selection closest; /* at this limit, of those that were not placed */
    uint64_t closest_bytes;
};

/* A plan counts when it is faster than the one that is there. */
static bool place(struct settling *s, const struct selection *selection, uint64_t work,
                  struct assemble_result *placed)
{
    struct region_mark mark = region_mark(s->region);
    const struct sequence *sequence = schedule_sequence(s->schedule, selection);
    const struct timeline *timeline = schedule_timeline(s->schedule, true);
    struct atp_plan plan;
    assemble(&s->problem, sequence, timeline, work, s->region, &plan, placed);
    bool is_better = !s->result->placed.fits || timeline->iteration_ns < s->result->iteration_ns;
    if (!placed->fits || !is_better) {
        region_reset(s->region, mark);
        return placed->fits;
    }
    *s->plan = plan;
    s->result->placed = *placed;
    s->result->iteration_ns = timeline->iteration_ns;
    selection_copy(&s->problem, selection, &s->best);
    return true;
}

static bool accept(void *ctx, const struct selection *selection)
{
    struct settling *s = ctx;
    struct assemble_result placed;
    if (place(s, selection, FAST_WORK, &placed)) {
        return true;
    }
    if (!s->result->placed.fits) {
        s->result->placed = placed;
    }
    if (placed.arena_bytes < s->closest_bytes) {
        s->closest_bytes = placed.arena_bytes;
        selection_copy(&s->problem, selection, &s->closest);
    }
    return false;
}

/* Searches under the limit, from `io_selection` on, which becomes the best that fits in sum.
 * Returns its time; 0: there is none. */
static int64_t search_under(struct settling *s, const struct relax_solution *relaxed,
                            const struct settle_options *options, struct selection *io_selection)
{
    struct assemble_result placed;
    struct search_result found;
    struct search_options search = {
        .start = io_selection,
        .work_limit = options->search_work,
        .stop = options->stop,
        .accept = accept,
        .accept_ctx = s,
    };
    s->closest_bytes = UINT64_MAX;
    search_run(&s->problem, relaxed, &search, s->region, &found);
    s->result->search_work += found.work;
    if (s->closest_bytes < UINT64_MAX) {
        (void)place(s, &s->closest, options->place_work, &placed);
    }
    if (found.fit_ns > 0) {
        selection_copy(&s->problem, &found.fit, io_selection);
    }
    return found.fit_ns;
}

void settle(const struct problem *problem, const struct relax_solution *relaxed,
            struct selection *selection, const struct settle_options *options,
            struct region *region, struct atp_plan *out_plan, struct settle_result *out_result)
{
    struct settling s = {
        .problem = *problem, .region = region, .plan = out_plan, .result = out_result};
    *out_result = (struct settle_result){0};
    s.schedule = schedule_create(&s.problem, region);
    s.best = selection_create(problem, region);
    s.closest = selection_create(problem, region);
    struct assemble_result placed;
    if (place(&s, selection, options->place_work, &placed)) {
        return;
    }
    struct selection at = selection_create(problem, region);
    selection_copy(problem, selection, &at);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        double limit = limits[i] * (double)problem->arena_capacity;
        s.problem.arena_limit = (uint64_t)limit & ~(problem->alignment_bytes - 1);
        int64_t fit_ns = search_under(&s, relaxed, options, &at);
        /* A lower limit does not make faster plans. */
        if (fit_ns == 0 || (out_result->placed.fits && fit_ns >= out_result->iteration_ns)) {
            break;
        }
    }
    if (out_result->placed.fits) {
        selection_copy(problem, &s.best, selection);
    }
}
