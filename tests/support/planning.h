/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The planner's stages behind a problem, one after the other, on choices made by hand:
 *
 *     struct planning p;
 *     planning_begin(&p, builder, 1000, region);
 *     planning_choose(&p, x, f1, CHOICE_SWAP);
 *     planning_run(&p);
 *     planning_assemble(&p);
 */
#ifndef PLANNING_H
#define PLANNING_H

#include "assemble.h"
#include "profile_builder.h"
#include "schedule.h"

struct planning {
    struct region *region;
    struct profile_builder *builder;
    uint64_t budget_bytes;
    struct problem problem;
    struct schedule *schedule;
    struct selection selection; /* CHOICE_KEEP at first */
    const struct sequence *sequence;
    const struct timeline *timeline;
    struct atp_plan plan;
    struct assemble_result result;
};

/* At alignment 1. */
void planning_begin(struct planning *planning, struct profile_builder *builder,
                    uint64_t budget_bytes, struct region *region);

/* For the gap behind the use of `tensor` by `step`; ATP_NONE is the beginning of the iteration. */
void planning_choose(struct planning *planning, uint32_t tensor, uint32_t step, uint8_t choice);

void planning_sequence(struct planning *planning);
/* And the timeline with its actions: asserts that nothing is missing, and the sums of times. */
void planning_run(struct planning *planning);
/* And the plan: asserts that it fits in an arena as large as the budget, that all judges accept it,
 * and that it takes the time that the timeline says. */
void planning_assemble(struct planning *planning);

/* The `nth` (from 0) residence of a tensor. */
const struct residence *planning_residence(const struct planning *planning, uint32_t tensor,
                                           uint32_t nth);
uint32_t planning_residence_count(const struct planning *planning, uint32_t tensor);

/* The index of an action of the tensor's `nth` residence; ATP_NONE when there is none. */
uint32_t planning_find(const struct planning *planning, enum action_kind kind, uint32_t tensor,
                       uint32_t nth);
/* The index of the action that is op `op`. */
uint32_t planning_find_op(const struct planning *planning, uint32_t op);

/* Asserts the steps of all ops but the first, written as "0 1 2 r0 3": r is a rerun. */
void planning_expect_ops(const struct planning *planning, const char *expected);

#endif
