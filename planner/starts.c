/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "starts.h"

#include "schedule.h"

static uint8_t possible(const struct problem *problem, uint32_t a, uint8_t choice)
{
    const struct access *access = &problem->accesses[a];
    if (CHOICE_KIND(choice) == CHOICE_RECOMPUTE && !problem->recomputable[a]) {
        return access->has_next ? CHOICE_SWAP : CHOICE_KEEP;
    }
    return choice;
}

static uint8_t largest_share(const struct relax_solution *relaxed, uint32_t a)
{
    double keep = relaxed->keep[a], swap = relaxed->swap[a], recompute = relaxed->recompute[a];
    if (keep >= swap && keep >= recompute) {
        return CHOICE_KEEP;
    }
    return swap >= recompute ? CHOICE_SWAP : CHOICE_RECOMPUTE;
}

static bool is_forward(const struct problem *problem, uint32_t step)
{
    return step == ATP_NONE || problem->model->steps[step].phase == ATP_PHASE_FORWARD;
}

/* Segments of equally many forward steps. */
struct segments {
    uint32_t step_count, count;
};

static uint32_t segment_of(const struct segments *segments, uint32_t step)
{
    return step == ATP_NONE ? 0
                            : (uint32_t)((uint64_t)step * segments->count / segments->step_count);
}

static uint8_t segment_choice(const struct problem *problem, const struct segments *segments,
                              const struct start *start, uint32_t a)
{
    const struct access *access = &problem->accesses[a];
    if (!access->has_next) {
        return possible(problem, a, CHOICE_RECOMPUTE);
    }
    if (!is_forward(problem, access->step) || is_forward(problem, problem->accesses[a + 1].step)) {
        return start->elsewhere;
    }
    uint32_t born = problem->accesses[problem->first_access[access->tensor]].step;
    bool crosses = segment_of(segments, born) != segment_of(segments, access->step);
    return crosses ? start->held : possible(problem, a, CHOICE_RECOMPUTE);
}

void starts_fill(const struct problem *problem, const struct start *start,
                 const uint32_t *candidates, uint32_t candidate_count, uint8_t *choices)
{
    struct segments segments = {1, start->segment_count};
    for (uint32_t s = 0; s < problem->model->step_count && is_forward(problem, s); s++) {
        segments.step_count = s + 1;
    }
    for (uint32_t i = 0; i < candidate_count; i++) {
        uint32_t a = candidates[i];
        switch (start->kind) {
        case START_KEEP:
            choices[a] = CHOICE_KEEP;
            break;
        case START_RELAXED:
            choices[a] = possible(problem, a, largest_share(start->relaxed, a));
            break;
        case START_SEGMENTS:
            choices[a] = segment_choice(problem, &segments, start, a);
            break;
        }
    }
}
