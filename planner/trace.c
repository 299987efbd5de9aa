/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program is simulated once and its times are kept; events then follow in program order, for a
 * viewer sorts. An arrow runs from the copy's slice to the stall that it causes, or to the next
 * slice of the compute track when nothing had to wait. The counter has the bytes that are live from
 * each moment on: changes at one moment are one event. Linear in the program.
 */
#include "trace.h"

#include "fail.h"
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum track { TRACK_COMPUTE = 1, TRACK_D2H, TRACK_H2D };

struct trace {
    const struct atp_plan *plan;
    struct atp_simulated *times; /* one per instruction */
    uint32_t *arrows;            /* per tensor: the number of its copy's arrow */
    uint32_t arrow_count;
    uint32_t last_work; /* the last run or rerun */
    int64_t compute_ns; /* where the compute stream is */
    uint64_t live_bytes;
    int64_t live_ns; /* the moment of live_bytes, not yet written */
    FILE *out;
};

static void keep_times(void *ctx, const struct atp_simulated *event)
{
    struct atp_simulated *times = ctx;
    times[event->instruction] = *event;
}

/* The keys that all events with a time have; the caller adds its own and ends the object. */
static void begin_event(const struct trace *trace, const char *verb, const char *name,
                        const char *category, char phase, int64_t ns, enum track track)
{
    char full[600];
    (void)snprintf(full, sizeof(full), "%s%s", verb, name);
    (void)fputs(",\n{\"name\":", trace->out);
    json_text(trace->out, full);
    (void)fprintf(trace->out, ",\"cat\":\"%s\",\"ph\":\"%c\",\"ts\":", category, phase);
    json_us(trace->out, ns);
    (void)fprintf(trace->out, ",\"pid\":1,\"tid\":%u", (unsigned)track);
}

/* A slice; its arguments follow. */
static void begin_slice(const struct trace *trace, const char *verb, const char *name,
                        const char *category, const struct atp_simulated *time, enum track track)
{
    begin_event(trace, verb, name, category, 'X', time->start_ns, track);
    (void)fputs(",\"dur\":", trace->out);
    json_us(trace->out, time->end_ns - time->start_ns);
    (void)fprintf(trace->out, ",\"args\":{\"instruction\":%" PRIu32, time->instruction);
}

static void put_thread(const struct trace *trace, enum track track, const char *name)
{
    (void)fprintf(trace->out,
                  ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,"
                  "\"args\":{\"name\":\"%s\"}}",
                  (unsigned)track, name);
    (void)fprintf(trace->out,
                  ",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,"
                  "\"args\":{\"sort_index\":%u}}",
                  (unsigned)track, (unsigned)track);
}

static void put_live(const struct trace *trace)
{
    (void)fputs(",\n{\"name\":\"device memory\",\"ph\":\"C\",\"ts\":", trace->out);
    json_us(trace->out, trace->live_ns);
    (void)fprintf(trace->out,
                  ",\"pid\":1,\"args\":{\"resident_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64
                  "}}",
                  trace->plan->resident_bytes, trace->live_bytes);
}

/* Bytes come or go where the compute stream is. */
static void change_live(struct trace *trace, bool comes, uint64_t bytes)
{
    int64_t ns = trace->compute_ns;
    if (ns != trace->live_ns) {
        put_live(trace);
        trace->live_ns = ns;
    }
    trace->live_bytes = comes ? trace->live_bytes + bytes : trace->live_bytes - bytes;
}

static void put_work(struct trace *trace, const struct atp_simulated *time, bool is_rerun)
{
    const struct atp_step *step =
        &trace->plan->model.steps[trace->plan->program[time->instruction].id];
    begin_slice(trace, is_rerun ? "rerun " : "", step->name,
                is_rerun ? "rerun" : atp_phase_name(step->phase), time, TRACK_COMPUTE);
    (void)fprintf(trace->out, ",\"workspace_bytes\":%" PRIu64 "}}", step->workspace_bytes);
    if (step->workspace_bytes > 0) {
        change_live(trace, true, step->workspace_bytes);
        trace->compute_ns = time->end_ns;
        change_live(trace, false, step->workspace_bytes);
    }
}

static void put_copy(struct trace *trace, const struct atp_simulated *time, bool is_evict)
{
    const struct atp_instruction *in = &trace->plan->program[time->instruction];
    const struct atp_tensor *tensor = &trace->plan->model.tensors[in->id];
    enum track track = is_evict ? TRACK_D2H : TRACK_H2D;
    begin_slice(trace, is_evict ? "evict " : "restore ", tensor->name, "copy", time, track);
    (void)fprintf(trace->out, ",\"bytes\":%" PRIu64 ",\"offset\":%" PRIu64 "}}", tensor->bytes,
                  in->offset);
    trace->arrows[in->id] = ++trace->arrow_count;
}

/* The start of the copy is known, and that something comes behind the wait: else no arrow. */
static void put_wait(struct trace *trace, const struct atp_simulated *time,
                     const struct atp_simulated *copy, enum track track)
{
    uint32_t tensor = trace->plan->program[time->instruction].id;
    const char *name = trace->plan->model.tensors[tensor].name;
    bool is_stall = time->end_ns > time->start_ns;
    if (is_stall) {
        begin_slice(trace, "stall ", name, "stall", time, TRACK_COMPUTE);
        (void)fputs("}}", trace->out);
    }
    if (is_stall || time->instruction < trace->last_work) {
        begin_event(trace, "wait for ", name, "wait", 's', copy->start_ns, track);
        (void)fprintf(trace->out, ",\"id\":%" PRIu32 "}", trace->arrows[tensor]);
        begin_event(trace, "wait for ", name, "wait", 'f', time->start_ns, TRACK_COMPUTE);
        (void)fprintf(trace->out, ",\"id\":%" PRIu32 "%s}", trace->arrows[tensor],
                      is_stall ? ",\"bp\":\"e\"" : "");
    }
}

/* `copies` has the last copy of each tensor. */
static void put_instruction(struct trace *trace, uint32_t index, uint32_t *copies)
{
    const struct atp_instruction *in = &trace->plan->program[index];
    const struct atp_simulated *time = &trace->times[index];
    bool is_work = in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN;
    bool is_copy = in->op == ATP_OP_EVICT || in->op == ATP_OP_RESTORE;
    uint64_t bytes = is_work ? 0 : trace->plan->model.tensors[in->id].bytes;
    if (!is_work && !is_copy) {
        trace->compute_ns = time->end_ns;
    }
    switch (in->op) {
    case ATP_OP_ALLOC:
        change_live(trace, true, bytes);
        break;
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        put_work(trace, time, in->op == ATP_OP_RERUN);
        trace->compute_ns = time->end_ns;
        break;
    case ATP_OP_RESTORE:
        /* The bytes are its own from here, not from where the engine begins. */
        change_live(trace, true, bytes);
        copies[in->id] = index;
        put_copy(trace, time, false);
        break;
    case ATP_OP_EVICT:
        copies[in->id] = index;
        put_copy(trace, time, true);
        break;
    case ATP_OP_EVICTED:
        put_wait(trace, time, &trace->times[copies[in->id]], TRACK_D2H);
        change_live(trace, false, bytes);
        break;
    case ATP_OP_RESTORED:
        put_wait(trace, time, &trace->times[copies[in->id]], TRACK_H2D);
        break;
    case ATP_OP_FREE:
        change_live(trace, false, bytes);
        break;
    }
}

static void put_head(const struct trace *trace, int64_t iteration_ns)
{
    const struct atp_plan *plan = trace->plan;
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"model\":", trace->out);
    json_text(trace->out, plan->model.name);
    (void)fprintf(trace->out,
                  ",\"batch_size\":\"%" PRIu64 "\",\"budget_bytes\":\"%" PRIu64
                  "\",\"iteration_us\":\"",
                  plan->model.batch_size, plan->budget_bytes);
    json_us(trace->out, iteration_ns);
    (void)fputs("\"},\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,"
                "\"args\":{\"name\":",
                trace->out);
    json_text(trace->out, plan->model.name);
    (void)fputs("}}", trace->out);
    put_thread(trace, TRACK_COMPUTE, "compute");
    put_thread(trace, TRACK_D2H, "D2H: device to host");
    put_thread(trace, TRACK_H2D, "H2D: host to device");
}

enum atp_status trace_write(const struct atp_plan *plan, const struct atp_clock *clock,
                            struct region *region, FILE *out, struct atp_error *err)
{
    struct atp_predicted found;
    struct trace trace = {.plan = plan, .out = out};
    uint32_t *copies = REGION_NEW(region, uint32_t, plan->model.tensor_count);
    trace.arrows = REGION_NEW(region, uint32_t, plan->model.tensor_count);
    trace.times = REGION_NEW(region, struct atp_simulated, plan->instruction_count);
    ATP_TRY(atp_simulate(plan, clock, keep_times, trace.times, &found, err));
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        if (plan->program[i].op == ATP_OP_RUN || plan->program[i].op == ATP_OP_RERUN) {
            trace.last_work = i;
        }
    }
    put_head(&trace, found.iteration_ns);
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        put_instruction(&trace, i, copies);
    }
    put_live(&trace);
    (void)fputs("\n]}\n", out);
    if (fflush(out) != 0 || ferror(out)) {
        return atp_fail(err, ATP_ERR_IO, "cannot write the trace: %s", strerror(errno));
    }
    return ATP_OK;
}
