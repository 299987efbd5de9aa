/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tables of a report, and the numbers behind page and pictures for its script.
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "region.h"
#include "report_data.h"

/* Rows of the tensor table: what is dropped first, each by size; then what is kept, by size. */
struct report_order {
    uint32_t count;          /* of rows: tensors without a row are the smallest that are kept */
    const uint32_t *tensors; /* all tensors */
};

struct report_order report_table_order(const struct report *report, struct region *region);

void report_table_tensors(const struct report *report, const struct report_order *order, FILE *out);
void report_table_policies(const struct report *report, struct region *region, FILE *out);

/* One JSON object. */
void report_table_numbers(const struct report *report, const struct report_order *order, FILE *out);

#endif
