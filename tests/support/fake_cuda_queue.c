/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_cuda_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "random.h"

/* What a worker is given. */
struct errand {
    struct fake_state *state;
    struct fake_stream *stream;
    struct random random;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void dawdle(struct errand *errand)
{
    uint32_t limit_us = errand->state->options.delay_max_us;
    if (limit_us == 0 || !random_chance(&errand->random, 25)) {
        return;
    }
    uint32_t us = random_below(&errand->random, limit_us + 1);
    struct timespec length = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    (void)pthread_mutex_unlock(&errand->state->lock);
    (void)nanosleep(&length, NULL);
    (void)pthread_mutex_lock(&errand->state->lock);
}

static void move_bytes(struct fake_state *state, const struct fake_job *job)
{
    (void)pthread_mutex_unlock(&state->lock);
    (void)pthread_mutex_lock(&state->bytes);
    if (job->kind == FAKE_JOB_COPY) {
        memcpy(job->to, job->from, job->bytes);
    } else if (job->kind == FAKE_JOB_FILL) {
        memset(job->to, job->value, job->bytes);
    } else {
        job->work(job->ctx);
    }
    (void)pthread_mutex_unlock(&state->bytes);
    (void)pthread_mutex_lock(&state->lock);
}

void fake_reach(struct fake_state *state, const struct fake_stream *stream, uint64_t position)
{
    while (stream->done < position) {
        (void)pthread_cond_wait(&state->progress, &state->lock);
    }
}

static void perform(struct fake_state *state, const struct fake_job *job)
{
    switch (job->kind) {
    case FAKE_JOB_COPY:
    case FAKE_JOB_FILL:
    case FAKE_JOB_KERNEL:
        move_bytes(state, job);
        break;
    case FAKE_JOB_RECORD:
        if (job->event->generation == job->generation) {
            job->event->has_passed = true;
            job->event->time_ns = now_ns();
        }
        break;
    case FAKE_JOB_WAIT:
        fake_reach(state, job->other, job->position);
        break;
    }
}

static void *work(void *argument)
{
    struct errand *errand = (struct errand *)argument;
    struct fake_state *state = errand->state;
    struct fake_stream *stream = errand->stream;
    (void)pthread_mutex_lock(&state->lock);
    for (;;) {
        while (stream->first == NULL && !stream->stops) {
            (void)pthread_cond_wait(&stream->has_work, &state->lock);
        }
        struct fake_job *job = stream->first;
        if (job == NULL) {
            break;
        }
        dawdle(errand);
        perform(state, job);
        stream->first = job->next;
        if (stream->first == NULL) {
            stream->end = &stream->first;
        }
        free(job);
        stream->done++;
        (void)pthread_cond_broadcast(&state->progress);
    }
    (void)pthread_mutex_unlock(&state->lock);
    free(errand);
    return NULL;
}

struct fake_stream *fake_stream_make(struct fake_state *state)
{
    struct fake_stream *stream = (struct fake_stream *)fake_must(calloc(1, sizeof(*stream)));
    struct errand *errand = (struct errand *)fake_must(calloc(1, sizeof(*errand)));
    stream->agent = race_add_agent(state->races);
    stream->end = &stream->first;
    stream->next = state->streams;
    state->streams = stream;
    *errand = (struct errand){
        .state = state, .stream = stream, .random = {state->options.seed * 1000 + stream->agent}};
    if (pthread_cond_init(&stream->has_work, NULL) != 0 ||
        pthread_create(&stream->worker, NULL, work, errand) != 0) {
        abort();
    }
    return stream;
}

void fake_push(struct fake_stream *stream, const struct fake_job *job)
{
    struct fake_job *queued = (struct fake_job *)fake_must(malloc(sizeof(*queued)));
    *queued = *job;
    queued->next = NULL;
    *stream->end = queued;
    stream->end = &queued->next;
    stream->queued++;
    (void)pthread_cond_signal(&stream->has_work);
}

void fake_stream_end(struct fake_state *state, struct fake_stream *stream)
{
    (void)pthread_mutex_lock(&state->lock);
    stream->stops = true;
    (void)pthread_cond_signal(&stream->has_work);
    (void)pthread_mutex_unlock(&state->lock);
    (void)pthread_join(stream->worker, NULL);
    (void)pthread_cond_destroy(&stream->has_work);
    free(stream);
}
