/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that a replay allocates, and its release. Open proves the plan once; after it the walk
 * in replay.c trusts every index and offset.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "replay_state.h"

/* What the program needs, counted in one pass. */
struct needs {
    uint32_t evict_count, restore_count, rerun_count;
    uint32_t work_count;      /* runs and reruns */
    uint32_t in_flight_count; /* most copies in flight at once */
};

static void *libc_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void libc_free(void *ctx, void *memory)
{
    (void)ctx;
    free(memory);
}

static struct needs count_needs(const struct atp_plan *plan)
{
    struct needs needs = {0};
    uint32_t in_flight = 0;
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        enum atp_op op = plan->program[i].op;
        needs.evict_count += op == ATP_OP_EVICT;
        needs.restore_count += op == ATP_OP_RESTORE;
        needs.rerun_count += op == ATP_OP_RERUN;
        needs.work_count += op == ATP_OP_RUN || op == ATP_OP_RERUN;
        in_flight += op == ATP_OP_EVICT || op == ATP_OP_RESTORE;
        in_flight -= op == ATP_OP_EVICTED || op == ATP_OP_RESTORED;
        needs.in_flight_count =
            in_flight > needs.in_flight_count ? in_flight : needs.in_flight_count;
    }
    return needs;
}

static enum atp_status check_plan(const struct atp_plan *plan, const struct atp_model *model,
                                  struct atp_error *err)
{
    ATP_TRY(atp_model_check(&plan->model, NULL, err));
    ATP_TRY(atp_model_compare(&plan->model, "the plan", model, "the program", err));
    return atp_plan_check(plan, err);
}

/* Places the replay and its arrays in the block; the same calls measure it. */
static struct atp_replay *lay_out(struct carve *carve, struct atp_replay *measured,
                                  const struct atp_model *model, bool is_plain,
                                  const struct atp_replay_options *options,
                                  const struct needs *needs)
{
    struct atp_replay *replay = CARVE(carve, struct atp_replay, 1);
    if (carve->base == NULL) {
        replay = measured;
    }
    replay->tensors = CARVE(carve, struct replay_tensor, model->tensor_count);
    replay->events = CARVE(carve, void *, needs->in_flight_count);
    replay->idle_events = CARVE(carve, uint32_t, needs->in_flight_count);
    if (is_plain) {
        plain_lay_out(&replay->plain, model, carve);
    }
    if (options->record) {
        record_lay_out(&replay->record, model, carve);
    }
    if (options->report) {
        report_lay_out(&replay->report, needs->evict_count + needs->restore_count,
                       needs->work_count, carve);
    }
    return replay;
}

static enum atp_status take_block(const struct atp_model *model, bool is_plain,
                                  const struct atp_replay_options *options,
                                  const struct needs *needs, struct atp_replay **out_replay,
                                  struct atp_error *err)
{
    static const struct atp_allocator libc = {libc_alloc, libc_free, NULL};
    struct atp_allocator allocator = options->allocator != NULL ? *options->allocator : libc;
    struct atp_replay measured = {0};
    struct carve carve = {0};
    (void)lay_out(&carve, &measured, model, is_plain, options, needs);
    *out_replay = NULL;
    if (carve.overflowed) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "replay: its bookkeeping leaves the address space");
    }
    size_t bytes = (size_t)carve.used_bytes;
    carve = (struct carve){.base = (unsigned char *)allocator.alloc(allocator.ctx, bytes)};
    if (carve.base == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "replay: no %zu bytes for its bookkeeping", bytes);
    }
    memset(carve.base, 0, bytes);
    struct atp_replay *replay = lay_out(&carve, NULL, model, is_plain, options, needs);
    replay->options = *options;
    replay->allocator = allocator;
    replay->options.allocator = NULL;
    replay->event_count = needs->in_flight_count;
    *out_replay = replay;
    return ATP_OK;
}

static enum atp_status make_streams(struct atp_replay *r, const struct needs *needs,
                                    struct atp_error *err)
{
    r->compute = r->options.compute_stream;
    if (r->compute == NULL) {
        ATP_TRY(r->ops->stream_create(r->backend, ATP_STREAM_COMPUTE, &r->compute, err));
    }
    if (needs->evict_count > 0) {
        ATP_TRY(r->ops->stream_create(r->backend, ATP_STREAM_COPY, &r->to_host, err));
    }
    if (needs->restore_count > 0) {
        ATP_TRY(r->ops->stream_create(r->backend, ATP_STREAM_COPY, &r->to_device, err));
    }
    return ATP_OK;
}

static enum atp_status make_events(struct atp_replay *r, struct atp_error *err)
{
    for (uint32_t e = 0; e < r->event_count; e++) {
        ATP_TRY(r->ops->event_create(r->backend, false, &r->events[e], err));
    }
    if (r->event_count > 0) {
        ATP_TRY(r->ops->event_create(r->backend, false, &r->issued, err));
    }
    return ATP_OK;
}

/* Backends align to 256 bytes, and mostly to much more; a plan's offsets may promise more still.
 * Only where they do and the device does not, the arena is taken again with room to begin later. */
static enum atp_status take_arena(struct atp_replay *r, uint64_t bytes, struct atp_error *err)
{
    uint64_t mask = r->plan->alignment_bytes - 1, more_bytes;
    ATP_TRY(r->ops->arena_alloc(r->backend, bytes, &r->arena_memory, err));
    uint64_t surplus = (uintptr_t)r->arena_memory & mask;
    if (surplus != 0) {
        r->ops->arena_free(r->backend, r->arena_memory);
        r->arena_memory = NULL;
        if (!checked_add(bytes, mask, &more_bytes)) {
            return atp_fail(err, ATP_ERR_NO_MEMORY,
                            "replay: no %" PRIu64 " bytes at a multiple of %" PRIu64, bytes,
                            r->plan->alignment_bytes);
        }
        ATP_TRY(r->ops->arena_alloc(r->backend, more_bytes, &r->arena_memory, err));
        surplus = (uintptr_t)r->arena_memory & mask;
    }
    r->arena = (uint8_t *)r->arena_memory + (surplus != 0 ? mask + 1 - surplus : 0);
    return ATP_OK;
}

/* What fails midway is released by atp_replay_close. */
static enum atp_status make_all(struct atp_replay *r, const struct needs *needs,
                                struct atp_error *err)
{
    const struct atp_plan *plan = r->plan;
    void *memory;
    /* A model whose tensors are all empty still has device addresses. */
    uint64_t arena_bytes = plan->arena_bytes > 0 ? plan->arena_bytes : 1;
    ATP_TRY(take_arena(r, arena_bytes, err));
    if (plan->host_arena_bytes > 0) {
        ATP_TRY(r->ops->host_alloc(r->backend, plan->host_arena_bytes, &memory, err));
        r->host_arena = (uint8_t *)memory;
    }
    ATP_TRY(make_streams(r, needs, err));
    ATP_TRY(make_events(r, err));
    if (r->options.record) {
        ATP_TRY(record_init(&r->record, r->backend, r->compute, plan->model.step_count, err));
    }
    if (r->options.report) {
        ATP_TRY(report_init(&r->report, r->backend, r->compute, err));
    }
    if (r->options.poison) {
        ATP_TRY(r->ops->fill(r->backend, r->compute, r->arena, REPLAY_POISON, arena_bytes, err));
    }
    replay_reset(r);
    return ATP_OK;
}

enum atp_status atp_replay_open(const struct atp_plan *plan, const struct atp_model *model,
                                struct atp_backend *backend,
                                const struct atp_replay_options *options,
                                struct atp_replay **out_replay, struct atp_error *err)
{
    static const struct atp_replay_options defaults = {0};
    const struct atp_replay_options *chosen = options != NULL ? options : &defaults;
    struct needs needs = {0};
    struct atp_replay *replay;
    *out_replay = NULL;
    ATP_TRY(atp_model_check(model, NULL, err));
    needs.work_count = model->step_count;
    if (plan != NULL) {
        ATP_TRY(check_plan(plan, model, err));
        needs = count_needs(plan);
    }
    if (needs.rerun_count > 0 && chosen->step == NULL) {
        return atp_fail(err, ATP_ERR_STATE,
                        "replay: the plan reruns steps, which needs options.step");
    }
    ATP_TRY(take_block(model, plan == NULL, chosen, &needs, &replay, err));
    assert(replay != NULL);
    replay->backend = backend;
    replay->ops = backend->ops;
    replay->plan = plan;
    enum atp_status status = ATP_OK;
    if (plan == NULL) {
        status = plain_build(&replay->plain, model, err);
        replay->plan = &replay->plain.plan;
        if (status == ATP_OK) {
            status = atp_plan_check(replay->plan, err);
        }
    }
    if (status == ATP_OK) {
        status = make_all(replay, &needs, err);
    }
    if (status != ATP_OK) {
        atp_replay_close(replay);
        return status;
    }
    *out_replay = replay;
    return ATP_OK;
}

static void drain(struct atp_replay *r)
{
    void *streams[] = {r->compute, r->to_host, r->to_device};
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        /* A call may fail with the error of earlier work and not have waited; the next one does. A
         * device that fails twice has nothing left to run. */
        if (streams[i] != NULL && r->ops->stream_sync(r->backend, streams[i], NULL) != ATP_OK) {
            enum atp_status ignored = r->ops->stream_sync(r->backend, streams[i], NULL);
            (void)ignored;
        }
    }
}

void atp_replay_close(struct atp_replay *r)
{
    if (r == NULL) {
        return;
    }
    drain(r);
    replay_drop_graph(r);
    report_finish(&r->report);
    record_finish(&r->record);
    if (r->issued != NULL) {
        r->ops->event_destroy(r->backend, r->issued);
    }
    for (uint32_t e = r->event_count; e > 0; e--) {
        if (r->events[e - 1] != NULL) {
            r->ops->event_destroy(r->backend, r->events[e - 1]);
        }
    }
    if (r->to_device != NULL) {
        r->ops->stream_destroy(r->backend, r->to_device);
    }
    if (r->to_host != NULL) {
        r->ops->stream_destroy(r->backend, r->to_host);
    }
    if (r->compute != NULL && r->options.compute_stream == NULL) {
        r->ops->stream_destroy(r->backend, r->compute);
    }
    if (r->host_arena != NULL) {
        r->ops->host_free(r->backend, r->host_arena);
    }
    if (r->arena_memory != NULL) {
        r->ops->arena_free(r->backend, r->arena_memory);
    }
    struct atp_allocator allocator = r->allocator;
    allocator.free(allocator.ctx, r);
}
