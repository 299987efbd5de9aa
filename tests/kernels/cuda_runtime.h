/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * As much of CUDA's runtime as the kernels of examples/ need, on the CPU: so that their tests run
 * where there is no device. Memory is the host's. All is done at once, when what a driver has in
 * the stream is done; that driver is a fake one, and there is none where all streams are NULL.
 * Launches KERNEL<<<...>>>(...) are made launch(KERNEL, ..., ...) by sed, for there is no such
 * operator.
 *
 * This says whether kernels compute what they should. It knows no two threads at once, so it says
 * nothing about times, and finds a race only where threads 0, 1, 2... one after the other give
 * something wrong.
 */
#ifndef CUDA_RUNTIME_H
#define CUDA_RUNTIME_H

#include <functional>
#include <math.h>
#include <stddef.h>

#define __global__
#define __device__
#define __host__
#define __shared__ static /* there is one block at a time */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z)
    {
    }
};
extern dim3 blockIdx, threadIdx;

/* All threads of a block, or of a warp, get here before one goes on. */
void __syncthreads();
void __syncwarp();
/* That of the lane whose number differs in these bits. */
float __shfl_xor_sync(unsigned mask, float value, int bits);

typedef void *cudaStream_t;
void launch_threads(dim3 blocks, dim3 threads, cudaStream_t stream,
                    const std::function<void()> &kernel);

template <typename type> struct same {
    typedef type as;
};

/* What the kernel takes decides the types, not what is given: NULL is a pointer. */
template <typename... types>
void launch(void (*kernel)(types...), dim3 blocks, dim3 threads, size_t, cudaStream_t stream,
            typename same<types>::as... arguments)
{
    launch_threads(blocks, threads, stream, [=] { kernel(arguments...); });
}

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration,
    cudaErrorInvalidResourceHandle
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

#endif
