/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every policy at every batch size costs some milliseconds per batch size, so that all of a few
 * hundred are tried by sums of sizes. Placement costs more: it is asked only of the fastest, until
 * one of them can be placed.
 */
#include "peak_policy.h"

#include "baseline.h"
#include "fail.h"
#include "peak_range.h"
#include "problem.h"

#define TRIED_MAX   512U
#define PLACE_TRIES 16U
#define PLACE_WORK  UINT64_C(1000)

struct bench {
    struct peak *peak;
    struct region *region; /* for one batch size at a time */
    struct region_mark mark;
};

static enum atp_status list_batch(struct bench *b, uint32_t index, struct problem *problem,
                                  struct profile *profile, struct baseline_list *out_list,
                                  struct atp_error *err)
{
    const struct peak_options *options = &b->peak->options;
    uint64_t alignment = options->alignment_bytes;
    region_reset(b->region, b->mark);
    ATP_TRY(peak_profile_at(b->peak, b->peak->batches[index].batch_size, b->region, profile, NULL,
                            err));
    alignment = alignment == 0 ? problem_alignment(profile, b->region) : alignment;
    ATP_TRY(problem_build(profile, options->budget_bytes, alignment, b->region, problem, err));
    baseline_list_build(problem, b->region, out_list);
    return ATP_OK;
}

static void name_policies(const struct peak *peak, const struct baseline_list *list,
                          struct peak_policies *out)
{
    out->count = list->count;
    out->items = REGION_NEW(peak->region, struct peak_policy, list->count);
    out->rates = REGION_NEW(peak->region, double, (size_t)list->count * out->room);
    for (uint32_t p = 0; p < list->count; p++) {
        out->items[p] = (struct peak_policy){.name = list->items[p].name, .index = ATP_NONE};
    }
}

/* Sets the rates of one batch size and its policy_ns. */
static void note_rates(struct peak *peak, uint32_t index, const struct baseline_list *list,
                       struct peak_policies *out)
{
    struct peak_batch *batch = &peak->batches[index];
    batch->policy_ns = INT64_MAX;
    for (uint32_t p = 0; p < list->count; p++) {
        const struct baseline *item = &list->items[p];
        bool fits = item->verdict == BASELINE_FITS;
        out->rates[(size_t)p * out->room + out->tried_count] =
            fits ? peak_rate(batch, item->iteration_ns) : 0;
        if (fits && item->iteration_ns < batch->policy_ns) {
            batch->policy_ns = item->iteration_ns;
        }
    }
    out->tried[out->tried_count++] = index;
}

static enum atp_status rate_all(struct bench *bench, struct peak_policies *out,
                                struct atp_error *err)
{
    struct peak *peak = bench->peak;
    uint32_t stride = peak->count / TRIED_MAX + 1;
    out->room = peak->count / stride + 1;
    out->tried = REGION_NEW(peak->region, uint32_t, out->room);
    for (uint32_t i = 0; i < peak->count; i += stride) {
        struct profile profile;
        struct problem problem;
        struct baseline_list list;
        if (peak->batches[i].bound_ns == INT64_MAX) {
            continue;
        }
        ATP_TRY(list_batch(bench, i, &problem, &profile, &list, err));
        if (out->count == 0) {
            name_policies(peak, &list, out);
        }
        note_rates(peak, i, &list, out);
    }
    return ATP_OK;
}

enum atp_status peak_policies_rate(struct peak *peak, struct peak_policies *out_policies,
                                   struct atp_error *err)
{
    struct bench bench = {.peak = peak, .region = region_create()};
    bench.mark = region_mark(bench.region);
    *out_policies = (struct peak_policies){0};
    enum atp_status status = rate_all(&bench, out_policies, err);
    region_destroy(bench.region);
    return status;
}

static enum atp_status place_best(struct bench *bench, uint32_t policy,
                                  struct peak_policies *policies, struct atp_error *err)
{
    double *rates = &policies->rates[(size_t)policy * policies->room];
    for (uint32_t tries = 0; tries < PLACE_TRIES; tries++) {
        struct profile profile;
        struct problem problem;
        struct baseline_list list;
        struct atp_plan plan;
        uint32_t best = 0;
        for (uint32_t k = 1; k < policies->tried_count; k++) {
            best = rates[k] > rates[best] ? k : best;
        }
        if (!(rates[best] > 0)) {
            return ATP_OK;
        }
        ATP_TRY(list_batch(bench, policies->tried[best], &problem, &profile, &list, err));
        if (baseline_plan(&problem, &list.items[policy], PLACE_WORK, bench->region, &plan)) {
            policies->items[policy].index = policies->tried[best];
            policies->items[policy].iteration_ns = plan.predicted.iteration_ns;
            return ATP_OK;
        }
        rates[best] = 0;
    }
    return ATP_OK;
}

enum atp_status peak_policies_place(struct peak *peak, struct peak_policies *policies,
                                    struct atp_error *err)
{
    struct bench bench = {.peak = peak, .region = region_create()};
    enum atp_status status = ATP_OK;
    bench.mark = region_mark(bench.region);
    for (uint32_t p = 0; p < policies->count && status == ATP_OK; p++) {
        status = place_best(&bench, p, policies, err);
    }
    region_destroy(bench.region);
    return status;
}
