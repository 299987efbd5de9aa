/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a recording to a replay, on a device: a small training's steps, made of fills (witness.h),
 * are recorded as a profile; the plan that atp-plan makes of it is replayed, its bytes are looked
 * at, and its times are compared with what it promised and with the iteration without a plan.
 * Also replays plans of any other program, for their bytes alone. One line for each fact; see
 * usage(), tests/device_train.sh, and tests/device.sh for the whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atp/plan_yaml.h>

#include "plan_builder.h"
#include "witness.h"

#define BURST          2
#define ITERATIONS_MAX 1000000

struct settings {
    const char *what, *path, *backend;
    uint64_t layers, bytes, workspace_bytes, fills, iterations;
};

static void usage(FILE *file)
{
    (void)fputs(
        "usage: device-train record PROFILE | replay PLAN | chaos PLAN\n"
        "           [--backend cuda|eager|late|threads] [--iterations N]\n"
        "           [--layers N] [--bytes N] [--workspace N] [--fills N]\n"
        "record writes a profile of a training of --layers layers, with activations of --bytes\n"
        "bytes; each step fills --workspace bytes --fills times. replay, with the same four,\n"
        "replays a plan of it and compares times. chaos replays any plan and looks at its bytes.\n"
        "Exit codes: 0 right, 1 wrong bytes or a failure, 2 usage, 77 no such device here\n",
        file);
}

/* Forward layer i makes activation i + 1 of i; backward layer i needs i again. Every fourth layer
 * may not be rerun, as if it drew random numbers. */
static struct plan_builder *make_model(const struct settings *settings)
{
    char name[32];
    struct plan_builder *b = plan_builder_create("device-train");
    uint32_t count = (uint32_t)settings->layers, gradients = count + 1;
    for (uint32_t i = 0; i < 2 * count + 2; i++) {
        (void)snprintf(name, sizeof(name), "%c%" PRIu32, i <= count ? 'a' : 'g', i % (count + 1));
        (void)plan_builder_tensor(b, name, settings->bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "layer%" PRIu32, i);
        uint32_t step = plan_builder_step(b, ATP_PHASE_FORWARD, name, IDS(i), IDS(i + 1));
        b->steps[step].rerun_never = i % 4 == 3;
    }
    (void)plan_builder_step(b, ATP_PHASE_BACKWARD, "loss", IDS(count), IDS(gradients + count));
    for (uint32_t i = count; i-- > 0;) {
        (void)snprintf(name, sizeof(name), "layer%" PRIu32, i);
        (void)plan_builder_step(b, ATP_PHASE_BACKWARD, name, IDS(i, gradients + i + 1),
                                IDS(gradients + i));
    }
    (void)plan_builder_step(b, ATP_PHASE_UPDATE, "optimizer", NO_IDS, NO_IDS);
    for (uint32_t s = 0; s < b->plan.model.step_count; s++) {
        b->steps[s].workspace_bytes = settings->workspace_bytes;
    }
    b->plan.model.batch_size = 1;
    return b;
}

static void record(struct atp_backend *backend, const struct settings *settings)
{
    struct plan_builder *b = make_model(settings);
    struct witness w;
    struct atp_error err;
    struct atp_replay *replay;
    struct atp_replay_options options = {.step = witness_work, .step_ctx = &w, .record = true};
    witness_init(&w, backend, &b->plan, 0);
    w.fill_count = (uint32_t)settings->fills;
    witness_insist(atp_replay_open(NULL, w.model, backend, &options, &replay, &err), "open", &err);
    for (uint64_t i = 0; i < settings->iterations; i++) {
        witness_insist(atp_replay_run_iteration(replay, witness_work, &err), "iteration", &err);
    }
    struct atp_profile_facts facts = {.device_memory_bytes = atp_replay_plan(replay)->arena_bytes,
                                      .copy_probe_bytes = settings->bytes,
                                      .note = "recorded by tests/device_train.c"};
    witness_insist(atp_replay_write_profile(replay, settings->path, &facts, &err), "profile", &err);
    (void)printf("recorded: %" PRIu32 " steps, %" PRIu64 " iterations, arena %" PRIu64 " bytes\n",
                 w.model->step_count, settings->iterations, atp_replay_plan(replay)->arena_bytes);
    atp_replay_close(replay);
    witness_finish(&w);
    plan_builder_destroy(b);
}

/* ---- times ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(int64_t *ns, uint64_t count)
{
    qsort(ns, (size_t)count, sizeof(*ns), compare);
    int64_t middle_ns = ns[count / 2];
    return (double)middle_ns * 1e-3;
}

/* Medians over iterations. */
struct times {
    double device_us, stall_us, copy_us; /* by events; 0 for a graph */
    double host_us;                      /* until everything is queued */
    double wall_us;                      /* until everything is done */
    uint64_t moved_bytes, arena_bytes;
};

struct timing {
    const struct settings *settings;
    const struct atp_plan *plan; /* NULL: none */
    struct witness *w;
    void *stream;
    int64_t *ns[3];
};

static struct atp_replay *open_replay(const struct timing *t, bool reports)
{
    struct atp_error err;
    struct atp_replay *replay;
    struct atp_replay_options options = {
        .step = witness_work, .step_ctx = t->w, .compute_stream = t->stream, .report = reports};
    witness_insist(atp_replay_open(t->plan, t->w->model, t->w->backend, &options, &replay, &err),
                   "open", &err);
    return replay;
}

/* By the device's events. */
static void time_on_device(const struct timing *t, struct times *out)
{
    struct atp_error err;
    struct atp_iteration_report report = {0};
    struct atp_replay *replay = open_replay(t, true);
    for (uint64_t i = 0; i < t->settings->iterations; i++) {
        witness_insist(atp_replay_run_iteration(replay, witness_work, &err), "iteration", &err);
        witness_insist(atp_replay_report(replay, &report, &err), "report", &err);
        t->ns[0][i] = report.iteration_ns;
        t->ns[1][i] = report.stall_ns;
        t->ns[2][i] = report.copy_ns;
    }
    out->device_us = median_us(t->ns[0], t->settings->iterations);
    out->stall_us = median_us(t->ns[1], t->settings->iterations);
    out->copy_us = median_us(t->ns[2], t->settings->iterations);
    out->moved_bytes = report.evicted_bytes + report.restored_bytes;
    out->arena_bytes = atp_replay_plan(replay)->arena_bytes;
    atp_replay_close(replay);
}

/* By the host's clock, without reports. False: there are no graphs here. */
static bool time_on_host(const struct timing *t, bool is_graph, struct times *out)
{
    struct atp_error err;
    struct atp_replay *replay = open_replay(t, false);
    if (is_graph) {
        enum atp_status status = atp_replay_capture(replay, &err);
        if (status == ATP_ERR_UNSUPPORTED) {
            (void)printf("graph: none: %s\n", err.text);
            atp_replay_close(replay);
            return false;
        }
        witness_insist(status, "capture", &err);
    }
    for (uint64_t i = 0; i < t->settings->iterations; i++) {
        int64_t start_ns = witness_now_ns();
        witness_insist(atp_replay_run_iteration(replay, witness_work, &err), "iteration", &err);
        t->ns[0][i] = witness_now_ns() - start_ns;
        witness_insist(t->w->backend->ops->stream_sync(t->w->backend, t->stream, &err), "sync",
                       &err);
        t->ns[1][i] = witness_now_ns() - start_ns;
    }
    out->host_us = median_us(t->ns[0], t->settings->iterations);
    out->wall_us = median_us(t->ns[1], t->settings->iterations);
    atp_replay_close(replay);
    return true;
}

static void print_times(const struct settings *settings, struct atp_backend *backend,
                        const struct atp_plan *plan, const struct atp_plan *model_plan)
{
    struct witness w;
    struct atp_error err;
    struct times plain = {0}, planned = {0}, graph = {0};
    struct timing t = {.settings = settings, .w = &w};
    for (int i = 0; i < 3; i++) {
        t.ns[i] = (int64_t *)calloc((size_t)settings->iterations, sizeof(int64_t));
        if (t.ns[i] == NULL) {
            abort();
        }
    }
    witness_init(&w, backend, model_plan, 0);
    w.fill_count = (uint32_t)settings->fills;
    witness_insist(backend->ops->stream_create(backend, ATP_STREAM_COMPUTE, &t.stream, &err),
                   "stream", &err);
    time_on_device(&t, &plain);
    (void)time_on_host(&t, false, &plain);
    t.plan = plan;
    time_on_device(&t, &planned);
    (void)time_on_host(&t, false, &planned);
    double hidden = planned.copy_us > planned.stall_us ? 1 - planned.stall_us / planned.copy_us : 0;
    (void)printf("plain: %.1f us on the device, %.1f us in all, %.1f us of the host, arena %.1f "
                 "MB\n",
                 plain.device_us, plain.wall_us, plain.host_us, (double)plain.arena_bytes * 1e-6);
    (void)printf("planned: %.1f us on the device, predicted %.1f us; %.1f us in all, %.1f us of "
                 "the host, arena %.1f MB\n",
                 planned.device_us, (double)plan->predicted.iteration_ns * 1e-3, planned.wall_us,
                 planned.host_us, (double)planned.arena_bytes * 1e-6);
    (void)printf("overlap: %.1f MB moved in %.1f us of copies, %.1f us of stalls (predicted %.1f "
                 "us): %.1f %% hidden\n",
                 (double)planned.moved_bytes * 1e-6, planned.copy_us, planned.stall_us,
                 (double)plan->predicted.stall_ns * 1e-3, 100 * hidden);
    if (time_on_host(&t, true, &graph)) {
        (void)printf("graph: %.1f us in all, %.1f us of the host\n", graph.wall_us, graph.host_us);
    }
    backend->ops->stream_destroy(backend, t.stream);
    witness_finish(&w);
    for (int i = 0; i < 3; i++) {
        free(t.ns[i]);
    }
}

/* ---- bytes ---- */

/* True: all right, as calls and, where there are graphs, as a graph. */
static bool look(struct atp_backend *backend, const struct atp_plan *plan, uint64_t iterations)
{
    struct atp_error err;
    struct witness total = {.backend = backend, .burst = BURST};
    uint32_t bursts = (uint32_t)((iterations + BURST - 1) / BURST);
    int64_t start_ns = witness_now_ns();
    witness_insist(witness_replay(&total, plan, bursts, false, "calls", &err), "replay", &err);
    enum atp_status status = witness_replay(&total, plan, bursts, true, "graph", &err);
    if (status != ATP_ERR_UNSUPPORTED) {
        witness_insist(status, "graph", &err);
    }
    if (total.wrong_bytes > 0) {
        (void)printf("wrong: %s\n", total.first_wrong);
    }
    (void)printf("bytes: %u iterations%s, %" PRIu64 " bytes seen, %" PRIu64 " wrong, %.1f s\n",
                 bursts * BURST, status == ATP_OK ? " as calls, as many as a graph" : "",
                 total.seen_bytes, total.wrong_bytes, (double)(witness_now_ns() - start_ns) * 1e-9);
    return total.wrong_bytes == 0;
}

static bool replay_file(struct atp_backend *backend, const struct settings *settings, bool is_ours)
{
    struct atp_plan_file *file;
    struct atp_error err;
    witness_insist(atp_plan_read(settings->path, &file, &err), settings->path, &err);
    struct plan_builder *b = is_ours ? make_model(settings) : NULL;
    if (is_ours) {
        witness_insist(
            atp_model_compare(&file->plan.model, "the plan", &b->plan.model, "the training", &err),
            settings->path, &err);
        print_times(settings, backend, &file->plan, &b->plan);
    }
    bool is_right = look(backend, &file->plan, is_ours ? BURST : settings->iterations);
    plan_builder_destroy(b);
    atp_plan_file_destroy(file);
    return is_right;
}

static struct settings read_arguments(int count, char **arguments)
{
    struct settings settings = {.backend = "cuda",
                                .layers = 24,
                                .bytes = 16u << 20,
                                .workspace_bytes = 256u << 20,
                                .fills = 4,
                                .iterations = 20};
    const struct {
        const char *name;
        uint64_t *value, limit;
    } numbers[] = {{"--iterations", &settings.iterations, ITERATIONS_MAX},
                   {"--layers", &settings.layers, 1000},
                   {"--bytes", &settings.bytes, (uint64_t)1 << 32},
                   {"--workspace", &settings.workspace_bytes, (uint64_t)1 << 36},
                   {"--fills", &settings.fills, 1000000}};
    bool is_good = count >= 3;
    settings.what = is_good ? arguments[1] : "";
    settings.path = is_good ? arguments[2] : "";
    for (int i = 3; i < count && is_good; i += 2) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        uint64_t number = strtoull(value, NULL, 10);
        if (strcmp(arguments[i], "--backend") == 0 && *value != '\0') {
            settings.backend = value;
            continue;
        }
        is_good = false;
        for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
            if (strcmp(arguments[i], numbers[n].name) == 0 && number > 0 &&
                number <= numbers[n].limit) {
                *numbers[n].value = number;
                is_good = true;
            }
        }
    }
    if (!is_good || (strcmp(settings.what, "record") != 0 && strcmp(settings.what, "replay") != 0 &&
                     strcmp(settings.what, "chaos") != 0)) {
        usage(stderr);
        exit(EXIT_BAD);
    }
    return settings;
}

int main(int count, char **arguments)
{
    struct settings settings = read_arguments(count, arguments);
    struct atp_backend *backend = witness_backend(settings.backend);
    bool is_right = true;
    if (strcmp(settings.what, "record") == 0) {
        record(backend, &settings);
    } else {
        is_right = replay_file(backend, &settings, strcmp(settings.what, "replay") == 0);
    }
    atp_backend_destroy(backend);
    return is_right ? EXIT_SUCCESS : EXIT_WRONG;
}
