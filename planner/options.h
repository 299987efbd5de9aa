/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The command line: arguments -> options, and the help that says what they are.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <atp/status.h>

#include "import.h"
#include "size.h"

enum command {
    COMMAND_NONE, /* help for the whole program only */
    COMMAND_SOLVE,
    COMMAND_CHECK,
    COMMAND_SHOW,
    COMMAND_COMPARE,
    COMMAND_SWEEP,
    COMMAND_TRACE,
    COMMAND_DIFF,
    COMMAND_EMIT,
    COMMAND_PEAK,
    COMMAND_REPORT,
    COMMAND_IMPORT,
    COMMAND_MERGE
};

#define OPTIONS_INPUTS_MAX 64U

/* Points into the arguments. */
struct options {
    enum command command;
    bool help, version; /* then nothing else is complete */
    const char *input;  /* the profile of solve, compare and sweep; the plan of all others,
                           but what import reads */
    const char *second; /* diff: the other plan */

    uint32_t input_count; /* of merge; `input` is the first */
    const char *inputs[OPTIONS_INPUTS_MAX];

    bool quiet, verbose;
    bool has_budget, has_max_gap;
    struct size budget;
    uint64_t batch_size;      /* 0: not given */
    const char *output;       /* NULL: standard output */
    uint32_t effort;          /* 1: not given */
    uint32_t time_limit_ms;   /* 0: none */
    uint64_t alignment_bytes; /* 0: not given */
    const char *profile;      /* NULL: not given */
    uint64_t max_gap;         /* in SIZE_PERCENT */
    uint32_t width;           /* 0: not given */
    bool no_color;
    const char *report; /* NULL: not given */
    bool csv, pytorch, json, force, c, no_policies;
    struct import_numbers import;
    const char *name;                 /* "plan": not given */
    uint32_t points;                  /* 10: not given */
    uint64_t gap;                     /* in SIZE_PERCENT; 1 %: not given */
    uint64_t first_batch, last_batch; /* 0: not given */
    uint64_t multiple;                /* 1: not given */
    uint32_t plans;                   /* 8: not given */
    uint64_t global_batch;            /* 0: not given */
    uint64_t d2h_bytes_per_second, h2d_bytes_per_second, memory_bytes; /* 0: the profile's */
};

/* ATP_ERR_INVALID with what is wrong, in words for the person who typed it. `solve` and `compare`
 * without a budget pass: what to propose is in the profile. */
ATP_MUST_USE enum atp_status options_parse(int argc, char *const *argv, struct options *out,
                                           struct atp_error *err);

void options_help(enum command command, FILE *out);

/* "solve", ... */
const char *options_command_name(enum command command);

#endif
