/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "spy_backend.h"

#include <stdio.h>
#include <string.h>

static struct spy_backend *spy_of(struct atp_backend *base)
{
    return (struct spy_backend *)base;
}

/* Every call that can fail begins here. */
static enum atp_status count(struct spy_backend *spy, const char *call, struct atp_error *err)
{
    spy->call_count++;
    if (spy->call_count != spy->failing) {
        return ATP_OK;
    }
    if (err != NULL) {
        *err = (struct atp_error){.status = ATP_ERR_DEVICE, .instruction = ATP_NONE};
        (void)snprintf(err->text, sizeof(err->text), "spy: %s fails, as asked", call);
    }
    return ATP_ERR_DEVICE;
}

static void write_down(struct spy_backend *spy, const char *call, const void *stream)
{
    uint32_t number = 0;
    for (uint32_t s = 0; s < spy->copy_stream_count; s++) {
        if (spy->copy_streams[s] == stream) {
            number = s + 1;
        }
    }
    size_t used = strlen(spy->log);
    (void)snprintf(spy->log + used, sizeof(spy->log) - used, "%s(%u) ", call, number);
}

/* Where the clock of an event's last record is kept; marks of events long gone are taken over. */
static int64_t *mark_of(struct spy_backend *spy, const void *event)
{
    uint32_t room = sizeof(spy->marks) / sizeof(spy->marks[0]);
    uint32_t known_count = spy->mark_count < room ? spy->mark_count : room;
    for (uint32_t m = 0; m < known_count; m++) {
        if (spy->marks[m].event == event) {
            return &spy->marks[m].ns;
        }
    }
    uint32_t m = spy->mark_count++ % room;
    spy->marks[m].event = event;
    return &spy->marks[m].ns;
}

static enum atp_status made(struct spy_backend *spy, enum atp_status status)
{
    if (status == ATP_OK) {
        spy->create_count++;
        spy->live_count++;
    }
    return status;
}

static void spy_destroy(struct atp_backend *base)
{
    spy_backend_finish(spy_of(base));
}

static enum atp_status spy_arena_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                       struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "arena_alloc", err);
    if (status != ATP_OK) {
        *out = NULL;
        return status;
    }
    return made(spy, spy->inner->ops->arena_alloc(spy->inner, bytes, out, err));
}

static void spy_arena_free(struct atp_backend *base, void *arena)
{
    spy_of(base)->live_count--;
    spy_of(base)->inner->ops->arena_free(spy_of(base)->inner, arena);
}

static enum atp_status spy_host_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                      struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "host_alloc", err);
    if (status != ATP_OK) {
        *out = NULL;
        return status;
    }
    return made(spy, spy->inner->ops->host_alloc(spy->inner, bytes, out, err));
}

static void spy_host_free(struct atp_backend *base, void *memory)
{
    spy_of(base)->live_count--;
    spy_of(base)->inner->ops->host_free(spy_of(base)->inner, memory);
}

static enum atp_status spy_stream_create(struct atp_backend *base, enum atp_stream_role role,
                                         void **out, struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "stream_create", err);
    if (status != ATP_OK) {
        *out = NULL;
        return status;
    }
    status = made(spy, spy->inner->ops->stream_create(spy->inner, role, out, err));
    if (status == ATP_OK && role == ATP_STREAM_COPY && spy->copy_stream_count < 4) {
        spy->copy_streams[spy->copy_stream_count++] = *out;
    }
    return status;
}

static void spy_stream_destroy(struct atp_backend *base, void *stream)
{
    spy_of(base)->live_count--;
    spy_of(base)->inner->ops->stream_destroy(spy_of(base)->inner, stream);
}

static enum atp_status spy_event_create(struct atp_backend *base, bool timed, void **out,
                                        struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "event_create", err);
    if (status != ATP_OK) {
        *out = NULL;
        return status;
    }
    return made(spy, spy->inner->ops->event_create(spy->inner, timed, out, err));
}

static void spy_event_destroy(struct atp_backend *base, void *event)
{
    spy_of(base)->live_count--;
    spy_of(base)->inner->ops->event_destroy(spy_of(base)->inner, event);
}

static enum atp_status spy_copy(struct atp_backend *base, void *stream, void *to, const void *from,
                                uint64_t bytes, enum atp_copy direction, struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "copy", err);
    if (status != ATP_OK) {
        return status;
    }
    write_down(spy, "copy", stream);
    spy->clock_ns += SPY_LATENCY_NS + (int64_t)bytes;
    return spy->inner->ops->copy(spy->inner, stream, to, from, bytes, direction, err);
}

static enum atp_status spy_fill(struct atp_backend *base, void *stream, void *to, uint8_t value,
                                uint64_t bytes, struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "fill", err);
    if (status != ATP_OK) {
        return status;
    }
    write_down(spy, "fill", stream);
    return spy->inner->ops->fill(spy->inner, stream, to, value, bytes, err);
}

static enum atp_status spy_event_record(struct atp_backend *base, void *event, void *stream,
                                        struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "event_record", err);
    if (status != ATP_OK) {
        return status;
    }
    write_down(spy, "record", stream);
    *mark_of(spy, event) = spy->clock_ns;
    return spy->inner->ops->event_record(spy->inner, event, stream, err);
}

static enum atp_status spy_stream_wait(struct atp_backend *base, void *stream, void *event,
                                       struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "stream_wait", err);
    if (status != ATP_OK) {
        return status;
    }
    write_down(spy, "wait", stream);
    return spy->inner->ops->stream_wait(spy->inner, stream, event, err);
}

static enum atp_status spy_stream_sync(struct atp_backend *base, void *stream,
                                       struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "stream_sync", err);
    if (status != ATP_OK) {
        return status;
    }
    write_down(spy, "sync", stream);
    return spy->inner->ops->stream_sync(spy->inner, stream, err);
}

static enum atp_status spy_event_elapsed(struct atp_backend *base, void *start, void *end,
                                         int64_t *out_ns, struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "event_elapsed", err);
    if (status != ATP_OK) {
        *out_ns = 0;
        return status;
    }
    if (spy->has_clock) {
        *out_ns = *mark_of(spy, end) - *mark_of(spy, start);
        return ATP_OK;
    }
    return spy->inner->ops->event_elapsed(spy->inner, start, end, out_ns, err);
}

static enum atp_status spy_capture_begin(struct atp_backend *base, void *stream,
                                         struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "capture_begin", err);
    return status == ATP_OK ? spy->inner->ops->capture_begin(spy->inner, stream, err) : status;
}

static enum atp_status spy_capture_end(struct atp_backend *base, void *stream, void **out_graph,
                                       struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    return made(spy, spy->inner->ops->capture_end(spy->inner, stream, out_graph, err));
}

static enum atp_status spy_graph_launch(struct atp_backend *base, void *graph, void *stream,
                                        struct atp_error *err)
{
    struct spy_backend *spy = spy_of(base);
    enum atp_status status = count(spy, "graph_launch", err);
    return status == ATP_OK ? spy->inner->ops->graph_launch(spy->inner, graph, stream, err)
                            : status;
}

static void spy_graph_destroy(struct atp_backend *base, void *graph)
{
    spy_of(base)->live_count--;
    spy_of(base)->inner->ops->graph_destroy(spy_of(base)->inner, graph);
}

static const struct atp_backend_ops spy_ops = {
    .destroy = spy_destroy,
    .arena_alloc = spy_arena_alloc,
    .arena_free = spy_arena_free,
    .host_alloc = spy_host_alloc,
    .host_free = spy_host_free,
    .stream_create = spy_stream_create,
    .stream_destroy = spy_stream_destroy,
    .event_create = spy_event_create,
    .event_destroy = spy_event_destroy,
    .copy = spy_copy,
    .fill = spy_fill,
    .event_record = spy_event_record,
    .stream_wait = spy_stream_wait,
    .stream_sync = spy_stream_sync,
    .event_elapsed = spy_event_elapsed,
    .capture_begin = spy_capture_begin,
    .capture_end = spy_capture_end,
    .graph_launch = spy_graph_launch,
    .graph_destroy = spy_graph_destroy,
};

void spy_backend_init(struct spy_backend *spy, struct atp_backend *inner)
{
    memset(spy, 0, sizeof(*spy));
    spy->base.ops = &spy_ops;
    spy->inner = inner;
}

void spy_backend_finish(struct spy_backend *spy)
{
    atp_backend_destroy(spy->inner);
    spy->inner = NULL;
}
