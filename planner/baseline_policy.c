/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What each policy would do. All of them look at a tensor's gap between the phases, as the
 * frameworks do whose policies they are; only swap-all goes on to every idle gap, so that it fits
 * whenever anything does.
 */
#include "baseline_policy.h"

#include "candidates.h"
#include "schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all policies know ---- */

static int64_t rerun_ns(const struct problem *problem, uint32_t gap)
{
    int64_t sum = 0;
    if (!problem->recomputable[gap]) {
        return INT64_MAX;
    }
    for (uint32_t a = problem->first_access[problem->accesses[gap].tensor]; a <= gap; a++) {
        if (problem->accesses[a].writes) {
            sum += problem->profile->clock.step_ns[problem->accesses[a].step];
        }
    }
    return sum;
}

/* All tiny tensors together are a thousandth of what everything needs at most. */
static const bool *find_tiny(const struct problem *problem, struct region *region)
{
    uint32_t count = problem->model->tensor_count;
    bool *is_tiny = REGION_NEW(region, bool, count);
    for (uint32_t t = 0; t < count; t++) {
        is_tiny[t] = problem->tensor_bytes[t] <= problem->peak_bytes / 1000 / count;
    }
    return is_tiny;
}

/* Idle from the forward pass, or from the beginning of the iteration, to a later phase. */
static bool is_phase_gap(const struct problem *problem, uint32_t access)
{
    const struct access *a = &problem->accesses[access];
    const struct atp_step *steps = problem->model->steps;
    bool is_forward = a->step == ATP_NONE || steps[a->step].phase == ATP_PHASE_FORWARD;
    return is_forward && a->has_next &&
           steps[problem->accesses[access + 1].step].phase != ATP_PHASE_FORWARD;
}

static void find_gaps(struct policy_input *input)
{
    const struct problem *problem = input->problem;
    uint32_t step_count = problem->model->step_count;
    int64_t *start_ns = REGION_NEW(input->region, int64_t, (size_t)step_count + 1);
    for (uint32_t s = 0; s < step_count; s++) {
        start_ns[s + 1] = start_ns[s] + problem->profile->clock.step_ns[s];
    }
    input->gaps = REGION_NEW(input->region, struct phase_gap, problem->model->tensor_count);
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        uint8_t pinned;
        if (!is_phase_gap(problem, a) || input->is_tiny[access->tensor] ||
            candidates_is_pinned(problem, a, &pinned)) {
            continue;
        }
        uint32_t end = problem->accesses[a + 1].step;
        uint32_t begin = access->step == ATP_NONE ? 0 : access->step + 1;
        if (begin < end) {
            input->gaps[input->gap_count++] = (struct phase_gap){
                .access = a,
                .bytes = problem->tensor_bytes[access->tensor],
                .idle_ns = start_ns[end] - start_ns[begin],
                .out_ns = input->copy_out_ns[access->tensor],
                .in_ns = input->copy_in_ns[access->tensor],
                .rerun_ns = rerun_ns(problem, a),
            };
        }
    }
}

void policy_input_build(const struct problem *problem, const int64_t *copy_out_ns,
                        const int64_t *copy_in_ns, struct region *region,
                        struct policy_input *out_input)
{
    const struct atp_step *steps = problem->model->steps;
    *out_input = (struct policy_input){
        .problem = problem,
        .region = region,
        .copy_out_ns = copy_out_ns,
        .copy_in_ns = copy_in_ns,
        .is_tiny = find_tiny(problem, region),
        .plain = REGION_NEW(region, uint8_t, problem->access_count),
    };
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool is_dropped =
            !access->has_next && problem->recomputable[a] && !out_input->is_tiny[access->tensor];
        out_input->plain[a] = is_dropped ? CHOICE_RECOMPUTE : CHOICE_KEEP;
    }
    for (uint32_t s = 0; s < problem->model->step_count; s++) {
        int64_t step_ns = problem->profile->clock.step_ns[s];
        bool is_forward = steps[s].phase == ATP_PHASE_FORWARD;
        out_input->forward_count += is_forward;
        out_input->forward_ns += is_forward ? step_ns : 0;
        out_input->backward_ns += is_forward ? 0 : step_ns;
    }
    find_gaps(out_input);
}

static int by_rank(const void *left, const void *right)
{
    const struct phase_gap *a = left, *b = right;
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return a->access < b->access ? -1 : a->access > b->access;
}

static void sort_gaps(struct phase_gap *gaps, uint32_t count)
{
    qsort(gaps, count, sizeof(*gaps), by_rank);
}

/* The first gaps in order; where all of them are not enough, the first anew, and what reruns bring
 * back early is dropped again. */
static void fill_first(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    bool again = level > input->gap_count;
    uint32_t count = again ? level - input->gap_count : level;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t choice = input->gaps[i].choice;
        choices[input->gaps[i].access] = again ? choice | CHOICE_AGAIN : choice;
    }
}

/* ---- keep-all, recompute-all, swap-all ---- */

static uint32_t one_level(struct policy_input *input)
{
    (void)input;
    return 0;
}

static uint32_t two_levels(struct policy_input *input)
{
    (void)input;
    return 1;
}

static uint32_t three_levels(struct policy_input *input)
{
    (void)input;
    return 2;
}

static void fill_recompute(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    uint8_t choice = level == 0 ? CHOICE_RECOMPUTE : CHOICE_RECOMPUTE | CHOICE_AGAIN;
    for (uint32_t i = 0; i < input->gap_count; i++) {
        if (input->gaps[i].rerun_ns != INT64_MAX) {
            choices[input->gaps[i].access] = choice;
        }
    }
}

static void fill_swap(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    const struct problem *problem = input->problem;
    for (uint32_t i = 0; level == 0 && i < input->gap_count; i++) {
        choices[input->gaps[i].access] = CHOICE_SWAP;
    }
    for (uint32_t a = 0; level > 0 && a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        uint32_t begin = access->step == ATP_NONE ? 0 : access->step + 1;
        bool is_idle = access->has_next && problem->accesses[a + 1].step > begin;
        if (is_idle && (level == 2 || !input->is_tiny[access->tensor])) {
            choices[a] = CHOICE_SWAP;
        }
    }
}

/* ---- checkpoints ---- */

/* The forward steps that a tensor is used in, from the first to the last. */
struct span {
    bool is_empty;
    uint32_t first, last;
};

static struct span forward_span(const struct problem *problem, uint32_t tensor)
{
    struct span span = {.is_empty = true};
    for (uint32_t a = problem->first_access[tensor]; a < problem->first_access[tensor + 1]; a++) {
        uint32_t step = problem->accesses[a].step;
        if (step != ATP_NONE && problem->model->steps[step].phase == ATP_PHASE_FORWARD) {
            span.first = span.is_empty ? step : span.first;
            span.last = step;
            span.is_empty = false;
        }
    }
    return span;
}

/* Per position p in [0, forward_count]: the bytes made before step p that are read from p on. */
static void sum_crossing(const struct policy_input *input, uint64_t *crossing)
{
    const struct problem *problem = input->problem;
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        struct span span = forward_span(problem, t);
        if (!span.is_empty) {
            crossing[span.first + 1] += problem->tensor_bytes[t];
            crossing[span.last + 1] -= problem->tensor_bytes[t];
        }
    }
    for (uint32_t p = 1; p <= input->forward_count; p++) {
        crossing[p] += crossing[p - 1];
    }
}

/* Each cut is where the fewest bytes cross among the positions nearer to it than to its
 * neighbours. `segment_of` has one entry per forward step. Returns the last segment. */
static uint32_t cut_segments(const struct policy_input *input, uint32_t segment_count,
                             uint32_t *segment_of)
{
    uint32_t n = input->forward_count, at = 0, segment = 0;
    uint64_t *crossing = REGION_NEW(input->region, uint64_t, (size_t)n + 2);
    sum_crossing(input, crossing);
    for (uint32_t i = 1; i < segment_count; i++) {
        uint32_t middle = (uint32_t)((uint64_t)i * n / segment_count);
        uint32_t reach = n / segment_count / 2;
        uint32_t best = middle;
        for (uint32_t far = 1; far <= reach; far++) {
            best = crossing[middle - far] < crossing[best] ? middle - far : best;
            best =
                middle + far < n && crossing[middle + far] < crossing[best] ? middle + far : best;
        }
        while (at < best) {
            segment_of[at++] = segment;
        }
        segment++;
    }
    while (at < n) {
        segment_of[at++] = segment;
    }
    return segment;
}

static void fill_segments(const struct policy_input *input, uint32_t segment_count,
                          uint8_t *choices)
{
    const struct problem *problem = input->problem;
    struct region_mark mark = region_mark(input->region);
    uint32_t *segment_of = REGION_NEW(input->region, uint32_t, input->forward_count);
    uint32_t last_segment = cut_segments(input, segment_count, segment_of);
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        struct span span = forward_span(problem, t);
        /* What crosses a cut is a checkpoint, even where only reruns read it. */
        if (!span.is_empty && segment_of[span.first] != segment_of[span.last]) {
            choices[problem->first_access[t + 1] - 1] = CHOICE_KEEP;
        }
    }
    for (uint32_t i = 0; i < input->gap_count; i++) {
        const struct phase_gap *gap = &input->gaps[i];
        struct span span = forward_span(problem, problem->accesses[gap->access].tensor);
        if (gap->rerun_ns != INT64_MAX && segment_of[span.first] == segment_of[span.last] &&
            segment_of[span.last] != last_segment) {
            choices[gap->access] = CHOICE_RECOMPUTE;
        }
    }
    region_reset(input->region, mark);
}

static uint32_t sqrt_segments(const struct policy_input *input)
{
    return (uint32_t)lround(sqrt(input->forward_count));
}

static void fill_sqrt(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    (void)level;
    fill_segments(input, sqrt_segments(input), choices);
}

/* 1 to 16 segments, then four numbers an octave: 20, 24, 28, 32, 40, ... */
static uint32_t segments_at(uint32_t level)
{
    uint32_t beyond = level - 16;
    return level < 16 ? level + 1 : (20 + 4 * (beyond % 4)) << beyond / 4;
}

/* Level 0 is the number of checkpoint-sqrt, so that it is never better. */
static uint32_t segment_levels(struct policy_input *input)
{
    uint32_t level = 0;
    while (level < 100 && segments_at(level) <= input->forward_count) {
        level++;
    }
    return level;
}

static void fill_segments_at(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    fill_segments(input, level == 0 ? sqrt_segments(input) : segments_at(level - 1), choices);
}

/* ---- swap-inputs ---- */

struct long_step {
    uint32_t step;
    int64_t ns;
};

static int by_time(const void *left, const void *right)
{
    const struct long_step *a = left, *b = right;
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return a->step < b->step ? -1 : a->step > b->step;
}

static void fill_inputs(const struct policy_input *input, uint32_t level, uint8_t *choices)
{
    const struct problem *problem = input->problem;
    struct region_mark mark = region_mark(input->region);
    struct long_step *steps = REGION_NEW(input->region, struct long_step, input->forward_count);
    bool *is_read = REGION_NEW(input->region, bool, problem->model->tensor_count);
    int64_t sum = 0;
    (void)level;
    for (uint32_t s = 0; s < input->forward_count; s++) {
        steps[s] = (struct long_step){s, problem->profile->clock.step_ns[s]};
    }
    qsort(steps, input->forward_count, sizeof(*steps), by_time);
    for (uint32_t i = 0; i < input->forward_count && sum < input->forward_ns / 5 * 4; i++) {
        const struct atp_step *step = &problem->model->steps[steps[i].step];
        sum += steps[i].ns;
        for (uint32_t r = 0; r < step->read_count; r++) {
            is_read[step->reads[r]] = true;
        }
    }
    for (uint32_t i = 0; i < input->gap_count; i++) {
        if (is_read[problem->accesses[input->gaps[i].access].tensor]) {
            choices[input->gaps[i].access] = CHOICE_SWAP;
        }
    }
    region_reset(input->region, mark);
}

/* ---- swap-recompute ---- */

static uint32_t order_by_benefit(struct policy_input *input)
{
    uint32_t hidden = 0;
    int64_t out_ns = 0, in_ns = 0;
    for (uint32_t i = 0; i < input->gap_count; i++) {
        struct phase_gap *gap = &input->gaps[i];
        gap->choice = CHOICE_SWAP;
        gap->rank = (double)gap->idle_ns - (double)gap->out_ns - (double)gap->in_ns;
    }
    sort_gaps(input->gaps, input->gap_count);
    for (; hidden < input->gap_count && input->gaps[hidden].rank >= 0; hidden++) {
        out_ns += input->gaps[hidden].out_ns;
        in_ns += input->gaps[hidden].in_ns;
        if (out_ns > input->forward_ns || in_ns > input->backward_ns) {
            break;
        }
    }
    /* What may not be rerun comes last, longest idle first. */
    for (uint32_t i = hidden; i < input->gap_count; i++) {
        struct phase_gap *gap = &input->gaps[i];
        if (gap->rerun_ns != INT64_MAX) {
            gap->choice = CHOICE_RECOMPUTE;
            gap->rank = (double)gap->bytes / ((double)gap->rerun_ns + 1);
        } else {
            gap->rank = -1 / (1 + (double)gap->idle_ns);
        }
    }
    sort_gaps(input->gaps + hidden, input->gap_count - hidden);
    return 2 * input->gap_count;
}

/* ---- greedy-size ---- */

static uint32_t order_by_size(struct policy_input *input)
{
    for (uint32_t i = 0; i < input->gap_count; i++) {
        struct phase_gap *gap = &input->gaps[i];
        bool is_cheap = gap->rerun_ns < gap->out_ns + gap->in_ns;
        gap->choice = is_cheap ? CHOICE_RECOMPUTE : CHOICE_SWAP;
        gap->rank = (double)gap->bytes;
    }
    sort_gaps(input->gaps, input->gap_count);
    return 2 * input->gap_count;
}

const struct policy POLICIES[POLICY_COUNT] = {
    {"keep-all", false, one_level, NULL},
    {"recompute-all", false, two_levels, fill_recompute},
    {"checkpoint-sqrt", false, one_level, fill_sqrt},
    {"checkpoint-best", true, segment_levels, fill_segments_at},
    {"swap-all", false, three_levels, fill_swap},
    {"swap-inputs", false, one_level, fill_inputs},
    {"swap-recompute", false, order_by_benefit, fill_first},
    {"greedy-size", false, order_by_size, fill_first},
};
