/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One pass backward over steps finds how long each value can matter to reruns: a consumer comes
 * after its inputs' writers, so that its own horizon is known by then. One pass over tensors then
 * lists stretches and segments, one over steps the intervals. Linear in uses times cuts.
 */
#include "relax_model.h"

#include <stdlib.h>
#include <string.h>

/* Of the arena limit: what tiny tensors may amount to together. */
#define TINY_SHARE 1000U
/* Storage that goes through more versions than this while an old one may be wanted: the old one
 * counts as at hand, or chains of in-place steps would make the program quadratic. */
#define STALE_ACCESSES  16U
#define FIRST_INTERVALS 1024U /* a power of two */

uint32_t relax_needed_value(const struct relax_model *model, uint32_t access)
{
    /* The access before it on the same tensor left the version that this one needs. */
    return model->value_of[access - 1];
}

static void find_values(struct relax_model *model, struct region *region)
{
    const struct problem *problem = model->problem;
    model->value_of = REGION_NEW(region, uint32_t, problem->access_count);
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        uint32_t value = problem->first_access[t];
        for (uint32_t a = problem->first_access[t]; a < problem->first_access[t + 1]; a++) {
            value = problem->accesses[a].writes ? a : value;
            model->value_of[a] = value;
        }
    }
}

static int compare_sizes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The largest size so that all tensors up to it amount to TINY_SHARE of the arena at most. */
static void find_tiny(struct relax_model *model, struct region *region)
{
    const struct problem *problem = model->problem;
    uint32_t count = problem->model->tensor_count;
    uint64_t *sizes = REGION_NEW(region, uint64_t, count);
    memcpy(sizes, problem->tensor_bytes, count * sizeof(*sizes));
    qsort(sizes, count, sizeof(*sizes), compare_sizes);
    uint64_t sum = 0, limit = problem->arena_limit / TINY_SHARE;
    model->tiny_bytes = 0;
    for (uint32_t i = 0; i < count && sizes[i] <= limit - sum; i++) {
        sum += sizes[i];
        /* Equal sizes go together, or the choice would hang on ids. */
        if (i + 1 == count || sizes[i + 1] != sizes[i]) {
            model->tiny_bytes = sizes[i];
        }
    }
}

static bool is_big(const struct relax_model *model, uint32_t tensor)
{
    return model->problem->tensor_bytes[tensor] > model->tiny_bytes;
}

/* A checkpoint's index: the first whose position is above `position`. */
static uint32_t grid_after(const struct relax_grid *grid, uint32_t position)
{
    uint32_t low = 0, high = grid->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (grid->points[middle].step + 1 > position) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool memory_between(const struct relax_grid *grid, uint32_t first, uint32_t end)
{
    for (uint32_t k = grid_after(grid, first); k < grid->count; k++) {
        if (grid->points[k].step + 1 >= end) {
            return false;
        }
        if (grid->points[k].memory) {
            return true;
        }
    }
    return false;
}

/* Is the gap behind the access a decision: a live stretch? */
static bool is_decided(const struct relax_model *model, uint32_t access)
{
    const struct problem *problem = model->problem;
    const struct access *before = &problem->accesses[access];
    return before->has_next && is_big(model, before->tensor) &&
           relax_needs_version(&problem->accesses[access + 1]) &&
           memory_between(model->grid, relax_position(problem, access),
                          relax_position(problem, access + 1));
}

/* Last position at which any rerun of the step can help; 0: none can. */
static uint32_t step_horizon(const struct relax_model *model, uint32_t step,
                             const uint32_t *needed_until)
{
    const struct problem *problem = model->problem;
    uint32_t horizon = 0;
    if (!relax_may_rerun(problem, step)) {
        return 0;
    }
    for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
        uint32_t value = problem->step_accesses[i];
        const struct access *access = &problem->accesses[value];
        if (!access->writes || !is_big(model, access->tensor)) {
            continue;
        }
        horizon = needed_until[value] > horizon ? needed_until[value] : horizon;
        uint32_t end = problem->first_access[access->tensor + 1];
        for (uint32_t a = value; a < end && model->value_of[a] == value; a++) {
            if (is_decided(model, a) && relax_position(problem, a + 1) > horizon) {
                horizon = relax_position(problem, a + 1);
            }
        }
    }
    return horizon;
}

/* needed_until: per value, the last position at which it can serve a rerun; 0: never. */
static uint32_t *find_horizons(const struct relax_model *model, uint32_t *horizons,
                               struct region *region)
{
    const struct problem *problem = model->problem;
    uint32_t *needed_until = REGION_NEW(region, uint32_t, problem->access_count);
    for (uint32_t s = problem->model->step_count; s-- > 0;) {
        horizons[s] = step_horizon(model, s, needed_until);
        if (horizons[s] == 0) {
            continue;
        }
        for (uint32_t i = problem->step_first[s]; i < problem->step_first[s + 1]; i++) {
            uint32_t access = problem->step_accesses[i];
            if (is_big(model, problem->accesses[access].tensor) &&
                relax_needs_version(&problem->accesses[access])) {
                uint32_t value = relax_needed_value(model, access);
                if (horizons[s] > needed_until[value]) {
                    needed_until[value] = horizons[s];
                }
            }
        }
    }
    return needed_until;
}

static void add_segment(struct relax_model *model, uint32_t first, uint32_t end, bool absent)
{
    model->segments[model->segment_count++] = (struct relax_segment){
        .first = first,
        .end = end,
        .begins_absent = absent,
        .keep = ATP_NONE,
        .restore = ATP_NONE,
        .pass = ATP_NONE,
        .drop = ATP_NONE,
        .free = ATP_NONE,
        .leave = ATP_NONE,
    };
}

/* Segments of (first, end), cut at the grid's cuts. */
static void add_segments(struct relax_model *model, uint32_t first, uint32_t end, bool absent)
{
    const struct relax_grid *grid = model->grid;
    for (uint32_t k = grid_after(grid, first); k < grid->count; k++) {
        uint32_t cut = grid->points[k].step + 1;
        if (cut >= end) {
            break;
        }
        if (grid->points[k].cut) {
            add_segment(model, first, cut, absent);
            first = cut;
            absent = false;
        }
    }
    add_segment(model, first, end, absent);
}

static void begin_stretch(struct relax_model *model, uint32_t access, enum relax_stretch_kind kind)
{
    model->stretches[model->stretch_count++] = (struct relax_stretch){
        .access = access,
        .value = model->value_of[access],
        .kind = kind,
        .first_segment = model->segment_count,
        .copied = ATP_NONE,
    };
}

static void end_stretch(struct relax_model *model)
{
    struct relax_stretch *stretch = &model->stretches[model->stretch_count - 1];
    stretch->segment_count = model->segment_count - stretch->first_segment;
}

/* Accesses of one tensor from `access` on, before the position; `access` may be one behind its
 * last. */
static uint32_t count_accesses_before(const struct relax_model *model, uint32_t access,
                                      uint32_t position)
{
    const struct problem *problem = model->problem;
    uint32_t end = problem->first_access[problem->accesses[access - 1].tensor + 1], count = 0;
    while (access + count < end && relax_position(problem, access + count) < position) {
        count++;
    }
    return count;
}

/* The stretch after the last access that leaves this value: a tail, or stale where the storage goes
 * on to the next version. Storage at another version is a border at which the value is absent. */
static void add_last_stretch(struct relax_model *model, uint32_t last, uint32_t until)
{
    const struct problem *problem = model->problem;
    bool stale = problem->accesses[last].has_next;
    uint32_t first = relax_position(problem, stale ? last + 1 : last);
    if (until <= first ||
        (stale && count_accesses_before(model, last + 2, until) > STALE_ACCESSES)) {
        return;
    }
    begin_stretch(model, last, stale ? RELAX_STALE : RELAX_TAIL);
    if (stale) {
        uint32_t end = problem->first_access[problem->accesses[last].tensor + 1];
        for (uint32_t a = last + 2; a < end && relax_position(problem, a) < until; a++) {
            add_segments(model, first, relax_position(problem, a), true);
            first = relax_position(problem, a);
        }
    }
    add_segments(model, first, until, stale);
    end_stretch(model);
    /* A tail in one piece asks for nothing: the value is there when it begins. */
    if (!stale &&
        model->segment_count - model->stretches[model->stretch_count - 1].first_segment == 1) {
        model->stretch_count--;
        model->segment_count--;
    }
}

static void add_stretches(struct relax_model *model, const uint32_t *needed_until)
{
    const struct problem *problem = model->problem;
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        model->value_first_stretch[a] = model->stretch_count;
        if (model->value_of[a] != a || !is_big(model, access->tensor)) {
            continue;
        }
        uint32_t end = problem->first_access[access->tensor + 1], b = a;
        for (; b < end && model->value_of[b] == a; b++) {
            if (is_decided(model, b)) {
                begin_stretch(model, b, RELAX_LIVE);
                add_segments(model, relax_position(problem, b), relax_position(problem, b + 1),
                             false);
                end_stretch(model);
            }
        }
        add_last_stretch(model, b - 1, needed_until[a]);
    }
    model->value_first_stretch[problem->access_count] = model->stretch_count;
}

static uint32_t count_cuts(const struct relax_grid *grid)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < grid->count; k++) {
        count += grid->points[k].cut;
    }
    return count;
}

static int compare_positions(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Borders of the step's intervals: those of the segments of what it writes. Sorted; may repeat. */
static uint32_t list_borders(const struct relax_model *model, uint32_t step, uint32_t *borders)
{
    const struct problem *problem = model->problem;
    uint32_t count = 0;
    for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
        uint32_t value = problem->step_accesses[i];
        if (!problem->accesses[value].writes) {
            continue;
        }
        for (uint32_t g = model->value_first_stretch[value];
             g < model->value_first_stretch[value + 1]; g++) {
            const struct relax_stretch *stretch = &model->stretches[g];
            for (uint32_t l = 0; l < stretch->segment_count; l++) {
                borders[count++] = model->segments[stretch->first_segment + l].first;
                borders[count++] = model->segments[stretch->first_segment + l].end;
            }
        }
    }
    qsort(borders, count, sizeof(*borders), compare_positions);
    return count;
}

/* Does any value that the step writes have a segment that meets (first, end)? */
static bool is_useful(const struct relax_model *model, uint32_t step, uint32_t first, uint32_t end)
{
    const struct problem *problem = model->problem;
    for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
        uint32_t value = problem->step_accesses[i];
        if (!problem->accesses[value].writes) {
            continue;
        }
        for (uint32_t g = model->value_first_stretch[value];
             g < model->value_first_stretch[value + 1]; g++) {
            const struct relax_stretch *stretch = &model->stretches[g];
            const struct relax_segment *segments = &model->segments[stretch->first_segment];
            if (segments[0].first < end && segments[stretch->segment_count - 1].end > first) {
                return true;
            }
        }
    }
    return false;
}

static void add_interval(struct relax_model *model, uint32_t first, uint32_t end,
                         struct region *region)
{
    uint32_t count = model->interval_count;
    if (count >= FIRST_INTERVALS && (count & (count - 1)) == 0) {
        struct relax_interval *more = REGION_NEW(region, struct relax_interval, 2 * (size_t)count);
        memcpy(more, model->intervals, count * sizeof(*more));
        model->intervals = more;
    }
    model->intervals[model->interval_count++] =
        (struct relax_interval){.first = first, .end = end, .column = ATP_NONE, .later = ATP_NONE};
}

static void add_intervals(struct relax_model *model, const uint32_t *horizons,
                          struct region *region)
{
    uint32_t *borders = REGION_NEW(region, uint32_t, 2 * (size_t)model->segment_count);
    model->intervals = REGION_NEW(region, struct relax_interval, FIRST_INTERVALS);
    for (uint32_t s = 0; s < model->problem->model->step_count; s++) {
        model->step_first_interval[s] = model->interval_count;
        if (horizons[s] == 0) {
            continue;
        }
        uint32_t count = list_borders(model, s, borders);
        for (uint32_t i = 0; i + 1 < count; i++) {
            if (borders[i] < borders[i + 1] && is_useful(model, s, borders[i], borders[i + 1])) {
                add_interval(model, borders[i], borders[i + 1], region);
            }
        }
    }
    model->step_first_interval[model->problem->model->step_count] = model->interval_count;
}

void relax_model_build(const struct problem *problem, const struct relax_grid *grid,
                       struct region *region, struct relax_model *out_model)
{
    uint32_t step_count = problem->model->step_count, cuts = count_cuts(grid);
    *out_model = (struct relax_model){.problem = problem, .grid = grid};
    find_values(out_model, region);
    find_tiny(out_model, region);
    uint32_t *horizons = REGION_NEW(region, uint32_t, step_count);
    uint32_t *needed_until = find_horizons(out_model, horizons, region);
    /* Each access opens one live stretch at most, each value one more. */
    size_t stretches = 2 * (size_t)problem->access_count;
    out_model->value_first_stretch =
        REGION_NEW(region, uint32_t, (size_t)problem->access_count + 1);
    out_model->stretches = REGION_NEW(region, struct relax_stretch, stretches);
    out_model->segments =
        REGION_NEW(region, struct relax_segment,
                   (size_t)problem->access_count * (2 + STALE_ACCESSES) + stretches * cuts);
    add_stretches(out_model, needed_until);
    out_model->step_first_interval = REGION_NEW(region, uint32_t, (size_t)step_count + 1);
    add_intervals(out_model, horizons, region);
}
