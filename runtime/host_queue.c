/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy stream is a ring of jobs and two counters. An event's record is a position in a stream, so
 * "wait for the event" is "let that stream reach the position", whatever performs the jobs.
 *
 * Late mode: reaching a position performs the jobs up to it and none behind it. A wait job first
 * lets the other stream reach its position; that recursion is as deep as there are streams at most,
 * because a wait refers only to jobs that were queued before it, and so to none of a stream that is
 * itself waiting further down the call.
 *
 * One lock for all streams of a backend, released only while bytes are moved. Pushing costs O(1).
 */
#include "host_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checked.h"
#include "fail.h"

#define FIRST_CAPACITY 64

int64_t host_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
        continue;
    }
}

/* splitmix64 (public domain): every seed gives a full-period sequence, 0 too. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int64_t paced_ns(uint64_t bytes, uint64_t bytes_per_second)
{
    if (bytes_per_second == 0) {
        return 0;
    }
    return (int64_t)((double)bytes / (double)bytes_per_second * 1e9);
}

/* The one place where the lock is not held: the addresses belong to the job until it is done. */
static void move_bytes(struct host_stream *stream, const struct host_job *job)
{
    const struct atp_host_options *options = &stream->backend->options;
    bool is_slow = stream->has_worker;
    (void)pthread_mutex_unlock(&stream->backend->lock);
    if (is_slow && options->delay_max_us > 0) {
        uint64_t delay_us = next_random(&stream->random) % ((uint64_t)options->delay_max_us + 1);
        sleep_until(host_now_ns() + (int64_t)delay_us * 1000);
    }
    int64_t start_ns = host_now_ns();
    if (job->kind == HOST_JOB_COPY) {
        memcpy(job->to, job->from, job->bytes);
    } else {
        memset(job->to, job->value, job->bytes);
    }
    if (is_slow && options->bytes_per_second > 0) {
        sleep_until(start_ns + paced_ns(job->bytes, options->bytes_per_second));
    }
    (void)pthread_mutex_lock(&stream->backend->lock);
}

static struct host_job *first_job(struct host_stream *stream)
{
    return &stream->jobs[stream->done % stream->capacity];
}

static void wait_for_other(struct host_stream *stream)
{
    if (!stream->has_worker) {
        const struct host_job *job = first_job(stream);
        if (job->other != NULL) {
            host_queue_reach(job->other, job->position);
        }
        return;
    }
    /* The ring may grow and the other stream may go while this one sleeps: look again each time. */
    while (first_job(stream)->other != NULL &&
           first_job(stream)->other->done < first_job(stream)->position) {
        (void)pthread_cond_wait(&stream->backend->progress, &stream->backend->lock);
    }
}

static void perform_first(struct host_stream *stream)
{
    struct host_job job = *first_job(stream);
    switch (job.kind) {
    case HOST_JOB_COPY:
    case HOST_JOB_FILL:
        move_bytes(stream, &job);
        break;
    case HOST_JOB_RECORD:
        if (job.event != NULL && job.event->generation == job.generation) {
            job.event->time_ns = host_now_ns();
            job.event->passed = true;
        }
        break;
    case HOST_JOB_WAIT:
        wait_for_other(stream);
        break;
    }
    stream->done++;
    (void)pthread_cond_broadcast(&stream->backend->progress);
}

static void *work(void *ctx)
{
    struct host_stream *stream = (struct host_stream *)ctx;
    (void)pthread_mutex_lock(&stream->backend->lock);
    for (;;) {
        while (stream->done == stream->queued && !stream->stop) {
            (void)pthread_cond_wait(&stream->work, &stream->backend->lock);
        }
        if (stream->done == stream->queued) {
            break;
        }
        perform_first(stream);
    }
    (void)pthread_mutex_unlock(&stream->backend->lock);
    return NULL;
}

void host_queue_reach(struct host_stream *stream, uint64_t position)
{
    while (stream->done < position) {
        if (stream->has_worker) {
            (void)pthread_cond_wait(&stream->backend->progress, &stream->backend->lock);
        } else {
            perform_first(stream);
        }
    }
}

static enum atp_status grow(struct host_stream *stream, struct atp_error *err)
{
    uint64_t capacity, bytes;
    if (!checked_mul(stream->capacity, 2, &capacity) ||
        !checked_mul(capacity, sizeof(struct host_job), &bytes) || bytes > SIZE_MAX) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host stream: too many jobs");
    }
    struct host_job *jobs = (struct host_job *)malloc((size_t)bytes);
    if (jobs == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host stream: no memory for %llu jobs",
                        (unsigned long long)capacity);
    }
    for (uint64_t n = stream->done; n < stream->queued; n++) {
        jobs[n % capacity] = stream->jobs[n % stream->capacity];
    }
    free(stream->jobs);
    stream->jobs = jobs;
    stream->capacity = capacity;
    return ATP_OK;
}

enum atp_status host_queue_push(struct host_stream *stream, const struct host_job *job,
                                struct atp_error *err)
{
    if (stream->queued - stream->done == stream->capacity) {
        ATP_TRY(grow(stream, err));
    }
    stream->jobs[stream->queued % stream->capacity] = *job;
    stream->queued++;
    if (stream->has_worker) {
        (void)pthread_cond_signal(&stream->work);
    } else if (stream->backend->options.copies == ATP_HOST_EAGER) {
        host_queue_reach(stream, stream->queued);
    }
    return ATP_OK;
}

enum atp_status host_queue_init(struct host_stream *stream, struct host_backend *backend,
                                enum atp_stream_role role, struct atp_error *err)
{
    *stream = (struct host_stream){.backend = backend,
                                   .role = role,
                                   .capacity = FIRST_CAPACITY,
                                   .random = backend->options.seed + backend->stream_count};
    if (role == ATP_STREAM_COMPUTE) {
        return ATP_OK;
    }
    stream->jobs = (struct host_job *)malloc(FIRST_CAPACITY * sizeof(*stream->jobs));
    if (stream->jobs == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host stream: no memory for its queue");
    }
    if (backend->options.copies != ATP_HOST_THREADS) {
        return ATP_OK;
    }
    if (pthread_cond_init(&stream->work, NULL) != 0) {
        free(stream->jobs);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host stream: cannot make a condition variable");
    }
    stream->has_worker = true;
    if (pthread_create(&stream->worker, NULL, work, stream) != 0) {
        (void)pthread_cond_destroy(&stream->work);
        free(stream->jobs);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "host stream: cannot start a thread");
    }
    return ATP_OK;
}

void host_queue_finish(struct host_stream *stream)
{
    struct host_backend *backend = stream->backend;
    (void)pthread_mutex_lock(&backend->lock);
    if (stream->has_worker) {
        stream->stop = true;
        (void)pthread_cond_signal(&stream->work);
    } else {
        host_queue_reach(stream, stream->queued);
    }
    (void)pthread_mutex_unlock(&backend->lock);
    if (stream->has_worker) {
        (void)pthread_join(stream->worker, NULL);
        (void)pthread_cond_destroy(&stream->work);
    }
    free(stream->jobs);
}
