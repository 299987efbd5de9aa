/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The throughput model: for one batch size and budget, a lower bound on the iteration time of every
 * program that atp_plan_check accepts, in closed form, and the mix of copies and reruns that it
 * comes from. Much weaker than the relaxation (relax.h) and thousands of times cheaper: it says
 * which batch sizes are worth a relaxation. throughput.md derives it.
 */
#ifndef THROUGHPUT_H
#define THROUGHPUT_H

#include <stdint.h>

#include "profile.h"
#include "region.h"

/* What keeps a batch size from more throughput. */
enum throughput_limit {
    THROUGHPUT_COMPUTE,   /* the steps themselves: what has to go hides behind them */
    THROUGHPUT_D2H,       /* waits for copies to the host */
    THROUGHPUT_H2D,       /* waits for copies back */
    THROUGHPUT_RECOMPUTE, /* reruns, cheaper than waits */
    THROUGHPUT_MEMORY,    /* no plan: a working set or the inputs exceed the budget */
    THROUGHPUT_HOST       /* no plan: what has to go does not fit the pinned memory either */
};
#define THROUGHPUT_LIMIT_COUNT 6

struct throughput_point {
    uint64_t batch_size;
    int64_t compute_ns; /* all steps once */
    int64_t bound_ns;   /* no plan is faster; INT64_MAX: there is none */
    enum throughput_limit limit;
    uint64_t keep_all_bytes;     /* resident + what is live at most when nothing is dropped */
    uint64_t least_budget_bytes; /* resident + the largest working set, or all inputs */
    /* The step that asks for most time, ATP_NONE where none asks for any; and for that step: */
    uint32_t step;
    uint64_t excess_bytes; /* that cannot be on the device while it runs */
    uint64_t hidden_bytes; /* that copies can move out before and back behind it for nothing */
    uint64_t swap_bytes, recompute_bytes; /* the cheapest mix; their sum is excess_bytes */
    int64_t d2h_ns, h2d_ns, recompute_ns; /* what it costs */
};

/* The structure of a profile, prepared for many batch sizes. Opaque; lives in the region. */
struct throughput;

/* Any batch size of the profile will do: sizes and times are taken at throughput_find. What the
 * profile points to is borrowed, the struct itself is not. */
ATP_MUST_USE enum atp_status throughput_create(const struct profile *profile, struct region *region,
                                               struct throughput **out_throughput,
                                               struct atp_error *err);

/* The profile is the one given to throughput_create at another batch size. O(n log n) in its uses.
 * Not for two threads at a time: it works in buffers of `throughput`. */
void throughput_find(struct throughput *throughput, const struct profile *profile,
                     uint64_t budget_bytes, struct throughput_point *out_point);

/* "compute", "D2H", ... */
const char *throughput_limit_name(enum throughput_limit limit);

#endif
