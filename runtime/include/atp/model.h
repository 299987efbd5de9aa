/* SPDX-License-Identifier: Apache-2.0
 *
 * A model is the structure of one training iteration: its tensors, and its steps in execution order
 * with what each reads and writes. It is plain const data with no pointer to anything else, so that
 * a program can declare it statically. A profile, a plan and a training program each hold one; a
 * plan is good only for the model whose fingerprint it carries.
 *
 * Semantics (schemas/README.md has the full text):
 * - A tensor is one storage; views are folded into it.
 * - A tensor that no step writes is an *input*: it is on the device when the iteration begins.
 * - Each step that writes a tensor leaves a new *version* of it: the v-th writer in step order
 * leaves version v, an input is at version 0. A step reads the version left by the last writer
 * before it.
 * - A tensor in both `reads` and `writes` is updated in place. A later writer may leave part of the
 * bytes as they were, so that writer v > 1 needs version v-1 in place even where it does not list
 * the tensor in `reads`.
 */
#ifndef ATP_MODEL_H
#define ATP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum atp_phase { ATP_PHASE_FORWARD, ATP_PHASE_BACKWARD, ATP_PHASE_UPDATE };

struct atp_tensor {
    const char *name;
    uint64_t bytes;
};

struct atp_step {
    const char *name;     /* unique within its phase */
    enum atp_phase phase; /* never decreases from one step to the next */
    bool rerun_never;     /* must not run twice: random numbers, running statistics, collectives */
    uint32_t read_count, write_count;
    const uint32_t *reads;    /* tensor ids, no tensor twice; NULL when read_count is 0 */
    const uint32_t *writes;   /* tensor ids, no tensor twice; NULL when write_count is 0 */
    uint64_t workspace_bytes; /* scratch device memory while the step runs */
};

struct atp_model {
    const char *name;
    uint64_t batch_size;
    uint32_t tensor_count, step_count;
    const struct atp_tensor *tensors; /* ids are indices */
    const struct atp_step *steps;     /* in execution order */
};

/* Where in a model a rule is broken, for readers that know the line of each part. */
enum atp_model_part {
    ATP_MODEL_WHOLE,
    ATP_MODEL_TENSOR,    /* tensors[index] */
    ATP_MODEL_STEP,      /* steps[index] */
    ATP_MODEL_STEP_READ, /* steps[index].reads[item] */
    ATP_MODEL_STEP_WRITE /* steps[index].writes[item] */
};

struct atp_model_place {
    enum atp_model_part part;
    uint32_t index, item;
};

/* Checks every rule above plus: ids in range, names not empty and unique, no read before the first
 * write of a tensor that is no input, at least one step, sums of bytes within 2^62. ATP_ERR_INVALID
 * with the place in words in `err` and, where `out_place` is not NULL, as data. ATP_ERR_NO_MEMORY
 * when scratch memory cannot be had. Pure; needs O(steps + tensors + uses) time up to a logarithm.
 */
ATP_API ATP_MUST_USE enum atp_status atp_model_check(const struct atp_model *model,
                                                     struct atp_model_place *out_place,
                                                     struct atp_error *err);

/* SHA-256 (FIPS 180-4) over the structure: tensors (name, bytes) and steps (name, phase, rerun,
 * reads, writes, workspace) in order. The model's own name and its batch size do not count. The
 * model must pass atp_model_check. */
ATP_API void atp_model_fingerprint(const struct atp_model *model, uint8_t out_digest[32]);

/* ATP_OK when both have the same structure; else ATP_ERR_MISMATCH, and `err` names the first
 * difference with both values: `steps[12] "h0.ln1" forward: workspace is 0 bytes in PLANNED, 1024
 * in ACTUAL`. `planned_name` and `actual_name` say what each side is ("the plan", "the program").
 * Both must pass atp_model_check. */
ATP_API ATP_MUST_USE enum atp_status
atp_model_compare(const struct atp_model *planned, const char *planned_name,
                  const struct atp_model *actual, const char *actual_name, struct atp_error *err);

#ifdef __cplusplus
}
#endif
#endif
