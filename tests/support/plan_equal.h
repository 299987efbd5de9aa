/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef PLAN_EQUAL_H
#define PLAN_EQUAL_H

#include <atp/plan.h>

/* NULL when both plans say the same, else the name of the first part that differs. Static. */
const char *plan_difference(const struct atp_plan *a, const struct atp_plan *b);

#endif
