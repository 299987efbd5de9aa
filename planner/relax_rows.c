/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The argument that the program is a relaxation. Take any program that the checker accepts; set the
 * columns to what it does:
 *
 * - keep: 1 when the value is on the device, readable, without a break from the segment's first
 *   position to its end
 * - restore: the value is there at the segment's end, not kept through it, its writer does not
 * rerun in the segment: so it comes back there by a restore, whose bytes it keeps until the end
 * - pass: the value is absent at both ends of the segment, its writer does not rerun there, and
 * some `restored` of it lies there, to serve reruns
 * - drop: the first release of the value in the stretch lies in this segment, and what makes it
 * anew next is a restore
 * - free, of drop: an earlier stretch of the value had a drop too, so that its copy to the host is
 *   there already
 * - copied: a stale value was evicted and released before the next version was written, in a gap
 *   that is no stretch
 * - rerun: the step reruns at least once in the interval
 * - time: what stalls and reruns take between one checkpoint's run and the next
 *
 * A value that is there and has been restored needs a host copy that was complete before it was
 * released, unless a rerun made it anew in between. Only one copy to the host is counted per value:
 * that of its first drop. All other copies only slow the engines down.
 *
 * Where a fluid share would do better than any program, the bound is the weaker for it: copies may
 * stop half-way, latency counts nothing, reruns need no memory, placement always succeeds. Sizes
 * are those of the model, not rounded to an alignment, so that the bound holds for every alignment.
 */
#include "relax_build.h"

#include <math.h>
#include <stdlib.h>

#define UNIT_SHARE 1024.0

static double round_up(double value)
{
    return value > 0 ? nextafter(value, INFINITY) : value;
}

static uint64_t value_bytes(const struct builder *b, uint32_t access)
{
    const struct problem *problem = b->model->problem;
    return problem->model->tensors[problem->accesses[access].tensor].bytes;
}

static double scaled_bytes(const struct builder *b, uint32_t access)
{
    return (double)value_bytes(b, access) / b->byte_unit;
}

static uint32_t point_position(const struct builder *b, uint32_t k)
{
    return b->model->grid->points[k].step + 1;
}

/* First checkpoint at `position` or later. */
static uint32_t point_at(const struct builder *b, uint32_t position)
{
    uint32_t low = 0, high = b->model->grid->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (point_position(b, middle) >= position) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void add_change(struct builder *b, enum relax_sum sum, uint32_t point, uint32_t column,
                       double value)
{
    struct change_list *list = &b->lists[sum];
    if (column == ATP_NONE || point > b->model->grid->count) {
        return;
    }
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        struct change *changes = REGION_NEW(b->region, struct change, capacity);
        for (uint32_t i = 0; i < list->count; i++) {
            changes[i] = list->changes[i];
        }
        list->changes = changes;
        list->capacity = capacity;
    }
    list->changes[list->count++] = (struct change){point, column, value};
    b->sum_limit[sum] += value > 0 ? value : 0;
}

static uint32_t share_column(struct builder *b)
{
    uint32_t column = lp_add_column(b->lp, 0, 1, 0);
    b->lp->columns[column].integer = true;
    return column;
}

static void add_interval_columns(struct builder *b)
{
    struct relax_model *model = b->model;
    for (uint32_t s = 0; s < model->problem->model->step_count; s++) {
        uint32_t first = model->step_first_interval[s], end = model->step_first_interval[s + 1];
        for (uint32_t i = first; i < end; i++) {
            model->intervals[i].column = share_column(b);
        }
        for (uint32_t i = first; i < end; i++) {
            model->intervals[i].later = i + 1 == end ? model->intervals[i].column : share_column(b);
        }
    }
}

static bool has_reruns(const struct relax_model *model, uint32_t value)
{
    const struct access *access = &model->problem->accesses[value];
    return access->writes &&
           model->step_first_interval[access->step] < model->step_first_interval[access->step + 1];
}

/* Stretches lie in time order, so that those before a value's stale one are its decided gaps. */
static bool has_undecided_gap(const struct relax_model *model, uint32_t g)
{
    const struct relax_stretch *stretch = &model->stretches[g];
    return g - model->value_first_stretch[stretch->value] < stretch->access - stretch->value + 1;
}

static void add_segment_columns(struct builder *b, uint32_t g)
{
    struct relax_stretch *stretch = &b->model->stretches[g];
    struct relax_segment *segments = &b->model->segments[stretch->first_segment];
    if (stretch->kind == RELAX_STALE && has_undecided_gap(b->model, g)) {
        stretch->copied = share_column(b);
    }
    for (uint32_t l = 0; l < stretch->segment_count; l++) {
        struct relax_segment *segment = &segments[l];
        bool last = l + 1 == stretch->segment_count;
        segment->keep = segment->begins_absent ? ATP_NONE : share_column(b);
        segment->restore = !last || stretch->kind == RELAX_LIVE ? share_column(b) : ATP_NONE;
        /* Present at one end or other, it serves reruns without a pass. */
        if (segment->begins_absent || (l > 0 && !(last && stretch->kind == RELAX_LIVE))) {
            segment->pass = share_column(b);
        }
        if (stretch->kind != RELAX_STALE) {
            bool same = stretch->kind == RELAX_LIVE && stretch->segment_count == 1;
            segment->drop = same ? segment->restore : share_column(b);
            segment->free = may_free(b->model, g) ? share_column(b) : ATP_NONE;
            segment->leave =
                !last && has_reruns(b->model, stretch->value) ? share_column(b) : ATP_NONE;
        }
    }
}

static void add_segment_changes(struct builder *b, uint32_t g)
{
    const struct relax_stretch *stretch = &b->model->stretches[g];
    const struct relax_segment *segments = &b->model->segments[stretch->first_segment];
    double bytes = scaled_bytes(b, stretch->value);
    uint32_t made = point_at(b, relax_position(b->model->problem, stretch->value) + 1);
    uint32_t away = point_at(b, segments[0].first + 1);
    for (uint32_t l = 0; l < stretch->segment_count; l++) {
        const struct relax_segment *segment = &segments[l];
        bool last = l + 1 == stretch->segment_count;
        uint32_t begin = point_at(b, segment->first + 1);
        /* What is kept up to a cut is there at the cut's own run. */
        bool cut = !last && !segments[l + 1].begins_absent;
        uint32_t end = point_at(b, segment->end + cut), needed = point_at(b, segment->end);
        add_change(b, RELAX_KEPT, begin, segment->keep, bytes);
        add_change(b, RELAX_KEPT, end, segment->keep, -bytes);
        add_change(b, RELAX_DROPPED, begin, segment->drop, bytes);
        add_change(b, RELAX_DROPPED, begin, segment->free, -bytes);
        if (!may_free(b->model, g)) {
            add_change(b, RELAX_DROPPED, end, segment->leave, bytes);
            add_change(b, RELAX_MADE, made, segment->leave, bytes);
        }
        add_change(b, RELAX_MADE, made, segment->drop, bytes);
        add_change(b, RELAX_MADE, made, segment->free, -bytes);
        add_change(b, RELAX_NEEDED, needed, segment->restore, bytes);
        add_change(b, RELAX_EASED, end, segment->restore, bytes);
        /* Its restore may have begun in an earlier segment, but not while the value was in place.
         */
        away = segment->begins_absent ? begin : away;
        add_change(b, RELAX_BEGUN, away, segment->pass, bytes);
        add_change(b, RELAX_PASSED, needed, segment->pass, bytes);
    }
}

/* Between two cuts, stalls and reruns together take at least the time of the steps that rerun
 * there.
 */
static void add_time_rows(struct builder *b)
{
    const struct relax_model *model = b->model;
    const struct relax_grid *grid = model->grid;
    for (uint32_t k = 0; k <= grid->count;) {
        uint32_t first = k == 0 ? 0 : point_position(b, k - 1);
        (void)lp_begin_row(b->lp, 0, false);
        do {
            lp_add_term(b->lp, b->rows->times[k++], 1);
        } while (k <= grid->count && !grid->points[k - 1].cut);
        uint32_t end = k > grid->count ? UINT32_MAX : point_position(b, k - 1);
        for (uint32_t s = 0; s < model->problem->model->step_count; s++) {
            for (uint32_t i = model->step_first_interval[s]; i < model->step_first_interval[s + 1];
                 i++) {
                if (model->intervals[i].first >= first && model->intervals[i].first < end) {
                    double ns = (double)model->problem->profile->clock.step_ns[s];
                    lp_add_term(b->lp, model->intervals[i].column, -ns / b->time_unit);
                }
            }
        }
    }
}

/* What is copied out between two neighbouring runs, the next of which writes it, is copied while
 * nothing runs, or reruns alone. */
static void add_copied_rows(struct builder *b)
{
    const struct relax_model *model = b->model;
    for (uint32_t g = 0; g < model->stretch_count; g++) {
        const struct relax_stretch *stretch = &model->stretches[g];
        uint32_t end = relax_position(model->problem, stretch->access + 1);
        if (stretch->copied == ATP_NONE ||
            relax_position(model->problem, stretch->value) + 1 != end) {
            continue;
        }
        (void)lp_begin_row(b->lp, 0, false);
        lp_add_term(b->lp, b->rows->times[point_at(b, end)], b->out_rate);
        lp_add_term(b->lp, stretch->copied, -scaled_bytes(b, stretch->value));
    }
}

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    if (a->order != b->order) {
        return a->order < b->order ? -1 : 1;
    }
    return (a->column > b->column) - (a->column < b->column);
}

/* Running sums as columns of their own: rows that use them stay sparse. The needed bytes have one
 * more place, for what comes back after the last checkpoint. */
static void add_sum(struct builder *b, enum relax_sum sum)
{
    struct change_list *list = &b->lists[sum];
    uint32_t count = b->model->grid->count + (sum == RELAX_NEEDED || sum == RELAX_PASSED), next = 0;
    b->rows->sums[sum] = REGION_NEW(b->region, uint32_t, (size_t)count + 1);
    if (list->count > 1) {
        qsort(list->changes, list->count, sizeof(*list->changes), compare_changes);
    }
    for (uint32_t k = 0; k < count; k++) {
        b->rows->sums[sum][k] = lp_add_column(b->lp, 0, round_up(b->sum_limit[sum]), 0);
        (void)lp_begin_row(b->lp, 0, true);
        lp_add_term(b->lp, b->rows->sums[sum][k], 1);
        if (k > 0) {
            lp_add_term(b->lp, b->rows->sums[sum][k - 1], -1);
        }
        for (; next < list->count && list->changes[next].order == k; next++) {
            lp_add_term(b->lp, list->changes[next].column, -list->changes[next].value);
        }
    }
}

/* Nanoseconds of steps [first, end). */
static double step_times(const struct builder *b, uint32_t first, uint32_t end)
{
    int64_t sum = 0;
    for (uint32_t s = first; s < end; s++) {
        sum += b->model->problem->profile->clock.step_ns[s];
    }
    return (double)sum / b->time_unit;
}

/* Begins: later <= earlier + rate (elapsed + stalls and reruns of epoch k). */
static void begin_engine_row(struct builder *b, double rate, double elapsed, uint32_t k)
{
    (void)lp_begin_row(b->lp, -round_up(rate * elapsed), false);
    lp_add_term(b->lp, b->rows->times[k], rate);
}

static void add_order_row(struct builder *b, uint32_t larger, uint32_t smaller)
{
    (void)lp_begin_row(b->lp, 0, false);
    lp_add_term(b->lp, larger, 1);
    lp_add_term(b->lp, smaller, -1);
}

static void add_out_rows(struct builder *b, uint32_t k)
{
    const struct relax_grid *grid = b->model->grid;
    uint32_t step = grid->points[k].step, before = k == 0 ? 0 : grid->points[k - 1].step;
    b->rows->outs[k] = lp_add_column(b->lp, 0, round_up(b->sum_limit[RELAX_MADE]), 0);
    b->rows->released[k] = lp_add_column(b->lp, 0, round_up(b->sum_limit[RELAX_DROPPED]), 0);
    /* By the start of the checkpoint's run: the engine moves at most rate x elapsed; only what was
     * made can be copied, only what was copied is released, and only in a stretch that has begun.
     */
    begin_engine_row(b, b->out_rate, step_times(b, before, step), k);
    lp_add_term(b->lp, b->rows->outs[k], -1);
    if (k > 0) {
        lp_add_term(b->lp, b->rows->outs[k - 1], 1);
    }
    add_order_row(b, b->rows->sums[RELAX_MADE][k], b->rows->outs[k]);
    add_order_row(b, b->rows->outs[k], b->rows->released[k]);
    add_order_row(b, b->rows->sums[RELAX_DROPPED][k], b->rows->released[k]);
}

static void add_ins_before(struct builder *b, uint32_t k)
{
    if (k > 0) {
        lp_add_term(b->lp, b->rows->ins[k - 1], 1);
        lp_add_term(b->lp, b->rows->passes[k - 1], 1);
    }
}

static void add_in_rows(struct builder *b, uint32_t k)
{
    const struct relax_grid *grid = b->model->grid;
    uint32_t first = k == 0 ? 0 : grid->points[k - 1].step + 1;
    uint32_t end = k == grid->count ? b->model->problem->model->step_count : grid->points[k].step;
    /* ins, passes: copied back by the end of the checkpoint's run. What is needed by its start was
     * copied by then. */
    begin_engine_row(b, b->in_rate, step_times(b, first, end), k);
    lp_add_term(b->lp, b->rows->sums[RELAX_NEEDED][k], -1);
    lp_add_term(b->lp, b->rows->sums[RELAX_PASSED][k], -1);
    add_ins_before(b, k);
    if (k == grid->count) {
        return;
    }
    b->rows->ins[k] = lp_add_column(b->lp, 0, round_up(b->sum_limit[RELAX_NEEDED]), 0);
    b->rows->passes[k] = lp_add_column(b->lp, 0, round_up(b->sum_limit[RELAX_PASSED]), 0);
    begin_engine_row(b, b->in_rate, step_times(b, first, end + 1), k);
    lp_add_term(b->lp, b->rows->ins[k], -1);
    lp_add_term(b->lp, b->rows->passes[k], -1);
    add_ins_before(b, k);
    add_order_row(b, b->rows->ins[k], b->rows->sums[RELAX_NEEDED][k]);
    add_order_row(b, b->rows->passes[k], b->rows->sums[RELAX_PASSED][k]);
    add_order_row(b, b->rows->sums[RELAX_BEGUN][k], b->rows->passes[k]);
    if (k > 0) {
        add_order_row(b, b->rows->ins[k], b->rows->ins[k - 1]);
    }
}

static uint64_t working_set(const struct problem *problem, uint32_t step)
{
    uint64_t bytes = problem->model->steps[step].workspace_bytes;
    for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
        bytes += problem->model->tensors[problem->accesses[problem->step_accesses[i]].tensor].bytes;
    }
    return bytes;
}

/* While the checkpoint runs these lie side by side: its working set; what is kept in segments
 * around it; what is to be dropped and not yet released; and what was copied back of restores whose
 * end has not come (the restores that do not count here are eased off from their segment's begin
 * on). */
static uint32_t add_memory_row(struct builder *b, uint32_t k)
{
    uint32_t step = b->model->grid->points[k].step;
    double left = b->limit - (double)working_set(b->model->problem, step);
    uint32_t row = lp_begin_row(b->lp, -(left / b->byte_unit), false);
    lp_add_term(b->lp, b->rows->sums[RELAX_KEPT][k], -1);
    lp_add_term(b->lp, b->rows->sums[RELAX_DROPPED][k], -1);
    lp_add_term(b->lp, b->rows->released[k], 1);
    lp_add_term(b->lp, b->rows->ins[k], -1);
    lp_add_term(b->lp, b->rows->sums[RELAX_EASED][k], 1);
    return row;
}

static double power_of_two_at_least(double value)
{
    double unit = 1;
    while (unit < value) {
        unit *= 2;
    }
    return unit;
}

static double rate_in_units(const struct builder *b, uint64_t bytes_per_second)
{
    /* Two roundings: of the number, of the quotient. */
    double rate = (double)bytes_per_second / 1e9;
    return round_up(round_up(round_up(rate))) * b->time_unit / b->byte_unit;
}

static void set_units(struct builder *b, struct relax_rows *rows)
{
    const struct problem *problem = b->model->problem;
    const struct atp_clock *clock = &problem->profile->clock;
    /* Any arena within budget - resident, whatever the plan's alignment. */
    b->limit = (double)(problem->arena_limit + (problem->alignment_bytes - 1));
    b->byte_unit = rows->byte_unit = power_of_two_at_least(b->limit / UNIT_SHARE);
    b->time_unit = rows->time_unit =
        power_of_two_at_least((double)problem->compute_ns / UNIT_SHARE);
    b->out_rate = rate_in_units(b, clock->d2h_bytes_per_second);
    b->in_rate = rate_in_units(b, clock->h2d_bytes_per_second);
}

/* Sums of whole numbers up to 2^53 are exact, and so are the rows made of them. Nine petabytes or a
 * hundred days are no training iteration. */
static bool is_exact(const struct builder *b)
{
    double largest = (double)b->model->problem->compute_ns;
    for (enum relax_sum sum = RELAX_KEPT; sum < RELAX_SUM_COUNT; sum++) {
        largest = fmax(largest, b->sum_limit[sum] * b->byte_unit);
    }
    for (uint32_t t = 0; t < b->model->problem->model->tensor_count; t++) {
        largest = fmax(largest, (double)b->model->problem->model->tensors[t].bytes);
    }
    for (uint32_t k = 0; k < b->model->grid->count; k++) {
        uint32_t step = b->model->grid->points[k].step;
        largest = fmax(largest, (double)working_set(b->model->problem, step));
    }
    return largest < 0x1p53;
}

/* Enough for every value to be copied out and back and every step to rerun, with room: a program
 * that takes longer is far beyond any bound of interest. */
static void set_extra_limit(struct builder *b, struct relax_rows *rows)
{
    double copies =
        b->sum_limit[RELAX_NEEDED] / b->in_rate + b->sum_limit[RELAX_MADE] / b->out_rate;
    double reruns = (double)b->model->problem->compute_ns / b->time_unit;
    double limit = ceil(4 * (copies + reruns) + 1) * rows->time_unit;
    rows->extra_limit_ns = limit < 4e18 ? (int64_t)limit : INT64_C(4000000000000000000);
}

void relax_rows_build(struct relax_model *model, struct region *region, struct relax_rows *out_rows)
{
    uint32_t count = model->grid->count;
    struct builder builder = {
        .model = model, .rows = out_rows, .lp = &out_rows->lp, .region = region};
    struct builder *b = &builder;
    *out_rows = (struct relax_rows){.memory_rows = REGION_NEW(region, uint32_t, count)};
    lp_init(b->lp, region);
    set_units(b, out_rows);
    out_rows->times = REGION_NEW(region, uint32_t, (size_t)count + 1);
    out_rows->outs = REGION_NEW(region, uint32_t, count);
    out_rows->released = REGION_NEW(region, uint32_t, count);
    out_rows->ins = REGION_NEW(region, uint32_t, count);
    out_rows->passes = REGION_NEW(region, uint32_t, count);
    add_interval_columns(b);
    for (uint32_t g = 0; g < model->stretch_count; g++) {
        add_segment_columns(b, g);
        add_segment_changes(b, g);
    }
    out_rows->is_exact = is_exact(b);
    set_extra_limit(b, out_rows);
    for (uint32_t k = 0; k <= count; k++) {
        double upper = (double)out_rows->extra_limit_ns / out_rows->time_unit;
        b->rows->times[k] = lp_add_column(b->lp, 0, upper, 1);
    }
    relax_values_build(b);
    add_time_rows(b);
    add_copied_rows(b);
    for (enum relax_sum sum = RELAX_KEPT; sum < RELAX_SUM_COUNT; sum++) {
        add_sum(b, sum);
    }
    for (uint32_t k = 0; k < count; k++) {
        add_out_rows(b, k);
        add_in_rows(b, k);
        out_rows->memory_rows[k] = model->grid->points[k].memory ? add_memory_row(b, k) : ATP_NONE;
    }
    add_in_rows(b, count);
}

int64_t relax_bound_ns(const struct relax_rows *rows, const struct problem *problem, double value)
{
    /* The product is exact. Programs take whole nanoseconds: so many and no fewer. */
    double extra = ceil(value * rows->time_unit);
    if (!(extra > 0) || !rows->is_exact) {
        return problem->compute_ns;
    }
    int64_t whole = extra < 0x1p53 ? (int64_t)extra : INT64_C(1) << 53;
    return problem->compute_ns + (whole < rows->extra_limit_ns ? whole : rows->extra_limit_ns);
}
