/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The batch size that could be fastest by its bound is the rival of the best plan. It is relaxed;
 * when that does not exclude it, a better plan has to be found, and where is another question: near
 * the least budget bounds promise what no plan keeps. A plan lies between the model's bound and the
 * fastest simple policy, and neighbouring plans at a like share of the way. So the next plan is
 * made where that promises most, or, when that is less than what there is, in the middle of the
 * widest stretch without a plan. The throughput of a bound is nearly convex in the reciprocal batch
 * size, but nothing here relies on it.
 */
#include "peak.h"

#include "fail.h"
#include "peak_range.h"
#include "problem.h"
#include "progress.h"
#include "relax.h"
#include "solve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Counted work of a relaxation that only thins out the field; a plan does all of its own. */
#define SIMPLEX_WORK UINT64_C(10000)
/* Of the model's bound: what a batch size counts as at which no policy fits. */
#define HOPELESS_EXCESS 9.0
/* As long as no share is known. */
#define FIRST_SHARE 0.5

double peak_rate(const struct peak_batch *batch, int64_t iteration_ns)
{
    double ns = (double)batch->repeats * (double)iteration_ns + (double)batch->update_ns;
    if (iteration_ns == INT64_MAX) {
        return 0;
    }
    double samples = (double)batch->batch_size * (double)batch->repeats;
    return samples * 1e9 / fmax(ns, 1);
}

static bool is_stopped(const struct peak *peak)
{
    return peak->options.stop != NULL && *peak->options.stop != 0;
}

static double best_rate(const struct peak *peak)
{
    const struct peak_batch *best = &peak->batches[peak->best == ATP_NONE ? 0 : peak->best];
    return peak->best == ATP_NONE ? 0 : peak_rate(best, best->predicted.iteration_ns);
}

/* What holds at one batch size holds at all larger ones while everything grows. */
static void spread_bound(struct peak *peak, uint32_t index)
{
    for (uint32_t i = index; i + 1 < peak->count && peak->batches[i].grows; i++) {
        if (peak->batches[i + 1].bound_ns >= peak->batches[i].bound_ns) {
            break;
        }
        peak->batches[i + 1].bound_ns = peak->batches[i].bound_ns;
    }
}

static void raise_bound(struct peak *peak, uint32_t index, int64_t bound_ns)
{
    if (bound_ns > peak->batches[index].bound_ns) {
        peak->batches[index].bound_ns = bound_ns;
        spread_bound(peak, index);
    }
}

static enum atp_status relax_batch(struct peak *peak, uint32_t index, struct atp_error *err)
{
    struct region_mark mark = region_mark(peak->region);
    struct profile profile;
    struct problem problem;
    struct relax_solution relaxed;
    uint64_t effort = peak->options.effort == 0 ? 1 : peak->options.effort;
    const struct relax_options options = {.iteration_limit = effort * SIMPLEX_WORK,
                                          .stop = peak->options.stop};
    /* At alignment 1: the bound of a plan holds at its own alignment and coarser ones alone. */
    enum atp_status status =
        peak_profile_at(peak, peak->batches[index].batch_size, peak->region, &profile, NULL, err);
    if (status == ATP_OK) {
        status =
            problem_build(&profile, peak->options.budget_bytes, 1, peak->region, &problem, err);
    }
    if (status == ATP_OK) {
        status = relax_solve(&problem, &options, peak->region, &relaxed, err);
    }
    if (status == ATP_OK) {
        peak->batches[index].relaxed = true;
        peak->relaxation_count++;
        raise_bound(peak, index, relaxed.bound_ns);
    }
    region_reset(peak->region, mark);
    return status;
}

static void take_plan(struct peak *peak, uint32_t index, const struct atp_plan *plan,
                      struct region *region)
{
    struct peak_batch *batch = &peak->batches[index];
    double before = best_rate(peak);
    batch->has_plan = true;
    batch->predicted = plan->predicted;
    batch->arena_bytes = plan->arena_bytes;
    batch->host_arena_bytes = plan->host_arena_bytes;
    if (peak->best == ATP_NONE || peak_rate(batch, batch->predicted.iteration_ns) > before) {
        region_destroy(peak->best_region);
        peak->best = index;
        peak->best_plan = *plan;
        peak->best_region = region;
    } else {
        region_destroy(region);
    }
}

static enum atp_status solve_batch(struct peak *peak, const struct profile *profile,
                                   struct region *region, struct atp_plan *out_plan,
                                   struct atp_error *err)
{
    struct solve_report report = {0};
    char label[32];
    (void)snprintf(label, sizeof(label), "batch %" PRIu64 " ", profile->model.batch_size);
    struct progress_line line = progress_begin(label);
    const struct solve_options options = {
        .budget_bytes = peak->options.budget_bytes,
        .alignment_bytes = peak->options.alignment_bytes,
        .effort = peak->options.effort,
        .stop = peak->options.stop,
        .progress = peak->options.shows_progress ? progress_draw : NULL,
        .progress_ctx = &line,
    };
    enum atp_status status = solve(profile, &options, region, out_plan, &report, err);
    progress_wipe(&line);
    out_plan->time_limited = status == ATP_OK && (out_plan->time_limited || report.stopped);
    return status;
}

static enum atp_status plan_batch(struct peak *peak, uint32_t index, struct atp_error *err)
{
    struct region *region = region_create();
    struct profile profile;
    struct atp_plan plan = {0};
    enum atp_status status =
        peak_profile_at(peak, peak->batches[index].batch_size, region, &profile, NULL, err);
    if (status == ATP_OK) {
        status = solve_batch(peak, &profile, region, &plan, err);
    }
    if (status == ATP_OK) {
        take_plan(peak, index, &plan, region);
    } else {
        region_destroy(region);
    }
    if (status == ATP_OK || status == ATP_ERR_INFEASIBLE || status == ATP_ERR_LIMIT) {
        peak->batches[index].planned = true;
        peak->plan_count++;
        return ATP_OK;
    }
    return status;
}

enum atp_status peak_look(struct peak *peak, uint32_t index, struct atp_error *err)
{
    if (peak->batches[index].bound_ns == INT64_MAX || is_stopped(peak)) {
        return ATP_OK;
    }
    if (!peak->batches[index].relaxed) {
        ATP_TRY(relax_batch(peak, index, err));
    }
    return peak->batches[index].planned ? ATP_OK : plan_batch(peak, index, err);
}

/* The batch size but `except` that could be fastest by its bound. */
static uint32_t find_rival(const struct peak *peak, uint32_t except)
{
    uint32_t rival = ATP_NONE;
    double most = 0;
    for (uint32_t i = 0; i < peak->count; i++) {
        double rate = peak_rate(&peak->batches[i], peak->batches[i].bound_ns);
        if (i != except && rate > most) {
            rival = i;
            most = rate;
        }
    }
    return rival;
}

/* From the model's bound to what needs no search. */
static double policy_excess_ns(const struct peak_batch *batch)
{
    double model_ns = (double)batch->model.bound_ns;
    bool is_known = batch->policy_ns > 0 && batch->policy_ns < INT64_MAX;
    return is_known ? (double)batch->policy_ns - model_ns : HOPELESS_EXCESS * model_ns;
}

/* The share of the way from the model's bound to the policies that a plan takes, where it is known.
 */
static bool find_share(const struct peak_batch *batch, double *out_share)
{
    double whole_ns = policy_excess_ns(batch);
    if (!batch->planned || !(whole_ns > 0)) {
        return false;
    }
    double plan_ns = (double)(batch->predicted.iteration_ns - batch->model.bound_ns);
    *out_share = batch->has_plan ? plan_ns / whole_ns : 1;
    return true;
}

/* Of those whose share is known. */
struct neighbours {
    uint32_t left, right; /* ATP_NONE: there is none */
    double left_share, right_share;
};

static double guess_rate(const struct peak *peak, uint32_t index, const struct neighbours *near)
{
    const struct peak_batch *batch = &peak->batches[index];
    double share = near->left != ATP_NONE    ? near->left_share
                   : near->right != ATP_NONE ? near->right_share
                                             : FIRST_SHARE;
    if (near->left != ATP_NONE && near->right != ATP_NONE) {
        double left = (double)peak->batches[near->left].batch_size;
        double right = (double)peak->batches[near->right].batch_size;
        double part = ((double)batch->batch_size - left) / (right - left);
        share += part * (near->right_share - near->left_share);
    }
    double plan_ns = (double)batch->model.bound_ns + share * policy_excess_ns(batch);
    return peak_rate(batch, plan_ns < 0x1p62 ? (int64_t)plan_ns : INT64_MAX);
}

/* How far a batch size is from those that are planned, as a factor. */
static double solitude(const struct peak *peak, uint32_t index, const struct neighbours *near)
{
    double size = (double)peak->batches[index].batch_size, distance = INFINITY;
    if (near->left != ATP_NONE) {
        distance = fmin(distance, size / (double)peak->batches[near->left].batch_size);
    }
    if (near->right != ATP_NONE) {
        distance = fmin(distance, (double)peak->batches[near->right].batch_size / size);
    }
    return distance;
}

/* Where to plan next: ATP_NONE when all batch sizes that are not excluded are planned. */
static uint32_t find_promise(const struct peak *peak)
{
    uint32_t promise = ATP_NONE, lonely = ATP_NONE, right = 0;
    double most = best_rate(peak), farthest = 0, wanted = most * (1 + peak->options.gap);
    struct neighbours near = {ATP_NONE, ATP_NONE, 0, 0};
    for (uint32_t i = 0; i < peak->count; i++) {
        const struct peak_batch *batch = &peak->batches[i];
        if (find_share(batch, &near.left_share)) {
            near.left = i;
        }
        if (batch->planned || peak_rate(batch, batch->bound_ns) <= wanted) {
            continue;
        }
        for (right = right > i ? right : i + 1;
             right < peak->count && !find_share(&peak->batches[right], &near.right_share);
             right++) {
        }
        near.right = right < peak->count ? right : ATP_NONE;
        double rate = guess_rate(peak, i, &near), distance = solitude(peak, i, &near);
        if (rate > most) {
            promise = i;
            most = rate;
        }
        if (lonely == ATP_NONE || distance > farthest) {
            lonely = i;
            farthest = distance;
        }
    }
    return promise != ATP_NONE ? promise : lonely;
}

static void prove(struct peak *peak)
{
    peak->rival = find_rival(peak, peak->best);
    peak->proven_gap = peak->best == ATP_NONE ? INFINITY : 0;
    if (peak->rival != ATP_NONE && peak->best != ATP_NONE) {
        const struct peak_batch *rival = &peak->batches[peak->rival];
        double gap = peak_rate(rival, rival->bound_ns) / best_rate(peak) - 1;
        peak->proven_gap = gap > 0 ? gap : 0;
    }
}

enum atp_status peak_search(struct peak *peak, struct atp_error *err)
{
    enum atp_status status = ATP_OK;
    for (prove(peak); status == ATP_OK && !is_stopped(peak); prove(peak)) {
        if (peak->proven_gap <= peak->options.gap) {
            break;
        }
        if (peak->best != ATP_NONE && !peak->batches[peak->rival].relaxed) {
            status = relax_batch(peak, peak->rival, err);
            continue;
        }
        uint32_t next = find_promise(peak);
        if (next == ATP_NONE || peak->search_plan_count == peak->options.plan_limit) {
            break;
        }
        status = plan_batch(peak, next, err);
        peak->search_plan_count++;
    }
    return status;
}

uint32_t peak_find(const struct peak *peak, uint64_t batch_size)
{
    uint32_t found = ATP_NONE;
    for (uint32_t i = 0; i < peak->count && peak->batches[i].batch_size <= batch_size; i++) {
        found = i;
    }
    return found;
}

uint32_t peak_largest_unplanned(const struct peak *peak)
{
    uint32_t found = ATP_NONE;
    for (uint32_t i = 0; i < peak->count; i++) {
        if (peak->batches[i].model.keep_all_bytes <= peak->options.budget_bytes) {
            found = i;
        }
    }
    return found;
}

uint32_t peak_largest_planned(const struct peak *peak)
{
    uint32_t found = ATP_NONE;
    for (uint32_t i = 0; i < peak->count; i++) {
        const struct peak_batch *batch = &peak->batches[i];
        bool is_hopeless = batch->planned && !batch->has_plan;
        found = batch->model.bound_ns != INT64_MAX && !is_hopeless ? i : found;
    }
    return found;
}

void peak_finish(struct peak *peak)
{
    region_destroy(peak->best_region);
    peak->best_region = NULL;
}
