/* SPDX-License-Identifier: Apache-2.0
 *
 * The judge. It interprets the program abstractly: instead of bytes it tracks, per tensor, where
 * its device bytes and its host copy lie, which *version* of the tensor each holds, and whether a
 * copy is in flight. An instruction is legal when it is safe for every duration of every copy:
 * a copy in flight is taken to be reading its source and writing its destination from `evict` or
 * `restore` up to the wait for it.
 *
 * Versions make staleness visible: a host copy stays good when its tensor is written again, but it
 * keeps the number of its version, and the step that reads a restored old version is refused.
 *
 * Cost: one scan of the live ranges per allocation, restore, eviction and workspace, so
 * O(instructions x live tensors); all else is linear in the program and in the uses of its steps.
 */
#include <atp/plan.h>

#include "checked.h"
#include "fail.h"
#include "ranges.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contents of device bytes that no step and no copy has written since their `alloc`. */
#define UNDEFINED UINT32_MAX

enum flight { FLIGHT_NONE, FLIGHT_EVICT, FLIGHT_RESTORE };

struct tensor_state {
    uint32_t device_range; /* in checker.device; ATP_NONE: not on the device */
    uint32_t version;      /* of the device bytes, or UNDEFINED */
    uint32_t host_range;   /* in checker.host; ATP_NONE: no good host copy */
    uint32_t host_version;
    enum flight flight;
    bool is_input;
    bool was_evicted, was_remade; /* what the decision follows from */
};

struct checker {
    const struct atp_plan *plan;
    struct atp_error *err;
    uint32_t at;        /* the instruction being checked */
    uint32_t next_step; /* the next to run */
    uint32_t input_count;
    struct tensor_state *tensors;
    struct ranges device, host;
    uint64_t live_bytes, peak_bytes;
    /* The version that each use of a step reads or leaves: of step s from uses[first_use[s]] on,
     * its reads, then its writes. */
    size_t *first_use;
    uint32_t *uses;
};

/* "program[12] free x0: ", then what is wrong. */
static enum atp_status refuse_text(const struct checker *checker, const char *what)
{
    const struct atp_model *model = &checker->plan->model;
    const struct atp_instruction *in = &checker->plan->program[checker->at];
    const char *name = "", *phase = "";
    if (in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN) {
        if (in->id < model->step_count) {
            name = model->steps[in->id].name;
            phase = in->op == ATP_OP_RUN ? atp_phase_name(model->steps[in->id].phase) : "";
        }
    } else if (in->id < model->tensor_count) {
        name = model->tensors[in->id].name;
    }
    enum atp_status status =
        atp_fail(checker->err, ATP_ERR_INVALID, "program[%" PRIu32 "] %s%s%s%s%s: %s", checker->at,
                 atp_op_name(in->op), *name ? " " : "", name, *phase ? " " : "", phase, what);
    if (checker->err != NULL) {
        checker->err->instruction = checker->at;
    }
    return status;
}

__attribute__((format(printf, 2, 3))) static enum atp_status refuse(const struct checker *checker,
                                                                    const char *format, ...)
{
    char what[280];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return refuse_text(checker, what);
}

static const char *tensor_name(const struct checker *checker, uint32_t tensor)
{
    return checker->plan->model.tensors[tensor].name;
}

static bool is_on_device(const struct tensor_state *state)
{
    return state->device_range != ATP_NONE;
}

/* The instruction's offset as the place of `bytes` bytes in an arena. */
static enum atp_status check_range(const struct checker *checker, uint64_t bytes, const char *arena,
                                   uint64_t arena_bytes)
{
    uint64_t offset = checker->plan->program[checker->at].offset, end;
    if ((offset & (checker->plan->alignment_bytes - 1)) != 0) {
        return refuse(checker, "offset %" PRIu64 " is no multiple of the alignment of %" PRIu64,
                      offset, checker->plan->alignment_bytes);
    }
    if (!checked_add(offset, bytes, &end) || end > arena_bytes) {
        return refuse(checker,
                      "%" PRIu64 " bytes at offset %" PRIu64 " leave the %s of %" PRIu64 " bytes",
                      bytes, offset, arena, arena_bytes);
    }
    return ATP_OK;
}

/* G1: device bytes for a tensor or a workspace, that nobody else owns. */
static enum atp_status check_device_range(const struct checker *checker, uint64_t bytes)
{
    uint64_t offset = checker->plan->program[checker->at].offset;
    ATP_TRY(check_range(checker, bytes, "arena", checker->plan->arena_bytes));
    uint32_t found = ranges_find(&checker->device, 0, offset, offset + bytes);
    if (found != ATP_NONE) {
        const struct range *range = &checker->device.items[found];
        return refuse(checker,
                      "bytes [%" PRIu64 ", %" PRIu64 ") overlap \"%s\", which is live at [%" PRIu64
                      ", %" PRIu64 ")",
                      offset, offset + bytes, tensor_name(checker, range->owner), range->begin,
                      range->end);
    }
    return ATP_OK;
}

static void grow_peak(struct checker *checker, uint64_t extra_bytes)
{
    uint64_t bytes = checker->live_bytes + extra_bytes; /* below 2^63: see atp_model_check */
    if (bytes > checker->peak_bytes) {
        checker->peak_bytes = bytes;
    }
}

static void give_device_bytes(struct checker *checker, uint32_t tensor)
{
    uint64_t offset = checker->plan->program[checker->at].offset;
    uint64_t bytes = checker->plan->model.tensors[tensor].bytes;
    checker->tensors[tensor].device_range = checker->device.count;
    checker->device.items[checker->device.count++] = (struct range){offset, offset + bytes, tensor};
    checker->live_bytes += bytes;
    grow_peak(checker, 0);
}

static void take_device_bytes(struct checker *checker, uint32_t tensor)
{
    uint32_t gone = checker->tensors[tensor].device_range;
    struct range moved = checker->device.items[--checker->device.count];
    checker->device.items[gone] = moved;
    checker->tensors[moved.owner].device_range = gone;
    checker->tensors[tensor].device_range = ATP_NONE;
    checker->live_bytes -= checker->plan->model.tensors[tensor].bytes;
}

static void forget_host_copy(struct checker *checker, uint32_t tensor)
{
    uint32_t gone = checker->tensors[tensor].host_range;
    struct range moved = checker->host.items[--checker->host.count];
    checker->host.items[gone] = moved;
    checker->tensors[moved.owner].host_range = gone;
    checker->tensors[tensor].host_range = ATP_NONE;
}

static enum atp_status check_alloc(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    if (is_on_device(state)) {
        return refuse(checker, "it is on the device already");
    }
    ATP_TRY(check_device_range(checker, checker->plan->model.tensors[tensor].bytes));
    give_device_bytes(checker, tensor);
    /* The caller fills the inputs once, at the beginning. */
    state->version = checker->at < checker->input_count ? 0 : UNDEFINED;
    return ATP_OK;
}

static enum atp_status check_read(const struct checker *checker, uint32_t tensor, uint32_t version)
{
    const struct tensor_state *state = &checker->tensors[tensor];
    const char *name = tensor_name(checker, tensor);
    if (!is_on_device(state)) {
        return refuse(checker, "\"%s\" is not on the device", name);
    }
    if (state->flight == FLIGHT_RESTORE) {
        return refuse(checker, "\"%s\" is still being restored", name);
    }
    if (state->version == UNDEFINED) {
        return refuse(checker, "the contents of \"%s\" are undefined, expected version %" PRIu32,
                      name, version);
    }
    if (state->version != version) {
        return refuse(checker, "\"%s\" is at version %" PRIu32 ", expected version %" PRIu32, name,
                      state->version, version);
    }
    return ATP_OK;
}

static enum atp_status check_write(const struct checker *checker, uint32_t tensor, uint32_t version)
{
    const struct tensor_state *state = &checker->tensors[tensor];
    const char *name = tensor_name(checker, tensor);
    if (!is_on_device(state)) {
        return refuse(checker, "\"%s\" is not on the device", name);
    }
    if (state->flight != FLIGHT_NONE) {
        return refuse(checker, "\"%s\" is written while it is still being %s", name,
                      state->flight == FLIGHT_EVICT ? "evicted" : "restored");
    }
    /* The first writer makes all of the contents, a later one may leave part as it was. */
    return version > 1 ? check_read(checker, tensor, version - 1) : ATP_OK;
}

/* G2 and G3 for what a run or a rerun of `step` touches. */
static enum atp_status check_work(struct checker *checker, uint32_t step)
{
    const struct atp_step *s = &checker->plan->model.steps[step];
    const uint32_t *versions = checker->uses + checker->first_use[step];
    bool reruns = checker->plan->program[checker->at].op == ATP_OP_RERUN;
    for (uint32_t i = 0; i < s->read_count; i++) {
        ATP_TRY(check_read(checker, s->reads[i], versions[i]));
    }
    for (uint32_t i = 0; i < s->write_count; i++) {
        ATP_TRY(check_write(checker, s->writes[i], versions[s->read_count + i]));
    }
    if (s->workspace_bytes > 0) {
        ATP_TRY(check_device_range(checker, s->workspace_bytes));
        grow_peak(checker, s->workspace_bytes);
    } else if (checker->plan->program[checker->at].offset != 0) {
        return refuse(checker, "it has no workspace, expected offset 0");
    }
    for (uint32_t i = 0; i < s->write_count; i++) {
        struct tensor_state *state = &checker->tensors[s->writes[i]];
        state->was_remade = state->was_remade || (reruns && state->version == UNDEFINED);
        state->version = versions[s->read_count + i];
    }
    return ATP_OK;
}

static enum atp_status check_run(struct checker *checker, uint32_t step)
{
    if (step != checker->next_step) {
        if (checker->next_step == checker->plan->model.step_count) {
            return refuse(checker, "all steps have run already");
        }
        const struct atp_step *next = &checker->plan->model.steps[checker->next_step];
        return refuse(checker, "the next step to run is steps[%" PRIu32 "] \"%s\" %s",
                      checker->next_step, next->name, atp_phase_name(next->phase));
    }
    ATP_TRY(check_work(checker, step));
    checker->next_step++;
    return ATP_OK;
}

static enum atp_status check_rerun(struct checker *checker, uint32_t step)
{
    const struct atp_step *s = &checker->plan->model.steps[step];
    if (s->phase != ATP_PHASE_FORWARD) {
        return refuse(checker, "it is a %s step, only forward steps run again",
                      atp_phase_name(s->phase));
    }
    if (s->rerun_never) {
        return refuse(checker, "it must never run twice");
    }
    if (step >= checker->next_step) {
        return refuse(checker, "it has not run yet");
    }
    return check_work(checker, step);
}

/* The host bytes of an eviction: no copy in flight touches them, and older copies in them end. */
static enum atp_status claim_host_bytes(struct checker *checker, uint32_t tensor, uint64_t begin,
                                        uint64_t end)
{
    uint32_t found = 0;
    while ((found = ranges_find(&checker->host, found, begin, end)) != ATP_NONE) {
        struct range range = checker->host.items[found];
        enum flight flight = checker->tensors[range.owner].flight;
        if (flight != FLIGHT_NONE) {
            return refuse(checker,
                          "host bytes [%" PRIu64 ", %" PRIu64
                          ") overlap those of \"%s\" at [%" PRIu64 ", %" PRIu64
                          "), which are still being %s",
                          begin, end, tensor_name(checker, range.owner), range.begin, range.end,
                          flight == FLIGHT_EVICT ? "written" : "read");
        }
        forget_host_copy(checker, range.owner); /* moves another range to `found` */
    }
    struct tensor_state *state = &checker->tensors[tensor];
    if (state->host_range != ATP_NONE) {
        forget_host_copy(checker, tensor);
    }
    state->host_range = checker->host.count;
    checker->host.items[checker->host.count++] = (struct range){begin, end, tensor};
    return ATP_OK;
}

static enum atp_status check_evict(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    uint64_t offset = checker->plan->program[checker->at].offset;
    uint64_t bytes = checker->plan->model.tensors[tensor].bytes;
    if (!is_on_device(state)) {
        return refuse(checker, "it is not on the device");
    }
    if (state->flight != FLIGHT_NONE) {
        return refuse(checker, "it is still being %s",
                      state->flight == FLIGHT_EVICT ? "evicted" : "restored");
    }
    if (state->version == UNDEFINED) {
        return refuse(checker, "its contents are undefined");
    }
    ATP_TRY(check_range(checker, bytes, "host arena", checker->plan->host_arena_bytes));
    ATP_TRY(claim_host_bytes(checker, tensor, offset, offset + bytes));
    state->host_version = state->version;
    state->flight = FLIGHT_EVICT;
    state->was_evicted = true;
    return ATP_OK;
}

static enum atp_status check_evicted(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    if (state->flight != FLIGHT_EVICT) {
        return refuse(checker, "no eviction of it is in flight");
    }
    state->flight = FLIGHT_NONE;
    take_device_bytes(checker, tensor);
    return ATP_OK;
}

static enum atp_status check_restore(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    if (is_on_device(state)) {
        return refuse(checker, "it is on the device already");
    }
    if (state->host_range == ATP_NONE) {
        return refuse(checker, "it has no good host copy");
    }
    ATP_TRY(check_device_range(checker, checker->plan->model.tensors[tensor].bytes));
    give_device_bytes(checker, tensor);
    state->version = state->host_version;
    state->flight = FLIGHT_RESTORE;
    return ATP_OK;
}

static enum atp_status check_restored(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    if (state->flight != FLIGHT_RESTORE) {
        return refuse(checker, "no restore of it is in flight");
    }
    state->flight = FLIGHT_NONE;
    return ATP_OK;
}

static enum atp_status check_free(struct checker *checker, uint32_t tensor)
{
    struct tensor_state *state = &checker->tensors[tensor];
    if (!is_on_device(state)) {
        return refuse(checker, "it is not on the device");
    }
    if (state->flight != FLIGHT_NONE) {
        return refuse(checker, "it is still being %s",
                      state->flight == FLIGHT_EVICT ? "evicted" : "restored");
    }
    take_device_bytes(checker, tensor);
    return ATP_OK;
}

static enum atp_status check_operands(const struct checker *checker)
{
    const struct atp_model *model = &checker->plan->model;
    const struct atp_instruction *in = &checker->plan->program[checker->at];
    bool names_step = in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN;
    uint32_t count = names_step ? model->step_count : model->tensor_count;
    if ((unsigned)in->op >= ATP_OP_COUNT) {
        return refuse(checker, "no operation has number %u", (unsigned)in->op);
    }
    if (in->id >= count) {
        return refuse(checker, "no %s has id %" PRIu32 ", there are %" PRIu32,
                      names_step ? "step" : "tensor", in->id, count);
    }
    if (in->offset != 0 &&
        (in->op == ATP_OP_EVICTED || in->op == ATP_OP_RESTORED || in->op == ATP_OP_FREE)) {
        return refuse(checker, "it takes no offset, expected 0");
    }
    if (checker->at < checker->input_count &&
        (in->op != ATP_OP_ALLOC || !checker->tensors[in->id].is_input)) {
        return refuse(checker,
                      "the program begins with the alloc of each of the %" PRIu32 " inputs",
                      checker->input_count);
    }
    return ATP_OK;
}

static enum atp_status check_instruction(struct checker *checker)
{
    const struct atp_instruction *in = &checker->plan->program[checker->at];
    ATP_TRY(check_operands(checker));
    switch (in->op) {
    case ATP_OP_ALLOC:
        return check_alloc(checker, in->id);
    case ATP_OP_RUN:
        return check_run(checker, in->id);
    case ATP_OP_RERUN:
        return check_rerun(checker, in->id);
    case ATP_OP_EVICT:
        return check_evict(checker, in->id);
    case ATP_OP_EVICTED:
        return check_evicted(checker, in->id);
    case ATP_OP_RESTORE:
        return check_restore(checker, in->id);
    case ATP_OP_RESTORED:
        return check_restored(checker, in->id);
    case ATP_OP_FREE:
        return check_free(checker, in->id);
    }
    return atp_fail(checker->err, ATP_ERR_INTERNAL, "program[%" PRIu32 "]: unchecked", checker->at);
}

static enum atp_status check_end(const struct checker *checker)
{
    const struct atp_model *model = &checker->plan->model;
    if (checker->next_step < model->step_count) {
        const struct atp_step *next = &model->steps[checker->next_step];
        return atp_fail(checker->err, ATP_ERR_INVALID,
                        "program: it ends before steps[%" PRIu32 "] \"%s\" %s has run",
                        checker->next_step, next->name, atp_phase_name(next->phase));
    }
    /* A copy in flight holds device bytes, so nothing on the device is nothing in flight. */
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        const struct tensor_state *state = &checker->tensors[t];
        if (is_on_device(state)) {
            return atp_fail(checker->err, ATP_ERR_INVALID, "program: it ends with \"%s\" %s",
                            model->tensors[t].name,
                            state->flight == FLIGHT_EVICT     ? "being evicted"
                            : state->flight == FLIGHT_RESTORE ? "being restored"
                                                              : "on the device");
        }
    }
    return ATP_OK;
}

/* What the header says that the program does. */
static enum atp_status check_claims(const struct checker *checker)
{
    const struct atp_plan *plan = checker->plan;
    if (plan->predicted.peak_bytes != checker->peak_bytes) {
        return atp_fail(checker->err, ATP_ERR_INVALID,
                        "predicted.peak_bytes: %" PRIu64 ", but the program's peak is %" PRIu64,
                        plan->predicted.peak_bytes, checker->peak_bytes);
    }
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        const struct tensor_state *state = &checker->tensors[t];
        enum atp_decision found = state->was_evicted  ? ATP_DECISION_SWAP
                                  : state->was_remade ? ATP_DECISION_RECOMPUTE
                                                      : ATP_DECISION_KEEP;
        if (plan->decisions[t] != found) {
            return atp_fail(checker->err, ATP_ERR_INVALID,
                            "tensors[%" PRIu32 "] \"%s\": the decision is %s, but the program's "
                            "is %s",
                            t, plan->model.tensors[t].name, atp_decision_name(plan->decisions[t]),
                            atp_decision_name(found));
        }
    }
    return ATP_OK;
}

static enum atp_status check_header(const struct atp_plan *plan, struct atp_error *err)
{
    uint8_t digest[32];
    uint64_t needed_bytes;
    ATP_TRY(atp_model_check(&plan->model, NULL, err));
    atp_model_fingerprint(&plan->model, digest);
    if (memcmp(digest, plan->fingerprint, sizeof(digest)) != 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "fingerprint: it is not that of the tensors and steps in this plan");
    }
    if (plan->alignment_bytes == 0 || (plan->alignment_bytes & (plan->alignment_bytes - 1)) != 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "alignment_bytes: %" PRIu64 ", expected a power of two",
                        plan->alignment_bytes);
    }
    if (!checked_add(plan->resident_bytes, plan->arena_bytes, &needed_bytes) ||
        needed_bytes > plan->budget_bytes) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "budget_bytes: %" PRIu64 " are fewer than %" PRIu64 " resident and %" PRIu64
                        " arena bytes",
                        plan->budget_bytes, plan->resident_bytes, plan->arena_bytes);
    }
    if (plan->instruction_count > 0 && plan->program == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "program: it is NULL");
    }
    if (plan->model.tensor_count > 0 && plan->decisions == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "decisions: they are NULL");
    }
    return ATP_OK;
}

/* Inputs, and the version of every use: in step order, each writer leaves one more. */
static void find_versions(struct checker *checker)
{
    const struct atp_model *model = &checker->plan->model;
    size_t use = 0;
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        checker->first_use[s] = use;
        for (uint32_t i = 0; i < step->read_count; i++) {
            checker->uses[use++] = checker->tensors[step->reads[i]].version;
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            checker->uses[use++] = ++checker->tensors[step->writes[i]].version;
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        struct tensor_state *state = &checker->tensors[t];
        state->is_input = state->version == 0;
        checker->input_count += state->is_input;
        state->version = UNDEFINED;
        state->device_range = ATP_NONE;
        state->host_range = ATP_NONE;
    }
}

static enum atp_status check_program(struct checker *checker)
{
    find_versions(checker);
    for (checker->at = 0; checker->at < checker->plan->instruction_count; checker->at++) {
        ATP_TRY(check_instruction(checker));
    }
    ATP_TRY(check_end(checker));
    return check_claims(checker);
}

static size_t count_uses(const struct atp_model *model)
{
    size_t count = 0;
    for (uint32_t s = 0; s < model->step_count; s++) {
        count += (size_t)model->steps[s].read_count + model->steps[s].write_count;
    }
    return count;
}

enum atp_status atp_plan_check(const struct atp_plan *plan, struct atp_error *err)
{
    ATP_TRY(check_header(plan, err));
    struct checker checker = {.plan = plan, .err = err};
    /* One more than needed: calloc may give NULL for nothing. */
    size_t tensor_count = (size_t)plan->model.tensor_count + 1;
    checker.tensors = calloc(tensor_count, sizeof(*checker.tensors));
    checker.device.items = calloc(tensor_count, sizeof(*checker.device.items));
    checker.host.items = calloc(tensor_count, sizeof(*checker.host.items));
    checker.first_use = calloc(plan->model.step_count, sizeof(*checker.first_use));
    checker.uses = calloc(count_uses(&plan->model) + 1, sizeof(*checker.uses));
    enum atp_status status;
    if (checker.tensors == NULL || checker.device.items == NULL || checker.host.items == NULL ||
        checker.first_use == NULL || checker.uses == NULL) {
        status = atp_fail(err, ATP_ERR_NO_MEMORY, "plan: no memory to check it");
    } else {
        status = check_program(&checker);
    }
    free(checker.uses);
    free(checker.first_use);
    free(checker.host.items);
    free(checker.device.items);
    free(checker.tensors);
    return status;
}
