/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Local search: one selection that changes gap by gap, judged by the schedule's own clock. Random
 * numbers come from a fixed seed and work is counted in scheduled ops, so that what a walk does
 * depends on its input alone.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"
#include "schedule.h"
#include "search.h"

struct score {
    double ns;    /* iteration time; where that is sure to be too much, a part of it */
    double price; /* of what does not fit */
    double cost;  /* both, with the price at its weight then; HUGE_VAL: no schedule */
    bool fits;
};

struct walk {
    const struct problem *problem;
    const struct search_options *options;
    struct search_result *result; /* the best so far */
    struct schedule *schedule;
    uint32_t candidate_count;
    uint32_t *candidates; /* gaps that may change */
    uint32_t ticket_count;
    uint32_t *tickets;          /* candidates, each as often as random moves should look at it */
    struct selection selection; /* where the walk is */
    double price_per_byte;      /* of what does not fit */
    double price_weight;        /* at this time of the walk; 1 or more */
    int64_t bound_ns;           /* nothing is faster */
    uint64_t random;
    uint64_t next_accept; /* work from which on the next selection may be offered */
    uint32_t refused;     /* so many were offered in vain */
    bool has_closest;
    struct change *changes; /* of the move at hand, to take it back */
    uint32_t change_count;
};

/* Fills all of `out_walk` but `result`'s contents; the selection begins with the defaults. */
void walk_create(const struct problem *problem, const struct search_options *options,
                 struct search_result *result, struct region *region, struct walk *out_walk);

/* Work is used up, the optimum is found, or somebody wants to stop. */
bool walk_is_over(const struct walk *walk);

/* Of the walk's selection. Notes it when it is the best. Where the cost is sure to be above
 * `ceiling`, any cost above it may be returned. */
struct score walk_judge(struct walk *walk, double ceiling);

/* Simulated annealing until `work_end`, from one temperature to the other, in nanoseconds. */
void walk_anneal(struct walk *walk, uint64_t work_end, double hot, double cold);

/* To a local optimum. */
void walk_descend(struct walk *walk);

/* To an optimum that no change of two gaps improves. For few candidates. */
void walk_descend_in_pairs(struct walk *walk);

#endif
