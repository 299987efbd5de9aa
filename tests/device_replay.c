/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Replays random plans on a device and looks at every byte that a step reads (witness.h). Needs no
 * kernels and no library but libatp's own sources. Prints one line for each fact; see usage() for
 * arguments and exit codes, and tests/device.sh for the whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_probe.h"
#include "plan_builder.h"
#include "random.h"
#include "random_plan.h"
#include "witness.h"

#define BURST       2 /* iterations between two looks */
#define BURST_COUNT 2 /* of each plan */

struct settings {
    const char *backend;
    uint64_t iterations, seed, scale;
    bool is_graph;
};

static void usage(FILE *file)
{
    (void)fputs("usage: device-replay [--backend cuda|eager|late|threads] [--iterations N] "
                "[--seed N] [--scale BYTES] [--graph]\n"
                "Tensors are up to 40 * scale bytes; --graph launches each plan as a graph.\n"
                "Exit codes: 0 right, 1 wrong bytes or a failure, 2 usage, 77 no such device\n",
                file);
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

static bool replay_plans(struct atp_backend *backend, const struct settings *settings)
{
    struct witness total = {.backend = backend, .burst = BURST};
    struct random random = {settings->seed};
    struct atp_error err;
    uint64_t done = 0, plan_count = 0;
    int64_t start_ns = witness_now_ns();
    while (done < settings->iterations && total.wrong_bytes == 0) {
        char title[64];
        uint64_t plan_seed = random_next(&random);
        struct plan_builder *b = random_plan(plan_seed, 2 + random_below(&random, 7));
        scale_plan(b, settings->scale);
        (void)snprintf(title, sizeof(title), "plan seed %" PRIu64, plan_seed);
        witness_insist(
            witness_replay(&total, &b->plan, BURST_COUNT, settings->is_graph, title, &err), title,
            &err);
        plan_builder_destroy(b);
        done += (uint64_t)BURST * BURST_COUNT;
        plan_count++;
    }
    if (total.wrong_bytes > 0) {
        (void)printf("wrong: %s\n", total.first_wrong);
    }
    (void)printf("chaos: %" PRIu64 " iterations of %" PRIu64 " random plans%s, %" PRIu64
                 " bytes seen, %" PRIu64 " wrong, %.1f s\n",
                 done, plan_count, settings->is_graph ? " as graphs" : "", total.seen_bytes,
                 total.wrong_bytes, (double)(witness_now_ns() - start_ns) * 1e-9);
    return total.wrong_bytes == 0;
}

static struct settings read_arguments(int count, char **arguments)
{
    struct settings settings = {.backend = "cuda", .iterations = 400, .seed = 1, .scale = 4096};
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--graph") == 0) {
            settings.is_graph = true;
            continue;
        }
        const char *name = arguments[i], *value = i + 1 < count ? arguments[++i] : NULL;
        uint64_t number = value == NULL ? 0 : strtoull(value, NULL, 10);
        if (value != NULL && strcmp(name, "--backend") == 0) {
            settings.backend = value;
        } else if (number > 0 && strcmp(name, "--iterations") == 0) {
            settings.iterations = number;
        } else if (number > 0 && strcmp(name, "--seed") == 0) {
            settings.seed = number;
        } else if (number > 0 && number <= 1 << 24 && strcmp(name, "--scale") == 0) {
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
    struct atp_backend *backend = witness_backend(settings.backend);
    struct link_rates rates;
    struct atp_error err;
    witness_insist(link_probe(backend, (uint64_t)16 << 20, &rates, &err), "link", &err);
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
