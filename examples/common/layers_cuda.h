/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers on a CUDA device are made of. Three shapes of kernel: one thread a value, one
 * warp a row, one block for 32 columns.
 */
#ifndef LAYERS_CUDA_H
#define LAYERS_CUDA_H

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "layers.h"

#define BLOCK 256 /* threads */
#define WARP  32

struct device {
    cudaStream_t stream;
    cublasHandle_t blas;
    void *workspace;     /* of cuBLAS */
    const char *failure; /* the first one */
};

/* Blocks for one thread a value. */
static inline unsigned blocks_of(uint64_t count)
{
    return (unsigned)((count + BLOCK - 1) / BLOCK);
}

/* Blocks for one warp a row. */
static inline unsigned blocks_of_rows(uint64_t rows)
{
    return blocks_of(rows * WARP);
}

static inline __device__ uint64_t my_value(void)
{
    return (uint64_t)blockIdx.x * BLOCK + threadIdx.x;
}

static inline __device__ uint64_t my_row(void)
{
    return my_value() / WARP;
}

static inline __device__ uint32_t my_lane(void)
{
    return threadIdx.x % WARP;
}

/* The same for all lanes. */
static inline __device__ float warp_sum(float value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
    }
    return value;
}

static inline __device__ float warp_max(float value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, distance));
    }
    return value;
}

struct matrix {
    const float *values;
    uint64_t stride; /* from row to row as it is stored */
    bool transposed;
};

/* `count` products, each so far from the one before. */
struct batch {
    uint32_t count;
    uint64_t a, b, out;
};

struct result {
    float *values;
    uint64_t stride;
    bool adds; /* to what is there already */
};

/* out (m x n) = scale * a (m x k) * b (k x n); size is m, n, k. */
void multiply(struct device *device, const uint64_t size[3], struct matrix a, struct matrix b,
              float scale, struct result out, struct batch batch);
void multiply_one(struct device *device, const uint64_t size[3], struct matrix a, struct matrix b,
                  struct result out);

#endif
