/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is a header, the model it is for, and one linear program. It is plain const data: compiled
 * into a program, or read from a file with atp/plan_yaml.h. Three interpreters share it: the
 * checker (atp_plan_check), the simulator (atp/simulate.h) and the replay (atp/replay.h).
 *
 * The program, in the order of the compute stream:
 *
 *   alloc t @offset     t's bytes in the device arena are t's from here on; their contents are
 * undefined, except that the program begins with the `alloc` of every input, and the caller fills
 * those in run s @workspace    step s runs; every step runs exactly once, in the model's order
 *   rerun s @workspace  forward step s, which has run, runs again on the versions that its run read
 *   evict t -> host     start the device-to-host copy after all earlier compute; t can still be
 * read, not written evicted t           compute waits for that copy; t's device bytes are free from
 * here on restore t @offset   t gets device bytes again; start the host-to-device copy after all
 * earlier compute restored t          compute waits for that copy; t can be read free t t's device
 * bytes are free from here on; its host copy, if any, stays good
 *
 * A step's workspace belongs to the step only while it runs: `offset` of run and rerun is where it
 * lies in the arena, 0 when the step needs none. A host copy holds the version that was evicted; it
 * stays good until its host bytes are given to another eviction, whose `evict` must come after any
 * `restored` that still reads them. At the end no tensor is on the device and no copy is in flight.
 */
#ifndef ATP_PLAN_H
#define ATP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/model.h>
#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum atp_op {
    ATP_OP_ALLOC,
    ATP_OP_RUN,
    ATP_OP_RERUN,
    ATP_OP_EVICT,
    ATP_OP_EVICTED,
    ATP_OP_RESTORE,
    ATP_OP_RESTORED,
    ATP_OP_FREE
};
#define ATP_OP_COUNT 8

struct atp_instruction {
    enum atp_op op;
    uint32_t id;     /* step of run and rerun, tensor of all others */
    uint64_t offset; /* alloc, restore: in the device arena; evict: in the host arena; run, rerun:
                        of the workspace in the device arena; 0 otherwise */
};

/* What the program does with a tensor, derived from it: SWAP when it is evicted at all, else
 * RECOMPUTE when a rerun writes it while its contents are undefined (it was freed, and allocated
 * again), else KEEP. */
enum atp_decision { ATP_DECISION_KEEP, ATP_DECISION_SWAP, ATP_DECISION_RECOMPUTE };

/* The numbers that the planner promises. All but the bound are derived from program and profile by
 * atp_simulate. */
struct atp_predicted {
    int64_t iteration_ns; /* end of the last instruction on the compute stream */
    int64_t bound_ns;     /* no legal program for this model, budget and clock is faster */
    int64_t compute_ns;   /* all `run` */
    int64_t recompute_ns; /* all `rerun` */
    int64_t stall_ns;     /* compute waiting for copies; iteration = compute + recompute + stall */
    uint64_t peak_bytes;  /* largest sum of live bytes in the device arena, workspace included;
                             sizes as in the model, not rounded up to the alignment */
    uint64_t evicted_bytes, restored_bytes; /* copied to the host and back */
    uint64_t recomputed_bytes;              /* written by reruns */
};

struct atp_plan {
    struct atp_model model;
    uint8_t fingerprint[32];  /* atp_model_fingerprint of `model` */
    uint64_t alignment_bytes; /* a power of two; divides every device and host offset */
    uint64_t budget_bytes;    /* device memory that the training may use */
    uint64_t resident_bytes;  /* of it: weights, their gradients, optimizer state */
    uint64_t arena_bytes;     /* of it: everything in `program` */
    uint64_t host_arena_bytes;
    bool time_limited; /* a wall-clock limit cut the search: the same options may give another plan
                          elsewhere */
    struct atp_predicted predicted;
    const enum atp_decision *decisions; /* one per tensor */
    uint32_t instruction_count;
    const struct atp_instruction *program;
    const char *certificate; /* proves predicted.bound_ns to atp-plan; NULL: none. Text in lines,
                                described in schemas/README.md; nothing in libatp reads it */
};

/* Proves that the plan is well-formed and keeps its promises for any timing of copies and steps,
 * with the model that it carries: G1  resident + arena <= budget; every byte lies in its arena; no
 * two live tensors overlap G2  every step reads the version that the unplanned iteration would have
 * read, every host copy holds what its restore needs, and all steps run once in order G3  accesses
 * to the same bytes, one of them a write, are ordered by the compute stream or a wait on it G7  the
 * fingerprint is that of the model and that decisions and peak_bytes are what the program does.
 * ATP_ERR_INVALID names the first instruction that breaks a rule, in `err->instruction` and in
 * words: `program[12] free x0: ...`. Pure; it allocates scratch memory and releases it
 * (ATP_ERR_NO_MEMORY). The times in `predicted` need a profile: see atp_plan_check_predicted. */
ATP_API ATP_MUST_USE enum atp_status atp_plan_check(const struct atp_plan *plan,
                                                    struct atp_error *err);

/* "alloc", "run", ... as in plan files; "keep", "swap", "recompute"; "forward", "backward",
 * "update". Static. */
ATP_API const char *atp_op_name(enum atp_op op);
ATP_API const char *atp_decision_name(enum atp_decision decision);
ATP_API const char *atp_phase_name(enum atp_phase phase);

#ifdef __cplusplus
}
#endif
#endif
