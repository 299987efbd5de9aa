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

/* Running sums of bytes over the checkpoints. */
enum relax_sum {
    RELAX_KEPT,    /* kept in segments around the checkpoint */
    RELAX_DROPPED, /* dropped in segments that have begun */
    RELAX_MADE,    /* of what is dropped ever: made so far */
    RELAX_NEEDED,  /* restored in segments that have ended */
    RELAX_EASED,   /* the same; where the segment ends at a cut, from the next checkpoint on */
    RELAX_BEGUN,   /* restored in passing after times at which that could begin */
    RELAX_PASSED,  /* ... that have ended */
    RELAX_SUM_COUNT
};

struct relax_rows {
    struct lp lp;
    double byte_unit, time_unit; /* powers of two */
    bool is_exact;               /* bytes and nanoseconds are small enough for doubles to hold them;
                                    else the rows prove nothing */
    int64_t extra_limit_ns;      /* the rows hold for programs with at most this much time beyond
                                    compute_ns */
    /* Columns. Per checkpoint; times, NEEDED and PASSED have one more, for the end. */
    uint32_t *sums[RELAX_SUM_COUNT];
    uint32_t *times;    /* stalls and reruns between this checkpoint's run and the one before it */
    uint32_t *outs;     /* bytes copied out when the checkpoint's run begins */
    uint32_t *released; /* bytes released by then, of what is dropped */
    uint32_t *ins;      /* bytes copied back when the checkpoint's run ends, of what is restored */
    uint32_t *passes;   /* the same, restored in passing */
    uint32_t *memory_rows; /* per checkpoint: its memory row, ATP_NONE where it has none */
};

/* Sets the columns of the model's segments and intervals. */
void relax_rows_build(struct relax_model *model, struct region *region,
                      struct relax_rows *out_rows);

/* The bound in nanoseconds that a proven value of the program means; compute_ns at least. */
int64_t relax_bound_ns(const struct relax_rows *rows, const struct problem *problem, double value);

#endif
