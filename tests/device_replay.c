/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Replays random plans on a device and looks at every byte that a step reads. Needs no kernels, and
 * so no compiler for the device: a step fills what it writes with a value that belongs to tensor
 * and version, and copies what it reads to pinned memory, on the compute stream; a stale, torn or
 * overwritten tensor shows there. Prints one line for each fact; see usage() for arguments and exit
 * codes, and tests/device.sh for the whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atp/replay.h>

#include "link_probe.h"
#include "plan_builder.h"
#include "random.h"
#include "random_plan.h"

#define BURST      2 /* iterations between two looks */
#define EXIT_WRONG 1
#define EXIT_BAD   2
#define EXIT_NONE  77

struct settings {
    const char *backend;
    uint64_t iterations, seed, scale;
};

/* Bytes that a step has read, and what they must be. */
struct sight {
    uint64_t offset, bytes; /* in the pinned memory */
    uint32_t step, tensor;
    uint8_t value;
};

struct witness {
    struct atp_backend *backend;
    const struct atp_model *model;
    uint8_t *pinned;
    uint64_t used_bytes, room_bytes, wrong_bytes, seen_bytes;
    struct sight *sights;
    uint32_t sight_count, sight_room;
};

static void usage(FILE *file)
{
    (void)fputs(
        "usage: device-replay [--backend cuda|eager|late|threads] [--iterations N] "
        "[--seed N] [--scale BYTES]\n"
        "Tensors are up to 40 * scale bytes.\n"
        "Exit codes: 0 right, 1 wrong bytes or a failure, 2 usage, 77 no such device here\n",
        file);
}

static void insist(enum atp_status status, const char *what, const struct atp_error *err)
{
    if (status != ATP_OK) {
        (void)printf("failed: %s: %s\n", what, err->text);
        exit(EXIT_WRONG);
    }
}

/* Never the poison of a replay, nor 0. */
static uint8_t value_of(uint32_t tensor, uint32_t version)
{
    uint8_t value = (uint8_t)(1 + (tensor * 37u + version * 101u) % 250u);
    return value == 0xA5 ? 0xFE : value;
}

static bool writes(const struct atp_step *step, uint32_t tensor)
{
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (step->writes[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* The version of a tensor that the first `step_count` steps leave. */
static uint32_t version_after(const struct atp_model *model, uint32_t step_count, uint32_t tensor)
{
    uint32_t version = 0;
    for (uint32_t s = 0; s < step_count; s++) {
        version += writes(&model->steps[s], tensor);
    }
    return version;
}

static enum atp_status fill(struct witness *w, const struct atp_step_call *call, uint32_t tensor,
                            uint32_t version, struct atp_error *err)
{
    void *data = atp_replay_tensor_data(call->replay, tensor);
    uint64_t bytes = w->model->tensors[tensor].bytes;
    return w->backend->ops->fill(w->backend, call->stream, data, value_of(tensor, version), bytes,
                                 err);
}

static enum atp_status look(struct witness *w, const struct atp_step_call *call, uint32_t tensor,
                            struct atp_error *err)
{
    uint64_t bytes = w->model->tensors[tensor].bytes;
    if (w->sight_count == w->sight_room || w->used_bytes + bytes > w->room_bytes) {
        abort();
    }
    w->sights[w->sight_count++] =
        (struct sight){.offset = w->used_bytes,
                       .bytes = bytes,
                       .step = call->step,
                       .tensor = tensor,
                       .value = value_of(tensor, version_after(w->model, call->step, tensor))};
    uint8_t *to = w->pinned + w->used_bytes;
    w->used_bytes += bytes;
    return w->backend->ops->copy(w->backend, call->stream, to,
                                 atp_replay_tensor_data(call->replay, tensor), bytes,
                                 ATP_COPY_TO_HOST, err);
}

static enum atp_status step_work(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct witness *w = (struct witness *)ctx;
    const struct atp_model *model = w->model;
    enum atp_status status = ATP_OK;
    if (call->step == ATP_NONE) {
        for (uint32_t t = 0; t < model->tensor_count && status == ATP_OK; t++) {
            if (version_after(model, model->step_count, t) == 0 ||
                atp_replay_tensor_data(call->replay, t) != NULL) {
                status = fill(w, call, t, 0, err);
            }
        }
        return status;
    }
    const struct atp_step *step = &model->steps[call->step];
    if (call->workspace != NULL) {
        status = w->backend->ops->fill(w->backend, call->stream, call->workspace, 0x5C,
                                       step->workspace_bytes, err);
    }
    for (uint32_t i = 0; i < step->read_count && status == ATP_OK; i++) {
        status = look(w, call, step->reads[i], err);
    }
    for (uint32_t i = 0; i < step->write_count && status == ATP_OK; i++) {
        status = fill(w, call, step->writes[i],
                      version_after(model, call->step + 1, step->writes[i]), err);
    }
    return status;
}

/* Compares what was seen; the stream has been waited for. */
static void judge(struct witness *w, uint64_t plan_seed)
{
    for (uint32_t i = 0; i < w->sight_count; i++) {
        const struct sight *sight = &w->sights[i];
        uint64_t wrong = 0;
        for (uint64_t n = 0; n < sight->bytes; n++) {
            wrong += w->pinned[sight->offset + n] != sight->value;
        }
        if (wrong > 0 && w->wrong_bytes == 0) {
            (void)printf("wrong: plan seed %" PRIu64 ", step %u reads %" PRIu64 " of %" PRIu64
                         " bytes of tensor %u wrong\n",
                         plan_seed, sight->step, wrong, sight->bytes, sight->tensor);
        }
        w->wrong_bytes += wrong;
        w->seen_bytes += sight->bytes;
    }
    w->sight_count = 0;
    w->used_bytes = 0;
}

static void scale_plan(struct plan_builder *b, uint64_t scale)
{
    for (uint32_t t = 0; t < b->plan.model.tensor_count; t++) {
        b->tensors[t].bytes *= scale;
    }
    for (uint32_t s = 0; s < b->plan.model.step_count; s++) {
        b->steps[s].workspace_bytes *= scale;
    }
    for (uint32_t i = 0; i < b->plan.instruction_count; i++) {
        b->program[i].offset *= scale;
    }
    plan_builder_seal(b);
}

/* Room for what BURST iterations read. */
static void take_room(struct witness *w, const struct plan_builder *b)
{
    struct atp_error err;
    void *memory;
    w->room_bytes = 1;
    w->sight_room = 1;
    for (uint32_t i = 0; i < b->plan.instruction_count; i++) {
        const struct atp_instruction *at = &b->program[i];
        if (at->op == ATP_OP_RUN || at->op == ATP_OP_RERUN) {
            const struct atp_step *step = &b->plan.model.steps[at->id];
            for (uint32_t r = 0; r < step->read_count; r++) {
                w->room_bytes += BURST * b->tensors[step->reads[r]].bytes;
                w->sight_room += BURST;
            }
        }
    }
    w->sights = (struct sight *)calloc(w->sight_room, sizeof(*w->sights));
    if (w->sights == NULL) {
        abort();
    }
    insist(w->backend->ops->host_alloc(w->backend, w->room_bytes, &memory, &err), "pinned memory",
           &err);
    w->pinned = (uint8_t *)memory;
}

static void replay_plan(struct witness *w, const struct plan_builder *b, uint64_t plan_seed,
                        uint64_t bursts)
{
    const struct atp_backend_ops *ops = w->backend->ops;
    struct atp_replay_options options = {.step = step_work, .step_ctx = w, .poison = true};
    struct atp_replay *replay;
    struct atp_error err;
    w->model = &b->plan.model;
    take_room(w, b);
    insist(ops->stream_create(w->backend, ATP_STREAM_COMPUTE, &options.compute_stream, &err),
           "stream", &err);
    insist(atp_replay_open(&b->plan, w->model, w->backend, &options, &replay, &err), "open", &err);
    for (uint64_t burst = 0; burst < bursts; burst++) {
        for (int i = 0; i < BURST; i++) {
            insist(atp_replay_run_iteration(replay, step_work, &err), "iteration", &err);
        }
        insist(ops->stream_sync(w->backend, options.compute_stream, &err), "sync", &err);
        judge(w, plan_seed);
    }
    atp_replay_close(replay);
    ops->stream_destroy(w->backend, options.compute_stream);
    ops->host_free(w->backend, w->pinned);
    free(w->sights);
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool replay_plans(struct atp_backend *backend, const struct settings *settings)
{
    struct witness w = {.backend = backend};
    struct random random = {settings->seed};
    uint64_t done = 0, plan_count = 0;
    int64_t start_ns = now_ns();
    while (done < settings->iterations && w.wrong_bytes == 0) {
        uint64_t plan_seed = random_next(&random);
        struct plan_builder *b = random_plan(plan_seed, 2 + random_below(&random, 7));
        scale_plan(b, settings->scale);
        replay_plan(&w, b, plan_seed, 2);
        plan_builder_destroy(b);
        done += (uint64_t)2 * BURST;
        plan_count++;
    }
    (void)printf("chaos: %" PRIu64 " iterations of %" PRIu64 " random plans, %" PRIu64
                 " bytes seen, %" PRIu64 " wrong, %.1f s\n",
                 done, plan_count, w.seen_bytes, w.wrong_bytes,
                 (double)(now_ns() - start_ns) * 1e-9);
    return w.wrong_bytes == 0;
}

static enum atp_status make_backend(const char *name, struct atp_backend **out,
                                    struct atp_error *err)
{
    struct atp_host_options host = {.copies = ATP_HOST_EAGER, .seed = 1, .delay_max_us = 100};
    if (strcmp(name, "cuda") == 0) {
        return atp_backend_cuda_create(0, out, err);
    }
    if (strcmp(name, "late") == 0) {
        host.copies = ATP_HOST_LATE;
    } else if (strcmp(name, "threads") == 0) {
        host.copies = ATP_HOST_THREADS;
    } else if (strcmp(name, "eager") != 0) {
        usage(stderr);
        exit(EXIT_BAD);
    }
    return atp_backend_host_create(&host, out, err);
}

static struct settings read_arguments(int count, char **arguments)
{
    struct settings settings = {.backend = "cuda", .iterations = 400, .seed = 1, .scale = 4096};
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        uint64_t number = value == NULL ? 0 : strtoull(value, NULL, 10);
        if (value != NULL && strcmp(arguments[i], "--backend") == 0) {
            settings.backend = value;
        } else if (number > 0 && strcmp(arguments[i], "--iterations") == 0) {
            settings.iterations = number;
        } else if (number > 0 && strcmp(arguments[i], "--seed") == 0) {
            settings.seed = number;
        } else if (number > 0 && number <= 1 << 24 && strcmp(arguments[i], "--scale") == 0) {
            settings.scale = number;
        } else {
            usage(stderr);
            exit(EXIT_BAD);
        }
    }
    return settings;
}

int main(int count, char **arguments)
{
    struct settings settings = read_arguments(count, arguments);
    struct link_rates rates;
    struct atp_backend *backend;
    struct atp_error err;
    enum atp_status status = make_backend(settings.backend, &backend, &err);
    if (status == ATP_ERR_UNSUPPORTED) {
        (void)printf("skipped: %s\n", err.text);
        return EXIT_NONE;
    }
    insist(status, "backend", &err);
    insist(link_probe(backend, (uint64_t)16 << 20, &rates, &err), "link", &err);
    (void)printf("link: to the host %.2f GB/s, to the device %.2f GB/s, latency %.2f us\n",
                 (double)rates.d2h_bytes_per_second * 1e-9,
                 (double)rates.h2d_bytes_per_second * 1e-9, (double)rates.copy_latency_ns * 1e-3);
    (void)printf("duplex: to the host %.2f GB/s, to the device %.2f GB/s, both at once\n",
                 (double)rates.d2h_duplex_bytes_per_second * 1e-9,
                 (double)rates.h2d_duplex_bytes_per_second * 1e-9);
    bool is_right = replay_plans(backend, &settings);
    atp_backend_destroy(backend);
    return is_right ? EXIT_SUCCESS : EXIT_WRONG;
}
