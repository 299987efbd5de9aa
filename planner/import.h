/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Profiles made of what people have. Each importer fills all of *out_profile from its file and from
 * the numbers that no file has; what it assumed stands in the profile's `origin`.
 */
#ifndef IMPORT_H
#define IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

/* What a person says about the device and the training. */
struct import_numbers {
    uint64_t device_memory_bytes, d2h_bytes_per_second, h2d_bytes_per_second;
    uint64_t batch_size;
    uint64_t resident_bytes;
    uint64_t input_bytes; /* what the first layer reads; 0: not part of the profile */
    uint64_t update_us;   /* 0: there is no update step */
};

/* What every importer begins with: the numbers, and no limit on pinned memory. Without tensors,
 * steps and origin. `model_name` is kept. */
struct profile import_base(const char *model_name, const struct import_numbers *numbers);

/* Layers measured by hand, one a row: atp-plan(1) has the columns. Layer i reads what layer i - 1
 * wrote; its backward step reads that, its own output, what it saved, and the gradient of its
 * output, and writes the gradient of its input. `model_name` is kept. Errors of the reader carry
 * line and column. */
ATP_MUST_USE enum atp_status import_csv(const char *text, size_t size, const char *model_name,
                                        const struct import_numbers *numbers, struct region *region,
                                        struct profile *out_profile, struct atp_error *err);

/* One iteration in a trace of torch.profiler (export_chrome_trace), recorded with record_shapes and
 * profile_memory. `input_bytes` and `update_us` are not looked at. `text` must outlive the profile.
 * Errors carry the place of the event. */
ATP_MUST_USE enum atp_status import_pytorch(const char *text, size_t size, const char *model_name,
                                            const struct import_numbers *numbers,
                                            struct region *region, struct profile *out_profile,
                                            struct atp_error *err);

#endif
