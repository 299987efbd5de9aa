/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The fastest program that never copies to the host, for small problems in which every tensor is
 * written once: any forward step may rerun any number of times at any moment, any tensor may be
 * dropped at any moment. Exact: Dijkstra's search over (steps run, tensors on the device). Shares
 * no code with the planner but the problem it reads.
 */
#ifndef RECOMPUTE_OPTIMUM_H
#define RECOMPUTE_OPTIMUM_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/plan.h>

#include "problem.h"
#include "region.h"

/* Inputs and tensors written by forward steps: those that make up the state. */
#define RECOMPUTE_OPTIMUM_TENSORS_MAX 18U

/* Can the problem be handed to recompute_optimum? No tensor is written twice and there are not too
 * many. */
bool recompute_optimum_applies(const struct problem *problem);

/* `limit_bytes` bounds the live bytes at any time, workspaces included. False: no program without
 * copies stays within them. Else fills *out_plan; of its predictions iteration_ns alone, what the
 * search found. The limit is on live bytes: tensors lie beside each other in an arena with room for
 * all. Needs about (steps x 2^tensors) x 5 bytes and steps as long. */
bool recompute_optimum(const struct problem *problem, uint64_t limit_bytes, struct region *region,
                       struct atp_plan *out_plan);

#endif
