/* SPDX-License-Identifier: Apache-2.0
 *
 * The device on the CPU. Memory is plain memory, the compute stream is the calling thread, and copy
 * streams are queues (host_queue.h). What is queued on the compute stream is done when the call
 * returns, so an event recorded there has always passed, and waiting there lets a copy stream catch
 * up. Late copies and copies on threads show what a plan that forgets a wait would do on a device.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <atp/backend.h>

#include "checked.h"
#include "fail.h"
#include "host_queue.h"

#define MEMORY_ALIGNMENT 256

static void host_destroy(struct atp_backend *base)
{
    struct host_backend *backend = (struct host_backend *)base;
    (void)pthread_cond_destroy(&backend->progress);
    (void)pthread_mutex_destroy(&backend->lock);
    free(backend);
}

static enum atp_status take_memory(uint64_t bytes, const char *what, void **out,
                                   struct atp_error *err)
{
    uint64_t rounded;
    *out = NULL;
    if (checked_align(bytes, MEMORY_ALIGNMENT, &rounded) && rounded <= SIZE_MAX) {
        *out = aligned_alloc(MEMORY_ALIGNMENT, (size_t)rounded);
    }
    if (*out == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: no %llu bytes of %s memory",
                        (unsigned long long)bytes, what);
    }
    return ATP_OK;
}

static enum atp_status host_arena_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                        struct atp_error *err)
{
    (void)base;
    return take_memory(bytes, "device", out, err);
}

static enum atp_status host_host_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                       struct atp_error *err)
{
    (void)base;
    return take_memory(bytes, "pinned", out, err);
}

static void host_memory_free(struct atp_backend *base, void *memory)
{
    (void)base;
    free(memory);
}

static enum atp_status host_stream_create(struct atp_backend *base, enum atp_stream_role role,
                                          void **out, struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    *out = NULL;
    struct host_stream *stream = (struct host_stream *)malloc(sizeof(*stream));
    if (stream == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: no memory for a stream");
    }
    enum atp_status status = host_queue_init(stream, backend, role, err);
    if (status != ATP_OK) {
        free(stream);
        return status;
    }
    (void)pthread_mutex_lock(&backend->lock);
    stream->next = backend->streams;
    backend->streams = stream;
    backend->stream_count++;
    (void)pthread_mutex_unlock(&backend->lock);
    *out = stream;
    return ATP_OK;
}

/* Waits for the stream are met once it is drained, so they may forget it. */
static void forget_stream(struct host_backend *backend, const struct host_stream *stream)
{
    struct host_stream **link = &backend->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    for (struct host_stream *s = backend->streams; s != NULL; s = s->next) {
        for (uint64_t n = s->done; n < s->queued; n++) {
            struct host_job *job = &s->jobs[n % s->capacity];
            if (job->other == stream) {
                job->other = NULL;
            }
        }
    }
    for (struct host_event *e = backend->events; e != NULL; e = e->next) {
        if (e->stream == stream) {
            e->stream = NULL;
        }
    }
}

static void host_stream_destroy(struct atp_backend *base, void *handle)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_stream *stream = (struct host_stream *)handle;
    host_queue_finish(stream);
    (void)pthread_mutex_lock(&backend->lock);
    forget_stream(backend, stream);
    (void)pthread_mutex_unlock(&backend->lock);
    free(stream);
}

static enum atp_status host_event_create(struct atp_backend *base, bool timed, void **out,
                                         struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_event *event = (struct host_event *)calloc(1, sizeof(*event));
    *out = event;
    if (event == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: no memory for an event");
    }
    event->timed = timed;
    (void)pthread_mutex_lock(&backend->lock);
    event->next = backend->events;
    backend->events = event;
    (void)pthread_mutex_unlock(&backend->lock);
    return ATP_OK;
}

/* A queued record may outlive its event: it then records nothing. */
static void forget_event(struct host_backend *backend, const struct host_event *event)
{
    struct host_event **link = &backend->events;
    while (*link != event) {
        link = &(*link)->next;
    }
    *link = event->next;
    for (struct host_stream *s = backend->streams; s != NULL; s = s->next) {
        for (uint64_t n = s->done; n < s->queued; n++) {
            struct host_job *job = &s->jobs[n % s->capacity];
            if (job->event == event) {
                job->event = NULL;
            }
        }
    }
}

static void host_event_destroy(struct atp_backend *base, void *handle)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_event *event = (struct host_event *)handle;
    (void)pthread_mutex_lock(&backend->lock);
    forget_event(backend, event);
    (void)pthread_mutex_unlock(&backend->lock);
    free(event);
}

static enum atp_status push(struct host_stream *stream, const struct host_job *job,
                            struct atp_error *err)
{
    struct host_backend *backend = stream->backend;
    (void)pthread_mutex_lock(&backend->lock);
    enum atp_status status = host_queue_push(stream, job, err);
    (void)pthread_mutex_unlock(&backend->lock);
    return status;
}

static enum atp_status host_copy(struct atp_backend *base, void *handle, void *to, const void *from,
                                 uint64_t bytes, enum atp_copy direction, struct atp_error *err)
{
    struct host_stream *stream = (struct host_stream *)handle;
    (void)base;
    (void)direction;
    if (stream->role == ATP_STREAM_COMPUTE) {
        memcpy(to, from, bytes);
        return ATP_OK;
    }
    struct host_job job = {.kind = HOST_JOB_COPY, .to = to, .from = from, .bytes = bytes};
    return push(stream, &job, err);
}

static enum atp_status host_fill(struct atp_backend *base, void *handle, void *to, uint8_t value,
                                 uint64_t bytes, struct atp_error *err)
{
    struct host_stream *stream = (struct host_stream *)handle;
    (void)base;
    if (stream->role == ATP_STREAM_COMPUTE) {
        memset(to, value, bytes);
        return ATP_OK;
    }
    struct host_job job = {.kind = HOST_JOB_FILL, .to = to, .value = value, .bytes = bytes};
    return push(stream, &job, err);
}

static enum atp_status record_on_copies(struct host_stream *stream, struct host_event *event,
                                        struct atp_error *err)
{
    struct host_job job = {
        .kind = HOST_JOB_RECORD, .event = event, .generation = event->generation + 1};
    uint64_t position = stream->queued + 1;
    event->generation++;
    event->passed = false;
    event->stream = NULL;
    ATP_TRY(host_queue_push(stream, &job, err));
    event->stream = stream;
    event->position = position;
    return ATP_OK;
}

static enum atp_status host_event_record(struct atp_backend *base, void *event_handle,
                                         void *stream_handle, struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_stream *stream = (struct host_stream *)stream_handle;
    struct host_event *event = (struct host_event *)event_handle;
    enum atp_status status = ATP_OK;
    (void)pthread_mutex_lock(&backend->lock);
    if (stream->role == ATP_STREAM_COPY) {
        status = record_on_copies(stream, event, err);
    } else {
        event->generation++;
        event->stream = NULL;
        event->passed = true;
        event->time_ns = host_now_ns();
    }
    (void)pthread_mutex_unlock(&backend->lock);
    return status;
}

static enum atp_status host_stream_wait(struct atp_backend *base, void *stream_handle,
                                        void *event_handle, struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_stream *stream = (struct host_stream *)stream_handle;
    const struct host_event *event = (const struct host_event *)event_handle;
    enum atp_status status = ATP_OK;
    (void)pthread_mutex_lock(&backend->lock);
    if (event->stream != NULL && event->stream != stream) {
        if (stream->role == ATP_STREAM_COMPUTE) {
            host_queue_reach(event->stream, event->position);
        } else {
            struct host_job job = {
                .kind = HOST_JOB_WAIT, .other = event->stream, .position = event->position};
            status = host_queue_push(stream, &job, err);
        }
    }
    (void)pthread_mutex_unlock(&backend->lock);
    return status;
}

static enum atp_status host_stream_sync(struct atp_backend *base, void *handle,
                                        struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    struct host_stream *stream = (struct host_stream *)handle;
    (void)err;
    (void)pthread_mutex_lock(&backend->lock);
    host_queue_reach(stream, stream->queued);
    (void)pthread_mutex_unlock(&backend->lock);
    return ATP_OK;
}

static enum atp_status host_event_elapsed(struct atp_backend *base, void *start_handle,
                                          void *end_handle, int64_t *out_ns, struct atp_error *err)
{
    struct host_backend *backend = (struct host_backend *)base;
    const struct host_event *start = (const struct host_event *)start_handle;
    const struct host_event *end = (const struct host_event *)end_handle;
    *out_ns = 0;
    if (!start->timed || !end->timed) {
        return atp_fail(err, ATP_ERR_STATE, "host backend: an event that is not timed has no time");
    }
    (void)pthread_mutex_lock(&backend->lock);
    bool has_passed = start->passed && end->passed;
    int64_t elapsed_ns = end->time_ns - start->time_ns;
    (void)pthread_mutex_unlock(&backend->lock);
    if (!has_passed) {
        return atp_fail(err, ATP_ERR_STATE, "host backend: the event has not passed yet");
    }
    *out_ns = elapsed_ns;
    return ATP_OK;
}

static enum atp_status no_graphs(struct atp_error *err)
{
    return atp_fail(err, ATP_ERR_UNSUPPORTED,
                    "host backend: the work of steps is done by the thread that calls them, and "
                    "cannot be captured");
}

static enum atp_status host_capture_begin(struct atp_backend *base, void *stream,
                                          struct atp_error *err)
{
    (void)base;
    (void)stream;
    return no_graphs(err);
}

static enum atp_status host_capture_end(struct atp_backend *base, void *stream, void **out_graph,
                                        struct atp_error *err)
{
    (void)base;
    (void)stream;
    *out_graph = NULL;
    return no_graphs(err);
}

static enum atp_status host_graph_launch(struct atp_backend *base, void *graph, void *stream,
                                         struct atp_error *err)
{
    (void)base;
    (void)graph;
    (void)stream;
    return no_graphs(err);
}

static void host_graph_destroy(struct atp_backend *base, void *graph)
{
    (void)base;
    (void)graph;
}

static const struct atp_backend_ops host_ops = {
    .destroy = host_destroy,
    .arena_alloc = host_arena_alloc,
    .arena_free = host_memory_free,
    .host_alloc = host_host_alloc,
    .host_free = host_memory_free,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .copy = host_copy,
    .fill = host_fill,
    .event_record = host_event_record,
    .stream_wait = host_stream_wait,
    .stream_sync = host_stream_sync,
    .event_elapsed = host_event_elapsed,
    .capture_begin = host_capture_begin,
    .capture_end = host_capture_end,
    .graph_launch = host_graph_launch,
    .graph_destroy = host_graph_destroy,
};

enum atp_status atp_backend_host_create(const struct atp_host_options *options,
                                        struct atp_backend **out, struct atp_error *err)
{
    *out = NULL;
    struct host_backend *backend = (struct host_backend *)calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: no memory");
    }
    backend->base.ops = &host_ops;
    if (options != NULL) {
        backend->options = *options;
    }
    if (pthread_mutex_init(&backend->lock, NULL) != 0) {
        free(backend);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: cannot make a lock");
    }
    if (pthread_cond_init(&backend->progress, NULL) != 0) {
        (void)pthread_mutex_destroy(&backend->lock);
        free(backend);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host backend: cannot make a condition variable");
    }
    *out = &backend->base;
    return ATP_OK;
}
