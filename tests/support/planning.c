/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "planning.h"

#include "assert_judges.h"
#include "byte_machine.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void planning_begin(struct planning *planning, struct profile_builder *builder,
                    uint64_t budget_bytes, struct region *region)
{
    struct atp_error err = {0};
    *planning =
        (struct planning){.region = region, .builder = builder, .budget_bytes = budget_bytes};
    ck_assert_msg(atp_model_check(&builder->profile.model, NULL, &err) == ATP_OK, "%s", err.text);
    ck_assert_msg(problem_build(&builder->profile, budget_bytes, 1, region, &planning->problem,
                                &err) == ATP_OK,
                  "%s", err.text);
    planning->schedule = schedule_create(&planning->problem, region);
    planning->selection = selection_create(&planning->problem, region);
}

void planning_choose(struct planning *planning, uint32_t tensor, uint32_t step, uint8_t choice)
{
    const struct problem *problem = &planning->problem;
    for (uint32_t a = problem->first_access[tensor]; a < problem->first_access[tensor + 1]; a++) {
        if (problem->accesses[a].step == step) {
            planning->selection.choices[a] = choice;
            return;
        }
    }
    ck_abort_msg("step %u does not use tensor %u", step, tensor);
}

void planning_sequence(struct planning *planning)
{
    planning->sequence = schedule_sequence(planning->schedule, &planning->selection);
}

void planning_run(struct planning *planning)
{
    planning_sequence(planning);
    ck_assert_uint_eq(planning->sequence->missing_tensor, ATP_NONE);
    ck_assert(!planning->sequence->too_long);
    planning->timeline = schedule_timeline(planning->schedule, false);
    struct timeline without_actions = *planning->timeline;
    planning->timeline = schedule_timeline(planning->schedule, true);
    ck_assert(!planning->timeline->stuck);
    ck_assert_int_eq(planning->timeline->iteration_ns, planning->problem.compute_ns +
                                                           planning->sequence->rerun_ns +
                                                           planning->timeline->stall_ns);
    ck_assert_int_eq(without_actions.iteration_ns, planning->timeline->iteration_ns);
    ck_assert_uint_eq(without_actions.host_bytes, planning->timeline->host_bytes);
    ck_assert_uint_eq(without_actions.action_count, planning->timeline->action_count);
}

void planning_assemble(struct planning *planning)
{
    planning_run(planning);
    assemble(&planning->problem, planning->sequence, planning->timeline, 10000, planning->region,
             &planning->plan, &planning->result);
    ck_assert(planning->result.fits);
    assert_judges_accept_assembled(&planning->plan, &planning->builder->profile.clock, "assembled");
    ck_assert(byte_machine_always_agrees(&planning->plan));
    ck_assert_int_eq(planning->plan.predicted.iteration_ns, planning->timeline->iteration_ns);
    ck_assert_int_eq(planning->plan.predicted.stall_ns, planning->timeline->stall_ns);
    ck_assert_int_eq(planning->plan.predicted.recompute_ns, planning->sequence->rerun_ns);
}

static uint32_t find_residence(const struct planning *planning, uint32_t tensor, uint32_t nth)
{
    const struct sequence *sequence = planning->sequence;
    for (uint32_t r = 0; r < sequence->residence_count; r++) {
        const struct residence *residence = &sequence->residences[r];
        if (residence->tensor == tensor && residence->first_op != ATP_NONE && nth-- == 0) {
            return r;
        }
    }
    return ATP_NONE;
}

const struct residence *planning_residence(const struct planning *planning, uint32_t tensor,
                                           uint32_t nth)
{
    uint32_t r = find_residence(planning, tensor, nth);
    if (r == ATP_NONE) {
        ck_abort_msg("tensor %u has no residence %u", tensor, nth);
    }
    return &planning->sequence->residences[r];
}

uint32_t planning_residence_count(const struct planning *planning, uint32_t tensor)
{
    uint32_t count = 0;
    while (find_residence(planning, tensor, count) != ATP_NONE) {
        count++;
    }
    return count;
}

static uint32_t find_action(const struct timeline *timeline, enum action_kind kind, uint32_t id)
{
    for (uint32_t i = 0; i < timeline->action_count; i++) {
        if (timeline->actions[i].kind == kind && timeline->actions[i].id == id) {
            return i;
        }
    }
    return ATP_NONE;
}

uint32_t planning_find(const struct planning *planning, enum action_kind kind, uint32_t tensor,
                       uint32_t nth)
{
    uint32_t r = find_residence(planning, tensor, nth);
    return r == ATP_NONE ? ATP_NONE : find_action(planning->timeline, kind, r);
}

uint32_t planning_find_op(const struct planning *planning, uint32_t op)
{
    return find_action(planning->timeline, ACTION_OP, op);
}

void planning_expect_ops(const struct planning *planning, const char *expected)
{
    char text[600] = "";
    size_t used = 0;
    ck_assert_uint_eq(planning->sequence->ops[0].step, ATP_NONE);
    for (uint32_t op = 1; op < planning->sequence->op_count && used + 16 < sizeof(text); op++) {
        int written = snprintf(text + used, sizeof(text) - used, "%s%s%u", op > 1 ? " " : "",
                               planning->sequence->ops[op].is_rerun ? "r" : "",
                               planning->sequence->ops[op].step);
        used += written > 0 ? (size_t)written : 0;
    }
    ck_assert_str_eq(text, expected);
}
