/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_H
#define TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/backend.h>

#include "gpt.h"

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
enum atp_status train(const struct training *training, struct gpt *gpt, struct atp_error *err);

#endif
