/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A linear program as plain arrays: minimise cost x, every row a x >= rhs (or = rhs), every column
 * in a finite box. Finite boxes make any multipliers of the rows prove a bound (certificate.h).
 */
#ifndef LP_H
#define LP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"

struct lp_column {
    double lower, upper, cost;
    bool integer; /* in the integer program; its linear relaxation takes no notice */
};

struct lp_row {
    double rhs;
    bool equal;
    size_t first; /* its terms are [first, next row's first) */
};

struct lp {
    struct region *region;
    uint32_t row_count, column_count;
    struct lp_row *rows; /* row_count + 1 entries: the last holds the number of terms */
    struct lp_column *columns;
    uint32_t *term_columns; /* a column may appear more than once in a row: the values add up */
    double *term_values;
    size_t row_capacity, column_capacity, term_capacity;
};

void lp_init(struct lp *lp, struct region *region);

/* Returns the column's index. */
uint32_t lp_add_column(struct lp *lp, double lower, double upper, double cost);

/* Begins a row; lp_add_term then adds to the last row begun. Returns the row's index. */
uint32_t lp_begin_row(struct lp *lp, double rhs, bool equal);
void lp_add_term(struct lp *lp, uint32_t column, double value);

#endif
