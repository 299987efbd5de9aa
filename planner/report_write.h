/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan as one HTML page that needs nothing else: no network, no other file. A function of the
 * report alone, to the byte.
 */
#ifndef REPORT_WRITE_H
#define REPORT_WRITE_H

#include <stdio.h>

#include "region.h"
#include "report_data.h"

/* Errors of the stream are left to whoever closes it. */
void report_write(const struct report *report, struct region *region, FILE *out);

#endif
