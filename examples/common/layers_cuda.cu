/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers on a CUDA device: cuBLAS for products, small kernels for the rest. Plain rather than
 * fast. No atomics, and cuBLAS works in memory of its own on one stream, so that equal inputs give
 * equal bits; the host version's bits they are not.
 */
#include "layers_cuda.h"

#include <stdlib.h>

#include "counter_random.h"

#define NORM_EPSILON    1e-5f
#define SUM_ROWS        16 /* rows of threads in a block that sums columns */
#define WORKSPACE_BYTES ((size_t)32 << 20)

const bool device_is_cuda = true;

static void note(struct device *device, cudaError_t error)
{
    if (error != cudaSuccess && device->failure == NULL) {
        device->failure = cudaGetErrorString(error);
    }
}

static void note_blas(struct device *device, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS && device->failure == NULL) {
        device->failure = cublasGetStatusString(status);
    }
}

struct device *device_open(void)
{
    struct device *device = (struct device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return NULL;
    }
    if (cudaMalloc(&device->workspace, WORKSPACE_BYTES) != cudaSuccess ||
        cublasCreate(&device->blas) != CUBLAS_STATUS_SUCCESS) {
        (void)cudaFree(device->workspace);
        free(device);
        return NULL;
    }
    return device;
}

void device_close(struct device *device)
{
    if (device != NULL) {
        (void)cublasDestroy(device->blas);
        (void)cudaFree(device->workspace);
        free(device);
    }
}

void device_use_stream(struct device *device, void *stream)
{
    if (device->stream == (cudaStream_t)stream) {
        return;
    }
    note(device, cudaDeviceSynchronize());
    device->stream = (cudaStream_t)stream;
    note_blas(device, cublasSetStream(device->blas, device->stream));
    note_blas(device, cublasSetWorkspace(device->blas, device->workspace, WORKSPACE_BYTES));
}

void *device_take(struct device *device, uint64_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        return NULL;
    }
    note(device, cudaMemset(memory, 0, bytes));
    return memory;
}

void device_give(struct device *device, void *memory)
{
    note(device, cudaFree(memory));
}

void device_write(struct device *device, void *to, const void *from, uint64_t bytes)
{
    note(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream));
}

void device_read(struct device *device, void *to, const void *from, uint64_t bytes)
{
    note(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->stream));
    note(device, cudaStreamSynchronize(device->stream));
}

const char *device_failure(struct device *device)
{
    note(device, cudaGetLastError());
    return device->failure;
}

/* ---- products ---- */

/* cuBLAS thinks in columns: it is given the transposed product. */
void multiply(struct device *device, const uint64_t size[3], struct matrix a, struct matrix b,
              float scale, struct result out, struct batch batch)
{
    const float kept = out.adds ? 1 : 0;
    note_blas(device, cublasSgemmStridedBatched(
                          device->blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)size[1], (int)size[0],
                          (int)size[2], &scale, b.values, (int)b.stride, (long long)batch.b,
                          a.values, (int)a.stride, (long long)batch.a, &kept, out.values,
                          (int)out.stride, (long long)batch.out, (int)batch.count));
}

void multiply_one(struct device *device, const uint64_t size[3], struct matrix a, struct matrix b,
                  struct result out)
{
    const struct batch one = {1, 0, 0, 0};
    multiply(device, size, a, b, 1, out, one);
}

/* out[i] = sum over rows of in[i], or of in[i] * normalised x[i]. */
static __global__ void sum_rows(float *out, const float *in, const float *x, const float *stats,
                                uint64_t rows, uint32_t width)
{
    __shared__ float parts[SUM_ROWS][WARP];
    uint32_t i = blockIdx.x * WARP + threadIdx.x;
    float sum = 0;
    for (uint64_t r = threadIdx.y; i < width && r < rows; r += SUM_ROWS) {
        float factor = x == NULL ? 1 : (x[r * width + i] - stats[2 * r]) * stats[2 * r + 1];
        sum += in[r * width + i] * factor;
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < width) {
        sum = 0;
        for (int part = 0; part < SUM_ROWS; part++) {
            sum += parts[part][threadIdx.x];
        }
        out[i] = sum;
    }
}

static void launch_sum_rows(struct device *device, float *out, const float *in, const float *x,
                            const float *stats, uint64_t rows, uint32_t width)
{
    dim3 threads(WARP, SUM_ROWS);
    sum_rows<<<(width + WARP - 1) / WARP, threads, 0, device->stream>>>(out, in, x, stats, rows,
                                                                        width);
}

static __global__ void add_bias(float *out, const float *bias, uint64_t count, uint32_t width)
{
    uint64_t i = my_value();
    if (i < count) {
        out[i] += bias[i % width];
    }
}

void linear_forward(struct device *device, const struct linear *l, float *out, const float *in)
{
    const uint64_t size[3] = {l->rows, l->out_width, l->in_width};
    struct matrix a = {in, l->in_width, false}, b = {l->weight, l->in_width, true};
    uint64_t count = l->rows * l->out_width;
    multiply_one(device, size, a, b, {out, l->out_width, false});
    if (l->bias != NULL) {
        add_bias<<<blocks_of(count), BLOCK, 0, device->stream>>>(out, l->bias, count, l->out_width);
    }
}

void linear_backward(struct device *device, const struct linear *l, float *d_in, const float *d_out,
                     const float *in)
{
    const uint64_t weight_size[3] = {l->out_width, l->in_width, l->rows};
    const uint64_t in_size[3] = {l->rows, l->in_width, l->out_width};
    struct matrix d_out_transposed = {d_out, l->out_width, true}, x = {in, l->in_width, false};
    struct matrix dy = {d_out, l->out_width, false}, weight = {l->weight, l->in_width, false};
    multiply_one(device, weight_size, d_out_transposed, x, {l->d_weight, l->in_width, false});
    multiply_one(device, in_size, dy, weight, {d_in, l->in_width, false});
    if (l->bias != NULL) {
        launch_sum_rows(device, l->d_bias, d_out, NULL, NULL, l->rows, l->out_width);
    }
}

/* ---- dropout, residual, embedding ---- */

static __device__ float drop_one(struct dropout drop, uint64_t place, float value)
{
    bool is_kept = random_uniform(drop.key, drop.first + place) >= drop.rate;
    return is_kept ? value / (1 - drop.rate) : 0;
}

/* `around` NULL: nothing is added. */
static __global__ void add_dropped(struct dropout drop, float *out, const float *around,
                                   const float *in, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        out[i] = (around == NULL ? 0 : around[i]) + drop_one(drop, i, in[i]);
    }
}

void dropout(struct device *device, const struct dropout *drop, float *out, const float *in,
             uint64_t count)
{
    add_dropped<<<blocks_of(count), BLOCK, 0, device->stream>>>(*drop, out, NULL, in, count);
}

void residual(struct device *device, const struct dropout *drop, float *out, const float *around,
              const float *in, uint64_t count)
{
    add_dropped<<<blocks_of(count), BLOCK, 0, device->stream>>>(*drop, out, around, in, count);
}

static __global__ void embed(struct embed l, float *out, const int32_t *tokens)
{
    uint64_t at = my_value(), r = at / l.width, i = at % l.width;
    if (r < l.rows) {
        float value =
            l.token[(uint64_t)tokens[r] * l.width + i] + l.position[r % l.context * l.width + i];
        out[at] = drop_one(l.drop, at, value);
    }
}

void embed_forward(struct device *device, const struct embed *l, float *out, const int32_t *tokens)
{
    embed<<<blocks_of(l->rows * l->width), BLOCK, 0, device->stream>>>(*l, out, tokens);
}

/* One block a token of the vocabulary: it looks for its rows. */
static __global__ void embed_tokens_back(struct embed l, const float *d_out, const int32_t *tokens)
{
    for (uint32_t i = threadIdx.x; i < l.width; i += BLOCK) {
        float sum = 0;
        for (uint64_t r = 0; r < l.rows; r++) {
            if (tokens[r] == (int32_t)blockIdx.x) {
                sum += drop_one(l.drop, r * l.width + i, d_out[r * l.width + i]);
            }
        }
        l.d_token[(uint64_t)blockIdx.x * l.width + i] += sum;
    }
}

/* One block a position. */
static __global__ void embed_positions_back(struct embed l, const float *d_out)
{
    for (uint32_t i = threadIdx.x; i < l.width; i += BLOCK) {
        float sum = 0;
        for (uint64_t r = blockIdx.x; r < l.rows; r += l.context) {
            sum += drop_one(l.drop, r * l.width + i, d_out[r * l.width + i]);
        }
        l.d_position[(uint64_t)blockIdx.x * l.width + i] = sum;
    }
}

void embed_backward(struct device *device, const struct embed *l, const float *d_out,
                    const int32_t *tokens)
{
    embed_tokens_back<<<l->vocabulary, BLOCK, 0, device->stream>>>(*l, d_out, tokens);
    embed_positions_back<<<l->context, BLOCK, 0, device->stream>>>(*l, d_out);
}

/* ---- normalisation, GELU ---- */

static __global__ void norm(struct norm l, float *out, float *stats, const float *in)
{
    uint64_t r = my_row();
    if (r >= l.rows) {
        return;
    }
    const float *x = in + r * l.width;
    float sum = 0, squares = 0;
    for (uint32_t i = my_lane(); i < l.width; i += WARP) {
        sum += x[i];
    }
    float mean = warp_sum(sum) / (float)l.width;
    for (uint32_t i = my_lane(); i < l.width; i += WARP) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    float scale = 1 / sqrtf(warp_sum(squares) / (float)l.width + NORM_EPSILON);
    for (uint32_t i = my_lane(); i < l.width; i += WARP) {
        out[r * l.width + i] = (x[i] - mean) * scale * l.gain[i] + l.bias[i];
    }
    if (my_lane() == 0) {
        stats[2 * r] = mean;
        stats[2 * r + 1] = scale;
    }
}

void norm_forward(struct device *device, const struct norm *l, float *out, float *stats,
                  const float *in)
{
    norm<<<blocks_of_rows(l->rows), BLOCK, 0, device->stream>>>(*l, out, stats, in);
}

static __global__ void norm_back(struct norm l, float *d_in, const float *d_out, const float *in,
                                 const float *stats, bool adds)
{
    uint64_t r = my_row();
    if (r >= l.rows) {
        return;
    }
    const float *x = in + r * l.width, *dy = d_out + r * l.width;
    float *dx = d_in + r * l.width, mean = stats[2 * r], scale = stats[2 * r + 1];
    float sum = 0, dot = 0;
    for (uint32_t i = my_lane(); i < l.width; i += WARP) {
        float d = dy[i] * l.gain[i];
        sum += d;
        dot += d * (x[i] - mean) * scale;
    }
    sum = warp_sum(sum) / (float)l.width;
    dot = warp_sum(dot) / (float)l.width;
    for (uint32_t i = my_lane(); i < l.width; i += WARP) {
        float normal = (x[i] - mean) * scale;
        dx[i] = (adds ? dx[i] : 0) + (dy[i] * l.gain[i] - sum - normal * dot) * scale;
    }
}

void norm_backward(struct device *device, const struct norm *l, float *d_in, const float *d_out,
                   const float *in, const float *stats, bool adds)
{
    launch_sum_rows(device, l->d_bias, d_out, NULL, NULL, l->rows, l->width);
    launch_sum_rows(device, l->d_gain, d_out, in, stats, l->rows, l->width);
    norm_back<<<blocks_of_rows(l->rows), BLOCK, 0, device->stream>>>(*l, d_in, d_out, in, stats,
                                                                     adds);
}

/* The approximation by tanh; sqrt(2 / pi). */
#define GELU_SCALE 0.7978845608f
#define GELU_CUBIC 0.044715f

static __global__ void gelu(float *out, const float *in, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        float x = in[i];
        out[i] = 0.5f * x * (1 + tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x)));
    }
}

void gelu_forward(struct device *device, float *out, const float *in, uint64_t count)
{
    gelu<<<blocks_of(count), BLOCK, 0, device->stream>>>(out, in, count);
}

static __global__ void gelu_back(float *d, const float *in, uint64_t count)
{
    uint64_t i = my_value();
    if (i < count) {
        float x = in[i], t = tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
        float inner = GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x);
        d[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    }
}

void gelu_backward(struct device *device, float *d, const float *in, uint64_t count)
{
    gelu_back<<<blocks_of(count), BLOCK, 0, device->stream>>>(d, in, count);
}

/* ---- loss, optimizer ---- */

static __global__ void cross_entropy(struct loss l, float *logits, const int32_t *targets,
                                     float *of_rows)
{
    uint64_t r = my_row();
    if (r >= l.rows) {
        return;
    }
    float *x = logits + r * l.classes, largest = x[0], sum = 0, target = x[targets[r]];
    for (uint32_t c = my_lane(); c < l.classes; c += WARP) {
        largest = fmaxf(largest, x[c]);
    }
    largest = warp_max(largest);
    __syncwarp(); /* all lanes have read the target */
    for (uint32_t c = my_lane(); c < l.classes; c += WARP) {
        x[c] = expf(x[c] - largest);
        sum += x[c];
    }
    sum = warp_sum(sum);
    for (uint32_t c = my_lane(); c < l.classes; c += WARP) {
        x[c] /= sum;
    }
    if (my_lane() == 0) {
        of_rows[r] = logf(sum) - (target - largest);
    }
}

/* One warp. */
static __global__ void sum_losses(struct loss l, const float *of_rows, float *out_sum)
{
    float sum = 0;
    for (uint64_t r = threadIdx.x; r < l.rows; r += WARP) {
        sum += of_rows[r];
    }
    sum = warp_sum(sum);
    if (threadIdx.x == 0) {
        *out_sum = sum * l.scale;
    }
}

void loss_forward(struct device *device, const struct loss *l, float *logits,
                  const int32_t *targets, float *of_rows, float *out_sum)
{
    cross_entropy<<<blocks_of_rows(l->rows), BLOCK, 0, device->stream>>>(*l, logits, targets,
                                                                         of_rows);
    sum_losses<<<1, WARP, 0, device->stream>>>(*l, of_rows, out_sum);
}

static __global__ void cross_entropy_back(struct loss l, float *d_logits,
                                          const float *probabilities, const int32_t *targets)
{
    uint64_t at = my_value(), r = at / l.classes;
    if (r < l.rows) {
        float target = targets[r] == (int32_t)(at % l.classes) ? 1 : 0;
        d_logits[at] = (probabilities[at] - target) * l.scale;
    }
}

void loss_backward(struct device *device, const struct loss *l, float *d_logits,
                   const float *probabilities, const int32_t *targets)
{
    cross_entropy_back<<<blocks_of(l->rows * l->classes), BLOCK, 0, device->stream>>>(
        *l, d_logits, probabilities, targets);
}

static __global__ void adamw_one(struct adamw rule, struct parameters p, float correct1,
                                 float correct2)
{
    uint64_t i = my_value();
    if (i < p.count) {
        float g = p.gradients[i];
        p.first[i] = rule.beta1 * p.first[i] + (1 - rule.beta1) * g;
        p.second[i] = rule.beta2 * p.second[i] + (1 - rule.beta2) * g * g;
        float step = p.first[i] / correct1 / (sqrtf(p.second[i] / correct2) + rule.epsilon);
        p.values[i] -= rule.rate * (step + rule.decay * p.values[i]);
    }
}

void adamw(struct device *device, const struct adamw *rule, const struct parameters *p)
{
    float correct1 = 1 - powf(rule->beta1, (float)(rule->iteration + 1));
    float correct2 = 1 - powf(rule->beta2, (float)(rule->iteration + 1));
    adamw_one<<<blocks_of(p->count), BLOCK, 0, device->stream>>>(*rule, *p, correct1, correct2);
}
