/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A few rows of memory, each asked on its own: how many bytes must be away while this step runs,
 * and what does that take at least? What is away comes back by a copy, after a copy out, or by a
 * rerun. Both are relaxed to fractions, so that the answer is the least value of a convex function
 * of one variable, the bytes to recompute, whose corners lie where a copy engine or a group of
 * tensors with one rerun is used up. throughput.md has the proof. O(n log n): each row is one pass
 * over the uses and a sort of the forward steps, and there are ROW_COUNT rows.
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

/* Tensors that one step's rerun brings back. */
struct group {
    uint32_t step;
    double bytes, ns;
};

struct throughput {
    struct profile profile; /* that `shape` is of */
    struct problem shape;   /* structure alone: its sizes are those of one batch size */
    uint32_t *owner;        /* per access: the step whose rerun its gap waits for; ATP_NONE: copies
                               alone bring it back */
    uint32_t *made_at;      /* per tensor: position behind its first writer; 0 for inputs */
    /* Per step, at the batch size at hand: */
    uint64_t *live, *working_set, *change;
    int64_t *before_ns; /* the sum of all steps before; one more for the end */
    double *group_bytes;
    struct group *groups;
};

/* What one step asks for. */
struct row {
    double excess, all_bytes, largest_bytes; /* of what is idle there */
    double host_bytes;
    double before_ns, behind_ns; /* compute in which copies can run for nothing */
    double out_ns, in_ns;        /* per byte */
    double rounding;             /* how far off its costs may be, as a share of their terms */
    uint32_t group_count;
    const struct group *groups; /* cheapest first */
};

/* One way to meet a row. */
struct mix {
    double recomputed, rerun_ns, out_ns, in_ns; /* bytes; costs */
};

/* All writers up to the version must rerun; the longest stands for all. */
static void find_owners(struct throughput *t, struct region *region)
{
    const struct problem *shape = &t->shape;
    const int64_t *step_ns = shape->profile->clock.step_ns;
    t->owner = REGION_NEW(region, uint32_t, shape->access_count);
    t->made_at = REGION_NEW(region, uint32_t, shape->model->tensor_count);
    for (uint32_t x = 0; x < shape->model->tensor_count; x++) {
        uint32_t longest = ATP_NONE;
        for (uint32_t a = shape->first_access[x]; a < shape->first_access[x + 1]; a++) {
            const struct access *access = &shape->accesses[a];
            if (access->writes && longest == ATP_NONE) {
                t->made_at[x] = access->step + 1;
            }
            if (access->writes &&
                (longest == ATP_NONE || step_ns[access->step] > step_ns[longest])) {
                longest = access->step;
            }
            t->owner[a] = shape->recomputable[a] ? longest : ATP_NONE;
        }
    }
}

enum atp_status throughput_create(const struct profile *profile, struct region *region,
                                  struct throughput **out_throughput, struct atp_error *err)
{
    struct throughput *t = REGION_NEW(region, struct throughput, 1);
    uint32_t steps = profile->model.step_count;
    t->profile = *profile;
    ATP_TRY(problem_build(&t->profile, SIZE_BYTES_MAX, 1, region, &t->shape, err));
    find_owners(t, region);
    t->live = REGION_NEW(region, uint64_t, steps);
    t->working_set = REGION_NEW(region, uint64_t, steps);
    t->change = REGION_NEW(region, uint64_t, (size_t)steps + 1);
    t->before_ns = REGION_NEW(region, int64_t, (size_t)steps + 1);
    t->group_bytes = REGION_NEW(region, double, steps);
    t->groups = REGION_NEW(region, struct group, steps);
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

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    double x = a->ns * b->bytes, y = b->ns * a->bytes;
    return x != y ? (x > y) - (x < y) : (a->step > b->step) - (a->step < b->step);
}

/* Everything idle over `step`: its groups, its sizes, and when it can be copied. */
static void build_row(struct throughput *t, const struct profile *profile, uint32_t step,
                      struct row *row)
{
    const struct problem *shape = &t->shape;
    uint32_t first = step, last = step + 1, count = 0;
    row->all_bytes = row->largest_bytes = 0;
    for (uint32_t s = 0; s <= step; s++) {
        t->group_bytes[s] = 0;
    }
    for (uint32_t a = 0; a + 1 < shape->access_count; a++) {
        const struct access *access = &shape->accesses[a];
        bool is_idle = access->has_next && (access->step == ATP_NONE || access->step < step) &&
                       access[1].step > step;
        double bytes = is_idle ? (double)profile->model.tensors[access->tensor].bytes : 0;
        if (!(bytes > 0)) {
            continue;
        }
        row->all_bytes += bytes;
        row->largest_bytes = fmax(row->largest_bytes, bytes);
        first = t->made_at[access->tensor] < first ? t->made_at[access->tensor] : first;
        last = access[1].step > last ? access[1].step : last;
        if (t->owner[a] != ATP_NONE) {
            t->group_bytes[t->owner[a]] += bytes;
        }
    }
    for (uint32_t s = 0; s < step; s++) {
        if (t->group_bytes[s] > 0) {
            t->groups[count++] =
                (struct group){s, t->group_bytes[s], (double)profile->clock.step_ns[s]};
        }
    }
    qsort(t->groups, count, sizeof(*t->groups), compare_groups);
    row->rounding = ((double)shape->access_count + ROUND_TERMS) * ROUNDING;
    row->groups = t->groups;
    row->group_count = count;
    row->before_ns = (double)(t->before_ns[step] - t->before_ns[first]);
    row->behind_ns = (double)(t->before_ns[last] - t->before_ns[step + 1]);
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

/* The corners of the cost within one group, whose first byte is the `from`th. */
static void try_group(const struct row *row, const struct group *group, double from,
                      double rerun_ns, double least, struct mix *best)
{
    double slope = group->ns / group->bytes, end = fmin(from + group->bytes, row->excess);
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
    for (uint32_t g = 0; g < row->group_count && from < row->excess; g++) {
        try_group(row, &row->groups[g], from, rerun_ns, least, &best);
        from += row->groups[g].bytes;
        rerun_ns += row->groups[g].ns;
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
