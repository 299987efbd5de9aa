/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The batch size worth training at. The search comes first, then the batch sizes that are only to
 * be shown, then the search again: a plan that was made for the curve may move the peak.
 */
#include "command.h"

#include "command_input.h"
#include "fail.h"
#include "interrupt.h"
#include "out_file.h"
#include "peak.h"
#include "peak_policy.h"
#include "peak_print.h"
#include "plan_emit.h"
#include "profile.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* Near the least budget a plan may not be found: so many batch sizes are tried for the largest. */
#define LARGEST_TRIES 4U

static enum exit_code fail_usage(const char *text)
{
    (void)fprintf(stderr, "atp-plan: %s\n", text);
    return EXIT_CODE_USAGE;
}

/* The largest measured batch size stands for all. */
static enum exit_code check_usage(const struct options *options, const struct profile_file *file,
                                  bool is_overridden, struct region *region,
                                  struct profile *out_profile)
{
    struct atp_error err;
    if (profile_at_batch(file, 0, region, out_profile, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (!options->has_budget) {
        (void)fprintf(stderr,
                      "atp-plan: peak needs --budget SIZE; the device has --budget %" PRIu64 "\n",
                      out_profile->device_memory_bytes);
        return EXIT_CODE_USAGE;
    }
    if (options->budget.is_share) {
        return fail_usage("--budget: a share means other bytes at every batch size, expected a "
                          "size");
    }
    if (!options->quiet) {
        command_warn_device(options, out_profile, is_overridden, options->budget.amount);
    }
    return EXIT_CODE_DONE;
}

static void print_warnings(const struct options *options, const struct profile_file *file,
                           const struct profile *profile, const struct peak *peak)
{
    uint32_t count;
    const uint64_t *sizes = profile_batch_sizes(file, &count);
    uint64_t last = peak->batches[peak->count - 1].batch_size;
    if (profile->zero_time_count > 0) {
        (void)fprintf(stderr,
                      "%s: warning: %" PRIu32 " of %" PRIu32
                      " steps take no time, so that running them again costs nothing\n",
                      options->input, profile->zero_time_count, profile->model.step_count);
    }
    if (count == 1) {
        (void)fprintf(stderr,
                      "%s: warning: one batch size was measured, %" PRIu64
                      ": sizes and times are taken to be in proportion to it\n",
                      options->input, sizes[0]);
    } else if (peak->batches[0].batch_size < sizes[0] || last > sizes[count - 1]) {
        (void)fprintf(stderr,
                      "%s: warning: beyond the measured batch sizes, %" PRIu64 " to %" PRIu64
                      ", sizes and times are extended\n",
                      options->input, sizes[0], sizes[count - 1]);
    }
}

/* From the smallest to the largest batch size, about equal factors apart. */
static uint32_t point_index(const struct peak *peak, uint32_t point, uint32_t count)
{
    double first = (double)peak->batches[0].batch_size;
    double last = (double)peak->batches[peak->count - 1].batch_size;
    double wanted = first * pow(last / first, (double)point / (double)(count - 1));
    uint32_t index = peak_find(peak, (uint64_t)(wanted + 0.5));
    return index == ATP_NONE ? 0 : index;
}

static enum atp_status look_around(const struct options *options, struct peak *peak, bool *shown,
                                   struct atp_error *err)
{
    uint32_t unplanned = peak_largest_unplanned(peak);
    for (uint32_t i = 0; i < options->points; i++) {
        uint32_t index = point_index(peak, i, options->points);
        shown[index] = true;
        ATP_TRY(peak_look(peak, index, err));
    }
    if (unplanned != ATP_NONE) {
        ATP_TRY(peak_look(peak, unplanned, err));
    }
    for (uint32_t i = 0; i < LARGEST_TRIES; i++) {
        uint32_t largest = peak_largest_planned(peak);
        if (largest == ATP_NONE || peak->batches[largest].has_plan) {
            break;
        }
        ATP_TRY(peak_look(peak, largest, err));
    }
    return peak_search(peak, err);
}

static enum exit_code finish(const struct options *options, struct peak *peak,
                             struct peak_policies *policies, bool *shown, const char *model_name)
{
    struct atp_error err;
    if (peak->best == ATP_NONE) {
        (void)fputs("atp-plan: stopped before a plan was found\n", stderr);
        return EXIT_CODE_NO;
    }
    if (peak_policies_place(peak, policies, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (options->output != NULL) {
        interrupt_hold();
        enum atp_status status = plan_emit_file(&peak->best_plan, options->output, &err);
        interrupt_release();
        if (status != ATP_OK) {
            return command_fail(NULL, &err);
        }
    }
    for (uint32_t i = 0; i < peak->count; i++) {
        shown[i] = shown[i] || peak->batches[i].planned || i == peak->rival;
    }
    const struct peak_findings findings = {model_name, peak, policies, shown};
    (options->csv ? peak_print_csv : peak_print_text)(&findings, stdout);
    return EXIT_CODE_DONE;
}

static enum exit_code run_peak(const struct options *options, const struct profile_file *file,
                               const struct profile *profile, struct peak *peak,
                               struct region *region)
{
    struct atp_error err;
    struct peak_file of_file = {file};
    const struct peak_source source = peak_file_source(&of_file);
    const struct peak_options peaking = {
        .budget_bytes = options->budget.amount,
        .alignment_bytes = options->alignment_bytes,
        .first_batch = options->first_batch,
        .last_batch = options->last_batch,
        .multiple = options->multiple,
        .global_batch = options->global_batch,
        .gap = (double)options->gap / (100.0 * (double)SIZE_PERCENT),
        .plan_limit = options->plans,
        .effort = options->effort,
        .stop = interrupt_watch(options->time_limit_ms),
        .shows_progress = !options->quiet && isatty(STDERR_FILENO) == 1,
    };
    enum atp_status status = peak_begin(&source, &peaking, region, peak, &err);
    if (status == ATP_ERR_INVALID) {
        return fail_usage(err.text);
    }
    if (status != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (!options->quiet) {
        print_warnings(options, file, profile, peak);
    }
    bool *shown = REGION_NEW(region, bool, peak->count);
    struct peak_policies policies;
    if (peak_policies_rate(peak, &policies, &err) != ATP_OK || peak_search(peak, &err) != ATP_OK ||
        look_around(options, peak, shown, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (*peaking.stop != 0) {
        (void)fputs("atp-plan: cut short; the peak may lie elsewhere\n", stderr);
    }
    return finish(options, peak, &policies, shown, profile->model.name);
}

enum exit_code command_peak(const struct options *options, struct region *region)
{
    const struct profile_file *file = NULL;
    struct profile profile;
    struct peak peak;
    struct atp_error err;
    bool is_overridden = false;
    if (options->output != NULL && out_file_is_same(options->input, options->output)) {
        return fail_usage("-o: the plan would replace its profile");
    }
    if (command_read_profile(options, options->input, region, &file, &is_overridden, &err) !=
        ATP_OK) {
        return command_fail(options->input, &err);
    }
    enum exit_code code = check_usage(options, file, is_overridden, region, &profile);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    if (options->output != NULL && out_file_probe(options->output, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    code = run_peak(options, file, &profile, &peak, region);
    peak_finish(&peak);
    return code;
}
