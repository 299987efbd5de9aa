/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Networks of layers as papers on recomputation draw them: each layer's forward step writes one
 * activation, each layer's backward step reads the gradients of the layers that it fed and the
 * activations that those read. No tensor is written twice and nothing is pinned.
 */
#ifndef RANDOM_LAYERS_H
#define RANDOM_LAYERS_H

#include <stdbool.h>

#include "profile.h"
#include "random.h"
#include "region.h"

/* `layer_count` layers of random sizes and times, 2 to 30; each reads the layer before it and, with
 * `skips`, now and then an earlier one. A loss comes between the phases. The link is so slow that
 * the shortest copy takes about `copy_iterations` (1 to 1000) times all steps together. */
void random_layers_build(struct random *random, uint32_t layer_count, bool skips,
                         uint32_t copy_iterations, struct region *region,
                         struct profile *out_profile);

#endif
