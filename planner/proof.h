/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What can be said of a plan's bound without a solver: the plan carries a certificate, and numbers
 * that somebody put into it can make it prove less, never more than is true. What the plan states
 * is not looked at.
 */
#ifndef PROOF_H
#define PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "problem.h"
#include "region.h"

struct proof {
    int64_t bound_ns;  /* proved; problem.compute_ns at least */
    bool is_certified; /* by the plan's certificate; false: by the sum of the step times */
    char why_not[400]; /* why there is no certificate to go by */
};

/* `problem` is built of the profile that is trusted, at the plan's budget and alignment. */
void proof_find(const struct atp_plan *plan, const struct problem *problem, struct region *region,
                struct proof *out);

#endif
