/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "flag.h"

#include <string.h>

#define SOLVE   FLAG_FOR(COMMAND_SOLVE)
#define CHECK   FLAG_FOR(COMMAND_CHECK)
#define SHOW    FLAG_FOR(COMMAND_SHOW)
#define COMPARE FLAG_FOR(COMMAND_COMPARE)
#define SWEEP   FLAG_FOR(COMMAND_SWEEP)
#define TRACE   FLAG_FOR(COMMAND_TRACE)
#define DIFF    FLAG_FOR(COMMAND_DIFF)
#define EMIT    FLAG_FOR(COMMAND_EMIT)
#define PEAK    FLAG_FOR(COMMAND_PEAK)
#define REPORT  FLAG_FOR(COMMAND_REPORT)
#define IMPORT  FLAG_FOR(COMMAND_IMPORT)
#define MERGE   FLAG_FOR(COMMAND_MERGE)
#define SOLVERS (SOLVE | COMPARE | SWEEP | PEAK)
#define ANY     (~0U)

const struct flag_info FLAGS[FLAG_COUNT] = {
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
    [FLAG_D2H] = {"--d2h", "", "RATE", SOLVERS | CHECK | TRACE | REPORT,
                  "bytes per second from device to host instead of the profile's: 25GB/s, 50e9"},
    [FLAG_DEVICE_MEMORY] = {"--device-memory", "", "SIZE", IMPORT, "memory of the device"},
    [FLAG_EFFORT] = {"--effort", "", "NUMBER", SOLVERS,
                     "multiplies the work spent on the search (default: 1)"},
    [FLAG_FORCE] = {"--force", "", NULL, DIFF, "compare plans of different models, by name"},
    [FLAG_GAP] = {"--gap", "", "PERCENT", PEAK,
                  "prove that no other batch size is faster by more than this (default: 1%)"},
    [FLAG_GLOBAL_BATCH] =
        {"--global-batch", "", "NUMBER", PEAK,
         "samples between two updates: gradients accumulate over several batches"},
    [FLAG_H2D] = {"--h2d", "", "RATE", SOLVERS | CHECK | TRACE | REPORT,
                  "the same from host to device"},
    [FLAG_HELP] = {"--help", "-h", NULL, ANY, "print this help"},
    [FLAG_INPUT] = {"--input", "", "SIZE", IMPORT, "what the first layer reads (default: nothing)"},
    [FLAG_JSON] = {"--json", "", NULL, SHOW | DIFF, "print one JSON object, for scripts"},
    [FLAG_MAX_GAP] = {"--max-gap", "", "PERCENT", CHECK,
                      "prove the bound anew, fail when the plan is further from it: 1%"},
    [FLAG_MEMORY] = {"--memory", "", "SIZE", SOLVERS,
                     "memory of the device instead of the profile's: 16GiB"},
    [FLAG_MULTIPLE] = {"--multiple", "", "NUMBER", PEAK, "of batch sizes (default: 1)"},
    [FLAG_NAME] = {"--name", "", "SYMBOL", EMIT, "name of the variable (default: plan)"},
    [FLAG_NO_COLOR] = {"--no-color", "", NULL, SHOW,
                       "no colours (as NO_COLOR=1 in the environment)"},
    [FLAG_NO_POLICIES] = {"--no-policies", "", NULL, REPORT,
                          "leave out the comparison with simple policies"},
    [FLAG_OUTPUT] = {"-o", "--output", "FILE",
                     SOLVE | PEAK | TRACE | EMIT | REPORT | IMPORT | MERGE,
                     "write the result to this file (all but peak: default standard output)"},
    [FLAG_PLANS] = {"--plans", "", "NUMBER", PEAK, "that the search may make (default: 8)"},
    [FLAG_POINTS] = {"--points", "", "NUMBER", SWEEP | PEAK,
                     "budgets to plan for (default: 10), or batch sizes (default: 4)"},
    [FLAG_PROFILE] = {"--profile", "", "PROFILE", CHECK | TRACE | REPORT,
                      "the profile that the plan must be for"},
    [FLAG_PYTORCH] = {"--pytorch", "", NULL, IMPORT, "a trace of torch.profiler, in JSON"},
    [FLAG_QUIET] = {"-q", "--quiet", NULL, SOLVERS | CHECK | IMPORT | MERGE,
                    "say nothing but errors"},
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
    [FLAG_VERSION] = {"--version", "", NULL, FLAG_FOR(COMMAND_NONE), "print the version"},
    [FLAG_WIDTH] = {"--width", "", "NUMBER", SHOW,
                    "columns of the pictures (default: the terminal's)"},
};

static const char *const COMMANDS[] = {
    [COMMAND_NONE] = "atp-plan", [COMMAND_SOLVE] = "solve",     [COMMAND_CHECK] = "check",
    [COMMAND_SHOW] = "show",     [COMMAND_COMPARE] = "compare", [COMMAND_SWEEP] = "sweep",
    [COMMAND_TRACE] = "trace",   [COMMAND_DIFF] = "diff",       [COMMAND_EMIT] = "emit",
    [COMMAND_PEAK] = "peak",     [COMMAND_REPORT] = "report",   [COMMAND_IMPORT] = "import",
    [COMMAND_MERGE] = "merge"};
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

const char *flag_operand(enum command command)
{
    if (command == COMMAND_IMPORT) {
        return "file";
    }
    return (FLAG_FOR(command) & (SOLVERS | MERGE)) != 0 ? "profile" : "plan";
}

enum flag flag_named(const char *word, size_t length)
{
    size_t i = 0;
    for (; i < FLAG_COUNT; i++) {
        bool is_name = strlen(FLAGS[i].name) == length && memcmp(word, FLAGS[i].name, length) == 0;
        bool is_alias =
            strlen(FLAGS[i].alias) == length && memcmp(word, FLAGS[i].alias, length) == 0;
        if (is_name || is_alias) {
            break;
        }
    }
    return (enum flag)i;
}

const char *flag_nearest(const char *word, size_t length)
{
    char most[32];
    const char *meant = NULL;
    unsigned least = 3;
    (void)snprintf(most, sizeof(most), "%.*s", (int)(length < 31 ? length : 31), word);
    for (size_t i = 0; i < FLAG_COUNT && length >= 4; i++) {
        unsigned far = distance(most, FLAGS[i].name);
        bool is_beginning = strncmp(most, FLAGS[i].name, strlen(most)) == 0;
        /* A beginning is nearer than two edits. */
        far = is_beginning && far > 1 ? 1 : far;
        if (far < least) {
            least = far;
            meant = FLAGS[i].name;
        }
    }
    return meant;
}

enum command flag_command_named(const char *word)
{
    for (size_t i = COMMAND_SOLVE; i < COMMAND_COUNT; i++) {
        if (strcmp(word, COMMANDS[i]) == 0) {
            return (enum command)i;
        }
    }
    return COMMAND_NONE;
}

const char *flag_command_nearest(const char *word)
{
    for (size_t i = COMMAND_SOLVE; i < COMMAND_COUNT; i++) {
        if (is_near(word, COMMANDS[i])) {
            return COMMANDS[i];
        }
    }
    return NULL;
}
