/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two reductions, and what each may cost:
 *
 * Tiny tensors are kept. Take the best program for an arena that is smaller by all of them
 * together, and let it keep them: each step finds what it needs, no step begins later, and memory
 * grows by at most their sum. So the best program that keeps them is no slower than the best for
 * that slightly smaller arena.
 *
 * A gap over no step at which everything live exceeds the arena is kept: what is dropped there
 * makes room that no run needs. Only reruns and early restores may want room there, so that the
 * reduction is no proof: with every gap open, 7 of 450 tiny problems have a faster best. Real
 * profiles have two to five times as many gaps without it, and mostly slower plans for the same
 * work; small problems, which the search walks through anyway, go without.
 */
#include "candidates.h"

#include "schedule.h"

/* Up to this many accesses the search has time for every gap. */
#define SMALL_ACCESS_COUNT 128U

/* The largest power of two such that all tensors up to it, together, take a thousandth of the arena
 * at most, and a quarter of what the largest working set leaves of it. */
uint64_t candidates_tiny_bytes(const struct problem *problem)
{
    uint64_t slack = problem->arena_limit > problem->least_arena_bytes
                         ? problem->arena_limit - problem->least_arena_bytes
                         : 0;
    uint64_t share = problem->arena_limit / 1000;
    uint64_t budget = slack / 4 < share ? slack / 4 : share;
    uint64_t limit = 0;
    for (uint64_t size = 1; size < (UINT64_C(1) << 62); size *= 2) {
        uint64_t sum = 0;
        for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
            sum += problem->tensor_bytes[t] <= size ? problem->tensor_bytes[t] : 0;
        }
        if (sum > budget) {
            break;
        }
        limit = size;
    }
    return limit;
}

/* Is memory short at a step strictly inside the gap behind access `a`? */
static bool is_pressed(const struct problem *problem, const uint32_t *pressed_before, uint32_t a)
{
    const struct access *access = &problem->accesses[a];
    uint32_t first = access->step == ATP_NONE ? 0 : access->step + 1;
    uint32_t end = access->has_next ? problem->accesses[a + 1].step : problem->model->step_count;
    return first < end && pressed_before[end] > pressed_before[first];
}

/* May a rerun want this tensor after its last use? Then some step that reads it may be rerun. */
static bool feeds_rerun(const struct problem *problem, uint32_t tensor)
{
    for (uint32_t a = problem->first_access[tensor]; a < problem->first_access[tensor + 1]; a++) {
        uint32_t step = problem->accesses[a].step;
        if (step != ATP_NONE && problem->accesses[a].reads &&
            problem->model->steps[step].phase == ATP_PHASE_FORWARD &&
            !problem->model->steps[step].rerun_never) {
            return true;
        }
    }
    return false;
}

uint32_t candidates_find(const struct problem *problem, struct region *region,
                         uint32_t **out_accesses)
{
    struct candidates_reductions reductions = {
        .tiny = true, .pressed = problem->access_count > SMALL_ACCESS_COUNT};
    return candidates_find_with(problem, &reductions, region, out_accesses);
}

uint32_t candidates_find_with(const struct problem *problem,
                              const struct candidates_reductions *reductions, struct region *region,
                              uint32_t **out_accesses)
{
    uint32_t *accesses = REGION_NEW(region, uint32_t, problem->access_count);
    uint32_t *pressed_before = REGION_NEW(region, uint32_t, (size_t)problem->model->step_count + 1);
    uint64_t tiny = candidates_tiny_bytes(problem);
    uint32_t count = 0;
    for (uint32_t s = 0; s < problem->model->step_count; s++) {
        pressed_before[s + 1] = pressed_before[s] + (problem->live_bytes[s] > problem->arena_limit);
    }
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool has_choice = access->has_next || feeds_rerun(problem, access->tensor);
        bool is_big = !reductions->tiny || problem->tensor_bytes[access->tensor] > tiny;
        bool begins = access->step == ATP_NONE && problem->input_bytes > problem->arena_limit;
        if (has_choice && is_big &&
            (!reductions->pressed || begins || is_pressed(problem, pressed_before, a))) {
            accesses[count++] = a;
        }
    }
    *out_accesses = accesses;
    return count;
}

void candidates_default(const struct problem *problem, uint8_t *choices)
{
    uint64_t tiny = candidates_tiny_bytes(problem);
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool is_big_tail = !access->has_next && problem->tensor_bytes[access->tensor] > tiny;
        choices[a] = is_big_tail && problem->recomputable[a] ? CHOICE_RECOMPUTE : CHOICE_KEEP;
    }
}

/* `decide` pins the gap between the phases: the last forward access whose next use is later. */
bool candidates_is_pinned(const struct problem *problem, uint32_t a, uint8_t *out_choice)
{
    const struct access *access = &problem->accesses[a];
    enum profile_pin pin = problem->profile->pins[access->tensor];
    if (pin == PROFILE_PIN_NONE || !access->has_next) {
        return false;
    }
    if (pin == PROFILE_PIN_KEEP) {
        *out_choice = CHOICE_KEEP;
        return true;
    }
    const struct atp_step *steps = problem->model->steps;
    bool is_forward = access->step == ATP_NONE || steps[access->step].phase == ATP_PHASE_FORWARD;
    if (!is_forward || steps[problem->accesses[a + 1].step].phase == ATP_PHASE_FORWARD) {
        return false;
    }
    *out_choice = pin == PROFILE_PIN_SWAP ? CHOICE_SWAP : CHOICE_RECOMPUTE;
    return true;
}
