/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 *     bench_recompute [INSTANCES [EFFORT [DIRECTORY]]]
 *
 * How near plans without swapping come to the true optimum of recomputation any number of times.
 * Random chains and DAGs of 8 to 14 layers on a link so slow that copies never pay, each at several
 * budgets from the least upwards; the optimum by exact search (recompute_optimum.h). Prints a line
 * for each kind and budget: cases; how many of them have a program without copies at all; how often
 * the plan is slower than the optimum, by how much in the median of those and at worst; how often
 * by more than 1 %; how far the bound lies below the optimum, in the median and at worst. Then the
 * cases that are more than 1 % slower, which are written to DIRECTORY as profiles.
 */
#include "problem.h"
#include "random_layers.h"
#include "recompute_optimum.h"
#include "solve.h"

#include <atp/simulate.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LAYERS_MIN      8U
#define LAYERS_MAX      14U
#define COPY_ITERATIONS 20U
#define SHARE_COUNT     6U

/* Of the way from the least budget to keeping everything, in percent. */
static const uint32_t shares[SHARE_COUNT] = {0, 5, 15, 30, 50, 75};

struct tally {
    uint32_t cases, possible, unplanned, worse, over_1_percent, excess_count;
    double *excess, *slack; /* per possible case: plan over optimum, optimum over bound */
};

struct bench {
    uint32_t instances, effort;
    const char *directory; /* NULL: none */
    struct tally tallies[2][SHARE_COUNT];
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    return count == 0 ? 0 : values[count / 2];
}

static void write_ids(FILE *out, const struct atp_model *model, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(out, "%s%s", i > 0 ? ", " : "", model->tensors[ids[i]].name);
    }
}

/* The optimum as a comment: steps in order, `r` before those that rerun; `-t` frees tensor t. */
static void write_optimum(const struct atp_plan *optimum, FILE *out)
{
    (void)fprintf(out, "# optimum %" PRId64 " ns:", optimum->predicted.iteration_ns);
    for (uint32_t i = 0; i < optimum->instruction_count; i++) {
        const struct atp_instruction *at = &optimum->program[i];
        if (at->op == ATP_OP_RUN || at->op == ATP_OP_RERUN) {
            const struct atp_step *step = &optimum->model.steps[at->id];
            (void)fprintf(out, " %s%s%s", at->op == ATP_OP_RERUN ? "r:" : "",
                          step->phase == ATP_PHASE_FORWARD ? "" : "d", step->name);
        } else if (at->op == ATP_OP_FREE) {
            (void)fprintf(out, " -%s", optimum->model.tensors[at->id].name);
        }
    }
    (void)fputc('\n', out);
}

static void write_profile(const struct profile *profile, uint64_t budget_bytes, FILE *out)
{
    const struct atp_model *model = &profile->model;
    (void)fprintf(out,
                  "# --budget %" PRIu64 " --alignment 1\natp_profile: 1\nmodel: %s\n"
                  "device: {name: made up, memory_bytes: %" PRIu64
                  ", d2h_bytes_per_second: %" PRIu64 ", h2d_bytes_per_second: %" PRIu64
                  "}\nbatch_size: 1\nresident_bytes: 0\n"
                  "tensors:\n",
                  budget_bytes, model->name, budget_bytes, profile->clock.d2h_bytes_per_second,
                  profile->clock.h2d_bytes_per_second);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        (void)fprintf(out, "  - {name: %s, bytes: %" PRIu64 "}\n", model->tensors[t].name,
                      model->tensors[t].bytes);
    }
    (void)fputs("steps:\n", out);
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        (void)fprintf(out, "  - {name: %s, phase: %s, time_us: %" PRId64 ".%03" PRId64 ", reads: [",
                      step->name, atp_phase_name(step->phase), profile->clock.step_ns[s] / 1000,
                      profile->clock.step_ns[s] % 1000);
        write_ids(out, model, step->reads, step->read_count);
        (void)fputs("], writes: [", out);
        write_ids(out, model, step->writes, step->write_count);
        (void)fputs("]}\n", out);
    }
}

static void keep_case(const struct bench *bench, const struct profile *profile,
                      uint64_t budget_bytes, const struct atp_plan *optimum, const char *name)
{
    char path[512];
    if (bench->directory == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%s.yaml", bench->directory, name);
    FILE *out = fopen(path, "w");
    if (out != NULL) {
        write_profile(profile, budget_bytes, out);
        write_optimum(optimum, out);
        (void)fclose(out);
    }
}

/* The exact search's program must be what it says. */
static void judge_optimum(const struct problem *problem, struct atp_plan *optimum, uint64_t limit,
                          const char *name)
{
    struct atp_error err = {0};
    int64_t claimed_ns = optimum->predicted.iteration_ns;
    enum atp_status status =
        atp_simulate(optimum, &problem->profile->clock, NULL, NULL, &optimum->predicted, &err);
    if (status == ATP_OK) {
        status = atp_plan_check(optimum, &err);
    }
    if (status != ATP_OK || optimum->predicted.iteration_ns != claimed_ns ||
        optimum->predicted.peak_bytes > limit) {
        (void)fprintf(stderr, "%s: the optimum is refused: %s\n", name, err.text);
        exit(EXIT_FAILURE);
    }
}

static void try_case(struct bench *bench, const struct profile *profile, uint32_t number,
                     uint32_t share, struct region *region)
{
    struct problem problem;
    struct atp_plan optimum, plan;
    struct solve_report report;
    struct atp_error err = {0};
    bool is_dag = number % 2 == 1;
    char name[64];
    if (problem_build(profile, UINT64_MAX / 4, 1, region, &problem, &err) != ATP_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(EXIT_FAILURE);
    }
    uint64_t least = problem.least_arena_bytes;
    uint64_t budget = least + (problem.peak_bytes - least) * shares[share] / 100;
    struct tally *tally = &bench->tallies[is_dag][share];
    (void)snprintf(name, sizeof(name), "%s%" PRIu32 "-%" PRIu32 "layers-at%" PRIu32,
                   is_dag ? "dag" : "chain", number / 2, profile->model.step_count / 2,
                   shares[share]);
    tally->cases++;
    if (!recompute_optimum(&problem, budget, region, &optimum)) {
        return;
    }
    judge_optimum(&problem, &optimum, budget, name);
    struct solve_options options = {
        .budget_bytes = budget, .alignment_bytes = 1, .effort = bench->effort};
    double best = (double)optimum.predicted.iteration_ns;
    if (solve(profile, &options, region, &plan, &report, &err) != ATP_OK) {
        (void)printf("%-24s no plan, optimum %.3f us: %s\n", name, best / 1e3, err.text);
        tally->unplanned++;
        keep_case(bench, profile, budget, &optimum, name);
        return;
    }
    double excess = (double)plan.predicted.iteration_ns / best - 1;
    tally->slack[tally->possible] = best / (double)plan.predicted.bound_ns - 1;
    tally->possible++;
    if (excess > 0) {
        tally->worse++;
        tally->excess[tally->excess_count++] = excess;
    }
    if (excess > 0.01) {
        tally->over_1_percent++;
        keep_case(bench, profile, budget, &optimum, name);
        (void)printf("%-24s budget %" PRIu64 ": plan %.3f us, optimum %.3f us, bound %.3f us: "
                     "%.2f %% worse%s\n",
                     name, budget, (double)plan.predicted.iteration_ns / 1e3, best / 1e3,
                     (double)plan.predicted.bound_ns / 1e3, 100 * excess,
                     plan.predicted.evicted_bytes > 0 ? ", swaps" : "");
    }
    if (excess < 0) {
        (void)fprintf(stderr, "%s: the plan beats the optimum\n", name);
        exit(EXIT_FAILURE);
    }
}

static void print_table(struct bench *bench)
{
    (void)printf("%-6s %6s %6s %9s %6s %8s %9s %9s %8s %11s %9s\n", "kind", "budget", "cases",
                 "possible", "worse", "by > 1 %", "median", "most", "no plan", "opt/bound m",
                 "most");
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < SHARE_COUNT; i++) {
            struct tally *t = &bench->tallies[kind][i];
            double middle = median(t->excess, t->excess_count);
            double slack = median(t->slack, t->possible);
            (void)printf("%-6s %5" PRIu32 "%% %6" PRIu32 " %9" PRIu32 " %6" PRIu32 " %8" PRIu32
                         " %8.2f%% %8.2f%% %8" PRIu32 " %10.2f%% %8.2f%%\n",
                         kind == 1 ? "dag" : "chain", shares[i], t->cases, t->possible, t->worse,
                         t->over_1_percent, 100 * middle,
                         t->excess_count == 0 ? 0 : 100 * t->excess[t->excess_count - 1],
                         t->unplanned, 100 * slack,
                         t->possible == 0 ? 0 : 100 * t->slack[t->possible - 1]);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .instances = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 60,
        .effort = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1,
        .directory = argc > 3 ? argv[3] : NULL,
    };
    struct region *numbers = region_create();
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < SHARE_COUNT; i++) {
            bench.tallies[kind][i].excess = REGION_NEW(numbers, double, bench.instances);
            bench.tallies[kind][i].slack = REGION_NEW(numbers, double, bench.instances);
        }
    }
    for (uint32_t number = 0; number < bench.instances; number++) {
        struct region *region = region_create();
        struct random random = {number + 1};
        struct profile profile;
        uint32_t layers = LAYERS_MIN + number / 2 % (LAYERS_MAX - LAYERS_MIN + 1);
        random_layers_build(&random, layers, number % 2 == 1, COPY_ITERATIONS, region, &profile);
        for (uint32_t share = 0; share < SHARE_COUNT; share++) {
            struct region_mark mark = region_mark(region);
            try_case(&bench, &profile, number, share, region);
            region_reset(region, mark);
            (void)fflush(stdout);
        }
        region_destroy(region);
    }
    print_table(&bench);
    region_destroy(numbers);
    return EXIT_SUCCESS;
}
