/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Simulated annealing from several starts, then descent. The starts that
 * count most at tight budgets are those made under pressure: they fit by construction, and their
 * prices say whether they lean on the copy engines or on reruns.
 */
#include "search.h"

#include "pressure.h"
#include "starts.h"
#include "walk.h"

#include <math.h>
#include <string.h>

#define PRESSED_COUNT 2U /* starts made under pressure that are walked from */

struct search {
    struct walk walk;
    const struct relax_solution *relaxed;
    struct selection origin;                 /* all gaps as they are without a decision */
    struct selection pressed[PRESSED_COUNT]; /* best first */
    double pressed_cost[PRESSED_COUNT];
};

/* ---- starts ---- */

/* A rerun misses an input: hold it through the gap in which it was dropped. */
static bool hold_missing(struct walk *w, uint32_t tensor)
{
    bool changed = false;
    for (uint32_t i = 0; i < w->candidate_count; i++) {
        uint32_t a = w->candidates[i];
        if (w->problem->accesses[a].tensor == tensor &&
            CHOICE_KIND(w->selection.choices[a]) == CHOICE_RECOMPUTE) {
            w->selection.choices[a] = CHOICE_SWAP;
            changed = true;
        }
    }
    return changed;
}

static struct score begin_from(struct search *s, const struct start *start)
{
    struct walk *w = &s->walk;
    selection_copy(w->problem, &s->origin, &w->selection);
    starts_fill(w->problem, start, w->candidates, w->candidate_count, w->selection.choices);
    for (uint32_t round = 0; round < w->problem->model->tensor_count; round++) {
        const struct sequence *sequence = schedule_sequence(w->schedule, &w->selection);
        w->result->work += sequence->work;
        if (sequence->missing_tensor == ATP_NONE || !hold_missing(w, sequence->missing_tensor)) {
            break;
        }
    }
    return walk_judge(w, HUGE_VAL);
}

/* The best number of segments and way to hold what crosses their borders. */
static void begin_from_segments(struct search *s)
{
    struct start best = {.kind = START_SEGMENTS, .segment_count = 1};
    double best_cost = HUGE_VAL;
    for (uint32_t count = 1; count <= 96 && !walk_is_over(&s->walk); count += 1 + count / 3) {
        for (uint32_t way = 0; way < 4; way++) {
            struct start start = {
                .kind = START_SEGMENTS,
                .segment_count = count,
                .held = way & 1 ? CHOICE_SWAP : CHOICE_KEEP,
                .elsewhere = way & 2 ? CHOICE_SWAP : CHOICE_KEEP,
            };
            double cost = begin_from(s, &start).cost;
            if (cost < best_cost) {
                best_cost = cost;
                best = start;
            }
        }
    }
    (void)begin_from(s, &best);
}

static void note_pressed(struct search *s, double cost)
{
    uint32_t at = PRESSED_COUNT;
    while (at > 0 && cost < s->pressed_cost[at - 1]) {
        at--;
    }
    if (at == PRESSED_COUNT) {
        return;
    }
    struct selection spare = s->pressed[PRESSED_COUNT - 1];
    for (uint32_t i = PRESSED_COUNT - 1; i > at; i--) {
        s->pressed[i] = s->pressed[i - 1];
        s->pressed_cost[i] = s->pressed_cost[i - 1];
    }
    s->pressed[at] = spare;
    s->pressed_cost[at] = cost;
    selection_copy(s->walk.problem, &s->walk.selection, &s->pressed[at]);
}

/* From plans that do nearly everything by swaps to plans that nearly only rerun. The first is made
 * even by a search that is stopped: it fits where hardly anything else does. */
static void press(struct search *s, uint64_t work_end)
{
    static const double swap_prices[] = {0.5, 0.1, 2, 0.2, 1, 0.3, 0.7, 0.05, 4, 1.4, 0.03, 10};
    struct walk *w = &s->walk;
    for (uint32_t i = 0; i < 4 * sizeof(swap_prices) / sizeof(swap_prices[0]); i++) {
        struct pressure pressure = {.swap_price = swap_prices[i / 4]};
        if (i > 0 && (walk_is_over(w) || w->result->work > work_end)) {
            return;
        }
        if (i % 2 == 1 && s->relaxed != NULL) {
            pressure.keep = s->relaxed->keep;
            pressure.swap = s->relaxed->swap;
            pressure.recompute = s->relaxed->recompute;
        }
        selection_copy(w->problem, &s->origin, &w->selection);
        for (uint32_t c = 0; c < w->candidate_count; c++) {
            w->selection.choices[w->candidates[c]] = CHOICE_LAZY;
        }
        w->selection.latest_first = i % 4 >= 2;
        const struct sequence *sequence = schedule_press(w->schedule, &pressure, &w->selection);
        w->result->work += sequence->work;
        note_pressed(s, walk_judge(w, HUGE_VAL).cost);
    }
}

/* ---- legs ---- */

/* Where each begins, its share of the work, its first temperature as a share of the compute
 * time. Short ones come first, so that a search that is stopped early has something good. */
enum leg_start { LEG_RELAXED, LEG_SEGMENTS, LEG_PRESSED, LEG_BEST };

struct leg {
    enum leg_start start;
    uint32_t rank; /* LEG_PRESSED */
    double share, hot;
};

static const struct leg legs[] = {
    {LEG_RELAXED, 0, 0.02, 3e-4}, {LEG_PRESSED, 0, 0.18, 3e-4}, {LEG_SEGMENTS, 0, 0.08, 5e-4},
    {LEG_PRESSED, 1, 0.12, 5e-4}, {LEG_RELAXED, 0, 0.25, 2e-3}, {LEG_BEST, 0, 0.15, 1e-3},
    {LEG_BEST, 0, 0.20, 3e-4},
};
#define LEG_COUNT   (sizeof(legs) / sizeof(legs[0]))
#define RESUMED_HOT 1e-3
/* Of the work; what is left is for the descent. */
#define PRESS_SHARE           0.08
#define LEGS_SHARE            0.87
#define COLD                  3e-5
#define WORK_PER_GAP_AND_STEP UINT64_C(10000)
#define PAIR_GAPS_MAX         20U
/* Shares of the relaxation from here on are a decision. */
#define DECIDED           0.98
#define UNDECIDED_TICKETS 9U

static void begin_leg(struct search *s, const struct leg *leg)
{
    struct walk *w = &s->walk;
    if (leg->start == LEG_RELAXED) {
        struct start from = {.kind = s->relaxed != NULL ? START_RELAXED : START_KEEP,
                             .relaxed = s->relaxed};
        (void)begin_from(s, &from);
    } else if (leg->start == LEG_BEST && w->result->fit_ns > 0) {
        selection_copy(w->problem, &w->result->fit, &w->selection);
    } else if (leg->start == LEG_PRESSED && s->pressed_cost[leg->rank] < HUGE_VAL) {
        selection_copy(w->problem, &s->pressed[leg->rank], &w->selection);
    } else {
        begin_from_segments(s);
    }
}

static void descend_from_best(struct walk *w)
{
    if (w->result->fit_ns > 0) {
        selection_copy(w->problem, &w->result->fit, &w->selection);
    }
    walk_descend(w);
    if (w->candidate_count <= PAIR_GAPS_MAX && w->result->fit_ns > 0) {
        selection_copy(w->problem, &w->result->fit, &w->selection);
        walk_descend_in_pairs(w);
    }
}

static void walk_legs(struct search *s, uint64_t work)
{
    struct walk *w = &s->walk;
    const uint64_t begin = w->result->work;
    const double compute = (double)w->problem->compute_ns;
    double done = 0;
    for (size_t i = 0; i < LEG_COUNT && !walk_is_over(w); i++) {
        begin_leg(s, &legs[i]);
        done += legs[i].share;
        walk_anneal(w, begin + (uint64_t)(done * (double)work), legs[i].hot * compute,
                    COLD * compute);
    }
}

static void judge_baselines(struct search *s)
{
    const struct baseline_list *list = s->walk.options->baselines;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        if (list->items[i].verdict == BASELINE_FITS) {
            memcpy(s->walk.selection.choices, list->items[i].choices,
                   s->walk.problem->access_count);
            (void)walk_judge(&s->walk, HUGE_VAL);
        }
    }
}

/* Small problems are walked through long before the limit. */
static uint64_t limit_work(const struct walk *w)
{
    uint64_t enough =
        WORK_PER_GAP_AND_STEP * (w->candidate_count + 4) * w->problem->model->step_count;
    return enough < w->options->work_limit ? enough : w->options->work_limit;
}

static void search_from_starts(struct search *s, struct region *region)
{
    struct walk *w = &s->walk;
    const uint64_t work = limit_work(w);
    s->origin = selection_create(w->problem, region);
    selection_copy(w->problem, &w->selection, &s->origin);
    for (uint32_t i = 0; i < PRESSED_COUNT; i++) {
        s->pressed[i] = selection_create(w->problem, region);
        s->pressed_cost[i] = HUGE_VAL;
    }
    judge_baselines(s);
    if (w->options->known != NULL) {
        selection_copy(w->problem, w->options->known, &w->selection);
        (void)walk_judge(w, HUGE_VAL);
    }
    press(s, w->result->work + (uint64_t)(PRESS_SHARE * (double)work));
    walk_legs(s, (uint64_t)(LEGS_SHARE * (double)work));
}

/* Where the relaxation is undecided, looking again and again pays most. */
static void hand_out_tickets(struct walk *w, const struct relax_solution *relaxed,
                             struct region *region)
{
    w->tickets = REGION_NEW(region, uint32_t, (size_t)w->candidate_count * UNDECIDED_TICKETS);
    for (uint32_t i = 0; i < w->candidate_count; i++) {
        uint32_t a = w->candidates[i], count = 1;
        if (relaxed != NULL && relaxed->keep[a] < DECIDED && relaxed->swap[a] < DECIDED &&
            relaxed->recompute[a] < DECIDED) {
            count = UNDECIDED_TICKETS;
        }
        for (uint32_t k = 0; k < count; k++) {
            w->tickets[w->ticket_count++] = a;
        }
    }
}

void search_run(const struct problem *problem, const struct relax_solution *relaxed,
                const struct search_options *options, struct region *region,
                struct search_result *out_result)
{
    struct search s = {.relaxed = relaxed};
    struct walk *w = &s.walk;
    *out_result = (struct search_result){.missing_tensor = ATP_NONE, .excess_step = ATP_NONE};
    out_result->selection = selection_create(problem, region);
    out_result->fit = selection_create(problem, region);
    walk_create(problem, options, out_result, region, w);
    w->bound_ns = relaxed != NULL ? relaxed->bound_ns : problem->compute_ns;
    out_result->candidate_count = w->candidate_count;
    if (w->candidate_count == 0) {
        (void)walk_judge(w, HUGE_VAL);
        return;
    }
    hand_out_tickets(w, relaxed, region);
    if (options->start != NULL) {
        const double compute = (double)problem->compute_ns;
        selection_copy(problem, options->start, &w->selection);
        walk_anneal(w, options->work_limit / 8 * 7, RESUMED_HOT * compute, COLD * compute);
    } else {
        (void)walk_judge(w, HUGE_VAL);
        search_from_starts(&s, region);
    }
    descend_from_best(w);
}
