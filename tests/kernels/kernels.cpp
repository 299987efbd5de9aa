/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Each thread of a block runs until it must wait for others; then it is left where it stands, on a
 * stack of its own, and the next one runs. When all have run, those that wait go on in turn, as far
 * as the next wait. Threads that wait for each other do so equally often, so they never get apart;
 * that a warp waits while another does not is no matter. Threads that never wait share one stack.
 */
#undef _FORTIFY_SOURCE /* what it asks of jumps holds for one stack */
#include "cublas_v2.h"
#include "cuda_runtime.h"

#include <cblas.h>
#include <dlfcn.h>
#include <memory>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <vector>

#define STACK_BYTES ((size_t)64 << 10)
#define THREADS_MAX 1024
#define FRESH_BYTE  0x7f /* fresh memory is full of it: floats of 3e38 */

dim3 blockIdx, threadIdx;

namespace
{

/* Runs threads; waits for its next one when there is none, through all launches. */
struct runner {
    jmp_buf place; /* where it stands */
    std::unique_ptr<char[]> stack;
    unsigned thread;
    bool waits; /* in the midst of a thread */
};

jmp_buf scheduler;
std::vector<std::unique_ptr<runner>> runners;
runner *current;
const std::function<void()> *kernel;
dim3 shape;
unsigned next_thread, thread_count;
float exchanged[THREADS_MAX];
cudaError_t last_error = cudaSuccess; /* of a launch */

/* Contexts of the system are for beginnings only: it is asked for each of their switches. */
void leave(runner *self)
{
    if (_setjmp(self->place) == 0) {
        _longjmp(scheduler, 1);
    }
}

void set_thread(unsigned thread)
{
    threadIdx = dim3(thread % shape.x, thread / shape.x % shape.y, thread / shape.x / shape.y);
}

void run_threads()
{
    runner *self = current;
    for (;;) {
        while (next_thread < thread_count) {
            self->thread = next_thread++;
            set_thread(self->thread);
            (*kernel)();
        }
        leave(self);
    }
}

void wait_for_others()
{
    runner *self = current;
    self->waits = true;
    leave(self);
    set_thread(self->thread);
}

void add_runner()
{
    runners.emplace_back(new runner());
    runner *r = runners.back().get();
    ucontext_t begin;
    r->stack.reset(new char[STACK_BYTES]);
    current = r;
    getcontext(&begin);
    begin.uc_stack.ss_sp = r->stack.get();
    begin.uc_stack.ss_size = STACK_BYTES;
    begin.uc_link = NULL;
    makecontext(&begin, run_threads, 0);
    if (_setjmp(scheduler) == 0) {
        setcontext(&begin);
    }
}

/* To the next wait, or to the end. */
void go_on(runner *r)
{
    current = r;
    r->waits = false;
    if (_setjmp(scheduler) == 0) {
        _longjmp(r->place, 1);
    }
}

void run_block()
{
    size_t used = 0;
    bool some_wait = true;
    for (next_thread = 0; next_thread < thread_count; used++) {
        if (used == runners.size()) {
            add_runner();
        } else {
            go_on(runners[used].get());
        }
    }
    while (some_wait) {
        some_wait = false;
        for (size_t i = 0; i < used; i++) {
            if (runners[i]->waits) {
                go_on(runners[i].get());
                some_wait = true;
            }
        }
    }
}

} // namespace

void launch_threads(dim3 blocks, dim3 threads, cudaStream_t stream,
                    const std::function<void()> &function)
{
    kernel = &function;
    shape = threads;
    thread_count = threads.x * threads.y * threads.z;
    bool is_legal = thread_count > 0 && thread_count <= THREADS_MAX && blocks.x > 0 &&
                    blocks.y > 0 && blocks.z > 0;
    cudaError_t error = is_legal ? cudaStreamSynchronize(stream) : cudaErrorInvalidConfiguration;
    if (error != cudaSuccess) {
        last_error = error;
        return;
    }
    for (blockIdx.z = 0; blockIdx.z < blocks.z; blockIdx.z++) {
        for (blockIdx.y = 0; blockIdx.y < blocks.y; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < blocks.x; blockIdx.x++) {
                run_block();
            }
        }
    }
}

void __syncthreads()
{
    wait_for_others();
}

void __syncwarp()
{
    wait_for_others();
}

/* All have given before one takes, and taken before one gives the next. */
float __shfl_xor_sync(unsigned, float value, int bits)
{
    exchanged[current->thread] = value;
    wait_for_others();
    value = exchanged[current->thread ^ (unsigned)bits];
    wait_for_others();
    return value;
}

/* ---- streams and memory ---- */

/* A call of the driver that the program has loaded; not 0: it has failed, or there is none. */
template <typename... types> static int drive(const char *name, types... arguments)
{
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = driver == NULL ? NULL : dlsym(driver, name);
    return function == NULL ? -1 : ((int (*)(types...))function)(arguments...);
}

const char *cudaGetErrorString(cudaError_t)
{
    return "an error of the runtime";
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    void *context;
    if (stream == NULL) {
        return cudaSuccess;
    }
    bool is_done =
        drive("cuDevicePrimaryCtxRetain", &context, 0) == 0 &&
        drive("cuCtxPushCurrent_v2", context) == 0 && drive("cuStreamSynchronize", stream) == 0 &&
        drive("cuCtxPopCurrent_v2", &context) == 0 && drive("cuDevicePrimaryCtxRelease_v2", 0) == 0;
    return is_done ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = malloc(bytes);
    if (*out == NULL) {
        return cudaErrorMemoryAllocation;
    }
    memset(*out, FRESH_BYTE, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    cudaError_t error = cudaStreamSynchronize(stream);
    memcpy(to, from, bytes);
    return error;
}

/* ---- products ---- */

const char *cublasGetStatusString(cublasStatus_t)
{
    return "an error of the products";
}

struct products {
    cudaStream_t stream;
};

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    *out = new products();
    openblas_set_num_threads(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t products)
{
    delete products;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t products, cudaStream_t stream)
{
    products->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t products, cublasOperation_t turn_a,
                                         cublasOperation_t turn_b, int m, int n, int k,
                                         const float *scale, const float *a, int a_stride,
                                         long long a_step, const float *b, int b_stride,
                                         long long b_step, const float *kept, float *out,
                                         int out_stride, long long out_step, int count)
{
    if (cudaStreamSynchronize(products->stream) != cudaSuccess) {
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    for (int i = 0; i < count; i++) {
        cblas_sgemm(CblasColMajor, turn_a == CUBLAS_OP_T ? CblasTrans : CblasNoTrans,
                    turn_b == CUBLAS_OP_T ? CblasTrans : CblasNoTrans, m, n, k, *scale,
                    a + i * a_step, a_stride, b + i * b_step, b_stride, *kept, out + i * out_step,
                    out_stride);
    }
    return CUBLAS_STATUS_SUCCESS;
}
