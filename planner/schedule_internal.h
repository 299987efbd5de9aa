/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What sequence.c, timeline.c and schedule.c share.
 */
#ifndef SCHEDULE_INTERNAL_H
#define SCHEDULE_INTERNAL_H

#include "pressure.h"
#include "schedule.h"

#define TOUCHES_MAX 4U /* the last AGAIN flag */

struct tensor_state {
    uint32_t open;         /* residence on the device; ATP_NONE: not there */
    uint32_t version;      /* of the open residence's contents */
    uint32_t copy;         /* residence whose eviction left a host copy; ATP_NONE: none */
    uint32_t copy_version; /* of that host copy */
    uint32_t gap;          /* the access behind which it is now; ATP_NONE: before its first */
    bool touched;          /* by a rerun for the step at hand */
    uint8_t touches;       /* steps whose reruns used it within the gap; stops at TOUCHES_MAX */
    bool is_counted;       /* open, and part of open_bytes */
    uint32_t needs;        /* by ops that are being made ready */
    uint32_t lazy_index;   /* in schedule.lazy; ATP_NONE: not there */
};

/* An access, packed for the walk over the steps. */
struct use {
    uint32_t access, tensor;
    uint32_t version, read_version;
    uint64_t bytes;
    bool writes, needs; /* needs read_version in place */
};

struct schedule {
    const struct problem *problem;
    const struct use *uses; /* of step s: [problem->step_first[s], problem->step_first[s + 1]) */
    const uint32_t
        *first_writer; /* per tensor: writer_steps[first_writer[t] + v - 1] leaves version v */
    const uint32_t *writer_steps;
    const int64_t *copy_out_ns, *copy_in_ns; /* per tensor */
    uint32_t op_capacity, residence_capacity;
    bool is_serial;

    /* sequence */
    struct sequence sequence;
    struct tensor_state *state;
    const uint8_t *choices;
    uint32_t *touched; /* tensors that reruns for the step at hand brought onto the device */
    uint32_t touched_count;
    uint32_t depth;
    int64_t rerun_limit_ns; /* more is given up as too long */
    bool *copy_used;        /* per residence: its host copy is restored */

    /* lazy gaps */
    bool latest_first;
    const float *weights;            /* NULL: no gap is lazy */
    const struct pressure *pressure; /* sets kinds and weights while it walks; NULL: they are set */
    struct selection *pressed;       /* where to */
    uint64_t open_bytes;             /* on the device now */
    uint32_t at_step;
    uint32_t *lazy; /* open tensors in a lazy gap */
    uint32_t lazy_count;
    float *step_start_us;  /* without reruns and stalls */
    uint32_t *chain_stamp; /* per step: the last chain that it was part of */
    uint32_t chain_now;
    uint64_t compared; /* lazy gaps, each time memory was short; priced ones count PRICE_WORK */

    /* timeline: per residence unless said otherwise */
    struct timeline timeline;
    int64_t *op_start_ns;               /* per op, without stalls */
    uint32_t *begin_first, *begin_list; /* residences by first op */
    uint32_t *end_first, *end_list;     /* residences by last op */
    uint32_t *ready_first, *ready_list; /* evicted residences by ready op */
    uint64_t *planned_bytes;            /* per op: memory with planned prefetches */
    uint32_t *last_of_tensor;           /* per tensor: scratch */
    uint32_t *previous;                 /* earlier residence of the same tensor */
    uint32_t *restores;                 /* residences that begin with a restore, in order of need */
    uint32_t *issue_first, *issue_list; /* restores by issue op */
    uint32_t *heap;                     /* evictions that may start, soonest release first */
    uint32_t *queue;                    /* evictions issued, in order */
    int64_t *evicted_ns, *restored_ns;  /* end of the copy */
    uint8_t *evict_state, *restore_state;
    uint32_t *copy_readers; /* restores of its host copy still to come */
};

void sequence_build(struct schedule *schedule, const struct selection *selection);
/* Ends the tensor's stay, with a copy to the host or without. */
void sequence_close(struct schedule *schedule, uint32_t tensor, bool by_evict);
void timeline_build(struct schedule *schedule, bool with_actions);

#endif
