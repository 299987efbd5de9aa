/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The inside of the fake driver: fake_cuda.c has the session and its faults, fake_cuda_queue.c the
 * workers, fake_cuda_calls.c, fake_cuda_work.c and fake_cuda_graph.c the driver's functions.
 *
 * What is destroyed stays until the session ends, so that its later use is seen and harms nothing.
 * One lock for all; a worker releases it to sleep and to move bytes. Bytes move under a lock of
 * their own, one at a time: that a thread sanitizer finds the planted races of the tests too is of
 * no use.
 */
#ifndef FAKE_CUDA_STATE_H
#define FAKE_CUDA_STATE_H

#include <pthread.h>

#include "fake_cuda.h"
#include "race_detector.h"

struct fake_event {
    bool is_timed, is_recorded, is_dead;
    struct fake_stream *stream;   /* of the last record */
    uint64_t position;            /* jobs of that stream that the last record comes after */
    struct race_clock clock;      /* what whoever waits for it knows */
    uint64_t generation;          /* number of records */
    bool has_passed;              /* the last record has */
    struct fake_capture *capture; /* that the last record is part of; NULL: of none */
    uint32_t record;              /* its node there */
    int64_t time_ns;
    struct fake_event *next;
};

enum fake_job_kind {
    FAKE_JOB_COPY,
    FAKE_JOB_FILL,
    FAKE_JOB_KERNEL,
    FAKE_JOB_RECORD,
    FAKE_JOB_WAIT
};

struct fake_job {
    enum fake_job_kind kind;
    uint8_t value; /* fill */
    void *to;
    const void *from;
    uint64_t bytes;
    void (*work)(void *ctx); /* kernel */
    void *ctx;
    struct fake_event *event; /* record */
    uint64_t generation;
    struct fake_stream *other; /* wait */
    uint64_t position;
    struct fake_job *next;
};

struct fake_stream {
    uint32_t agent;
    bool is_dead, stops;
    pthread_t worker;
    pthread_cond_t has_work;
    struct fake_job *first, **end;
    uint64_t queued, done;
    struct fake_capture *capture; /* NULL: work is done, not captured */
    uint32_t lane;                /* in it */
    struct fake_stream *next;
};

struct fake_block {
    uint8_t *address;
    uint64_t bytes;
    bool is_pinned, is_dead;
    struct fake_block *next;
};

/* A piece of work, for the texts of races. */
struct fake_work {
    char label[32];
    uint32_t agent;
    uint64_t position; /* in its stream */
};

struct fake_state {
    bool is_running;
    struct fake_options options;
    struct fake_report report;
    uint64_t *calls; /* per function, in the order of CUDA_API_SYMBOLS */
    uint64_t allocation_count, device_used_bytes, pinned_used_bytes;
    pthread_mutex_t lock, bytes;
    pthread_cond_t progress; /* some stream has done a job */
    struct race_detector *races;
    struct fake_stream *streams;
    struct fake_event *events;
    struct fake_block *blocks;
    struct fake_capture *captures;
    struct fake_graph *graphs;
    struct fake_work *works;
    uint32_t work_count, work_room;
};

/* Numbers of the driver's functions. */
enum fake_call {
#define FAKE_CALL(name) FAKE_##name,
    CUDA_API_SYMBOLS(FAKE_CALL)
#undef FAKE_CALL
        FAKE_CALL_COUNT
};

/* The state, locked; fake_unlock ends that. Aborts when no session is running. */
struct fake_state *fake_lock(void);
void fake_unlock(struct fake_state *state);

/* Writes a fault down. */
__attribute__((format(printf, 3, 4))) void
fake_complain(struct fake_state *state, enum fake_fault fault, const char *format, ...);

/* A call begins: counts it. What it gives back is the failure that was asked for. */
CUresult fake_begin(struct fake_state *state, enum fake_call call);

/* The same for a call that needs the primary context; a complaint unless it is current. */
CUresult fake_begin_in_context(struct fake_state *state, enum fake_call call, const char *name);
#define FAKE_BEGIN(state, name) fake_begin_in_context((state), FAKE_##name, #name)
/* The last thing of a call: unlocks, and gives `result` back. */
CUresult fake_end(struct fake_state *state, CUresult result);

/* The stream with that handle; NULL and a complaint when there is none. */
struct fake_stream *fake_find_stream(struct fake_state *state, const void *handle,
                                     const char *call);
/* The stream is given another piece of work: what the host has done so far comes before it. */
void fake_issue(struct fake_state *state, const struct fake_stream *stream);

/* The memory that has that byte, freed or not; NULL when there is none. */
struct fake_block *fake_block_at(const struct fake_state *state, uintptr_t address);

/* The primary context goes: everything that is left is a leak, unless the device went before. */
void fake_find_leaks(struct fake_state *state);

/* An access of the stream's newest job, or of the host when the stream is NULL. */
void fake_access(struct fake_state *state, const struct fake_stream *stream, const char *label,
                 const struct fake_access *access, enum fake_fault fault);

/* fake_cuda_graph.c. Work, records and waits of a stream that is being captured; each may be
 * refused. */
CUresult fake_capture_work(const struct fake_stream *stream, const char *label,
                           const struct fake_job *job, const struct fake_access *accesses,
                           uint32_t access_count);
CUresult fake_capture_record(const struct fake_stream *stream, struct fake_event *event);
CUresult fake_capture_wait(struct fake_stream *stream, const struct fake_event *event);
/* What a thread may not do while it captures, such as taking memory; and what no captured stream
 * allows. Either spoils the capture. */
CUresult fake_capture_forbids(struct fake_state *state);
CUresult fake_capture_forbids_sync(const struct fake_stream *stream);
void fake_graphs_find_leaks(struct fake_state *state, bool is_gone);
void fake_graphs_release(struct fake_state *state);

/* fake_cuda_queue.c; with the lock held. Out of memory or threads: abort. */
struct fake_stream *fake_stream_make(struct fake_state *state);
void fake_push(struct fake_stream *stream, const struct fake_job *job);
void fake_reach(struct fake_state *state, const struct fake_stream *stream, uint64_t position);
/* Without the lock: lets the worker end, and releases the stream. */
void fake_stream_end(struct fake_state *state, struct fake_stream *stream);

void *fake_must(void *memory);

#endif
