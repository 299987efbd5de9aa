/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "witness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes that a step has read, and what they must be. */
struct sight {
    uint64_t offset, bytes; /* in the pinned memory */
    uint32_t step, tensor;
    uint8_t value;
};

void witness_insist(enum atp_status status, const char *what, const struct atp_error *err)
{
    if (status != ATP_OK) {
        (void)printf("failed: %s: %s\n", what, err->text);
        exit(EXIT_WRONG);
    }
}

/* Never the poison of a replay, nor 0. */
static uint8_t value_of(uint32_t tensor, uint32_t version)
{
    uint8_t value = (uint8_t)(1 + (tensor * 37u + version * 101u) % 250u);
    return value == 0xA5 ? 0xFE : value;
}

static bool writes(const struct atp_step *step, uint32_t tensor)
{
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (step->writes[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* The version of a tensor that the first `step_count` steps leave. */
static uint32_t version_after(const struct atp_model *model, uint32_t step_count, uint32_t tensor)
{
    uint32_t version = 0;
    for (uint32_t s = 0; s < step_count; s++) {
        version += writes(&model->steps[s], tensor);
    }
    return version;
}

static enum atp_status fill(struct witness *w, const struct atp_step_call *call, uint32_t tensor,
                            uint32_t version, struct atp_error *err)
{
    void *data = atp_replay_tensor_data(call->replay, tensor);
    uint64_t bytes = w->model->tensors[tensor].bytes;
    if (bytes == 0) {
        return ATP_OK;
    }
    return w->backend->ops->fill(w->backend, call->stream, data, value_of(tensor, version), bytes,
                                 err);
}

static enum atp_status look(struct witness *w, const struct atp_step_call *call, uint32_t tensor,
                            struct atp_error *err)
{
    uint64_t bytes = w->model->tensors[tensor].bytes;
    if (w->burst == 0 || bytes == 0) {
        return ATP_OK;
    }
    if (w->sight_count == w->sight_room || w->used_bytes + bytes > w->room_bytes) {
        abort();
    }
    w->sights[w->sight_count++] =
        (struct sight){.offset = w->used_bytes,
                       .bytes = bytes,
                       .step = call->step,
                       .tensor = tensor,
                       .value = value_of(tensor, version_after(w->model, call->step, tensor))};
    uint8_t *to = w->pinned + w->used_bytes;
    w->used_bytes += bytes;
    return w->backend->ops->copy(w->backend, call->stream, to,
                                 atp_replay_tensor_data(call->replay, tensor), bytes,
                                 ATP_COPY_TO_HOST, err);
}

/* What an input must hold before the first step, on the device by now. */
static enum atp_status fill_inputs(struct witness *w, const struct atp_step_call *call,
                                   struct atp_error *err)
{
    enum atp_status status = ATP_OK;
    for (uint32_t t = 0; t < w->model->tensor_count && status == ATP_OK; t++) {
        if (atp_replay_tensor_data(call->replay, t) != NULL) {
            status = fill(w, call, t, 0, err);
        }
    }
    return status;
}

enum atp_status witness_work(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct witness *w = (struct witness *)ctx;
    enum atp_status status = ATP_OK;
    if (call->step == ATP_NONE) {
        return fill_inputs(w, call, err);
    }
    const struct atp_step *step = &w->model->steps[call->step];
    for (uint32_t i = 0; call->workspace != NULL && i < w->fill_count && status == ATP_OK; i++) {
        status = w->backend->ops->fill(w->backend, call->stream, call->workspace, 0x5C,
                                       step->workspace_bytes, err);
    }
    for (uint32_t i = 0; i < step->read_count && status == ATP_OK; i++) {
        status = look(w, call, step->reads[i], err);
    }
    for (uint32_t i = 0; i < step->write_count && status == ATP_OK; i++) {
        status = fill(w, call, step->writes[i],
                      version_after(w->model, call->step + 1, step->writes[i]), err);
    }
    return status;
}

void witness_judge(struct witness *w)
{
    for (uint32_t i = 0; i < w->sight_count; i++) {
        const struct sight *sight = &w->sights[i];
        uint64_t wrong = 0;
        for (uint64_t n = 0; n < sight->bytes; n++) {
            wrong += w->pinned[sight->offset + n] != sight->value;
        }
        if (wrong > 0 && w->wrong_bytes == 0) {
            (void)snprintf(w->first_wrong, sizeof(w->first_wrong),
                           "%s: step %" PRIu32 " reads %" PRIu64 " of %" PRIu64
                           " bytes of tensor %" PRIu32 " wrong",
                           w->title, sight->step, wrong, sight->bytes, sight->tensor);
        }
        w->wrong_bytes += wrong;
        w->seen_bytes += sight->bytes;
    }
    if (!w->is_graph) {
        w->sight_count = 0;
        w->used_bytes = 0;
    }
}

/* Room for what `burst` iterations read. */
static void take_room(struct witness *w, const struct atp_plan *plan)
{
    struct atp_error err;
    void *memory;
    w->room_bytes = 1;
    w->sight_room = 1;
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct atp_instruction *at = &plan->program[i];
        if (at->op == ATP_OP_RUN || at->op == ATP_OP_RERUN) {
            const struct atp_step *step = &plan->model.steps[at->id];
            for (uint32_t r = 0; r < step->read_count; r++) {
                w->room_bytes += w->burst * plan->model.tensors[step->reads[r]].bytes;
                w->sight_room += w->burst;
            }
        }
    }
    w->sights = (struct sight *)calloc(w->sight_room, sizeof(*w->sights));
    if (w->sights == NULL) {
        abort();
    }
    witness_insist(w->backend->ops->host_alloc(w->backend, w->room_bytes, &memory, &err),
                   "pinned memory", &err);
    w->pinned = (uint8_t *)memory;
}

void witness_init(struct witness *w, struct atp_backend *backend, const struct atp_plan *plan,
                  uint32_t burst)
{
    *w = (struct witness){
        .backend = backend, .model = &plan->model, .fill_count = 1, .burst = burst, .title = ""};
    if (burst > 0) {
        take_room(w, plan);
    }
}

void witness_finish(struct witness *w)
{
    if (w->pinned != NULL) {
        w->backend->ops->host_free(w->backend, w->pinned);
    }
    free(w->sights);
}

/* Bursts on an open replay, whose compute stream is the caller's. */
static enum atp_status replay_bursts(struct witness *w, struct atp_replay *replay, void *stream,
                                     uint32_t burst_count, struct atp_error *err)
{
    enum atp_status status = ATP_OK;
    for (uint32_t i = 0; status == ATP_OK && i < burst_count * w->burst; i++) {
        status = atp_replay_run_iteration(replay, witness_work, err);
        if (status == ATP_OK && (i + 1) % w->burst == 0) {
            status = w->backend->ops->stream_sync(w->backend, stream, err);
            witness_judge(w);
        }
    }
    return status;
}

static void add_up(struct witness *total, const struct witness *w)
{
    if (total->wrong_bytes == 0) {
        memcpy(total->first_wrong, w->first_wrong, sizeof(total->first_wrong));
    }
    total->wrong_bytes += w->wrong_bytes;
    total->seen_bytes += w->seen_bytes;
}

enum atp_status witness_replay(struct witness *total, const struct atp_plan *plan,
                               uint32_t burst_count, bool is_graph, const char *title,
                               struct atp_error *err)
{
    const struct atp_backend_ops *ops = total->backend->ops;
    struct witness w;
    struct atp_replay_options options = {.step = witness_work, .step_ctx = &w, .poison = true};
    struct atp_replay *replay = NULL;
    witness_init(&w, total->backend, plan, total->burst);
    w.title = title;
    enum atp_status status =
        ops->stream_create(w.backend, ATP_STREAM_COMPUTE, &options.compute_stream, err);
    if (status == ATP_OK) {
        status = atp_replay_open(plan, w.model, w.backend, &options, &replay, err);
    }
    if (status == ATP_OK && is_graph) {
        status = atp_replay_capture(replay, err);
        w.is_graph = true;
    }
    if (status == ATP_OK) {
        status = replay_bursts(&w, replay, options.compute_stream, burst_count, err);
    }
    atp_replay_close(replay);
    if (options.compute_stream != NULL) {
        ops->stream_destroy(w.backend, options.compute_stream);
    }
    add_up(total, &w);
    witness_finish(&w);
    return status;
}

struct atp_backend *witness_backend(const char *name)
{
    struct atp_host_options host = {.copies = ATP_HOST_EAGER, .seed = 1, .delay_max_us = 100};
    struct atp_backend *backend;
    struct atp_error err;
    enum atp_status status;
    if (strcmp(name, "late") == 0) {
        host.copies = ATP_HOST_LATE;
    } else if (strcmp(name, "threads") == 0) {
        host.copies = ATP_HOST_THREADS;
    } else if (strcmp(name, "eager") != 0 && strcmp(name, "cuda") != 0) {
        (void)fprintf(stderr, "\"%s\" is none of cuda, eager, late, threads\n", name);
        exit(EXIT_BAD);
    }
    status = strcmp(name, "cuda") == 0 ? atp_backend_cuda_create(0, &backend, &err)
                                       : atp_backend_host_create(&host, &backend, &err);
    if (status == ATP_ERR_UNSUPPORTED) {
        (void)printf("skipped: %s\n", err.text);
        exit(EXIT_NONE);
    }
    witness_insist(status, "backend", &err);
    return backend;
}

int64_t witness_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
