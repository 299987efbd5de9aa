/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What each budget costs. A plan that fits a budget fits every larger one, and what no program
 * within a budget can beat, none within a smaller one can: plans are carried to larger budgets,
 * where the search goes on from them, bounds to smaller ones. Both curves fall.
 */
#include "command.h"

#include "command_input.h"
#include "fail.h"
#include "interrupt.h"
#include "problem.h"
#include "progress.h"
#include "solve.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define BAR_WIDTH    24
#define BAR_OVERHEAD 0.5 /* that fills it, at most */

struct point {
    uint64_t budget_bytes;
    bool has_plan;
    int64_t iteration_ns, bound_ns, recompute_ns, stall_ns;
    uint64_t peak_bytes, host_bytes; /* of the device, resident bytes included; of the host arena */
};

struct sweep {
    const struct options *options;
    const struct profile *profile;
    uint64_t alignment_bytes; /* the same for all, or carrying would not be sound */
    const volatile int *stop;
    uint32_t count; /* points, ascending */
    struct point *points;
    int64_t compute_ns;
    uint64_t peak_bytes; /* of the arena, everything kept */
    /* The last plan, which the next budget begins with, and where it lives; NULL: none yet. */
    struct region *held;
    struct atp_plan plan;
    struct selection selection;
};

/* Equally far apart from the least budget to the one that holds everything. */
static enum atp_status choose_points(struct sweep *s, struct region *region, struct atp_error *err)
{
    struct problem problem;
    uint64_t alignment = s->options->alignment_bytes;
    s->alignment_bytes = alignment != 0 ? alignment : problem_alignment(s->profile, region);
    ATP_TRY(problem_build(s->profile, SIZE_BYTES_MAX, s->alignment_bytes, region, &problem, err));
    uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
    uint32_t last = s->options->points - 1;
    s->compute_ns = problem.compute_ns;
    s->peak_bytes = problem.peak_bytes;
    s->points = REGION_NEW(region, struct point, s->options->points);
    for (uint32_t i = 0; i <= last; i++) {
        uint64_t arena = least + room / last * i + room % last * i / last;
        arena = i == last ? problem.peak_bytes : arena & ~(s->alignment_bytes - 1);
        uint64_t budget = s->profile->resident_bytes + arena;
        if (s->count == 0 || budget > s->points[s->count - 1].budget_bytes) {
            s->points[s->count++].budget_bytes = budget;
        }
    }
    return ATP_OK;
}

/* ATP_ERR_INFEASIBLE and ATP_ERR_LIMIT leave the point without a plan. */
static enum atp_status plan_point(struct sweep *s, uint32_t index, struct atp_error *err)
{
    struct region *region = region_create();
    struct point *point = &s->points[index];
    const struct solve_start start = {&s->plan, &s->selection};
    struct atp_plan plan;
    struct solve_report report = {0};
    char label[32];
    (void)snprintf(label, sizeof(label), "%" PRIu32 "/%" PRIu32 " ", index + 1, s->count);
    struct progress_line line = progress_begin(label);
    bool shows = !s->options->quiet && isatty(STDERR_FILENO) == 1;
    struct solve_options solving = {.budget_bytes = point->budget_bytes,
                                    .alignment_bytes = s->alignment_bytes,
                                    .start = s->held != NULL ? &start : NULL,
                                    .effort = s->options->effort,
                                    .stop = s->stop,
                                    .progress = shows ? progress_draw : NULL,
                                    .progress_ctx = &line};
    enum atp_status status = solve(s->profile, &solving, region, &plan, &report, err);
    progress_wipe(&line);
    if (status != ATP_OK) {
        region_destroy(region);
    } else {
        const struct atp_predicted *p = &plan.predicted;
        point->has_plan = true;
        point->iteration_ns = p->iteration_ns;
        point->bound_ns = p->bound_ns;
        point->recompute_ns = p->recompute_ns;
        point->stall_ns = p->stall_ns;
        point->peak_bytes = plan.resident_bytes + p->peak_bytes;
        point->host_bytes = plan.host_arena_bytes;
        region_destroy(s->held);
        s->held = region;
        s->plan = plan;
        s->selection = report.selection;
    }
    return status == ATP_ERR_INFEASIBLE || status == ATP_ERR_LIMIT ? ATP_OK : status;
}

static void carry_plan(const struct point *from, struct point *to)
{
    if (from->has_plan && (!to->has_plan || from->iteration_ns < to->iteration_ns)) {
        struct point carried = *from;
        carried.budget_bytes = to->budget_bytes;
        carried.bound_ns = to->bound_ns;
        *to = carried;
    }
}

static void carry_all(struct sweep *s)
{
    for (uint32_t i = 1; i < s->count; i++) {
        carry_plan(&s->points[i - 1], &s->points[i]);
    }
    int64_t bound_ns = s->compute_ns;
    for (uint32_t i = s->count; i-- > 0;) {
        bound_ns = s->points[i].bound_ns > bound_ns ? s->points[i].bound_ns : bound_ns;
        s->points[i].bound_ns = bound_ns;
    }
}

static double overhead(const struct sweep *s, const struct point *point)
{
    double compute = (double)s->compute_ns;
    return compute > 0 ? ((double)point->iteration_ns - compute) / compute : 0;
}

/* The share of the arena that would hold everything. */
static double share(const struct sweep *s, const struct point *point)
{
    uint64_t arena = point->budget_bytes - s->profile->resident_bytes;
    return s->peak_bytes > 0 ? (double)arena / (double)s->peak_bytes : 1;
}

static void print_csv(const struct sweep *s)
{
    (void)puts("budget_bytes,share,iteration_ns,overhead,bound_ns,recompute_ns,stall_ns,"
               "peak_bytes,host_bytes");
    for (uint32_t i = s->count; i-- > 0;) {
        const struct point *point = &s->points[i];
        (void)printf("%" PRIu64 ",%.6f,", point->budget_bytes, share(s, point));
        if (!point->has_plan) {
            (void)printf(",,%" PRId64 ",,,,\n", point->bound_ns);
            continue;
        }
        (void)printf("%" PRId64 ",%.6f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64
                     "\n",
                     point->iteration_ns, overhead(s, point), point->bound_ns, point->recompute_ns,
                     point->stall_ns, point->peak_bytes, point->host_bytes);
    }
}

/* Most budgets cost little and the least one much: a bar that would leave the picture is cut. */
static void print_bar(double part)
{
    int length = (int)((part < 1 ? part : 1) * BAR_WIDTH + 0.5);
    (void)fputs(length > 0 ? "  " : "", stdout);
    for (int i = 0; i < length; i++) {
        (void)putchar('#');
    }
    (void)puts(part > 1 ? ">" : "");
}

static void print_text(const struct sweep *s)
{
    double most = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        double one = s->points[i].has_plan ? overhead(s, &s->points[i]) : 0;
        most = one > most ? one : most;
    }
    double widest = most < BAR_OVERHEAD ? most : BAR_OVERHEAD;
    (void)printf("%s at batch size %" PRIu64 ": compute %s, %s resident\n\n",
                 s->profile->model.name, s->profile->model.batch_size,
                 words_time(s->compute_ns).text, words_bytes(s->profile->resident_bytes).text);
    (void)printf("%10s %9s %12s %10s %8s\n", "budget", "share", "time", "overhead", "gap");
    for (uint32_t i = s->count; i-- > 0;) {
        const struct point *point = &s->points[i];
        (void)printf("%10s", words_bytes(point->budget_bytes).text);
        (void)printf(" %9s", words_percent(share(s, point)).text);
        if (!point->has_plan) {
            (void)printf(" %12s\n", "no plan");
            continue;
        }
        (void)printf(" %12s", words_time(point->iteration_ns).text);
        (void)printf(" %10s", words_percent(overhead(s, point)).text);
        (void)printf(" %8s", words_gap(point->iteration_ns, point->bound_ns).text);
        print_bar(widest > 0 ? overhead(s, point) / widest : 0);
    }
}

enum exit_code command_sweep(const struct options *options, struct region *region)
{
    struct profile profile;
    struct atp_error err;
    struct sweep s = {.options = options, .profile = &profile};
    enum exit_code code = command_input(options, region, &profile, NULL);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    if (choose_points(&s, region, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    s.stop = interrupt_watch(options->time_limit_ms);
    for (uint32_t i = 0; i < s.count && *s.stop == 0 && code == EXIT_CODE_DONE; i++) {
        if (plan_point(&s, i, &err) != ATP_OK) {
            code = command_fail(NULL, &err);
        }
    }
    region_destroy(s.held);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    if (*s.stop != 0) {
        (void)fputs("atp-plan: cut short; some budgets have the plan of a smaller one\n", stderr);
    }
    carry_all(&s);
    (options->csv ? print_csv : print_text)(&s);
    return s.points[s.count - 1].has_plan ? EXIT_CODE_DONE : EXIT_CODE_NO;
}
