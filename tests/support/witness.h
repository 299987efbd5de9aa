/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Work for the steps of any model on any backend, made of fills and copies alone, and so without a
 * compiler for the device: a step fills what it writes with a value that belongs to tensor and
 * version, and copies what it reads to pinned memory, on the compute stream. A stale, torn or
 * overwritten tensor shows there. Failures to make one print a line and end the program.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>
#include <atp/replay.h>

/* Exit codes of the programs that use it. */
#define EXIT_WRONG 1  /* wrong bytes, or a failure */
#define EXIT_BAD   2  /* usage */
#define EXIT_NONE  77 /* no such device here */

struct witness {
    struct atp_backend *backend;
    const struct atp_model *model;
    uint32_t fill_count; /* of a step's workspace: what its work takes. 1 unless it is changed */
    uint32_t burst;
    bool is_graph; /* what is seen is in one place in every iteration, and judged again each time */
    uint64_t wrong_bytes, seen_bytes;
    const char *title;     /* of what is replayed, for first_wrong */
    char first_wrong[200]; /* a line about the first wrong bytes, or "" */

    uint8_t *pinned;
    uint64_t used_bytes, room_bytes;
    struct sight *sights;
    uint32_t sight_count, sight_room;
};

/* For up to `burst` iterations of the plan between two judgements; with 0 it does not look. Borrows
 * the plan's model. */
void witness_init(struct witness *witness, struct atp_backend *backend, const struct atp_plan *plan,
                  uint32_t burst);
void witness_finish(struct witness *witness);

/* An atp_step_fn with a witness as its ctx; serves inputs too. */
enum atp_status witness_work(void *ctx, const struct atp_step_call *call, struct atp_error *err);

/* Compares all that was seen since the last time; the stream has been waited for. */
void witness_judge(struct witness *witness);

/* Replays the plan, `burst_count` times `burst` iterations with poison and a look after each burst,
 * as a graph when `is_graph`. Adds what it saw to `total`.
 * ATP_ERR_UNSUPPORTED where the backend has no graphs. */
enum atp_status witness_replay(struct witness *total, const struct atp_plan *plan,
                               uint32_t burst_count, bool is_graph, const char *title,
                               struct atp_error *err);

/* Prints and ends the program, with EXIT_WRONG, when the status is none of success. */
void witness_insist(enum atp_status status, const char *what, const struct atp_error *err);

/* A backend by its name in a command line: cuda, eager, late, threads. Ends the program with
 * EXIT_BAD for any other and EXIT_NONE where this machine has no device. */
struct atp_backend *witness_backend(const char *name);

int64_t witness_now_ns(void);

#endif
