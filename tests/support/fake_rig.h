/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A session of the fake driver with a replay of a plan on it, whose work is toy work.
 */
#ifndef FAKE_RIG_H
#define FAKE_RIG_H

#include "fake_cuda.h"
#include "fake_kernels.h"
#include "plan_builder.h"

struct rig {
    struct atp_backend *backend;
    struct fake_kernels kernels;
    struct atp_replay_options options; /* kernels and poison; change them before rig_open */
    struct atp_replay *replay;
    struct atp_error err;
    struct fake_report report; /* by rig_finish */
};

void rig_start(struct rig *r, const struct atp_model *model, const struct fake_options *options);
/* The first call that can fail. */
enum atp_status rig_open(struct rig *r, const struct atp_plan *plan);
void rig_iterate(struct rig *r, uint32_t count);
/* Closes the replay, so that all kernels have run. */
void rig_close(struct rig *r);
void rig_finish(struct rig *r);
/* The same, and asserts that neither the driver nor a kernel saw a fault. */
void rig_finish_clean(struct rig *r);

/* The digest of the iteration without a plan, on the host. */
uint64_t rig_plain_digest(const struct atp_model *model);

/* A number from the environment. */
uint64_t rig_setting(const char *name, uint64_t otherwise);

#endif
