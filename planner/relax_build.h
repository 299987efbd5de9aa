/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared by the two files that write the rows of the relaxed selection: relax_rows.c and
 * relax_values.c.
 */
#ifndef RELAX_BUILD_H
#define RELAX_BUILD_H

#include "relax_rows.h"

struct change {
    uint32_t order, column;
    double value;
};

/* What has to be added to a running sum at a checkpoint. */
struct change_list {
    struct change *changes;
    uint32_t count, capacity;
};

struct builder {
    struct relax_model *model;
    struct lp *lp;
    struct region *region;
    double byte_unit, time_unit, limit;
    struct change_list lists[RELAX_SUM_COUNT];
    double sum_limit[RELAX_SUM_COUNT];
    struct relax_rows *rows;
    double out_rate, in_rate; /* rounded up */
};

/* Whether an earlier stretch of the value can have had its copy to the host. */
static inline bool may_free(const struct relax_model *model, uint32_t stretch)
{
    return stretch > model->value_first_stretch[model->stretches[stretch].value];
}

/* What single values do: rows of stretches and of reruns. All columns of segments and intervals
 * must be there. */
void relax_values_build(struct builder *b);

#endif
