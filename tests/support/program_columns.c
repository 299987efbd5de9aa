/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "program_columns.h"

#include <atp/simulate.h>

#include <math.h>
#include <stdlib.h>

#define NO_VERSION UINT32_MAX

struct trace {
    const struct relax_model *model;
    const struct relax_rows *rows;
    const struct atp_plan *plan;
    double *values;
    int64_t *start_ns, *end_ns; /* per instruction; of copies the engine's */
    uint32_t *run_at;           /* per step: its instruction */
    uint32_t *readable;         /* per instruction and tensor: the version that can be read when the
                                   instruction begins; NO_VERSION: none */
    uint32_t input_count;
    int64_t iteration_ns;
};

static void observe(void *ctx, const struct atp_simulated *event)
{
    struct trace *t = ctx;
    t->start_ns[event->instruction] = event->start_ns;
    t->end_ns[event->instruction] = event->end_ns;
}

static uint32_t *readable_row(const struct trace *t, uint32_t instruction)
{
    return t->readable + (size_t)instruction * t->plan->model.tensor_count;
}

/* What the instruction does to the versions that can be read, and to those of the host copies. */
static void move_versions(const struct trace *t, uint32_t instruction, uint32_t *now,
                          uint32_t *host)
{
    const struct atp_instruction *in = &t->plan->program[instruction];
    const struct problem *p = t->model->problem;
    switch (in->op) {
    case ATP_OP_ALLOC:
        now[in->id] = instruction < t->input_count ? 0 : NO_VERSION;
        break;
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        for (uint32_t u = p->step_first[in->id]; u < p->step_first[in->id + 1]; u++) {
            const struct access *access = &p->accesses[p->step_accesses[u]];
            now[access->tensor] = access->writes ? access->version : now[access->tensor];
        }
        break;
    case ATP_OP_EVICT:
        host[in->id] = now[in->id];
        break;
    case ATP_OP_EVICTED:
    case ATP_OP_FREE:
        now[in->id] = NO_VERSION;
        break;
    case ATP_OP_RESTORE:
        break;
    case ATP_OP_RESTORED:
        now[in->id] = host[in->id];
        break;
    }
}

static void follow(struct trace *t, struct region *region)
{
    const struct problem *p = t->model->problem;
    uint32_t tensors = p->model->tensor_count;
    uint32_t *now = REGION_NEW(region, uint32_t, tensors);
    uint32_t *host = REGION_NEW(region, uint32_t, tensors);
    for (uint32_t i = 0; i < tensors; i++) {
        now[i] = NO_VERSION;
    }
    for (uint32_t i = 0; i < t->plan->instruction_count; i++) {
        const struct atp_instruction *in = &t->plan->program[i];
        for (uint32_t k = 0; k < tensors; k++) {
            readable_row(t, i)[k] = now[k];
        }
        if (in->op == ATP_OP_RUN) {
            t->run_at[in->id] = i;
        }
        move_versions(t, i, now, host);
    }
}

/* Is the value there at every instruction in (first, last]? */
static bool is_there(const struct trace *t, uint32_t value, uint32_t first, uint32_t last)
{
    const struct access *access = &t->model->problem->accesses[value];
    for (uint32_t i = first; i <= last; i++) {
        if (readable_row(t, i)[access->tensor] != access->version) {
            return false;
        }
    }
    return true;
}

/* The instruction of the run at a position; for the beginning the last that brings an input. */
static uint32_t run_of(const struct trace *t, uint32_t position)
{
    return position == 0 ? t->input_count - 1 : t->run_at[position - 1];
}

static bool is_there_at(const struct trace *t, uint32_t value, uint32_t position)
{
    return is_there(t, value, run_of(t, position), run_of(t, position));
}

static bool is_in(const struct trace *t, uint32_t instruction, uint32_t first, uint32_t end)
{
    return instruction > run_of(t, first) && instruction < run_of(t, end);
}

static bool reruns_in(const struct trace *t, uint32_t step, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < t->plan->instruction_count; i++) {
        if (t->plan->program[i].op == ATP_OP_RERUN && t->plan->program[i].id == step &&
            is_in(t, i, first, end)) {
            return true;
        }
    }
    return false;
}

static bool remakes_in(const struct trace *t, uint32_t value, uint32_t first, uint32_t end)
{
    const struct access *access = &t->model->problem->accesses[value];
    return access->writes && reruns_in(t, access->step, first, end);
}

/* The last `restored` of the value in the segment; instruction_count: none. */
static uint32_t last_restored(const struct trace *t, uint32_t value, uint32_t first, uint32_t end)
{
    const struct access *access = &t->model->problem->accesses[value];
    uint32_t found = t->plan->instruction_count;
    for (uint32_t i = 0; i + 1 < t->plan->instruction_count; i++) {
        if (t->plan->program[i].op == ATP_OP_RESTORED && t->plan->program[i].id == access->tensor &&
            is_in(t, i, first, end) && readable_row(t, i + 1)[access->tensor] == access->version) {
            found = i;
        }
    }
    return found;
}

static void set(const struct trace *t, uint32_t column, double value)
{
    if (column != ATP_NONE) {
        t->values[column] = value;
    }
}

static double share(const struct trace *t, uint32_t column)
{
    return column == ATP_NONE ? 0 : t->values[column];
}

/* Bytes of a copy moved by `when`, had it needed no latency. */
static double moved_by(const struct trace *t, uint32_t copy, bool out, int64_t when)
{
    const struct atp_clock *clock = &t->model->problem->profile->clock;
    double rate = (double)(out ? clock->d2h_bytes_per_second : clock->h2d_bytes_per_second) / 1e9;
    double bytes = (double)t->plan->model.tensors[t->plan->program[copy].id].bytes;
    double left = (double)(t->end_ns[copy] - when) * rate;
    return left <= 0 ? bytes : left >= bytes ? 0 : bytes - left;
}

static uint32_t checkpoint_run(const struct trace *t, uint32_t k)
{
    return t->run_at[t->model->grid->points[k].step];
}

/* The restore that the `restored` waits for. */
static uint32_t restore_of(const struct trace *t, uint32_t restored)
{
    uint32_t i = restored;
    while (t->plan->program[i].op != ATP_OP_RESTORE ||
           t->plan->program[i].id != t->plan->program[restored].id) {
        i--;
    }
    return i;
}

static void count_restore(const struct trace *t, const uint32_t *columns, uint32_t restored)
{
    uint32_t copy = restore_of(t, restored);
    for (uint32_t k = 0; k < t->model->grid->count; k++) {
        int64_t when = t->end_ns[checkpoint_run(t, k)];
        t->values[columns[k]] += moved_by(t, copy, false, when) / t->rows->byte_unit;
    }
}

static void set_segment(const struct trace *t, const struct relax_stretch *stretch, uint32_t l)
{
    const struct relax_segment *s = &t->model->segments[stretch->first_segment + l];
    uint32_t value = stretch->value;
    bool absent = s->begins_absent;
    bool keep = !absent && is_there(t, value, run_of(t, s->first) + (l == 0), run_of(t, s->end));
    bool begin = !absent && (l == 0 || is_there_at(t, value, s->first));
    bool end = is_there_at(t, value, s->end);
    bool again = remakes_in(t, value, s->first, s->end);
    uint32_t restored = last_restored(t, value, s->first, s->end);
    bool came = restored < t->plan->instruction_count;
    bool ends_absent = l + 1 < stretch->segment_count && s[1].begins_absent;
    set(t, s->keep, keep);
    if (s->restore != ATP_NONE && !ends_absent && end && !keep && !again) {
        set(t, s->restore, 1);
        count_restore(t, t->rows->ins, restored);
    } else if (s->pass != ATP_NONE && !begin && !again && came) {
        set(t, s->pass, 1);
        count_restore(t, t->rows->passes, restored);
    }
}

/* The first instruction in the segment that takes the value off the device, or the last. */
static uint32_t find_release(const struct trace *t, uint32_t value, const struct relax_segment *s,
                             bool last)
{
    uint32_t tensor = t->model->problem->accesses[value].tensor;
    uint32_t found = t->plan->instruction_count;
    for (uint32_t i = 0; i < t->plan->instruction_count; i++) {
        enum atp_op op = t->plan->program[i].op;
        if ((op == ATP_OP_EVICTED || op == ATP_OP_FREE) && t->plan->program[i].id == tensor &&
            is_in(t, i, s->first, s->end) && (last || found == t->plan->instruction_count)) {
            found = i;
        }
    }
    return found;
}

/* The eviction whose copy the value's later restores read: the last before its release. */
static uint32_t find_evict(const struct trace *t, uint32_t value, uint32_t release)
{
    const struct access *access = &t->model->problem->accesses[value];
    for (uint32_t i = release; i-- > 0;) {
        if (t->plan->program[i].op == ATP_OP_EVICT && t->plan->program[i].id == access->tensor &&
            readable_row(t, i)[access->tensor] == access->version) {
            return i;
        }
    }
    abort();
}

static void count_drop(const struct trace *t, const struct relax_stretch *stretch, uint32_t l,
                       bool leaves)
{
    const struct relax_segment *s = &t->model->segments[stretch->first_segment + l];
    uint32_t release = find_release(t, stretch->value, s, leaves);
    uint32_t copy = find_evict(t, stretch->value, release);
    double bytes = (double)t->plan->model.tensors[t->plan->program[copy].id].bytes;
    for (uint32_t k = 0; k < t->model->grid->count; k++) {
        uint32_t run = checkpoint_run(t, k);
        bool gone = leaves ? t->model->grid->points[k].step + 1 > s->end : release < run;
        t->values[t->rows->outs[k]] +=
            moved_by(t, copy, true, t->start_ns[run]) / t->rows->byte_unit;
        t->values[t->rows->released[k]] += gone ? bytes / t->rows->byte_unit : 0;
    }
}

/* The stretch's first release that a restore goes back to. */
static bool set_drop(const struct trace *t, const struct relax_stretch *stretch, bool copied,
                     bool first_stretch)
{
    const struct relax_segment *segments = &t->model->segments[stretch->first_segment];
    uint32_t first = stretch->segment_count;
    bool leaves = false;
    for (uint32_t l = 0; l < stretch->segment_count; l++) {
        if (share(t, segments[l].restore) + share(t, segments[l].pass) < 0.5) {
            continue;
        }
        uint32_t event = 0;
        bool leave = false;
        for (uint32_t i = 0; i < l; i++) {
            if (remakes_in(t, stretch->value, segments[i].first, segments[i].end)) {
                leave = !is_there_at(t, stretch->value, segments[i].end);
                event = leave ? i : i + 1;
            }
        }
        while (!leave && share(t, segments[event].keep) > 0.5) {
            event++;
        }
        if (event < first) {
            first = event;
            leaves = leave;
        }
    }
    if (first == stretch->segment_count) {
        return false;
    }
    set(t, leaves ? segments[first].leave : segments[first].drop, 1);
    if (!leaves && copied) {
        set(t, segments[first].free, 1);
    }
    /* The rows leave out what leaves in a later stretch. */
    if (!copied && (!leaves || first_stretch)) {
        count_drop(t, stretch, first, leaves);
    }
    return true;
}

/* Is the value evicted and released in a gap before the next version that is no stretch? */
static bool is_copied(const struct trace *t, const struct relax_stretch *stale)
{
    const struct relax_model *m = t->model;
    uint32_t tensor = m->problem->accesses[stale->value].tensor, g;
    for (uint32_t a = stale->value; a <= stale->access; a++) {
        for (g = m->value_first_stretch[stale->value]; &m->stretches[g] < stale; g++) {
            if (m->stretches[g].access == a) {
                break;
            }
        }
        for (uint32_t i = 0; i < t->plan->instruction_count && &m->stretches[g] == stale; i++) {
            if (t->plan->program[i].op == ATP_OP_EVICTED && t->plan->program[i].id == tensor &&
                is_in(t, i, relax_position(m->problem, a), relax_position(m->problem, a + 1))) {
                return true;
            }
        }
    }
    return false;
}

static void set_values(const struct trace *t)
{
    const struct relax_model *m = t->model;
    uint32_t value = ATP_NONE;
    bool copied = false;
    for (uint32_t g = 0; g < m->stretch_count; g++) {
        const struct relax_stretch *stretch = &m->stretches[g];
        copied = copied && stretch->value == value;
        value = stretch->value;
        for (uint32_t l = 0; l < stretch->segment_count; l++) {
            set_segment(t, stretch, l);
        }
        if (stretch->kind == RELAX_STALE) {
            set(t, stretch->copied, is_copied(t, stretch));
            continue;
        }
        if (set_drop(t, stretch, copied, g == m->value_first_stretch[value])) {
            copied = true;
        }
    }
    for (uint32_t s = 0; s < m->problem->model->step_count; s++) {
        for (uint32_t i = m->step_first_interval[s]; i < m->step_first_interval[s + 1]; i++) {
            set(t, m->intervals[i].column,
                reruns_in(t, s, m->intervals[i].first, m->intervals[i].end));
        }
        double later = 0;
        for (uint32_t i = m->step_first_interval[s + 1]; i-- > m->step_first_interval[s];) {
            later = fmax(later, share(t, m->intervals[i].column));
            set(t, m->intervals[i].later, later);
        }
    }
}

static void set_times(const struct trace *t)
{
    const struct relax_grid *grid = t->model->grid;
    const struct problem *p = t->model->problem;
    int64_t before_ns = 0;
    uint32_t step = 0;
    for (uint32_t k = 0; k <= grid->count; k++) {
        bool last = k == grid->count;
        int64_t ns = last ? t->iteration_ns : t->start_ns[checkpoint_run(t, k)];
        int64_t extra = ns - before_ns;
        for (; step < (last ? p->model->step_count : grid->points[k].step); step++) {
            extra -= p->profile->clock.step_ns[step];
        }
        t->values[t->rows->times[k]] = (double)extra / t->rows->time_unit;
        before_ns = ns;
    }
}

/* A running sum is what its defining row says: the one equation in which it comes first. */
static void set_sums(const struct trace *t)
{
    const struct lp *lp = &t->rows->lp;
    for (uint32_t i = 0; i < lp->row_count; i++) {
        if (lp->rows[i].equal) {
            double sum = 0;
            for (size_t k = lp->rows[i].first + 1; k < lp->rows[i + 1].first; k++) {
                sum -= lp->term_values[k] * t->values[lp->term_columns[k]];
            }
            t->values[lp->term_columns[lp->rows[i].first]] = sum;
        }
    }
}

double *program_columns(const struct relax_model *model, const struct relax_rows *rows,
                        const struct atp_plan *plan, struct region *region)
{
    const struct problem *p = model->problem;
    struct atp_predicted predicted;
    struct trace t = {
        .model = model,
        .rows = rows,
        .plan = plan,
        .values = REGION_NEW(region, double, rows->lp.column_count),
        .start_ns = REGION_NEW(region, int64_t, plan->instruction_count),
        .end_ns = REGION_NEW(region, int64_t, plan->instruction_count),
        .run_at = REGION_NEW(region, uint32_t, p->model->step_count),
        .readable =
            REGION_NEW(region, uint32_t, (size_t)plan->instruction_count * p->model->tensor_count),
    };
    if (atp_simulate(plan, &p->profile->clock, observe, &t, &predicted, NULL) != ATP_OK) {
        abort();
    }
    t.iteration_ns = predicted.iteration_ns;
    for (uint32_t i = 0; i < p->model->tensor_count; i++) {
        t.input_count += p->is_input[i];
    }
    follow(&t, region);
    set_values(&t);
    set_times(&t);
    set_sums(&t);
    return t.values;
}

uint32_t program_columns_check(const struct lp *lp, const double *values)
{
    for (uint32_t i = 0; i < lp->row_count; i++) {
        double sum = 0, size = fabs(lp->rows[i].rhs) + 1;
        for (size_t k = lp->rows[i].first; k < lp->rows[i + 1].first; k++) {
            double term = lp->term_values[k] * values[lp->term_columns[k]];
            sum += term;
            size += fabs(term);
        }
        double off = lp->rows[i].equal ? -fabs(sum - lp->rows[i].rhs) : sum - lp->rows[i].rhs;
        if (off < -1e-9 * size) {
            return i;
        }
    }
    return lp->row_count;
}
