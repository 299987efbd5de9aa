/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command_input.h"

#include "fail.h"
#include "problem.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>

enum atp_status command_read_profile(const struct options *options, const char *path,
                                     struct region *region, const struct profile_file **out_file,
                                     bool *out_differs, struct atp_error *err)
{
    const struct profile_device device = {options->memory_bytes, options->d2h_bytes_per_second,
                                          options->h2d_bytes_per_second};
    bool differs;
    ATP_TRY(profile_read(path, region, out_file, err));
    *out_file = profile_with_device(*out_file, &device, region, &differs);
    if (out_differs != NULL) {
        *out_differs = differs;
    }
    return ATP_OK;
}

static void print_override(const struct options *options, const struct profile *profile)
{
    bool has_link = options->d2h_bytes_per_second != 0 || options->h2d_bytes_per_second != 0;
    (void)fprintf(stderr,
                  "%s: warning: the device is not the profile's: %s of memory, %s/s to the host, "
                  "%s/s back\n",
                  options->input, words_bytes(profile->device_memory_bytes).text,
                  words_bytes(profile->clock.d2h_bytes_per_second).text,
                  words_bytes(profile->clock.h2d_bytes_per_second).text);
    bool writes_plan = options->command == COMMAND_SOLVE ||
                       (options->command == COMMAND_PEAK && options->output != NULL);
    if (writes_plan && has_link) {
        (void)fprintf(stderr,
                      "%s: warning: the plan does not tell: check it with --d2h %" PRIu64
                      " --h2d %" PRIu64 "\n",
                      options->input, profile->clock.d2h_bytes_per_second,
                      profile->clock.h2d_bytes_per_second);
    }
}

static enum atp_status read_profile(const struct options *options, struct region *region,
                                    struct profile *out, bool *out_differs, struct atp_error *err)
{
    const struct profile_file *file = NULL;
    ATP_TRY(command_read_profile(options, options->input, region, &file, out_differs, err));
    return profile_at_batch(file, options->batch_size, region, out, err);
}

enum atp_status command_budget(const struct options *options, const struct profile *profile,
                               struct region *region, uint64_t *out_bytes, struct atp_error *err)
{
    struct problem problem;
    *out_bytes = options->budget.amount;
    if (!options->budget.is_share) {
        return ATP_OK;
    }
    uint64_t alignment = options->alignment_bytes;
    if (alignment == 0) {
        alignment = problem_alignment(profile, region);
    }
    ATP_TRY(problem_build(profile, SIZE_BYTES_MAX, alignment, region, &problem, err));
    *out_bytes =
        profile->resident_bytes + size_share_of(options->budget.amount, problem.peak_bytes);
    return ATP_OK;
}

static void print_warnings(const struct options *options, const struct profile *profile)
{
    const char *path = options->input;
    if (profile->zero_time_count > 0) {
        (void)fprintf(stderr,
                      "%s: warning: %" PRIu32 " of %" PRIu32
                      " steps take no time, so that running them again costs nothing\n",
                      path, profile->zero_time_count, profile->model.step_count);
    }
    if (profile->scaled) {
        (void)fprintf(stderr,
                      "%s: warning: batch size %" PRIu64
                      " was not measured: sizes and times are scaled from other batch sizes\n",
                      path, profile->model.batch_size);
    }
    if (profile->clamped_count > 0) {
        (void)fprintf(stderr,
                      "%s: warning: the times of %" PRIu32
                      " steps, drawn on from the measured batch sizes, fall below zero at %" PRIu64
                      " and are taken as zero\n",
                      path, profile->clamped_count, profile->model.batch_size);
    }
}

void command_warn_device(const struct options *options, const struct profile *profile,
                         bool is_overridden, uint64_t budget)
{
    if (is_overridden) {
        print_override(options, profile);
    }
    if (budget > profile->device_memory_bytes) {
        (void)fprintf(stderr, "%s: warning: the budget of %s is above the device's memory of %s\n",
                      options->input, words_bytes(budget).text,
                      words_bytes(profile->device_memory_bytes).text);
    }
}

enum exit_code command_input(const struct options *options, struct region *region,
                             struct profile *out_profile, uint64_t *out_budget_bytes)
{
    struct atp_error err;
    bool needs_budget = out_budget_bytes != NULL;
    uint64_t budget = 0;
    bool is_overridden = false;
    if (read_profile(options, region, out_profile, &is_overridden, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (needs_budget && !options->has_budget) {
        (void)fprintf(stderr,
                      "atp-plan: %s needs --budget SIZE; the device has --budget %" PRIu64 "\n",
                      options_command_name(options->command), out_profile->device_memory_bytes);
        return EXIT_CODE_USAGE;
    }
    if (needs_budget && command_budget(options, out_profile, region, &budget, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (!options->quiet) {
        command_warn_device(options, out_profile, is_overridden, budget);
        print_warnings(options, out_profile);
    }
    if (needs_budget) {
        *out_budget_bytes = budget;
    }
    return EXIT_CODE_DONE;
}
