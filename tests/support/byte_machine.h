/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan's program run on real bytes: small, slow, and written without a look at the checker. A
 * step's work is to hash everything that it reads into everything that it writes. Bytes that become
 * free or undefined are poisoned, with another poison every time; a workspace is trampled on.
 *
 * Copies run at the earliest or at the latest moment that the waits allow, each direction by
 * itself, and no copy waits for another: what is right in all four combinations does not depend on
 * timing.
 */
#ifndef BYTE_MACHINE_H
#define BYTE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

struct byte_timing {
    bool late_evictions, late_restores;
};

/* Does every `run` of the program read exactly the bytes that the unplanned iteration reads? A
 * program that leaves an arena, uses an unknown id, or does not run each step once in order does
 * not. The model must pass atp_model_check; sizes are those of a test. */
bool byte_machine_agrees(const struct atp_plan *plan, struct byte_timing timing);

/* For all four timings. */
bool byte_machine_always_agrees(const struct atp_plan *plan);

#endif
