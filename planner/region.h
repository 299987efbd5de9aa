/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * All memory of one planner run. Stages take what they need and never free; the region goes at the
 * end. Out of memory ends the program with exit code 4: this is an offline tool.
 */
#ifndef REGION_H
#define REGION_H

#include <stddef.h>
#include <stdint.h>

struct region;

struct region *region_create(void);
void region_destroy(struct region *region); /* NULL is allowed */

/* Zeroed memory for `count` elements of `size` bytes, aligned for any type, good until
 * region_destroy. Never NULL: a count of 0 gives a unique pointer too. */
void *region_alloc(struct region *region, size_t count, size_t size);
#define REGION_NEW(region, type, count) ((type *)region_alloc((region), (count), sizeof(type)))

char *region_copy_text(struct region *region, const char *text);

/* A place to return to: everything taken since the mark is given back. For stages that run many
 * times. */
struct region_mark {
    void *block;
    size_t used;
};
struct region_mark region_mark(const struct region *region);
void region_reset(struct region *region, struct region_mark mark);

#endif
