/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The planning problem: who uses which tensor when, at which version, and how many bytes every step
 * needs at once. Built from a profile and a budget; every later stage reads it and none changes it.
 *
 * An *access* is one use of one tensor by one step. The accesses of a tensor are consecutive in
 * `accesses`, in step order. The *idle gap* after access a runs to the tensor's next access; after
 * the last access it is the *tail*, in which the tensor is needed only by reruns. A gap is named by
 * the id of the access before it. Inputs have a first gap of their own, from the beginning of the
 * iteration to their first access: access `step` ATP_NONE.
 *
 * Sizes are rounded up to the plan's alignment, so that sums of sizes are sums of arena bytes.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"
#include "region.h"

struct access {
    uint32_t tensor;
    uint32_t step; /* ATP_NONE: the beginning of the iteration (inputs only) */
    bool reads, writes;
    uint32_t version; /* of the tensor when the step has run: what is idle in the gap behind this
                         access */
    uint32_t read_version; /* that the step needs in place before it runs; version - 1 for writers
                              but the first, whose needs are none (read_version == version == 1
                              cannot be read) */
    bool has_next;         /* false: the gap behind is the tail */
};

struct problem {
    const struct profile *profile;
    const struct atp_model *model; /* &profile->model */
    uint64_t budget_bytes;
    uint64_t alignment_bytes;
    uint64_t arena_capacity; /* budget - resident, rounded down to the alignment */
    uint64_t arena_limit; /* what steps may use, at most the capacity; a step whose working set is
                             larger may use just that. Below the capacity where placement has
                             to be given room (see solve.c) */
    uint64_t host_limit;  /* pinned bytes, rounded down to the alignment */

    const uint64_t *tensor_bytes;    /* rounded, per tensor */
    const uint64_t *workspace_bytes; /* rounded, per step */
    const bool *is_input;            /* per tensor */

    uint32_t access_count;
    const struct access *accesses;
    const uint32_t *first_access; /* per tensor, [first_access[t], first_access[t + 1]);
                                     tensor_count + 1 entries */
    const uint32_t *step_first;   /* per step, its accesses are step_accesses[step_first[s] ..
                                     step_first[s + 1]) */
    const uint32_t
        *step_accesses; /* access ids, by step, then in the step's reads-then-writes order */

    /* Per access: may the version in the gap behind it be recomputed at all? Its writers 1..version
     * are forward steps that may rerun, and the tensor is no input. Their inputs may still have to
     * be kept for it. */
    const bool *recomputable;

    const uint64_t *working_set_bytes; /* per step: all its tensors and its workspace */
    const uint64_t
        *live_bytes; /* per step: what is live when nothing is dropped early, workspace included */
    uint64_t input_bytes;       /* all inputs: what the beginning of the iteration needs */
    uint64_t least_arena_bytes; /* largest working set, or input_bytes where that is larger */
    uint32_t least_step;        /* the step it belongs to; ATP_NONE: the beginning */
    uint64_t peak_bytes;        /* largest of live_bytes and input_bytes */
    int64_t compute_ns;         /* sum of all step times */
};

/* `alignment_bytes` is a power of two. The arena limit may lie below least_arena_bytes: the caller
 * decides what that means. ATP_ERR_INFEASIBLE only when resident bytes alone exceed the budget. */
ATP_MUST_USE enum atp_status problem_build(const struct profile *profile, uint64_t budget_bytes,
                                           uint64_t alignment_bytes, struct region *region,
                                           struct problem *out_problem, struct atp_error *err);

/* The largest power of two, 256 at most, to which all sizes can be rounded up while the peak with
 * everything kept and the largest working set each grow by a thousandth at most. */
uint64_t problem_alignment(const struct profile *profile, struct region *region);

/* What may be on the device while `step` (ATP_NONE: the beginning) runs. */
static inline uint64_t problem_step_limit(const struct problem *problem, uint32_t step)
{
    uint64_t needed = step == ATP_NONE ? problem->input_bytes : problem->working_set_bytes[step];
    return needed > problem->arena_limit ? needed : problem->arena_limit;
}

#endif
