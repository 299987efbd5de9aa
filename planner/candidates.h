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

/* Gaps that are idle over a step where memory is short, of tensors that are not tiny; tails only
 * where a rerun may need the tensor. Returns their number; ascending access ids. */
uint32_t candidates_find(const struct problem *problem, struct region *region,
                         uint32_t **out_accesses);

/* Fills choices that suit every gap without a choice: keep, and drop big tails that can be
 * recomputed. */
void candidates_default(const struct problem *problem, uint8_t *choices);

/* Does `decide` settle the gap behind access `a`? `keep` settles all gaps of a tensor, `swap` and
 * `recompute` the one between its last forward use and the next. */
bool candidates_is_pinned(const struct problem *problem, uint32_t a, uint8_t *out_choice);

#endif
