/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A profile in memory: what profile files (version 1) say, for one batch size.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <atp/model.h>
#include <atp/simulate.h>
#include <atp/status.h>

#include "region.h"

enum profile_pin { PROFILE_PIN_NONE, PROFILE_PIN_KEEP, PROFILE_PIN_SWAP, PROFILE_PIN_RECOMPUTE };

struct profile {
    struct atp_model model; /* sizes at batch_size */
    const char *device_name;
    const char *origin; /* where the numbers come from, in the file's words; NULL: not said */
    uint64_t device_memory_bytes;
    uint64_t pinned_bytes; /* limit on the host arena; UINT64_MAX when the file names none */
    uint64_t resident_bytes;
    struct atp_clock clock; /* step_ns at batch_size; rates with both directions busy where the file
                               gives them */
    const enum profile_pin *pins; /* one per tensor: `decide` */
    uint32_t zero_time_count;     /* steps that take no time: worth a warning */
    uint32_t clamped_count; /* steps whose line through the measurements falls to zero time here */
    bool scaled; /* bytes and times were scaled from another batch size, not measured at this one */
};

/* A profile file: measurements at one or more batch sizes. Opaque; lives in the region. */
struct profile_file;

/* Reads a profile file. Every rule of the format is enforced; errors carry line, column and "PATH:
 * what, expected". ATP_ERR_IO, ATP_ERR_SYNTAX, ATP_ERR_VERSION, ATP_ERR_INVALID. */
ATP_MUST_USE enum atp_status profile_read(const char *path, struct region *region,
                                          const struct profile_file **out_file,
                                          struct atp_error *err);
ATP_MUST_USE enum atp_status profile_parse(const char *text, size_t size, struct region *region,
                                           const struct profile_file **out_file,
                                           struct atp_error *err);

/* The file that says what the profile does, at its batch size alone. Borrows from the profile. */
const struct profile_file *profile_file_of(const struct profile *profile, struct region *region);

/* The same file with another device; 0: the file's own. Sets *out_differs when any of them is
 * another than the file's. */
struct profile_device {
    uint64_t memory_bytes, d2h_bytes_per_second, h2d_bytes_per_second;
};
const struct profile_file *profile_with_device(const struct profile_file *file,
                                               const struct profile_device *device,
                                               struct region *region, bool *out_differs);

/* The batch sizes that were measured, ascending. */
const uint64_t *profile_batch_sizes(const struct profile_file *file, uint32_t *out_count);

/* The profile at `batch_size`; 0 means the only one, or the largest measured. Between measured
 * sizes values are interpolated linearly, beyond them the last slope is extended; a single measured
 * size scales bytes, and times of forward and backward steps, in proportion. ATP_ERR_INVALID when
 * sizes leave their range. */
ATP_MUST_USE enum atp_status profile_at_batch(const struct profile_file *file, uint64_t batch_size,
                                              struct region *region, struct profile *out_profile,
                                              struct atp_error *err);

#endif
