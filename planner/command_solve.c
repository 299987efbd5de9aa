/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Profile and budget -> plan. The plan goes to standard output or a file, everything else to
 * standard error.
 */
#include "command.h"

#include "fail.h"
#include "interrupt.h"
#include "out_file.h"
#include "plan_emit.h"
#include "problem.h"
#include "profile.h"
#include "solve.h"
#include "summary.h"
#include "words.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One line on a terminal that is written over and over. */
#define PROGRESS_EVERY_MS 100
struct progress_line {
    int64_t start_ms, drawn_ms;
    bool is_drawn;
};

static void draw_progress(void *ctx, const struct solve_progress *progress)
{
    struct progress_line *line = ctx;
    int64_t now = now_ms();
    if (line->is_drawn && now - line->drawn_ms < PROGRESS_EVERY_MS) {
        return;
    }
    bool has_plan = progress->iteration_ns > 0, has_bound = progress->bound_ns > 0;
    (void)fprintf(stderr, "\r%6.1f s %3.0f %%", (double)(now - line->start_ms) / 1e3,
                  progress->share_done * 100);
    (void)fprintf(stderr, "  best %s", has_plan ? words_time(progress->iteration_ns).text : "none");
    (void)fprintf(stderr, "  bound %s", has_bound ? words_time(progress->bound_ns).text : "none");
    (void)fprintf(stderr, "  gap %-10s",
                  has_plan && has_bound ? words_gap(progress->iteration_ns, progress->bound_ns).text
                                        : "-");
    line->drawn_ms = now;
    line->is_drawn = true;
}

static void wipe_progress(const struct progress_line *line)
{
    if (line->is_drawn) {
        (void)fprintf(stderr, "\r%78s\r", "");
    }
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A long search for a plan that cannot be written then is avoided. Pipes and devices are left
 * alone: opening them may already mean something to who reads them. */
static enum atp_status probe_output(const char *path, struct atp_error *err)
{
    struct stat info;
    struct out_file file;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return ATP_OK;
    }
    ATP_TRY(out_file_open(path, &file, err));
    out_file_drop(&file);
    return ATP_OK;
}

static enum atp_status read_profile(const struct options *options, struct region *region,
                                    struct profile *out, struct atp_error *err)
{
    const struct profile_file *file = NULL;
    ATP_TRY(profile_read(options->input, region, &file, err));
    return profile_at_batch(file, options->batch_size, region, out, err);
}

/* A share is of what the activations reach at the alignment that the plan will have, so that 100 %
 * is what keeping everything needs. */
static enum atp_status resolve_budget(const struct options *options, const struct profile *profile,
                                      struct region *region, uint64_t *out, struct atp_error *err)
{
    struct problem problem;
    *out = options->budget.amount;
    if (!options->budget.is_share) {
        return ATP_OK;
    }
    uint64_t alignment = options->alignment_bytes;
    if (alignment == 0) {
        alignment = problem_alignment(profile, region);
    }
    ATP_TRY(problem_build(profile, SIZE_BYTES_MAX, alignment, region, &problem, err));
    *out = profile->resident_bytes + size_share_of(options->budget.amount, problem.peak_bytes);
    return ATP_OK;
}

static void print_warnings(const struct options *options, const struct profile *profile,
                           uint64_t budget)
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
    if (budget > profile->device_memory_bytes) {
        (void)fprintf(stderr, "%s: warning: the budget of %s is above the device's memory of %s\n",
                      path, words_bytes(budget).text,
                      words_bytes(profile->device_memory_bytes).text);
    }
}

static void print_result(const struct options *options, const struct atp_plan *plan,
                         const struct solve_report *report, int stopped_by, int64_t spent_ms)
{
    if (report->stopped) {
        (void)fprintf(stderr, "atp-plan: %s; this is the best plan so far\n",
                      stopped_by == SIGALRM ? "the time is up" : "interrupted");
    }
    if (options->quiet) {
        return;
    }
    summary_print(plan, stderr);
    if (report->fits_unplanned) {
        (void)fputs("everything fits: nothing needs to be dropped\n", stderr);
    }
    (void)fprintf(stderr, "least budget %" PRIu64 " (%s)", report->least_budget_bytes,
                  words_bytes(report->least_budget_bytes).text);
    (void)fprintf(stderr, "; without a plan %" PRIu64 " (%s)\n", report->keep_all_bytes,
                  words_bytes(report->keep_all_bytes).text);
    if (options->verbose) {
        (void)fprintf(stderr,
                      "relaxation  %" PRIu32 " rows, %" PRIu32 " columns, %" PRIu64
                      " simplex iterations\nsearch      %" PRIu32 " gaps with a choice, %" PRIu64
                      " operations scheduled\nalignment   %" PRIu64 "\ntime spent  %.1f s\n",
                      report->row_count, report->column_count, report->simplex_iterations,
                      report->candidate_count, report->search_work, plan->alignment_bytes,
                      (double)spent_ms / 1e3);
    }
}

static enum atp_status write_plan(const struct options *options, const struct atp_plan *plan,
                                  struct atp_error *err)
{
    if (options->output == NULL) {
        ATP_TRY(plan_emit(plan, stdout, err));
        return fflush(stdout) == 0 ? ATP_OK
                                   : atp_fail(err, ATP_ERR_IO, "cannot write standard output");
    }
    interrupt_hold();
    enum atp_status status = plan_emit_file(plan, options->output, err);
    interrupt_release();
    return status;
}

static enum exit_code fail_usage(const char *text)
{
    (void)fprintf(stderr, "atp-plan: %s\n", text);
    return EXIT_CODE_USAGE;
}

static enum exit_code run_solve(const struct options *options, const struct profile *profile,
                                uint64_t budget, struct region *region)
{
    struct progress_line line = {.start_ms = now_ms()};
    struct atp_plan plan;
    struct solve_report report = {0};
    struct atp_error err;
    bool shows = !options->quiet && isatty(STDERR_FILENO) == 1;
    const volatile int *stop = interrupt_watch(options->time_limit_ms);
    struct solve_options solving = {.budget_bytes = budget,
                                    .alignment_bytes = options->alignment_bytes,
                                    .effort = options->effort,
                                    .stop = stop,
                                    .progress = shows ? draw_progress : NULL,
                                    .progress_ctx = &line};
    enum atp_status status = solve(profile, &solving, region, &plan, &report, &err);
    wipe_progress(&line);
    if (status != ATP_OK) {
        enum exit_code code = command_fail(NULL, &err);
        if (status == ATP_ERR_INFEASIBLE && report.least_budget_bytes <= budget) {
            (void)fprintf(stderr, "atp-plan: no budget below %" PRIu64 " can have a plan\n",
                          report.least_budget_bytes);
        }
        return code;
    }
    plan.time_limited = plan.time_limited || report.stopped;
    if (write_plan(options, &plan, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    print_result(options, &plan, &report, *stop, now_ms() - line.start_ms);
    return EXIT_CODE_DONE;
}

enum exit_code command_solve(const struct options *options, struct region *region)
{
    struct profile profile;
    struct atp_error err;
    uint64_t budget;
    if (options->output != NULL && is_same_file(options->input, options->output)) {
        return fail_usage("-o: the plan would replace its profile");
    }
    if (read_profile(options, region, &profile, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (!options->has_budget) {
        char text[128];
        (void)snprintf(text, sizeof(text),
                       "solve needs --budget SIZE; the profile's device has --budget %" PRIu64,
                       profile.device_memory_bytes);
        return fail_usage(text);
    }
    if (resolve_budget(options, &profile, region, &budget, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (options->output != NULL && probe_output(options->output, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (!options->quiet) {
        print_warnings(options, &profile, budget);
    }
    return run_solve(options, &profile, budget, region);
}
