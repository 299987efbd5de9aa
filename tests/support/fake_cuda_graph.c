/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Captures and graphs. A stream that is part of a capture writes its work down as a list of nodes;
 * a launch queues them on lanes, streams of the graph's own, one for each stream that was captured.
 * Lanes know nothing of each other but what the waits between them say, so that the race detector
 * sees the graph's edges and not the order in which its work was once issued. The launching stream
 * goes on behind the lane of the stream that the capture began on, as a graph's leaves are joined
 * there; anything else is refused when the capture ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda_state.h"

/* cuda.h names parameters in its own way. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

#define LANES_MAX 8

struct node {
    struct fake_job job; /* of a record nothing but its kind */
    char label[32];
    uint32_t lane;
    uint32_t record; /* wait: the node that it waits for */
    uint32_t access_count;
    struct fake_access *accesses;
    /* record, in a launch */
    uint64_t position;
    struct race_clock clock;
};

struct fake_capture {
    bool is_over, is_invalid;
    pthread_t thread;
    const struct fake_stream *origin;
    struct node *nodes;
    uint32_t node_count, node_room;
    uint32_t lane_count;
    uint32_t work_counts[LANES_MAX];      /* copies, fills and kernels of each lane */
    uint32_t known[LANES_MAX][LANES_MAX]; /* of them, what a lane comes after */
    uint32_t (*record_known)[LANES_MAX];  /* by node: what known[lane] was at a record */
    struct fake_capture *next;
};

/* A CUgraph or, with lanes, a CUgraphExec. */
struct fake_graph {
    bool is_exec, is_dead;
    struct fake_capture *capture;
    struct fake_stream *lanes[LANES_MAX];
    uint64_t end; /* of the last launch, in lane 0 */
    struct fake_graph *next;
};

static CUresult invalidate(struct fake_capture *capture, CUresult why)
{
    capture->is_invalid = true;
    return why;
}

static struct node *add_node(struct fake_capture *capture, uint32_t lane, const char *label,
                             const struct fake_job *job)
{
    if (capture->node_count == capture->node_room) {
        capture->node_room = capture->node_room == 0 ? 64 : 2 * capture->node_room;
        capture->nodes = (struct node *)fake_must(
            realloc(capture->nodes, capture->node_room * sizeof(*capture->nodes)));
        capture->record_known = (uint32_t(*)[LANES_MAX])fake_must(
            realloc(capture->record_known, capture->node_room * sizeof(*capture->record_known)));
    }
    struct node *node = &capture->nodes[capture->node_count++];
    *node = (struct node){.job = *job, .lane = lane};
    (void)snprintf(node->label, sizeof(node->label), "%s", label);
    return node;
}

CUresult fake_capture_work(const struct fake_stream *stream, const char *label,
                           const struct fake_job *job, const struct fake_access *accesses,
                           uint32_t access_count)
{
    struct fake_capture *capture = stream->capture;
    if (capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    struct node *node = add_node(capture, stream->lane, label, job);
    node->access_count = access_count;
    node->accesses =
        (struct fake_access *)fake_must(calloc((size_t)access_count + 1, sizeof(*accesses)));
    memcpy(node->accesses, accesses, access_count * sizeof(*accesses));
    capture->known[stream->lane][stream->lane] = ++capture->work_counts[stream->lane];
    return CUDA_SUCCESS;
}

CUresult fake_capture_record(const struct fake_stream *stream, struct fake_event *event)
{
    struct fake_capture *capture = stream->capture;
    struct fake_job job = {.kind = FAKE_JOB_RECORD};
    if (capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    (void)add_node(capture, stream->lane, "record", &job);
    event->capture = capture;
    event->record = capture->node_count - 1;
    event->is_recorded = true;
    memcpy(capture->record_known[event->record], capture->known[stream->lane],
           sizeof(capture->known[0]));
    return CUDA_SUCCESS;
}

/* The stream or the event is part of a capture, or was. */
CUresult fake_capture_wait(struct fake_stream *stream, const struct fake_event *event)
{
    struct fake_capture *capture = event->capture;
    struct fake_job job = {.kind = FAKE_JOB_WAIT};
    if (capture == NULL || capture->is_over) {
        /* An order with something outside of the capture, or with work that never ran as such. */
        return stream->capture != NULL
                   ? invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                   : CUDA_ERROR_CAPTURED_EVENT;
    }
    if (capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream->capture != NULL && stream->capture != capture) {
        (void)invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (stream->capture == NULL) {
        if (capture->lane_count == LANES_MAX) {
            abort();
        }
        stream->capture = capture;
        stream->lane = capture->lane_count++;
    }
    struct node *node = add_node(capture, stream->lane, "wait", &job);
    node->record = event->record;
    for (uint32_t l = 0; l < LANES_MAX; l++) {
        uint32_t *known = &capture->known[stream->lane][l];
        uint32_t then = capture->record_known[event->record][l];
        *known = then > *known ? then : *known;
    }
    return CUDA_SUCCESS;
}

CUresult fake_capture_forbids(struct fake_state *state)
{
    for (struct fake_capture *c = state->captures; c != NULL; c = c->next) {
        if (!c->is_over && pthread_equal(c->thread, pthread_self()) != 0) {
            return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    return CUDA_SUCCESS;
}

CUresult fake_capture_forbids_sync(const struct fake_stream *stream)
{
    return stream->capture == NULL
               ? CUDA_SUCCESS
               : invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamBeginCapture);
    struct fake_stream *stream = fake_find_stream(state, handle, "cuStreamBeginCapture");
    if (stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
        return fake_end(state, CUDA_ERROR_INVALID_VALUE); /* what we do not pretend to know */
    }
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        result = invalidate(stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    }
    if (result == CUDA_SUCCESS) {
        struct fake_capture *capture =
            (struct fake_capture *)fake_must(calloc(1, sizeof(*capture)));
        capture->thread = pthread_self();
        capture->origin = stream;
        capture->lane_count = 1;
        capture->next = state->captures;
        state->captures = capture;
        stream->capture = capture;
        stream->lane = 0;
    }
    return fake_end(state, result);
}

static bool is_joined(const struct fake_capture *capture)
{
    for (uint32_t l = 0; l < capture->lane_count; l++) {
        if (capture->known[0][l] < capture->work_counts[l]) {
            return false;
        }
    }
    return true;
}

static CUresult finish_capture(struct fake_state *state, struct fake_capture *capture)
{
    capture->is_over = true;
    for (struct fake_stream *s = state->streams; s != NULL; s = s->next) {
        if (s->capture == capture) {
            s->capture = NULL;
        }
    }
    if (capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    return is_joined(capture) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static struct fake_graph *make_graph(struct fake_state *state, struct fake_capture *capture)
{
    struct fake_graph *graph = (struct fake_graph *)fake_must(calloc(1, sizeof(*graph)));
    graph->capture = capture;
    graph->next = state->graphs;
    state->graphs = graph;
    state->report.live_count++;
    return graph;
}

/* Made to fail it does nothing: the error is that of something earlier. */
CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuStreamEndCapture);
    struct fake_stream *stream = fake_find_stream(state, handle, "cuStreamEndCapture");
    *out = NULL;
    if (stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (result == CUDA_SUCCESS && stream->capture == NULL) {
        result = CUDA_ERROR_ILLEGAL_STATE;
    }
    if (result == CUDA_SUCCESS && stream->capture->origin != stream) {
        result = invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (result == CUDA_SUCCESS && pthread_equal(stream->capture->thread, pthread_self()) == 0) {
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (result == CUDA_SUCCESS) {
        struct fake_capture *capture = stream->capture;
        result = finish_capture(state, capture);
        if (result == CUDA_SUCCESS) {
            *out = (CUgraph)(void *)make_graph(state, capture);
        }
    }
    return fake_end(state, result);
}

static struct fake_graph *find_graph(struct fake_state *state, const void *handle, bool is_exec,
                                     const char *call)
{
    struct fake_graph *graph = state->graphs;
    while (graph != NULL && graph != handle) {
        graph = graph->next;
    }
    if (graph == NULL || graph->is_dead || graph->is_exec != is_exec) {
        fake_complain(state, FAKE_USE_AFTER_FREE, "%s: no such graph, or no more", call);
        return NULL;
    }
    return graph;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuGraphInstantiateWithFlags);
    const struct fake_graph *graph =
        find_graph(state, handle, false, "cuGraphInstantiateWithFlags");
    if (graph == NULL || flags != 0) {
        return fake_end(state, CUDA_ERROR_INVALID_VALUE);
    }
    if (result == CUDA_SUCCESS) {
        struct fake_graph *exec = make_graph(state, graph->capture);
        exec->is_exec = true;
        for (uint32_t l = 0; l < exec->capture->lane_count; l++) {
            exec->lanes[l] = fake_stream_make(state);
            exec->lanes[l]->is_dead = true; /* to everybody else */
        }
        *out = (CUgraphExec)(void *)exec;
    }
    return fake_end(state, result);
}

/* ---- launches ---- */

/* The stream does nothing more before the other one has come to where it is now. */
static void follow(struct fake_state *state, struct fake_stream *stream, struct fake_stream *other,
                   uint64_t position, const struct race_clock *clock)
{
    struct fake_job job = {.kind = FAKE_JOB_WAIT, .other = other, .position = position};
    fake_issue(state, stream);
    race_learn(state->races, stream->agent, clock);
    fake_push(stream, &job);
}

static void queue_node(struct fake_state *state, const struct fake_graph *exec, struct node *node)
{
    struct fake_stream *lane = exec->lanes[node->lane];
    if (node->job.kind == FAKE_JOB_RECORD) {
        node->position = lane->queued;
        node->clock = *race_clock_of(state->races, lane->agent);
    } else if (node->job.kind == FAKE_JOB_WAIT) {
        const struct node *record = &exec->capture->nodes[node->record];
        follow(state, lane, exec->lanes[record->lane], record->position, &record->clock);
    } else {
        fake_issue(state, lane);
        for (uint32_t a = 0; a < node->access_count; a++) {
            fake_access(state, lane, node->label, &node->accesses[a], FAKE_RACE);
        }
        fake_push(lane, &node->job);
    }
}

/* All that the graph touches is still there. */
static bool is_whole(struct fake_state *state, const struct fake_capture *capture)
{
    for (uint32_t n = 0; n < capture->node_count; n++) {
        const struct node *node = &capture->nodes[n];
        for (uint32_t a = 0; a < node->access_count; a++) {
            const struct fake_block *block =
                fake_block_at(state, (uintptr_t)node->accesses[a].address);
            if (block == NULL || block->is_dead) {
                fake_complain(state, FAKE_USE_AFTER_FREE, "graph: %s: memory that has been freed",
                              node->label);
                return false;
            }
        }
    }
    return true;
}

static void launch(struct fake_state *state, struct fake_graph *exec, struct fake_stream *stream)
{
    struct fake_stream *first = exec->lanes[0];
    struct race_clock before = *race_clock_of(state->races, stream->agent);
    struct race_clock last = *race_clock_of(state->races, first->agent);
    uint64_t position = stream->queued;
    for (uint32_t l = 0; l < exec->capture->lane_count; l++) {
        follow(state, exec->lanes[l], first, exec->end, &last); /* launches do not overlap */
        follow(state, exec->lanes[l], stream, position, &before);
    }
    for (uint32_t n = 0; n < exec->capture->node_count; n++) {
        queue_node(state, exec, &exec->capture->nodes[n]);
    }
    exec->end = first->queued;
    follow(state, stream, first, exec->end, race_clock_of(state->races, first->agent));
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuGraphLaunch);
    struct fake_graph *exec = find_graph(state, handle, true, "cuGraphLaunch");
    struct fake_stream *stream = fake_find_stream(state, stream_handle, "cuGraphLaunch");
    if (exec == NULL || stream == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_HANDLE);
    }
    if (stream->capture != NULL) { /* graphs in graphs */
        return fake_end(state, invalidate(stream->capture, CUDA_ERROR_NOT_SUPPORTED));
    }
    if (result == CUDA_SUCCESS && !is_whole(state, exec->capture)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        launch(state, exec, stream);
    }
    return fake_end(state, result);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuGraphUpload);
    if (find_graph(state, handle, true, "cuGraphUpload") == NULL ||
        fake_find_stream(state, stream_handle, "cuGraphUpload") == NULL) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    return fake_end(state, result);
}

/* ---- the end of them ---- */

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuGraphExecDestroy);
    struct fake_graph *exec = find_graph(state, handle, true, "cuGraphExecDestroy");
    if (exec == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_VALUE);
    }
    exec->is_dead = true;
    state->report.live_count--;
    for (uint32_t l = 0; l < exec->capture->lane_count; l++) {
        race_retire_agent(state->races, exec->lanes[l]->agent);
    }
    return fake_end(state, result);
}

CUresult cuGraphDestroy(CUgraph handle)
{
    struct fake_state *state = fake_lock();
    CUresult result = FAKE_BEGIN(state, cuGraphDestroy);
    struct fake_graph *graph = find_graph(state, handle, false, "cuGraphDestroy");
    if (graph == NULL) {
        return fake_end(state, CUDA_ERROR_INVALID_VALUE);
    }
    graph->is_dead = true;
    state->report.live_count--;
    return fake_end(state, result);
}

void fake_graphs_find_leaks(struct fake_state *state, bool is_gone)
{
    for (struct fake_capture *c = state->captures; c != NULL; c = c->next) {
        if (!c->is_over && !is_gone) {
            fake_complain(state, FAKE_LEAK, "a capture that was never ended");
        }
        (void)finish_capture(state, c);
    }
    for (struct fake_graph *g = state->graphs; g != NULL; g = g->next) {
        if (!g->is_dead && !is_gone) {
            fake_complain(state, FAKE_LEAK, "a graph");
        }
        g->is_dead = true;
    }
}

void fake_graphs_release(struct fake_state *state)
{
    while (state->graphs != NULL) {
        struct fake_graph *next = state->graphs->next;
        free(state->graphs);
        state->graphs = next;
    }
    while (state->captures != NULL) {
        struct fake_capture *next = state->captures->next;
        for (uint32_t n = 0; n < state->captures->node_count; n++) {
            free(state->captures->nodes[n].accesses);
        }
        free(state->captures->nodes);
        free(state->captures->record_known);
        free(state->captures);
        state->captures = next;
    }
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
