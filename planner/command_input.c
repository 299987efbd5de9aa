/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command_input.h"

#include "fail.h"
#include "problem.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>

static bool override(uint64_t given, uint64_t *value)
{
    bool differs = given != 0 && given != *value;
    *value = given != 0 ? given : *value;
    return differs;
}

bool command_override(const struct options *options, struct profile *profile)
{
    bool d2h = override(options->d2h_bytes_per_second, &profile->clock.d2h_bytes_per_second);
    bool h2d = override(options->h2d_bytes_per_second, &profile->clock.h2d_bytes_per_second);
    bool memory = override(options->memory_bytes, &profile->device_memory_bytes);
    return d2h || h2d || memory;
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
                                    struct profile *out, struct atp_error *err)
{
    const struct profile_file *file = NULL;
    ATP_TRY(profile_read(options->input, region, &file, err));
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
    if (read_profile(options, region, out_profile, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    bool is_overridden = command_override(options, out_profile);
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
