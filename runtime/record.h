/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of steps, taken with a pair of events around each. The events of an iteration are read when
 * the next one begins, so that nothing waits inside an iteration.
 */
#ifndef ATP_RECORD_H
#define ATP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/backend.h>
#include <atp/model.h>

#include "carve.h"

/* The median is over this many iterations, the latest. */
#define RECORD_SAMPLES 63

struct record {
    struct atp_backend *backend;
    void *stream; /* the compute stream */
    uint32_t step_count;
    void **starts, **ends;    /* events, per step; NULL when there is none yet */
    int64_t *samples_ns;      /* RECORD_SAMPLES per step */
    int64_t *sorted_ns;       /* RECORD_SAMPLES: scratch of the median */
    uint64_t iteration_count; /* whose times have been read */
    bool is_pending;          /* a complete iteration waits to be read */
};

void record_lay_out(struct record *record, const struct atp_model *model, struct carve *carve);

/* Makes the events, into arrays that are all NULL. On failure record_finish releases them. */
ATP_MUST_USE enum atp_status record_init(struct record *record, struct atp_backend *backend,
                                         void *stream, uint32_t step_count, struct atp_error *err);
void record_finish(struct record *record);

ATP_MUST_USE enum atp_status record_begin_step(struct record *record, uint32_t step,
                                               struct atp_error *err);
ATP_MUST_USE enum atp_status record_end_step(struct record *record, uint32_t step,
                                             struct atp_error *err);

/* Waits for the compute stream and reads the times of the pending iteration, if there is one. The
 * first iteration is warm-up: the second takes its place. */
ATP_MUST_USE enum atp_status record_read(struct record *record, struct atp_error *err);

/* How long a step took over the iterations that count. */
struct record_times {
    int64_t median_ns;
    int64_t spread_ns; /* between the quartiles: half of the times lie within it */
    uint32_t sample_count, outlier_count;
    bool is_unsteady; /* the spread is more than a tenth of the median, or some are outliers */
};

/* At least one iteration was read. Outliers are three spreads away from the quartiles; events of
 * devices resolve half a microsecond, so a spread counts as one at least. */
void record_times(const struct record *record, uint32_t step, struct record_times *out);

#endif
