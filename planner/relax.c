/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The first program knows no cuts: a rerun is free to happen while its inputs are still there. Its
 * memory prices say where memory is dear. Cuts there make a rerun that comes early pay for keeping
 * what it made, and one that comes late for keeping or remaking what it reads. Every cut costs
 * columns, and more in iterations, so they are tried one at a time; the best cut stays while cuts
 * help and iterations last. Each program's bound is proven on its own: the largest counts.
 */
#include "relax.h"

#include "certificate.h"
#include "fail.h"
#include "relax_rows.h"
#include "solver_glpk.h"

#include <string.h>

/* More rows hardly raise the bound: neighbouring peaks ask the same. */
#define MEMORY_ROWS 24U
/* Where cuts are tried: at these tenths of the memory prices' sum. */
static const double cut_shares[] = {0.5, 0.35, 0.65, 0.2, 0.8};
#define CUT_SHARE_COUNT (sizeof(cut_shares) / sizeof(cut_shares[0]))
/* A cut stays when it raises the bound by this part of the compute time. */
#define CUT_WORTH 5000
#define CUTS_MAX  3U
/* What one program may take of the iterations: enough for nearly all of its kind, so that one on
 * which the simplex method hardly moves does not eat what is left for others. */
#define ITERATIONS_PER_CUT UINT64_C(6)
#define ITERATIONS_FIRST   UINT64_C(2000)
/* Part of the compute time that shorter multipliers may cost. */
#define CERTIFICATE_LOSS 1000000

struct attempt {
    struct relax_grid grid;
    struct relax_model model;
    struct relax_rows rows;
    struct solver_result result;
    int64_t bound_ns;
};

static bool is_stopped(const struct relax_options *options)
{
    return options->stop != NULL && *options->stop != 0;
}

void relax_trivially(const struct problem *problem, struct region *region,
                     struct relax_solution *out_solution)
{
    struct relax_solution *out = out_solution;
    memset(out, 0, sizeof(*out));
    out->bound_ns = problem->compute_ns;
    out->keep = REGION_NEW(region, double, problem->access_count);
    out->swap = REGION_NEW(region, double, problem->access_count);
    out->recompute = REGION_NEW(region, double, problem->access_count);
    for (uint32_t a = 0; a < problem->access_count; a++) {
        out->keep[a] = 1;
    }
}

static double clamp_share(double share, double limit)
{
    return share < 0 ? 0 : share > limit ? limit : share;
}

/* Share of the gap's value that reruns make anew. */
static double rerun_share(const struct relax_model *model, const struct relax_stretch *stretch,
                          const double *values)
{
    uint32_t step = model->problem->accesses[stretch->value].step;
    const struct relax_segment *segments = &model->segments[stretch->first_segment];
    uint32_t first = segments[0].first, end = segments[stretch->segment_count - 1].end;
    double share = 0;
    if (step == ATP_NONE) {
        return 0;
    }
    for (uint32_t i = model->step_first_interval[step]; i < model->step_first_interval[step + 1];
         i++) {
        if (model->intervals[i].first < end && model->intervals[i].end > first) {
            share += values[model->intervals[i].column];
        }
    }
    return share;
}

static void read_shares(const struct relax_model *model, const double *values,
                        struct relax_solution *out)
{
    for (uint32_t g = 0; g < model->stretch_count; g++) {
        const struct relax_stretch *stretch = &model->stretches[g];
        if (stretch->kind != RELAX_LIVE) {
            continue;
        }
        const struct relax_segment *segments = &model->segments[stretch->first_segment];
        double keep = 1;
        for (uint32_t l = 0; l < stretch->segment_count; l++) {
            keep = clamp_share(values[segments[l].keep], keep);
        }
        out->keep[stretch->access] = keep;
        out->recompute[stretch->access] =
            clamp_share(rerun_share(model, stretch, values), 1 - keep);
        out->swap[stretch->access] = 1 - keep - out->recompute[stretch->access];
    }
}

struct search {
    const struct problem *problem;
    const struct relax_options *options;
    struct region *region;
    struct relax_solution *out;
    const struct attempt *best;
    uint64_t attempt_limit; /* of iterations */
};

static bool is_over(const struct search *search)
{
    return search->out->iterations >= search->options->iteration_limit ||
           is_stopped(search->options);
}

static enum atp_status try_grid(struct search *search, const struct relax_grid *grid,
                                const struct attempt **out_attempt, struct atp_error *err)
{
    struct attempt *attempt = REGION_NEW(search->region, struct attempt, 1);
    struct relax_solution *out = search->out;
    uint64_t left = search->options->iteration_limit - out->iterations;
    struct solver_options limits = {
        .iteration_limit = left < search->attempt_limit ? left : search->attempt_limit,
        .stop = search->options->stop,
    };
    attempt->grid = *grid;
    relax_model_build(search->problem, &attempt->grid, search->region, &attempt->model);
    relax_rows_build(&attempt->model, search->region, &attempt->rows);
    const struct lp *lp = &attempt->rows.lp;
    ATP_TRY(solver_solve(lp, &limits, search->region, &attempt->result, err));
    out->iterations += attempt->result.iterations;
    attempt->bound_ns =
        relax_bound_ns(&attempt->rows, search->problem,
                       certificate_value(lp, attempt->result.multipliers, search->region));
    if (search->best == NULL || attempt->bound_ns > search->best->bound_ns) {
        search->best = attempt;
    }
    *out_attempt = attempt;
    return ATP_OK;
}

/* The checkpoint by which `share` of the memory prices' sum is reached. */
static uint32_t find_price(const struct attempt *attempt, double share)
{
    const double *multipliers = attempt->result.multipliers;
    const uint32_t *rows = attempt->rows.memory_rows;
    double sum = 0, part = 0;
    for (uint32_t k = 0; k < attempt->grid.count; k++) {
        sum += rows[k] != ATP_NONE && multipliers[rows[k]] > 0 ? multipliers[rows[k]] : 0;
    }
    for (uint32_t k = 0; k + 1 < attempt->grid.count; k++) {
        part += rows[k] != ATP_NONE && multipliers[rows[k]] > 0 ? multipliers[rows[k]] : 0;
        if (part >= share * sum) {
            return k;
        }
    }
    return attempt->grid.count;
}

/* Adds the best of the cuts that are tried. `prices` is the attempt without cuts. */
static enum atp_status add_cut(struct search *search, const struct attempt *prices,
                               struct atp_error *err)
{
    const struct attempt *base = search->best, *attempt;
    for (uint32_t i = 0; i < CUT_SHARE_COUNT && !is_over(search); i++) {
        struct relax_grid grid;
        uint32_t price = find_price(prices, cut_shares[i]), point = 0;
        if (price == prices->grid.count) {
            continue;
        }
        /* The same checkpoint in the grid with cuts. */
        while (base->grid.points[point].step < prices->grid.points[price].step) {
            point++;
        }
        if (point + 1 >= base->grid.count || base->grid.points[point + 1].cut) {
            continue;
        }
        relax_grid_cut(search->problem, &base->grid, point, search->region, &grid);
        ATP_TRY(try_grid(search, &grid, &attempt, err));
    }
    return ATP_OK;
}

/* The bound is the certificate's: whoever reads it proves just that. */
static void certify(const struct attempt *attempt, const struct problem *problem,
                    struct region *region, struct relax_solution *out)
{
    struct certificate *certificate = REGION_NEW(region, struct certificate, 1);
    int64_t goal_ns = attempt->bound_ns - problem->compute_ns / CERTIFICATE_LOSS;
    out->bound_ns = certificate_make(problem, &attempt->grid, &attempt->rows,
                                     attempt->result.multipliers, goal_ns, region, certificate);
    out->certificate = out->bound_ns > problem->compute_ns ? certificate : NULL;
}

static enum atp_status search_cuts(struct search *search, const struct relax_grid *grid,
                                   struct atp_error *err)
{
    const struct attempt *prices;
    search->attempt_limit = UINT64_MAX;
    ATP_TRY(try_grid(search, grid, &prices, err));
    for (uint32_t cuts = 0; cuts < CUTS_MAX && !is_over(search); cuts++) {
        int64_t before_ns = search->best->bound_ns;
        search->attempt_limit =
            ITERATIONS_FIRST + ITERATIONS_PER_CUT * (cuts + 1) * prices->result.iterations;
        ATP_TRY(add_cut(search, prices, err));
        if (search->best->bound_ns - before_ns < search->problem->compute_ns / CUT_WORTH) {
            break;
        }
    }
    return ATP_OK;
}

/* Branch and cut on the program with the best bound. */
static enum atp_status find_whole(const struct search *search, struct atp_error *err)
{
    const struct attempt *best = search->best;
    struct relax_solution *out = search->out;
    struct solver_result result;
    const struct solver_options limits = {
        .iteration_limit = best->result.iterations + 1,
        .node_limit = search->options->node_limit,
        .stop = search->options->stop,
    };
    ATP_TRY(solver_solve_whole(&best->rows.lp, &limits, search->region, &result, err));
    out->iterations += result.iterations;
    out->nodes = result.nodes;
    out->whole = result.whole;
    if (result.whole) {
        read_shares(&best->model, result.whole_values, out);
    }
    return ATP_OK;
}

enum atp_status relax_solve(const struct problem *problem, const struct relax_options *options,
                            struct region *region, struct relax_solution *out_solution,
                            struct atp_error *err)
{
    struct relax_grid grid;
    struct search search = {
        .problem = problem, .options = options, .region = region, .out = out_solution};
    relax_trivially(problem, region, out_solution);
    relax_grid_build(problem, MEMORY_ROWS, region, &grid);
    if (grid.count == 0 || is_over(&search)) {
        return ATP_OK;
    }
    ATP_TRY(search_cuts(&search, &grid, err));
    const struct attempt *best = search.best;
    out_solution->row_count = best->rows.lp.row_count;
    out_solution->column_count = best->rows.lp.column_count;
    if (best->result.iterations > 0) {
        read_shares(&best->model, best->result.values, out_solution);
    }
    if (best->bound_ns > problem->compute_ns) {
        certify(best, problem, region, out_solution);
    }
    if (options->node_limit > 0 && best->result.optimal && !is_stopped(options)) {
        ATP_TRY(find_whole(&search, err));
    }
    return ATP_OK;
}
