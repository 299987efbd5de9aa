/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pictures of a plan in text: its memory over the program, and its arena, offset against program
 * position. A position is a step that runs or runs again. Pure: any plan whose ids are in range can
 * be drawn, damaged or not.
 */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <atp/plan.h>

#include "region.h"

struct picture_style {
    uint32_t width; /* columns of the terminal, at least 20 */
    bool utf8, color;
};

/* Bars of live bytes; below them the phases, reruns and the copies in flight. */
void picture_memory(const struct atp_plan *plan, const struct picture_style *style,
                    struct region *region, FILE *out);

/* A letter for each tensor, or for each decision when there are more tensors than letters, where it
 * fills most of a cell. */
void picture_arena(const struct atp_plan *plan, const struct picture_style *style,
                   struct region *region, FILE *out);

#endif
