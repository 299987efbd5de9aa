/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the pictures and tables of a report show: a plan's program on its profile's clock, taken
 * apart by engine, by place in the arena, by memory and by tensor. Plain data; report_write.c and
 * its neighbours write it.
 */
#ifndef REPORT_DATA_H
#define REPORT_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "baseline.h"
#include "problem.h"
#include "profile.h"
#include "region.h"

enum report_kind {
    REPORT_FORWARD,
    REPORT_BACKWARD,
    REPORT_UPDATE,
    REPORT_RERUN,
    REPORT_STALL, /* compute waits for a copy */
    REPORT_OUT,
    REPORT_IN,
    REPORT_KIND_COUNT
};

/* Something that an engine does for a while. */
struct report_mark {
    enum report_kind kind;
    uint32_t id; /* a step; a tensor for stalls and copies */
    int64_t start_ns, end_ns;
    uint64_t bytes, keep_all_bytes; /* on the compute engine: of the level meanwhile */
};

struct report_marks {
    uint32_t count;
    struct report_mark *items; /* in order of time, none overlap */
};

/* The stay of a tensor, or of a step's workspace, in the arena. */
struct report_place {
    bool is_workspace;
    uint32_t id; /* tensor; step of a workspace */
    int64_t start_ns, end_ns;
    uint64_t offset, bytes;
};

/* Device memory, resident bytes included, from one time to the next. */
struct report_level {
    int64_t start_ns, end_ns;
    uint64_t bytes;
    uint64_t keep_all_bytes; /* of the plain iteration at the same step */
};

struct report_tensor {
    uint32_t first_step, end_step; /* the longest idle gap lies between; equal: it never idles */
    int64_t gap_ns;                /* step times in it */
    int64_t rerun_ns;              /* of its own forward steps, once; -1: it cannot be recomputed */
    int64_t copy_ns;               /* out and back in */
    int64_t stall_ns;              /* compute waits for its copies */
    bool is_short;                 /* memory is short somewhere in an idle gap of it */
};

struct report {
    const struct atp_plan *plan;
    const struct profile *profile;
    struct problem problem;       /* of the plan at its budget */
    uint64_t keep_all_peak_bytes; /* with resident bytes */
    struct report_marks compute, out, in;
    uint32_t place_count, level_count;
    struct report_place *places; /* in order of start */
    struct report_level *levels; /* one behind the other, from 0 to the end */
    struct report_tensor *tensors;
    const struct baseline_list *baselines; /* NULL: none */
    const struct report_curve *curve;      /* NULL: none */
};

/* `plan` passes atp_plan_check and is for the profile; all of them outlive the report.
 * ATP_ERR_INVALID when times or sizes leave their range. */
ATP_MUST_USE enum atp_status report_build(const struct atp_plan *plan,
                                          const struct profile *profile, struct region *region,
                                          struct report *out_report, struct atp_error *err);

#endif
