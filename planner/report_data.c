/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One pass of the simulator, whose observer sorts what it is told by engine; then one pass over the
 * accesses of each tensor for what the table says. Linear in program and accesses.
 */
#include "report_data.h"

#include "fail.h"

struct collector {
    struct report *report;
    uint32_t *open;          /* per tensor: its place in the arena now; ATP_NONE: none */
    uint64_t live_bytes;     /* resident bytes and tensors */
    uint64_t keep_all_bytes; /* at the last step that ran */
};

static void add_mark(struct report_marks *marks, enum report_kind kind, uint32_t id,
                     const struct atp_simulated *event)
{
    marks->items[marks->count++] = (struct report_mark){
        .kind = kind, .id = id, .start_ns = event->start_ns, .end_ns = event->end_ns};
}

static void add_compute(struct collector *collector, enum report_kind kind, uint32_t id,
                        const struct atp_simulated *event, uint64_t workspace_bytes)
{
    struct report_marks *marks = &collector->report->compute;
    add_mark(marks, kind, id, event);
    marks->items[marks->count - 1].bytes = collector->live_bytes + workspace_bytes;
    marks->items[marks->count - 1].keep_all_bytes = collector->keep_all_bytes;
}

static void open_place(struct collector *collector, const struct atp_instruction *in,
                       int64_t start_ns)
{
    struct report *report = collector->report;
    uint64_t bytes = report->plan->model.tensors[in->id].bytes;
    collector->open[in->id] = report->place_count;
    report->places[report->place_count++] = (struct report_place){
        .id = in->id, .start_ns = start_ns, .offset = in->offset, .bytes = bytes};
    collector->live_bytes += bytes;
}

static void close_place(struct collector *collector, uint32_t tensor, int64_t end_ns)
{
    struct report *report = collector->report;
    report->places[collector->open[tensor]].end_ns = end_ns;
    collector->live_bytes -= report->plan->model.tensors[tensor].bytes;
}

static void add_level(struct collector *collector, const struct atp_simulated *event,
                      uint64_t workspace_bytes)
{
    struct report *report = collector->report;
    report->levels[report->level_count++] = (struct report_level){
        .start_ns = event->start_ns,
        .end_ns = event->end_ns,
        .bytes = collector->live_bytes + workspace_bytes,
        .keep_all_bytes = collector->keep_all_bytes,
    };
}

static void collect_work(struct collector *collector, const struct atp_instruction *in,
                         const struct atp_simulated *event)
{
    static const enum report_kind kinds[] = {[ATP_PHASE_FORWARD] = REPORT_FORWARD,
                                             [ATP_PHASE_BACKWARD] = REPORT_BACKWARD,
                                             [ATP_PHASE_UPDATE] = REPORT_UPDATE};
    struct report *report = collector->report;
    const struct atp_step *step = &report->plan->model.steps[in->id];
    bool is_rerun = in->op == ATP_OP_RERUN;
    if (!is_rerun) {
        collector->keep_all_bytes =
            report->plan->resident_bytes + report->problem.live_bytes[in->id];
    }
    if (step->workspace_bytes > 0) {
        report->places[report->place_count++] =
            (struct report_place){.is_workspace = true,
                                  .id = in->id,
                                  .start_ns = event->start_ns,
                                  .end_ns = event->end_ns,
                                  .offset = in->offset,
                                  .bytes = step->workspace_bytes};
    }
    add_compute(collector, is_rerun ? REPORT_RERUN : kinds[step->phase], in->id, event,
                step->workspace_bytes);
    add_level(collector, event, step->workspace_bytes);
}

static void collect_wait(struct collector *collector, const struct atp_instruction *in,
                         const struct atp_simulated *event)
{
    struct report *report = collector->report;
    if (event->end_ns > event->start_ns) {
        add_compute(collector, REPORT_STALL, in->id, event, 0);
        report->tensors[in->id].stall_ns += event->end_ns - event->start_ns;
    }
    add_level(collector, event, 0);
}

static void collect(void *ctx, const struct atp_simulated *event)
{
    struct collector *collector = ctx;
    struct report *report = collector->report;
    const struct atp_instruction *in = &report->plan->program[event->instruction];
    switch (in->op) {
    case ATP_OP_ALLOC:
        open_place(collector, in, event->start_ns);
        add_level(collector, event, 0);
        break;
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        collect_work(collector, in, event);
        break;
    case ATP_OP_EVICT:
        add_mark(&report->out, REPORT_OUT, in->id, event);
        break;
    case ATP_OP_RESTORE: {
        /* The copy may wait for its engine; the bytes are taken at once. */
        int64_t now_ns =
            report->level_count > 0 ? report->levels[report->level_count - 1].end_ns : 0;
        open_place(collector, in, now_ns);
        add_mark(&report->in, REPORT_IN, in->id, event);
        break;
    }
    case ATP_OP_EVICTED:
        collect_wait(collector, in, event);
        close_place(collector, in->id, event->end_ns);
        break;
    case ATP_OP_RESTORED:
        collect_wait(collector, in, event);
        break;
    case ATP_OP_FREE:
        close_place(collector, in->id, event->end_ns);
        add_level(collector, event, 0);
        break;
    }
}

/* Steps before each step at which keeping everything exceeds what the arena may hold. */
static uint32_t *count_short_steps(const struct report *report, struct region *region)
{
    const struct atp_plan *plan = report->plan;
    uint64_t capacity = plan->budget_bytes - plan->resident_bytes;
    uint32_t *counts = REGION_NEW(region, uint32_t, (size_t)plan->model.step_count + 1);
    for (uint32_t s = 0; s < plan->model.step_count; s++) {
        counts[s + 1] = counts[s] + (report->problem.live_bytes[s] > capacity);
    }
    return counts;
}

static void describe_gaps(struct report *report, uint32_t tensor, const int64_t *start_ns,
                          const uint32_t *short_steps)
{
    const struct problem *problem = &report->problem;
    struct report_tensor *out = &report->tensors[tensor];
    uint32_t end_access = problem->first_access[tensor + 1];
    bool is_used = end_access > problem->first_access[tensor];
    out->rerun_ns = is_used && problem->recomputable[end_access - 1] ? 0 : -1;
    for (uint32_t a = problem->first_access[tensor]; a < end_access; a++) {
        const struct access *access = &problem->accesses[a];
        if (!access->has_next) {
            continue;
        }
        uint32_t first = access->step == ATP_NONE ? 0 : access->step + 1;
        uint32_t end = problem->accesses[a + 1].step;
        if (first >= end) {
            continue;
        }
        out->is_short = out->is_short || short_steps[end] > short_steps[first];
        if (start_ns[end] - start_ns[first] > out->gap_ns || out->end_step == 0) {
            out->gap_ns = start_ns[end] - start_ns[first];
            out->first_step = first;
            out->end_step = end;
            out->rerun_ns = problem->recomputable[a] ? 0 : -1;
        }
    }
}

static void describe_tensors(struct report *report, struct region *region)
{
    const struct atp_model *model = &report->plan->model;
    const struct atp_clock *clock = &report->profile->clock;
    int64_t *start_ns = REGION_NEW(region, int64_t, (size_t)model->step_count + 1);
    const uint32_t *short_steps = count_short_steps(report, region);
    for (uint32_t s = 0; s < model->step_count; s++) {
        start_ns[s + 1] = start_ns[s] + clock->step_ns[s];
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        uint64_t bytes = model->tensors[t].bytes;
        int64_t out_ns = atp_copy_ns(bytes, clock->d2h_bytes_per_second, clock->copy_latency_ns);
        int64_t in_ns = atp_copy_ns(bytes, clock->h2d_bytes_per_second, clock->copy_latency_ns);
        report->tensors[t].copy_ns = out_ns > INT64_MAX - in_ns ? INT64_MAX : out_ns + in_ns;
        describe_gaps(report, t, start_ns, short_steps);
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        for (uint32_t i = 0; step->phase == ATP_PHASE_FORWARD && i < step->write_count; i++) {
            struct report_tensor *out = &report->tensors[step->writes[i]];
            out->rerun_ns += out->rerun_ns >= 0 ? clock->step_ns[s] : 0;
        }
    }
}

enum atp_status report_build(const struct atp_plan *plan, const struct profile *profile,
                             struct region *region, struct report *out_report,
                             struct atp_error *err)
{
    size_t room = (size_t)plan->instruction_count + 1;
    struct atp_predicted predicted;
    *out_report = (struct report){
        .plan = plan,
        .profile = profile,
        .compute.items = REGION_NEW(region, struct report_mark, room),
        .out.items = REGION_NEW(region, struct report_mark, room),
        .in.items = REGION_NEW(region, struct report_mark, room),
        .places = REGION_NEW(region, struct report_place, room),
        .levels = REGION_NEW(region, struct report_level, room),
        .tensors = REGION_NEW(region, struct report_tensor, (size_t)plan->model.tensor_count + 1),
    };
    ATP_TRY(problem_build(profile, plan->budget_bytes, plan->alignment_bytes, region,
                          &out_report->problem, err));
    out_report->keep_all_peak_bytes = plan->resident_bytes + out_report->problem.peak_bytes;
    struct collector collector = {
        .report = out_report,
        .open = REGION_NEW(region, uint32_t, (size_t)plan->model.tensor_count + 1),
        .live_bytes = plan->resident_bytes,
        .keep_all_bytes = plan->resident_bytes + out_report->problem.input_bytes,
    };
    ATP_TRY(atp_simulate(plan, &profile->clock, collect, &collector, &predicted, err));
    describe_tensors(out_report, region);
    return ATP_OK;
}
