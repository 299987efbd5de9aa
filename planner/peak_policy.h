/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The best batch size of each simple policy (baseline.h): what the peak is compared with.
 */
#ifndef PEAK_POLICY_H
#define PEAK_POLICY_H

#include "peak.h"

struct peak_policy {
    const char *name;
    uint32_t index; /* in peak->batches; ATP_NONE: it fits at none of those tried */
    int64_t iteration_ns;
};

struct peak_policies {
    uint32_t count;
    struct peak_policy *items; /* in the order of baseline.h */
    uint32_t tried_count;      /* batch sizes, spread evenly where there are very many */
    uint32_t *tried;           /* their indices */
    uint32_t room;
    double *rates; /* `room` for each policy, in the order of `tried`; 0: does not fit */
};

/* Sets policy_ns of the batch sizes, and what peak_policies_place chooses from. */
ATP_MUST_USE enum atp_status
peak_policies_rate(struct peak *peak, struct peak_policies *out_policies, struct atp_error *err);

/* Finds `index` and `iteration_ns` of each policy. It is judged as a plan is: its tensors must have
 * a place. The fastest batch sizes by sums of sizes are tried first. */
ATP_MUST_USE enum atp_status peak_policies_place(struct peak *peak, struct peak_policies *policies,
                                                 struct atp_error *err);

#endif
