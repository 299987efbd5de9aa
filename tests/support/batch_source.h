/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A profile at any batch size: bytes in proportion, times with a part that does not grow.
 */
#ifndef BATCH_SOURCE_H
#define BATCH_SOURCE_H

#include "peak.h"

struct batch_source {
    const struct profile *profile; /* at batch size 1 */
    int64_t fixed;                 /* a step of t ns takes (fixed + batch size) t */
};

/* `source` is borrowed. */
struct peak_source batch_source_open(struct batch_source *source);

#endif
