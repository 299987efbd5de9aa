/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda_state.h"

#define DEFAULT_BYTES ((uint64_t)1 << 30)

/* A driver has no argument that could carry it. */
static struct fake_state the_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .bytes = PTHREAD_MUTEX_INITIALIZER,
                                      .progress = PTHREAD_COND_INITIALIZER};
static uint64_t the_calls[FAKE_CALL_COUNT];

void *fake_must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

struct fake_state *fake_lock(void)
{
    (void)pthread_mutex_lock(&the_state.lock);
    if (!the_state.is_running) {
        (void)fputs("fake CUDA: a call outside of a session\n", stderr);
        abort();
    }
    return &the_state;
}

void fake_unlock(struct fake_state *state)
{
    (void)pthread_mutex_unlock(&state->lock);
}

void fake_cuda_start(const struct fake_options *options)
{
    static const struct fake_options none = {0};
    struct fake_state *state = &the_state;
    (void)pthread_mutex_lock(&state->lock);
    if (state->is_running) {
        abort();
    }
    state->options = options != NULL ? *options : none;
    if (state->options.device_bytes == 0) {
        state->options.device_bytes = DEFAULT_BYTES;
    }
    if (state->options.failure == CUDA_SUCCESS) {
        state->options.failure = CUDA_ERROR_LAUNCH_FAILED;
    }
    memset(&state->report, 0, sizeof(state->report));
    memset(the_calls, 0, sizeof(the_calls));
    state->calls = the_calls;
    state->allocation_count = state->device_used_bytes = state->pinned_used_bytes = 0;
    state->races = race_create();
    state->is_running = true;
    (void)pthread_mutex_unlock(&state->lock);
}

bool fake_cuda_is_running(void)
{
    (void)pthread_mutex_lock(&the_state.lock);
    bool is_running = the_state.is_running;
    (void)pthread_mutex_unlock(&the_state.lock);
    return is_running;
}

void fake_cuda_heal(void)
{
    struct fake_state *state = fake_lock();
    state->options.failing_call = 0;
    fake_unlock(state);
}

void fake_cuda_look(struct fake_report *out_report)
{
    struct fake_state *state = fake_lock();
    *out_report = state->report;
    fake_unlock(state);
}

static void release_all(struct fake_state *state)
{
    while (state->events != NULL) {
        struct fake_event *next = state->events->next;
        free(state->events);
        state->events = next;
    }
    while (state->blocks != NULL) {
        struct fake_block *next = state->blocks->next;
        free(state->blocks->address);
        free(state->blocks);
        state->blocks = next;
    }
    fake_graphs_release(state);
    race_destroy(state->races);
    free(state->works);
    state->works = NULL;
    state->work_count = state->work_room = 0;
}

void fake_cuda_finish(struct fake_report *out_report)
{
    struct fake_state *state = fake_lock();
    for (const struct fake_stream *s = state->streams; s != NULL; s = s->next) {
        fake_reach(state, s, s->queued);
    }
    if (state->report.owner_count > 0) {
        fake_complain(state, FAKE_LEAK, "the primary context is still retained %u times",
                      state->report.owner_count);
        fake_find_leaks(state);
    }
    fake_unlock(state);
    while (state->streams != NULL) {
        struct fake_stream *stream = state->streams;
        state->streams = stream->next;
        fake_stream_end(state, stream);
    }
    (void)pthread_mutex_lock(&state->lock);
    release_all(state);
    state->is_running = false;
    *out_report = state->report;
    (void)pthread_mutex_unlock(&state->lock);
}

const char *fake_fault_name(enum fake_fault fault)
{
    static const char *const names[FAKE_FAULT_COUNT] = {
        [FAKE_RACE] = "race",
        [FAKE_FREED_IN_USE] = "freed in use",
        [FAKE_UNPINNED] = "unpinned",
        [FAKE_OUT_OF_RANGE] = "out of range",
        [FAKE_USE_AFTER_FREE] = "use after free",
        [FAKE_UNRECORDED_WAIT] = "unrecorded wait",
        [FAKE_NO_CONTEXT] = "no context",
        [FAKE_LEAK] = "leak",
    };
    return fault < FAKE_FAULT_COUNT ? names[fault] : "no fault";
}

void fake_complain(struct fake_state *state, enum fake_fault fault, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 forgets va_start */
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t used = strlen(state->report.text);
    (void)snprintf(state->report.text + used, sizeof(state->report.text) - used, "%s: %s\n",
                   fake_fault_name(fault), text);
    state->report.counts[fault]++;
    state->report.total++;
}

CUresult fake_begin(struct fake_state *state, enum fake_call call)
{
    const struct fake_options *options = &state->options;
    state->calls[call]++;
    if (call == FAKE_cuGetErrorName || call == FAKE_cuGetErrorString) {
        return CUDA_SUCCESS;
    }
    uint64_t number = ++state->report.call_count;
    bool fails = options->failing_call > 0 &&
                 (number == options->failing_call ||
                  (number > options->failing_call && options->fails_from_then_on));
    return fails ? options->failure : CUDA_SUCCESS;
}

const struct cuda_api *fake_cuda_api(void)
{
    static const struct cuda_api api = {
#define ENTRY(name) .name = (name),
        CUDA_API_SYMBOLS(ENTRY)
#undef ENTRY
    };
    return &api;
}

uint64_t fake_cuda_calls(const char *name)
{
    static const char *const names[] = {
#define NAME(name) #name,
        CUDA_API_SYMBOLS(NAME)
#undef NAME
    };
    const struct fake_state *state = &the_state;
    for (uint32_t c = 0; c < FAKE_CALL_COUNT; c++) {
        if (strcmp(names[c], name) == 0) {
            return state->calls[c];
        }
    }
    abort();
}

void fake_find_leaks(struct fake_state *state)
{
    const struct fake_options *options = &state->options;
    bool is_gone = options->fails_from_then_on && options->failing_call > 0 &&
                   state->report.call_count >= options->failing_call;
    for (struct fake_block *b = state->blocks; b != NULL; b = b->next) {
        if (!b->is_dead && !is_gone) {
            fake_complain(state, FAKE_LEAK, "%llu bytes of %s memory", (unsigned long long)b->bytes,
                          b->is_pinned ? "pinned" : "device");
        }
        b->is_dead = true;
    }
    for (struct fake_stream *s = state->streams; s != NULL; s = s->next) {
        if (!s->is_dead && !is_gone) {
            fake_complain(state, FAKE_LEAK, "stream %u", s->agent);
        }
        s->is_dead = true;
    }
    for (struct fake_event *e = state->events; e != NULL; e = e->next) {
        if (!e->is_dead && !is_gone) {
            fake_complain(state, FAKE_LEAK, "an event");
        }
        e->is_dead = true;
    }
    fake_graphs_find_leaks(state, is_gone);
    state->report.live_count = 0;
}

/* ---- what is touched ---- */

static uint32_t write_down(struct fake_state *state, const char *label,
                           const struct fake_stream *stream)
{
    if (state->work_count == state->work_room) {
        state->work_room = state->work_room == 0 ? 64 : 2 * state->work_room;
        state->works = (struct fake_work *)fake_must(
            realloc(state->works, state->work_room * sizeof(*state->works)));
    }
    struct fake_work *work = &state->works[state->work_count];
    *work = (struct fake_work){.agent = stream == NULL ? RACE_HOST : stream->agent,
                               .position = stream == NULL ? 0 : stream->queued + 1};
    (void)snprintf(work->label, sizeof(work->label), "%s", label);
    return state->work_count++;
}

static void describe(const struct fake_work *work, char *text, size_t bytes)
{
    if (work->agent == RACE_HOST) {
        (void)snprintf(text, bytes, "%s on the host", work->label);
    } else {
        (void)snprintf(text, bytes, "%s (work %llu of stream %u)", work->label,
                       (unsigned long long)work->position, work->agent);
    }
}

struct fake_block *fake_block_at(const struct fake_state *state, uintptr_t address)
{
    struct fake_block *block = state->blocks;
    while (block != NULL && (address < (uintptr_t)block->address ||
                             address >= (uintptr_t)block->address + block->bytes)) {
        block = block->next;
    }
    return block;
}

void fake_access(struct fake_state *state, const struct fake_stream *stream, const char *label,
                 const struct fake_access *access, enum fake_fault fault)
{
    struct race_conflict conflict;
    uint32_t agent = stream == NULL ? RACE_HOST : stream->agent;
    uint32_t work = write_down(state, label, stream);
    if (!race_access(state->races, agent, work, (uintptr_t)access->address, access->bytes,
                     access->is_write, &conflict)) {
        return;
    }
    char now[80], before[80];
    const struct fake_block *block = fake_block_at(state, (uintptr_t)access->address);
    uintptr_t base = block == NULL ? 0 : (uintptr_t)block->address;
    describe(&state->works[work], now, sizeof(now));
    describe(&state->works[conflict.earlier], before, sizeof(before));
    fake_complain(
        state, fault, "%s %s bytes %llu to %llu of %s memory that %s %s, and nothing orders them",
        now, access->is_write ? "writes" : "reads", (unsigned long long)(conflict.first - base),
        (unsigned long long)(conflict.end - base - 1),
        block != NULL && block->is_pinned ? "pinned" : "device", before,
        conflict.earlier_wrote ? "wrote" : "read");
}
