/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend is one table of operations on one device: memory, streams, events, copies. No slot is
 * optional, and every slot that can fail returns a status. tests/contract/ is the definition of its
 * behaviour.
 *
 * Streams are `void *`: for CUDA a CUstream (the same handle as a cudaStream_t), so that the
 * caller's own stream passes through. Work on one stream runs in order. Nothing is cached from a
 * "current" stream or context.
 *
 * Threads: one backend is driven by one thread at a time.
 */
#ifndef ATP_BACKEND_H
#define ATP_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum atp_copy { ATP_COPY_TO_HOST, ATP_COPY_TO_DEVICE };
enum atp_stream_role { ATP_STREAM_COMPUTE, ATP_STREAM_COPY };

struct atp_backend;

struct atp_backend_ops {
    /* Releases the backend; everything made from it must be gone. */
    void (*destroy)(struct atp_backend *backend);
    /* Device memory, aligned to at least 256 bytes; bytes > 0. */
    enum atp_status (*arena_alloc)(struct atp_backend *backend, uint64_t bytes, void **out,
                                   struct atp_error *err);
    void (*arena_free)(struct atp_backend *backend, void *arena);
    /* Pinned host memory, aligned to at least 256 bytes; bytes > 0. */
    enum atp_status (*host_alloc)(struct atp_backend *backend, uint64_t bytes, void **out,
                                  struct atp_error *err);
    void (*host_free)(struct atp_backend *backend, void *memory);
    enum atp_status (*stream_create)(struct atp_backend *backend, enum atp_stream_role role,
                                     void **out, struct atp_error *err);
    void (*stream_destroy)(struct atp_backend *backend, void *stream);
    enum atp_status (*event_create)(struct atp_backend *backend, bool timed, void **out,
                                    struct atp_error *err);
    /* Streams and events may be destroyed while work on them is queued: it is still done. */
    void (*event_destroy)(struct atp_backend *backend, void *event);
    /* Queues a copy between arena and pinned memory, bytes > 0; both must stay until the stream has
     * passed it. */
    enum atp_status (*copy)(struct atp_backend *backend, void *stream, void *to, const void *from,
                            uint64_t bytes, enum atp_copy direction, struct atp_error *err);
    /* Queues a fill of device bytes with one byte value, bytes > 0. */
    enum atp_status (*fill)(struct atp_backend *backend, void *stream, void *to, uint8_t value,
                            uint64_t bytes, struct atp_error *err);
    /* Marks the stream's present end in the event. */
    enum atp_status (*event_record)(struct atp_backend *backend, void *event, void *stream,
                                    struct atp_error *err);
    /* Later work on the stream waits for the event's record that is the last one now; later records
     * of it do not matter, and without any there is nothing to wait for. The host does not wait,
     * except that a compute stream that is the calling thread itself (host backend) does. */
    enum atp_status (*stream_wait)(struct atp_backend *backend, void *stream, void *event,
                                   struct atp_error *err);
    /* The host waits until all work on the stream is done. */
    enum atp_status (*stream_sync)(struct atp_backend *backend, void *stream,
                                   struct atp_error *err);
    /* Nanoseconds from one record to another, of events that are timed and have passed (after
     * stream_sync); any others are an error. */
    enum atp_status (*event_elapsed)(struct atp_backend *backend, void *start, void *end,
                                     int64_t *out_ns, struct atp_error *err);
    /* From here on work on the stream, and on streams that wait for events recorded in it, is
     * written into a graph and not done, until capture_end of the same stream by the same thread.
     * Such streams must be waited for by this one before that. Events recorded within are good for
     * waits within alone. ATP_ERR_UNSUPPORTED where the backend has no graphs. */
    enum atp_status (*capture_begin)(struct atp_backend *backend, void *stream,
                                     struct atp_error *err);
    /* Ends the capture, whatever it returns. ATP_ERR_UNSUPPORTED when the work cannot be a graph:
     * it synchronised, took memory, or left a stream that was not waited for. */
    enum atp_status (*capture_end)(struct atp_backend *backend, void *stream, void **out_graph,
                                   struct atp_error *err);
    /* Queues the work of a graph: after all earlier work of the stream, before all later. */
    enum atp_status (*graph_launch)(struct atp_backend *backend, void *graph, void *stream,
                                    struct atp_error *err);
    /* Allowed while launches of it are queued: they are still done. */
    void (*graph_destroy)(struct atp_backend *backend, void *graph);
};

/* First member of each concrete backend. */
struct atp_backend {
    const struct atp_backend_ops *ops;
};

/* How the host backend runs copies. The compute stream is the calling thread in all of them. */
enum atp_host_copies {
    ATP_HOST_EAGER, /* at once, in the call */
    ATP_HOST_LATE, /* as late as legal: only when a wait or sync forces them, so that a missing wait
                      gives wrong bytes every time */
    ATP_HOST_THREADS /* one thread per copy stream, with random delays */
};

struct atp_host_options {
    enum atp_host_copies copies;
    uint64_t seed; /* of the delays */
    uint32_t
        delay_max_us; /* threads: each copy is delayed by 0 to this many microseconds; 0: none */
    uint64_t
        bytes_per_second; /* threads: copies take at least bytes / this; 0: as fast as memcpy */
};

/* A backend on the CPU: device and pinned memory are both plain memory. `options` NULL means eager.
 * The caller releases it with atp_backend_destroy. ATP_ERR_NO_MEMORY. */
ATP_API ATP_MUST_USE enum atp_status atp_backend_host_create(const struct atp_host_options *options,
                                                             struct atp_backend **out,
                                                             struct atp_error *err);

/* A backend on a CUDA device through the driver API, loaded when called: ATP_ERR_UNSUPPORTED with
 * the reason when this build has no CUDA backend or the machine no driver or device;
 * ATP_ERR_INVALID when it has no device of that number; ATP_ERR_NO_MEMORY; ATP_ERR_DEVICE with
 * CUDA's name and text. Retains the device's primary context, which the CUDA runtime API and
 * frameworks use too, until the backend is destroyed; what the calling thread has made current
 * stays so. Pinned memory comes from the NUMA node that the device is attached to, where the system
 * tells it and the node has room, unless the thread has a memory policy of its own (numactl). */
ATP_API ATP_MUST_USE enum atp_status atp_backend_cuda_create(int device, struct atp_backend **out,
                                                             struct atp_error *err);

/* NULL is allowed. */
ATP_API void atp_backend_destroy(struct atp_backend *backend);

#ifdef __cplusplus
}
#endif
#endif
