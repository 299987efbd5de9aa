/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan in few lines for people, and whole but for its program for scripts.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <atp/plan.h>

#include "region.h"

/* Eight lines. */
void summary_print(const struct atp_plan *plan, FILE *out);

/* What is decided in each layer (layers.h); layers in a row with the same numbers share a line.
 * Long names are cut so that lines have at most `width` columns, or 72. False, and nothing is
 * printed, when the names tell of none. */
bool summary_print_layers(const struct atp_plan *plan, uint32_t width, struct region *region,
                          FILE *out);

/* One JSON object, version 1: schemas/README.md. */
void summary_print_json(const struct atp_plan *plan, struct region *region, FILE *out);

/* A number of the header, with its unit in the key: _bytes, _ns or none. */
struct summary_number {
    const char *key;
    uint64_t value;
};
#define SUMMARY_NUMBER_COUNT 16

/* Times below zero, which no checked plan has, are 0. */
void summary_numbers(const struct atp_plan *plan,
                     struct summary_number out_numbers[SUMMARY_NUMBER_COUNT]);

#endif
