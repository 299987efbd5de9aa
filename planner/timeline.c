/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * When each copy is issued and waited for.
 *
 * Restores: a backward pass over the order of need gives each the latest start at which it, and all
 * that queue behind it, still arrive in time; memory that the ops in between leave free may push it
 * later. Evictions: a heap of tensors that have their final bytes, soonest release first, feeds the
 * engine whenever it would fall idle. Waits for evictions: only when memory is needed, oldest
 * first. A forward pass plays this on the clock.
 *
 * Memory cannot run out: the sequence fits at every op, prefetches are planned into what it leaves
 * free, and all else that is on the device is an eviction that can be waited for.
 */
#include "schedule_internal.h"

#include <string.h>

/* Copies may take longer by this part before an early wait for them stalls. */
#define SPARE_SHARE 8

enum copy_state { COPY_NONE, COPY_READY, COPY_ISSUED, COPY_DONE };

/* The forward pass. */
struct player {
    struct schedule *s;
    bool with_actions;
    uint32_t op;
    int64_t now, out_free, in_free, stall;
    uint64_t live, host;
    uint32_t heap_count, queue_head, queue_count;
    uint32_t issue_next; /* in issue_list */
};

static uint64_t bytes_of(const struct schedule *s, uint32_t residence)
{
    return s->problem->tensor_bytes[s->sequence.residences[residence].tensor];
}

static int64_t op_ns(const struct schedule *s, uint32_t op)
{
    uint32_t step = s->sequence.ops[op].step;
    return step == ATP_NONE ? 0 : s->problem->profile->clock.step_ns[step];
}

/* Of the step, or what a sequence that does not fit would need. */
static uint64_t op_limit(const struct schedule *s, uint32_t op)
{
    return problem_step_limit(s->problem, s->sequence.ops[op].step) + s->sequence.excess_bytes;
}

/* Counting sort of residences by an op; `first` has op_count + 1 entries. */
struct filing {
    uint32_t *first, *list;
};

static void file_by_op(const struct schedule *s, struct filing filing, const uint32_t *op_of,
                       uint32_t count, const uint32_t *ids)
{
    memset(filing.first, 0, ((size_t)s->sequence.op_count + 2) * sizeof(*filing.first));
    for (uint32_t i = 0; i < count; i++) {
        filing.first[op_of[i] + 2]++;
    }
    for (uint32_t op = 2; op < s->sequence.op_count + 2; op++) {
        filing.first[op] += filing.first[op - 1];
    }
    for (uint32_t i = 0; i < count; i++) {
        filing.list[filing.first[op_of[i] + 1]++] = ids[i];
    }
}

static void file_residences(struct schedule *s)
{
    const struct sequence *sequence = &s->sequence;
    uint32_t *ids = s->queue, *ops = s->heap; /* free until the forward pass */
    uint32_t count = 0;
    for (uint32_t t = 0; t < s->problem->model->tensor_count; t++) {
        s->last_of_tensor[t] = ATP_NONE;
    }
    for (uint32_t r = 0; r < sequence->residence_count; r++) {
        const struct residence *residence = &sequence->residences[r];
        s->evict_state[r] = s->restore_state[r] = COPY_NONE;
        s->copy_readers[r] = 0;
        s->previous[r] = s->last_of_tensor[residence->tensor];
        if (residence->first_op != ATP_NONE) {
            s->last_of_tensor[residence->tensor] = r;
            ids[count] = r;
            ops[count++] = residence->first_op;
        }
    }
    file_by_op(s, (struct filing){s->begin_first, s->begin_list}, ops, count, ids);
    for (uint32_t i = 0; i < count; i++) {
        ops[i] = sequence->residences[ids[i]].last_op;
    }
    file_by_op(s, (struct filing){s->end_first, s->end_list}, ops, count, ids);
    uint32_t evict_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sequence->residences[ids[i]].by_evict) {
            ids[evict_count] = ids[i];
            ops[evict_count++] = sequence->residences[ids[i]].ready_op;
        }
    }
    file_by_op(s, (struct filing){s->ready_first, s->ready_list}, ops, evict_count, ids);
}

/* Fills s->restores in order of need; returns their number. */
static uint32_t list_restores(struct schedule *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->begin_first[s->sequence.op_count]; i++) {
        uint32_t r = s->begin_list[i];
        if (s->sequence.residences[r].by_restore) {
            s->restores[count++] = r;
            s->copy_readers[s->sequence.residences[r].copy]++;
        }
    }
    return count;
}

static void plan_restores(struct schedule *s)
{
    const struct sequence *sequence = &s->sequence;
    uint32_t count = list_restores(s);
    uint32_t *issue_ops = s->heap; /* parallel to restores; free until the forward pass */
    int64_t clock = 0;
    for (uint32_t op = 0; op < sequence->op_count; op++) {
        s->op_start_ns[op] = clock;
        clock += op_ns(s, op);
    }
    memcpy(s->planned_bytes, sequence->memory_bytes,
           sequence->op_count * sizeof(*s->planned_bytes));
    int64_t next_start = INT64_MAX;
    for (uint32_t k = count; k-- > 0;) {
        uint32_t r = s->restores[k];
        const struct residence *residence = &sequence->residences[r];
        uint64_t bytes = bytes_of(s, r);
        int64_t end = s->op_start_ns[residence->first_op];
        end = end < next_start ? end : next_start;
        int64_t start = end - s->copy_in_ns[residence->tensor];
        uint32_t earliest = sequence->residences[s->previous[r]].last_op + 1;
        uint32_t op = residence->first_op;
        while (!s->is_serial && op > earliest && s->op_start_ns[op] > start &&
               s->planned_bytes[op - 1] + bytes <= op_limit(s, op - 1)) {
            op--;
            s->planned_bytes[op] += bytes;
        }
        issue_ops[k] = op;
        next_start = start > s->op_start_ns[op] ? start : s->op_start_ns[op];
    }
    file_by_op(s, (struct filing){s->issue_first, s->issue_list}, issue_ops, count, s->restores);
}

static void record(struct player *p, enum action_kind kind, uint32_t id)
{
    if (p->with_actions) {
        p->s->timeline.actions[p->s->timeline.action_count] = (struct action){kind, id};
    }
    p->s->timeline.action_count++;
}

static void wait_until(struct player *p, int64_t time)
{
    if (time > p->now) {
        p->stall += time - p->now;
        p->now = time;
    }
}

/* Heap order: soonest release first, then the larger tensor, then the older residence. */
static bool heap_before(const struct schedule *s, uint32_t a, uint32_t b)
{
    const struct residence *x = &s->sequence.residences[a], *y = &s->sequence.residences[b];
    if (x->last_op != y->last_op) {
        return x->last_op < y->last_op;
    }
    uint64_t x_bytes = bytes_of(s, a), y_bytes = bytes_of(s, b);
    return x_bytes != y_bytes ? x_bytes > y_bytes : a < b;
}

static void heap_push(struct player *p, uint32_t residence)
{
    uint32_t *heap = p->s->heap;
    uint32_t i = p->heap_count++;
    while (i > 0 && heap_before(p->s, residence, heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = residence;
}

static uint32_t heap_pop(struct player *p)
{
    uint32_t *heap = p->s->heap;
    uint32_t top = heap[0], last = heap[--p->heap_count], i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= p->heap_count) {
            break;
        }
        if (child + 1 < p->heap_count && heap_before(p->s, heap[child + 1], heap[child])) {
            child++;
        }
        if (!heap_before(p->s, heap[child], last)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static void issue_evict(struct player *p)
{
    struct schedule *s = p->s;
    uint32_t r = heap_pop(p);
    int64_t start = p->now > p->out_free ? p->now : p->out_free;
    p->out_free = s->evicted_ns[r] = start + s->copy_out_ns[s->sequence.residences[r].tensor];
    s->evict_state[r] = COPY_ISSUED;
    s->queue[p->queue_count++] = r;
    p->host += bytes_of(s, r);
    if (p->host > s->timeline.host_bytes) {
        s->timeline.host_bytes = p->host;
    }
    record(p, ACTION_EVICT, r);
}

static void wait_evicted(struct player *p, uint32_t r)
{
    wait_until(p, p->s->evicted_ns[r]);
    p->s->evict_state[r] = COPY_DONE;
    p->live -= bytes_of(p->s, r);
    record(p, ACTION_EVICTED, r);
}

/* The oldest issued eviction whose tensor is no longer in use; ATP_NONE when there is none. */
static uint32_t find_releasable(struct player *p)
{
    struct schedule *s = p->s;
    while (p->queue_head < p->queue_count && s->evict_state[s->queue[p->queue_head]] == COPY_DONE) {
        p->queue_head++;
    }
    for (uint32_t i = p->queue_head; i < p->queue_count; i++) {
        uint32_t r = s->queue[i];
        if (s->evict_state[r] == COPY_ISSUED && s->sequence.residences[r].last_op < p->op) {
            return r;
        }
    }
    return ATP_NONE;
}

/* Waits for evictions until `bytes` more fit; with `no_stall` only for those that are over by now.
 */
static bool make_room(struct player *p, uint64_t bytes, bool no_stall)
{
    struct schedule *s = p->s;
    while (p->live + bytes > op_limit(s, p->op)) {
        uint32_t r = find_releasable(p);
        if (r == ATP_NONE && !no_stall && p->heap_count > 0 &&
            s->sequence.residences[s->heap[0]].last_op < p->op) {
            issue_evict(p);
            continue;
        }
        if (r == ATP_NONE || (no_stall && s->evicted_ns[r] > p->now)) {
            s->timeline.stuck = s->timeline.stuck || !no_stall;
            return false;
        }
        wait_evicted(p, r);
    }
    return true;
}

/* Waits for every eviction of what is no longer in use. */
static void drain(struct player *p)
{
    struct schedule *s = p->s;
    while (p->heap_count > 0 && s->sequence.residences[s->heap[0]].last_op < p->op) {
        issue_evict(p);
    }
    for (uint32_t r = find_releasable(p); r != ATP_NONE; r = find_releasable(p)) {
        wait_evicted(p, r);
    }
}

/* The host copy must be complete, and the device bytes of its eviction released. */
static bool make_copy_ready(struct player *p, uint32_t copy, bool no_stall)
{
    struct schedule *s = p->s;
    while (s->evict_state[copy] == COPY_READY) {
        if (no_stall) {
            return false;
        }
        issue_evict(p);
    }
    if (s->evict_state[copy] == COPY_ISSUED) {
        if (no_stall && s->evicted_ns[copy] > p->now) {
            return false;
        }
        wait_evicted(p, copy);
    }
    return true;
}

static bool issue_restore(struct player *p, uint32_t r, bool no_stall)
{
    struct schedule *s = p->s;
    const struct residence *residence = &s->sequence.residences[r];
    if (!make_copy_ready(p, residence->copy, no_stall) || !make_room(p, bytes_of(s, r), no_stall)) {
        return false;
    }
    int64_t start = p->now > p->in_free ? p->now : p->in_free;
    p->in_free = s->restored_ns[r] = start + s->copy_in_ns[residence->tensor];
    s->restore_state[r] = COPY_ISSUED;
    p->live += bytes_of(s, r);
    record(p, ACTION_RESTORE, r);
    return true;
}

/* Releases what was copied a while ago: waits for it cost nothing, even when copies are a little
 * slower than foretold, and short lives are easier to place. */
static void release_done(struct player *p)
{
    struct schedule *s = p->s;
    for (uint32_t r = find_releasable(p); r != ATP_NONE; r = find_releasable(p)) {
        int64_t spare = s->copy_out_ns[s->sequence.residences[r].tensor] / SPARE_SHARE;
        if (s->evicted_ns[r] + spare > p->now) {
            break;
        }
        wait_evicted(p, r);
    }
}

static void issue_copies(struct player *p)
{
    struct schedule *s = p->s;
    release_done(p);
    int64_t horizon = p->now + op_ns(s, p->op);
    while (p->heap_count > 0 && p->out_free < horizon) {
        issue_evict(p);
    }
    while (p->issue_next < s->issue_first[p->op + 1]) {
        uint32_t r = s->issue_list[p->issue_next];
        if (s->restore_state[r] == COPY_NONE && !issue_restore(p, r, true)) {
            break;
        }
        p->issue_next++;
    }
}

static bool bring_in(struct player *p)
{
    struct schedule *s = p->s;
    uint32_t begin = s->begin_first[p->op], end = s->begin_first[p->op + 1];
    uint32_t step = s->sequence.ops[p->op].step;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t r = s->begin_list[i];
        if (s->sequence.residences[r].by_restore && s->restore_state[r] == COPY_NONE &&
            !issue_restore(p, r, false)) {
            return false;
        }
    }
    for (uint32_t i = begin; i < end; i++) {
        uint32_t r = s->begin_list[i];
        if (!s->sequence.residences[r].by_restore) {
            /* An earlier stay may still be on its way to the host. */
            if (s->previous[r] != ATP_NONE) {
                (void)make_copy_ready(p, s->previous[r], false);
            }
            if (!make_room(p, bytes_of(s, r), false)) {
                return false;
            }
            p->live += bytes_of(s, r);
            record(p, ACTION_ALLOC, r);
        }
    }
    if (step != ATP_NONE && !make_room(p, s->problem->workspace_bytes[step], false)) {
        return false;
    }
    for (uint32_t i = begin; i < end; i++) {
        uint32_t r = s->begin_list[i];
        if (s->sequence.residences[r].by_restore) {
            uint32_t copy = s->sequence.residences[r].copy;
            wait_until(p, s->restored_ns[r]);
            s->restore_state[r] = COPY_DONE;
            if (--s->copy_readers[copy] == 0) {
                p->host -= bytes_of(s, r);
            }
            record(p, ACTION_RESTORED, r);
        }
    }
    return true;
}

static void let_go(struct player *p)
{
    struct schedule *s = p->s;
    for (uint32_t i = s->ready_first[p->op]; i < s->ready_first[p->op + 1]; i++) {
        s->evict_state[s->ready_list[i]] = COPY_READY;
        heap_push(p, s->ready_list[i]);
    }
    for (uint32_t i = s->end_first[p->op]; i < s->end_first[p->op + 1]; i++) {
        uint32_t r = s->end_list[i];
        if (!s->sequence.residences[r].by_evict) {
            p->live -= bytes_of(s, r);
            record(p, ACTION_FREE, r);
        }
    }
}

void timeline_build(struct schedule *s, bool with_actions)
{
    struct timeline *timeline = &s->timeline;
    *timeline = (struct timeline){.actions = timeline->actions};
    file_residences(s);
    plan_restores(s);
    struct player p = {.s = s, .with_actions = with_actions};
    for (p.op = 0; p.op < s->sequence.op_count; p.op++) {
        if (s->is_serial) {
            drain(&p);
        }
        issue_copies(&p);
        if (!bring_in(&p)) {
            return;
        }
        record(&p, ACTION_OP, p.op);
        p.now += op_ns(s, p.op);
        let_go(&p);
    }
    timeline->iteration_ns = p.now;
    timeline->stall_ns = p.stall;
}
