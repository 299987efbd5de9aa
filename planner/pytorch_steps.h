/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The steps of one iteration in a trace of PyTorch, and the storages that came and went: the facts.
 * What a step reads is not among them (import_pytorch.c).
 */
#ifndef PYTORCH_STEPS_H
#define PYTORCH_STEPS_H

#include <atp/model.h>

#include "pytorch_trace.h"

#define PYTORCH_AUTOGRAD "autograd::engine::evaluate_function: "
#define PYTORCH_USES_MAX 64U /* of one step: more inputs than any operator has that is no list */

struct trace_storage {
    uint64_t address, bytes;
    uint32_t made, gone; /* steps; ATP_NONE: not in this iteration */
    uint32_t written;    /* the last step that did */
    bool gone_within;    /* given back while the step ran */
    uint32_t tensor;     /* ATP_NONE: none */
};

/* Of storages, none twice. */
struct trace_uses {
    uint32_t count;
    uint32_t ids[PYTORCH_USES_MAX];
};

/* An operator that no other encloses; of the update, all of them. */
struct trace_step {
    const char *name;
    const struct trace_op *op;
    enum atp_phase phase;
    int64_t end_ns, ns;
    bool never, is_inplace;
    uint32_t input_count;
    const uint64_t *input_bytes;
    struct trace_uses reads, writes; /* empty here */
    uint64_t running_bytes;          /* scratch */
    uint64_t workspace_bytes;
};

struct pytorch_steps {
    const struct pytorch_trace *trace;
    bool is_cuda; /* whose memory it is: of the GPU that has most, else of the CPU */
    uint32_t step_count, storage_count;
    struct trace_step *steps;       /* forward, then backward, then at most one update */
    struct trace_storage *storages; /* as they came */
    uint32_t *op_step;              /* per operator: its step; ATP_NONE: not in the iteration */
};

/* Is one of the words in the name of an operator? */
bool pytorch_has_any(const char *name, const char *const *words, size_t count);

/* Of the last iteration that the profiler was told of by step(), else of the whole trace.
 * ATP_ERR_SYNTAX, with the place, for a trace without a backward pass, without memory, or of more
 * than one iteration. */
ATP_MUST_USE enum atp_status pytorch_steps_find(const struct pytorch_trace *trace,
                                                struct region *region,
                                                struct pytorch_steps *out_steps,
                                                struct atp_error *err);

#endif
