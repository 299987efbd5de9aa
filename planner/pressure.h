/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Dropping under memory pressure. A lazy gap is kept until an op finds too little memory; then, of
 * the open tensors in lazy gaps that no op at hand needs, the one whose dropping costs least for
 * what it wins goes: weight / (bytes x time until its next use). So a sequence with enough lazy
 * gaps always fits.
 *
 * A `struct pressure` finds kinds and weights on the way: what a swap or a recomputation would cost
 * as things stand. Different prices give different plans to start from.
 */
#ifndef PRESSURE_H
#define PRESSURE_H

#include <stdint.h>

struct schedule;

struct pressure {
    double swap_price; /* of a nanosecond that a copy engine is busy, in nanoseconds of compute */
    /* Shares of a relaxation, per access; NULL: none. What it keeps is dropped last. */
    const double *keep, *swap, *recompute;
};

/* Gives all lazy gaps of the selection at hand kinds and weights to begin with. */
void pressure_prepare(struct schedule *schedule);

/* Drops lazy tensors until `bytes` more fit beside what is open, as far as there are any. */
void pressure_relieve(struct schedule *schedule, uint64_t bytes, uint64_t limit);

#endif
