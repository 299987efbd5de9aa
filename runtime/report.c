/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "fail.h"

void report_lay_out(struct report *report, uint32_t copy_count, uint32_t work_count,
                    struct carve *carve)
{
    report->copies = CARVE(carve, struct report_copy, copy_count);
    report->waits = CARVE(carve, struct atp_wait_report, copy_count);
    report->works = CARVE(carve, struct report_work, work_count);
    report->copy_count = copy_count;
    report->work_count = work_count;
}

static enum atp_status make_event(struct report *report, void **out, struct atp_error *err)
{
    return report->backend->ops->event_create(report->backend, true, out, err);
}

enum atp_status report_init(struct report *report, struct atp_backend *backend, void *stream,
                            struct atp_error *err)
{
    report->backend = backend;
    report->stream = stream;
    ATP_TRY(make_event(report, &report->begin, err));
    ATP_TRY(make_event(report, &report->end, err));
    for (uint32_t c = 0; c < report->copy_count; c++) {
        struct report_copy *copy = &report->copies[c];
        ATP_TRY(make_event(report, &copy->start, err));
        ATP_TRY(make_event(report, &copy->end, err));
        ATP_TRY(make_event(report, &copy->wait_start, err));
        ATP_TRY(make_event(report, &copy->wait_end, err));
    }
    for (uint32_t w = 0; w < report->work_count; w++) {
        ATP_TRY(make_event(report, &report->works[w].start, err));
        ATP_TRY(make_event(report, &report->works[w].end, err));
    }
    return ATP_OK;
}

static void drop_event(struct report *report, void *event)
{
    if (event != NULL) {
        report->backend->ops->event_destroy(report->backend, event);
    }
}

void report_finish(struct report *report)
{
    for (uint32_t w = report->work_count; w > 0; w--) {
        drop_event(report, report->works[w - 1].end);
        drop_event(report, report->works[w - 1].start);
    }
    for (uint32_t c = report->copy_count; c > 0; c--) {
        struct report_copy *copy = &report->copies[c - 1];
        drop_event(report, copy->wait_end);
        drop_event(report, copy->wait_start);
        drop_event(report, copy->end);
        drop_event(report, copy->start);
    }
    drop_event(report, report->end);
    drop_event(report, report->begin);
}

enum atp_status report_begin_iteration(struct report *report, struct atp_error *err)
{
    report->next_copy = 0;
    report->next_work = 0;
    report->is_complete = false;
    return report->backend->ops->event_record(report->backend, report->begin, report->stream, err);
}

enum atp_status report_end_iteration(struct report *report, uint64_t iteration,
                                     struct atp_error *err)
{
    ATP_TRY(report->backend->ops->event_record(report->backend, report->end, report->stream, err));
    report->iteration = iteration;
    report->is_complete = true;
    return ATP_OK;
}

static enum atp_status elapsed(struct report *report, void *start, void *end, int64_t *out_ns,
                               struct atp_error *err)
{
    ATP_TRY(report->backend->ops->event_elapsed(report->backend, start, end, out_ns, err));
    *out_ns = *out_ns < 0 ? 0 : *out_ns;
    return ATP_OK;
}

enum atp_status report_time(struct report *report, void *event, int64_t *out_ns,
                            struct atp_error *err)
{
    return elapsed(report, report->begin, event, out_ns, err);
}

enum atp_status report_read(struct report *report, struct atp_iteration_report *out,
                            struct atp_error *err)
{
    *out = (struct atp_iteration_report){.iteration = report->iteration};
    /* Every copy has been waited for by the compute stream. */
    ATP_TRY(report->backend->ops->stream_sync(report->backend, report->stream, err));
    ATP_TRY(elapsed(report, report->begin, report->end, &out->iteration_ns, err));
    for (uint32_t c = 0; c < report->copy_count; c++) {
        const struct report_copy *copy = &report->copies[c];
        struct atp_wait_report *wait = &report->waits[c];
        ATP_TRY(elapsed(report, copy->start, copy->end, &wait->copy_ns, err));
        ATP_TRY(elapsed(report, copy->wait_start, copy->wait_end, &wait->stall_ns, err));
        out->copy_ns += wait->copy_ns;
        out->stall_ns += wait->stall_ns;
    }
    out->wait_count = report->copy_count;
    out->waits = report->waits;
    return ATP_OK;
}
