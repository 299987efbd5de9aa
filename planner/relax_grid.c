/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Neighbouring steps ask nearly the same of memory, so that a few dozen peaks stand for all of
 * them.
 */
#include "relax_model.h"

#include <string.h>

/* After the last memory row, for the copies that are still to come back. */
#define TAIL_COUNT 12U

static bool is_short(const struct problem *problem, uint32_t step)
{
    /* Where the working set alone does not fit, no program exists: nothing to bound. */
    return problem->live_bytes[step] > problem->arena_limit &&
           problem->working_set_bytes[step] <= problem->arena_limit;
}

/* A local peak of what is live; of equal neighbours the first. */
static bool is_peak(const struct problem *problem, uint32_t step)
{
    const uint64_t *live = problem->live_bytes;
    uint32_t last = problem->model->step_count - 1;
    return is_short(problem, step) && (step == 0 || live[step] > live[step - 1]) &&
           (step == last || live[step] >= live[step + 1]);
}

/* The highest of each of `memory_count` groups of neighbouring peaks. */
static void add_peaks(const struct problem *problem, uint32_t memory_count, struct region *region,
                      struct relax_grid *grid)
{
    uint32_t step_count = problem->model->step_count, peak_count = 0;
    uint32_t *peaks = REGION_NEW(region, uint32_t, step_count);
    for (uint32_t s = 0; s < step_count; s++) {
        if (is_peak(problem, s)) {
            peaks[peak_count++] = s;
        }
    }
    uint32_t groups = peak_count < memory_count ? peak_count : memory_count;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t begin = (uint32_t)((uint64_t)peak_count * g / groups);
        uint32_t end = (uint32_t)((uint64_t)peak_count * (g + 1) / groups);
        uint32_t best = peaks[begin];
        for (uint32_t i = begin + 1; i < end; i++) {
            best = problem->live_bytes[peaks[i]] > problem->live_bytes[best] ? peaks[i] : best;
        }
        grid->points[grid->count++] = (struct relax_checkpoint){.step = best, .memory = true};
    }
}

void relax_grid_build(const struct problem *problem, uint32_t memory_count, struct region *region,
                      struct relax_grid *out_grid)
{
    uint32_t step_count = problem->model->step_count;
    out_grid->count = 0;
    out_grid->points = REGION_NEW(region, struct relax_checkpoint, (size_t)step_count + TAIL_COUNT);
    add_peaks(problem, memory_count, region, out_grid);
    if (out_grid->count == 0) {
        return;
    }
    uint32_t last = out_grid->points[out_grid->count - 1].step;
    uint32_t left = step_count - 1 - last, count = left < TAIL_COUNT ? left : TAIL_COUNT;
    for (uint32_t i = 1; i <= count; i++) {
        out_grid->points[out_grid->count++] =
            (struct relax_checkpoint){.step = last + (uint32_t)((uint64_t)left * i / count)};
    }
}

void relax_grid_cut(const struct problem *problem, const struct relax_grid *grid, uint32_t point,
                    struct region *region, struct relax_grid *out_grid)
{
    uint32_t first = grid->points[point].step + 1, end = grid->points[point + 1].step, best = first;
    out_grid->points = REGION_NEW(region, struct relax_checkpoint, (size_t)grid->count + 1);
    out_grid->count = grid->count;
    memcpy(out_grid->points, grid->points, grid->count * sizeof(*grid->points));
    if (first >= end) {
        out_grid->points[point + 1].cut = true;
        return;
    }
    for (uint32_t s = first; s < end; s++) {
        best = problem->live_bytes[s] < problem->live_bytes[best] ? s : best;
    }
    memmove(out_grid->points + point + 2, out_grid->points + point + 1,
            (grid->count - point - 1) * sizeof(*grid->points));
    out_grid->points[point + 1] = (struct relax_checkpoint){.step = best, .cut = true};
    out_grid->count++;
}
