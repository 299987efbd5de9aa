/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The batch size worth training at. The throughput model bounds all of them from above, the
 * relaxation some more sharply, plans show for a few what can be reached. The search ends with a
 * proof that no other batch size is faster by more than a gap, or says how much it could not
 * exclude.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "profile.h"
#include "region.h"
#include "throughput.h"

#define PEAK_BATCHES_MAX 65536U

/* The same structure at any batch size. ATP_ERR_INVALID: not at this one. */
struct peak_source {
    enum atp_status (*profile_at)(void *ctx, uint64_t batch_size, struct region *region,
                                  struct profile *out_profile, struct atp_error *err);
    void *ctx;
};

/* The source that a profile file is; `file` outlives it. */
struct peak_file {
    const struct profile_file *file;
};
struct peak_source peak_file_source(struct peak_file *file);

struct peak_options {
    uint64_t budget_bytes;
    uint64_t alignment_bytes; /* 0: chosen for each batch size */
    uint64_t first_batch;     /* 0: the smallest that `multiple` allows */
    uint64_t last_batch;      /* 0: the largest whose least budget is within the budget */
    uint64_t multiple;        /* of batch sizes; 0 counts as 1 */
    /* 0: none. Else each batch size divides it, forward and backward steps run global / batch size
     * times an iteration and update steps once. */
    uint64_t global_batch;
    double gap;          /* 0.01: of the throughput; when to stop */
    uint32_t plan_limit; /* of the search; what peak_look plans does not count */
    uint32_t effort;     /* of relaxations and plans; 0 counts as 1 */
    const volatile int *stop;
    bool shows_progress; /* on standard error */
};

struct peak_batch {
    uint64_t batch_size;
    uint64_t repeats;  /* of forward and backward steps; 1 without a global batch */
    int64_t update_ns; /* that `model` and `predicted` leave out; 0 without a global batch */
    struct throughput_point model;
    /* What the fastest policy takes (peak_policy.h), by sums of sizes; 0: not known, INT64_MAX:
     * none fits. */
    int64_t policy_ns;
    int64_t bound_ns; /* of plans at any alignment, the best known; INT64_MAX: there is none */
    bool grows;       /* the next batch size needs as much time and memory everywhere, or more */
    bool relaxed, planned; /* what was done about it */
    bool has_plan;         /* false where planned: none was found */
    struct atp_predicted predicted;
    uint64_t arena_bytes, host_arena_bytes;
};

struct peak {
    struct peak_options options;
    struct peak_source source;
    struct region *region;
    struct throughput *throughput;
    uint32_t count;
    struct peak_batch *batches; /* ascending */
    uint32_t best;              /* with the fastest plan; ATP_NONE: there is none yet */
    struct atp_plan best_plan;
    struct region *best_region; /* holds best_plan */
    double proven_gap; /* no other batch size has more than 1 + proven_gap times the throughput;
                          INFINITY without a plan */
    uint32_t rival;    /* the batch size that proven_gap is about; ATP_NONE: there is none */
    uint32_t relaxation_count, plan_count, search_plan_count;
};

/* Samples a second when an iteration (of forward and backward steps, with a global batch) takes
 * `iteration_ns`, a nanosecond at least. 0 for INT64_MAX. */
double peak_rate(const struct peak_batch *batch, int64_t iteration_ns);

/* Fills the batch sizes with what the model says of them. ATP_ERR_INVALID for options that leave no
 * batch size or too many; ATP_ERR_INFEASIBLE when none of them has a plan, with the least budget of
 * the smallest. `out_peak` is valid then too. peak_finish in any case. */
ATP_MUST_USE enum atp_status peak_begin(const struct peak_source *source,
                                        const struct peak_options *options, struct region *region,
                                        struct peak *out_peak, struct atp_error *err);

/* Best after peak_policies_rate, which tells where plans are worth making. Relaxes and plans until
 * the gap is proven, or nothing is left that could prove it, or the plan limit is reached, or the
 * search is stopped. */
ATP_MUST_USE enum atp_status peak_search(struct peak *peak, struct atp_error *err);

/* Relaxes and plans one batch size, where that is not done, whatever the bounds say of it. To be
 * followed by peak_search: what is found here may move the peak. */
ATP_MUST_USE enum atp_status peak_look(struct peak *peak, uint32_t index, struct atp_error *err);

/* Where `batch_size` is in peak->batches, or the next smaller one; ATP_NONE: all are larger. */
uint32_t peak_find(const struct peak *peak, uint64_t batch_size);

/* The largest batch size that fits with everything kept, and the largest that has a plan by its
 * least budget; ATP_NONE: none does. */
uint32_t peak_largest_unplanned(const struct peak *peak);
uint32_t peak_largest_planned(const struct peak *peak);

void peak_finish(struct peak *peak);

#endif
