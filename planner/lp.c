/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Arrays double when full; what they leave behind stays in the region until it goes.
 */
#include "lp.h"

#include <string.h>

#define FIRST_CAPACITY 1024U

static void *grown(struct region *region, void *old, size_t old_count, size_t new_count,
                   size_t size)
{
    void *out = region_alloc(region, new_count, size);
    if (old_count > 0) {
        memcpy(out, old, old_count * size);
    }
    return out;
}

void lp_init(struct lp *lp, struct region *region)
{
    *lp = (struct lp){.region = region};
    lp->row_capacity = lp->column_capacity = lp->term_capacity = FIRST_CAPACITY;
    lp->rows = REGION_NEW(region, struct lp_row, FIRST_CAPACITY);
    lp->columns = REGION_NEW(region, struct lp_column, FIRST_CAPACITY);
    lp->term_columns = REGION_NEW(region, uint32_t, FIRST_CAPACITY);
    lp->term_values = REGION_NEW(region, double, FIRST_CAPACITY);
}

uint32_t lp_add_column(struct lp *lp, double lower, double upper, double cost)
{
    if (lp->column_count == lp->column_capacity) {
        lp->columns = grown(lp->region, lp->columns, lp->column_count, 2 * lp->column_capacity,
                            sizeof(*lp->columns));
        lp->column_capacity *= 2;
    }
    lp->columns[lp->column_count] =
        (struct lp_column){.lower = lower, .upper = upper, .cost = cost};
    return lp->column_count++;
}

uint32_t lp_begin_row(struct lp *lp, double rhs, bool equal)
{
    if ((size_t)lp->row_count + 1 == lp->row_capacity) {
        lp->rows = grown(lp->region, lp->rows, (size_t)lp->row_count + 1, 2 * lp->row_capacity,
                         sizeof(*lp->rows));
        lp->row_capacity *= 2;
    }
    size_t end = lp->rows[lp->row_count].first;
    lp->rows[lp->row_count].rhs = rhs;
    lp->rows[lp->row_count].equal = equal;
    lp->rows[lp->row_count + 1].first = end;
    return lp->row_count++;
}

void lp_add_term(struct lp *lp, uint32_t column, double value)
{
    size_t end = lp->rows[lp->row_count].first;
    if (end == lp->term_capacity) {
        lp->term_columns = grown(lp->region, lp->term_columns, end, 2 * lp->term_capacity,
                                 sizeof(*lp->term_columns));
        lp->term_values = grown(lp->region, lp->term_values, end, 2 * lp->term_capacity,
                                sizeof(*lp->term_values));
        lp->term_capacity *= 2;
    }
    lp->term_columns[end] = column;
    lp->term_values[end] = value;
    lp->rows[lp->row_count].first = end + 1;
}
