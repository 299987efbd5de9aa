/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Host cost of a replay, in two tables.
 *
 * A step: begin_step and end_step of plans of 10 to 100,000 instructions that copy nothing, whose
 * work is nothing, on the host backend and on the CUDA backend over a fake driver without delays:
 * the median over samples of the mean of a sample, of 1000 steps or more, with the begin and end of
 * its iterations; and what a whole sample allocates and calls of the driver.
 *
 * Opening a plan: reading its file, and atp_replay_open, which proves it; the median of some.
 *
 * The exit status says whether steps allocate and call nothing; the times are for the reader.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atp/plan_yaml.h>
#include <atp/replay.h>

#include "bench_fake.h"
#include "long_plan.h"
#include "plan_emit.h"

#define SAMPLES      31
#define SAMPLE_STEPS 1000
#define OPENINGS     11

/* ---- allocations: the linker puts these in place of malloc and its kin ---- */

void *__real_malloc(size_t size);                /* NOLINT(bugprone-reserved-identifier) */
void *__real_calloc(size_t count, size_t size);  /* NOLINT(bugprone-reserved-identifier) */
void *__real_realloc(void *memory, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_malloc(size_t size);                /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_calloc(size_t count, size_t size);  /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_realloc(void *memory, size_t size); /* NOLINT(bugprone-reserved-identifier) */

static uint64_t allocation_count;

void *__wrap_malloc(size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    allocation_count++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    allocation_count++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    allocation_count++;
    return __real_realloc(memory, size);
}

/* ---- */

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

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 2];
}

static void check(enum atp_status status, const struct atp_error *err)
{
    if (status != ATP_OK) {
        (void)fprintf(stderr, "bench_replay: %s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

/* Iterations of at least SAMPLE_STEPS steps: ns per step. */
static double take_sample(struct atp_replay *replay, uint32_t step_count)
{
    struct atp_error err;
    struct atp_step_call call;
    uint32_t iterations = (SAMPLE_STEPS + step_count - 1) / step_count;
    int64_t start_ns = now_ns();
    for (uint32_t i = 0; i < iterations; i++) {
        check(atp_replay_begin_iteration(replay, &err), &err);
        for (uint32_t s = 0; s < step_count; s++) {
            check(atp_replay_begin_step(replay, s, &call, &err), &err);
            check(atp_replay_end_step(replay, s, &err), &err);
        }
        check(atp_replay_end_iteration(replay, &err), &err);
    }
    return (double)(now_ns() - start_ns) / ((double)step_count * iterations);
}

struct cost {
    double ns;
    uint64_t allocations, driver_calls; /* in all samples */
};

static struct cost measure_steps(struct atp_backend *backend, const struct plan_builder *b)
{
    struct atp_error err;
    struct atp_replay *replay;
    double ns[SAMPLES];
    uint32_t step_count = b->plan.model.step_count;
    check(atp_replay_open(&b->plan, &b->plan.model, backend, NULL, &replay, &err), &err);
    (void)take_sample(replay, step_count);
    struct cost cost = {.driver_calls = bench_fake_calls()};
    uint64_t before = allocation_count;
    for (int i = 0; i < SAMPLES; i++) {
        ns[i] = take_sample(replay, step_count);
    }
    cost.allocations = allocation_count - before;
    cost.driver_calls = bench_fake_calls() - cost.driver_calls;
    atp_replay_close(replay);
    cost.ns = median(ns, SAMPLES);
    return cost;
}

static bool table_steps(struct atp_backend *host, struct atp_backend *fake)
{
    static const uint32_t layer_counts[] = {4, 16, 166, 1666, 16666};
    bool is_free = true;
    (void)printf("%12s %8s %15s %15s %12s %13s\n", "instructions", "steps", "host, ns/step",
                 "fake, ns/step", "allocations", "driver calls");
    for (size_t i = 0; i < sizeof(layer_counts) / sizeof(layer_counts[0]); i++) {
        struct plan_builder *b = long_plan(layer_counts[i], false);
        struct cost on_host = measure_steps(host, b), on_fake = {0};
        char fake_text[24] = "-";
        if (fake != NULL) {
            on_fake = measure_steps(fake, b);
            (void)snprintf(fake_text, sizeof(fake_text), "%.1f", on_fake.ns);
        }
        uint64_t allocations = on_host.allocations + on_fake.allocations;
        (void)printf("%12" PRIu32 " %8" PRIu32 " %15.1f %15s %12" PRIu64 " %13" PRIu64 "\n",
                     b->plan.instruction_count, b->plan.model.step_count, on_host.ns, fake_text,
                     allocations, on_fake.driver_calls);
        is_free = is_free && allocations == 0 && on_fake.driver_calls == 0;
        plan_builder_destroy(b);
    }
    return is_free;
}

static void write_plan(const struct plan_builder *b, char *path)
{
    struct atp_error err;
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    check(plan_emit(&b->plan, file, &err), &err);
    (void)fclose(file);
}

static void measure_open(struct atp_backend *backend, const struct plan_builder *b,
                         const char *title)
{
    double read_ms[OPENINGS], open_ms[OPENINGS];
    char path[] = "/tmp/atp-bench-XXXXXX";
    struct atp_error err;
    write_plan(b, path);
    for (int i = 0; i < OPENINGS; i++) {
        struct atp_plan_file *file;
        struct atp_replay *replay;
        int64_t start_ns = now_ns();
        check(atp_plan_read(path, &file, &err), &err);
        int64_t read_ns = now_ns();
        check(atp_replay_open(&file->plan, &b->plan.model, backend, NULL, &replay, &err), &err);
        int64_t open_ns = now_ns();
        read_ms[i] = (double)(read_ns - start_ns) * 1e-6;
        open_ms[i] = (double)(open_ns - read_ns) * 1e-6;
        atp_replay_close(replay);
        atp_plan_file_destroy(file);
    }
    (void)unlink(path);
    (void)printf("%12" PRIu32 " %8" PRIu32 " %15.1f %15.1f  %s\n", b->plan.instruction_count,
                 b->plan.model.step_count, median(read_ms, OPENINGS), median(open_ms, OPENINGS),
                 title);
}

static void table_open(struct atp_backend *host)
{
    static const uint32_t layer_counts[] = {250, 2500};
    (void)printf("\n%12s %8s %15s %15s\n", "instructions", "steps", "read file, ms", "open, ms");
    for (size_t i = 0; i < sizeof(layer_counts) / sizeof(layer_counts[0]); i++) {
        struct plan_builder *kept = long_plan(layer_counts[i] * 4 / 3 / 2 * 2, false);
        struct plan_builder *swapped = long_plan(layer_counts[i], true);
        measure_open(host, kept, "all kept");
        measure_open(host, swapped, "half of it swapped");
        plan_builder_destroy(kept);
        plan_builder_destroy(swapped);
    }
}

int main(void)
{
    struct atp_backend *host, *fake;
    struct atp_error err;
    check(atp_backend_host_create(NULL, &host, &err), &err);
    check(bench_fake_create(&fake, &err), &err);
    bool is_free = table_steps(host, fake);
    table_open(host);
    bench_fake_destroy(fake);
    atp_backend_destroy(host);
    if (!is_free) {
        (void)fputs("bench_replay: steps that copy nothing allocate or call the driver\n", stderr);
    }
    return is_free ? EXIT_SUCCESS : EXIT_FAILURE;
}
