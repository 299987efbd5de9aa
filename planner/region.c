/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "region.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 20)

struct block {
    struct block *previous;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct region {
    struct block *last;
};

static void out_of_memory(void)
{
    (void)fputs("atp-plan: out of memory\n", stderr);
    exit(4);
}

static struct block *block_create(struct block *previous, size_t size)
{
    struct block *block = malloc(sizeof(*block) + size);
    if (block == NULL) {
        out_of_memory();
        abort();
    }
    block->previous = previous;
    block->size = size;
    block->used = 0;
    return block;
}

struct region *region_create(void)
{
    struct region *region = malloc(sizeof(*region));
    if (region == NULL) {
        out_of_memory();
        abort();
    }
    region->last = block_create(NULL, BLOCK_BYTES);
    return region;
}

static void drop_last(struct region *region)
{
    struct block *block = region->last;
    region->last = block->previous;
    free(block);
}

void region_destroy(struct region *region)
{
    if (region == NULL) {
        return;
    }
    while (region->last != NULL) {
        drop_last(region);
    }
    free(region);
}

void *region_alloc(struct region *region, size_t count, size_t size)
{
    const size_t unit = alignof(max_align_t);
    if (size != 0 && count > (SIZE_MAX / 2) / size) {
        out_of_memory();
    }
    size_t bytes = count * size;
    bytes = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    if (region->last->size - region->last->used < bytes) {
        region->last = block_create(region->last, bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES);
    }
    unsigned char *taken = region->last->bytes + region->last->used;
    region->last->used += bytes;
    return memset(taken, 0, bytes);
}

char *region_copy_text(struct region *region, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(region_alloc(region, size, 1), text, size);
}

struct region_mark region_mark(const struct region *region)
{
    return (struct region_mark){.block = region->last, .used = region->last->used};
}

void region_reset(struct region *region, struct region_mark mark)
{
    while (region->last != mark.block) {
        drop_last(region);
    }
    region->last->used = mark.used;
}
