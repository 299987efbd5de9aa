/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A few rows of memory, each asked on its own: how many bytes must be away while this step runs,
 * and what does that take at least? What is away comes back by a copy, after a copy out, or by a
 * rerun. Both are relaxed to fractions, so that the answer is the least value of a convex function
 * of one variable, the bytes to recompute, whose corners lie where a copy engine or a tensor is
 * used up. throughput.md has the proof. O(n log n): each row is two passes over the uses and a sort
 * of the tensors that may rerun, and there are ROW_COUNT rows.
 */
#include "throughput.h"

#include "fail.h"
#include "problem.h"
#include "size.h"

#include <math.h>
#include <stdlib.h>

/* Neighbouring peaks ask nearly the same. */
#define ROW_COUNT 8U
/* Per term, of sums in double arithmetic: two roundings, and a few more for what is done with the
 * sums. */
#define ROUNDING    0x1p-51
#define ROUND_TERMS 16.0

/* An idle tensor that reruns can bring back, and its share of their time: a rerun's time is shared
 * out among the tensors that need it, by size. */
struct item {
    uint32_t access;
    double bytes, ns;
};

struct throughput {
    struct profile profile; /* that `shape` is of */
    struct problem shape;   /* structure alone: its sizes are those of one batch size */
    uint32_t *made_at;      /* per tensor: position behind its first writer; 0 for inputs */
    /* Per step, at the batch size at hand: */
    uint64_t *live, *working_set, *change;
    int64_t *before_ns;   /* the sum of all steps before; one more for the end */
    double *needed_bytes; /* of idle tensors that need a rerun of the step */
    struct item *items;
};

/* What one step asks for. */
struct row {
    double excess, largest_bytes; /* to be away; of one tensor that is idle there */
    double host_bytes;
    double before_ns, behind_ns; /* compute in which copies can run for nothing */
    double out_ns, in_ns;        /* per byte */
    double rounding;             /* how far off its costs may be, as a share of their terms */
    uint32_t item_count;
    const struct item *items; /* cheapest first */
};

/* One way to meet a row. */
struct mix {
    double recomputed, rerun_ns, out_ns, in_ns; /* bytes; costs */
};

static void find_first_writers(struct throughput *t, struct region *region)
{
    const struct problem *shape = &t->shape;
    t->made_at = REGION_NEW(region, uint32_t, shape->model->tensor_count);
    for (uint32_t x = 0; x < shape->model->tensor_count; x++) {
        uint32_t first = shape->first_access[x];
        t->made_at[x] = shape->is_input[x] || first == shape->first_access[x + 1]
                            ? 0
                            : shape->accesses[first].step + 1;
    }
}

enum atp_status throughput_create(const struct profile *profile, struct region *region,
                                  struct throughput **out_throughput, struct atp_error *err)
{
    struct throughput *t = REGION_NEW(region, struct throughput, 1);
    uint32_t steps = profile->model.step_count;
    t->profile = *profile;
    ATP_TRY(problem_build(&t->profile, SIZE_BYTES_MAX, 1, region, &t->shape, err));
    find_first_writers(t, region);
    t->live = REGION_NEW(region, uint64_t, steps);
    t->working_set = REGION_NEW(region, uint64_t, steps);
    t->change = REGION_NEW(region, uint64_t, (size_t)steps + 1);
    t->before_ns = REGION_NEW(region, int64_t, (size_t)steps + 1);
    t->needed_bytes = REGION_NEW(region, double, steps);
    t->items = REGION_NEW(region, struct item, t->shape.access_count);
    *out_throughput = t;
    return ATP_OK;
}

/* Sums of sizes and times over the steps; the point's bytes without the resident ones. */
static void sum_steps(struct throughput *t, const struct profile *profile,
                      struct throughput_point *out)
{
    const struct problem *shape = &t->shape;
    uint32_t steps = shape->model->step_count;
    uint64_t input_bytes = 0, running = 0;
    for (uint32_t s = 0; s < steps; s++) {
        t->change[s] = 0;
        t->working_set[s] = profile->model.steps[s].workspace_bytes;
    }
    t->change[steps] = 0;
    for (uint32_t x = 0; x < shape->model->tensor_count; x++) {
        uint32_t begin = shape->first_access[x], end = shape->first_access[x + 1];
        uint64_t bytes = profile->model.tensors[x].bytes;
        input_bytes += shape->is_input[x] ? bytes : 0;
        if (begin == end || shape->accesses[end - 1].step == ATP_NONE) {
            continue;
        }
        uint32_t first = shape->accesses[begin].step;
        t->change[first == ATP_NONE ? 0 : first] += bytes;
        t->change[shape->accesses[end - 1].step + 1] -= bytes; /* modulo 2^64 */
        for (uint32_t a = begin + (first == ATP_NONE); a < end; a++) {
            t->working_set[shape->accesses[a].step] += bytes;
        }
    }
    out->keep_all_bytes = out->least_budget_bytes = input_bytes;
    for (uint32_t s = 0; s < steps; s++) {
        running += t->change[s];
        t->live[s] = running + profile->model.steps[s].workspace_bytes;
        t->before_ns[s + 1] = t->before_ns[s] + profile->clock.step_ns[s];
        out->keep_all_bytes = t->live[s] > out->keep_all_bytes ? t->live[s] : out->keep_all_bytes;
        out->least_budget_bytes = t->working_set[s] > out->least_budget_bytes
                                      ? t->working_set[s]
                                      : out->least_budget_bytes;
    }
    out->compute_ns = t->before_ns[steps];
}

static int compare_items(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    double x = a->ns * b->bytes, y = b->ns * a->bytes;
    return x != y ? (x > y) - (x < y) : (a->access > b->access) - (a->access < b->access);
}

/* All writers up to the version in the gap behind `access` must rerun. */
static void need_reruns(struct throughput *t, uint32_t access, double bytes)
{
    const struct access *accesses = t->shape.accesses;
    for (uint32_t a = t->shape.first_access[accesses[access].tensor]; a <= access; a++) {
        if (accesses[a].writes) {
            t->needed_bytes[accesses[a].step] += bytes;
        }
    }
}

static double share_reruns(const struct throughput *t, const struct profile *profile,
                           uint32_t access, double bytes)
{
    const struct access *accesses = t->shape.accesses;
    double ns = 0;
    for (uint32_t a = t->shape.first_access[accesses[access].tensor]; a <= access; a++) {
        if (accesses[a].writes) {
            uint32_t step = accesses[a].step;
            ns += (double)profile->clock.step_ns[step] * (bytes / t->needed_bytes[step]);
        }
    }
    return ns;
}

/* Everything idle over `step`: what it is, and when it can be copied. Returns the items, without
 * their times. */
static uint32_t list_idle(struct throughput *t, const struct profile *profile, uint32_t step,
                          struct row *row)
{
    const struct problem *shape = &t->shape;
    uint32_t first = step, last = step + 1, count = 0;
    for (uint32_t a = 0; a + 1 < shape->access_count; a++) {
        const struct access *access = &shape->accesses[a];
        bool is_idle = access->has_next && (access->step == ATP_NONE || access->step < step) &&
                       access[1].step > step;
        double bytes = is_idle ? (double)profile->model.tensors[access->tensor].bytes : 0;
        if (!(bytes > 0)) {
            continue;
        }
        row->largest_bytes = fmax(row->largest_bytes, bytes);
        first = t->made_at[access->tensor] < first ? t->made_at[access->tensor] : first;
        last = access[1].step > last ? access[1].step : last;
        if (shape->recomputable[a]) {
            t->items[count++] = (struct item){a, bytes, 0};
            need_reruns(t, a, bytes);
        }
    }
    row->before_ns = (double)(t->before_ns[step] - t->before_ns[first]);
    row->behind_ns = (double)(t->before_ns[last] - t->before_ns[step + 1]);
    return count;
}

static void build_row(struct throughput *t, const struct profile *profile, uint32_t step,
                      struct row *row)
{
    for (uint32_t s = 0; s <= step; s++) {
        t->needed_bytes[s] = 0;
    }
    row->items = t->items;
    row->item_count = list_idle(t, profile, step, row);
    for (uint32_t i = 0; i < row->item_count; i++) {
        t->items[i].ns = share_reruns(t, profile, t->items[i].access, t->items[i].bytes);
    }
    qsort(t->items, row->item_count, sizeof(*t->items), compare_items);
    row->rounding = ((double)t->shape.access_count + ROUND_TERMS) * ROUNDING;
    /* Every copy has the latency; the largest tensor has the least of it per byte. */
    double latency_ns =
        row->largest_bytes > 0 ? (double)profile->clock.copy_latency_ns / row->largest_bytes : 0;
    row->out_ns = 1e9 / (double)profile->clock.d2h_bytes_per_second + latency_ns;
    row->in_ns = 1e9 / (double)profile->clock.h2d_bytes_per_second + latency_ns;
}

static double cost_of(const struct mix *mix)
{
    return mix->rerun_ns + mix->out_ns + mix->in_ns;
}

static void try_mix(const struct row *row, double recomputed, double rerun_ns, struct mix *best)
{
    double rest = fmax(row->excess - recomputed, 0);
    struct mix mix = {
        .recomputed = recomputed,
        .rerun_ns = rerun_ns,
        .out_ns = fmax(rest * row->out_ns - row->before_ns, 0),
        .in_ns = fmax(rest * row->in_ns - row->behind_ns - rerun_ns, 0),
    };
    if (cost_of(&mix) < cost_of(best)) {
        *best = mix;
    }
}

/* The corners of the cost within one item, whose first byte is the `from`th. */
static void try_item(const struct row *row, const struct item *item, double from, double rerun_ns,
                     double least, struct mix *best)
{
    double slope = item->ns / item->bytes, end = fmin(from + item->bytes, row->excess);
    const double corners[] = {
        least,
        row->excess - row->before_ns / row->out_ns,
        (row->excess * row->in_ns - row->behind_ns - rerun_ns + slope * from) /
            (slope + row->in_ns),
        end,
    };
    for (size_t i = 0; i < sizeof(corners) / sizeof(corners[0]); i++) {
        if (corners[i] >= from && corners[i] >= least && corners[i] <= end) {
            try_mix(row, corners[i], rerun_ns + slope * (corners[i] - from), best);
        }
    }
}

/* The cheapest mix; its cost is INFINITY where copies and reruns together cannot do it. */
static struct mix cheapest_mix(const struct row *row)
{
    struct mix best = {.out_ns = INFINITY};
    double from = 0, rerun_ns = 0, least = fmax(row->excess - row->host_bytes, 0);
    if (least <= 0) {
        try_mix(row, 0, 0, &best);
    }
    for (uint32_t i = 0; i < row->item_count && from < row->excess; i++) {
        try_item(row, &row->items[i], from, rerun_ns, least, &best);
        from += row->items[i].bytes;
        rerun_ns += row->items[i].ns;
    }
    return best;
}

static enum throughput_limit limit_of(const struct mix *mix)
{
    if (!(cost_of(mix) > 0)) {
        return THROUGHPUT_COMPUTE;
    }
    if (mix->rerun_ns >= mix->out_ns && mix->rerun_ns >= mix->in_ns) {
        return THROUGHPUT_RECOMPUTE;
    }
    return mix->out_ns >= mix->in_ns ? THROUGHPUT_D2H : THROUGHPUT_H2D;
}

static void set_row(const struct row *row, const struct mix *mix, uint32_t step,
                    struct throughput_point *out)
{
    double cost = cost_of(mix);
    double terms =
        row->excess * (row->out_ns + row->in_ns) + row->before_ns + row->behind_ns + cost;
    /* Programs take whole nanoseconds: so many and no fewer. */
    double whole = ceil(cost - row->rounding * terms);
    int64_t extra_ns = whole < 0x1p62 ? (int64_t)whole : INT64_C(1) << 62;
    int64_t bound_ns = out->compute_ns + (extra_ns > 0 ? extra_ns : 0);
    bool is_more = bound_ns > out->bound_ns ||
                   (bound_ns == out->bound_ns && row->excess > (double)out->excess_bytes);
    if (out->step != ATP_NONE && !is_more) {
        return;
    }
    out->step = step;
    out->bound_ns = bound_ns;
    out->limit = limit_of(mix);
    out->excess_bytes = (uint64_t)row->excess;
    out->recompute_bytes = (uint64_t)mix->recomputed;
    out->swap_bytes = out->excess_bytes - out->recompute_bytes;
    out->hidden_bytes = (uint64_t)fmin(row->before_ns / row->out_ns, row->behind_ns / row->in_ns);
    out->d2h_ns = (int64_t)mix->out_ns;
    out->h2d_ns = (int64_t)mix->in_ns;
    out->recompute_ns = (int64_t)mix->rerun_ns;
}

static void refuse(struct throughput_point *out, enum throughput_limit limit)
{
    out->limit = limit;
    out->bound_ns = INT64_MAX;
}

/* The highest local peaks of ROW_COUNT stretches of the steps where memory is short. */
static uint32_t find_rows(const struct throughput *t, uint64_t arena_bytes, uint32_t *out_steps)
{
    uint32_t count = 0, short_count = 0, seen = 0, steps = t->shape.model->step_count;
    for (uint32_t s = 0; s < steps; s++) {
        short_count += t->live[s] > arena_bytes;
    }
    for (uint32_t s = 0; s < steps; s++) {
        if (t->live[s] <= arena_bytes) {
            continue;
        }
        uint32_t row = (uint32_t)((uint64_t)seen++ * ROW_COUNT / short_count);
        if (count == 0 || row != (uint32_t)((uint64_t)(seen - 2) * ROW_COUNT / short_count)) {
            out_steps[count++] = s;
        } else if (t->live[s] > t->live[out_steps[count - 1]]) {
            out_steps[count - 1] = s;
        }
    }
    return count;
}

void throughput_find(struct throughput *throughput, const struct profile *profile,
                     uint64_t budget_bytes, struct throughput_point *out_point)
{
    uint32_t steps[ROW_COUNT];
    *out_point =
        (struct throughput_point){.batch_size = profile->model.batch_size, .step = ATP_NONE};
    sum_steps(throughput, profile, out_point);
    out_point->keep_all_bytes += profile->resident_bytes;
    out_point->least_budget_bytes += profile->resident_bytes;
    out_point->bound_ns = out_point->compute_ns;
    if (out_point->least_budget_bytes > budget_bytes) {
        refuse(out_point, THROUGHPUT_MEMORY);
        return;
    }
    uint64_t arena_bytes = budget_bytes - profile->resident_bytes;
    uint32_t count = find_rows(throughput, arena_bytes, steps);
    for (uint32_t i = 0; i < count; i++) {
        struct row row = {.excess = (double)(throughput->live[steps[i]] - arena_bytes),
                          .host_bytes = (double)profile->pinned_bytes};
        build_row(throughput, profile, steps[i], &row);
        struct mix mix = cheapest_mix(&row);
        if (isinf(cost_of(&mix))) {
            refuse(out_point, THROUGHPUT_HOST);
            return;
        }
        set_row(&row, &mix, steps[i], out_point);
    }
}

const char *throughput_limit_name(enum throughput_limit limit)
{
    static const char *const names[THROUGHPUT_LIMIT_COUNT] = {
        [THROUGHPUT_COMPUTE] = "compute", [THROUGHPUT_D2H] = "D2H",
        [THROUGHPUT_H2D] = "H2D",         [THROUGHPUT_RECOMPUTE] = "recompute",
        [THROUGHPUT_MEMORY] = "memory",   [THROUGHPUT_HOST] = "host memory",
    };
    return (unsigned)limit < THROUGHPUT_LIMIT_COUNT ? names[limit] : "?";
}
