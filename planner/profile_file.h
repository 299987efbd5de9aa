/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a profile file says, at every batch size that it was measured at. Private to the reader
 * (profile_yaml.c) and to what makes a profile of it (profile.c).
 */
#ifndef PROFILE_FILE_H
#define PROFILE_FILE_H

#include "profile.h"
#include "yaml_reader.h"

#define PROFILE_BATCH_MAX   ((uint64_t)1 << 31)
#define PROFILE_BATCHES_MAX 64U
#define PROFILE_BYTES_MAX   ((uint64_t)1 << 62)

struct profile_tensor {
    const char *name;
    enum profile_pin pin;
    const uint64_t *bytes; /* one per batch size, as all series */
};

struct profile_step {
    struct atp_step step; /* workspace_bytes is 0 */
    const uint64_t *workspace_bytes;
    const uint64_t *time_ns;
};

struct profile_file {
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
