/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What was found about a peak, for people and for programs.
 */
#ifndef PEAK_PRINT_H
#define PEAK_PRINT_H

#include <stdio.h>

#include "peak.h"
#include "peak_policy.h"

struct peak_findings {
    const char *model_name;
    const struct peak *peak;
    const struct peak_policies *policies;
    const bool *shown; /* per batch size: a line of the curve */
};

/* A table with bars, then sentences. */
void peak_print_text(const struct peak_findings *findings, FILE *out);

/* One line per shown batch size, one per policy at its best batch size. */
void peak_print_csv(const struct peak_findings *findings, FILE *out);

#endif
