/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_scene.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define OK(scene, call) ck_assert_msg((call) == ATP_OK, "%s: %s", #call, (scene)->err.text)

void fake_scene_init(struct fake_scene *s, const struct fake_options *options)
{
    void *memory;
    memset(s, 0, sizeof(*s));
    fake_cuda_start(options);
    OK(s, cuda_backend_create(fake_cuda_api(), 0, &s->backend, &s->err));
    s->ops = s->backend->ops;
    OK(s, s->ops->stream_create(s->backend, ATP_STREAM_COMPUTE, &s->compute, &s->err));
    OK(s, s->ops->stream_create(s->backend, ATP_STREAM_COPY, &s->out, &s->err));
    OK(s, s->ops->stream_create(s->backend, ATP_STREAM_COPY, &s->in, &s->err));
    for (int e = 0; e < 4; e++) {
        OK(s, s->ops->event_create(s->backend, e < 2, &s->events[e], &s->err));
    }
    OK(s, s->ops->arena_alloc(s->backend, SCENE_BYTES, &memory, &s->err));
    s->arena = (uint8_t *)memory;
    OK(s, s->ops->host_alloc(s->backend, SCENE_BYTES, &memory, &s->err));
    s->pinned = (uint8_t *)memory;
}

void fake_scene_finish(struct fake_scene *s)
{
    void *streams[] = {s->compute, s->out, s->in};
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        if (streams[i] != NULL) {
            fake_scene_sync(s, streams[i]);
        }
    }
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        if (streams[i] != NULL) {
            s->ops->stream_destroy(s->backend, streams[i]);
        }
    }
    for (int e = 0; e < 4; e++) {
        if (s->events[e] != NULL) {
            s->ops->event_destroy(s->backend, s->events[e]);
        }
    }
    if (s->pinned != NULL) {
        s->ops->host_free(s->backend, s->pinned);
    }
    if (s->arena != NULL) {
        s->ops->arena_free(s->backend, s->arena);
    }
    atp_backend_destroy(s->backend);
    fake_cuda_finish(&s->report);
}

struct kernel {
    uint8_t *bytes;
    uint64_t count;
    bool is_write;
    uint8_t sum;
};

static void run_kernel(void *ctx)
{
    struct kernel *kernel = (struct kernel *)ctx;
    for (uint64_t i = 0; i < kernel->count; i++) {
        if (kernel->is_write) {
            kernel->bytes[i] = (uint8_t)i;
        } else {
            kernel->sum = (uint8_t)(kernel->sum + kernel->bytes[i]);
        }
    }
    free(kernel);
}

static void launch(struct fake_scene *s, void *stream, uint64_t offset, uint64_t bytes,
                   bool is_write)
{
    struct kernel *kernel = (struct kernel *)malloc(sizeof(*kernel));
    struct fake_access access = {s->arena + offset, bytes, is_write};
    ck_assert_ptr_nonnull(kernel);
    *kernel = (struct kernel){.bytes = s->arena + offset, .count = bytes, .is_write = is_write};
    if (!fake_cuda_launch(stream, is_write ? "writer" : "reader", &access, 1, run_kernel, kernel)) {
        free(kernel);
    }
}

void fake_scene_read(struct fake_scene *s, void *stream, uint64_t offset, uint64_t bytes)
{
    launch(s, stream, offset, bytes, false);
}

void fake_scene_write(struct fake_scene *s, void *stream, uint64_t offset, uint64_t bytes)
{
    launch(s, stream, offset, bytes, true);
}

void fake_scene_evict(struct fake_scene *s, uint64_t offset, uint64_t to, uint64_t bytes)
{
    OK(s, s->ops->copy(s->backend, s->out, s->pinned + to, s->arena + offset, bytes,
                       ATP_COPY_TO_HOST, &s->err));
}

void fake_scene_restore(struct fake_scene *s, uint64_t from, uint64_t offset, uint64_t bytes)
{
    OK(s, s->ops->copy(s->backend, s->in, s->arena + offset, s->pinned + from, bytes,
                       ATP_COPY_TO_DEVICE, &s->err));
}

void fake_scene_record(struct fake_scene *s, int event, void *stream)
{
    OK(s, s->ops->event_record(s->backend, s->events[event], stream, &s->err));
}

void fake_scene_wait(struct fake_scene *s, void *stream, int event)
{
    OK(s, s->ops->stream_wait(s->backend, stream, s->events[event], &s->err));
}

void fake_scene_sync(struct fake_scene *s, void *stream)
{
    OK(s, s->ops->stream_sync(s->backend, stream, &s->err));
}
