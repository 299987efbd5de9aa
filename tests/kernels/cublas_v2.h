/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Likewise of cuBLAS, by OpenBLAS.
 */
#ifndef CUBLAS_V2_H
#define CUBLAS_V2_H

#include "cuda_runtime.h"

typedef struct products *cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_EXECUTION_FAILED };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t *out);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t turn_a,
                                         cublasOperation_t turn_b, int m, int n, int k,
                                         const float *scale, const float *a, int a_stride,
                                         long long a_step, const float *b, int b_stride,
                                         long long b_step, const float *kept, float *out,
                                         int out_stride, long long out_step, int count);

#endif
