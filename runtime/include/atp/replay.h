/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays a plan inside a training program, or runs the program without one, or records a profile
 * of it: the same calls serve all three, so that a program is integrated once.
 *
 *     struct atp_replay *replay;
 *     atp_replay_open(plan_or_null, &model, backend, &options, &replay, &err);
 *     for each iteration:
 *         atp_replay_begin_iteration(replay, &err);
 *         fill the inputs through atp_replay_tensor_data
 *         for each step s of the model, in order:
 *             atp_replay_begin_step(replay, s, &call, &err);   (may call options.step for reruns)
 *             launch the step's work on call.stream
 *             atp_replay_end_step(replay, s, &err);
 *         atp_replay_end_iteration(replay, &err);
 *     atp_replay_close(replay);
 *
 * or let atp_replay_run_iteration call options.step for every step, or let it launch all steps as
 * one graph that atp_replay_capture has made of them.
 *
 * Lifetime: a replay borrows plan, model and backend; all outlive it. A pointer from
 * atp_replay_tensor_data is good from the begin of a step that uses the tensor to that step's end.
 * Threads: one replay is driven by one thread. Different replays with different backends share
 * nothing mutable. Memory: everything is allocated by open. Nothing is allocated, freed or
 * synchronised inside an iteration. Errors: after any failure the iteration is lost;
 * begin_iteration starts a new one, close is always allowed.
 */
#ifndef ATP_REPLAY_H
#define ATP_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <atp/backend.h>
#include <atp/model.h>
#include <atp/plan.h>
#include <atp/simulate.h>
#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct atp_replay;

/* What a step's work needs to know. */
struct atp_step_call {
    struct atp_replay *replay; /* for atp_replay_tensor_data */
    uint32_t step;
    bool is_rerun; /* do not update running statistics again; restore the random state of the first
                      run */
    uint64_t iteration; /* complete iterations since open: one that is lost and begun again keeps
                           its number */
    void *stream;       /* the compute stream */
    void *workspace;    /* the step's workspace_bytes on the device; NULL when it has none */
    bool is_capture;    /* the work is written into a graph and not done: see atp_replay_capture */
};

/* Does the work of one step. Anything but ATP_OK stops the iteration with ATP_ERR_CALLBACK. */
typedef enum atp_status (*atp_step_fn)(void *ctx, const struct atp_step_call *call,
                                       struct atp_error *err);

/* Host bookkeeping memory, all of it taken in open and given back in close. */
struct atp_allocator {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *memory);
    void *ctx;
};

struct atp_replay_options {
    atp_step_fn step; /* required by run_iteration, and by any plan that reruns steps */
    void *step_ctx;
    void *compute_stream;                  /* the caller's own; NULL: the replay makes one */
    const struct atp_allocator *allocator; /* NULL: malloc and free */
    bool record;                           /* time every step; see atp_replay_write_profile */
    bool report; /* time all work, copies and waits: see atp_replay_report */
    bool poison; /* fill device bytes with 0xA5 whenever they become free: a read after free is then
                    seen */
};

/* Opens a replay of `plan`, or of the plain iteration that keeps everything when `plan` is NULL.
 * `model` is the program's own declaration; a plan for another structure is refused with the first
 * difference (ATP_ERR_MISMATCH). The plan is proved by atp_plan_check once, here (ATP_ERR_INVALID).
 * Tensors lie at multiples of the plan's alignment; where the device's memory does not, the arena
 * takes up to that many bytes more than the plan says. `options` may be NULL, and is copied. On
 * failure *out_replay is NULL and everything is released.
 * Also ATP_ERR_NO_MEMORY, ATP_ERR_DEVICE, ATP_ERR_STATE (a plan with reruns and no step function).
 */
ATP_API ATP_MUST_USE enum atp_status
atp_replay_open(const struct atp_plan *plan, const struct atp_model *model,
                struct atp_backend *backend, const struct atp_replay_options *options,
                struct atp_replay **out_replay, struct atp_error *err);

/* Begins an iteration: the inputs have their device bytes from here to their first use. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_begin_iteration(struct atp_replay *replay,
                                                                struct atp_error *err);

/* Brings everything that `step` touches onto the device, running reruns on the way, and fills
 * `out_call` (NULL allowed). Steps come in the model's order (ATP_ERR_STATE). */
ATP_API ATP_MUST_USE enum atp_status atp_replay_begin_step(struct atp_replay *replay, uint32_t step,
                                                           struct atp_step_call *out_call,
                                                           struct atp_error *err);

/* The step's work has been queued: starts the copies that follow it. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_end_step(struct atp_replay *replay, uint32_t step,
                                                         struct atp_error *err);

/* All steps have run: executes the rest of the program. Does not wait for the device. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_end_iteration(struct atp_replay *replay,
                                                              struct atp_error *err);

/* All of the above for one iteration; `inputs` (NULL allowed) is called once the inputs have their
 * device bytes, with step = ATP_NONE. */
ATP_API ATP_MUST_USE enum atp_status
atp_replay_run_iteration(struct atp_replay *replay, atp_step_fn inputs, struct atp_error *err);

/* Writes the iteration into a graph, without running it: options.step is called once for every run
 * and rerun, with is_capture, and queues the work as always. From then on run_iteration calls
 * `inputs` and launches the graph, in place of calling steps: the same work on the same bytes for
 * the cost of one launch. Iterations by begin_step and end_step stay possible.
 *
 * What a step does on the host, and what it passes by value, is done once, at the capture: what
 * changes between iterations must come from device memory, such as the inputs. All its work must be
 * on call->stream, or on streams that wait for it and that it waits for; a step may not
 * synchronise, allocate or free device memory, or touch the default stream.
 *
 * On failure there is no graph, and run_iteration calls the steps as before. ATP_ERR_UNSUPPORTED
 * when the backend or its driver has no graphs, or when the driver finds that a step did what a
 * graph cannot hold; ATP_ERR_CALLBACK when a step failed; ATP_ERR_STATE within an iteration,
 * without options.step, and with options.record or options.report, because single steps and waits
 * of a graph have no times. A second capture takes the place of the first, for steps that have
 * changed. Allocates; not for inside a training step. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_capture(struct atp_replay *replay,
                                                        struct atp_error *err);

/* Device address of a tensor that is on the device now; NULL when it is not. */
ATP_API void *atp_replay_tensor_data(const struct atp_replay *replay, uint32_t tensor);

/* The plan that is replayed: the caller's, or the plain one made by open. Owned by the replay or
 * its caller. */
ATP_API const struct atp_plan *atp_replay_plan(const struct atp_replay *replay);

/* Facts that a recording cannot see. */
struct atp_profile_facts {
    const char *device_name;      /* NULL: "unknown" */
    uint64_t device_memory_bytes; /* > 0 */
    uint64_t resident_bytes;      /* weights, their gradients, optimizer state */
    uint64_t pinned_bytes;        /* limit on the host arena; 0: none is written */
    uint64_t copy_probe_bytes;    /* size of the copies timed to find the link's rates; 0: 16 MiB.
                                     Two of them are taken of either memory */
    const char *note;             /* written as a comment; NULL: none */
};

/* Writes a profile (version 1) of the iterations recorded so far: the median time of every step,
 * measured copy rates, of each direction alone and of both at once, and latency. The first recorded
 * iteration is warm-up and does not count when there are more; of the others the latest 63 do.
 * Comments in the file name the schema, for editors, and mark the steps whose times spread, have
 * outliers or are zero. The file appears under its name only when complete. Waits for the device;
 * takes memory and a stream from the backend to time copies, and gives them back. ATP_ERR_STATE
 * without options.record, without a complete iteration or within one; ATP_ERR_INVALID without the
 * device's memory or a batch size; ATP_ERR_IO. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_write_profile(struct atp_replay *replay,
                                                              const char *path,
                                                              const struct atp_profile_facts *facts,
                                                              struct atp_error *err);

/* One copy and the wait for it. */
struct atp_wait_report {
    uint32_t instruction; /* evicted or restored, in the plan's program */
    int64_t copy_ns;      /* what the copy took */
    int64_t stall_ns;     /* what compute waited for it; what is left of the copy was hidden */
};

/* An iteration as it was, beside what its plan promised. Times are the compute stream's, by the
 * backend's events. */
struct atp_iteration_report {
    uint64_t iteration;
    struct atp_predicted predicted; /* the plan's; times are 0 in a replay without a plan */
    int64_t iteration_ns;           /* from begin_iteration to the end of the last instruction */
    int64_t stall_ns, copy_ns;      /* sums over the waits */
    uint64_t evicted_bytes, restored_bytes;
    uint32_t wait_count;
    const struct atp_wait_report *waits; /* in the order of the copies; good until the next call of
                                            this replay */
};

/* Fills the report of the last complete iteration, and waits for the device. ATP_ERR_STATE without
 * options.report, within an iteration, and when the last one was lost or there was none. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_report(struct atp_replay *replay,
                                                       struct atp_iteration_report *out,
                                                       struct atp_error *err);

/* Writes the last complete iteration as a trace that Perfetto (ui.perfetto.dev) opens: Chrome trace
 * events in JSON, one process "measured" with a track for compute, where stalls show, and one for
 * copies in each direction. With a `clock`, the profile's times, the plan's simulated iteration
 * stands beside it as the process "predicted"; NULL leaves it out. Waits for the device; the file
 * appears under its name only when complete. Statuses as of atp_replay_report; ATP_ERR_IO. */
ATP_API ATP_MUST_USE enum atp_status atp_replay_write_trace(struct atp_replay *replay,
                                                            const char *path,
                                                            const struct atp_clock *clock,
                                                            struct atp_error *err);

/* Waits for the streams, then releases everything in reverse order. Allowed in any state, but not
 * from within a step function, which returns into the replay; NULL is allowed. */
ATP_API void atp_replay_close(struct atp_replay *replay);

#ifdef __cplusplus
}
#endif
#endif
