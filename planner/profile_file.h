/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a profile file says, at every batch size that it was measured at, and where. Private to the
 * files named profile_*.
 */
#ifndef PROFILE_FILE_H
#define PROFILE_FILE_H

#include "profile.h"
#include "yaml_reader.h"

#define PROFILE_BATCH_MAX   ((uint64_t)1 << 31)
#define PROFILE_BATCHES_MAX 64U
#define PROFILE_BYTES_MAX   ((uint64_t)1 << 62)

struct profile_place {
    uint32_t line, column;
};

struct profile_tensor {
    const char *name;
    struct profile_place place;
    enum profile_pin pin;
    const uint64_t *bytes; /* one per batch size, as all series */
};

struct profile_step {
    struct atp_step step; /* workspace_bytes is 0 */
    struct profile_place place;
    const uint64_t *workspace_bytes;
    const uint64_t *time_ns;
};

/* Rates as the file has them, in bytes per second; 0: not there. */
struct profile_link {
    uint64_t d2h, h2d, d2h_duplex, h2d_duplex;
};

struct profile_file {
    struct profile_link link;
    struct profile_place model_place, device_place, batch_place, tensors_place, steps_place;
    const char *model_name, *device_name;
    const char *origin; /* NULL when the file has none */
    uint64_t device_memory_bytes, pinned_bytes;
    uint64_t d2h_bytes_per_second, h2d_bytes_per_second; /* with both directions busy if known */
    int64_t copy_latency_ns;
    uint32_t batch_count, tensor_count, step_count;
    const uint64_t *batch_sizes; /* ascending */
    const uint64_t *resident_bytes;
    const struct profile_tensor *tensors;
    const struct profile_step *steps;
};

/* Copies are timed with the duplex rates where the file has them: a schedule that overlaps the
 * directions anywhere is slowed there, and the lower rate everywhere makes the prediction one that
 * the link keeps. */
static inline void profile_file_set_rates(struct profile_file *file)
{
    const struct profile_link *link = &file->link;
    file->d2h_bytes_per_second = link->d2h_duplex != 0 ? link->d2h_duplex : link->d2h;
    file->h2d_bytes_per_second = link->h2d_duplex != 0 ? link->h2d_duplex : link->h2d;
}

/* The keys of each map in a profile file, for the test that holds the schema against them. */
enum profile_map {
    PROFILE_MAP_TOP,
    PROFILE_MAP_DEVICE,
    PROFILE_MAP_HOST,
    PROFILE_MAP_TENSOR,
    PROFILE_MAP_STEP
};
const struct doc_key *profile_keys(enum profile_map map, uint32_t *out_count);

#endif
