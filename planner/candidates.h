/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which gaps have a choice at all; the rest are kept. Reductions of the search alone: the bound has
 * its own.
 */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"

/* The gaps that have a choice, by the reductions that suit the problem's size: ascending access
 * ids. Tails only where a rerun may need the tensor. Returns their number. */
uint32_t candidates_find(const struct problem *problem, struct region *region,
                         uint32_t **out_accesses);

struct candidates_reductions {
    bool tiny;    /* leave out tensors up to candidates_tiny_bytes */
    bool pressed; /* leave out gaps over steps where everything live fits */
};

/* The same by the reductions given. */
uint32_t candidates_find_with(const struct problem *problem,
                              const struct candidates_reductions *reductions, struct region *region,
                              uint32_t **out_accesses);

/* Tensors up to this size are so small that all of them together never matter. 0: there are none.
 */
uint64_t candidates_tiny_bytes(const struct problem *problem);

/* Fills choices that suit every gap without a choice: keep, and drop big tails that can be
 * recomputed. */
void candidates_default(const struct problem *problem, uint8_t *choices);

/* Does `decide` settle the gap behind access `a`? `keep` settles all gaps of a tensor, `swap` and
 * `recompute` the one between its last forward use and the next. */
bool candidates_is_pinned(const struct problem *problem, uint32_t a, uint8_t *out_choice);

#endif
