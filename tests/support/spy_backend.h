/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A backend around another one: counts what is alive, writes down the calls, and fails the n-th
 * call that can fail.
 */
#ifndef SPY_BACKEND_H
#define SPY_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/backend.h>

#define SPY_LATENCY_NS 5000

struct spy_backend {
    struct atp_backend base; /* hand this one out */
    struct atp_backend *inner;
    uint64_t call_count;   /* calls that can fail, so far */
    uint64_t failing;      /* that call fails with ATP_ERR_DEVICE, from 1; 0: none does */
    uint64_t create_count; /* memory, streams and events made */
    int64_t live_count;    /* of them not released yet */
    uint32_t copy_stream_count;
    void *copy_streams[4]; /* in the order they were made */
    /* A clock that only copies and the caller move: a copy takes SPY_LATENCY_NS and a nanosecond
     * per byte. */
    bool has_clock;
    int64_t clock_ns;
    uint32_t mark_count;
    struct {
        const void *event;
        int64_t ns;
    } marks[256];
    char log[1024]; /* work that was queued, each as "copy(2) ": the number of its copy stream from
                       1, 0 for compute; the caller may empty it */
};

/* Takes `inner` over. */
void spy_backend_init(struct spy_backend *spy, struct atp_backend *inner);
void spy_backend_finish(struct spy_backend *spy); /* destroys the inner one too */

#endif
