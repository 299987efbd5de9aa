/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tensors grouped by the layer that their names tell: the dotted parts up to the first one with a
 * digit in it, else the first part; the last part is never the layer's. `h0.attention.out` is in
 * `h0`, `model.layers.3.norm` in `model.layers.3`, `head.out` in `head`, `x1` in none.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include <atp/plan.h>

#include "region.h"

#define DECISION_COUNT 3

struct layer {
    const char *name;
    uint32_t tensors[DECISION_COUNT]; /* by decision */
    uint64_t bytes[DECISION_COUNT];
};

struct layers {
    uint32_t count;
    const struct layer *items; /* in the order of their first tensors */
    const uint32_t *of_tensor; /* per tensor: index of its layer */
};

/* Bytes of `name` that are its layer; 0 when there is none. */
size_t layers_prefix(const char *name);

/* Tensors without a layer are together in one named "". */
void layers_build(const struct atp_plan *plan, struct region *region, struct layers *out_layers);

#endif
