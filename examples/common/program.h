/* SPDX-License-Identifier: Apache-2.0
 *
 * What the example programs share beside training: arguments, messages, exit codes.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train.h"

enum exit_code { EXIT_TRAINED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_BAD_PLAN = 3 };

/* Begins every message; each program defines it. */
extern const char program_name[];

struct number_option {
    const char *name;
    uint32_t least, most, *out;
};

/* The options of a program beside those of training. */
struct arguments {
    struct training *training;
    const struct number_option *numbers;
    size_t number_count;
    /* Any other option that takes a value. False after a message when the value is bad, with
     * *out_known = false and no message when there is no such option. NULL: there is none. */
    bool (*other)(void *ctx, const char *option, const char *value, bool *out_known);
    void *ctx;
    bool *flag; /* what `flag_name`, an option without a value, sets; NULL: there is none */
    const char *flag_name;
    bool *wants_help;
};

/* Part of every program's help. */
#define TRAINING_HELP                                                                              \
    "  --record FILE     time every step and write a profile there at the end\n"                   \
    "  --plan FILE       replay this plan (made by atp-plan from a recorded profile)\n"            \
    "  --memory SIZE     fail if activations take more: 300MiB, 2GB (no limit)\n"                  \
    "  --iterations N    how many to run (20)\n"                                                   \
    "  --copies HOW      eager, late or threads (threads): when copies to the host run\n"          \
    "  --link SIZE       threads: copies take at least their bytes / SIZE seconds (as memcpy)\n"   \
    "  --poison          overwrite device bytes whenever they become free\n"                       \
    "  --print-losses    one loss a line on standard output, as exact hexadecimal floats\n"        \
    "  --help            this text\n"
#define EXIT_CODES_HELP                                                                            \
    "A plan is good for the sizes and the batch that its profile was recorded with.\n"             \
    "Exit codes: 0 trained, 1 failed, 2 bad usage, 3 a plan that is bad or for another network.\n"

/* False, with the reason on standard error, when they are bad. */
bool parse_arguments(int argc, char **argv, const struct arguments *arguments);

/* Says what goes to be trained, and trains; an exit code. */
int train_network(const struct training *training, const struct network *net,
                  uint64_t parameter_count);

#endif
