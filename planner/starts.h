/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where the search may begin: choice vectors made by rule.
 */
#ifndef STARTS_H
#define STARTS_H

#include <stdint.h>

#include "problem.h"
#include "relax.h"

enum start_kind {
    START_KEEP,
    START_RELAXED, /* the largest share of the relaxation */
    START_SEGMENTS /* checkpoints: the forward pass in segments; what crosses their borders is held,
                      the rest recomputed or, where it cannot be, swapped */
};

struct start {
    enum start_kind kind;
    uint32_t segment_count; /* START_SEGMENTS: 1 or more */
    uint8_t held;           /* START_SEGMENTS: choice for what crosses a border */
    uint8_t elsewhere;      /* START_SEGMENTS: choice for gaps that do not end the forward pass */
    const struct relax_solution *relaxed; /* START_RELAXED */
};

/* Sets the choices of the candidates and leaves all others alone. */
void starts_fill(const struct problem *problem, const struct start *start,
                 const uint32_t *candidates, uint32_t candidate_count, uint8_t *choices);

#endif
