/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Simulated annealing from several starts, with memory beyond the limit priced instead of
 * forbidden, so that a step through an unfit plan can lead to a better fit one; then descent to a
 * local optimum. All random numbers come from a fixed seed, and work is counted in scheduled ops,
 * so the result depends on the input alone.
 */
#include "search.h"

#include <math.h>
#include <string.h>

struct score {
    int64_t iteration_ns;
    double cost; /* iteration_ns and the price of what does not fit */
    bool fits;
};

struct search {
    const struct problem *problem;
    const struct search_options *options;
    struct schedule *schedule;
    struct search_result *result;
    uint32_t candidate_count;
    uint32_t *candidates;
    uint8_t *choices; /* the state of the walk */
    double price_per_byte;
    int64_t bound_ns;
    uint64_t random;
    bool has_closest;
};

static uint64_t next_random(struct search *s)
{
    uint64_t z = s->random += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static uint32_t random_below(struct search *s, uint32_t count)
{
    return (uint32_t)((next_random(s) >> 32) * count >> 32);
}

static double random_unit(struct search *s)
{
    return (double)(next_random(s) >> 11) * 0x1p-53;
}

/* No plan is faster than the bound. */
static bool is_optimal(const struct search *s)
{
    return s->result->found && s->result->iteration_ns <= s->bound_ns;
}

static bool is_over(const struct search *s)
{
    return s->result->work >= s->options->work_limit || is_optimal(s) ||
           (s->options->stop != NULL && *s->options->stop != 0);
}

/* ---- candidates ---- */

/* Tensors so small that all of them together never matter; their gaps are kept. */
static uint64_t tiny_limit(const struct problem *problem)
{
    uint64_t slack = problem->arena_limit > problem->least_arena_bytes
                         ? problem->arena_limit - problem->least_arena_bytes
                         : 0;
    uint64_t share = problem->arena_limit / 1000;
    uint64_t budget = slack / 4 < share ? slack / 4 : share;
    /* The largest power of two such that all tensors up to it sum to the budget at most. */
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

uint32_t search_candidates(const struct problem *problem, struct region *region,
                           uint32_t **out_accesses)
{
    uint32_t *accesses = REGION_NEW(region, uint32_t, problem->access_count);
    uint32_t *pressed_before = REGION_NEW(region, uint32_t, (size_t)problem->model->step_count + 1);
    uint64_t tiny = tiny_limit(problem);
    uint32_t count = 0;
    for (uint32_t s = 0; s < problem->model->step_count; s++) {
        pressed_before[s + 1] = pressed_before[s] + (problem->live_bytes[s] > problem->arena_limit);
    }
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool has_choice = access->has_next || feeds_rerun(problem, access->tensor);
        bool begins = access->step == ATP_NONE && problem->input_bytes > problem->arena_limit;
        if (has_choice && problem->tensor_bytes[access->tensor] > tiny &&
            (begins || is_pressed(problem, pressed_before, a))) {
            accesses[count++] = a;
        }
    }
    *out_accesses = accesses;
    return count;
}

void search_default_choices(const struct problem *problem, uint8_t *choices)
{
    uint64_t tiny = tiny_limit(problem);
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        bool is_big_tail = !access->has_next && problem->tensor_bytes[access->tensor] > tiny;
        choices[a] = is_big_tail && problem->recomputable[a] ? CHOICE_RECOMPUTE : CHOICE_KEEP;
    }
}

/* `decide` pins the gap between the phases: the last forward access whose next use is later. */
static bool is_pinned(const struct problem *problem, uint32_t a, uint8_t *out_choice)
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

static void pin_choices(struct search *s)
{
    uint32_t kept = 0;
    for (uint32_t a = 0; a < s->problem->access_count; a++) {
        (void)is_pinned(s->problem, a, &s->choices[a]);
    }
    for (uint32_t i = 0; i < s->candidate_count; i++) {
        uint8_t choice;
        if (!is_pinned(s->problem, s->candidates[i], &choice)) {
            s->candidates[kept++] = s->candidates[i];
        }
    }
    s->candidate_count = kept;
}

/* ---- judging ---- */

static void note_best(struct search *s, int64_t iteration_ns)
{
    struct search_result *result = s->result;
    if (!result->found || iteration_ns < result->iteration_ns) {
        result->found = true;
        result->iteration_ns = iteration_ns;
        memcpy(result->choices, s->choices, s->problem->access_count);
        if (s->options->progress != NULL) {
            s->options->progress(s->options->progress_ctx, iteration_ns, result->work);
        }
    }
}

static void note_closest(struct search *s, const struct sequence *sequence, uint64_t host_excess)
{
    struct search_result *result = s->result;
    if (result->found || (s->has_closest && sequence->excess_bytes + host_excess >=
                                                result->excess_bytes + result->host_excess_bytes)) {
        return;
    }
    s->has_closest = true;
    result->excess_bytes = sequence->excess_bytes;
    result->excess_step =
        sequence->excess_op == ATP_NONE ? ATP_NONE : sequence->ops[sequence->excess_op].step;
    result->host_excess_bytes = host_excess;
}

/* A rerun misses an input: hold it through the gap in which it was dropped. */
static bool hold_missing(struct search *s, uint32_t tensor)
{
    bool changed = false;
    for (uint32_t a = s->problem->first_access[tensor]; a < s->problem->first_access[tensor + 1];
         a++) {
        uint8_t pinned;
        bool is_free = !is_pinned(s->problem, a, &pinned);
        if (is_free && CHOICE_KIND(s->choices[a]) == CHOICE_RECOMPUTE) {
            s->choices[a] = CHOICE_SWAP;
            changed = true;
        }
    }
    return changed;
}

static struct score judge(struct search *s)
{
    const struct sequence *sequence = schedule_sequence(s->schedule, s->choices);
    s->result->work += sequence->op_count;
    if (sequence->missing_tensor != ATP_NONE || sequence->too_long) {
        if (!s->result->found) {
            s->result->missing_tensor = sequence->missing_tensor;
        }
        return (struct score){INT64_MAX, HUGE_VAL, false};
    }
    const struct timeline *timeline = schedule_timeline(s->schedule, false);
    if (timeline->stuck) {
        return (struct score){INT64_MAX, HUGE_VAL, false};
    }
    uint64_t host_excess = timeline->host_bytes > s->problem->host_limit
                               ? timeline->host_bytes - s->problem->host_limit
                               : 0;
    bool fits = sequence->excess_bytes == 0 && host_excess == 0;
    double mean_excess = (double)sequence->excess_sum / sequence->op_count;
    double price = s->price_per_byte *
                   ((double)sequence->excess_bytes + 4 * mean_excess + (double)host_excess);
    if (fits) {
        note_best(s, timeline->iteration_ns);
    } else {
        note_closest(s, sequence, host_excess);
    }
    return (struct score){timeline->iteration_ns, (double)timeline->iteration_ns + price, fits};
}

/* ---- the walk ---- */

static uint8_t random_choice(struct search *s, uint32_t a)
{
    const struct problem *problem = s->problem;
    uint8_t old = s->choices[a], choice;
    do {
        uint32_t draw = random_below(s, 16);
        choice = (uint8_t)(draw < 5 ? CHOICE_KEEP : draw < 10 ? CHOICE_SWAP : CHOICE_RECOMPUTE);
        if (choice == CHOICE_RECOMPUTE && !problem->recomputable[a]) {
            choice = CHOICE_SWAP;
        }
        if (choice != CHOICE_KEEP && problem->accesses[a].has_next && draw % 5 == 4) {
            choice |= CHOICE_AGAIN;
        }
    } while (choice == old && random_below(s, 4) != 0);
    return choice;
}

struct undo {
    uint32_t access[2];
    uint8_t choice[2];
    uint32_t count;
};

static void set_choice(struct search *s, struct undo *undo, uint32_t a, uint8_t choice)
{
    undo->access[undo->count] = a;
    undo->choice[undo->count++] = s->choices[a];
    s->choices[a] = choice;
}

static void take_back(struct search *s, const struct undo *undo)
{
    for (uint32_t i = undo->count; i-- > 0;) {
        s->choices[undo->access[i]] = undo->choice[i];
    }
}

/* One gap changes, or a kept one and a dropped one trade places. */
static void random_move(struct search *s, struct undo *undo)
{
    undo->count = 0;
    uint32_t a = s->candidates[random_below(s, s->candidate_count)];
    if (random_below(s, 2) == 0) {
        set_choice(s, undo, a, random_choice(s, a));
        return;
    }
    uint32_t b = s->candidates[random_below(s, s->candidate_count)];
    for (uint32_t tries = 0; tries < 8 && s->choices[b] == s->choices[a]; tries++) {
        b = s->candidates[random_below(s, s->candidate_count)];
    }
    uint8_t choice_a = s->choices[b], choice_b = s->choices[a];
    if (CHOICE_KIND(choice_a) == CHOICE_RECOMPUTE && !s->problem->recomputable[a]) {
        choice_a = CHOICE_SWAP;
    }
    if (CHOICE_KIND(choice_b) == CHOICE_RECOMPUTE && !s->problem->recomputable[b]) {
        choice_b = CHOICE_SWAP;
    }
    set_choice(s, undo, a, choice_a);
    set_choice(s, undo, b, choice_b);
}

static void anneal(struct search *s, uint64_t work_end, double hot, double cold)
{
    struct score at = judge(s);
    uint64_t work_begin = s->result->work;
    while (!is_over(s) && s->result->work < work_end) {
        double share = (double)(s->result->work - work_begin) / (double)(work_end - work_begin);
        double temperature = hot * pow(cold / hot, share);
        struct undo undo;
        random_move(s, &undo);
        struct score next = judge(s);
        double worse = next.cost - at.cost;
        if (worse <= 0 || random_unit(s) < exp(-worse / temperature)) {
            at = next;
        } else {
            take_back(s, &undo);
        }
    }
}

static void descend(struct search *s)
{
    struct score at = judge(s);
    uint32_t quiet = 0, i = 0;
    while (quiet < s->candidate_count && !is_over(s)) {
        uint32_t a = s->candidates[i];
        bool improved = false;
        static const uint8_t tries[] = {CHOICE_KEEP, CHOICE_SWAP, CHOICE_RECOMPUTE,
                                        CHOICE_RECOMPUTE | CHOICE_AGAIN,
                                        CHOICE_SWAP | CHOICE_AGAIN};
        for (uint32_t k = 0; k < sizeof(tries); k++) {
            struct undo undo = {.count = 0};
            if (tries[k] == s->choices[a] ||
                (CHOICE_KIND(tries[k]) == CHOICE_RECOMPUTE && !s->problem->recomputable[a])) {
                continue;
            }
            set_choice(s, &undo, a, tries[k]);
            struct score next = judge(s);
            if (next.cost < at.cost) {
                at = next;
                improved = true;
            } else {
                take_back(s, &undo);
            }
        }
        quiet = improved ? 0 : quiet + 1;
        i = i + 1 == s->candidate_count ? 0 : i + 1;
    }
}

/* ---- starts ---- */

enum start { START_RELAXED, START_KEEP, START_SWAP, START_RECOMPUTE, START_BEST };

/* The walk's legs: where each begins, its share of the work, its first temperature as a share of
 * the compute time. Short ones come first, so that a search that is stopped early has something
 * good. */
static const struct leg {
    enum start start;
    double share, hot;
} legs[] = {
    {START_RELAXED, 0.02, 2e-3}, {START_SWAP, 0.08, 1e-2},    {START_RECOMPUTE, 0.10, 2e-2},
    {START_BEST, 0.20, 1e-2},    {START_RELAXED, 0.30, 2e-2}, {START_BEST, 0.30, 5e-3},
};
#define COLD 1e-5

static void begin_from(struct search *s, enum start start, const struct relax_solution *relaxed)
{
    for (uint32_t i = 0; i < s->candidate_count; i++) {
        uint32_t a = s->candidates[i];
        bool can_recompute = s->problem->recomputable[a];
        uint8_t choice = CHOICE_KEEP;
        if (start == START_SWAP) {
            choice = s->problem->accesses[a].has_next ? CHOICE_SWAP : s->choices[a];
        } else if (start == START_RECOMPUTE) {
            choice = can_recompute ? CHOICE_RECOMPUTE : CHOICE_SWAP;
        } else if (start == START_RELAXED) {
            double keep = relaxed->keep[a], swap = relaxed->swap[a],
                   recompute = relaxed->recompute[a];
            choice = (uint8_t)(keep >= swap && keep >= recompute ? CHOICE_KEEP
                               : swap >= recompute               ? CHOICE_SWAP
                                                                 : CHOICE_RECOMPUTE);
            if (choice == CHOICE_RECOMPUTE && !can_recompute) {
                choice = CHOICE_SWAP;
            }
        }
        s->choices[a] = choice;
    }
    for (uint32_t round = 0; round < s->problem->model->tensor_count; round++) {
        const struct sequence *sequence = schedule_sequence(s->schedule, s->choices);
        s->result->work += sequence->op_count;
        if (sequence->missing_tensor == ATP_NONE || !hold_missing(s, sequence->missing_tensor)) {
            break;
        }
    }
}

static void walk(struct search *s, uint64_t work_end, double hot)
{
    double compute = (double)s->problem->compute_ns;
    anneal(s, work_end, hot * compute, COLD * compute);
}

static void walk_all(struct search *s, const struct relax_solution *relaxed, struct region *region)
{
    const uint32_t count = s->problem->access_count;
    const uint64_t begin = s->result->work, total = s->options->work_limit - begin;
    uint8_t *origin = REGION_NEW(region, uint8_t, count);
    memcpy(origin, s->choices, count);
    double done = 0;
    for (size_t i = 0; i < sizeof(legs) / sizeof(legs[0]) && !is_over(s); i++) {
        enum start start = legs[i].start;
        if (start == START_BEST && s->result->found) {
            memcpy(s->choices, s->result->choices, count);
        } else {
            memcpy(s->choices, origin, count);
            begin_from(s, start == START_RELAXED && relaxed == NULL ? START_KEEP : start, relaxed);
        }
        done += legs[i].share;
        walk(s, begin + (uint64_t)(done * (double)total), legs[i].hot);
    }
}

void search_run(const struct problem *problem, const struct relax_solution *relaxed,
                const struct search_options *options, struct region *region,
                struct search_result *out_result)
{
    struct search s = {.problem = problem, .options = options, .result = out_result, .random = 1};
    *out_result = (struct search_result){.missing_tensor = ATP_NONE, .excess_step = ATP_NONE};
    out_result->choices = REGION_NEW(region, uint8_t, problem->access_count);
    s.choices = REGION_NEW(region, uint8_t, problem->access_count);
    s.bound_ns = relaxed != NULL ? relaxed->bound_ns : problem->compute_ns;
    s.schedule = schedule_create(problem, region);
    s.candidate_count = search_candidates(problem, region, &s.candidates);
    search_default_choices(problem, s.choices);
    pin_choices(&s);
    out_result->candidate_count = s.candidate_count;
    double rate = (double)problem->profile->clock.d2h_bytes_per_second;
    s.price_per_byte = 4e9 / rate;
    (void)judge(&s);
    if (s.candidate_count == 0 || is_optimal(&s)) {
        return;
    }
    if (options->start != NULL) {
        memcpy(s.choices, options->start, problem->access_count);
        walk(&s, options->work_limit, 5e-3);
    } else {
        walk_all(&s, relaxed, region);
    }
    if (out_result->found) {
        memcpy(s.choices, out_result->choices, problem->access_count);
    }
    descend(&s);
}
