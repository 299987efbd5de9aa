/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan with everything in it that is hard to say in C: quotes, trigraphs, bytes beyond ASCII
 * before digits, the largest numbers.
 */
#ifndef RICH_PLAN_H
#define RICH_PLAN_H

#include "plan_builder.h"

struct plan_builder *rich_plan_create(void);

#endif
