/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What changed from one plan to another: numbers of the header, decisions, and where the programs
 * part. Tensors are matched by name.
 */
#ifndef PLAN_DIFF_H
#define PLAN_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <atp/plan.h>

#include "region.h"
#include "summary.h"

/* A tensor that is decided otherwise, or that only one plan has (the other id is ATP_NONE). */
struct plan_change {
    const char *name, *layer;
    uint32_t a, b;
};

struct plan_diff {
    const struct atp_plan *a, *b;
    bool is_same, is_same_model;
    char first[64]; /* where they part, in the order of a file: "budget_bytes", "program[12]" */
    struct summary_number a_numbers[SUMMARY_NUMBER_COUNT], b_numbers[SUMMARY_NUMBER_COUNT];
    uint32_t first_instruction; /* ATP_NONE: the programs are the same */
    uint32_t change_count;
    const struct plan_change *changes; /* in the order of A, grouped by layer; then those of B */
};

/* Borrows both plans. */
void plan_diff_build(const struct atp_plan *a, const struct atp_plan *b, struct region *region,
                     struct plan_diff *out_diff);

void plan_diff_print(const struct plan_diff *diff, FILE *out);

/* One JSON object, version 1: schemas/README.md. */
void plan_diff_print_json(const struct plan_diff *diff, FILE *out);

#endif
