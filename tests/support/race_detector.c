/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Each piece of memory is a list of spans, split where accesses begin and end; bytes of a span have
 * the same history. A span remembers its last write and the last read of each agent since: older
 * accesses are ordered before those, or were reported. An access costs the spans of its memory; the
 * models of tests have some hundred.
 */
#include "race_detector.h"

#include <stdlib.h>

struct use {
    uint64_t at; /* the agent's clock; 0: none */
    uint32_t agent, work;
};

struct span {
    uintptr_t first, end;
    struct use write;
    struct use reads[RACE_AGENTS_MAX]; /* since the write, by agent */
    struct span *next;
};

struct memory {
    uintptr_t first, end;
    struct span *spans; /* by address, without gaps */
    struct memory *next;
};

struct race_detector {
    uint32_t agent_count;
    bool is_retired[RACE_AGENTS_MAX];
    struct race_clock clocks[RACE_AGENTS_MAX];
    struct memory *memories;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

struct race_detector *race_create(void)
{
    struct race_detector *d = (struct race_detector *)must(calloc(1, sizeof(*d)));
    (void)race_add_agent(d);
    return d;
}

static void free_spans(struct span *span)
{
    while (span != NULL) {
        struct span *next = span->next;
        free(span);
        span = next;
    }
}

void race_destroy(struct race_detector *d)
{
    while (d->memories != NULL) {
        struct memory *next = d->memories->next;
        free_spans(d->memories->spans);
        free(d->memories);
        d->memories = next;
    }
    free(d);
}

/* A number used again goes on with its clock. What its last owner did and knew is known to the
 * host, and so to whatever the host gives the new one to do. */
uint32_t race_add_agent(struct race_detector *d)
{
    for (uint32_t a = 0; a < d->agent_count; a++) {
        if (d->is_retired[a] && d->clocks[RACE_HOST].at[a] >= d->clocks[a].at[a]) {
            d->is_retired[a] = false;
            return a;
        }
    }
    if (d->agent_count == RACE_AGENTS_MAX) {
        abort();
    }
    return d->agent_count++;
}

void race_retire_agent(struct race_detector *d, uint32_t agent)
{
    d->is_retired[agent] = true;
}

void race_add_memory(struct race_detector *d, uintptr_t address, uint64_t bytes)
{
    struct memory *memory = (struct memory *)must(calloc(1, sizeof(*memory)));
    memory->first = address;
    memory->end = address + bytes;
    memory->spans = (struct span *)must(calloc(1, sizeof(*memory->spans)));
    memory->spans->first = memory->first;
    memory->spans->end = memory->end;
    memory->next = d->memories;
    d->memories = memory;
}

void race_tick(struct race_detector *d, uint32_t agent)
{
    d->clocks[agent].at[agent]++;
}

const struct race_clock *race_clock_of(const struct race_detector *d, uint32_t agent)
{
    return &d->clocks[agent];
}

void race_learn(struct race_detector *d, uint32_t agent, const struct race_clock *clock)
{
    for (uint32_t a = 0; a < d->agent_count; a++) {
        if (clock->at[a] > d->clocks[agent].at[a]) {
            d->clocks[agent].at[a] = clock->at[a];
        }
    }
}

/* Ends the span at `at`, which lies within it; the bytes behind get a span with the same history.
 */
static void split(struct span *span, uintptr_t at)
{
    struct span *behind = (struct span *)must(malloc(sizeof(*behind)));
    *behind = *span;
    behind->first = at;
    span->end = at;
    span->next = behind;
}

/* The first access to the span that the agent does not know to be done, and that matters. */
static const struct use *find_unordered(const struct race_detector *d, const struct span *span,
                                        uint32_t agent, bool is_write)
{
    const struct race_clock *known = &d->clocks[agent];
    if (span->write.at > known->at[span->write.agent]) {
        return &span->write;
    }
    for (uint32_t a = 0; is_write && a < d->agent_count; a++) {
        if (span->reads[a].at > known->at[a]) {
            return &span->reads[a];
        }
    }
    return NULL;
}

static void remember(const struct race_detector *d, struct span *span, struct use use,
                     bool is_write)
{
    if (!is_write) {
        span->reads[use.agent] = use;
        return;
    }
    span->write = use;
    for (uint32_t a = 0; a < d->agent_count; a++) {
        span->reads[a].at = 0;
    }
}

bool race_access(struct race_detector *d, uint32_t agent, uint32_t work, uintptr_t address,
                 uint64_t bytes, bool is_write, struct race_conflict *out)
{
    uintptr_t end = address + bytes;
    struct use use = {.at = d->clocks[agent].at[agent], .agent = agent, .work = work};
    bool found = false;
    const struct memory *memory = d->memories;
    while (memory != NULL && (address < memory->first || address >= memory->end)) {
        memory = memory->next;
    }
    for (struct span *s = memory == NULL ? NULL : memory->spans; s != NULL; s = s->next) {
        if (s->end <= address || s->first >= end) {
            continue;
        }
        if (s->first < address) {
            split(s, address);
            continue; /* the bytes behind are next */
        }
        if (s->end > end) {
            split(s, end);
        }
        const struct use *earlier = find_unordered(d, s, agent, is_write);
        if (earlier != NULL && !found) {
            found = true;
            *out = (struct race_conflict){.earlier = earlier->work,
                                          .earlier_wrote = earlier == &s->write,
                                          .first = s->first,
                                          .end = s->end};
        }
        remember(d, s, use, is_write);
    }
    return found;
}
