/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Exhaustive search for a placement below a capacity.
 *
 * Any placement can be pushed down until every block lies on the bottom or on another one; among
 * those it is enough to look for the one whose offsets have the smallest sum. Blocks are placed
 * from low to high in every clique. A node is a list of blocks that are still to be placed; it
 * picks a block under which no other one of the list fits, and has two branches: the block lies at
 * its floor, or it does not and another one will lie below it. The second branch is not a new node:
 * the list just knows more. Beside the inference in place_list.c:
 *
 * - Twins: equal blocks are placed in the order of their ranks.
 * - Independence: lists that share no time are solved one after the other; if one has no solution,
 *   the others are not tried in other ways.
 * - Memory: a list that failed before is not searched again. The table holds 64-bit hashes, so that
 *   a list is taken for another one with probability 2^-64 per look.
 *
 * A node costs O(sum of the lives of its blocks, in cliques). Which block is picked decides between
 * milliseconds and hours, and no way to pick is good for all inputs: several take turns, with a
 * limit that grows.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "place_list.h"
#include "place_part.h"

#define TABLE_BITS 18U

/* Who is picked among blocks at the same lowest offset; the rank decides what is left equal. */
enum pick { PICK_BY_RANK, PICK_TIGHTEST, PICK_MOST_BLAMED, PICK_BLAMED_AND_TIGHTEST };

struct search {
    struct list_rules rules;
    enum pick pick;
    uint64_t unit_bytes;  /* divides all sizes, and so all offsets */
    struct item *stack;   /* lists of the current path, one after the other */
    uint32_t *reach;      /* per clique: scratch */
    uint64_t *offsets;    /* per rank */
    bool *is_placed;      /* per rank */
    const uint32_t *twin; /* per rank: the rank of an equal block just before; UINT32_MAX: none */
    uint64_t *failed;     /* hashes of lists without a placement */
    uint64_t step_limit;
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
        hash += mix(mix(mix(items[i].floor) + items[i].least) + items[i].rank);
    }
    return mix(hash) | 1U;
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

static uint64_t highest_load(const struct search *search, const struct item *item)
{
    uint64_t most = 0;
    for (uint32_t c = item->first; c < item->end; c++) {
        uint64_t load = search->rules.scratch.load[c];
        most = load > most ? load : most;
    }
    return most;
}

static bool is_picked_before(const struct search *search, const struct item *a,
                             const struct item *b)
{
    if (a->least != b->least) {
        return a->least < b->least;
    }
    if (search->pick == PICK_MOST_BLAMED || search->pick == PICK_BLAMED_AND_TIGHTEST) {
        uint64_t a_blame = search->rules.blame[a->id];
        uint64_t b_blame = search->rules.blame[b->id];
        if (a_blame != b_blame) {
            return a_blame > b_blame;
        }
    }
    if (search->pick == PICK_TIGHTEST || search->pick == PICK_BLAMED_AND_TIGHTEST) {
        uint64_t a_load = highest_load(search, a);
        uint64_t b_load = highest_load(search, b);
        if (a_load != b_load) {
            return a_load > b_load;
        }
    }
    return a->rank < b->rank;
}

/* The lowest block of the list is always one that can be picked: the support rule has raised all
 * that have nothing to lie on, and nothing fits under it. */
static uint32_t choose(const struct search *search, const struct item *items, uint32_t count)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (best != UINT32_MAX && items[i].least > items[best].least) {
            break;
        }
        uint32_t twin = search->twin[items[i].rank];
        bool waits = twin != UINT32_MAX && !search->is_placed[twin];
        if (items[i].least == items[i].floor && !waits &&
            (best == UINT32_MAX || is_picked_before(search, &items[i], &items[best]))) {
            best = i;
        }
    }
    return best;
}

/* Says that a block, and with it all its twins, will not lie at its floor. */
static void lift_off_floor(const struct search *search, struct item *items, uint32_t count,
                           struct item lifted)
{
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = &items[i];
        if (item->bytes == lifted.bytes && item->first == lifted.first && item->end == lifted.end &&
            item->least == lifted.floor) {
            item->least += search->unit_bytes;
        }
    }
    list_sort(items, count);
}

/* A list that is one group and has room. */
static enum place_answer branch(struct search *search, struct item *items, uint32_t count,
                                uint32_t *numbers)
{
    struct list_rules *rules = &search->rules;
    struct item *rest = items + count;
    while (list_infer(rules, items, count)) {
        if (rules->steps > search->step_limit) {
            return PLACE_GAVE_UP;
        }
        uint32_t chosen = choose(search, items, count);
        assert(chosen != UINT32_MAX);
        const struct item item = items[chosen];
        rules->steps += count;
        uint32_t left = list_after(items, count, chosen, rest);
        if (list_has_room(rules, rest, left)) {
            search->offsets[item.rank] = item.least;
            search->is_placed[item.rank] = true;
            enum place_answer answer = solve(search, rest, left, numbers);
            search->is_placed[item.rank] = false;
            if (answer != PLACE_IMPOSSIBLE) {
                return answer;
            }
        }
        lift_off_floor(search, items, count, item);
        if (!list_has_room(rules, items, count)) {
            break;
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
    search->rules.steps += PLACE_STEPS_PER_WORK;
    if (search->rules.steps > search->step_limit) {
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

/* Ranks: up to three keys, each descending. */
enum key { KEY_PRESSURE, KEY_LIFE, KEY_AREA };
#define KEY_COUNT 3

struct turn {
    enum pick pick;
    enum key keys[KEY_COUNT];
};

/* Chosen by trial: on hard inputs few of them end soon, and not the same ones. */
static const struct turn turns[] = {
    {PICK_BY_RANK, {KEY_LIFE, KEY_AREA, KEY_PRESSURE}},
    {PICK_TIGHTEST, {KEY_LIFE, KEY_AREA, KEY_PRESSURE}},
    {PICK_BLAMED_AND_TIGHTEST, {KEY_LIFE, KEY_AREA, KEY_PRESSURE}},
    {PICK_BY_RANK, {KEY_PRESSURE, KEY_AREA, KEY_LIFE}},
    {PICK_MOST_BLAMED, {KEY_PRESSURE, KEY_AREA, KEY_LIFE}},
    {PICK_BY_RANK, {KEY_PRESSURE, KEY_LIFE, KEY_AREA}},
};
#define TURN_COUNT (sizeof(turns) / sizeof(turns[0]))

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

/* Fills the first list of the stack, in the order of the keys; `ranked` gives the ids. */
static void rank_blocks(struct search *search, const struct place_part *part, const enum key *keys,
                        struct ranked *ranked, uint32_t *twin)
{
    for (uint32_t b = 0; b < part->count; b++) {
        ranked[b] = (struct ranked){
            .first = part->first[b], .end = part->end[b], .id = b, .bytes = part->bytes[b]};
        for (int k = 0; k < KEY_COUNT; k++) {
            ranked[b].keys[k] = key_of(part, b, keys[k]);
        }
    }
    qsort(ranked, part->count, sizeof(*ranked), ranked_compare);
    for (uint32_t r = 0; r < part->count; r++) {
        search->stack[r] = (struct item){.bytes = ranked[r].bytes,
                                         .first = ranked[r].first,
                                         .end = ranked[r].end,
                                         .rank = r,
                                         .id = ranked[r].id};
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
    if (count > PLACE_SEARCH_COUNT_MAX) {
        return PLACE_GAVE_UP;
    }
    uint32_t *twin = REGION_NEW(region, uint32_t, count);
    struct ranked *ranked = REGION_NEW(region, struct ranked, count);
    size_t path = ((size_t)count + 2) * (count + 2) / 2 + count;
    struct search search = {.unit_bytes = common_divisor(part->bytes, count),
                            .stack = REGION_NEW(region, struct item, path),
                            .reach = REGION_NEW(region, uint32_t, part->clique_count),
                            .offsets = REGION_NEW(region, uint64_t, count),
                            .is_placed = REGION_NEW(region, bool, count),
                            .twin = twin,
                            .failed = REGION_NEW(region, uint64_t, (size_t)1 << TABLE_BITS)};
    list_rules_init(&search.rules, part, capacity_bytes, region);
    uint32_t *numbers = REGION_NEW(region, uint32_t, path);
    enum place_answer answer = PLACE_GAVE_UP;
    uint64_t turn_limit = 1024;
    for (uint32_t t = 0; answer == PLACE_GAVE_UP && io_work->spent < io_work->limit; t++) {
        search.pick = turns[t % TURN_COUNT].pick;
        rank_blocks(&search, part, turns[t % TURN_COUNT].keys, ranked, twin);
        uint64_t left = io_work->limit - io_work->spent;
        search.rules.steps = 0;
        search.step_limit = (left < turn_limit ? left : turn_limit) * PLACE_STEPS_PER_WORK;
        answer = solve(&search, search.stack, count, numbers);
        io_work->spent += search.rules.steps / PLACE_STEPS_PER_WORK + 1;
        turn_limit *= t % TURN_COUNT == TURN_COUNT - 1 ? 2 : 1;
    }
    for (uint32_t r = 0; answer == PLACE_FOUND && r < count; r++) {
        offsets[ranked[r].id] = search.offsets[r];
    }
    return answer;
}
