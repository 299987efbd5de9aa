/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The judge of a plan for people and continuous integration: every finding is one line
 * `PLAN:LINE:COLUMN: error: ...`, as compilers write them, and all that can be found is.
 */
#include "command.h"

#include "command_input.h"
#include "fail.h"
#include "plan_gap.h"
#include "problem.h"
#include "profile.h"
#include "proof.h"
#include "relax.h"
#include "words.h"

#include <atp/plan_yaml.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Much more than a plan of ordinary effort was given, so that its bound is found again. */
#define SIMPLEX_WORK UINT64_C(1000000)
/* An arena this much above the largest sum of live bytes wastes memory. */
#define WASTE_SHARE 0.01

struct check {
    const struct options *options;
    const struct atp_plan_file *file;
    uint32_t error_count;
};

/* The line at which a key stands alone or before its value; `nth` lines further. 1 when there is
 * none. */
static uint32_t line_of_key(const char *path, const char *key, size_t length, uint32_t nth)
{
    char text[256];
    uint32_t line = 1, found = 1;
    bool is_start = true;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        const char *word = text + strspn(text, " ");
        bool is_key = is_start && strncmp(word, key, length) == 0 && word[length] == ':';
        if (is_key) {
            found = line + nth;
            break;
        }
        is_start = strchr(text, '\n') != NULL;
        line += is_start;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Where in the plan's file an error is: it says so itself, as an instruction or as the path that
 * its text begins with. Exact for files as plan_emit writes them, near for others. */
static uint32_t line_of(const struct check *check, const struct atp_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    if (err->instruction != ATP_NONE && err->instruction < check->file->plan.instruction_count) {
        return check->file->instruction_lines[err->instruction];
    }
    char key[64];
    const char *word = err->text;
    size_t length = strspn(word, letters);
    uint32_t nth = 0;
    if (word[length] == '.') {
        word += length + 1;
        length = strspn(word, letters);
    } else if (word[length] == '[') {
        nth = (uint32_t)strtoul(word + length + 1, NULL, 10) + 1;
    }
    if (length == 0 || length >= sizeof(key)) {
        return 1;
    }
    (void)snprintf(key, sizeof(key), "%.*s", (int)length, word);
    /* Times are microseconds in the file. */
    if (length > 3 && strcmp(key + length - 3, "_ns") == 0) {
        key[length - 2] = 'u';
    }
    return line_of_key(check->options->input, key, length, nth);
}

static void report(struct check *check, const struct atp_error *err)
{
    (void)fprintf(stderr, "%s:%" PRIu32 ":1: error: %s\n", check->options->input,
                  line_of(check, err), err->text);
    check->error_count++;
}

/* False when the program itself failed: no finding then, and no verdict. */
static bool note(struct check *check, enum atp_status status, const struct atp_error *err)
{
    if (status == ATP_ERR_INVALID || status == ATP_ERR_MISMATCH) {
        report(check, err);
    }
    return status == ATP_OK || status == ATP_ERR_INVALID || status == ATP_ERR_MISMATCH;
}

/* Reports what is not good. */
__attribute__((format(printf, 3, 4))) static void found(struct check *check, bool is_good,
                                                        const char *format, ...)
{
    struct atp_error err = {.status = ATP_ERR_INVALID, .instruction = ATP_NONE};
    va_list args;
    if (is_good) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(err.text, sizeof(err.text), format, args);
    va_end(args);
    report(check, &err);
}

static void warn_of_waste(const struct check *check)
{
    const struct atp_plan *plan = &check->file->plan;
    double peak = (double)plan->predicted.peak_bytes;
    double waste = peak > 0 ? ((double)plan->arena_bytes - peak) / peak : 0;
    if (waste > WASTE_SHARE) {
        (void)fprintf(stderr,
                      "%s:%" PRIu32 ":1: warning: arena_bytes: %s above the peak of live bytes\n",
                      check->options->input,
                      line_of_key(check->options->input, "arena_bytes", strlen("arena_bytes"), 0),
                      words_percent(waste).text);
    }
}

__attribute__((format(printf, 2, 3))) static void say(const struct check *check, const char *format,
                                                      ...)
{
    va_list args;
    if (check->options->quiet) {
        return;
    }
    (void)printf("%s: ", check->options->input);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
}

/* What a plan's header shares with its profile, beside the model. */
static void compare_header(struct check *check, const struct profile *profile)
{
    const struct atp_plan *plan = &check->file->plan;
    found(check, plan->model.batch_size == profile->model.batch_size,
          "batch_size: %" PRIu64 ", but the profile is read at %" PRIu64, plan->model.batch_size,
          profile->model.batch_size);
    found(check, plan->resident_bytes == profile->resident_bytes,
          "resident_bytes: %" PRIu64 ", but the profile has %" PRIu64, plan->resident_bytes,
          profile->resident_bytes);
    found(check, plan->host_arena_bytes <= profile->pinned_bytes,
          "host_arena_bytes: %" PRIu64 ", but the profile allows %" PRIu64 " pinned bytes",
          plan->host_arena_bytes, profile->pinned_bytes);
}

static enum atp_status compare_budget(struct check *check, const struct profile *profile,
                                      struct region *region, struct atp_error *err)
{
    const struct atp_plan *plan = &check->file->plan;
    uint64_t budget = plan->budget_bytes;
    if (check->options->has_budget) {
        ATP_TRY(command_budget(check->options, profile, region, &budget, err));
    }
    found(check, plan->budget_bytes == budget,
          "budget_bytes: the plan is for %" PRIu64 ", but --budget is %" PRIu64, plan->budget_bytes,
          budget);
    return ATP_OK;
}

static bool is_near(const struct check *check, int64_t bound_ns)
{
    uint64_t gap = plan_gap_millionths(check->file->plan.predicted.iteration_ns, bound_ns);
    return gap <= check->options->max_gap / (100 * SIZE_PERCENT / 1000000);
}

/* The stated bound must be one that can be proved, and the iteration near it. What the certificate
 * leaves open, solving again may prove: a better bound than the plan's is as true. */
static enum atp_status check_gap(struct check *check, const struct problem *problem,
                                 const struct proof *proof, struct region *region,
                                 struct atp_error *err)
{
    const struct atp_predicted *said = &check->file->plan.predicted;
    const struct relax_options options = {.iteration_limit = SIMPLEX_WORK};
    const char *how = proof->is_certified ? "by its certificate" : "by the sum of step times";
    int64_t bound_ns = proof->bound_ns;
    if (said->bound_ns > bound_ns || !is_near(check, bound_ns)) {
        struct relax_solution relaxed;
        if (proof->why_not[0] != '\0') {
            say(check, "%s; solving for the bound again", proof->why_not);
        } else {
            say(check, "certificate: it proves only %s; solving for the bound again",
                words_time(bound_ns).text);
        }
        ATP_TRY(relax_solve(problem, &options, region, &relaxed, err));
        if (relaxed.bound_ns > bound_ns) {
            bound_ns = relaxed.bound_ns;
            how = "anew";
        }
    }
    found(check, said->bound_ns <= bound_ns,
          "predicted.bound_us: %" PRId64 " ns, but only %" PRId64 " ns can be proved",
          said->bound_ns, bound_ns);
    found(check, is_near(check, bound_ns),
          "predicted.gap: %s from the bound of %s, expected %s "
          "at most",
          words_gap(said->iteration_ns, bound_ns).text, words_time(bound_ns).text,
          words_percent((double)check->options->max_gap / (100.0 * (double)SIZE_PERCENT)).text);
    if (said->bound_ns <= bound_ns && is_near(check, bound_ns)) {
        say(check, "the bound is proved %s: %s, gap %s", how, words_time(bound_ns).text,
            words_gap(said->iteration_ns, bound_ns).text);
    }
    return ATP_OK;
}

/* Without --max-gap nothing is solved. */
static enum atp_status check_bound(struct check *check, const struct profile *profile,
                                   struct region *region, struct atp_error *err)
{
    const struct atp_plan *plan = &check->file->plan;
    const struct atp_predicted *said = &plan->predicted;
    struct problem problem;
    struct proof proof;
    ATP_TRY(
        problem_build(profile, plan->budget_bytes, plan->alignment_bytes, region, &problem, err));
    proof_find(plan, &problem, region, &proof);
    if (check->options->has_max_gap) {
        return check_gap(check, &problem, &proof, region, err);
    }
    if (said->bound_ns > proof.bound_ns) {
        say(check, "not checked without --max-gap: the bound of %s, only %s is proved%s%s",
            words_time(said->bound_ns).text, words_time(proof.bound_ns).text,
            proof.why_not[0] != '\0' ? "; " : "", proof.why_not);
    } else {
        say(check, "the bound is proved %s: %s, gap %s",
            proof.is_certified ? "by its certificate" : "by the sum of step times",
            words_time(said->bound_ns).text, words_gap(said->iteration_ns, said->bound_ns).text);
    }
    return ATP_OK;
}

static enum exit_code check_with_profile(struct check *check, bool is_proved, struct region *region)
{
    const struct options *options = check->options;
    const struct atp_plan *plan = &check->file->plan;
    const struct profile_file *file = NULL;
    struct profile profile;
    struct atp_error err;
    uint64_t batch = options->batch_size != 0 ? options->batch_size : plan->model.batch_size;
    bool is_overridden = false;
    if (command_read_profile(options, options->profile, region, &file, &is_overridden, &err) !=
            ATP_OK ||
        profile_at_batch(file, batch, region, &profile, &err) != ATP_OK ||
        compare_budget(check, &profile, region, &err) != ATP_OK) {
        return command_fail(options->profile, &err);
    }
    compare_header(check, &profile);
    bool is_model = atp_model_check(&plan->model, NULL, &err) == ATP_OK;
    enum atp_status same = ATP_ERR_MISMATCH;
    if (is_model) {
        same = atp_model_compare(&plan->model, "the plan", &profile.model, "the profile", &err);
        (void)note(check, same, &err);
    }
    if (!is_proved || same != ATP_OK) {
        return EXIT_CODE_NO;
    }
    enum atp_status status = atp_plan_check_predicted(plan, &profile.clock, &err);
    if (!note(check, status, &err)) {
        return command_fail(NULL, &err);
    }
    if (status != ATP_OK && !is_overridden) {
        say(check, "a plan made with --d2h or --h2d is checked with the same");
    } else if (is_overridden) {
        say(check,
            "copies are timed at --d2h %" PRIu64 " --h2d %" PRIu64 ", not the profile's rates",
            profile.clock.d2h_bytes_per_second, profile.clock.h2d_bytes_per_second);
    }
    if (status == ATP_OK && check->error_count == 0) {
        say(check, "it is for this profile, and its numbers are true: predicted %s",
            words_time(plan->predicted.iteration_ns).text);
    }
    if (check_bound(check, &profile, region, &err) != ATP_OK) {
        return command_fail(options->profile, &err);
    }
    return EXIT_CODE_DONE;
}

enum exit_code command_check(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct atp_plan_file *file = NULL;
    if (atp_plan_read(options->input, &file, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    struct check check = {.options = options, .file = file};
    enum exit_code code = EXIT_CODE_DONE;
    enum atp_status proved = atp_plan_check(&file->plan, &err);
    if (!note(&check, proved, &err)) {
        code = command_fail(NULL, &err);
    } else if (proved == ATP_OK) {
        say(&check, "proved: it fits its budget, reads the right bytes and cannot race");
        warn_of_waste(&check);
    }
    if (code == EXIT_CODE_DONE && options->profile != NULL) {
        code = check_with_profile(&check, proved == ATP_OK, region);
    } else if (code == EXIT_CODE_DONE) {
        say(&check, "not checked without --profile: that it is for your profile, and its times");
    }
    atp_plan_file_destroy(file);
    if (code == EXIT_CODE_DONE && check.error_count > 0) {
        code = EXIT_CODE_NO;
    }
    return code;
}
