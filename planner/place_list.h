/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The lists of the exhaustive search (place_search.c): blocks still to be placed, and what can be
 * inferred about where they will lie. Only place_list.c and place_search.c include this.
 */
#ifndef PLACE_LIST_H
#define PLACE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "place_part.h"

struct item {
    uint64_t floor; /* highest top among the placed blocks that it overlaps in time */
    uint64_t least; /* it will not lie lower, `floor` or more; at `floor` it could be placed now */
    uint64_t bytes;
    uint32_t first, end; /* cliques */
    uint32_t rank, id;
};

/* Scratch memory for inference; per clique unless said otherwise. */
struct list_scratch {
    uint64_t *room;         /* bytes of the list's items */
    uint64_t *load;         /* lowest least offset + room: the least height that it will reach */
    uint32_t *member_first; /* where its items begin in `members` */
    uint32_t *member_count;
    uint32_t *members; /* indices into the list, highest top first */
    uint64_t *tops;    /* per item, when `members` was filled */
    uint32_t *sorted;  /* per item */
};

struct list_rules {
    uint64_t capacity_bytes;
    struct list_scratch scratch;
    uint64_t *blame; /* per id: how often the item broke the room rule */
    uint64_t steps;
};

void list_rules_init(struct list_rules *rules, const struct place_part *part,
                     uint64_t capacity_bytes, struct region *region);

static inline bool items_overlap(const struct item *a, const struct item *b)
{
    return a->first < b->end && b->first < a->end;
}

/* Lists are sorted by least offset; nearly sorted ones take linear time. */
void list_sort(struct item *items, uint32_t count);

/* Copies to `out` what remains of a sorted list when items[chosen] has been placed at its floor;
 * sorted. Gives the number of items. */
uint32_t list_after(const struct item *items, uint32_t count, uint32_t chosen, struct item *out);

/* The blocks of a clique lie on top of each other: each least offset plus the bytes of all items of
 * the clique from there on must stay within the capacity. */
bool list_has_room(struct list_rules *rules, const struct item *items, uint32_t count);

/* Raises least offsets as far as the rules in place_list.c go, and leaves the scratch memory as
 * list_lowest_top_beside and choices need it. False: the list has no placement. */
bool list_infer(struct list_rules *rules, struct item *items, uint32_t count);

/* After list_infer: the lowest top that another item can have among those that overlap this one.
 * UINT64_MAX: there is none. */
uint64_t list_lowest_top_beside(const struct list_rules *rules, const struct item *items,
                                uint32_t index);

#endif
