/* SPDX-License-Identifier: Apache-2.0
 *
 * The third interpreter of a plan: its program on a backend. A walk with one cursor; an instruction
 * costs a few array accesses and at most three backend calls. Nothing is searched or allocated.
 *
 * Order, which is what the checker proved the plan for: a copy's stream waits for an event recorded
 * on compute where the copy is issued, so it starts after all earlier compute, and so after
 * whatever owned the bytes before; compute waits for an event recorded behind the copy where the
 * program says evicted or restored. Every change of ownership is thus a point of the compute
 * stream.
 *
 * Instructions that start work (alloc, evict, restore, free) run as soon as the step before them
 * has been queued; those that wait, rerun or run only when the next step begins.
 */
#include <string.h>

#include "fail.h"
#include "replay_state.h"

void replay_reset(struct atp_replay *r)
{
    memset(r->tensors, 0, r->plan->model.tensor_count * sizeof(*r->tensors));
    for (uint32_t e = 0; e < r->event_count; e++) {
        r->idle_events[e] = e;
    }
    r->idle_event_count = r->event_count;
}

/* Ends the iteration. For every way out that is no success. */
static enum atp_status lose(struct atp_replay *r, enum atp_status status)
{
    r->state = REPLAY_LOST;
    return status;
}

static const char *state_text(enum replay_state state)
{
    switch (state) {
    case REPLAY_OUTSIDE:
        return "no iteration has begun";
    case REPLAY_BETWEEN:
        return "between two steps of an iteration";
    case REPLAY_IN_STEP:
        return "a step has begun and not ended";
    case REPLAY_CALLBACK:
        return "inside a step function";
    case REPLAY_LOST:
        return "the iteration was lost by an earlier failure";
    }
    return "";
}

static enum atp_status refuse(struct atp_replay *r, const char *call, struct atp_error *err)
{
    const struct atp_model *model = &r->plan->model;
    enum atp_status status;
    if (r->step < model->step_count) {
        status = atp_fail(err, ATP_ERR_STATE, "%s: %s; the next step is steps[%u] \"%s\" %s", call,
                          state_text(r->state), r->step, model->steps[r->step].name,
                          atp_phase_name(model->steps[r->step].phase));
    } else {
        status =
            atp_fail(err, ATP_ERR_STATE, "%s: %s; all steps have run", call, state_text(r->state));
    }
    return lose(r, status);
}

static enum atp_status poison(struct atp_replay *r, uint8_t *place, uint64_t bytes,
                              struct atp_error *err)
{
    if (!r->options.poison || bytes == 0) {
        return ATP_OK;
    }
    return r->ops->fill(r->backend, r->compute, place, REPLAY_POISON, bytes, err);
}

/* For the report: the time when the stream comes to here. */
static enum atp_status mark(struct atp_replay *r, void *event, void *stream, struct atp_error *err)
{
    return r->ops->event_record(r->backend, event, stream, err);
}

/* The same for the begin and the end of a run or rerun. */
static enum atp_status mark_work(struct atp_replay *r, bool is_start, struct atp_error *err)
{
    if (!r->options.report) {
        return ATP_OK;
    }
    const struct report_work *work = &r->report.works[r->report.next_work];
    r->report.next_work += !is_start;
    return mark(r, is_start ? work->start : work->end, r->compute, err);
}

/* Queues a copy behind all compute so far, and an event behind the copy. */
static enum atp_status start_copy(struct atp_replay *r, uint32_t id, enum atp_copy direction,
                                  struct atp_error *err)
{
    struct replay_tensor *tensor = &r->tensors[id];
    uint64_t bytes = r->plan->model.tensors[id].bytes;
    bool is_out = direction == ATP_COPY_TO_HOST;
    void *stream = is_out ? r->to_host : r->to_device;
    ATP_TRY(r->ops->event_record(r->backend, r->issued, r->compute, err));
    ATP_TRY(r->ops->stream_wait(r->backend, stream, r->issued, err));
    if (r->options.report) {
        tensor->copy = r->report.next_copy++;
        ATP_TRY(mark(r, r->report.copies[tensor->copy].start, stream, err));
    }
    if (bytes > 0) {
        ATP_TRY(r->ops->copy(r->backend, stream, is_out ? tensor->host_place : tensor->place,
                             is_out ? tensor->place : tensor->host_place, bytes, direction, err));
    }
    if (r->options.report) {
        ATP_TRY(mark(r, r->report.copies[tensor->copy].end, stream, err));
    }
    tensor->event = r->idle_events[--r->idle_event_count];
    return r->ops->event_record(r->backend, r->events[tensor->event], stream, err);
}

static enum atp_status finish_copy(struct atp_replay *r, uint32_t id, struct atp_error *err)
{
    uint32_t event = r->tensors[id].event;
    r->idle_events[r->idle_event_count++] = event;
    if (!r->options.report) {
        return r->ops->stream_wait(r->backend, r->compute, r->events[event], err);
    }
    uint32_t copy = r->tensors[id].copy;
    r->report.waits[copy].instruction = r->instruction;
    ATP_TRY(mark(r, r->report.copies[copy].wait_start, r->compute, err));
    ATP_TRY(r->ops->stream_wait(r->backend, r->compute, r->events[event], err));
    return mark(r, r->report.copies[copy].wait_end, r->compute, err);
}

static enum atp_status release(struct atp_replay *r, uint32_t id, struct atp_error *err)
{
    r->tensors[id].data = NULL;
    return poison(r, r->tensors[id].place, r->plan->model.tensors[id].bytes, err);
}

static struct atp_step_call make_call(struct atp_replay *r, const struct atp_instruction *at)
{
    uint64_t workspace_bytes = r->plan->model.steps[at->id].workspace_bytes;
    return (struct atp_step_call){.replay = r,
                                  .step = at->id,
                                  .is_rerun = at->op == ATP_OP_RERUN,
                                  .iteration = r->iteration,
                                  .stream = r->compute,
                                  .workspace = workspace_bytes > 0 ? r->arena + at->offset : NULL,
                                  .is_capture = r->is_capture};
}

static enum atp_status call_back(struct atp_replay *r, atp_step_fn fn,
                                 const struct atp_step_call *call, struct atp_error *err)
{
    struct atp_error inner = {0};
    enum replay_state before = r->state;
    r->state = REPLAY_CALLBACK;
    enum atp_status status = fn(r->options.step_ctx, call, &inner);
    if (r->state != REPLAY_CALLBACK) {
        return lose(r, atp_fail(err, ATP_ERR_STATE,
                                "a step function called the replay that was calling it"));
    }
    r->state = before;
    if (status == ATP_OK) {
        return ATP_OK;
    }
    const char *why = inner.text[0] != '\0' ? inner.text : atp_status_name(status);
    if (call->step == ATP_NONE) {
        return atp_fail(err, ATP_ERR_CALLBACK, "inputs: %s", why);
    }
    const struct atp_step *step = &r->plan->model.steps[call->step];
    return atp_fail(err, ATP_ERR_CALLBACK, "steps[%u] \"%s\" %s%s: %s", call->step, step->name,
                    atp_phase_name(step->phase), call->is_rerun ? ", rerun" : "", why);
}

static enum atp_status rerun(struct atp_replay *r, const struct atp_instruction *at,
                             struct atp_error *err)
{
    struct atp_step_call call = make_call(r, at);
    ATP_TRY(mark_work(r, true, err));
    ATP_TRY(call_back(r, r->options.step, &call, err));
    ATP_TRY(mark_work(r, false, err));
    return poison(r, r->arena + at->offset, r->plan->model.steps[at->id].workspace_bytes, err);
}

static enum atp_status execute(struct atp_replay *r, const struct atp_instruction *at,
                               struct atp_error *err)
{
    if (at->op == ATP_OP_RERUN) {
        return rerun(r, at, err);
    }
    struct replay_tensor *tensor = &r->tensors[at->id];
    switch (at->op) {
    case ATP_OP_ALLOC:
        tensor->place = r->arena + at->offset;
        tensor->data = tensor->place;
        return ATP_OK;
    case ATP_OP_EVICT:
        tensor->host_place = r->host_arena == NULL ? NULL : r->host_arena + at->offset;
        return start_copy(r, at->id, ATP_COPY_TO_HOST, err);
    case ATP_OP_EVICTED:
        ATP_TRY(finish_copy(r, at->id, err));
        return release(r, at->id, err);
    case ATP_OP_RESTORE:
        tensor->place = r->arena + at->offset;
        return start_copy(r, at->id, ATP_COPY_TO_DEVICE, err);
    case ATP_OP_RESTORED:
        ATP_TRY(finish_copy(r, at->id, err));
        tensor->data = tensor->place;
        return ATP_OK;
    case ATP_OP_FREE:
        return release(r, at->id, err);
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        break;
    }
    return atp_fail(err, ATP_ERR_INTERNAL, "replay: a run outside of begin_step");
}

/* Executes from the cursor on, while `mask` has the instruction's bit. */
static enum atp_status advance(struct atp_replay *r, unsigned mask, struct atp_error *err)
{
    const struct atp_plan *plan = r->plan;
    while (r->instruction < plan->instruction_count) {
        const struct atp_instruction *at = &plan->program[r->instruction];
        if ((mask & (1u << at->op)) == 0) {
            return ATP_OK;
        }
        enum atp_status status = execute(r, at, err);
        if (status != ATP_OK) {
            if (err != NULL) {
                err->instruction = r->instruction;
            }
            return status;
        }
        r->instruction++;
    }
    return ATP_OK;
}

#define MASK_ALLOC (1u << ATP_OP_ALLOC)
#define MASK_START (MASK_ALLOC | 1u << ATP_OP_EVICT | 1u << ATP_OP_RESTORE | 1u << ATP_OP_FREE)
#define MASK_UP_TO_RUN                                                                             \
    (MASK_START | 1u << ATP_OP_EVICTED | 1u << ATP_OP_RESTORED | 1u << ATP_OP_RERUN)

/* Copies of a lost iteration must not meet the bytes of the next. */
static enum atp_status recover(struct atp_replay *r, struct atp_error *err)
{
    if (r->to_host != NULL) {
        ATP_TRY(r->ops->stream_sync(r->backend, r->to_host, err));
    }
    if (r->to_device != NULL) {
        ATP_TRY(r->ops->stream_sync(r->backend, r->to_device, err));
    }
    replay_reset(r);
    return ATP_OK;
}

static enum atp_status begin(struct atp_replay *r, struct atp_error *err)
{
    if (r->state == REPLAY_LOST) {
        ATP_TRY(recover(r, err));
    }
    if (r->options.record) {
        ATP_TRY(record_read(&r->record, err));
    }
    if (r->options.report) {
        ATP_TRY(report_begin_iteration(&r->report, err));
    }
    r->instruction = 0;
    r->step = 0;
    r->state = REPLAY_BETWEEN;
    return advance(r, MASK_ALLOC, err);
}

enum atp_status atp_replay_begin_iteration(struct atp_replay *r, struct atp_error *err)
{
    if (r->state != REPLAY_OUTSIDE && r->state != REPLAY_LOST) {
        return refuse(r, "begin_iteration", err);
    }
    enum atp_status status = begin(r, err);
    return status == ATP_OK ? ATP_OK : lose(r, status);
}

static enum atp_status begin_step(struct atp_replay *r, struct atp_step_call *out_call,
                                  struct atp_error *err)
{
    ATP_TRY(advance(r, MASK_UP_TO_RUN, err));
    *out_call = make_call(r, &r->plan->program[r->instruction]);
    r->instruction++;
    r->state = REPLAY_IN_STEP;
    ATP_TRY(mark_work(r, true, err));
    return r->options.record ? record_begin_step(&r->record, r->step, err) : ATP_OK;
}

enum atp_status atp_replay_begin_step(struct atp_replay *r, uint32_t step,
                                      struct atp_step_call *out_call, struct atp_error *err)
{
    struct atp_step_call call = {0};
    enum atp_status status;
    if (r->state != REPLAY_BETWEEN || step != r->step || step >= r->plan->model.step_count) {
        status = refuse(r, "begin_step", err);
    } else {
        status = begin_step(r, &call, err);
    }
    if (out_call != NULL) {
        *out_call = call;
    }
    return status == ATP_OK ? ATP_OK : lose(r, status);
}

static enum atp_status end_step(struct atp_replay *r, struct atp_error *err)
{
    const struct atp_instruction *run = &r->plan->program[r->instruction - 1];
    if (r->options.record) {
        ATP_TRY(record_end_step(&r->record, r->step, err));
    }
    ATP_TRY(mark_work(r, false, err));
    ATP_TRY(poison(r, r->arena + run->offset, r->plan->model.steps[run->id].workspace_bytes, err));
    r->step++;
    r->state = REPLAY_BETWEEN;
    return advance(r, MASK_START, err);
}

enum atp_status atp_replay_end_step(struct atp_replay *r, uint32_t step, struct atp_error *err)
{
    if (r->state != REPLAY_IN_STEP || step != r->step) {
        return refuse(r, "end_step", err);
    }
    enum atp_status status = end_step(r, err);
    return status == ATP_OK ? ATP_OK : lose(r, status);
}

enum atp_status atp_replay_end_iteration(struct atp_replay *r, struct atp_error *err)
{
    if (r->state != REPLAY_BETWEEN || r->step != r->plan->model.step_count) {
        return refuse(r, "end_iteration", err);
    }
    enum atp_status status = advance(r, MASK_UP_TO_RUN, err);
    if (status == ATP_OK && r->options.report) {
        status = report_end_iteration(&r->report, r->iteration, err);
    }
    if (status != ATP_OK) {
        return lose(r, status);
    }
    r->record.is_pending = r->options.record;
    r->iteration++;
    r->state = REPLAY_OUTSIDE;
    return ATP_OK;
}

static enum atp_status run_step(struct atp_replay *r, uint32_t step, struct atp_error *err)
{
    struct atp_step_call call;
    ATP_TRY(atp_replay_begin_step(r, step, &call, err));
    enum atp_status status = call_back(r, r->options.step, &call, err);
    return status == ATP_OK ? atp_replay_end_step(r, step, err) : lose(r, status);
}

/* The rest of an iteration whose inputs are there, as one graph. */
static enum atp_status launch(struct atp_replay *r, struct atp_error *err)
{
    enum atp_status status = r->ops->graph_launch(r->backend, r->graph, r->compute, err);
    if (status != ATP_OK) {
        return lose(r, status);
    }
    for (uint32_t i = 0; i < r->instruction; i++) { /* so far only allocs */
        r->tensors[r->plan->program[i].id].data = NULL;
    }
    r->iteration++;
    r->state = REPLAY_OUTSIDE;
    return ATP_OK;
}

enum atp_status atp_replay_run_iteration(struct atp_replay *r, atp_step_fn inputs,
                                         struct atp_error *err)
{
    if (r->options.step == NULL) {
        return atp_fail(err, ATP_ERR_STATE, "run_iteration: needs options.step");
    }
    ATP_TRY(atp_replay_begin_iteration(r, err));
    if (inputs != NULL) { /* never part of a graph: they change */
        struct atp_step_call call = {
            .replay = r, .step = ATP_NONE, .iteration = r->iteration, .stream = r->compute};
        enum atp_status status = call_back(r, inputs, &call, err);
        if (status != ATP_OK) {
            return lose(r, status);
        }
    }
    if (r->graph != NULL) {
        return launch(r, err);
    }
    for (uint32_t s = 0; s < r->plan->model.step_count; s++) {
        ATP_TRY(run_step(r, s, err));
    }
    return atp_replay_end_iteration(r, err);
}

void replay_drop_graph(struct atp_replay *r)
{
    if (r->graph != NULL) {
        r->ops->graph_destroy(r->backend, r->graph);
        r->graph = NULL;
    }
}

/* Between capture_begin and capture_end. Every copy of a program is waited for by compute, so that
 * the copy streams, which join the capture with the first copy of theirs, have left it by its end.
 */
static enum atp_status capture_steps(struct atp_replay *r, struct atp_error *err)
{
    for (uint32_t s = 0; s < r->plan->model.step_count; s++) {
        ATP_TRY(run_step(r, s, err));
    }
    return advance(r, MASK_UP_TO_RUN, err);
}

static enum atp_status capture(struct atp_replay *r, struct atp_error *err)
{
    ATP_TRY(begin(r, err));
    ATP_TRY(r->ops->capture_begin(r->backend, r->compute, err));
    r->is_capture = true;
    enum atp_status status = capture_steps(r, err);
    r->is_capture = false;
    enum atp_status ended =
        r->ops->capture_end(r->backend, r->compute, &r->graph, status == ATP_OK ? err : NULL);
    if (status != ATP_OK) {
        replay_drop_graph(r);
    }
    return status != ATP_OK ? status : ended;
}

enum atp_status atp_replay_capture(struct atp_replay *r, struct atp_error *err)
{
    if (r->options.step == NULL) {
        return atp_fail(err, ATP_ERR_STATE, "capture: needs options.step");
    }
    if (r->options.record || r->options.report) {
        return atp_fail(err, ATP_ERR_STATE,
                        "capture: steps of a graph have no times of their own, but the replay was "
                        "opened with options.%s",
                        r->options.record ? "record" : "report");
    }
    if (r->state != REPLAY_OUTSIDE && r->state != REPLAY_LOST) {
        return refuse(r, "capture", err);
    }
    replay_drop_graph(r);
    enum atp_status status = capture(r, err);
    if (status != ATP_OK) {
        return lose(r, status);
    }
    r->state = REPLAY_OUTSIDE;
    return ATP_OK;
}

void *atp_replay_tensor_data(const struct atp_replay *r, uint32_t tensor)
{
    return tensor < r->plan->model.tensor_count ? r->tensors[tensor].data : NULL;
}

const struct atp_plan *atp_replay_plan(const struct atp_replay *r)
{
    return r->plan;
}

enum atp_status atp_replay_report(struct atp_replay *r, struct atp_iteration_report *out,
                                  struct atp_error *err)
{
    *out = (struct atp_iteration_report){0};
    if (!r->options.report) {
        return atp_fail(err, ATP_ERR_STATE, "report: the replay was opened without options.report");
    }
    if (r->state != REPLAY_OUTSIDE || !r->report.is_complete) {
        return atp_fail(err, ATP_ERR_STATE, "report: %s",
                        r->state == REPLAY_OUTSIDE ? "no iteration is complete"
                                                   : state_text(r->state));
    }
    ATP_TRY(report_read(&r->report, out, err));
    out->predicted = r->plan->predicted;
    for (uint32_t i = 0; i < r->plan->instruction_count; i++) {
        const struct atp_instruction *at = &r->plan->program[i];
        if (at->op == ATP_OP_EVICT) {
            out->evicted_bytes += r->plan->model.tensors[at->id].bytes;
        } else if (at->op == ATP_OP_RESTORE) {
            out->restored_bytes += r->plan->model.tensors[at->id].bytes;
        }
    }
    return ATP_OK;
}
