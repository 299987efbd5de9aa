/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A CUDA driver on threads, for tests of the CUDA backend's real code. It defines the functions of
 * the driver themselves, so that it can be linked, put into a table, or loaded as a libcuda.so.1.
 *
 * Every stream is a queue with a worker thread; copies, fills, records and waits happen there,
 * after random delays. Device memory is plain memory that only queued work may touch. A "kernel" is
 * a function that runs on a stream and declares what it reads and writes.
 *
 * Everything wrong is a fault with a text, found when the call is made and not by luck: races
 * (race_detector.h), memory that is freed while queued work needs it, copies from and to memory
 * that is not pinned, not there or not all there, waits for events that were never recorded, use
 * after destroy, calls without the right context, and what is left over when the context goes.
 *
 * Captured streams and graphs are there too, as far as the backend uses them: what a capture
 * forbids is refused as a driver does, and a launch is checked for races along the graph's edges
 * alone.
 *
 * A driver is one per process, so a session is too; start and finish are not for several threads at
 * once, everything between is.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"

enum fake_fault {
    FAKE_RACE,
    FAKE_FREED_IN_USE,    /* memory freed while queued work may touch it */
    FAKE_UNPINNED,        /* a copy from or to host memory that is not pinned */
    FAKE_OUT_OF_RANGE,    /* bytes that are not all in one piece of device or pinned memory */
    FAKE_USE_AFTER_FREE,  /* of memory, streams, events; freeing twice too */
    FAKE_UNRECORDED_WAIT, /* a wait for an event that was never recorded: it would wait for nothing
                           */
    FAKE_NO_CONTEXT,      /* a call while the primary context is not current, or not retained */
    FAKE_LEAK,            /* left over when the primary context goes, or at finish */
    FAKE_FAULT_COUNT
};

struct fake_options {
    uint64_t seed; /* of the delays */
    uint32_t
        delay_max_us; /* every fourth piece of work, or so, is delayed by up to this; 0: none */
    uint64_t device_bytes; /* of device memory, and of pinned memory; 0: 1 GiB */
    uint64_t
        failing_call; /* from 1: that call of the session fails, cuGetError* not counted; 0: none */
    bool fails_from_then_on;
    CUresult failure;            /* how; 0: CUDA_ERROR_LAUNCH_FAILED */
    uint64_t failing_allocation; /* from 1: that one of device or pinned memory is out of memory */
    uint64_t lost_wait;          /* from 1: that cuStreamWaitEvent of the session does nothing */
    bool has_no_device;
    const char *pci_address; /* of the device; NULL: "0000:C1:00.0". Borrowed */
};

struct fake_report {
    uint32_t counts[FAKE_FAULT_COUNT];
    uint32_t total;       /* of them all */
    char text[1200];      /* the first ones, a line each */
    uint64_t call_count;  /* as failing_call counts */
    uint64_t wait_count;  /* as lost_wait counts */
    uint32_t live_count;  /* memory, streams and events that are there now */
    uint32_t owner_count; /* retains of the primary context that are not yet released */
};

/* Begins a session. `options` NULL: no delays, no failures. */
void fake_cuda_start(const struct fake_options *options);
bool fake_cuda_is_running(void);
/* Lets all queued work end, then ends the session. */
void fake_cuda_finish(struct fake_report *out_report);
/* From here on all calls succeed. */
void fake_cuda_heal(void);
/* The session so far. */
void fake_cuda_look(struct fake_report *out_report);

/* The functions of this driver. */
const struct cuda_api *fake_cuda_api(void);

/* How often a function was called in this session: fake_cuda_calls("cuMemAlloc"). */
uint64_t fake_cuda_calls(const char *name);

/* Another context than the primary one, to make current; belongs to no session. */
CUcontext fake_cuda_other_context(void);
/* What is current in the calling thread; NULL: nothing. */
CUcontext fake_cuda_current(void);

struct fake_access {
    const void *address; /* device or pinned */
    uint64_t bytes;
    bool is_write;
};

/* Queues `work(ctx)`, which touches what `accesses` say and nothing else. `label` is copied. False
 * when the stream or an access is a fault: the work will not run. On a stream that is being
 * captured it runs once for each launch of the graph. */
bool fake_cuda_launch(void *stream, const char *label, const struct fake_access *accesses,
                      uint32_t access_count, void (*work)(void *ctx), void *ctx);

/* The calling thread is about to read or write pinned bytes. */
void fake_cuda_touch(const void *address, uint64_t bytes, bool is_write);

const char *fake_fault_name(enum fake_fault fault);

#endif
