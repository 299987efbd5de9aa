/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands and flags by name: one table says everything about the flags; the parser, the help and
 * the hints read it.
 */
#ifndef FLAG_H
#define FLAG_H

#include <stddef.h>

#include "options.h"

/* In the order of the help. */
enum flag {
    FLAG_ALIGNMENT,
    FLAG_BATCH,
    FLAG_BUDGET,
    FLAG_C,
    FLAG_COPY_RATE,
    FLAG_CSV,
    FLAG_D2H,
    FLAG_DEVICE_MEMORY,
    FLAG_EFFORT,
    FLAG_FORCE,
    FLAG_GAP,
    FLAG_GLOBAL_BATCH,
    FLAG_H2D,
    FLAG_HELP,
    FLAG_INPUT,
    FLAG_JSON,
    FLAG_MAX_GAP,
    FLAG_MEMORY,
    FLAG_MULTIPLE,
    FLAG_NAME,
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

struct flag_info {
    const char *name, *alias; /* "" when there is no alias */
    const char *value;        /* what it takes; NULL: nothing */
    unsigned commands;        /* a set of FLAG_FOR */
    const char *help;
};

#define FLAG_FOR(command) (1U << (command))

extern const struct flag_info FLAGS[FLAG_COUNT];

/* The flag with this name or alias, the first `length` bytes of `word`; FLAG_COUNT: none. */
enum flag flag_named(const char *word, size_t length);

/* The name of a flag that may have been meant; NULL: none comes near. */
const char *flag_nearest(const char *word, size_t length);

/* What a command works on: "profile", "plan", "file". */
const char *flag_operand(enum command command);

/* COMMAND_NONE when no command has this name. */
enum command flag_command_named(const char *word);

/* The name of a command that may have been meant; NULL: none comes near. */
const char *flag_command_nearest(const char *word);

#endif
