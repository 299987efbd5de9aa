/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The CUDA backend on the fake driver, with what an eviction and a restore need: three streams,
 * four events, 1024 bytes of device and of pinned memory. Calls that must succeed end the test when
 * they do not.
 */
#ifndef FAKE_SCENE_H
#define FAKE_SCENE_H

#include "fake_cuda.h"

#define SCENE_BYTES 1024

struct fake_scene {
    struct atp_backend *backend;
    const struct atp_backend_ops *ops;
    void *compute, *out, *in;
    void *events[4];
    uint8_t *arena, *pinned;
    struct atp_error err;
    struct fake_report report; /* filled by finish */
};

/* Starts a session too. `options` may be NULL. */
void fake_scene_init(struct fake_scene *scene, const struct fake_options *options);

/* Lets all streams end, releases what is not NULL, and ends the session. */
void fake_scene_finish(struct fake_scene *scene);

/* One reading or writing kernel on `bytes` of the arena from `offset` on. */
void fake_scene_read(struct fake_scene *scene, void *stream, uint64_t offset, uint64_t bytes);
void fake_scene_write(struct fake_scene *scene, void *stream, uint64_t offset, uint64_t bytes);

/* Copies between arena and pinned memory, on `out` and on `in`. */
void fake_scene_evict(struct fake_scene *scene, uint64_t offset, uint64_t to, uint64_t bytes);
void fake_scene_restore(struct fake_scene *scene, uint64_t from, uint64_t offset, uint64_t bytes);

void fake_scene_record(struct fake_scene *scene, int event, void *stream);
void fake_scene_wait(struct fake_scene *scene, void *stream, int event);
void fake_scene_sync(struct fake_scene *scene, void *stream);

#endif
