/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proof.h"

#include "certificate_text.h"
#include "fail.h"

#include <stdio.h>

static enum atp_status prove(const struct atp_plan *plan, const struct problem *problem,
                             struct region *region, struct proof *out, struct atp_error *err)
{
    struct certificate certificate;
    int64_t bound_ns;
    ATP_TRY(certificate_read(plan->certificate, region, &certificate, err));
    ATP_TRY(certificate_bound(problem, &certificate, region, &bound_ns, err));
    out->bound_ns = bound_ns;
    out->is_certified = true;
    return ATP_OK;
}

void proof_find(const struct atp_plan *plan, const struct problem *problem, struct region *region,
                struct proof *out)
{
    struct atp_error err;
    *out = (struct proof){.bound_ns = problem->compute_ns};
    if (plan->certificate == NULL) {
        (void)snprintf(out->why_not, sizeof(out->why_not), "certificate: there is none");
    } else if (prove(plan, problem, region, out, &err) != ATP_OK) {
        (void)snprintf(out->why_not, sizeof(out->why_not), "%s", err.text);
    }
}
