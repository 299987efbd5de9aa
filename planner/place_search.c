/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Exhaustive search for a placement below a capacity.
 *
 * Any placement can be pushed down until every block lies on the floor or on another one, so blocks
 * are placed from low to high, each on the highest top among the placed blocks that it overlaps in
 * time. A node is a list of blocks that are still to be placed, each with a proven least offset. It
 * is pruned by what must hold for the placement whose offsets have the smallest sum:
 *
 * - Room: the blocks of one clique lie on top of each other. Sorted by least offset, each offset
 *   plus the bytes of all blocks from there on is within the capacity (the bound of one machine
 *   with release dates).
 * - Order: offsets never go down along the sequence, and at one offset ranks go up.
 * - Dominance: a block is not placed at an offset under which another one would fit whole.
 * - Twins: equal blocks are placed in the order of their ranks.
 * - Independence: lists that share no time are solved one after the other; if one has no solution,
 *   the others are not tried in other ways.
 * - Memory: a list that failed before is not searched again (a table of 64-bit hashes).
 *
 * A node costs O(sum of the lives of its blocks, in cliques). The order in which blocks are tried
 * decides between milliseconds and hours, and no order is good for all inputs: several take turns,
 * with a growing limit of nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "place_part.h"

/* The lists of one path take COUNT_MAX^2 / 2 items. */
#define COUNT_MAX  1024U
#define TABLE_BITS 18U

struct item {
    uint64_t least; /* lowest offset possible */
    uint64_t bytes;
    uint32_t first, end;
    uint32_t rank;
};

struct search {
    uint64_t capacity_bytes;
    uint64_t unit_bytes;  /* divides all sizes */
    struct item *stack;   /* lists of the current path, one after the other */
    uint64_t *room;       /* per clique: bytes of the items seen so far */
    uint32_t *reach;      /* per clique: scratch */
    uint64_t *offsets;    /* per rank */
    bool *is_placed;      /* per rank */
    const uint32_t *twin; /* per rank: the rank of an equal block just before; UINT32_MAX: none */
    uint64_t *failed;     /* hashes of lists without a solution */
    uint64_t steps, step_limit;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15U;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93U;
    return x ^ (x >> 32);
}

static uint64_t list_hash(const struct item *items, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash += mix(items[i].least * 0x2545f4914f6cdd1dU + items[i].rank);
    }
    return hash | 1U;
}

/* The room rule for all cliques. Items are sorted by least offset, ascending. */
static bool has_room(struct search *search, const struct item *items, uint32_t count)
{
    uint64_t *room = search->room;
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;
    for (uint32_t i = 0; i < count; i++) {
        low = items[i].first < low ? items[i].first : low;
        high = items[i].end > high ? items[i].end : high;
    }
    memset(room + low, 0, (high - low) * sizeof(*room));
    search->steps += high - low;
    for (uint32_t i = count; i-- > 0;) {
        const struct item *item = &items[i];
        if (item->least + item->bytes > search->capacity_bytes) {
            return false;
        }
        uint64_t limit = search->capacity_bytes - item->least;
        uint64_t most = 0;
        for (uint32_t c = item->first; c < item->end; c++) {
            room[c] += item->bytes;
            most = room[c] > most ? room[c] : most;
        }
        search->steps += item->end - item->first;
        if (most > limit) {
            return false;
        }
    }
    return true;
}

/* Items of `items` that remain when items[chosen] has been placed; sorted by least offset. */
static uint32_t list_after(const struct search *search, const struct item *items, uint32_t count,
                           uint32_t chosen, struct item *out)
{
    const struct item placed = items[chosen];
    const uint64_t floor = placed.least;
    const uint64_t top = floor + placed.bytes;
    uint32_t used = 0;
    /* The four groups are sorted in themselves: at the floor, just above it (their turn at the
     * floor has passed), raised to the top, and untouched. */
    for (int delayed = 0; delayed < 2; delayed++) {
        for (uint32_t i = 0; i < count && items[i].least <= floor; i++) {
            const struct item *item = &items[i];
            bool overlaps = item->first < placed.end && placed.first < item->end;
            if (i != chosen && !overlaps && (item->rank < placed.rank) == (delayed != 0)) {
                out[used] = *item;
                out[used++].least = delayed != 0 ? floor + search->unit_bytes : floor;
            }
        }
    }
    uint32_t raised = 0;
    uint32_t next = 0;
    while (next < count && items[next].least <= floor) {
        next++;
    }
    for (;;) {
        while (raised < count && items[raised].least < top &&
               (raised == chosen || items[raised].first >= placed.end ||
                placed.first >= items[raised].end)) {
            raised++;
        }
        bool more_raised = raised < count && items[raised].least < top;
        while (next < count && items[next].least < top && items[next].first < placed.end &&
               placed.first < items[next].end) {
            next++;
        }
        bool more_next = next < count;
        if (more_next && (items[next].least < top || !more_raised)) {
            out[used++] = items[next++];
        } else if (more_raised) {
            out[used] = items[raised++];
            out[used++].least = top;
        } else {
            return used;
        }
    }
}

/* Sorts the items into groups that share no time with each other, each sorted as before. Gives the
 * number of groups; ends[g] is where group g ends. `ends` has room for `count`. */
static uint32_t split(struct search *search, const struct item *items, uint32_t count,
                      struct item *out, uint32_t *ends)
{
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;
    for (uint32_t i = 0; i < count; i++) {
        low = items[i].first < low ? items[i].first : low;
        high = items[i].end > high ? items[i].end : high;
    }
    uint32_t *reach = search->reach;
    memset(reach + low, 0, (high - low) * sizeof(*reach));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *slot = &reach[items[i].first];
        *slot = items[i].end > *slot ? items[i].end : *slot;
    }
    uint32_t groups = 0;
    uint32_t end = low;
    for (uint32_t c = low; c < high; c++) {
        if (reach[c] != 0 && c >= end) {
            ends[groups++] = 0;
        }
        end = reach[c] > end ? reach[c] : end;
        reach[c] = groups - 1;
    }
    if (groups == 1) {
        return 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        ends[reach[items[i].first]]++;
    }
    uint32_t sum = 0;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t size = ends[g];
        ends[g] = sum;
        sum += size;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[ends[reach[items[i].first]]++] = items[i];
    }
    return groups;
}

static enum place_answer solve(struct search *search, struct item *items, uint32_t count,
                               uint32_t *numbers);

/* Items that may come next, as indices into `items`, by rank. */
static uint32_t candidates_of(const struct search *search, const struct item *items, uint32_t count,
                              uint32_t *out)
{
    uint64_t lowest_top = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t top = items[i].least + items[i].bytes;
        lowest_top = top < lowest_top ? top : lowest_top;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < count && items[i].least < lowest_top; i++) {
        uint32_t twin = search->twin[items[i].rank];
        if (twin != UINT32_MAX && !search->is_placed[twin]) {
            continue;
        }
        uint32_t at = used++;
        while (at > 0 && items[out[at - 1]].rank > items[i].rank) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = i;
    }
    return used;
}

/* A list that is one group and has room. */
static enum place_answer branch(struct search *search, struct item *items, uint32_t count,
                                uint32_t *numbers)
{
    uint32_t candidate_count = candidates_of(search, items, count, numbers);
    for (uint32_t i = 0; i < candidate_count; i++) {
        const struct item *item = &items[numbers[i]];
        search->steps += count;
        uint32_t left = list_after(search, items, count, numbers[i], items + count);
        if (left > 0 && !has_room(search, items + count, left)) {
            continue;
        }
        search->offsets[item->rank] = item->least;
        search->is_placed[item->rank] = true;
        enum place_answer answer = solve(search, items + count, left, numbers + candidate_count);
        search->is_placed[item->rank] = false;
        if (answer != PLACE_IMPOSSIBLE) {
            return answer;
        }
    }
    return PLACE_IMPOSSIBLE;
}

/* A list that has room. What lies behind it on the stack, and `numbers`, is free to use. */
static enum place_answer solve(struct search *search, struct item *items, uint32_t count,
                               uint32_t *numbers)
{
    if (count == 0) {
        return PLACE_FOUND;
    }
    search->steps += PLACE_STEPS_PER_WORK;
    if (search->steps > search->step_limit) {
        return PLACE_GAVE_UP;
    }
    uint64_t hash = list_hash(items, count);
    uint64_t *slot = &search->failed[hash >> (64 - TABLE_BITS)];
    if (*slot == hash) {
        return PLACE_IMPOSSIBLE;
    }
    uint32_t groups = split(search, items, count, items + count, numbers);
    enum place_answer answer = PLACE_FOUND;
    if (groups == 1) {
        answer = branch(search, items, count, numbers);
    } else {
        memcpy(items, items + count, count * sizeof(*items));
        /* From the last: what a group needs of the stack lies behind it. */
        for (uint32_t g = groups; g-- > 0 && answer == PLACE_FOUND;) {
            uint32_t begin = g == 0 ? 0 : numbers[g - 1];
            answer = solve(search, items + begin, numbers[g] - begin, numbers + groups);
        }
    }
    if (answer == PLACE_IMPOSSIBLE) {
        *slot = hash;
    }
    return answer;
}

/* Which blocks are tried first: up to three keys, each descending. */
enum key { KEY_PRESSURE, KEY_LIFE, KEY_AREA, KEY_BYTES };
#define KEY_COUNT 3
static const enum key rankings[][KEY_COUNT] = {
    {KEY_LIFE, KEY_AREA, KEY_PRESSURE},  {KEY_PRESSURE, KEY_AREA, KEY_LIFE},
    {KEY_PRESSURE, KEY_LIFE, KEY_AREA},  {KEY_AREA, KEY_BYTES, KEY_PRESSURE},
    {KEY_BYTES, KEY_LIFE, KEY_PRESSURE},
};
#define RANKING_COUNT (sizeof(rankings) / sizeof(rankings[0]))

struct ranked {
    uint64_t keys[KEY_COUNT];
    uint32_t first, end, id;
    uint64_t bytes;
};

static int ranked_compare(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    for (int k = 0; k < KEY_COUNT; k++) {
        if (a->keys[k] != b->keys[k]) {
            return a->keys[k] > b->keys[k] ? -1 : 1;
        }
    }
    /* Twins lie next to each other. */
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

static uint64_t key_of(const struct place_part *part, uint32_t b, enum key key)
{
    uint64_t life = part->end[b] - part->first[b];
    uint64_t pressure = 0;
    switch (key) {
    case KEY_LIFE:
        return life;
    case KEY_BYTES:
        return part->bytes[b];
    case KEY_AREA:
        return part->bytes[b] > UINT64_MAX / life ? UINT64_MAX : part->bytes[b] * life;
    case KEY_PRESSURE:
    default:
        for (uint32_t c = part->first[b]; c < part->end[b]; c++) {
            pressure = part->live_bytes[c] > pressure ? part->live_bytes[c] : pressure;
        }
        return pressure;
    }
}

/* Fills the first list of the stack, in the order of the ranking; `ranked` gives the ids. */
static void rank_blocks(struct search *search, const struct place_part *part,
                        const enum key *ranking, struct ranked *ranked, uint32_t *twin)
{
    for (uint32_t b = 0; b < part->count; b++) {
        ranked[b] = (struct ranked){
            .first = part->first[b], .end = part->end[b], .id = b, .bytes = part->bytes[b]};
        for (int k = 0; k < KEY_COUNT; k++) {
            ranked[b].keys[k] = key_of(part, b, ranking[k]);
        }
    }
    qsort(ranked, part->count, sizeof(*ranked), ranked_compare);
    for (uint32_t r = 0; r < part->count; r++) {
        search->stack[r] = (struct item){
            .bytes = ranked[r].bytes, .first = ranked[r].first, .end = ranked[r].end, .rank = r};
        bool is_twin = r > 0 && ranked[r].bytes == ranked[r - 1].bytes &&
                       ranked[r].first == ranked[r - 1].first && ranked[r].end == ranked[r - 1].end;
        twin[r] = is_twin ? r - 1 : UINT32_MAX;
        search->is_placed[r] = false;
    }
    memset(search->failed, 0, sizeof(*search->failed) << TABLE_BITS);
}

static uint64_t common_divisor(const uint64_t *values, uint32_t count)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other = values[i];
        while (other != 0) {
            uint64_t rest = divisor % other;
            divisor = other;
            other = rest;
        }
    }
    return divisor;
}

enum place_answer place_search(const struct place_part *part, uint64_t capacity_bytes,
                               struct place_work *io_work, struct region *region, uint64_t *offsets)
{
    const uint32_t count = part->count;
    if (part->peak_bytes > capacity_bytes) {
        return PLACE_IMPOSSIBLE;
    }
    if (count > COUNT_MAX) {
        return PLACE_GAVE_UP;
    }
    uint32_t *twin = REGION_NEW(region, uint32_t, count);
    struct ranked *ranked = REGION_NEW(region, struct ranked, count);
    struct search search = {.capacity_bytes = capacity_bytes,
                            .unit_bytes = common_divisor(part->bytes, count),
                            .room = REGION_NEW(region, uint64_t, part->clique_count),
                            .reach = REGION_NEW(region, uint32_t, part->clique_count),
                            .offsets = REGION_NEW(region, uint64_t, count),
                            .is_placed = REGION_NEW(region, bool, count),
                            .twin = twin,
                            .failed = REGION_NEW(region, uint64_t, (size_t)1 << TABLE_BITS)};
    size_t path = ((size_t)count + 2) * (count + 2) / 2;
    search.stack = REGION_NEW(region, struct item, path + count);
    uint32_t *numbers = REGION_NEW(region, uint32_t, path + count);
    enum place_answer answer = PLACE_GAVE_UP;
    uint64_t turn_limit = 512;
    for (uint32_t turn = 0; answer == PLACE_GAVE_UP && io_work->spent < io_work->limit; turn++) {
        rank_blocks(&search, part, rankings[turn % RANKING_COUNT], ranked, twin);
        uint64_t left = io_work->limit - io_work->spent;
        search.steps = 0;
        search.step_limit = (left < turn_limit ? left : turn_limit) * PLACE_STEPS_PER_WORK;
        answer = solve(&search, search.stack, count, numbers);
        io_work->spent += (search.steps + PLACE_STEPS_PER_WORK - 1) / PLACE_STEPS_PER_WORK;
        turn_limit += turn % RANKING_COUNT == RANKING_COUNT - 1 ? turn_limit : 0;
    }
    for (uint32_t r = 0; answer == PLACE_FOUND && r < count; r++) {
        offsets[ranked[r].id] = search.offsets[r];
    }
    return answer;
}
