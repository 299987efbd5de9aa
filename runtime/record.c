/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "fail.h"

#define RESOLUTION_NS 1000

void record_lay_out(struct record *record, const struct atp_model *model, struct carve *carve)
{
    uint64_t steps = model->step_count;
    record->starts = CARVE(carve, void *, steps);
    record->ends = CARVE(carve, void *, steps);
    record->samples_ns = CARVE(carve, int64_t, steps * RECORD_SAMPLES);
    record->sorted_ns = CARVE(carve, int64_t, RECORD_SAMPLES);
}

enum atp_status record_init(struct record *record, struct atp_backend *backend, void *stream,
                            uint32_t step_count, struct atp_error *err)
{
    record->backend = backend;
    record->stream = stream;
    record->step_count = step_count;
    for (uint32_t s = 0; s < step_count; s++) {
        ATP_TRY(backend->ops->event_create(backend, true, &record->starts[s], err));
        ATP_TRY(backend->ops->event_create(backend, true, &record->ends[s], err));
    }
    return ATP_OK;
}

void record_finish(struct record *record)
{
    struct atp_backend *backend = record->backend;
    for (uint32_t s = record->step_count; s > 0; s--) {
        if (record->ends[s - 1] != NULL) {
            backend->ops->event_destroy(backend, record->ends[s - 1]);
        }
        if (record->starts[s - 1] != NULL) {
            backend->ops->event_destroy(backend, record->starts[s - 1]);
        }
    }
}

enum atp_status record_begin_step(struct record *record, uint32_t step, struct atp_error *err)
{
    return record->backend->ops->event_record(record->backend, record->starts[step], record->stream,
                                              err);
}

enum atp_status record_end_step(struct record *record, uint32_t step, struct atp_error *err)
{
    return record->backend->ops->event_record(record->backend, record->ends[step], record->stream,
                                              err);
}

enum atp_status record_read(struct record *record, struct atp_error *err)
{
    struct atp_backend *backend = record->backend;
    if (!record->is_pending) {
        return ATP_OK;
    }
    uint64_t n = record->iteration_count;
    uint64_t slot = n == 0 ? 0 : (n - 1) % RECORD_SAMPLES;
    ATP_TRY(backend->ops->stream_sync(backend, record->stream, err));
    for (uint32_t s = 0; s < record->step_count; s++) {
        int64_t ns;
        ATP_TRY(backend->ops->event_elapsed(backend, record->starts[s], record->ends[s], &ns, err));
        record->samples_ns[(uint64_t)s * RECORD_SAMPLES + slot] = ns < 0 ? 0 : ns;
    }
    record->iteration_count++;
    record->is_pending = false;
    return ATP_OK;
}

/* Sorts the times that count into the scratch array. */
static uint32_t sort_samples(const struct record *record, uint32_t step)
{
    const int64_t *samples = &record->samples_ns[(uint64_t)step * RECORD_SAMPLES];
    uint64_t count = record->iteration_count < 2 ? 1 : record->iteration_count - 1;
    count = count > RECORD_SAMPLES ? RECORD_SAMPLES : count;
    int64_t *sorted = record->sorted_ns;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i;
        while (at > 0 && sorted[at - 1] > samples[i]) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = samples[i];
    }
    return (uint32_t)count;
}

void record_times(const struct record *record, uint32_t step, struct record_times *out)
{
    uint32_t count = sort_samples(record, step);
    const int64_t *sorted = record->sorted_ns;
    int64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];
    int64_t first_quartile = sorted[(count - 1) / 4],
            last_quartile = sorted[count - 1 - (count - 1) / 4];
    int64_t spread = last_quartile - first_quartile;
    int64_t step_away = spread > RESOLUTION_NS ? spread : RESOLUTION_NS;
    *out = (struct record_times){
        .median_ns = low + (high - low) / 2, .spread_ns = spread, .sample_count = count};
    for (uint32_t i = 0; i < count; i++) {
        out->outlier_count +=
            first_quartile - sorted[i] > 3 * step_away || sorted[i] - last_quartile > 3 * step_away;
    }
    out->is_unsteady =
        out->outlier_count > 0 || (spread > RESOLUTION_NS && spread > out->median_ns / 10);
}
