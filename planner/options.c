/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One table says everything about the flags: the parser, the help and the hints read it. Not
 * getopt_long, which neither knows commands nor proposes what was meant.
 */
#include "options.h"

#include "emit_c.h"
#include "fail.h"
#include "usage.h"

#include <string.h>

enum flag {
    FLAG_ALIGNMENT,
    FLAG_BATCH,
    FLAG_BUDGET,
    FLAG_C,
    FLAG_COPY_RATE,
    FLAG_CSV,
    FLAG_DEVICE_MEMORY,
    FLAG_EFFORT,
    FLAG_FORCE,
    FLAG_GAP,
    FLAG_GLOBAL_BATCH,
    FLAG_HELP,
    FLAG_INPUT,
    FLAG_JSON,
    FLAG_MAX_GAP,
    FLAG_NAME,
    FLAG_MULTIPLE,
    FLAG_NO_COLOR,
    FLAG_NO_POLICIES,
    FLAG_OUTPUT,
    FLAG_PLANS,
    FLAG_POINTS,
    FLAG_PROFILE,
    FLAG_PYTORCH,
    FLAG_QUIET,
    FLAG_RANGE,
    FLAG_REPORT,
    FLAG_RESIDENT,
    FLAG_TIME_LIMIT,
    FLAG_UPDATE,
    FLAG_VERBOSE,
    FLAG_VERSION,
    FLAG_WIDTH,
    FLAG_COUNT
};

#define BATCH_MAX    (UINT64_C(1) << 31)
#define SWEEP_POINTS 10U
#define PEAK_POINTS  4U /* beside those of the search */

#define FOR(command) (1U << (command))
#define SOLVE        FOR(COMMAND_SOLVE)
#define CHECK        FOR(COMMAND_CHECK)
#define SHOW         FOR(COMMAND_SHOW)
#define COMPARE      FOR(COMMAND_COMPARE)
#define SWEEP        FOR(COMMAND_SWEEP)
#define TRACE        FOR(COMMAND_TRACE)
#define DIFF         FOR(COMMAND_DIFF)
#define EMIT         FOR(COMMAND_EMIT)
#define PEAK         FOR(COMMAND_PEAK)
#define REPORT       FOR(COMMAND_REPORT)
#define IMPORT       FOR(COMMAND_IMPORT)
#define SOLVERS      (SOLVE | COMPARE | SWEEP | PEAK)
#define ANY          (FOR(COMMAND_NONE) | SOLVERS | CHECK | SHOW | TRACE | DIFF | EMIT | REPORT | IMPORT)

static const struct {
    const char *name, *alias; /* "" when there is no alias */
    const char *value;        /* what it takes; NULL: nothing */
    unsigned commands;        /* a set of FOR */
    const char *help;
} FLAGS[FLAG_COUNT] = {
    [FLAG_ALIGNMENT] = {"--alignment", "", "BYTES", SOLVERS,
                        "every offset is a multiple of it, a power of two (default: 256 or less)"},
    [FLAG_BATCH] = {"--batch", "", "NUMBER", (SOLVERS & ~PEAK) | CHECK | IMPORT,
                    "batch size (default: the plan's, or the profile's largest)"},
    [FLAG_BUDGET] = {"--budget", "", "SIZE", SOLVE | CHECK | COMPARE | PEAK,
                     "device memory that the training may use: 16GiB, 14GB, 8e9, 60%"},
    [FLAG_C] = {"--c", "", NULL, EMIT, "as C source, the only language so far"},
    [FLAG_COPY_RATE] = {"--copy-rate", "", "SIZE", IMPORT,
                        "bytes per second of a copy to the host, and of one back: 25GB"},
    [FLAG_CSV] = {"--csv", "", NULL, COMPARE | SWEEP | PEAK | IMPORT,
                  "comma-separated values, one line a row"},
    [FLAG_DEVICE_MEMORY] = {"--device-memory", "", "SIZE", IMPORT, "memory of the device"},
    [FLAG_EFFORT] = {"--effort", "", "NUMBER", SOLVERS,
                     "multiplies the work spent on the search (default: 1)"},
    [FLAG_FORCE] = {"--force", "", NULL, DIFF, "compare plans of different models, by name"},
    [FLAG_GAP] = {"--gap", "", "PERCENT", PEAK,
                  "prove that no other batch size is faster by more than this (default: 1%)"},
    [FLAG_GLOBAL_BATCH] =
        {"--global-batch", "", "NUMBER", PEAK,
         "samples between two updates: gradients accumulate over several batches"},
    [FLAG_HELP] = {"--help", "-h", NULL, ANY, "print this help"},
    [FLAG_INPUT] = {"--input", "", "SIZE", IMPORT, "what the first layer reads (default: nothing)"},
    [FLAG_JSON] = {"--json", "", NULL, SHOW | DIFF, "print one JSON object, for scripts"},
    [FLAG_MAX_GAP] = {"--max-gap", "", "PERCENT", CHECK,
                      "prove the bound anew, fail when the plan is further from it: 1%"},
    [FLAG_MULTIPLE] = {"--multiple", "", "NUMBER", PEAK, "of batch sizes (default: 1)"},
    [FLAG_NAME] = {"--name", "", "SYMBOL", EMIT, "name of the variable (default: plan)"},
    [FLAG_NO_COLOR] = {"--no-color", "", NULL, SHOW,
                       "no colours (as NO_COLOR=1 in the environment)"},
    [FLAG_NO_POLICIES] = {"--no-policies", "", NULL, REPORT,
                          "leave out the comparison with simple policies"},
    [FLAG_OUTPUT] = {"-o", "--output", "FILE", SOLVE | PEAK | TRACE | EMIT | REPORT | IMPORT,
                     "write the result to this file (all but peak: default standard output)"},
    [FLAG_PLANS] = {"--plans", "", "NUMBER", PEAK, "that the search may make (default: 8)"},
    [FLAG_POINTS] = {"--points", "", "NUMBER", SWEEP | PEAK,
                     "budgets to plan for (default: 10), or batch sizes (default: 4)"},
    [FLAG_PROFILE] = {"--profile", "", "PROFILE", CHECK | TRACE | REPORT,
                      "the profile that the plan must be for"},
    [FLAG_PYTORCH] = {"--pytorch", "", NULL, IMPORT, "a trace of torch.profiler, in JSON"},
    [FLAG_QUIET] = {"-q", "--quiet", NULL, SOLVERS | CHECK | IMPORT, "say nothing but errors"},
    [FLAG_RANGE] = {"--range", "", "LO..HI", PEAK,
                    "of batch sizes (default: from 1 to the largest that can have a plan)"},
    [FLAG_REPORT] = {"--report", "", "FILE", SOLVE, "write numbers about the search, in JSON"},
    [FLAG_RESIDENT] = {"--resident", "", "SIZE", IMPORT,
                       "always on the device: weights, gradients, optimizer state"},
    [FLAG_TIME_LIMIT] = {"--time-limit", "", "SECONDS", SOLVERS,
                         "end the search by the clock and mark the plan"},
    [FLAG_UPDATE] = {"--update-us", "", "NUMBER", IMPORT,
                     "time of the optimizer (default: no update step)"},
    [FLAG_VERBOSE] = {"-v", "--verbose", NULL, SOLVE, "say more"},
    [FLAG_VERSION] = {"--version", "", NULL, FOR(COMMAND_NONE), "print the version"},
    [FLAG_WIDTH] = {"--width", "", "NUMBER", SHOW,
                    "columns of the pictures (default: the terminal's)"},
};

static const char *const COMMANDS[] = {
    [COMMAND_NONE] = "atp-plan", [COMMAND_SOLVE] = "solve",     [COMMAND_CHECK] = "check",
    [COMMAND_SHOW] = "show",     [COMMAND_COMPARE] = "compare", [COMMAND_SWEEP] = "sweep",
    [COMMAND_TRACE] = "trace",   [COMMAND_DIFF] = "diff",       [COMMAND_EMIT] = "emit",
    [COMMAND_PEAK] = "peak",     [COMMAND_REPORT] = "report",   [COMMAND_IMPORT] = "import"};
#define COMMAND_COUNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

const char *options_command_name(enum command command)
{
    return COMMANDS[command];
}

/* Edits between two words, up to a small size: swaps of neighbours count once. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 24 };
    unsigned d[MOST + 1][MOST + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > MOST || n > MOST) {
        return MOST;
    }
    for (size_t i = 0; i <= m; i++) {
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + 1 < best) {
                best = d[i - 2][j - 2] + 1;
            }
            d[i][j] = best;
        }
    }
    return d[m][n];
}

/* A word that was meant, when it is a beginning of it or at most two edits away. */
static bool is_near(const char *word, const char *meant)
{
    size_t length = strlen(word);
    bool is_beginning = length >= 3 && strncmp(word, meant, length) == 0;
    return is_beginning || (length >= 4 && distance(word, meant) <= 2);
}

static const char *nearest_command(const char *word)
{
    for (size_t i = COMMAND_SOLVE; i < COMMAND_COUNT; i++) {
        if (is_near(word, COMMANDS[i])) {
            return COMMANDS[i];
        }
    }
    return NULL;
}

static enum atp_status fail_flag(const char *flag, size_t length, struct atp_error *err)
{
    char word[32];
    (void)snprintf(word, sizeof(word), "%.*s", (int)(length < 31 ? length : 31), flag);
    const char *meant = NULL;
    unsigned least = 3;
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        unsigned far = distance(word, FLAGS[i].name);
        bool is_beginning = length >= 4 && strncmp(word, FLAGS[i].name, strlen(word)) == 0;
        /* A beginning is nearer than two edits. */
        far = is_beginning && far > 1 ? 1 : far;
        if (length >= 4 && far < least) {
            least = far;
            meant = FLAGS[i].name;
        }
    }
    if (meant != NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "there is no option %s, did you mean %s?", word,
                        meant);
    }
    return atp_fail(err, ATP_ERR_INVALID, "there is no option %s", word);
}

/* Where one is in the arguments. */
struct cursor {
    int argc, at;
    char *const *argv;
    uint64_t given; /* a set of 1 << flag */
};

/* The flag that the argument names, with its value where it has one: the rest of the argument
 * behind `=` (behind the letter for short ones), or the next argument. FLAG_COUNT: none. */
static enum atp_status find_flag(struct cursor *cursor, enum flag *out_flag, const char **out_value,
                                 struct atp_error *err)
{
    const char *argument = cursor->argv[cursor->at];
    bool is_long = argument[1] == '-';
    size_t length = is_long ? strcspn(argument, "=") : 2;
    const char *rest = argument[length] == '\0' ? NULL : argument + length + (is_long ? 1 : 0);
    size_t i = 0;
    for (; i < FLAG_COUNT; i++) {
        bool is_name =
            strlen(FLAGS[i].name) == length && strncmp(argument, FLAGS[i].name, length) == 0;
        bool is_alias =
            strlen(FLAGS[i].alias) == length && strncmp(argument, FLAGS[i].alias, length) == 0;
        if (is_name || is_alias) {
            break;
        }
    }
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
    *out_flag = (enum flag)i;
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
    for (size_t i = COMMAND_SOLVE; is_first && i < COMMAND_COUNT; i++) {
        if (strcmp(word, COMMANDS[i]) == 0) {
            out->command = (enum command)i;
            return ATP_OK;
        }
    }
    if (out->input == NULL) {
        out->input = word;
        return ATP_OK;
    }
    if (out->command == COMMAND_DIFF && out->second == NULL) {
        out->second = word;
        return ATP_OK;
    }
    const char *meant = nearest_command(out->input);
    if (out->command == COMMAND_NONE && meant != NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "there is no command %s, did you mean %s?",
                        out->input, meant);
    }
    return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is one file too many, behind \"%s\"", word,
                    out->second != NULL ? out->second : out->input);
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

static enum atp_status check_options(const struct cursor *cursor, struct options *out,
                                     struct atp_error *err)
{
    enum command named = out->command;
    if (out->command == COMMAND_NONE) {
        out->command = COMMAND_SOLVE;
    }
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        bool is_given = (cursor->given & (UINT64_C(1) << i)) != 0;
        if (is_given && (FLAGS[i].commands & FOR(out->command)) == 0) {
            return atp_fail(err, ATP_ERR_INVALID, "%s has no option %s",
                            named == COMMAND_NONE
                                ? "solve, which is meant when no command is given,"
                                : COMMANDS[named],
                            FLAGS[i].name);
        }
    }
    if (out->command == COMMAND_PEAK && (cursor->given & (UINT64_C(1) << FLAG_POINTS)) == 0) {
        out->points = PEAK_POINTS;
    }
    if (out->input == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "%s needs a %s", COMMANDS[out->command],
                        (FOR(out->command) & SOLVERS) != 0 ? "profile"
                        : out->command == COMMAND_IMPORT   ? "file"
                                                           : "plan");
    }
    if (out->command == COMMAND_IMPORT) {
        ATP_TRY(check_import(cursor, out, err));
    }
    if (out->command == COMMAND_DIFF && out->second == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "diff needs two plans");
    }
    if (out->command == COMMAND_TRACE && out->profile == NULL) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "trace needs --profile PROFILE: a plan holds no times of single steps");
    }
    if (out->command == COMMAND_EMIT && !out->c) {
        return atp_fail(err, ATP_ERR_INVALID, "emit needs a language: --c");
    }
    if (out->quiet && out->verbose) {
        return atp_fail(err, ATP_ERR_INVALID, "-q and -v exclude each other");
    }
    if (out->command == COMMAND_CHECK && out->profile == NULL &&
        (out->has_max_gap || out->has_budget || out->batch_size != 0)) {
        const char *flag = out->has_budget ? "--budget" : "--batch";
        return atp_fail(err, ATP_ERR_INVALID, "%s needs --profile PROFILE",
                        out->has_max_gap ? "--max-gap" : flag);
    }
    if (out->command == COMMAND_REPORT && out->profile == NULL) {
        return atp_fail(err, ATP_ERR_INVALID, "report needs --profile PROFILE");
    }
    return ATP_OK;
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
        if ((FLAGS[i].commands & FOR(command)) != 0) {
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
