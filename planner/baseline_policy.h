/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside baseline: a policy is a series of choice vectors, from the least that it does to the most.
 */
#ifndef BASELINE_POLICY_H
#define BASELINE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"

/* A tensor idle between the phases, and what it would cost to have it away. */
struct phase_gap {
    uint32_t access;
    uint8_t choice; /* what the policy at hand does with it */
    uint64_t bytes;
    int64_t idle_ns, out_ns, in_ns;
    int64_t rerun_ns; /* of its writers alone; INT64_MAX: it may not be rerun */
    double rank;      /* the policy at hand takes large ones first */
};

struct policy_input {
    const struct problem *problem;
    struct region *region;
    const int64_t *copy_out_ns, *copy_in_ns; /* per tensor */
    const bool *is_tiny;                     /* per tensor: all of them together never matter */
    uint8_t *plain;                          /* choices that keep everything that is used again */
    uint32_t gap_count;
    struct phase_gap *gaps; /* of all tensors but tiny ones */
    uint32_t forward_count; /* forward steps */
    int64_t forward_ns, backward_ns;
};

struct policy {
    const char *name;
    bool fastest; /* takes the fastest level that fits; else the first */
    /* Called once before `fill`; may sort the gaps. Returns the highest level. */
    uint32_t (*prepare)(struct policy_input *input);
    /* `choices` holds `plain`. NULL: that is all. */
    void (*fill)(const struct policy_input *input, uint32_t level, uint8_t *choices);
};

#define POLICY_COUNT 8
extern const struct policy POLICIES[POLICY_COUNT];

void policy_input_build(const struct problem *problem, const int64_t *copy_out_ns,
                        const int64_t *copy_in_ns, struct region *region,
                        struct policy_input *out_input);

#endif
