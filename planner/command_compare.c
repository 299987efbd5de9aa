/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan beside what simple policies would do with the same profile, budget and clock.
 */
#include "command.h"

#include "baseline.h"
#include "command_input.h"
#include "infeasible.h"
#include "interrupt.h"
#include "progress.h"
#include "solve.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PLACE_WORK UINT64_C(1000)

/* What a policy, or the plan, comes to. */
struct row {
    const char *name;
    const char *verdict;
    bool fits; /* else no time is shown: it would need another device */
    int64_t iteration_ns, recompute_ns, stall_ns;
    uint64_t peak_bytes; /* of the device, resident bytes included; 0: not known */
    uint64_t host_bytes;
};

static struct row row_of_plan(const char *name, const struct atp_plan *plan)
{
    return (struct row){
        .name = name,
        .verdict = baseline_verdict_name(BASELINE_FITS),
        .fits = true,
        .iteration_ns = plan->predicted.iteration_ns,
        .recompute_ns = plan->predicted.recompute_ns,
        .stall_ns = plan->predicted.stall_ns,
        .peak_bytes = plan->resident_bytes + plan->predicted.peak_bytes,
        .host_bytes = plan->host_arena_bytes,
    };
}

/* A policy is judged as a plan is: tensors that have no place do not fit. */
static struct row row_of_baseline(const struct problem *problem, const struct baseline *baseline,
                                  struct region *region)
{
    struct region_mark mark = region_mark(region);
    struct atp_plan plan;
    struct row row = {
        .name = baseline->name,
        .verdict = baseline_verdict_name(baseline->verdict),
        .peak_bytes =
            baseline->peak_bytes == 0 ? 0 : problem->profile->resident_bytes + baseline->peak_bytes,
        .host_bytes = baseline->host_bytes,
    };
    if (baseline_plan(problem, baseline, PLACE_WORK, region, &plan)) {
        row = row_of_plan(baseline->name, &plan);
    } else if (baseline->verdict == BASELINE_FITS) {
        row.verdict = "fragments";
    }
    region_reset(region, mark);
    return row;
}

static void print_row(const struct row *row, int64_t compute_ns)
{
    bool is_known = row->peak_bytes > 0;
    double added = (double)(row->iteration_ns - compute_ns);
    (void)printf("%-16s", row->name);
    (void)printf(" %12s", row->fits ? words_time(row->iteration_ns).text : "-");
    (void)printf(" %10s", row->fits
                              ? words_percent(compute_ns > 0 ? added / (double)compute_ns : 0).text
                              : "-");
    (void)printf(" %11s", is_known ? words_bytes(row->peak_bytes).text : "-");
    (void)printf(" %11s  %s\n", is_known ? words_bytes(row->host_bytes).text : "-", row->verdict);
}

static void print_csv_row(const struct row *row, int64_t compute_ns)
{
    (void)printf("%s,%s,", row->name, row->verdict);
    if (row->fits) {
        double added = (double)(row->iteration_ns - compute_ns);
        (void)printf("%" PRId64 ",%.6f,%" PRId64 ",%" PRId64, row->iteration_ns,
                     compute_ns > 0 ? added / (double)compute_ns : 0, row->recompute_ns,
                     row->stall_ns);
    } else {
        (void)fputs(",,,", stdout);
    }
    if (row->peak_bytes > 0) {
        (void)printf(",%" PRIu64 ",%" PRIu64 "\n", row->peak_bytes, row->host_bytes);
    } else {
        (void)puts(",,");
    }
}

static enum exit_code print_table(const struct options *options, const struct profile *profile,
                                  const struct atp_plan *plan, struct region *region)
{
    struct problem problem;
    struct baseline_list list;
    struct atp_error err;
    int64_t compute_ns = plan->predicted.compute_ns;
    void (*print)(const struct row *, int64_t) = options->csv ? print_csv_row : print_row;
    if (problem_build(profile, plan->budget_bytes, plan->alignment_bytes, region, &problem, &err) !=
        ATP_OK) {
        return command_fail(NULL, &err);
    }
    baseline_list_build(&problem, region, &list);
    if (options->csv) {
        (void)puts("policy,result,iteration_ns,overhead,recompute_ns,stall_ns,peak_bytes,"
                   "host_bytes");
    } else {
        (void)printf("%s at batch size %" PRIu64 ", budget %s", plan->model.name,
                     plan->model.batch_size, words_bytes(plan->budget_bytes).text);
        (void)printf(": compute %s", words_time(compute_ns).text);
        (void)printf(", bound %s\n\n", words_time(plan->predicted.bound_ns).text);
        (void)printf("%-16s %12s %10s %11s %11s  %s\n", "policy", "time", "overhead", "device",
                     "host", "result");
    }
    for (uint32_t i = 0; i < list.count; i++) {
        struct row row = row_of_baseline(&problem, &list.items[i], region);
        print(&row, compute_ns);
    }
    struct row row = row_of_plan("plan", plan);
    print(&row, compute_ns);
    return EXIT_CODE_DONE;
}

enum exit_code command_compare(const struct options *options, struct region *region)
{
    struct profile profile;
    struct atp_plan plan;
    struct solve_report report = {0};
    struct atp_error err;
    uint64_t budget;
    enum exit_code code = command_input(options, region, &profile, &budget);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    struct progress_line line = progress_begin("");
    bool shows = !options->quiet && isatty(STDERR_FILENO) == 1;
    struct solve_options solving = {.budget_bytes = budget,
                                    .alignment_bytes = options->alignment_bytes,
                                    .effort = options->effort,
                                    .stop = interrupt_watch(options->time_limit_ms),
                                    .progress = shows ? progress_draw : NULL,
                                    .progress_ctx = &line};
    enum atp_status status = solve(&profile, &solving, region, &plan, &report, &err);
    progress_wipe(&line);
    if (status != ATP_OK) {
        enum exit_code failed = command_fail(NULL, &err);
        if (status == ATP_ERR_INFEASIBLE) {
            infeasible_explain(&profile, options->input, budget, options->alignment_bytes, region,
                               stderr);
        }
        return failed;
    }
    return print_table(options, &profile, &plan, region);
}
