/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The pictures of a report as inline SVG. All three share the axis of time. Their size grows with
 * what can be seen, not with the program: what is narrower than a fraction of a pixel is drawn
 * together.
 */
#ifndef REPORT_DRAW_H
#define REPORT_DRAW_H

#include <stdio.h>

#include "region.h"
#include "report_data.h"

void report_draw_memory(const struct report *report, struct region *region, FILE *out);
void report_draw_engines(const struct report *report, FILE *out);
void report_draw_arena(const struct report *report, FILE *out);

#endif
