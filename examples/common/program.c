/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arguments ---- */

static bool parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
                         uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < least || value > most) {
        (void)fprintf(stderr, "%s: %s %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
                      program_name, option, text, least, most);
        return false;
    }
    *out = value;
    return true;
}

static bool parse_bytes(const char *option, const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"kB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"KiB", (uint64_t)1 << 10},
                 {"MiB", (uint64_t)1 << 20},
                 {"GiB", (uint64_t)1 << 30}};
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (errno == 0 && *text >= '0' && *text <= '9' && strcmp(end, units[i].name) == 0 &&
            value > 0 && value <= UINT64_MAX / units[i].bytes) {
            *out = value * units[i].bytes;
            return true;
        }
    }
    (void)fprintf(stderr, "%s: %s %s: expected a size such as 300MiB or 2GB\n", program_name,
                  option, text);
    return false;
}

static bool parse_copies(const char *text, enum atp_host_copies *out)
{
    static const char *const names[] = {"eager", "late", "threads"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum atp_host_copies)i;
            return true;
        }
    }
    (void)fprintf(stderr, "%s: --copies %s: expected eager, late or threads\n", program_name, text);
    return false;
}

/* An option that takes a value. */
static bool parse_value(const struct arguments *a, const char *option, const char *value)
{
    struct training *t = a->training;
    bool is_known = false;
    for (size_t i = 0; i < a->number_count; i++) {
        if (strcmp(option, a->numbers[i].name) == 0) {
            uint64_t number = 0;
            bool is_good =
                parse_number(option, value, a->numbers[i].least, a->numbers[i].most, &number);
            *a->numbers[i].out = (uint32_t)number;
            return is_good;
        }
    }
    if (strcmp(option, "--record") == 0) {
        t->record_path = value;
        return true;
    }
    if (strcmp(option, "--plan") == 0) {
        t->plan_path = value;
        return true;
    }
    if (strcmp(option, "--iterations") == 0) {
        return parse_number(option, value, 1, 1000000000, &t->iterations);
    }
    if (strcmp(option, "--memory") == 0) {
        return parse_bytes(option, value, &t->memory_bytes);
    }
    if (strcmp(option, "--link") == 0) {
        return parse_bytes(option, value, &t->copies.bytes_per_second);
    }
    if (strcmp(option, "--copies") == 0) {
        return parse_copies(value, &t->copies.copies);
    }
    bool is_good = a->other != NULL && a->other(a->ctx, option, value, &is_known);
    if (!is_known) {
        (void)fprintf(stderr, "%s: no option %s; try %s --help\n", program_name, option,
                      program_name);
    }
    return is_known && is_good;
}

bool parse_arguments(int argc, char **argv, const struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            *a->wants_help = true;
        } else if (strcmp(argv[i], "--poison") == 0) {
            a->training->poison = true;
        } else if (strcmp(argv[i], "--print-losses") == 0) {
            a->training->prints_losses = true;
        } else if (a->flag != NULL && strcmp(argv[i], a->flag_name) == 0) {
            *a->flag = true;
        } else if (i + 1 == argc) {
            (void)fprintf(stderr,
                          "%s: %s: no such option, or its value is missing; try %s --help\n",
                          program_name, argv[i], program_name);
            return false;
        } else if (!parse_value(a, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

/* ---- training ---- */

int train_network(const struct training *t, const struct network *net, uint64_t parameter_count)
{
    struct atp_error err = {.status = ATP_OK};
    if (!t->is_silent) {
        (void)fprintf(stderr,
                      "%s: %" PRIu64 " parameters, %" PRIu64 " resident bytes, %" PRIu32
                      " steps on %" PRIu32 " tensors\n",
                      program_name, parameter_count, net->resident_bytes, net->model->step_count,
                      net->model->tensor_count);
    }
    enum atp_status status = train(t, net, &err);
    const char *failure = device_failure(net->device);
    if (status == ATP_OK && failure == NULL) {
        return EXIT_TRAINED;
    }
    bool is_plan = t->plan_path != NULL && failure == NULL &&
                   (err.line > 0 || status == ATP_ERR_INVALID || status == ATP_ERR_MISMATCH ||
                    status == ATP_ERR_IO);
    if (err.line > 0) {
        (void)fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": %s\n", t->plan_path, err.line,
                      err.column, err.text);
    } else {
        bool names_plan = is_plan && status != ATP_ERR_IO;
        (void)fprintf(stderr, "%s: %s%s%s\n", program_name, names_plan ? t->plan_path : "",
                      names_plan ? ": " : "", failure != NULL ? failure : err.text);
    }
    return is_plan ? EXIT_BAD_PLAN : EXIT_FAILED;
}
