/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The range ends, unless told otherwise, where the least budget leaves the budget: found by
 * doubling and halving, since a larger batch needs more memory in every sensible profile. So it
 * begins: a line through two measurements may fall below zero for small batch sizes.
 */
#include "peak_range.h"

#include "fail.h"
#include "micro.h"

#include <inttypes.h>

#define BATCH_MAX (UINT64_C(1) << 31)

static enum atp_status profile_of_file(void *ctx, uint64_t batch_size, struct region *region,
                                       struct profile *out_profile, struct atp_error *err)
{
    const struct peak_file *of = ctx;
    return profile_at_batch(of->file, batch_size, region, out_profile, err);
}

struct peak_source peak_file_source(struct peak_file *file)
{
    return (struct peak_source){profile_of_file, file};
}

enum atp_status peak_profile_at(const struct peak *peak, uint64_t batch_size, struct region *region,
                                struct profile *out_profile, int64_t *out_update_ns,
                                struct atp_error *err)
{
    struct profile whole;
    int64_t update_ns = 0;
    ATP_TRY(peak->source.profile_at(peak->source.ctx, batch_size, region, &whole, err));
    *out_profile = whole;
    if (peak->options.global_batch != 0) {
        ATP_TRY(micro_profile(&whole, region, out_profile, &update_ns, err));
    }
    if (out_update_ns != NULL) {
        *out_update_ns = update_ns;
    }
    return ATP_OK;
}

static bool has_profile(struct peak *peak, uint64_t batch_size)
{
    struct region_mark mark = region_mark(peak->region);
    struct profile profile;
    enum atp_status status = peak_profile_at(peak, batch_size, peak->region, &profile, NULL, NULL);
    region_reset(peak->region, mark);
    return status == ATP_OK;
}

/* A batch size whose profile leaves its range has no plan. */
static bool has_no_plan(struct peak *peak, uint64_t batch_size)
{
    struct region_mark mark = region_mark(peak->region);
    struct profile profile;
    struct throughput_point point = {.bound_ns = INT64_MAX};
    if (peak_profile_at(peak, batch_size, peak->region, &profile, NULL, NULL) == ATP_OK) {
        throughput_find(peak->throughput, &profile, peak->options.budget_bytes, &point);
    }
    region_reset(peak->region, mark);
    return point.bound_ns == INT64_MAX;
}

/* The least multiple behind `first` at which the test succeeds, taken to succeed from there on. */
static uint64_t find_change(struct peak *peak, uint64_t first,
                            bool (*test)(struct peak *, uint64_t))
{
    const uint64_t multiple = peak->options.multiple, most = (BATCH_MAX - first) / multiple;
    uint64_t low = 0, high = 1;
    while (high <= most && !test(peak, first + high * multiple)) {
        low = high;
        high *= 2;
    }
    high = high <= most ? high : most + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (test(peak, first + middle * multiple)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return first + high * multiple;
}

/* Does `b` need as much of everything as `a`? Both have one structure. */
static bool needs_more(const struct profile *a, const struct profile *b)
{
    if (b->resident_bytes < a->resident_bytes) {
        return false;
    }
    for (uint32_t t = 0; t < a->model.tensor_count; t++) {
        if (b->model.tensors[t].bytes < a->model.tensors[t].bytes) {
            return false;
        }
    }
    for (uint32_t s = 0; s < a->model.step_count; s++) {
        if (b->clock.step_ns[s] < a->clock.step_ns[s] ||
            b->model.steps[s].workspace_bytes < a->model.steps[s].workspace_bytes) {
            return false;
        }
    }
    return true;
}

/* Appends a batch size; `last` is the profile of the one before, NULL: there is none. */
static void add_batch(struct peak *peak, uint64_t batch_size, const struct profile *last,
                      struct region *region, struct profile *out_profile)
{
    struct peak_batch *batch = &peak->batches[peak->count];
    const uint64_t global = peak->options.global_batch;
    struct atp_error err;
    *batch = (struct peak_batch){.batch_size = batch_size,
                                 .repeats = global != 0 ? global / batch_size : 1};
    if (peak_profile_at(peak, batch_size, region, out_profile, &batch->update_ns, &err) != ATP_OK) {
        out_profile->model.step_count = 0;
        return;
    }
    throughput_find(peak->throughput, out_profile, peak->options.budget_bytes, &batch->model);
    batch->bound_ns = batch->model.bound_ns;
    if (last != NULL && last->model.step_count > 0) {
        peak->batches[peak->count - 1].grows = needs_more(last, out_profile);
    }
    peak->count++;
}

static uint64_t count_batches(const struct peak *peak, uint64_t first, uint64_t last)
{
    const uint64_t multiple = peak->options.multiple, global = peak->options.global_batch;
    uint64_t count = 0;
    if (global == 0) {
        return last < first ? 0 : (last - first) / multiple + 1;
    }
    for (uint64_t b = first; b <= last && b <= global; b += multiple) {
        count += global % b == 0;
    }
    return count;
}

static void add_batches(struct peak *peak, uint64_t first, uint64_t last)
{
    struct region *regions[2] = {region_create(), region_create()};
    const struct region_mark marks[2] = {region_mark(regions[0]), region_mark(regions[1])};
    struct profile profiles[2];
    uint32_t seen = 0;
    for (uint64_t b = first; b <= last; b += peak->options.multiple) {
        if (peak->options.global_batch != 0 && peak->options.global_batch % b != 0) {
            continue;
        }
        uint32_t at = seen++ % 2;
        region_reset(regions[at], marks[at]);
        add_batch(peak, b, seen > 1 ? &profiles[1 - at] : NULL, regions[at], &profiles[at]);
    }
    region_destroy(regions[0]);
    region_destroy(regions[1]);
}

static enum atp_status refuse_range(const struct peak *peak, uint64_t first, uint64_t last,
                                    uint64_t count, struct atp_error *err)
{
    if (count > 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "the range %" PRIu64 "..%" PRIu64 " has %" PRIu64
                        " batch sizes, expected %u at most: give --range or a larger --multiple",
                        first, last, count, PEAK_BATCHES_MAX);
    }
    if (peak->options.global_batch != 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "no batch size within %" PRIu64 "..%" PRIu64
                        " that is a multiple of %" PRIu64 " divides the global batch of %" PRIu64,
                        first, last, peak->options.multiple, peak->options.global_batch);
    }
    return atp_fail(err, ATP_ERR_INVALID, "the range has no multiple of %" PRIu64 " in it",
                    peak->options.multiple);
}

static enum atp_status refuse_budget(const struct peak *peak, struct atp_error *err)
{
    const struct peak_batch *least = &peak->batches[0];
    for (uint32_t i = 1; i < peak->count; i++) {
        if (peak->batches[i].model.least_budget_bytes < least->model.least_budget_bytes) {
            least = &peak->batches[i];
        }
    }
    if (least->model.limit == THROUGHPUT_HOST) {
        return atp_fail(err, ATP_ERR_INFEASIBLE,
                        "no batch size has a plan within the budget of %" PRIu64
                        " bytes: pinned memory cannot take what has to leave the device",
                        peak->options.budget_bytes);
    }
    return atp_fail(err, ATP_ERR_INFEASIBLE,
                    "the budget of %" PRIu64 " bytes is too small, the least budget is %" PRIu64
                    ", at batch size %" PRIu64,
                    peak->options.budget_bytes, least->model.least_budget_bytes, least->batch_size);
}

/* The first and the last batch size. */
static enum atp_status find_range(struct peak *peak, uint64_t *out_first, uint64_t *out_last,
                                  struct atp_error *err)
{
    const struct peak_options *options = &peak->options;
    struct profile profile;
    uint64_t first = options->multiple;
    if (options->first_batch > first) {
        first = (options->first_batch - 1) / first * first + first;
    }
    if (options->first_batch == 0 && !has_profile(peak, first)) {
        first = find_change(peak, first, has_profile);
    }
    ATP_TRY(peak_profile_at(peak, first, peak->region, &profile, NULL, err));
    ATP_TRY(throughput_create(&profile, peak->region, &peak->throughput, err));
    *out_first = first;
    *out_last = options->last_batch;
    if (options->last_batch == 0) {
        *out_last = find_change(peak, first, has_no_plan) - options->multiple;
    }
    return ATP_OK;
}

enum atp_status peak_begin(const struct peak_source *source, const struct peak_options *options,
                           struct region *region, struct peak *out_peak, struct atp_error *err)
{
    struct peak *peak = out_peak;
    uint64_t first, last;
    *peak = (struct peak){.options = *options,
                          .source = *source,
                          .region = region,
                          .best = ATP_NONE,
                          .rival = ATP_NONE};
    peak->options.multiple = options->multiple == 0 ? 1 : options->multiple;
    ATP_TRY(find_range(peak, &first, &last, err));
    uint64_t count = count_batches(peak, first, last);
    if (count == 0 || count > PEAK_BATCHES_MAX) {
        return refuse_range(peak, first, last, count, err);
    }
    peak->batches = REGION_NEW(region, struct peak_batch, count);
    add_batches(peak, first, last);
    for (uint32_t i = 0; i < peak->count; i++) {
        if (peak->batches[i].bound_ns != INT64_MAX) {
            return ATP_OK;
        }
    }
    return peak->count > 0 ? refuse_budget(peak, err)
                           : atp_fail(err, ATP_ERR_INVALID,
                                      "the profile has no batch size within %" PRIu64 "..%" PRIu64,
                                      first, last);
}
