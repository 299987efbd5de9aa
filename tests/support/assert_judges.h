/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the judges of plans say of one that a stage of the planner made. None of them shares code
 * with it.
 */
#ifndef ASSERT_JUDGES_H
#define ASSERT_JUDGES_H

#include <check.h>

#include <atp/plan.h>
#include <atp/simulate.h>

/* The plan is right, and what it predicts is what the clock says. `where` names the case. */
static inline void assert_judges_accept(const struct atp_plan *plan, const struct atp_clock *clock,
                                        const char *where)
{
    struct atp_error err = {0};
    struct atp_predicted predicted;
    ck_assert_msg(atp_plan_check(plan, &err) == ATP_OK, "%s: %s", where, err.text);
    ck_assert_msg(atp_plan_check_predicted(plan, clock, &err) == ATP_OK, "%s: %s", where, err.text);
    ck_assert_msg(atp_simulate(plan, clock, NULL, NULL, &predicted, &err) == ATP_OK, "%s: %s",
                  where, err.text);
    ck_assert_msg(predicted.iteration_ns == plan->predicted.iteration_ns,
                  "%s: simulated %lld ns, predicted %lld ns", where,
                  (long long)predicted.iteration_ns, (long long)plan->predicted.iteration_ns);
}

/* The same for a plan that assemble made, which has no predictions yet: fills them, with the least
 * bound that passes. */
static inline void assert_judges_accept_assembled(struct atp_plan *plan,
                                                  const struct atp_clock *clock, const char *where)
{
    struct atp_error err = {0};
    ck_assert_msg(atp_simulate(plan, clock, NULL, NULL, &plan->predicted, &err) == ATP_OK, "%s: %s",
                  where, err.text);
    plan->predicted.bound_ns = plan->predicted.compute_ns;
    assert_judges_accept(plan, clock, where);
}

#endif
