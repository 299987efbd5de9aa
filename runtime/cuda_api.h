/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the CUDA driver that the CUDA backend calls, as a table: filled from the
 * machine's driver at run time, so that one binary runs with and without a GPU, or by a test with a
 * driver of its own. The only header that includes cuda.h.
 */
#ifndef ATP_CUDA_API_H
#define ATP_CUDA_API_H

#include <cuda.h>

#include <atp/backend.h>

/* Names as one writes them; cuda.h renames some (cuMemAlloc is cuMemAlloc_v2). What a driver may
 * lack is NULL in the table then. */
/* clang-format off */
#define CUDA_API_REQUIRED(X)     \
    X(cuGetErrorName)            \
    X(cuGetErrorString)          \
    X(cuInit)                    \
    X(cuDeviceGetCount)          \
    X(cuDeviceGet)               \
    X(cuDeviceGetPCIBusId)       \
    X(cuDevicePrimaryCtxRetain)  \
    X(cuDevicePrimaryCtxRelease) \
    X(cuCtxPushCurrent)          \
    X(cuCtxPopCurrent)           \
    X(cuMemGetInfo)              \
    X(cuMemAlloc)                \
    X(cuMemFree)                 \
    X(cuMemHostAlloc)            \
    X(cuMemFreeHost)             \
    X(cuStreamCreate)            \
    X(cuStreamDestroy)           \
    X(cuStreamWaitEvent)         \
    X(cuStreamSynchronize)       \
    X(cuEventCreate)             \
    X(cuEventDestroy)            \
    X(cuEventRecord)             \
    X(cuEventElapsedTime)        \
    X(cuMemcpyDtoHAsync)         \
    X(cuMemcpyHtoDAsync)         \
    X(cuMemsetD8Async)
/* Since CUDA 11.4 all of them. */
#define CUDA_API_GRAPHS(X)         \
    X(cuStreamBeginCapture)        \
    X(cuStreamEndCapture)          \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphUpload)               \
    X(cuGraphLaunch)               \
    X(cuGraphExecDestroy)          \
    X(cuGraphDestroy)
/* clang-format on */
#define CUDA_API_SYMBOLS(X) CUDA_API_REQUIRED(X) CUDA_API_GRAPHS(X)

struct cuda_api {
#define CUDA_API_MEMBER(name) __typeof__(&(name)) name; /* NOLINT(bugprone-macro-parentheses) */
    CUDA_API_SYMBOLS(CUDA_API_MEMBER)
#undef CUDA_API_MEMBER
};

/* Loads `library` ("libcuda.so.1") and fills the table. The library stays loaded for good: its
 * threads and exit handlers do not survive unloading. ATP_ERR_UNSUPPORTED with the reason when it
 * cannot be loaded or lacks a function; nothing is kept then. */
ATP_MUST_USE enum atp_status cuda_api_load(const char *library, struct cuda_api *out_api,
                                           struct atp_error *err);

/* What a driver call that did not succeed means: `call` says what was tried. "CUDA: CALL:
 * CUDA_ERROR_NAME (text)". ATP_ERR_UNSUPPORTED where there is no device or only a stub of the
 * driver, and where a stream that is being captured forbids the call; ATP_ERR_NO_MEMORY where
 * memory ran out; else ATP_ERR_DEVICE. */
ATP_MUST_USE enum atp_status cuda_api_fail(const struct cuda_api *api, CUresult result,
                                           const char *call, struct atp_error *err);

/* A backend on the device with that number of the driver in the table, which is copied. */
ATP_MUST_USE enum atp_status cuda_backend_create(const struct cuda_api *api, int device,
                                                 struct atp_backend **out, struct atp_error *err);

/* The same on a system of one's own, which is borrowed. */
struct numa_system;
ATP_MUST_USE enum atp_status cuda_backend_create_on(const struct cuda_api *api,
                                                    const struct numa_system *numa, int device,
                                                    struct atp_backend **out,
                                                    struct atp_error *err);

#endif
