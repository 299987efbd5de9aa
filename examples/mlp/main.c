/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains the network on the CPU: as it is, under a plan, or recording a profile. Everything that
 * libatp needs from a training program is in `train`.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atp/backend.h>
#include <atp/plan_yaml.h>
#include <atp/replay.h>

#include "net.h"

enum exit_code { EXIT_TRAINED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_BAD_PLAN = 3 };

struct settings {
    struct net_config net;
    uint64_t iterations;
    const char *record_path, *plan_path; /* NULL: none */
    struct atp_host_options copies;
    bool poison, prints_losses, wants_help;
};

static const char help[] =
    "usage: mlp [option]...\n"
    "Trains a deep residual network on the CPU.\n"
    "\n"
    "  --plan FILE       replay this plan (made by atp-plan from a recorded profile)\n"
    "  --record FILE     time every step and write a profile there at the end\n"
    "  --iterations N    how many to run (20)\n"
    "  --batch N         samples per iteration (32)\n"
    "  --width N         width of the residual stream (64)\n"
    "  --blocks N        residual blocks (12)\n"
    "  --seed N          of weights, data and dropout (1)\n"
    "  --copies HOW      eager, late or threads (eager): when copies to the host run\n"
    "  --poison          overwrite device bytes whenever they become free\n"
    "  --print-losses    one loss a line on standard output, as exact hexadecimal floats\n"
    "  --help            this text\n"
    "\n"
    "A plan is good for the batch, width and blocks that its profile was recorded with.\n"
    "Exit codes: 0 trained, 1 failed, 2 bad usage, 3 a plan that is bad or for another network.\n";

/* ---- arguments ---- */

static bool parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
                         uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < least || value > most) {
        (void)fprintf(stderr, "mlp: %s %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
                      option, text, least, most);
        return false;
    }
    *out = value;
    return true;
}

static bool parse_copies(const char *text, struct atp_host_options *out)
{
    static const char *const names[] = {"eager", "late", "threads"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            out->copies = (enum atp_host_copies)i;
            return true;
        }
    }
    (void)fprintf(stderr, "mlp: --copies %s: expected eager, late or threads\n", text);
    return false;
}

static bool parse_size(const char *option, const char *text, uint32_t most, uint32_t *out)
{
    uint64_t value;
    if (!parse_number(option, text, 1, most, &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* An option that takes a value. */
static bool parse_value(struct settings *s, const char *option, const char *value)
{
    if (strcmp(option, "--plan") == 0) {
        s->plan_path = value;
        return true;
    }
    if (strcmp(option, "--record") == 0) {
        s->record_path = value;
        return true;
    }
    if (strcmp(option, "--iterations") == 0) {
        return parse_number(option, value, 1, 1000000000, &s->iterations);
    }
    if (strcmp(option, "--seed") == 0) {
        return parse_number(option, value, 0, UINT64_MAX, &s->net.seed);
    }
    if (strcmp(option, "--batch") == 0) {
        return parse_size(option, value, 65536, &s->net.batch);
    }
    if (strcmp(option, "--width") == 0) {
        return parse_size(option, value, 4096, &s->net.width);
    }
    if (strcmp(option, "--blocks") == 0) {
        return parse_size(option, value, 10000, &s->net.blocks);
    }
    if (strcmp(option, "--copies") == 0) {
        return parse_copies(value, &s->copies);
    }
    (void)fprintf(stderr, "mlp: no option %s; try mlp --help\n", option);
    return false;
}

static bool parse_arguments(int argc, char **argv, struct settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            s->wants_help = true;
        } else if (strcmp(argv[i], "--poison") == 0) {
            s->poison = true;
        } else if (strcmp(argv[i], "--print-losses") == 0) {
            s->prints_losses = true;
        } else if (i + 1 == argc) {
            (void)fprintf(stderr,
                          "mlp: %s: no such option, or its value is missing; try mlp "
                          "--help\n",
                          argv[i]);
            return false;
        } else if (!parse_value(s, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

/* ---- training ---- */

static void report(const struct settings *s, const struct net *net, uint64_t iteration)
{
    if (s->prints_losses) {
        (void)printf("%a\n", net->loss);
    } else if (iteration < 10 || (iteration + 1) % 10 == 0) {
        (void)printf("iteration %" PRIu64 ": loss %.4f\n", iteration, net->loss);
    }
}

/* ==== libatp: the whole integration, but for net_step, which does the work of one step ==== */

static enum atp_status run(const struct settings *s, struct net *net, struct atp_replay *replay,
                           struct atp_error *err)
{
    for (uint64_t i = 0; i < s->iterations; i++) {
        enum atp_status status = atp_replay_run_iteration(replay, net_step, err);
        if (status != ATP_OK) {
            return status;
        }
        report(s, net, i);
    }
    if (s->record_path == NULL) {
        return ATP_OK;
    }
    struct atp_profile_facts facts = {.device_name = "host",
                                      .device_memory_bytes = (uint64_t)1 << 34,
                                      .resident_bytes = net_resident_bytes(net),
                                      .note = "recorded by examples/mlp on the host backend"};
    return atp_replay_write_profile(replay, s->record_path, &facts, err);
}

/* `plan` NULL: nothing is planned, everything stays on the device. */
static enum atp_status train(const struct settings *s, struct net *net, const struct atp_plan *plan,
                             struct atp_error *err)
{
    struct atp_backend *backend;
    struct atp_replay *replay;
    struct atp_replay_options options = {
        .step = net_step, .step_ctx = net, .record = s->record_path != NULL, .poison = s->poison};
    enum atp_status status = atp_backend_host_create(&s->copies, &backend, err);
    if (status != ATP_OK) {
        return status;
    }
    status = atp_replay_open(plan, &net->model, backend, &options, &replay, err);
    if (status == ATP_OK) {
        const struct atp_plan *running = atp_replay_plan(replay);
        (void)fprintf(stderr,
                      "mlp: %" PRIu32 " steps, %" PRIu64 " bytes of device arena, %" PRIu64
                      " of host arena, %" PRIu64 " resident\n",
                      running->model.step_count, running->arena_bytes, running->host_arena_bytes,
                      net_resident_bytes(net));
        status = run(s, net, replay, err);
    }
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    return status;
}

/* ==== end of the integration ==== */

static int report_failure(const struct settings *s, enum atp_status status,
                          const struct atp_error *err)
{
    bool is_plan =
        s->plan_path != NULL && (status == ATP_ERR_INVALID || status == ATP_ERR_MISMATCH);
    (void)fprintf(stderr, "mlp: %s%s%s\n", is_plan ? s->plan_path : "", is_plan ? ": " : "",
                  err->text);
    return is_plan ? EXIT_BAD_PLAN : EXIT_FAILED;
}

static int train_with(const struct settings *s, struct net *net)
{
    struct atp_plan_file *file = NULL;
    struct atp_error err;
    if (s->plan_path != NULL && atp_plan_read(s->plan_path, &file, &err) != ATP_OK) {
        if (err.line > 0) {
            (void)fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": %s\n", s->plan_path, err.line,
                          err.column, err.text);
        } else {
            (void)fprintf(stderr, "mlp: %s\n", err.text);
        }
        return EXIT_BAD_PLAN;
    }
    enum atp_status status = train(s, net, file != NULL ? &file->plan : NULL, &err);
    int code = status == ATP_OK ? EXIT_TRAINED : report_failure(s, status, &err);
    atp_plan_file_destroy(file);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = {.net = {.batch = 32,
                                        .width = 64,
                                        .blocks = 12,
                                        .dropout = 0.1f,
                                        .rate = 0.02f,
                                        .momentum = 0.9f,
                                        .seed = 1},
                                .iterations = 20,
                                .copies = {.copies = ATP_HOST_EAGER, .delay_max_us = 100}};
    struct net net;
    if (!parse_arguments(argc, argv, &settings)) {
        return EXIT_USAGE;
    }
    if (settings.wants_help) {
        (void)fputs(help, stdout);
        return EXIT_TRAINED;
    }
    settings.copies.seed = settings.net.seed;
    if (!net_init(&net, &settings.net)) {
        (void)fputs("mlp: not enough memory for the network\n", stderr);
        return EXIT_FAILED;
    }
    int code = train_with(&settings, &net);
    net_finish(&net);
    return code;
}
