/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From choices to a program without offsets. Two stages:
 *
 *   sequence  choices -> the compute stream's operations (runs, and reruns where choices demand
 * them) and the residences of tensors on the device, each from its first to its last use. No clock,
 * no budget. timeline  sequence -> when each copy is issued and waited for: evictions as early as
 * useful, waits as late as memory demands, restores just in time. Gives the iteration time and, on
 * request, the actions.
 *
 * Both are cheap (linear in the uses, a heap for the copies), since the search calls them for every
 * candidate. All buffers are made once by schedule_create.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"

/* What to do with a tensor in an idle gap, one per access. In a tail: KEEP and SWAP hold the value
 * for reruns that need it, and cost nothing when none does; RECOMPUTE drops it. */
enum choice {
    CHOICE_KEEP,
    CHOICE_SWAP,
    CHOICE_RECOMPUTE,
    /* Flag on SWAP and RECOMPUTE: keep it until memory is short, then drop it in this way, and
       again whenever it is short again. Who goes first is settled by weight (pressure.h). */
    CHOICE_LAZY = 4,
    /* Flags: when reruns for a step needed the tensor within the gap, drop it after the first, the
       second, ... such step. The last of the bits stands for all later ones too. */
    CHOICE_AGAIN_FIRST = 8,
    CHOICE_AGAIN_LAST = 128,
    CHOICE_AGAIN = 0xf8 /* after each */
};
#define CHOICE_KIND(choice) ((choice)&3)

/* What a schedule is made from. One entry per access in each array. */
struct selection {
    uint8_t *choices;
    float *weights; /* of lazy gaps: what dropping costs, in nanoseconds; NULL: no gap is lazy */
    /* Of several tensors that a rerun misses, the one that was written last is made first; else in
     * the order of the step's reads. */
    bool latest_first;
};

struct selection selection_create(const struct problem *problem, struct region *region);
void selection_copy(const struct problem *problem, const struct selection *from,
                    struct selection *to);

struct op {
    uint32_t step; /* ATP_NONE: the beginning of the iteration, always op 0 */
    bool is_rerun;
};

/* One stay of a tensor on the device, from the op that first uses it to the op that last does, both
 * included. */
struct residence {
    uint32_t tensor;
    uint32_t first_op, last_op; /* ATP_NONE: never used, to be passed over */
    uint32_t ready_op;          /* last op that changed it: its copy may start behind this one */
    bool by_restore;            /* begins with a host-to-device copy; else with alloc */
    bool by_evict;              /* ends with a device-to-host copy; else with free */
    uint32_t copy;              /* by_restore: the residence whose eviction made the host copy */
    uint32_t version;           /* of its contents, at its end */
};

struct sequence {
    uint32_t op_count, residence_count;
    struct op *ops;
    struct residence *residences;
    uint64_t *memory_bytes; /* per op: residences and workspace, copies in flight not counted */
    int64_t rerun_ns;
    uint64_t work;         /* what making it took: ops, and gaps compared where memory was short */
    uint64_t excess_bytes; /* largest memory_bytes beyond problem_step_limit; 0: fits */
    uint64_t excess_sum;   /* over all ops, in units of bytes: how far from fitting */
    uint32_t excess_op;    /* where the largest is; ATP_NONE when it fits */
    uint32_t missing_tensor; /* a rerun needs a version of it that cannot be made; ATP_NONE: none */
    bool too_long;           /* given up: reruns of reruns without end, or beyond the limit */
};

enum action_kind {
    ACTION_ALLOC,
    ACTION_OP,
    ACTION_EVICT,
    ACTION_EVICTED,
    ACTION_RESTORE,
    ACTION_RESTORED,
    ACTION_FREE
};

struct action {
    enum action_kind kind;
    uint32_t id; /* op index for ACTION_OP, residence for all others */
};

struct timeline {
    int64_t iteration_ns, stall_ns;
    uint64_t host_bytes; /* largest sum of host copies that are needed at once */
    uint32_t action_count;
    struct action *actions;
    bool stuck; /* memory ran out although the sequence fits: a bug */
};

struct schedule;

struct schedule *schedule_create(const struct problem *problem, struct region *region);

/* Both results stay good until the next call. */
const struct sequence *schedule_sequence(struct schedule *schedule,
                                         const struct selection *selection);

struct pressure;

/* The sequence that a pressure makes of the selection: kinds and weights of its lazy gaps are set
 * to what the walk saw. */
const struct sequence *schedule_press(struct schedule *schedule, const struct pressure *pressure,
                                      struct selection *selection);

/* Of the last sequence, which must miss nothing. Where it does not fit, the limit is raised to what
 * it needs: the time then says what it would take with that much memory. */
const struct timeline *schedule_timeline(struct schedule *schedule, bool with_actions);

/* Sequences that rerun for more than `limit_ns` are given up as too long from now on. None at
 * first. */
void schedule_limit_reruns(struct schedule *schedule, int64_t limit_ns);

/* From now on no copy lies in the way of another tensor: what has left is gone before the next op
 * brings anything in, and nothing comes in before its op. Slow, and the easiest to place. */
void schedule_set_serial(struct schedule *schedule);

/* Nanoseconds of one copy of a tensor each way. */
const int64_t *schedule_copy_out_ns(const struct schedule *schedule);
const int64_t *schedule_copy_in_ns(const struct schedule *schedule);

#endif
