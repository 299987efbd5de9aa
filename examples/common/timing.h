/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of iterations, and the table of what a plan promised beside what was measured.
 */
#ifndef TIMING_H
#define TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/replay.h>

struct timing {
    int64_t *iteration_ns, *stall_ns; /* of `count` iterations */
    uint64_t count, capacity;
};

bool timing_init(struct timing *timing, uint64_t iterations);
void timing_finish(struct timing *timing);
void timing_add(struct timing *timing, const struct atp_iteration_report *report);
/* On standard error; `is_planned`: with the plan's promises. */
void timing_print(const struct timing *timing, const struct atp_plan *plan, bool is_planned);

#endif
