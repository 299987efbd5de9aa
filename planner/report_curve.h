/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Throughput over batch sizes in a report: the model's bound at the plan's budget, keeping
 * everything as far as it fits, and where the plan stands.
 */
#ifndef REPORT_CURVE_H
#define REPORT_CURVE_H

#include <stdio.h>

#include <atp/plan.h>

#include "peak.h"
#include "region.h"

struct report_curve {
    struct peak peak;        /* what the model says; nothing is planned */
    uint32_t top;            /* in peak.batches: with the largest bound */
    uint32_t most_unplanned; /* the largest that fits with everything kept; ATP_NONE: none does */
};

/* Of all batch sizes that can have a plan, and not more than a few times the plan's. NULL where
 * that is none but the plan's: then there is no curve. */
ATP_MUST_USE enum atp_status report_curve_build(const struct atp_plan *plan,
                                                const struct profile_file *file,
                                                struct region *region,
                                                const struct report_curve **out_curve,
                                                struct atp_error *err);

/* What it shows in one paragraph, the picture, and its axes. */
void report_curve_write(const struct report_curve *curve, const struct atp_plan *plan, FILE *out);

#endif
