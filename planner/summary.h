/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan in eight lines for people.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <stdio.h>

#include <atp/plan.h>

void summary_print(const struct atp_plan *plan, FILE *out);

#endif
