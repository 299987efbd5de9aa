/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finds data races between agents (the host, streams) that work on the same bytes. Every agent has
 * a vector clock: what it knows to be done of each agent. Two accesses to overlapping bytes, one of
 * them a write, are a race unless the later one's agent knew that the earlier one was done. Whether
 * they met in time does not matter, so that a missing wait is found however lucky the timing was.
 *
 * Accesses are given in an order that fits what agents know, such as the order in which the host
 * issues them. Not for several threads at once. Out of memory or of agents: abort.
 */
#ifndef RACE_DETECTOR_H
#define RACE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define RACE_AGENTS_MAX 32
#define RACE_HOST       0 /* the agent that is there from the beginning */

struct race_detector;

struct race_clock {
    uint64_t at[RACE_AGENTS_MAX];
};

/* An access that a new one was not ordered with. */
struct race_conflict {
    uint32_t earlier; /* its `work` */
    bool earlier_wrote;
    uintptr_t first, end; /* the first bytes that both touched, half-open */
};

struct race_detector *race_create(void);
void race_destroy(struct race_detector *detector);

/* Returns the new agent. It knows nothing that the host does not know. */
uint32_t race_add_agent(struct race_detector *detector);
/* The agent does no more work. Its number may be used again once the host knows all of it. */
void race_retire_agent(struct race_detector *detector, uint32_t agent);

/* Bytes to watch; they lie apart from all others that were ever added. */
void race_add_memory(struct race_detector *detector, uintptr_t address, uint64_t bytes);

/* The agent begins another piece of work. */
void race_tick(struct race_detector *detector, uint32_t agent);
/* What the agent knows, its own work so far included. */
const struct race_clock *race_clock_of(const struct race_detector *detector, uint32_t agent);
/* From here on the agent knows that too. */
void race_learn(struct race_detector *detector, uint32_t agent, const struct race_clock *clock);

/* The agent's present work, which the caller calls `work`, reads or writes bytes of one piece of
 * memory. True when that races with an earlier access; *out says with which, the first found. The
 * access counts either way. */
bool race_access(struct race_detector *detector, uint32_t agent, uint32_t work, uintptr_t address,
                 uint64_t bytes, bool is_write, struct race_conflict *out);

#endif
