/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two solves. The first knows no cuts: a rerun is free to happen while its inputs are still there.
 * Its memory prices say where memory is dear; the second cuts stretches there, so that a rerun
 * early pays for keeping what it made, and a rerun late for keeping or remaking what it reads.
 */
#include "relax.h"

#include "certificate.h"
#include "fail.h"
#include "relax_rows.h"
#include "solver_glpk.h"

#include <string.h>

#define MEMORY_ROWS 120U

static bool is_stopped(const struct relax_options *options)
{
    return options->stop != NULL && *options->stop != 0;
}

static void keep_everything(const struct problem *problem, struct region *region,
                            struct relax_solution *out)
{
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

static enum atp_status solve_grid(const struct problem *problem,
                                  const struct relax_options *options, struct relax_grid *grid,
                                  struct region *region, struct relax_solution *out,
                                  struct atp_error *err)
{
    struct relax_model model;
    struct relax_rows rows;
    struct solver_result result;
    struct solver_options limits = {.iteration_limit = options->iteration_limit - out->iterations,
                                    .stop = options->stop};
    relax_model_build(problem, grid, region, &model);
    relax_rows_build(&model, region, &rows);
    ATP_TRY(solver_solve(&rows.lp, &limits, region, &result, err));
    out->row_count = rows.lp.row_count;
    out->column_count = rows.lp.column_count;
    out->iterations += result.iterations;
    int64_t bound =
        relax_bound_ns(&rows, problem, certificate_value(&rows.lp, result.multipliers, region));
    if (bound > out->bound_ns) {
        out->bound_ns = bound;
    }
    read_shares(&model, result.values, out);
    return ATP_OK;
}

enum atp_status relax_solve(const struct problem *problem, const struct relax_options *options,
                            struct region *region, struct relax_solution *out_solution,
                            struct atp_error *err)
{
    struct relax_grid grid;
    keep_everything(problem, region, out_solution);
    relax_grid_build(problem, MEMORY_ROWS, region, &grid);
    if (grid.count == 0 || is_stopped(options)) {
        return ATP_OK;
    }
    return solve_grid(problem, options, &grid, region, out_solution, err);
}
