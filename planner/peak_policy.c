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

struct contest {
    struct peak *peak;
    struct region *region; /* for one batch size at a time */
    struct region_mark mark;
    uint32_t count, room;
    uint32_t *tried; /* indices of batch sizes */
    double *rates;   /* `room` for each policy; 0: does not fit */
    struct peak_policies *out;
};

static enum atp_status list_batch(struct contest *c, uint32_t index, struct problem *problem,
                                  struct profile *profile, struct baseline_list *out_list,
                                  struct atp_error *err)
{
    const struct peak_options *options = &c->peak->options;
    uint64_t alignment = options->alignment_bytes;
    region_reset(c->region, c->mark);
    ATP_TRY(peak_profile_at(c->peak, c->peak->batches[index].batch_size, c->region, profile, NULL,
                            err));
    alignment = alignment == 0 ? problem_alignment(profile, c->region) : alignment;
    ATP_TRY(problem_build(profile, options->budget_bytes, alignment, c->region, problem, err));
    baseline_list_build(problem, c->region, out_list);
    return ATP_OK;
}

static void name_policies(struct contest *c, const struct baseline_list *list)
{
    c->out->count = list->count;
    c->out->items = REGION_NEW(c->peak->region, struct peak_policy, list->count);
    c->rates = REGION_NEW(c->peak->region, double, (size_t)list->count * c->room);
    for (uint32_t p = 0; p < list->count; p++) {
        c->out->items[p] = (struct peak_policy){.name = list->items[p].name, .index = ATP_NONE};
    }
}

static enum atp_status rate_batches(struct contest *c, uint32_t end, struct atp_error *err)
{
    const struct peak *peak = c->peak;
    uint32_t stride = end / TRIED_MAX + 1;
    c->room = end / stride + 1;
    c->tried = REGION_NEW(peak->region, uint32_t, c->room);
    for (uint32_t i = 0; i < end; i += stride) {
        struct profile profile;
        struct problem problem;
        struct baseline_list list;
        if (peak->batches[i].bound_ns == INT64_MAX) {
            continue;
        }
        ATP_TRY(list_batch(c, i, &problem, &profile, &list, err));
        if (c->count == 0) {
            name_policies(c, &list);
        }
        for (uint32_t p = 0; p < list.count; p++) {
            bool fits = list.items[p].verdict == BASELINE_FITS;
            c->rates[(size_t)p * c->room + c->count] =
                fits ? peak_rate(&peak->batches[i], list.items[p].iteration_ns) : 0;
        }
        c->tried[c->count++] = i;
    }
    return ATP_OK;
}

static enum atp_status place_best(struct contest *c, uint32_t policy, struct atp_error *err)
{
    double *rates = &c->rates[(size_t)policy * c->room];
    for (uint32_t tries = 0; tries < PLACE_TRIES; tries++) {
        struct profile profile;
        struct problem problem;
        struct baseline_list list;
        struct atp_plan plan;
        uint32_t best = 0;
        for (uint32_t k = 1; k < c->count; k++) {
            best = rates[k] > rates[best] ? k : best;
        }
        if (!(rates[best] > 0)) {
            return ATP_OK;
        }
        ATP_TRY(list_batch(c, c->tried[best], &problem, &profile, &list, err));
        if (baseline_plan(&problem, &list.items[policy], PLACE_WORK, c->region, &plan)) {
            c->out->items[policy].index = c->tried[best];
            c->out->items[policy].iteration_ns = plan.predicted.iteration_ns;
            return ATP_OK;
        }
        rates[best] = 0;
    }
    return ATP_OK;
}

enum atp_status peak_policies_find(struct peak *peak, struct peak_policies *out_policies,
                                   struct atp_error *err)
{
    uint32_t largest = peak_largest_planned(peak);
    struct contest c = {.peak = peak, .region = region_create(), .out = out_policies};
    *out_policies = (struct peak_policies){0};
    c.mark = region_mark(c.region);
    enum atp_status status = rate_batches(&c, largest == ATP_NONE ? 0 : largest + 1, err);
    for (uint32_t p = 0; c.rates != NULL && p < out_policies->count && status == ATP_OK; p++) {
        status = place_best(&c, p, err);
    }
    out_policies->tried = c.count;
    region_destroy(c.region);
    return status;
}
