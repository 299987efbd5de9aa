/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Profile and budget -> plan. The plan goes to standard output or a file, everything else to
 * standard error.
 */
#include "command.h"

#include "command_input.h"
#include "fail.h"
#include "interrupt.h"
#include "out_file.h"
#include "plan_emit.h"
#include "profile.h"
#include "progress.h"
#include "solve.h"
#include "summary.h"
#include "words.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

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

/* One line of JSON, for programs that compare runs. The time spent is the only number in it that is
 * not the same everywhere. */
static enum atp_status write_report(const char *path, const struct atp_plan *plan,
                                    const struct solve_report *report, int64_t spent_ms,
                                    struct atp_error *err)
{
    const struct atp_predicted *p = &plan->predicted;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"batch_size", plan->model.batch_size},
        {"steps", plan->model.step_count},
        {"tensors", plan->model.tensor_count},
        {"budget_bytes", plan->budget_bytes},
        {"resident_bytes", plan->resident_bytes},
        {"least_budget_bytes", report->least_budget_bytes},
        {"keep_all_bytes", report->keep_all_bytes},
        {"alignment_bytes", plan->alignment_bytes},
        {"arena_bytes", plan->arena_bytes},
        {"peak_bytes", p->peak_bytes},
        {"host_arena_bytes", plan->host_arena_bytes},
        {"compute_ns", (uint64_t)p->compute_ns},
        {"bound_ns", (uint64_t)p->bound_ns},
        {"iteration_ns", (uint64_t)p->iteration_ns},
        {"recompute_ns", (uint64_t)p->recompute_ns},
        {"stall_ns", (uint64_t)p->stall_ns},
        {"rows", report->row_count},
        {"columns", report->column_count},
        {"simplex_iterations", report->simplex_iterations},
        {"gaps_with_a_choice", report->candidate_count},
        {"operations_scheduled", report->search_work},
        {"stopped", report->stopped},
        {"spent_ms", (uint64_t)spent_ms},
    };
    struct out_file file;
    ATP_TRY(out_file_open(path, &file, err));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)fprintf(file.stream, "%s\"%s\": %" PRIu64, i == 0 ? "{" : ", ", numbers[i].key,
                      numbers[i].value);
    }
    (void)fputs("}\n", file.stream);
    return out_file_close(&file, err);
}

static enum exit_code fail_usage(const char *text)
{
    (void)fprintf(stderr, "atp-plan: %s\n", text);
    return EXIT_CODE_USAGE;
}

static enum exit_code run_solve(const struct options *options, const struct profile *profile,
                                uint64_t budget, struct region *region)
{
    struct progress_line line = progress_begin("");
    struct atp_plan plan;
    struct solve_report report = {0};
    struct atp_error err;
    bool shows = !options->quiet && isatty(STDERR_FILENO) == 1;
    const volatile int *stop = interrupt_watch(options->time_limit_ms);
    struct solve_options solving = {.budget_bytes = budget,
                                    .alignment_bytes = options->alignment_bytes,
                                    .effort = options->effort,
                                    .stop = stop,
                                    .progress = shows ? progress_draw : NULL,
                                    .progress_ctx = &line};
    enum atp_status status = solve(profile, &solving, region, &plan, &report, &err);
    progress_wipe(&line);
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
    int64_t spent_ms = progress_now_ms() - line.start_ms;
    if (options->report != NULL &&
        write_report(options->report, &plan, &report, spent_ms, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    print_result(options, &plan, &report, *stop, spent_ms);
    return EXIT_CODE_DONE;
}

enum exit_code command_solve(const struct options *options, struct region *region)
{
    struct profile profile;
    struct atp_error err;
    uint64_t budget;
    if (options->output != NULL && out_file_is_same(options->input, options->output)) {
        return fail_usage("-o: the plan would replace its profile");
    }
    enum exit_code code = command_input(options, region, &profile, &budget);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    if (options->output != NULL && out_file_probe(options->output, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    return run_solve(options, &profile, budget, region);
}
