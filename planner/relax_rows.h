/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The relaxed selection as a linear program. Every row is true of every legal program when the
 * columns are set to what the program does; relax_rows.c says so row by row. The rows are a
 * function of problem and grid alone, so that whoever holds multipliers and the grid can rebuild
 * them.
 *
 * Units: bytes and nanoseconds are divided by powers of two, which is exact.
 */
#ifndef RELAX_ROWS_H
#define RELAX_ROWS_H

#include "lp.h"
#include "relax_model.h"

struct relax_rows {
    struct lp lp;
    double byte_unit, time_unit; /* powers of two */
    int64_t extra_limit_ns;      /* the rows hold for programs with at most this much time beyond
                                    compute_ns */
    uint32_t *memory_rows;       /* per checkpoint: its memory row, ATP_NONE where it has none */
};

/* Sets the columns of the model's segments and intervals. */
void relax_rows_build(struct relax_model *model, struct region *region,
                      struct relax_rows *out_rows);

/* The bound in nanoseconds that a proven value of the program means; compute_ns at least. */
int64_t relax_bound_ns(const struct relax_rows *rows, const struct problem *problem, double value);

#endif
