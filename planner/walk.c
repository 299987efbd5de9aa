/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory beyond the limit is priced instead of forbidden, so that a step through an unfit plan can
 * lead to a better fit one. Most moves are refused; a move whose reruns alone are too much is
 * refused before its copies are played on the clock.
 */
#include "walk.h"

#include "candidates.h"

#include <math.h>
#include <string.h>

#define AGAIN_COUNT 5U /* flags */
#define RERUNS_MAX  9e18
#define TRADE_TRIES 16U
/* Parts of the work limit; some sqrt(2 * this) selections are offered in vain at most. */
#define ACCEPT_SPACING 512U
/* In the end, what does not fit must go. */
#define PRICE_WEIGHT_END 300.0

struct change {
    uint32_t access;
    float weight;
    uint8_t choice;
};

static uint64_t next_random(struct walk *w)
{
    uint64_t z = w->random += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static uint32_t random_below(struct walk *w, uint32_t count)
{
    return (uint32_t)((next_random(w) >> 32) * count >> 32);
}

static double random_unit(struct walk *w)
{
    return (double)(next_random(w) >> 11) * 0x1p-53;
}

/* No plan is faster than the bound. */
static bool is_optimal(const struct walk *w)
{
    return w->result->found && w->result->iteration_ns <= w->bound_ns;
}

bool walk_is_over(const struct walk *w)
{
    return w->result->work >= w->options->work_limit || is_optimal(w) ||
           (w->options->stop != NULL && *w->options->stop != 0);
}

static void pin_choices(struct walk *w)
{
    uint32_t kept = 0;
    for (uint32_t a = 0; a < w->problem->access_count; a++) {
        (void)candidates_is_pinned(w->problem, a, &w->selection.choices[a]);
    }
    for (uint32_t i = 0; i < w->candidate_count; i++) {
        uint8_t choice;
        if (!candidates_is_pinned(w->problem, w->candidates[i], &choice)) {
            w->candidates[kept++] = w->candidates[i];
        }
    }
    w->candidate_count = kept;
}

/* Of memory that is not there: what copying costs, or, where links are so slow that copies never
 * pay, what many reruns cost. */
static double price_per_byte(const struct problem *problem)
{
    double copies = 4e9 / (double)problem->profile->clock.d2h_bytes_per_second;
    double reruns = 4 * (double)problem->compute_ns / (double)(problem->peak_bytes + 1);
    return copies < reruns ? copies : reruns;
}

void walk_create(const struct problem *problem, const struct search_options *options,
                 struct search_result *result, struct region *region, struct walk *out_walk)
{
    *out_walk = (struct walk){
        .problem = problem,
        .options = options,
        .result = result,
        .schedule = schedule_create(problem, region),
        .selection = selection_create(problem, region),
        .price_per_byte = price_per_byte(problem),
        .price_weight = 1,
        .bound_ns = problem->compute_ns,
        .random = 1 + options->seed,
    };
    out_walk->candidate_count = candidates_find(problem, region, &out_walk->candidates);
    out_walk->changes = REGION_NEW(region, struct change, (size_t)out_walk->candidate_count + 2);
    candidates_default(problem, out_walk->selection.choices);
    pin_choices(out_walk);
    const int64_t *out_ns = schedule_copy_out_ns(out_walk->schedule);
    for (uint32_t a = 0; a < problem->access_count; a++) {
        out_walk->selection.weights[a] = (float)out_ns[problem->accesses[a].tensor];
    }
}

/* ---- judging ---- */

/* After n refusals the next offer waits for n times as much work as the first. */
static bool is_accepted(struct walk *w)
{
    const struct search_options *options = w->options;
    if (options->accept == NULL) {
        return true;
    }
    if (w->result->work < w->next_accept) {
        return false;
    }
    if (options->accept(options->accept_ctx, &w->selection)) {
        return true;
    }
    w->refused++;
    w->next_accept = w->result->work + w->refused * (options->work_limit / ACCEPT_SPACING);
    return false;
}

static void note_fit(struct walk *w, int64_t iteration_ns)
{
    struct search_result *result = w->result;
    if (result->fit_ns == 0 || iteration_ns < result->fit_ns) {
        result->fit_ns = iteration_ns;
        selection_copy(w->problem, &w->selection, &result->fit);
    }
    if ((!result->found || iteration_ns < result->iteration_ns) && is_accepted(w)) {
        result->found = true;
        result->iteration_ns = iteration_ns;
        selection_copy(w->problem, &w->selection, &result->selection);
        if (w->options->progress != NULL) {
            w->options->progress(w->options->progress_ctx, iteration_ns, result->work);
        }
    }
}

static void note_closest(struct walk *w, const struct sequence *sequence, uint64_t host_excess)
{
    struct search_result *result = w->result;
    if (result->found || (w->has_closest && sequence->excess_bytes + host_excess >=
                                                result->excess_bytes + result->host_excess_bytes)) {
        return;
    }
    w->has_closest = true;
    result->excess_bytes = sequence->excess_bytes;
    result->excess_step =
        sequence->excess_op == ATP_NONE ? ATP_NONE : sequence->ops[sequence->excess_op].step;
    result->host_excess_bytes = host_excess;
}

static struct score score_of(const struct walk *w, double ns, double price, bool fits)
{
    return (struct score){ns, price, ns + w->price_weight * price, fits};
}

struct score walk_judge(struct walk *w, double ceiling)
{
    const struct score none = {HUGE_VAL, HUGE_VAL, HUGE_VAL, false};
    double spare = ceiling - (double)w->problem->compute_ns;
    schedule_limit_reruns(w->schedule, spare < RERUNS_MAX ? (int64_t)spare : INT64_MAX);
    const struct sequence *sequence = schedule_sequence(w->schedule, &w->selection);
    schedule_limit_reruns(w->schedule, INT64_MAX);
    w->result->work += sequence->work;
    if (sequence->missing_tensor != ATP_NONE || sequence->too_long) {
        if (!w->result->found) {
            w->result->missing_tensor = sequence->missing_tensor;
        }
        return none;
    }
    double mean_excess = (double)sequence->excess_sum / sequence->op_count;
    double price = w->price_per_byte * ((double)sequence->excess_bytes + 4 * mean_excess);
    double busy = (double)(w->problem->compute_ns + sequence->rerun_ns);
    if (busy + w->price_weight * price > ceiling) {
        return score_of(w, busy, price, false);
    }
    const struct timeline *timeline = schedule_timeline(w->schedule, false);
    if (timeline->stuck) {
        return none;
    }
    uint64_t host_excess = timeline->host_bytes > w->problem->host_limit
                               ? timeline->host_bytes - w->problem->host_limit
                               : 0;
    bool fits = sequence->excess_bytes == 0 && host_excess == 0;
    price += w->price_per_byte * (double)host_excess;
    if (fits) {
        note_fit(w, timeline->iteration_ns);
    } else {
        note_closest(w, sequence, host_excess);
    }
    return score_of(w, (double)timeline->iteration_ns, price, fits);
}

/* ---- moves ---- */

static void set_gap(struct walk *w, uint32_t a, uint8_t choice, float weight)
{
    w->changes[w->change_count++] =
        (struct change){a, w->selection.weights[a], w->selection.choices[a]};
    w->selection.choices[a] = choice;
    w->selection.weights[a] = weight;
}

static void take_back(struct walk *w)
{
    while (w->change_count > 0) {
        const struct change *change = &w->changes[--w->change_count];
        w->selection.choices[change->access] = change->choice;
        w->selection.weights[change->access] = change->weight;
    }
}

static uint8_t possible(const struct walk *w, uint32_t a, uint8_t choice)
{
    bool is_impossible = CHOICE_KIND(choice) == CHOICE_RECOMPUTE && !w->problem->recomputable[a];
    return is_impossible ? (uint8_t)(choice - CHOICE_RECOMPUTE + CHOICE_SWAP) : choice;
}

static uint8_t random_choice(struct walk *w, uint32_t a)
{
    uint8_t old = w->selection.choices[a], choice;
    do {
        uint32_t draw = random_below(w, 16);
        choice = (uint8_t)(draw < 4 ? CHOICE_KEEP : draw < 10 ? CHOICE_SWAP : CHOICE_RECOMPUTE);
        if (choice != CHOICE_KEEP && draw % 3 == 0) {
            choice |= CHOICE_LAZY;
        } else if (draw % 6 == 4) {
            choice |= CHOICE_AGAIN;
        }
        choice = possible(w, a, choice);
    } while (choice == old && random_below(w, 4) != 0);
    return choice;
}

/* Drops it after one more of the reruns in the gap, or one less. */
static uint8_t random_again(struct walk *w, uint8_t choice)
{
    /* The first ones matter most. */
    uint32_t first = random_below(w, AGAIN_COUNT), second = random_below(w, AGAIN_COUNT);
    return choice ^ (uint8_t)(CHOICE_AGAIN_FIRST << (first < second ? first : second));
}

static float random_weight(struct walk *w, float weight)
{
    double exponent = random_unit(w) + random_unit(w) + random_unit(w) - 1.5;
    return (float)((double)weight * exp(3 * exponent));
}

/* Do both gaps pass over some step? */
static bool meet(const struct walk *w, uint32_t a, uint32_t b)
{
    const struct access *x = &w->problem->accesses[a], *y = &w->problem->accesses[b];
    uint32_t x_first = x->step == ATP_NONE ? 0 : x->step + 1;
    uint32_t y_first = y->step == ATP_NONE ? 0 : y->step + 1;
    uint32_t x_end = x->has_next ? x[1].step : UINT32_MAX;
    uint32_t y_end = y->has_next ? y[1].step : UINT32_MAX;
    return x_first < y_end && y_first < x_end;
}

static void trade_places(struct walk *w, uint32_t a)
{
    const struct selection *at = &w->selection;
    uint32_t b = w->tickets[random_below(w, w->ticket_count)];
    for (uint32_t tries = 0; tries < TRADE_TRIES; tries++) {
        if (at->choices[b] != at->choices[a] && meet(w, a, b)) {
            break;
        }
        b = w->tickets[random_below(w, w->ticket_count)];
    }
    uint8_t choice_a = possible(w, a, at->choices[b]), choice_b = possible(w, b, at->choices[a]);
    set_gap(w, a, choice_a, at->weights[a]);
    set_gap(w, b, choice_b, at->weights[b]);
}

/* One gap changes, or two trade places. */
static void random_move(struct walk *w)
{
    w->change_count = 0;
    uint32_t a = w->tickets[random_below(w, w->ticket_count)];
    uint32_t draw = random_below(w, 32);
    uint8_t choice = w->selection.choices[a];
    float weight = w->selection.weights[a];
    if (draw < 12) {
        trade_places(w, a);
    } else if (draw < 15) {
        set_gap(w, a, random_again(w, choice), weight);
    } else if (draw < 24 && (choice & CHOICE_LAZY) != 0) {
        set_gap(w, a, choice, random_weight(w, weight));
    } else {
        set_gap(w, a, random_choice(w, a), weight);
    }
}

void walk_anneal(struct walk *w, uint64_t work_end, double hot, double cold)
{
    struct score at = walk_judge(w, HUGE_VAL);
    uint64_t work_begin = w->result->work;
    while (!walk_is_over(w) && w->result->work < work_end) {
        double share = (double)(w->result->work - work_begin) / (double)(work_end - work_begin);
        double temperature = hot * pow(cold / hot, share);
        w->price_weight = pow(PRICE_WEIGHT_END, share * share);
        at = score_of(w, at.ns, at.price, at.fits);
        double ceiling = at.cost - temperature * log(random_unit(w) + 0x1p-60);
        random_move(w);
        struct score next = walk_judge(w, ceiling);
        if (next.cost <= ceiling && next.cost < HUGE_VAL) {
            at = next;
        } else {
            take_back(w);
        }
    }
    w->price_weight = 1;
}

static const uint8_t all_choices[] = {
    CHOICE_KEEP,
    CHOICE_SWAP,
    CHOICE_RECOMPUTE,
    CHOICE_KEEP | CHOICE_AGAIN,
    CHOICE_RECOMPUTE | CHOICE_AGAIN,
    CHOICE_SWAP | CHOICE_AGAIN,
    CHOICE_RECOMPUTE | CHOICE_LAZY,
    CHOICE_SWAP | CHOICE_LAZY,
};
#define CHOICE_COUNT (sizeof(all_choices) / sizeof(all_choices[0]))

static bool may_choose(const struct walk *w, uint32_t a, uint8_t choice)
{
    return choice != w->selection.choices[a] && possible(w, a, choice) == choice;
}

/* Keeps the move where it is better, takes it back where not. */
static bool accept(struct walk *w, struct score *at)
{
    struct score next = walk_judge(w, at->cost);
    if (next.cost < at->cost && (next.fits || !at->fits)) {
        *at = next;
        return true;
    }
    take_back(w);
    return false;
}

void walk_descend(struct walk *w)
{
    struct score at = walk_judge(w, HUGE_VAL);
    uint32_t quiet = 0, i = 0;
    while (quiet < w->candidate_count && !walk_is_over(w)) {
        uint32_t a = w->candidates[i];
        bool improved = false;
        for (uint32_t k = 0; k < CHOICE_COUNT + AGAIN_COUNT; k++) {
            uint8_t again = (uint8_t)(CHOICE_AGAIN_FIRST << (k - CHOICE_COUNT) % AGAIN_COUNT);
            uint8_t choice = k < CHOICE_COUNT ? all_choices[k] : w->selection.choices[a] ^ again;
            if (may_choose(w, a, choice)) {
                w->change_count = 0;
                set_gap(w, a, choice, w->selection.weights[a]);
                improved = accept(w, &at) || improved;
            }
        }
        quiet = improved ? 0 : quiet + 1;
        i = i + 1 == w->candidate_count ? 0 : i + 1;
    }
}

void walk_descend_in_pairs(struct walk *w)
{
    struct score at = walk_judge(w, HUGE_VAL);
    for (uint32_t i = 0; i < w->candidate_count * w->candidate_count && !is_optimal(w); i++) {
        uint32_t a = w->candidates[i / w->candidate_count];
        uint32_t b = w->candidates[i % w->candidate_count];
        for (uint32_t k = 0; k < CHOICE_COUNT * CHOICE_COUNT && a < b; k++) {
            uint8_t choice_a = all_choices[k / CHOICE_COUNT];
            uint8_t choice_b = all_choices[k % CHOICE_COUNT];
            if (may_choose(w, a, choice_a) && may_choose(w, b, choice_b)) {
                w->change_count = 0;
                set_gap(w, a, choice_a, w->selection.weights[a]);
                set_gap(w, b, choice_b, w->selection.weights[b]);
                (void)accept(w, &at);
            }
        }
    }
}
