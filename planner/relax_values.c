/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What single values do from cut to cut, and what reruns ask of their inputs. relax_rows.c says
 * what the columns mean.
 */
#include "relax_build.h"

/* Reruns of the value's writer that may lie in the segment, times `factor`. An interval that only
 * overlaps counts too: the program may have rerun in the common part. */
static void add_reruns(struct builder *b, uint32_t value, const struct relax_segment *segment,
                       double factor)
{
    const struct relax_model *model = b->model;
    uint32_t step = model->problem->accesses[value].step;
    if (step == ATP_NONE || !model->problem->accesses[value].writes) {
        return;
    }
    for (uint32_t i = model->step_first_interval[step]; i < model->step_first_interval[step + 1];
         i++) {
        const struct relax_interval *interval = &model->intervals[i];
        if (interval->first < segment->end && interval->end > segment->first) {
            lp_add_term(b->lp, interval->column, factor);
        }
    }
}

static void add_optional(struct builder *b, uint32_t column, double factor)
{
    if (column != ATP_NONE) {
        lp_add_term(b->lp, column, factor);
    }
}

/* The value is at the segment's end when it was kept, came back or was made anew there. */
static void add_presence(struct builder *b, const struct relax_stretch *stretch,
                         const struct relax_segment *segment, double factor)
{
    add_optional(b, segment->keep, factor);
    add_optional(b, segment->restore, factor);
    add_reruns(b, stretch->value, segment, factor);
}

/* Whether the value's copy to the host was made in the stretch before segment `end` is over. */
static void add_drops_until(struct builder *b, const struct relax_stretch *stretch, uint32_t end,
                            double factor)
{
    for (uint32_t l = 0; l < end; l++) {
        const struct relax_segment *segment = &b->model->segments[stretch->first_segment + l];
        add_optional(b, segment->drop, factor);
        add_optional(b, segment->leave, l + 1 < end ? factor : 0);
    }
}

/* A restore comes after a release of the stretch that had a complete host copy. */
static void add_restore_row(struct builder *b, const struct relax_stretch *stretch, uint32_t l)
{
    const struct relax_segment *segment = &b->model->segments[stretch->first_segment + l];
    (void)lp_begin_row(b->lp, 0, false);
    add_optional(b, segment->restore, -1);
    add_optional(b, segment->pass, -1);
    add_drops_until(b, stretch, l + 1, 1);
}

/* The copies of a stale value that were made before the next version, without a rerun. */
static void add_copies(struct builder *b, const struct relax_stretch *stale)
{
    const struct relax_model *model = b->model;
    add_optional(b, stale->copied, 1);
    for (uint32_t g = model->value_first_stretch[stale->value]; &model->stretches[g] < stale; g++) {
        add_drops_until(b, &model->stretches[g], model->stretches[g].segment_count, 1);
    }
}

/* Storage that has gone on to the next version holds a stale value only by a rerun, or by a copy
 * whose source was a rerun's or was there before the next version. Nothing writes while it is
 * copied out, so the latter was released in a gap before the next version; if no rerun came in
 * between, it was restored by the gap's end: dropped, where the gap is a stretch. A rerun in the
 * segment itself makes neither restore nor pass, and comes too late for keep. */
static void add_source_row(struct builder *b, const struct relax_stretch *stretch, uint32_t l)
{
    const struct relax_model *model = b->model;
    const struct relax_segment *segment = &model->segments[stretch->first_segment + l];
    const struct access *access = &model->problem->accesses[stretch->value];
    (void)lp_begin_row(b->lp, 0, false);
    add_optional(b, segment->keep, -1);
    add_optional(b, segment->restore, -1);
    add_optional(b, segment->pass, -1);
    add_copies(b, stretch);
    if (access->writes) {
        for (uint32_t i = model->step_first_interval[access->step];
             i < model->step_first_interval[access->step + 1]; i++) {
            if (model->intervals[i].first < segment->first) {
                lp_add_term(b->lp, model->intervals[i].column, 1);
            }
        }
    }
}

/* What is there when the segment begins is kept through it, or dropped in it, or neither: first
 * released without a copy. A value that left after a rerun is not there. */
static void add_begin_row(struct builder *b, const struct relax_stretch *stretch, uint32_t l)
{
    const struct relax_segment *segment = &b->model->segments[stretch->first_segment + l];
    (void)lp_begin_row(b->lp, l == 0 ? -1 : 0, false);
    lp_add_term(b->lp, segment->keep, -1);
    add_optional(b, segment->drop, -1);
    if (l > 0) {
        add_presence(b, stretch, segment - 1, 1);
        add_optional(b, segment[-1].leave, -1);
    }
}

/* Reruns of the value's writer in the segment or later: once where that has a column. `until`: the
 * end of the time of interest. */
static void add_later_reruns(struct builder *b, uint32_t value,
                             const struct relax_segment *segments, uint32_t count, double factor)
{
    const struct relax_model *model = b->model;
    const struct access *access = &model->problem->accesses[value];
    if (!access->writes) {
        return;
    }
    uint32_t i = model->step_first_interval[access->step];
    uint32_t end = model->step_first_interval[access->step + 1];
    while (i < end && model->intervals[i].end <= segments[0].first) {
        i++;
    }
    if (i < end && model->intervals[end - 1].first < segments[count - 1].end) {
        lp_add_term(b->lp, model->intervals[i].later, factor);
        return;
    }
    for (uint32_t l = 0; l < count; l++) {
        add_reruns(b, value, &segments[l], factor);
    }
}

/* Away at some time in segment l of a live stretch, the value comes back: by a rerun there or
 * later, or by a restore, whose copy was made before it was away. */
static void add_return_row(struct builder *b, const struct relax_stretch *stretch, uint32_t l)
{
    const struct relax_segment *segments = &b->model->segments[stretch->first_segment];
    (void)lp_begin_row(b->lp, 1, false);
    lp_add_term(b->lp, segments[l].keep, 1);
    add_drops_until(b, stretch, l + 1, 1);
    add_later_reruns(b, stretch->value, &segments[l], stretch->segment_count - l, 1);
}

static void add_stretch_rows(struct builder *b, uint32_t g)
{
    const struct relax_stretch *stretch = &b->model->stretches[g];
    const struct relax_segment *segments = &b->model->segments[stretch->first_segment];
    for (uint32_t l = 0; l < stretch->segment_count; l++) {
        const struct relax_segment *segment = &segments[l];
        bool last = l + 1 == stretch->segment_count;
        if (stretch->kind == RELAX_LIVE && last) {
            /* The next access finds the value in place. */
            (void)lp_begin_row(b->lp, 1, false);
            add_presence(b, stretch, segment, 1);
        }
        if (!segment->begins_absent && stretch->segment_count > 1) {
            add_begin_row(b, stretch, l);
        }
        if (stretch->kind != RELAX_STALE && segment->drop != segment->restore) {
            add_restore_row(b, stretch, l);
        }
        if (stretch->kind == RELAX_STALE) {
            add_source_row(b, stretch, l);
        }
        if (stretch->kind == RELAX_LIVE && !last) {
            add_return_row(b, stretch, l);
        }
        if (segment->leave != ATP_NONE) {
            (void)lp_begin_row(b->lp, 0, false);
            add_reruns(b, stretch->value, segment, 1);
            lp_add_term(b->lp, segment->leave, -1);
        }
        if (segment->free != ATP_NONE) {
            (void)lp_begin_row(b->lp, 0, false);
            lp_add_term(b->lp, segment->drop, 1);
            lp_add_term(b->lp, segment->free, -1);
        }
    }
    if (stretch->kind != RELAX_STALE && stretch->segment_count > 1) {
        /* The first such release alone is counted. */
        (void)lp_begin_row(b->lp, -1, false);
        add_drops_until(b, stretch, stretch->segment_count, -1);
    }
}

/* Releases that need no copy follow a drop in an earlier stretch of the value. */
static void add_free_row(struct builder *b, uint32_t g)
{
    const struct relax_model *model = b->model;
    const struct relax_stretch *stretch = &model->stretches[g];
    if (stretch->kind == RELAX_STALE || !may_free(model, g)) {
        return;
    }
    (void)lp_begin_row(b->lp, 0, false);
    for (uint32_t l = 0; l < stretch->segment_count; l++) {
        lp_add_term(b->lp, model->segments[stretch->first_segment + l].free, -1);
    }
    for (uint32_t e = model->value_first_stretch[stretch->value]; e < g; e++) {
        const struct relax_stretch *earlier = &model->stretches[e];
        add_drops_until(b, earlier, earlier->segment_count, 1);
    }
}

/* Is the value in place at some run from the interval's first position to its end, the versions at
 * the borders seen from inside? Then a rerun finds it and asks for nothing. */
static bool is_at_hand(const struct relax_model *model, uint32_t value,
                       const struct relax_interval *interval)
{
    const struct problem *problem = model->problem;
    uint32_t tensor = problem->accesses[value].tensor;
    for (uint32_t a = value; a < problem->first_access[tensor + 1]; a++) {
        uint32_t position = relax_position(problem, a);
        bool after = model->value_of[a] == value && position >= interval->first;
        bool before = a > value && model->value_of[a - 1] == value && position > interval->first;
        if (position <= interval->end && ((after && position < interval->end) || before)) {
            return true;
        }
    }
    return false;
}

/* First stretch of the value that meets the interval; stretch_count: none does. */
static uint32_t find_stretch(const struct relax_model *model, uint32_t value,
                             const struct relax_interval *interval)
{
    for (uint32_t g = model->value_first_stretch[value]; g < model->value_first_stretch[value + 1];
         g++) {
        const struct relax_stretch *stretch = &model->stretches[g];
        const struct relax_segment *segments = &model->segments[stretch->first_segment];
        if (segments[0].first <= interval->first &&
            segments[stretch->segment_count - 1].end >= interval->end) {
            return g;
        }
    }
    return model->stretch_count;
}

/* A rerun (of the column) in the interval finds the value there when the interval's first segment
 * begins, or it comes back or is made anew in a segment that meets the interval. */
static void add_input_row(struct builder *b, uint32_t value, uint32_t column,
                          const struct relax_interval *interval, bool whole)
{
    const struct relax_model *model = b->model;
    uint32_t g = find_stretch(model, value, interval);
    if (is_at_hand(model, value, interval) || g == model->stretch_count) {
        return;
    }
    const struct relax_stretch *stretch = &model->stretches[g];
    const struct relax_segment *segments = &model->segments[stretch->first_segment];
    uint32_t first = 0, end;
    while (segments[first].end <= interval->first) {
        first++;
    }
    for (end = first; end < stretch->segment_count && segments[end].first < interval->end;) {
        end++;
    }
    /* There when the stretch begins, or needed by the access that ends it: nothing to ask. */
    if ((first == 0 && !segments[0].begins_absent) ||
        (stretch->kind == RELAX_LIVE && end == stretch->segment_count)) {
        return;
    }
    (void)lp_begin_row(b->lp, 0, false);
    lp_add_term(b->lp, column, -1);
    if (!segments[first].begins_absent) {
        add_presence(b, stretch, &segments[first - 1], 1);
    }
    if (whole && stretch->kind != RELAX_STALE) {
        add_drops_until(b, stretch, end, 1);
    }
    for (uint32_t l = first; l < end && !(whole && stretch->kind != RELAX_STALE); l++) {
        add_optional(b, segments[l].restore, 1);
        add_optional(b, segments[l].pass, 1);
    }
    add_later_reruns(b, value, &segments[first], end - first, 1);
}

/* Whoever reruns in the interval or later on a stale value owes it to a copy from before the next
 * version, or to a rerun that made it. */
static void add_stale_input_row(struct builder *b, uint32_t value,
                                const struct relax_interval *interval)
{
    const struct relax_model *model = b->model;
    const struct access *access = &model->problem->accesses[value];
    uint32_t end = model->value_first_stretch[value + 1];
    if (end == model->value_first_stretch[value] || model->stretches[end - 1].kind != RELAX_STALE ||
        model->segments[model->stretches[end - 1].first_segment].first > interval->first) {
        return;
    }
    (void)lp_begin_row(b->lp, 0, false);
    lp_add_term(b->lp, interval->later, -1);
    add_copies(b, &model->stretches[end - 1]);
    if (access->writes &&
        model->step_first_interval[access->step] < model->step_first_interval[access->step + 1]) {
        lp_add_term(b->lp, model->intervals[model->step_first_interval[access->step]].later, 1);
    }
}

/* What the step needs in interval i, and, where it is not the step's first or last, in all from
 * there on: shares of a rerun that come at different times need the same share of the input. */
static void add_step_rows(struct builder *b, uint32_t step, uint32_t i)
{
    const struct relax_model *model = b->model;
    const struct problem *problem = model->problem;
    const struct relax_interval *interval = &model->intervals[i];
    uint32_t end = model->step_first_interval[step + 1];
    struct relax_interval rest = {.first = interval->first, .end = model->intervals[end - 1].end};
    bool middle = i + 1 < end;
    if (middle) {
        (void)lp_begin_row(b->lp, 0, false);
        lp_add_term(b->lp, interval->later, -1);
        for (uint32_t j = i; j < end; j++) {
            lp_add_term(b->lp, model->intervals[j].column, 1);
        }
    }
    for (uint32_t u = problem->step_first[step]; u < problem->step_first[step + 1]; u++) {
        uint32_t access = problem->step_accesses[u];
        if (relax_needs_version(&problem->accesses[access])) {
            uint32_t value = relax_needed_value(model, access);
            add_input_row(b, value, interval->column, interval, false);
            if (middle) {
                add_input_row(b, value, interval->later, &rest, true);
            }
            add_stale_input_row(b, value, interval);
        }
    }
}

static void add_rerun_rows(struct builder *b)
{
    const struct relax_model *model = b->model;
    for (uint32_t s = 0; s < model->problem->model->step_count; s++) {
        for (uint32_t i = model->step_first_interval[s]; i < model->step_first_interval[s + 1];
             i++) {
            add_step_rows(b, s, i);
        }
    }
}

void relax_values_build(struct builder *b)
{
    for (uint32_t g = 0; g < b->model->stretch_count; g++) {
        add_stretch_rows(b, g);
        add_free_row(b, g);
    }
    add_rerun_rows(b);
}
