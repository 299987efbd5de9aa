/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Simulated annealing from several starts, with memory beyond the limit priced instead of
 * forbidden, so that a step through an unfit plan can lead to a better fit one; then descent to a
 * local optimum. All random numbers come from a fixed seed, and work is counted in scheduled ops,
 * so the result depends on the input alone.
 */
#include "search.h"

#include "candidates.h"
#include "starts.h"

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
    uint64_t work_limit;
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
    return s->result->work >= s->work_limit || is_optimal(s) ||
           (s->options->stop != NULL && *s->options->stop != 0);
}

static void pin_choices(struct search *s)
{
    uint32_t kept = 0;
    for (uint32_t a = 0; a < s->problem->access_count; a++) {
        (void)candidates_is_pinned(s->problem, a, &s->choices[a]);
    }
    for (uint32_t i = 0; i < s->candidate_count; i++) {
        uint8_t choice;
        if (!candidates_is_pinned(s->problem, s->candidates[i], &choice)) {
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
        bool is_free = !candidates_is_pinned(s->problem, a, &pinned);
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

static const uint8_t all_choices[] = {CHOICE_KEEP, CHOICE_SWAP, CHOICE_RECOMPUTE,
                                      CHOICE_RECOMPUTE | CHOICE_AGAIN, CHOICE_SWAP | CHOICE_AGAIN};

#define CHOICE_COUNT (sizeof(all_choices) / sizeof(all_choices[0]))

static bool may_choose(const struct search *s, uint32_t a, uint8_t choice)
{
    return choice != s->choices[a] &&
           (CHOICE_KIND(choice) != CHOICE_RECOMPUTE || s->problem->recomputable[a]);
}

/* Keeps the choices where they are better, takes the move back where not. */
static bool accept(struct search *s, struct score *at, const struct undo *undo)
{
    struct score next = judge(s);
    if (next.cost < at->cost && (next.fits || !at->fits)) {
        *at = next;
        return true;
    }
    take_back(s, undo);
    return false;
}

static void descend(struct search *s)
{
    struct score at = judge(s);
    uint32_t quiet = 0, i = 0;
    while (quiet < s->candidate_count && !is_over(s)) {
        uint32_t a = s->candidates[i];
        bool improved = false;
        for (uint32_t k = 0; k < CHOICE_COUNT; k++) {
            if (may_choose(s, a, all_choices[k])) {
                struct undo undo = {.count = 0};
                set_choice(s, &undo, a, all_choices[k]);
                improved = accept(s, &at, &undo) || improved;
            }
        }
        quiet = improved ? 0 : quiet + 1;
        i = i + 1 == s->candidate_count ? 0 : i + 1;
    }
}

/* Two gaps at once: affordable where there are few, and then it closes what single moves cannot. */
static void descend_in_pairs(struct search *s)
{
    struct score at = judge(s);
    for (uint32_t i = 0; i < s->candidate_count * s->candidate_count; i++) {
        uint32_t a = s->candidates[i / s->candidate_count];
        uint32_t b = s->candidates[i % s->candidate_count];
        for (uint32_t k = 0; k < CHOICE_COUNT * CHOICE_COUNT && a < b; k++) {
            uint8_t choice_a = all_choices[k / CHOICE_COUNT];
            uint8_t choice_b = all_choices[k % CHOICE_COUNT];
            if (may_choose(s, a, choice_a) && may_choose(s, b, choice_b)) {
                struct undo undo = {.count = 0};
                set_choice(s, &undo, a, choice_a);
                set_choice(s, &undo, b, choice_b);
                (void)accept(s, &at, &undo);
            }
        }
    }
}

/* ---- starts ---- */

/* The walk's legs: where each begins, its share of the work, its first temperature as a share of
 * the compute time. Short ones come first, so that a search that is stopped early has something
 * good. */
enum leg_start { LEG_RELAXED, LEG_SWAP, LEG_RECOMPUTE, LEG_SEGMENTS, LEG_BEST };

static const struct leg {
    enum leg_start start;
    double share, hot;
} legs[] = {
    {LEG_RELAXED, 0.02, 2e-3},   {LEG_SWAP, 0.06, 1e-2}, {LEG_SEGMENTS, 0.08, 5e-3},
    {LEG_RECOMPUTE, 0.08, 2e-2}, {LEG_BEST, 0.18, 1e-2}, {LEG_RELAXED, 0.29, 2e-2},
    {LEG_BEST, 0.29, 5e-3},
};
#define COLD                  1e-5
#define WORK_PER_GAP_AND_STEP UINT64_C(3000)
#define PAIR_GAPS_MAX         20U

static struct score begin_from(struct search *s, const struct start *start, const uint8_t *origin)
{
    memcpy(s->choices, origin, s->problem->access_count);
    starts_fill(s->problem, start, s->candidates, s->candidate_count, s->choices);
    for (uint32_t round = 0; round < s->problem->model->tensor_count; round++) {
        const struct sequence *sequence = schedule_sequence(s->schedule, s->choices);
        s->result->work += sequence->op_count;
        if (sequence->missing_tensor == ATP_NONE || !hold_missing(s, sequence->missing_tensor)) {
            break;
        }
    }
    return judge(s);
}

/* The best number of segments and way to hold what crosses their borders. */
static void begin_from_segments(struct search *s, const uint8_t *origin)
{
    struct start best = {.kind = START_SEGMENTS, .segment_count = 1};
    double best_cost = HUGE_VAL;
    for (uint32_t count = 1; count <= 96 && !is_over(s); count += 1 + count / 3) {
        for (uint32_t way = 0; way < 4; way++) {
            struct start start = {
                .kind = START_SEGMENTS,
                .segment_count = count,
                .held = way & 1 ? CHOICE_SWAP : CHOICE_KEEP,
                .elsewhere = way & 2 ? CHOICE_SWAP : CHOICE_KEEP,
            };
            double cost = begin_from(s, &start, origin).cost;
            if (cost < best_cost) {
                best_cost = cost;
                best = start;
            }
        }
    }
    (void)begin_from(s, &best, origin);
}

static void begin_leg(struct search *s, enum leg_start start, const struct relax_solution *relaxed,
                      const uint8_t *origin)
{
    static const enum start_kind kinds[] = {
        [LEG_RELAXED] = START_RELAXED, [LEG_SWAP] = START_SWAP, [LEG_RECOMPUTE] = START_RECOMPUTE};
    if (start == LEG_BEST && s->result->found) {
        memcpy(s->choices, s->result->choices, s->problem->access_count);
    } else if (start == LEG_BEST || start == LEG_SEGMENTS) {
        begin_from_segments(s, origin);
    } else {
        struct start from = {.kind = kinds[start], .relaxed = relaxed};
        if (from.kind == START_RELAXED && relaxed == NULL) {
            from.kind = START_KEEP;
        }
        (void)begin_from(s, &from, origin);
    }
}

static void walk(struct search *s, uint64_t work_end, double hot)
{
    double compute = (double)s->problem->compute_ns;
    anneal(s, work_end, hot * compute, COLD * compute);
}

static void walk_all(struct search *s, const struct relax_solution *relaxed, const uint8_t *origin)
{
    const uint64_t begin = s->result->work;
    const double total = begin < s->work_limit ? (double)(s->work_limit - begin) : 0;
    double done = 0;
    for (size_t i = 0; i < sizeof(legs) / sizeof(legs[0]) && !is_over(s); i++) {
        begin_leg(s, legs[i].start, relaxed, origin);
        done += legs[i].share;
        walk(s, begin + (uint64_t)(done * total), legs[i].hot);
    }
}

static void judge_baselines(struct search *s)
{
    const struct baseline_list *list = s->options->baselines;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        if (list->items[i].verdict == BASELINE_FITS) {
            memcpy(s->choices, list->items[i].choices, s->problem->access_count);
            (void)judge(s);
        }
    }
}

/* Small problems are walked through long before the limit. */
static uint64_t limit_work(const struct search *s)
{
    uint64_t enough =
        WORK_PER_GAP_AND_STEP * (s->candidate_count + 4) * s->problem->model->step_count;
    return enough < s->options->work_limit ? enough : s->options->work_limit;
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
    s.candidate_count = candidates_find(problem, region, &s.candidates);
    candidates_default(problem, s.choices);
    pin_choices(&s);
    out_result->candidate_count = s.candidate_count;
    s.work_limit = limit_work(&s);
    double rate = (double)problem->profile->clock.d2h_bytes_per_second;
    s.price_per_byte = 4e9 / rate;
    (void)judge(&s);
    if (s.candidate_count == 0 || is_optimal(&s)) {
        return;
    }
    uint8_t *origin = REGION_NEW(region, uint8_t, problem->access_count);
    memcpy(origin, s.choices, problem->access_count);
    judge_baselines(&s);
    if (options->start != NULL) {
        memcpy(s.choices, options->start, problem->access_count);
        walk(&s, s.work_limit / 2, 5e-3);
    }
    if (!out_result->found || options->start == NULL) {
        walk_all(&s, relaxed, origin);
    }
    if (out_result->found) {
        memcpy(s.choices, out_result->choices, problem->access_count);
    }
    descend(&s);
    if (s.candidate_count <= PAIR_GAPS_MAX && out_result->found && !is_optimal(&s)) {
        descend_in_pairs(&s);
    }
}
