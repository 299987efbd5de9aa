/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What torch.profiler writes (export_chrome_trace), as plain arrays: the operators of the CPU's
 * threads, memory that came and went, and kernels. Everything else in the file is left out.
 */
#ifndef PYTORCH_TRACE_H
#define PYTORCH_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <atp/status.h>

#include "region.h"

/* An operator, or a range that was given a name ("ProfilerStep#3", "Optimizer.step#AdamW.step"). */
struct trace_op {
    const char *name;
    uint32_t index; /* in traceEvents */
    bool is_range;
    int64_t thread;
    int64_t start_ns, end_ns;
    int64_t sequence; /* the node of autograd that it makes, or that it is; -1: none */
    int64_t id;       /* what kernels know it by; -1: none */
    uint32_t input_count;
    const uint64_t *input_bytes; /* by shape and type; 0: not known */
};

struct trace_memory {
    uint32_t index;
    int64_t thread;
    int64_t ns;
    uint64_t address;
    int64_t bytes; /* negative: given back */
    int64_t device_type, device_id;
};

struct trace_kernel {
    int64_t ns; /* how long it ran */
    int64_t id; /* of the operator */
};

struct pytorch_trace {
    const char *text; /* borrowed */
    size_t size;
    const char *device_name; /* of the first GPU; NULL: none */
    bool has_shapes;
    uint32_t op_count, memory_count, kernel_count;
    struct trace_op *ops;        /* by start, what encloses others first */
    struct trace_memory *memory; /* by time */
    struct trace_kernel *kernels;
};

/* Texts and arrays live in the region. ATP_ERR_SYNTAX with line and column for what is no JSON, no
 * trace, or an event that lacks what its kind has. */
ATP_MUST_USE enum atp_status pytorch_trace_parse(const char *text, size_t size,
                                                 struct region *region,
                                                 struct pytorch_trace *out_trace,
                                                 struct atp_error *err);

/* Fills *err with the place of an event and "traceEvents[12]: " before the message. */
__attribute__((format(printf, 4, 5))) enum atp_status
pytorch_trace_fail(const struct pytorch_trace *trace, uint32_t index, struct atp_error *err,
                   const char *format, ...);

#endif
