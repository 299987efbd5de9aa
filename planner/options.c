/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Not getopt_long, which neither knows commands nor proposes what was meant.
 */
#include "options.h"

#include "emit_c.h"
#include "fail.h"
#include "flag.h"
#include "usage.h"

#include <string.h>

#define BATCH_MAX    (UINT64_C(1) << 31)
#define SWEEP_POINTS 10U
#define PEAK_POINTS  4U /* beside those of the search */

/* Where one is in the arguments. */
struct cursor {
    int argc, at;
    char *const *argv;
    uint64_t given; /* a set of 1 << flag */
};

static enum atp_status fail_flag(const char *word, size_t length, struct atp_error *err)
{
    const char *meant = flag_nearest(word, length);
    return atp_fail(err, ATP_ERR_INVALID, "there is no option %.*s%s%s%s",
                    (int)(length < 31 ? length : 31), word, meant != NULL ? ", did you mean " : "",
                    meant != NULL ? meant : "", meant != NULL ? "?" : "");
}

/* The flag that the argument names, with its value where it has one: the rest of the argument
 * behind
 * `=` (behind the letter for short ones), or the next argument. FLAG_COUNT: no such flag. */
static enum atp_status find_flag(struct cursor *cursor, enum flag *out_flag, const char **out_value,
                                 struct atp_error *err)
{
    const char *argument = cursor->argv[cursor->at];
    bool is_long = argument[1] == '-';
    size_t length = is_long ? strcspn(argument, "=") : 2;
    const char *rest = argument[length] == '\0' ? NULL : argument + length + (is_long ? 1 : 0);
    enum flag i = flag_named(argument, length);
    if (i == FLAG_COUNT || (!is_long && rest != NULL && FLAGS[i].value == NULL)) {
        return fail_flag(argument, is_long ? length : strlen(argument), err);
    }
    if (FLAGS[i].value == NULL && rest != NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "%s takes no value", FLAGS[i].name);
    }
    if (FLAGS[i].value != NULL && rest == NULL) {
        bool has_next = cursor->at + 1 < cursor->argc;
        const char *next = has_next ? cursor->argv[cursor->at + 1] : "";
        /* `-` alone is a value: standard output. */
        if (!has_next || (next[0] == '-' && next[1] != '\0')) {
            return atp_fail(err, ATP_ERR_INVALID, "%s needs a value: %s %s", FLAGS[i].name,
                            FLAGS[i].name, FLAGS[i].value);
        }
        rest = next;
        cursor->at++;
    }
    *out_flag = i;
    *out_value = rest;
    return ATP_OK;
}

static enum atp_status read_alignment(const char *value, uint64_t *out, struct atp_error *err)
{
    const uint64_t most = UINT64_C(1) << 32;
    ATP_TRY(size_parse_count(value, 1, most, out, err));
    if ((*out & (*out - 1)) != 0) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\", expected a power of two", value);
    }
    return ATP_OK;
}

static enum atp_status read_range(const char *value, struct options *out, struct atp_error *err)
{
    char first[24];
    size_t length = strcspn(value, ".");
    if (strncmp(value + length, "..", 2) != 0 || length >= sizeof(first)) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\", expected two numbers: 8..64", value);
    }
    memcpy(first, value, length);
    first[length] = '\0';
    ATP_TRY(size_parse_count(first, 1, BATCH_MAX, &out->first_batch, err));
    ATP_TRY(size_parse_count(value + length + 2, 1, BATCH_MAX, &out->last_batch, err));
    if (out->first_batch > out->last_batch) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is empty, expected the smaller one first",
                        value);
    }
    return ATP_OK;
}

static enum atp_status set_number(enum flag flag, const char *value, struct options *out,
                                  struct atp_error *err)
{
    uint64_t number = 0;
    if (flag == FLAG_ALIGNMENT) {
        return read_alignment(value, &out->alignment_bytes, err);
    }
    if (flag == FLAG_BATCH) {
        return size_parse_count(value, 1, BATCH_MAX, &out->batch_size, err);
    }
    if (flag == FLAG_EFFORT) {
        ATP_TRY(size_parse_count(value, 1, 1000000, &number, err));
        out->effort = (uint32_t)number;
        return ATP_OK;
    }
    if (flag == FLAG_GLOBAL_BATCH) {
        return size_parse_count(value, 1, BATCH_MAX, &out->global_batch, err);
    }
    if (flag == FLAG_MULTIPLE) {
        return size_parse_count(value, 1, BATCH_MAX, &out->multiple, err);
    }
    if (flag == FLAG_PLANS) {
        ATP_TRY(size_parse_count(value, 1, 1000000, &number, err));
        out->plans = (uint32_t)number;
        return ATP_OK;
    }
    if (flag == FLAG_POINTS) {
        ATP_TRY(size_parse_count(value, 2, 1000, &number, err));
        out->points = (uint32_t)number;
        return ATP_OK;
    }
    ATP_TRY(size_parse_count(value, 20, 1000, &number, err));
    out->width = (uint32_t)number;
    return ATP_OK;
}

static enum atp_status set_name(const char *value, struct options *out, struct atp_error *err)
{
    if (!emit_c_is_symbol(value)) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\", expected a C identifier of at most 48 characters", value);
    }
    out->name = value;
    return ATP_OK;
}

static enum atp_status set_import(enum flag flag, const char *value, struct import_numbers *out,
                                  struct atp_error *err)
{
    uint64_t *const targets[FLAG_COUNT] = {[FLAG_COPY_RATE] = &out->d2h_bytes_per_second,
                                           [FLAG_DEVICE_MEMORY] = &out->device_memory_bytes,
                                           [FLAG_INPUT] = &out->input_bytes,
                                           [FLAG_RESIDENT] = &out->resident_bytes};
    struct size size;
    ATP_TRY(size_parse(value, &size, err));
    if (size.is_share) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\", expected bytes, not a share", value);
    }
    *targets[flag] = size.amount;
    out->h2d_bytes_per_second = out->d2h_bytes_per_second;
    return ATP_OK;
}

static enum atp_status set_device(enum flag flag, const char *value, struct options *out,
                                  struct atp_error *err)
{
    if (flag == FLAG_MEMORY) {
        return size_parse_memory(value, &out->memory_bytes, err);
    }
    uint64_t *rate = flag == FLAG_D2H ? &out->d2h_bytes_per_second : &out->h2d_bytes_per_second;
    return size_parse_rate(value, rate, err);
}

static enum atp_status set_switch(enum flag flag, struct options *out)
{
    bool *const switches[FLAG_COUNT] = {[FLAG_C] = &out->c,
                                        [FLAG_CSV] = &out->csv,
                                        [FLAG_PYTORCH] = &out->pytorch,
                                        [FLAG_FORCE] = &out->force,
                                        [FLAG_JSON] = &out->json,
                                        [FLAG_HELP] = &out->help,
                                        [FLAG_VERSION] = &out->version,
                                        [FLAG_NO_COLOR] = &out->no_color,
                                        [FLAG_NO_POLICIES] = &out->no_policies,
                                        [FLAG_QUIET] = &out->quiet,
                                        [FLAG_VERBOSE] = &out->verbose};
    *switches[flag] = true;
    return ATP_OK;
}

static enum atp_status set_flag(enum flag flag, const char *value, struct options *out,
                                struct atp_error *err)
{
    switch (flag) {
    case FLAG_ALIGNMENT:
    case FLAG_BATCH:
    case FLAG_EFFORT:
    case FLAG_GLOBAL_BATCH:
    case FLAG_MULTIPLE:
    case FLAG_PLANS:
    case FLAG_POINTS:
    case FLAG_WIDTH:
        return set_number(flag, value, out, err);
    case FLAG_BUDGET:
        out->has_budget = true;
        return size_parse(value, &out->budget, err);
    case FLAG_D2H:
    case FLAG_H2D:
    case FLAG_MEMORY:
        return set_device(flag, value, out, err);
    case FLAG_COPY_RATE:
    case FLAG_DEVICE_MEMORY:
    case FLAG_INPUT:
    case FLAG_RESIDENT:
        return set_import(flag, value, &out->import, err);
    case FLAG_UPDATE:
        return size_parse_count(value, 0, UINT64_C(1000000000000), &out->import.update_us, err);
    case FLAG_MAX_GAP:
        out->has_max_gap = true;
        return size_parse_percent(value, &out->max_gap, err);
    case FLAG_GAP:
        return size_parse_percent(value, &out->gap, err);
    case FLAG_RANGE:
        return read_range(value, out, err);
    case FLAG_TIME_LIMIT:
        return size_parse_seconds(value, &out->time_limit_ms, err);
    case FLAG_OUTPUT:
        out->output = strcmp(value, "-") == 0 ? NULL : value;
        return ATP_OK;
    case FLAG_PROFILE:
        out->profile = value;
        return ATP_OK;
    case FLAG_NAME:
        return set_name(value, out, err);
    case FLAG_REPORT:
        out->report = value;
        return ATP_OK;
    case FLAG_C:
    case FLAG_CSV:
    case FLAG_PYTORCH:
    case FLAG_FORCE:
    case FLAG_JSON:
    case FLAG_HELP:
    case FLAG_VERSION:
    case FLAG_NO_COLOR:
    case FLAG_NO_POLICIES:
    case FLAG_QUIET:
    case FLAG_VERBOSE:
        return set_switch(flag, out);
    case FLAG_COUNT:
        break;
    }
    return atp_fail(err, ATP_ERR_INTERNAL, "flag %u has no meaning", (unsigned)flag);
}

static enum atp_status read_flag(struct cursor *cursor, struct options *out, struct atp_error *err)
{
    enum flag flag = FLAG_COUNT;
    const char *value = NULL;
    struct atp_error cause;
    ATP_TRY(find_flag(cursor, &flag, &value, err));
    bool may_repeat = FLAGS[flag].value == NULL;
    if (!may_repeat && (cursor->given & (UINT64_C(1) << flag)) != 0) {
        return atp_fail(err, ATP_ERR_INVALID, "%s is given twice", FLAGS[flag].name);
    }
    cursor->given |= UINT64_C(1) << flag;
    enum atp_status status = set_flag(flag, value, out, &cause);
    if (status != ATP_OK) {
        return atp_fail(err, status, "%s: %s", FLAGS[flag].name, cause.text);
    }
    return ATP_OK;
}

/* Flags may stand before the command's name; the first word that is no flag may be one. */
static enum atp_status read_word(const char *word, bool is_first, struct options *out,
                                 struct atp_error *err)
{
    enum command named = is_first ? flag_command_named(word) : COMMAND_NONE;
    if (named != COMMAND_NONE) {
        out->command = named;
        return ATP_OK;
    }
    if (out->command == COMMAND_MERGE && out->input_count < OPTIONS_INPUTS_MAX) {
        out->inputs[out->input_count++] = word;
        out->input = out->inputs[0];
        return ATP_OK;
    }
    if (out->input == NULL) {
        out->input = word;
        return ATP_OK;
    }
    if (out->command == COMMAND_DIFF && out->second == NULL) {
        out->second = word;
        return ATP_OK;
    }
    const char *meant = flag_command_nearest(out->input);
    if (out->command == COMMAND_NONE && meant != NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "there is no command %s, did you mean %s?",
                        out->input, meant);
    }
    return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is one file too many, behind \"%s\"", word,
                    out->second != NULL    ? out->second
                    : out->input_count > 0 ? out->inputs[out->input_count - 1]
                                           : out->input);
}

/* What no file has must be said: a guess would make plans that look good. */
static enum atp_status check_import(const struct cursor *cursor, struct options *out,
                                    struct atp_error *err)
{
    static const enum flag needed[] = {FLAG_BATCH, FLAG_DEVICE_MEMORY, FLAG_COPY_RATE,
                                       FLAG_RESIDENT};
    const uint64_t of_layers = UINT64_C(1) << FLAG_INPUT | UINT64_C(1) << FLAG_UPDATE;
    if (out->csv == out->pytorch) {
        return atp_fail(err, ATP_ERR_INVALID, "import needs one of --csv and --pytorch");
    }
    if (out->pytorch && (cursor->given & of_layers) != 0) {
        return atp_fail(err, ATP_ERR_INVALID, "--input and --update-us are for --csv");
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if ((cursor->given & (UINT64_C(1) << needed[i])) == 0) {
            return atp_fail(err, ATP_ERR_INVALID, "import needs %s %s", FLAGS[needed[i]].name,
                            FLAGS[needed[i]].value);
        }
    }
    if (out->import.device_memory_bytes == 0 || out->import.d2h_bytes_per_second == 0) {
        return atp_fail(err, ATP_ERR_INVALID, "%s: 0, expected more",
                        out->import.device_memory_bytes == 0 ? "--device-memory" : "--copy-rate");
    }
    out->import.batch_size = out->batch_size;
    return ATP_OK;
}

/* What each command cannot do without. */
static enum atp_status check_needs(const struct cursor *cursor, struct options *out,
                                   struct atp_error *err)
{
    if (out->command == COMMAND_IMPORT) {
        ATP_TRY(check_import(cursor, out, err));
    }
    if (out->command == COMMAND_DIFF && out->second == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "diff needs two plans");
    }
    if (out->command == COMMAND_MERGE && out->input_count < 2) {
        return atp_fail(err, ATP_ERR_INVALID, "merge needs two profiles or more");
    }
    if (out->command == COMMAND_TRACE && out->profile == NULL) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "trace needs --profile PROFILE: a plan holds no times of single steps");
    }
    if (out->command == COMMAND_EMIT && !out->c) {
        return atp_fail(err, ATP_ERR_INVALID, "emit needs a language: --c");
    }
    static const enum flag of_profile[] = {FLAG_MAX_GAP, FLAG_BUDGET, FLAG_BATCH, FLAG_D2H,
                                           FLAG_H2D};
    for (size_t i = 0; i < sizeof(of_profile) / sizeof(of_profile[0]); i++) {
        bool is_given = (cursor->given & (UINT64_C(1) << of_profile[i])) != 0;
        if (is_given && out->command == COMMAND_CHECK && out->profile == NULL) {
            return atp_fail(err, ATP_ERR_INVALID, "%s needs --profile PROFILE",
                            FLAGS[of_profile[i]].name);
        }
    }
    if (out->command == COMMAND_REPORT && out->profile == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "report needs --profile PROFILE");
    }
    return ATP_OK;
}

static enum atp_status check_options(const struct cursor *cursor, struct options *out,
                                     struct atp_error *err)
{
    enum command named = out->command;
    if (out->command == COMMAND_NONE) {
        out->command = COMMAND_SOLVE;
    }
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        bool is_given = (cursor->given & (UINT64_C(1) << i)) != 0;
        if (is_given && (FLAGS[i].commands & FLAG_FOR(out->command)) == 0) {
            return atp_fail(err, ATP_ERR_INVALID, "%s has no option %s",
                            named == COMMAND_NONE
                                ? "solve, which is meant when no command is given,"
                                : options_command_name(named),
                            FLAGS[i].name);
        }
    }
    if (out->command == COMMAND_PEAK && (cursor->given & (UINT64_C(1) << FLAG_POINTS)) == 0) {
        out->points = PEAK_POINTS;
    }
    if (out->input == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "%s needs a %s", options_command_name(out->command),
                        flag_operand(out->command));
    }
    if (out->quiet && out->verbose) {
        return atp_fail(err, ATP_ERR_INVALID, "-q and -v exclude each other");
    }
    return check_needs(cursor, out, err);
}

enum atp_status options_parse(int argc, char *const *argv, struct options *out,
                              struct atp_error *err)
{
    struct cursor cursor = {.argc = argc, .at = 1, .argv = argv};
    bool only_words = false, is_first = true;
    *out = (struct options){.effort = 1,
                            .points = SWEEP_POINTS,
                            .plans = 8,
                            .gap = SIZE_PERCENT,
                            .multiple = 1,
                            .name = "plan"};
    for (; cursor.at < argc; cursor.at++) {
        const char *argument = argv[cursor.at];
        if (!only_words && strcmp(argument, "--") == 0) {
            only_words = true;
            is_first = false;
        } else if (!only_words && argument[0] == '-' && argument[1] != '\0') {
            ATP_TRY(read_flag(&cursor, out, err));
        } else {
            ATP_TRY(read_word(argument, is_first, out, err));
            is_first = false;
        }
    }
    if (out->help || out->version) {
        return ATP_OK;
    }
    return check_options(&cursor, out, err);
}

void options_help(enum command command, FILE *out)
{
    (void)fprintf(out, "%s\nOptions:\n", usage_text(command));
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((FLAGS[i].commands & FLAG_FOR(command)) != 0) {
            char left[40];
            (void)snprintf(left, sizeof(left), "%s%s%s", FLAGS[i].name,
                           FLAGS[i].value != NULL ? " " : "",
                           FLAGS[i].value != NULL ? FLAGS[i].value : "");
            (void)fprintf(out, "  %-20s %s\n", left, FLAGS[i].help);
        }
    }
    (void)fputs(
        "\nExit status: 0 done; 1 no plan, or the check failed; 2 usage; 3 a file is wrong; "
        "4 internal error.\n",
        out);
}
