/* SPDX-License-Identifier: Apache-2.0
 *
 * The last iteration of a replay as Chrome trace events, a JSON that Perfetto and chrome://tracing
 * open. Two processes with the same three tracks, so that one can be held against the other: what
 * was measured, and what the simulator makes of the plan on a clock of the caller's. Slices go to
 * the file as they are found; viewers sort.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fail.h"
#include "replay_state.h"
#include "whole_file.h"

enum process { MEASURED = 1, PREDICTED };
enum track { COMPUTE = 1, TO_HOST, TO_DEVICE };

struct trace {
    FILE *file;
    const struct atp_plan *plan;
    enum process process;
};

struct span {
    int64_t start_ns, end_ns;
};

static void put_text(FILE *file, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            (void)fprintf(file, "\\%c", byte);
        } else if (byte < 0x20) {
            (void)fprintf(file, "\\u%04X", byte);
        } else {
            (void)fputc(byte, file);
        }
    }
}

static void put_us(FILE *file, int64_t ns)
{
    (void)fprintf(file, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

static void put_process(FILE *file, enum process process, const char *name)
{
    static const char *const tracks[] = {
        [COMPUTE] = "compute", [TO_HOST] = "copies to host", [TO_DEVICE] = "copies to device"};
    (void)fprintf(
        file, ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}",
        process, name);
    for (int t = COMPUTE; t <= TO_DEVICE; t++) {
        (void)fprintf(file,
                      ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                      "\"args\":{\"name\":\"%s\"}}",
                      process, t, tracks[t]);
    }
}

/* What an instruction is called, and where it is drawn. */
static enum track name_of(const struct atp_plan *plan, const struct atp_instruction *at,
                          const char **out_verb, const char **out_name, const char **out_category)
{
    bool is_work = at->op == ATP_OP_RUN || at->op == ATP_OP_RERUN;
    *out_name = is_work ? plan->model.steps[at->id].name : plan->model.tensors[at->id].name;
    *out_verb = at->op == ATP_OP_RUN ? "" : at->op == ATP_OP_RERUN ? "rerun " : "stall ";
    *out_category = at->op == ATP_OP_RUN     ? atp_phase_name(plan->model.steps[at->id].phase)
                    : at->op == ATP_OP_RERUN ? "rerun"
                                             : "stall";
    if (at->op != ATP_OP_EVICT && at->op != ATP_OP_RESTORE) {
        return COMPUTE;
    }
    *out_verb = at->op == ATP_OP_EVICT ? "evict " : "restore ";
    *out_category = "copy";
    return at->op == ATP_OP_EVICT ? TO_HOST : TO_DEVICE;
}

/* Copies and work have a slice whatever their length, waits only when they stalled. */
static void put_slice(const struct trace *trace, uint32_t instruction, struct span span)
{
    const struct atp_instruction *at = &trace->plan->program[instruction];
    bool is_copy = at->op == ATP_OP_EVICT || at->op == ATP_OP_RESTORE;
    bool is_wait = at->op == ATP_OP_EVICTED || at->op == ATP_OP_RESTORED;
    const char *verb, *name, *category;
    enum track track = name_of(trace->plan, at, &verb, &name, &category);
    if (is_wait && span.end_ns <= span.start_ns) {
        return;
    }
    (void)fprintf(trace->file, ",\n{\"name\":\"%s", verb);
    put_text(trace->file, name);
    (void)fprintf(trace->file,
                  "\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":", category,
                  trace->process, track);
    put_us(trace->file, span.start_ns);
    (void)fputs(",\"dur\":", trace->file);
    put_us(trace->file, span.end_ns > span.start_ns ? span.end_ns - span.start_ns : 0);
    (void)fprintf(trace->file, ",\"args\":{\"instruction\":%" PRIu32, instruction);
    if (is_copy) {
        (void)fprintf(trace->file, ",\"bytes\":%" PRIu64, trace->plan->model.tensors[at->id].bytes);
    }
    (void)fputs("}}", trace->file);
}

static enum atp_status read_span(struct report *report, void *start, void *end, struct span *out,
                                 struct atp_error *err)
{
    ATP_TRY(report_time(report, start, &out->start_ns, err));
    return report_time(report, end, &out->end_ns, err);
}

static enum atp_status put_measured(const struct trace *trace, struct report *report,
                                    struct atp_error *err)
{
    uint32_t copy = 0, work = 0;
    struct span span;
    for (uint32_t i = 0; i < trace->plan->instruction_count; i++) {
        enum atp_op op = trace->plan->program[i].op;
        if (op == ATP_OP_RUN || op == ATP_OP_RERUN) {
            const struct report_work *w = &report->works[work++];
            ATP_TRY(read_span(report, w->start, w->end, &span, err));
            put_slice(trace, i, span);
        } else if (op == ATP_OP_EVICT || op == ATP_OP_RESTORE) {
            const struct report_copy *c = &report->copies[copy];
            ATP_TRY(read_span(report, c->start, c->end, &span, err));
            put_slice(trace, i, span);
            ATP_TRY(read_span(report, c->wait_start, c->wait_end, &span, err));
            put_slice(trace, report->waits[copy++].instruction, span);
        }
    }
    return ATP_OK;
}

static void put_predicted(void *ctx, const struct atp_simulated *event)
{
    const struct trace *trace = (const struct trace *)ctx;
    enum atp_op op = trace->plan->program[event->instruction].op;
    if (op != ATP_OP_ALLOC && op != ATP_OP_FREE) {
        put_slice(trace, event->instruction, (struct span){event->start_ns, event->end_ns});
    }
}

static enum atp_status write_all(FILE *file, struct atp_replay *r, const struct atp_clock *clock,
                                 struct atp_error *err)
{
    struct atp_predicted ignored;
    struct trace trace = {.file = file, .plan = r->plan, .process = MEASURED};
    (void)fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"model\":\"", file);
    put_text(file, r->plan->model.name != NULL ? r->plan->model.name : "");
    (void)fprintf(file, "\",\"iteration\":\"%" PRIu64 "\"},\"traceEvents\":[", r->report.iteration);
    (void)fputs("\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1,\"args\":"
                "{\"sort_index\":1}}",
                file);
    put_process(file, MEASURED, "measured");
    ATP_TRY(put_measured(&trace, &r->report, err));
    if (clock != NULL) {
        put_process(file, PREDICTED, "predicted");
        trace.process = PREDICTED;
        ATP_TRY(atp_simulate(r->plan, clock, put_predicted, &trace, &ignored, err));
    }
    (void)fputs("\n]}\n", file);
    return ATP_OK;
}

enum atp_status atp_replay_write_trace(struct atp_replay *r, const char *path,
                                       const struct atp_clock *clock, struct atp_error *err)
{
    struct atp_iteration_report report;
    struct whole_file whole;
    ATP_TRY(atp_replay_report(r, &report, err)); /* waits, and knows when there is nothing */
    ATP_TRY(whole_file_open(&whole, path, err));
    enum atp_status status = write_all(whole.file, r, clock, err);
    if (status != ATP_OK) {
        whole_file_discard(&whole);
        return status;
    }
    return whole_file_finish(&whole, err);
}
