/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of one iteration's work, copies and waits, taken with events around each, for
 * atp_replay_report. Copies are numbered in program order; a plan that passed its check waits for
 * each once.
 */
#ifndef ATP_REPORT_H
#define ATP_REPORT_H

#include <atp/replay.h>

#include "carve.h"

struct report_copy {
    void *start, *end;           /* events, on the copy's stream */
    void *wait_start, *wait_end; /* events, on the compute stream */
};

struct report_work {
    void *start, *end; /* events, on the compute stream */
};

struct report {
    struct atp_backend *backend;
    void *stream; /* the compute stream */
    void *begin, *end;
    uint32_t copy_count;
    struct report_copy *copies;
    struct atp_wait_report *waits; /* by copy */
    uint32_t next_copy;
    uint32_t work_count, next_work; /* runs and reruns, in program order */
    struct report_work *works;
    uint64_t iteration;
    bool is_complete; /* the events are those of a complete iteration */
};

void report_lay_out(struct report *report, uint32_t copy_count, uint32_t work_count,
                    struct carve *carve);

/* Makes the events, into arrays that are all NULL. On failure report_finish releases them. */
ATP_MUST_USE enum atp_status report_init(struct report *report, struct atp_backend *backend,
                                         void *stream, struct atp_error *err);
void report_finish(struct report *report);

ATP_MUST_USE enum atp_status report_begin_iteration(struct report *report, struct atp_error *err);
ATP_MUST_USE enum atp_status report_end_iteration(struct report *report, uint64_t iteration,
                                                  struct atp_error *err);

/* Of the complete iteration that was read: nanoseconds from its begin to the event. */
ATP_MUST_USE enum atp_status report_time(struct report *report, void *event, int64_t *out_ns,
                                         struct atp_error *err);

/* Waits for the compute stream and fills all of *out but what the plan knows. */
ATP_MUST_USE enum atp_status report_read(struct report *report, struct atp_iteration_report *out,
                                         struct atp_error *err);

#endif
