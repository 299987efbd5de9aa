/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A replay of the rich plan (plan_builder.h) with toy work, on a spied host backend.
 */
#ifndef SCENE_H
#define SCENE_H

#include <atp/replay.h>

#include "assert_error.h"
#include "backends.h"
#include "plan_builder.h"
#include "spy_backend.h"
#include "toy_work.h"

#define SCENE_SALT 99

struct scene {
    struct plan_builder *builder;
    struct spy_backend spy;
    struct toy toy;
    struct atp_replay_options options; /* toy work and poison; change them before scene_open */
    struct atp_replay *replay;
    struct atp_error err;
};

void scene_init(struct scene *s, enum atp_host_copies copies);
/* Closes the replay and asserts that nothing of it is left on the backend. */
void scene_finish(struct scene *s);

ATP_MUST_USE enum atp_status scene_open(struct scene *s, bool with_plan);

/* One iteration with toy work in a loop of begin_step and end_step. */
ATP_MUST_USE enum atp_status scene_drive(struct scene *s);

/* The digest of the rich model's iteration without a plan. */
uint64_t scene_plain_digest(void);

/* An atp_step_fn that does no work. */
enum atp_status do_nothing(void *ctx, const struct atp_step_call *call, struct atp_error *err);

#endif
