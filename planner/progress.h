/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How far a search has come: one line on standard error that is written over and over.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "solve.h"

struct progress_line {
    const char *label; /* what is being planned, "": nothing to tell apart */
    int64_t start_ms, drawn_ms;
    bool is_drawn;
};

struct progress_line progress_begin(const char *label);

/* For solve_options: `ctx` is a struct progress_line. Draws a few times a second at most. */
void progress_draw(void *ctx, const struct solve_progress *progress);

/* Leaves the line empty, where one was drawn. */
void progress_wipe(const struct progress_line *line);

/* A clock that only goes forward. */
int64_t progress_now_ms(void);

#endif
