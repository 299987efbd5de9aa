/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of the host backend: one queue of jobs per copy stream, performed late by whoever
 * must wait for them, or by a worker thread. Private to backend_host.c.
 *
 * Every function but init and finish is called with the backend's lock held.
 */
#ifndef HOST_QUEUE_H
#define HOST_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <atp/backend.h>

struct host_stream;

struct host_event {
    bool timed;
    bool passed;                /* the last record has been performed */
    uint64_t generation;        /* number of records so far */
    struct host_stream *stream; /* of the last record; NULL: there is nothing to wait for */
    uint64_t position;          /* jobs of that stream that the last record comes after */
    int64_t time_ns;            /* when the last record was performed */
    struct host_event *next;
};

enum host_job_kind { HOST_JOB_COPY, HOST_JOB_FILL, HOST_JOB_RECORD, HOST_JOB_WAIT };

struct host_job {
    enum host_job_kind kind;
    uint8_t value;             /* fill */
    void *to;                  /* copy, fill */
    const void *from;          /* copy */
    uint64_t bytes;            /* copy, fill */
    struct host_event *event;  /* record; NULL when it has been destroyed since */
    uint64_t generation;       /* record: it counts only while it is the event's last one */
    struct host_stream *other; /* wait; NULL when it has been destroyed, and so drained, since */
    uint64_t position;         /* wait: jobs of `other` that must be done */
};

struct host_backend {
    struct atp_backend base;
    struct atp_host_options options;
    pthread_mutex_t lock;
    pthread_cond_t progress; /* some stream has done a job */
    uint64_t stream_count;   /* ever made: part of each stream's seed */
    struct host_stream *streams;
    struct host_event *events;
};

struct host_stream {
    struct host_backend *backend;
    enum atp_stream_role role;
    struct host_job *jobs; /* a ring: job number n lies at n % capacity */
    uint64_t capacity;
    uint64_t queued, done; /* jobs since the stream was made; done <= queued */
    bool has_worker, stop;
    pthread_t worker;
    pthread_cond_t work; /* a job has come, or `stop` */
    uint64_t random;     /* state of the generator of delays */
    struct host_stream *next;
};

/* Makes the stream ready, with a worker if the backend runs copies on threads. On failure nothing
 * is left behind. ATP_ERR_NO_MEMORY. */
ATP_MUST_USE enum atp_status host_queue_init(struct host_stream *stream,
                                             struct host_backend *backend,
                                             enum atp_stream_role role, struct atp_error *err);

/* Performs all jobs, then releases what init made. */
void host_queue_finish(struct host_stream *stream);

/* Adds a job at the end. ATP_ERR_NO_MEMORY. */
ATP_MUST_USE enum atp_status host_queue_push(struct host_stream *stream, const struct host_job *job,
                                             struct atp_error *err);

/* Returns when the first `position` jobs are done; performs them where no worker does. */
void host_queue_reach(struct host_stream *stream, uint64_t position);

int64_t host_now_ns(void);

#endif
