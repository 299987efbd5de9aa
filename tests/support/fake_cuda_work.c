/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What touches bytes: copies, fills, kernels, and the host.
 */
#include <string.h>

#include "fake_cuda_state.h"

/* cuda.h names parameters in its own way. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

/* True when all of the bytes are in one live piece of memory of that kind. */
static bool is_there(struct fake_state *state, const struct fake_access *access, bool is_pinned,
                     const char *label)
{
    const struct fake_block *block = fake_block_at(state, (uintptr_t)access->address);
    if (block == NULL && is_pinned) {
        fake_complain(state, FAKE_UNPINNED, "%s: host memory that is not pinned", label);
    } else if (block == NULL || block->is_pinned != is_pinned) {
        fake_complain(state, FAKE_OUT_OF_RANGE, "%s: not in %s memory", label,
                      is_pinned ? "pinned" : "device");
    } else if (block->is_dead) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "%s: %s memory that has been freed", label,
                      is_pinned ? "pinned" : "device");
    } else if (access->bytes >
               block->bytes - ((uintptr_t)access->address - (uintptr_t)block->address)) {
        fake_complain(state, FAKE_OUT_OF_RANGE, "%s: beyond the end of %s memory", label,
                      is_pinned ? "pinned" : "device");
    } else {
        return true;
    }
    return false;
}

/* Reads `from` and writes `to`, either of which may be nothing. */
static CUresult queue(struct fake_state *state, struct fake_stream *stream, const char *label,
                      const struct fake_job *job)
{
    struct fake_access reads = {job->from, job->bytes, false};
    struct fake_access writes = {job->to, job->bytes, true};
    if (stream->capture != NULL) {
        struct fake_access both[] = {writes, reads};
        return fake_capture_work(stream, label, job, both, job->from != NULL ? 2 : 1);
    }
    fake_issue(state, stream);
    if (job->from != NULL) {
        fake_access(state, stream, label, &reads, FAKE_RACE);
    }
    fake_access(state, stream, label, &writes, FAKE_RACE);
    fake_push(stream, job);
    return CUDA_SUCCESS;
}

static CUresult copy(struct fake_state *state, CUresult result, CUstream handle, bool is_out,
                     const struct fake_job *job)
{
    const char *label = is_out ? "copy to the host" : "copy to the device";
    struct fake_access from = {job->from, job->bytes, false}, to = {job->to, job->bytes, true};
    struct fake_stream *stream = fake_find_stream(state, handle, label);
    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    bool is_good = is_there(state, &from, !is_out, label);
    is_good = is_there(state, &to, is_out, label) && is_good;
    if (!is_good) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result == CUDA_SUCCESS ? queue(state, stream, label, job) : result;
}

/* The address behind the number that it is to the driver. */
static void *pointer(CUdeviceptr address)
{
    void *pointer;
    memcpy(&pointer, &address, sizeof(pointer));
    return pointer;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct fake_state *state = fake_lock();
    struct fake_job job = {.kind = FAKE_JOB_COPY, .to = to, .from = pointer(from), .bytes = bytes};
    return fake_end(state, copy(state, FAKE_BEGIN(state, cuMemcpyDtoHAsync), stream, true, &job));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    struct fake_state *state = fake_lock();
    struct fake_job job = {.kind = FAKE_JOB_COPY, .to = pointer(to), .from = from, .bytes = bytes};
    return fake_end(state, copy(state, FAKE_BEGIN(state, cuMemcpyHtoDAsync), stream, false, &job));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuMemsetD8Async);
    struct fake_stream *stream = fake_find_stream(state, handle, "fill");
    struct fake_job job = {
        .kind = FAKE_JOB_FILL, .to = pointer(to), .value = value, .bytes = bytes};
    struct fake_access writes = {job.to, bytes, true};
    if (stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (!is_there(state, &writes, false, "fill")) {
        return fake_end(state, CUDA_ERROR_INVALID_VALUE);
    }
    return fake_end(state, result == CUDA_SUCCESS ? queue(state, stream, "fill", &job) : result);
}

bool fake_cuda_launch(void *handle, const char *label, const struct fake_access *accesses,
                      uint32_t access_count, void (*work)(void *ctx), void *ctx)
{
    struct fake_state *state = fake_lock();
    struct fake_stream *stream = fake_find_stream(state, handle, label);
    bool is_good = stream != NULL;
    for (uint32_t a = 0; a < access_count; a++) {
        const struct fake_block *block = fake_block_at(state, (uintptr_t)accesses[a].address);
        bool is_pinned = block != NULL && block->is_pinned;
        is_good = is_there(state, &accesses[a], is_pinned, label) && is_good;
    }
    struct fake_job job = {.kind = FAKE_JOB_KERNEL, .work = work, .ctx = ctx};
    if (is_good && stream->capture != NULL) {
        is_good = fake_capture_work(stream, label, &job, accesses, access_count) == CUDA_SUCCESS;
    } else if (is_good) {
        fake_issue(state, stream);
        for (uint32_t a = 0; a < access_count; a++) {
            fake_access(state, stream, label, &accesses[a], FAKE_RACE);
        }
        fake_push(stream, &job);
    }
    fake_unlock(state);
    return is_good;
}

void fake_cuda_touch(const void *address, uint64_t bytes, bool is_write)
{
    struct fake_state *state = fake_lock();
    struct fake_access access = {address, bytes, is_write};
    if (is_there(state, &access, true, "the host")) {
        race_tick(state->races, RACE_HOST);
        fake_access(state, NULL, is_write ? "writing" : "reading", &access, FAKE_RACE);
    }
    fake_unlock(state);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
