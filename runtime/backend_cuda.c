/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of a backend on the CUDA driver API, a few calls each. The device's primary
 * context is the one that the CUDA runtime API and the frameworks on it use, so that streams and
 * addresses pass to and from them. It is current only while a call of ours runs: what the caller
 * had made current is so again afterwards, whatever happened.
 *
 * A driver call may return the error of earlier asynchronous work in place of its own. An operation
 * then fails, and undoes what it made; a release tries once more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"
#include "fail.h"
#include "numa.h"

#define DRIVER "libcuda.so.1"

struct cuda_backend {
    struct atp_backend base;
    struct cuda_api api;
    CUdevice device;
    CUcontext context; /* the primary one, retained */
    const struct numa_system *numa;
    int node; /* that the device is attached to, or NUMA_NONE */
};

static struct cuda_backend *cuda_of(struct atp_backend *base)
{
    return (struct cuda_backend *)base;
}

static enum atp_status enter(struct cuda_backend *b, struct atp_error *err)
{
    CUresult result = b->api.cuCtxPushCurrent(b->context);
    return result == CUDA_SUCCESS ? ATP_OK
                                  : cuda_api_fail(&b->api, result, "cuCtxPushCurrent", err);
}

/* Ends what enter began; `result` is that of `call`, which was made in between. */
static enum atp_status leave(struct cuda_backend *b, CUresult result, const char *call,
                             struct atp_error *err)
{
    CUcontext popped;
    CUresult pop = b->api.cuCtxPopCurrent(&popped);
    if (result != CUDA_SUCCESS) {
        return cuda_api_fail(&b->api, result, call, err);
    }
    return pop == CUDA_SUCCESS ? ATP_OK : cuda_api_fail(&b->api, pop, "cuCtxPopCurrent", err);
}

/* For releases. False: the device is gone, and what was on it too. */
static bool enter_release(struct cuda_backend *b)
{
    CUresult result = b->api.cuCtxPushCurrent(b->context);
    if (result != CUDA_SUCCESS) {
        result = b->api.cuCtxPushCurrent(b->context);
    }
    return result == CUDA_SUCCESS;
}

static void leave_release(struct cuda_backend *b)
{
    CUcontext popped;
    (void)b->api.cuCtxPopCurrent(&popped);
}

static void cuda_destroy(struct atp_backend *base)
{
    struct cuda_backend *b = cuda_of(base);
    (void)b->api.cuDevicePrimaryCtxRelease(b->device);
    free(b);
}

static void cuda_arena_free(struct atp_backend *base, void *arena)
{
    struct cuda_backend *b = cuda_of(base);
    if (enter_release(b)) {
        (void)b->api.cuMemFree((CUdeviceptr)arena);
        leave_release(b);
    }
}

/* "cuMemAlloc of N bytes of device memory, F of T free". Within enter and leave. */
static void describe_alloc(struct cuda_backend *b, uint64_t bytes, char *text, size_t text_bytes)
{
    size_t free_bytes, total_bytes;
    if (b->api.cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS) {
        (void)snprintf(text, text_bytes,
                       "cuMemAlloc of %llu bytes of device memory, %zu of %zu free",
                       (unsigned long long)bytes, free_bytes, total_bytes);
    } else {
        (void)snprintf(text, text_bytes, "cuMemAlloc of %llu bytes of device memory",
                       (unsigned long long)bytes);
    }
}

static enum atp_status cuda_arena_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                        struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    CUdeviceptr arena = 0;
    void *address;
    char call[160] = "cuMemAlloc";
    *out = NULL;
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuMemAlloc(&arena, bytes);
    memcpy(&address, &arena, sizeof(address)); /* to the driver an address is a number */
    if (result != CUDA_SUCCESS) {
        describe_alloc(b, bytes, call, sizeof(call));
    }
    enum atp_status left = leave(b, result, call, err);
    if (left == ATP_OK) {
        *out = address;
    } else if (result == CUDA_SUCCESS) {
        cuda_arena_free(base, address);
    }
    return left;
}

static void cuda_host_free(struct atp_backend *base, void *memory)
{
    struct cuda_backend *b = cuda_of(base);
    if (enter_release(b)) {
        (void)b->api.cuMemFreeHost(memory);
        leave_release(b);
    }
}

/* "cuMemHostAlloc of N bytes of pinned memory, this machine has T". */
static void describe_host_alloc(uint64_t bytes, char *text, size_t text_bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    int length = snprintf(text, text_bytes, "cuMemHostAlloc of %llu bytes of pinned memory",
                          (unsigned long long)bytes);
    if (pages > 0 && page_bytes > 0 && length > 0 && (size_t)length < text_bytes) {
        (void)snprintf(text + length, text_bytes - (size_t)length, ", this machine has %llu",
                       (unsigned long long)pages * (unsigned long long)page_bytes);
    }
}

static enum atp_status cuda_host_alloc(struct atp_backend *base, uint64_t bytes, void **out,
                                       struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    void *memory = NULL;
    char call[128] = "cuMemHostAlloc";
    *out = NULL;
    ATP_TRY(enter(b, err));
    /* Near the device, and portable: pinned for every context of the process, and so for the
     * caller's other devices. The driver takes the pages within the call. */
    bool is_near = numa_enter(b->numa, b->node);
    CUresult result = b->api.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (is_near) {
        numa_leave(b->numa);
    }
    if (result != CUDA_SUCCESS) {
        describe_host_alloc(bytes, call, sizeof(call));
    }
    enum atp_status left = leave(b, result, call, err);
    if (left == ATP_OK) {
        *out = memory;
    } else if (result == CUDA_SUCCESS) {
        cuda_host_free(base, memory);
    }
    return left;
}

static void cuda_stream_destroy(struct atp_backend *base, void *stream)
{
    struct cuda_backend *b = cuda_of(base);
    if (enter_release(b)) {
        (void)b->api.cuStreamDestroy((CUstream)stream);
        leave_release(b);
    }
}

/* Non-blocking: a stream that met the default stream would wait for whatever the program runs
 * there. */
static enum atp_status cuda_stream_create(struct atp_backend *base, enum atp_stream_role role,
                                          void **out, struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    CUstream stream = NULL;
    (void)role;
    *out = NULL;
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    enum atp_status left = leave(b, result, "cuStreamCreate", err);
    if (left == ATP_OK) {
        *out = stream;
    } else if (result == CUDA_SUCCESS) {
        cuda_stream_destroy(base, stream);
    }
    return left;
}

static void cuda_event_destroy(struct atp_backend *base, void *event)
{
    struct cuda_backend *b = cuda_of(base);
    if (enter_release(b)) {
        (void)b->api.cuEventDestroy((CUevent)event);
        leave_release(b);
    }
}

static enum atp_status cuda_event_create(struct atp_backend *base, bool timed, void **out,
                                         struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    CUevent event = NULL;
    *out = NULL;
    ATP_TRY(enter(b, err));
    CUresult result =
        b->api.cuEventCreate(&event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    enum atp_status left = leave(b, result, "cuEventCreate", err);
    if (left == ATP_OK) {
        *out = event;
    } else if (result == CUDA_SUCCESS) {
        cuda_event_destroy(base, event);
    }
    return left;
}

static enum atp_status cuda_copy(struct atp_backend *base, void *stream, void *to, const void *from,
                                 uint64_t bytes, enum atp_copy direction, struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    if (direction == ATP_COPY_TO_HOST) {
        CUresult result = b->api.cuMemcpyDtoHAsync(to, (CUdeviceptr)from, bytes, (CUstream)stream);
        return leave(b, result, "cuMemcpyDtoHAsync", err);
    }
    CUresult result = b->api.cuMemcpyHtoDAsync((CUdeviceptr)to, from, bytes, (CUstream)stream);
    return leave(b, result, "cuMemcpyHtoDAsync", err);
}

static enum atp_status cuda_fill(struct atp_backend *base, void *stream, void *to, uint8_t value,
                                 uint64_t bytes, struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuMemsetD8Async((CUdeviceptr)to, value, bytes, (CUstream)stream);
    return leave(b, result, "cuMemsetD8Async", err);
}

static enum atp_status cuda_event_record(struct atp_backend *base, void *event, void *stream,
                                         struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuEventRecord((CUevent)event, (CUstream)stream);
    return leave(b, result, "cuEventRecord", err);
}

static enum atp_status cuda_stream_wait(struct atp_backend *base, void *stream, void *event,
                                        struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuStreamWaitEvent((CUstream)stream, (CUevent)event, 0);
    return leave(b, result, "cuStreamWaitEvent", err);
}

static enum atp_status cuda_stream_sync(struct atp_backend *base, void *stream,
                                        struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuStreamSynchronize((CUstream)stream);
    return leave(b, result, "cuStreamSynchronize", err);
}

static enum atp_status cuda_event_elapsed(struct atp_backend *base, void *start, void *end,
                                          int64_t *out_ns, struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    float ms = 0;
    *out_ns = 0;
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuEventElapsedTime(&ms, (CUevent)start, (CUevent)end);
    ATP_TRY(leave(b, result, "cuEventElapsedTime", err));
    /* The driver resolves half a microsecond; a float of milliseconds holds that up to 8 s. */
    *out_ns = (int64_t)((double)ms * 1e6);
    return ATP_OK;
}

static enum atp_status cuda_capture_begin(struct atp_backend *base, void *stream,
                                          struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    const struct cuda_api *api = &b->api;
    if (api->cuStreamBeginCapture == NULL || api->cuStreamEndCapture == NULL ||
        api->cuGraphInstantiateWithFlags == NULL || api->cuGraphUpload == NULL ||
        api->cuGraphLaunch == NULL || api->cuGraphExecDestroy == NULL ||
        api->cuGraphDestroy == NULL) {
        return atp_fail(err, ATP_ERR_UNSUPPORTED,
                        "CUDA: the driver is too old for graphs, which came with CUDA 11.4");
    }
    ATP_TRY(enter(b, err));
    /* Thread local: other threads, such as loaders of data, are not held to what a capture forbids;
     * steps are, so that a forbidden call is an error and not a graph that lacks it. */
    CUresult result =
        api->cuStreamBeginCapture((CUstream)stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    enum atp_status left = leave(b, result, "cuStreamBeginCapture", err);
    if (left != ATP_OK && result == CUDA_SUCCESS && enter_release(b)) {
        CUgraph graph = NULL;
        (void)api->cuStreamEndCapture((CUstream)stream, &graph);
        if (graph != NULL) {
            (void)api->cuGraphDestroy(graph);
        }
        leave_release(b);
    }
    return left;
}

static void cuda_graph_destroy(struct atp_backend *base, void *graph)
{
    struct cuda_backend *b = cuda_of(base);
    if (enter_release(b)) {
        (void)b->api.cuGraphExecDestroy((CUgraphExec)graph);
        leave_release(b);
    }
}

/* Within enter and leave. The first call may have returned an older error and left the stream in
 * its capture; of a capture that is over the second gets an error that does not matter. */
static CUresult end_capture(struct cuda_backend *b, CUstream stream, CUgraph *out)
{
    CUgraph late = NULL;
    *out = NULL;
    CUresult result = b->api.cuStreamEndCapture(stream, out);
    if (result != CUDA_SUCCESS) {
        (void)b->api.cuStreamEndCapture(stream, &late);
        if (late != NULL) {
            (void)b->api.cuGraphDestroy(late);
        }
    }
    return result;
}

static enum atp_status cuda_capture_end(struct atp_backend *base, void *stream, void **out_graph,
                                        struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    const char *call = "cuStreamEndCapture of what the steps queued";
    CUgraph graph;
    CUgraphExec exec = NULL;
    *out_graph = NULL;
    if (!enter_release(b)) { /* once is not enough: the capture must end */
        return atp_fail(err, ATP_ERR_DEVICE, "CUDA: cuCtxPushCurrent failed to end a capture");
    }
    CUresult result = end_capture(b, (CUstream)stream, &graph);
    if (result == CUDA_SUCCESS) {
        call = "cuGraphInstantiateWithFlags";
        result = b->api.cuGraphInstantiateWithFlags(&exec, graph, 0);
        (void)b->api.cuGraphDestroy(graph); /* the other one does not need it */
    }
    if (result == CUDA_SUCCESS) {
        call = "cuGraphUpload"; /* so that the first launch does not have to */
        result = b->api.cuGraphUpload(exec, (CUstream)stream);
    }
    enum atp_status left = leave(b, result, call, err);
    if (left != ATP_OK && exec != NULL) {
        cuda_graph_destroy(base, exec);
        return left;
    }
    *out_graph = exec;
    return left;
}

static enum atp_status cuda_graph_launch(struct atp_backend *base, void *graph, void *stream,
                                         struct atp_error *err)
{
    struct cuda_backend *b = cuda_of(base);
    ATP_TRY(enter(b, err));
    CUresult result = b->api.cuGraphLaunch((CUgraphExec)graph, (CUstream)stream);
    return leave(b, result, "cuGraphLaunch", err);
}

static const struct atp_backend_ops cuda_ops = {
    .destroy = cuda_destroy,
    .arena_alloc = cuda_arena_alloc,
    .arena_free = cuda_arena_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .event_record = cuda_event_record,
    .stream_wait = cuda_stream_wait,
    .stream_sync = cuda_stream_sync,
    .event_elapsed = cuda_event_elapsed,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
};

static void find_node(struct cuda_backend *b)
{
    char address[32] = "";
    b->node = NUMA_NONE;
    if (b->api.cuDeviceGetPCIBusId(address, sizeof(address), b->device) == CUDA_SUCCESS) {
        address[sizeof(address) - 1] = '\0';
        b->node = numa_node_of(b->numa, address);
    }
}

/* Finds the device and retains its primary context. */
static enum atp_status attach(struct cuda_backend *b, int device, struct atp_error *err)
{
    char call[64];
    int count = 0;
    CUresult result = b->api.cuInit(0);
    if (result != CUDA_SUCCESS) {
        return cuda_api_fail(&b->api, result, "cuInit", err);
    }
    result = b->api.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) {
        return cuda_api_fail(&b->api, result, "cuDeviceGetCount", err);
    }
    if (count == 0) {
        return atp_fail(err, ATP_ERR_UNSUPPORTED, "CUDA: the driver sees no device");
    }
    if (device < 0 || device >= count) {
        return atp_fail(err, ATP_ERR_INVALID, "CUDA: there is no device %d; devices are 0 to %d",
                        device, count - 1);
    }
    (void)snprintf(call, sizeof(call), "cuDeviceGet of device %d", device);
    result = b->api.cuDeviceGet(&b->device, device);
    if (result != CUDA_SUCCESS) {
        return cuda_api_fail(&b->api, result, call, err);
    }
    (void)snprintf(call, sizeof(call), "cuDevicePrimaryCtxRetain of device %d", device);
    result = b->api.cuDevicePrimaryCtxRetain(&b->context, b->device);
    if (result != CUDA_SUCCESS) {
        return cuda_api_fail(&b->api, result, call, err);
    }
    find_node(b);
    return ATP_OK;
}

enum atp_status cuda_backend_create_on(const struct cuda_api *api, const struct numa_system *numa,
                                       int device, struct atp_backend **out, struct atp_error *err)
{
    *out = NULL;
    struct cuda_backend *b = (struct cuda_backend *)calloc(1, sizeof(*b));
    if (b == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "CUDA: no memory for a backend");
    }
    b->base.ops = &cuda_ops;
    b->api = *api;
    b->numa = numa;
    enum atp_status status = attach(b, device, err);
    if (status != ATP_OK) {
        free(b);
        return status;
    }
    *out = &b->base;
    return ATP_OK;
}

enum atp_status cuda_backend_create(const struct cuda_api *api, int device,
                                    struct atp_backend **out, struct atp_error *err)
{
    return cuda_backend_create_on(api, &numa_linux, device, out, err);
}

enum atp_status atp_backend_cuda_create(int device, struct atp_backend **out, struct atp_error *err)
{
    struct cuda_api api;
    *out = NULL;
    ATP_TRY(cuda_api_load(DRIVER, &api, err));
    return cuda_backend_create(&api, device, out, err);
}
