/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The CUDA backend on a fake driver without delays; bench_fake_absent.c in builds without cuda.h.
 */
#ifndef BENCH_FAKE_H
#define BENCH_FAKE_H

#include <atp/backend.h>

/* *out is NULL, and all is well, where this build has no fake. */
ATP_MUST_USE enum atp_status bench_fake_create(struct atp_backend **out, struct atp_error *err);
/* Calls of the driver so far. */
uint64_t bench_fake_calls(void);
void bench_fake_destroy(struct atp_backend *backend); /* NULL is allowed */

#endif
