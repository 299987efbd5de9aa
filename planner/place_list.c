/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inference on lists of blocks that are still to be placed. Two rules raise least offsets:
 *
 * - Not lowest: where a block and some others of its clique do not fit above the block's least
 *   offset, the block lies on one of the others, so not below the lowest of their least tops.
 * - Support: in a placement that is pushed down, a block that does not lie on a placed one will
 *   lie on another block of the list.
 *
 * A round costs O(sum of the lives of the items) beside the first rule, which looks at a clique
 * only where it is tight; rounds go on until nothing moves, two or three as a rule.
 */
#include "place_list.h"

#include <string.h>

struct span {
    uint32_t first, end;
};

static uint64_t top_of(const struct item *item)
{
    return item->least + item->bytes;
}

static struct span span_of(const struct item *items, uint32_t count)
{
    struct span span = {.first = UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        span.first = items[i].first < span.first ? items[i].first : span.first;
        span.end = items[i].end > span.end ? items[i].end : span.end;
    }
    return span;
}

void list_rules_init(struct list_rules *rules, const struct place_part *part,
                     uint64_t capacity_bytes, struct region *region)
{
    uint32_t cliques = part->clique_count;
    struct list_scratch scratch = {.room = REGION_NEW(region, uint64_t, cliques),
                                   .load = REGION_NEW(region, uint64_t, cliques),
                                   .member_first = REGION_NEW(region, uint32_t, cliques + 1),
                                   .member_count = REGION_NEW(region, uint32_t, cliques),
                                   .tops = REGION_NEW(region, uint64_t, part->count),
                                   .sorted = REGION_NEW(region, uint32_t, part->count)};
    for (uint32_t b = 0; b < part->count; b++) {
        for (uint32_t c = part->first[b]; c < part->end[b]; c++) {
            scratch.member_first[c + 1]++;
        }
    }
    for (uint32_t c = 0; c < cliques; c++) {
        scratch.member_first[c + 1] += scratch.member_first[c];
    }
    scratch.members = REGION_NEW(region, uint32_t, scratch.member_first[cliques]);
    *rules = (struct list_rules){.capacity_bytes = capacity_bytes,
                                 .scratch = scratch,
                                 .blame = REGION_NEW(region, uint64_t, part->count)};
}

void list_sort(struct item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct item item = items[i];
        uint32_t at = i;
        while (at > 0 && items[at - 1].least > item.least) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = item;
    }
}

/* Merges two runs that are sorted in themselves: the items that the placed one raises to its top,
 * and all others. */
uint32_t list_after(const struct item *items, uint32_t count, uint32_t chosen, struct item *out)
{
    const struct item placed = items[chosen];
    const uint64_t top = top_of(&placed);
    uint32_t used = 0;
    uint32_t raised = 0;
    uint32_t other = 0;
    for (;;) {
        while (raised < count && items[raised].least < top &&
               (raised == chosen || !items_overlap(&items[raised], &placed))) {
            raised++;
        }
        while (other < count && items[other].least < top && items_overlap(&items[other], &placed)) {
            other++;
        }
        bool more_raised = raised < count && items[raised].least < top;
        if (other < count && (items[other].least < top || !more_raised)) {
            out[used] = items[other++];
        } else if (more_raised) {
            out[used] = items[raised++];
            out[used].least = top;
        } else {
            return used;
        }
        if (out[used].floor < top && items_overlap(&out[used], &placed)) {
            out[used].floor = top;
        }
        used++;
    }
}

bool list_has_room(struct list_rules *rules, const struct item *items, uint32_t count)
{
    uint64_t *room = rules->scratch.room;
    struct span span = span_of(items, count);
    if (count == 0) {
        return true;
    }
    memset(room + span.first, 0, (span.end - span.first) * sizeof(*room));
    rules->steps += span.end - span.first;
    for (uint32_t i = count; i-- > 0;) {
        const struct item *item = &items[i];
        uint64_t most = 0;
        for (uint32_t c = item->first; c < item->end; c++) {
            room[c] += item->bytes;
            most = room[c] > most ? room[c] : most;
        }
        rules->steps += item->end - item->first;
        if (item->least > rules->capacity_bytes || most > rules->capacity_bytes - item->least) {
            rules->blame[item->id]++;
            return false;
        }
    }
    return true;
}

/* Lists the items of every clique, highest least top first, and sums them up. */
static void cliques_fill(struct list_rules *rules, const struct item *items, uint32_t count,
                         struct span span)
{
    struct list_scratch *scratch = &rules->scratch;
    size_t length = span.end - span.first;
    memset(scratch->room + span.first, 0, length * sizeof(*scratch->room));
    memset(scratch->member_count + span.first, 0, length * sizeof(*scratch->member_count));
    uint32_t *sorted = scratch->sorted;
    for (uint32_t i = 0; i < count; i++) {
        scratch->tops[i] = top_of(&items[i]);
        uint32_t at = i;
        while (at > 0 && scratch->tops[sorted[at - 1]] < scratch->tops[i]) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct item *item = &items[sorted[i]];
        for (uint32_t c = item->first; c < item->end; c++) {
            scratch->members[scratch->member_first[c] + scratch->member_count[c]++] = sorted[i];
            scratch->room[c] += item->bytes;
        }
        rules->steps += 4 * (uint64_t)(item->end - item->first);
    }
    /* Backwards, so that the lowest least offset is what stays. */
    for (uint32_t i = count; i-- > 0;) {
        for (uint32_t c = items[i].first; c < items[i].end; c++) {
            scratch->load[c] = items[i].least + scratch->room[c];
        }
    }
}

/* The rule "not lowest". The others are taken from the highest top down, so that the last one
 * needed gives the strongest bound. */
static bool lift_in_clique(struct list_rules *rules, struct item *items, uint32_t clique)
{
    const struct list_scratch *scratch = &rules->scratch;
    const uint32_t *members = scratch->members + scratch->member_first[clique];
    const uint32_t count = scratch->member_count[clique];
    bool lifted = false;
    for (uint32_t m = 0; m < count; m++) {
        struct item *item = &items[members[m]];
        if (item->least + scratch->room[clique] <= rules->capacity_bytes) {
            continue;
        }
        uint64_t sum = top_of(item);
        uint32_t k = 0;
        for (; k < count && sum <= rules->capacity_bytes; k++) {
            sum += members[k] == members[m] ? 0 : items[members[k]].bytes;
        }
        rules->steps += k;
        /* Not from the items themselves: tops that were raised since are out of order. */
        uint64_t bound = k == 0 ? 0 : scratch->tops[members[k - 1]];
        if (sum > rules->capacity_bytes && item->least < bound) {
            item->least = bound;
            lifted = true;
        }
    }
    return lifted;
}

uint64_t list_lowest_top_beside(const struct list_rules *rules, const struct item *items,
                                uint32_t index)
{
    const struct list_scratch *scratch = &rules->scratch;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t c = items[index].first; c < items[index].end; c++) {
        const uint32_t *members = scratch->members + scratch->member_first[c];
        uint32_t last = scratch->member_count[c] - 1;
        if (members[last] == index) {
            if (last == 0) {
                continue;
            }
            last--;
        }
        uint64_t top = scratch->tops[members[last]];
        lowest = top < lowest ? top : lowest;
    }
    return lowest;
}

bool list_infer(struct list_rules *rules, struct item *items, uint32_t count)
{
    const struct span span = span_of(items, count);
    for (;;) {
        cliques_fill(rules, items, count, span);
        bool lifted = false;
        for (uint32_t c = span.first; c < span.end; c++) {
            lifted = lift_in_clique(rules, items, c) || lifted;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (items[i].least == items[i].floor) {
                continue;
            }
            uint64_t lowest = list_lowest_top_beside(rules, items, i);
            if (items[i].least < lowest) {
                items[i].least = lowest;
                lifted = true;
            }
        }
        if (!lifted) {
            return true;
        }
        list_sort(items, count);
        if (!list_has_room(rules, items, count)) {
            return false;
        }
    }
}
