/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Work for the steps of any model: what a step writes is a function of every
 * byte that it reads, so that one wrong byte anywhere changes every digest behind it. The first
 * writer of a tensor makes all its bytes; a later one mixes into every other byte and leaves the
 * rest as it was.
 */
#ifndef TOY_WORK_H
#define TOY_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/model.h>
#include <atp/replay.h>

struct toy {
    const struct atp_model *model;
    uint32_t *first_writer; /* per tensor; ATP_NONE: an input */
    uint64_t *digests;      /* per step: of what its last run read */
    uint64_t salt;          /* goes into the inputs */
    uint32_t failing_step;  /* that step fails; ATP_NONE: none does */
    uint32_t run_count, rerun_count;
};

/* Aborts when out of memory. The model is borrowed. */
void toy_init(struct toy *toy, const struct atp_model *model, uint64_t salt);
void toy_finish(struct toy *toy);

/* An atp_step_fn whose ctx is a struct toy: fills the inputs when the step is ATP_NONE, else does
 * the step's work. ATP_ERR_INVALID when a rerun reads other bytes than the run did, when a tensor
 * of the step is not on the device, or when the workspace is somebody else's bytes. */
enum atp_status toy_work(void *ctx, const struct atp_step_call *call, struct atp_error *err);

/* The same in two halves, for work that runs later than its step function: addresses are taken
 * now, bytes are touched then. The caller frees the kernel. */
struct toy_kernel {
    struct toy *toy;
    uint32_t step; /* ATP_NONE: fills the inputs */
    bool is_rerun;
    uint8_t *workspace;
    uint8_t *data[]; /* per tensor; NULL: not on the device */
};
/* NULL and `err` when the step is to fail: ATP_ERR_IO. */
struct toy_kernel *toy_capture(struct toy *toy, const struct atp_step_call *call,
                               struct atp_error *err);
enum atp_status toy_run(const struct toy_kernel *kernel, struct atp_error *err);
bool toy_is_input(const struct toy *toy, uint32_t tensor);

/* The digests of an iteration, all in one. */
uint64_t toy_digest(const struct toy *toy);

#endif
