/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Host cost of a step: begin_step and end_step of a plan without copies, whose work is nothing.
 * Prints the median over iterations of the mean per step, for plans of 10 to 100,000 instructions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atp/replay.h>

#define ITERATIONS 31

/* A chain: step s reads tensor s and writes tensor s + 1; a step is alloc, run, free. */
struct chain {
    struct atp_model model;
    struct atp_tensor *tensors;
    struct atp_step *steps;
    uint32_t *ids;
    char (*names)[16];
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void chain_init(struct chain *chain, uint32_t step_count)
{
    chain->tensors = (struct atp_tensor *)must(calloc(step_count + 1, sizeof(*chain->tensors)));
    chain->steps = (struct atp_step *)must(calloc(step_count, sizeof(*chain->steps)));
    chain->ids = (uint32_t *)must(calloc(step_count + 1, sizeof(*chain->ids)));
    chain->names = (char(*)[16])must(calloc(step_count + 1, sizeof(*chain->names)));
    for (uint32_t i = 0; i <= step_count; i++) {
        (void)snprintf(chain->names[i], sizeof(chain->names[i]), "n%" PRIu32, i);
        chain->ids[i] = i;
        chain->tensors[i] = (struct atp_tensor){.name = chain->names[i], .bytes = 256};
    }
    for (uint32_t s = 0; s < step_count; s++) {
        chain->steps[s] = (struct atp_step){.name = chain->names[s],
                                            .phase = ATP_PHASE_FORWARD,
                                            .read_count = 1,
                                            .write_count = 1,
                                            .reads = &chain->ids[s],
                                            .writes = &chain->ids[s + 1]};
    }
    chain->model = (struct atp_model){.name = "chain",
                                      .batch_size = 1,
                                      .tensor_count = step_count + 1,
                                      .step_count = step_count,
                                      .tensors = chain->tensors,
                                      .steps = chain->steps};
}

static void chain_finish(struct chain *chain)
{
    free(chain->names);
    free(chain->ids);
    free(chain->steps);
    free(chain->tensors);
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(enum atp_status status, const struct atp_error *err)
{
    if (status != ATP_OK) {
        (void)fprintf(stderr, "bench_replay: %s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static double time_iteration(struct atp_replay *replay, uint32_t step_count)
{
    struct atp_error err;
    struct atp_step_call call;
    check(atp_replay_begin_iteration(replay, &err), &err);
    int64_t start_ns = now_ns();
    for (uint32_t s = 0; s < step_count; s++) {
        check(atp_replay_begin_step(replay, s, &call, &err), &err);
        check(atp_replay_end_step(replay, s, &err), &err);
    }
    int64_t end_ns = now_ns();
    check(atp_replay_end_iteration(replay, &err), &err);
    return (double)(end_ns - start_ns) / step_count;
}

static void bench(struct atp_backend *backend, uint32_t step_count)
{
    struct atp_error err;
    struct atp_replay *replay;
    struct chain chain;
    double ns[ITERATIONS];
    chain_init(&chain, step_count);
    int64_t start_ns = now_ns();
    check(atp_replay_open(NULL, &chain.model, backend, NULL, &replay, &err), &err);
    int64_t open_ns = now_ns() - start_ns;
    for (int i = 0; i < ITERATIONS; i++) {
        ns[i] = time_iteration(replay, step_count);
    }
    qsort(ns, ITERATIONS, sizeof(ns[0]), compare);
    (void)printf("%12" PRIu32 " %10" PRIu32 " %14.1f %12.1f\n",
                 atp_replay_plan(replay)->instruction_count, step_count, ns[ITERATIONS / 2],
                 (double)open_ns / 1000);
    atp_replay_close(replay);
    chain_finish(&chain);
}

int main(void)
{
    static const uint32_t step_counts[] = {3, 33, 333, 3333, 33333};
    struct atp_backend *backend;
    struct atp_error err;
    check(atp_backend_host_create(NULL, &backend, &err), &err);
    (void)printf("%12s %10s %14s %12s\n", "instructions", "steps", "ns per step", "open, us");
    for (size_t i = 0; i < sizeof(step_counts) / sizeof(step_counts[0]); i++) {
        bench(backend, step_counts[i]);
    }
    atp_backend_destroy(backend);
    return EXIT_SUCCESS;
}
