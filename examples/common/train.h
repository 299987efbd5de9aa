/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_H
#define TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/backend.h>
#include <atp/model.h>

#include "layers.h"

#define USES_MAX 4 /* tensors that a step reads, or writes */

/* One step's work: the addresses are those of the tensors in the model's step, in its order. */
struct work {
    uint32_t step;
    bool is_rerun; /* running statistics are not for it to touch */
    uint64_t iteration;
    void *reads[USES_MAX], *writes[USES_MAX];
    void *workspace;
};

/* What can be trained. Its first two tensors are its inputs. */
struct network {
    const struct atp_model *model;
    struct device *device;
    uint64_t resident_bytes; /* what stays on the device beside the tensors */
    void *ctx;
    void (*load)(void *ctx, uint64_t iteration, void *first_input, void *second_input);
    bool (*work)(void *ctx, const struct work *work);
    float (*loss)(void *ctx); /* of the last forward pass */
};

struct training {
    uint64_t iterations;
    const char *record_path, *plan_path; /* NULL: none */
    uint64_t memory_bytes;               /* for activations; 0: no limit */
    struct atp_host_options copies;      /* host backend only */
    bool poison, prints_losses, is_silent;
};

/* Trains: as it is, recording a profile, or under a plan. Words go to standard error, losses to
 * standard output. ATP_ERR_LIMIT: activations need more than memory_bytes. A bad plan file has a
 * line in `err`, or is ATP_ERR_INVALID or ATP_ERR_MISMATCH. */
enum atp_status train(const struct training *training, const struct network *net,
                      struct atp_error *err);

#endif
