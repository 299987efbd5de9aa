/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay's memory: one block of host bookkeeping, and the handles that open made. Shared by
 * replay_open.c, which makes it, and replay.c, which walks it.
 */
#ifndef ATP_REPLAY_STATE_H
#define ATP_REPLAY_STATE_H

#include <atp/replay.h>

#include "carve.h"
#include "plain.h"
#include "record.h"
#include "report.h"

#define REPLAY_POISON 0xA5

enum replay_state {
    REPLAY_OUTSIDE,  /* no iteration has begun, or the last one is complete */
    REPLAY_BETWEEN,  /* in an iteration, between two steps */
    REPLAY_IN_STEP,  /* between begin_step and end_step */
    REPLAY_CALLBACK, /* inside the caller's step function */
    REPLAY_LOST      /* a failure ended the iteration */
};

struct replay_tensor {
    uint8_t *data;       /* device bytes that can be read; NULL when there are none */
    uint8_t *place;      /* device bytes that it owns, filled or not; stale when it owns none */
    uint8_t *host_place; /* of its last eviction */
    uint32_t event;      /* of the copy in flight */
    uint32_t copy;       /* its number, when options.report */
};

struct atp_replay {
    const struct atp_plan *plan;
    struct atp_backend *backend;
    const struct atp_backend_ops *ops;
    struct atp_replay_options options;
    struct atp_allocator allocator;

    enum replay_state state;
    uint32_t instruction; /* the next one */
    uint32_t step;        /* the next one, or the one that runs */
    uint64_t iteration;

    void *compute, *to_host, *to_device; /* streams; those of copies NULL when the plan has none */
    void *arena_memory; /* that the arena lies in, from its first aligned byte on */
    uint8_t *arena, *host_arena;
    void *issued; /* event, recorded on compute where a copy is issued; the copy's stream waits for
                     it before it is recorded again */

    void *graph;     /* of an iteration without its inputs; NULL: none was captured */
    bool is_capture; /* what is queued goes into one */

    struct replay_tensor *tensors;
    uint32_t event_count;  /* most copies in flight at once */
    void **events;         /* recorded behind a copy */
    uint32_t *idle_events; /* stack of indices */
    uint32_t idle_event_count;

    struct plain plain;   /* when the caller gave no plan */
    struct record record; /* when options.record */
    struct report report; /* when options.report */
};

/* Forgets all tensors and copies in flight, as at the beginning of the first iteration. */
void replay_reset(struct atp_replay *replay);

/* Releases the graph, if there is one. */
void replay_drop_graph(struct atp_replay *replay);

#endif
