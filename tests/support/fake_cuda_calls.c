/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The functions of the driver that make, order and release. A release does its work even where its
 * call is made to fail, and so does a synchronisation: what they then return is the error of
 * something earlier.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda_state.h"

/* cuda.h names parameters in its own way. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

#define ALIGNMENT    ((size_t)256)
#define CONTEXTS_MAX 16

struct context_stack {
    CUcontext items[CONTEXTS_MAX];
    uint32_t count;
};

static _Thread_local struct context_stack contexts;
static char primary_tag, other_tag;

static CUcontext primary(void)
{
    return (CUcontext)(void *)&primary_tag;
}

CUcontext fake_cuda_other_context(void)
{
    return (CUcontext)(void *)&other_tag;
}

CUcontext fake_cuda_current(void)
{
    return contexts.count > 0 ? contexts.items[contexts.count - 1] : NULL;
}

static bool has_context(struct fake_state *state, const char *call)
{
    if (fake_cuda_current() != primary()) {
        fake_complain(state, FAKE_NO_CONTEXT, "%s: the primary context is not current", call);
        return false;
    }
    if (state->report.owner_count == 0) {
        fake_complain(state, FAKE_NO_CONTEXT, "%s: the primary context is not retained", call);
        return false;
    }
    return true;
}

CUresult fake_begin_in_context(struct fake_state *state, enum fake_call call, const char *name)
{
    CUresult result = fake_begin(state, call);
    return has_context(state, name) ? result : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult fake_end(struct fake_state *state, CUresult result)
{
    fake_unlock(state);
    return result;
}

/* ---- errors, devices, contexts ---- */

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    struct fake_state *state = fake_lock();
    (void)fake_begin(state, FAKE_cuGetErrorName);
    *pStr =
        error == CUDA_ERROR_OUT_OF_MEMORY                ? "CUDA_ERROR_OUT_OF_MEMORY"
        : error == CUDA_ERROR_LAUNCH_FAILED              ? "CUDA_ERROR_LAUNCH_FAILED"
        : error == CUDA_ERROR_NO_DEVICE                  ? "CUDA_ERROR_NO_DEVICE"
        : error == CUDA_ERROR_INVALID_VALUE              ? "CUDA_ERROR_INVALID_VALUE"
        : error == CUDA_ERROR_INVALID_HANDLE             ? "CUDA_ERROR_INVALID_HANDLE"
        : error == CUDA_ERROR_NOT_READY                  ? "CUDA_ERROR_NOT_READY"
        : error == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
        : error == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
        : error == CUDA_ERROR_STREAM_CAPTURE_UNJOINED    ? "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
        : error == CUDA_ERROR_STREAM_CAPTURE_ISOLATION   ? "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"
                                                         : NULL;
    return fake_end(state, *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    struct fake_state *state = fake_lock();
    (void)fake_begin(state, FAKE_cuGetErrorString);
    *pStr = error == CUDA_ERROR_OUT_OF_MEMORY   ? "out of memory"
            : error == CUDA_ERROR_LAUNCH_FAILED ? "unspecified launch failure"
            : error == CUDA_ERROR_NO_DEVICE     ? "no CUDA-capable device is detected"
                                                : NULL;
    return fake_end(state, *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuInit(unsigned int Flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuInit);
    if (result == CUDA_SUCCESS && Flags != 0) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && state->options.has_no_device) {
        result = CUDA_ERROR_NO_DEVICE;
    }
    return fake_end(state, result);
}

CUresult cuDeviceGetCount(int *count)
{
    struct fake_state *state = fake_lock();
    *count = 1;
    return fake_end(state, fake_begin(state, FAKE_cuDeviceGetCount));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuDeviceGet);
    *device = ordinal;
    return fake_end(state,
                    result == CUDA_SUCCESS && ordinal != 0 ? CUDA_ERROR_INVALID_DEVICE : result);
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuDeviceGetPCIBusId);
    const char *address = state->options.pci_address;
    (void)dev;
    if (result == CUDA_SUCCESS) {
        (void)snprintf(pciBusId, (size_t)len, "%s", address != NULL ? address : "0000:C1:00.0");
    }
    return fake_end(state, result);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuDevicePrimaryCtxRetain);
    (void)dev;
    if (result == CUDA_SUCCESS) {
        *pctx = primary();
        state->report.owner_count++;
    }
    return fake_end(state, result);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuDevicePrimaryCtxRelease);
    (void)device;
    if (state->report.owner_count == 0) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "the primary context is released too often");
        return fake_end(state, CUDA_ERROR_INVALID_CONTEXT);
    }
    if (--state->report.owner_count == 0) {
        fake_find_leaks(state);
    }
    return fake_end(state, result);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuCtxPushCurrent);
    if (context == primary() && state->report.owner_count == 0) {
        fake_complain(state, FAKE_NO_CONTEXT, "the primary context is pushed but not retained");
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result == CUDA_SUCCESS) {
        if (contexts.count == CONTEXTS_MAX) {
            abort();
        }
        contexts.items[contexts.count++] = context;
    }
    return fake_end(state, result);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    struct fake_state *state = fake_lock();
    CUresult result = fake_begin(state, FAKE_cuCtxPopCurrent);
    if (contexts.count == 0) {
        fake_complain(state, FAKE_NO_CONTEXT, "a pop with nothing pushed");
        return fake_end(state, CUDA_ERROR_INVALID_CONTEXT);
    }
    *context = contexts.items[--contexts.count];
    return fake_end(state, result);
}

/* ---- memory ---- */

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemGetInfo);
    *total_bytes = state->options.device_bytes;
    *free_bytes = state->options.device_bytes - state->device_used_bytes;
    return fake_end(state, result);
}

static CUresult take(struct fake_state *state, uint64_t bytes, bool is_pinned, void **out)
{
    uint64_t *used_bytes = is_pinned ? &state->pinned_used_bytes : &state->device_used_bytes;
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (++state->allocation_count == state->options.failing_allocation ||
        bytes > state->options.device_bytes - *used_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* Behind it lies nothing of ours: what leaves it must not land in another. */
    size_t rounded = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct fake_block *block = (struct fake_block *)fake_must(calloc(1, sizeof(*block)));
    block->address = (uint8_t *)fake_must(aligned_alloc(ALIGNMENT, rounded));
    block->bytes = bytes;
    block->is_pinned = is_pinned;
    block->next = state->blocks;
    state->blocks = block;
    memset(block->address, 0xCD, bytes); /* undefined, but always in the same way */
    race_add_memory(state->races, (uintptr_t)block->address, bytes);
    *used_bytes += bytes;
    state->report.live_count++;
    *out = block->address;
    return CUDA_SUCCESS;
}

static CUresult give_back(struct fake_state *state, uintptr_t address, bool is_pinned)
{
    struct fake_block *block = fake_block_at(state, address);
    if (block == NULL || (uintptr_t)block->address != address || block->is_pinned != is_pinned ||
        block->is_dead) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "no such %s memory is there to be freed",
                      is_pinned ? "pinned" : "device");
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct fake_access all = {block->address, block->bytes, true};
    race_tick(state->races, RACE_HOST);
    fake_access(state, NULL, "free", &all, FAKE_FREED_IN_USE);
    block->is_dead = true;
    *(is_pinned ? &state->pinned_used_bytes : &state->device_used_bytes) -= block->bytes;
    state->report.live_count--;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemAlloc);
    void *memory = NULL;
    if (result == CUDA_SUCCESS) {
        result = fake_capture_forbids(state);
    }
    if (result == CUDA_SUCCESS) {
        result = take(state, bytes, false, &memory);
    }
    *out = (CUdeviceptr)memory;
    return fake_end(state, result);
}

CUresult cuMemFree(CUdeviceptr memory)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemFree);
    CUresult freed = fake_capture_forbids(state);
    if (freed == CUDA_SUCCESS) {
        freed = give_back(state, (uintptr_t)memory, false);
    }
    return fake_end(state, result != CUDA_SUCCESS ? result : freed);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemHostAlloc);
    if (result == CUDA_SUCCESS) {
        result = fake_capture_forbids(state);
    }
    if (result == CUDA_SUCCESS) {
        result = (Flags & ~(unsigned)CU_MEMHOSTALLOC_PORTABLE) != 0
                     ? CUDA_ERROR_INVALID_VALUE
                     : take(state, bytesize, true, pp);
    }
    return fake_end(state, result);
}

CUresult cuMemFreeHost(void *p)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemFreeHost);
    CUresult freed = give_back(state, (uintptr_t)p, true);
    return fake_end(state, result != CUDA_SUCCESS ? result : freed);
}

/* ---- streams and events ---- */

struct fake_stream *fake_find_stream(struct fake_state *state, const void *handle, const char *call)
{
    struct fake_stream *stream = state->streams;
    while (stream != NULL && stream != handle) {
        stream = stream->next;
    }
    if (stream == NULL || stream->is_dead) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "%s: no such stream, or no more", call);
        return NULL;
    }
    return stream;
}

static struct fake_event *find_event(struct fake_state *state, const void *handle, const char *call)
{
    struct fake_event *event = state->events;
    while (event != NULL && event != handle) {
        event = event->next;
    }
    if (event == NULL || event->is_dead) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "%s: no such event, or no more", call);
        return NULL;
    }
    return event;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamCreate);
    if (result == CUDA_SUCCESS && flags > CU_STREAM_NON_BLOCKING) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *out = (CUstream)(void *)fake_stream_make(state);
        state->report.live_count++;
    }
    return fake_end(state, result);
}

CUresult cuStreamDestroy(CUstream handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamDestroy);
    struct fake_stream *stream = fake_find_stream(state, handle, "cuStreamDestroy");
    if (stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    stream->is_dead = true;
    race_retire_agent(state->races, stream->agent);
    state->report.live_count--;
    return fake_end(state, result);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamSynchronize);
    struct fake_stream *stream = fake_find_stream(state, handle, "cuStreamSynchronize");
    if (stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    CUresult forbidden = fake_capture_forbids_sync(stream);
    if (forbidden != CUDA_SUCCESS) {
        return fake_end(state, forbidden);
    }
    race_learn(state->races, RACE_HOST, race_clock_of(state->races, stream->agent));
    fake_reach(state, stream, stream->queued);
    return fake_end(state, result);
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuEventCreate);
    if (result == CUDA_SUCCESS) {
        struct fake_event *event = (struct fake_event *)fake_must(calloc(1, sizeof(*event)));
        event->is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
        event->next = state->events;
        state->events = event;
        state->report.live_count++;
        *out = (CUevent)(void *)event;
    }
    return fake_end(state, result);
}

CUresult cuEventDestroy(CUevent handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuEventDestroy);
    struct fake_event *event = find_event(state, handle, "cuEventDestroy");
    if (event == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    event->is_dead = true;
    state->report.live_count--;
    return fake_end(state, result);
}

void fake_issue(struct fake_state *state, const struct fake_stream *stream)
{
    race_learn(state->races, stream->agent, race_clock_of(state->races, RACE_HOST));
    race_tick(state->races, stream->agent);
}

CUresult cuEventRecord(CUevent event_handle, CUstream stream_handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuEventRecord);
    struct fake_stream *stream = fake_find_stream(state, stream_handle, "cuEventRecord");
    struct fake_event *event = find_event(state, event_handle, "cuEventRecord");
    if (stream == NULL || event == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        return fake_end(state, fake_capture_record(stream, event));
    }
    if (result == CUDA_SUCCESS) {
        fake_issue(state, stream);
        event->capture = NULL;
        event->is_recorded = true;
        event->has_passed = false;
        event->stream = stream;
        event->position = stream->queued + 1;
        event->clock = *race_clock_of(state->races, stream->agent);
        event->generation++;
        struct fake_job job = {
            .kind = FAKE_JOB_RECORD, .event = event, .generation = event->generation};
        fake_push(stream, &job);
    }
    return fake_end(state, result);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamWaitEvent);
    struct fake_stream *stream = fake_find_stream(state, stream_handle, "cuStreamWaitEvent");
    const struct fake_event *event = find_event(state, event_handle, "cuStreamWaitEvent");
    (void)flags;
    if (stream == NULL || event == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (result != CUDA_SUCCESS || ++state->report.wait_count == state->options.lost_wait) {
        return fake_end(state, result);
    }
    if (stream->capture != NULL || event->capture != NULL) {
        return fake_end(state, fake_capture_wait(stream, event));
    }
    if (!event->is_recorded) {
        fake_complain(state, FAKE_UNRECORDED_WAIT, "stream %u waits for nothing", stream->agent);
        return fake_end(state, result);
    }
    fake_issue(state, stream);
    race_learn(state->races, stream->agent, &event->clock);
    struct fake_job job = {
        .kind = FAKE_JOB_WAIT, .other = event->stream, .position = event->position};
    fake_push(stream, &job);
    return fake_end(state, result);
}

CUresult cuEventElapsedTime(float *ms, CUevent start_handle, CUevent end_handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuEventElapsedTime);
    const struct fake_event *start = find_event(state, start_handle, "cuEventElapsedTime");
    const struct fake_event *stop = find_event(state, end_handle, "cuEventElapsedTime");
    if (start == NULL || stop == NULL || !start->is_timed || !stop->is_timed ||
        !start->is_recorded || !stop->is_recorded) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (result == CUDA_SUCCESS && (start->capture != NULL || stop->capture != NULL)) {
        result = CUDA_ERROR_CAPTURED_EVENT;
    }
    if (result == CUDA_SUCCESS && (!start->has_passed || !stop->has_passed)) {
        result = CUDA_ERROR_NOT_READY;
    }
    if (result == CUDA_SUCCESS) {
        *ms = (float)((double)(stop->time_ns - start->time_ns) * 1e-6);
    }
    return fake_end(state, result);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
