/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Greedy placement: blocks in some order, each into a gap between those placed before.
 *
 * Placed blocks lie in a list sorted by offset, cut into runs of up to RUN_MAX. A run knows the
 * time that its blocks cover and their highest top, so that a query walks upwards, skips runs that
 * cannot matter, and stops at the first gap. An attempt costs O(n * (n / RUN_MAX + k)), k being the
 * blocks looked at per query: those live at the same time below the gap and their neighbours in the
 * list. An attempt at 20,000 blocks with long lives takes some tenths of a second.
 *
 * No single order is good for all inputs, so several are tried. After them, orders learn: a block
 * that ended above the target moves ahead of the others in the next attempt, further each time.
 */
#include <stdlib.h>
#include <string.h>

#include "place_part.h"

#define RUN_MAX 64U

struct placed {
    uint64_t offset, top;
    uint32_t first, end;
};

struct run {
    uint64_t top;        /* highest of its blocks */
    uint32_t first, end; /* time covered by its blocks */
    uint32_t count;
    struct placed blocks[RUN_MAX];
};

struct shelf {
    struct run **runs; /* by offset; each but the first holds a block */
    uint32_t run_count;
    struct run *pool;
    uint32_t pool_used;
};

static void shelf_init(struct shelf *shelf, uint32_t count, struct region *region)
{
    /* Every split leaves both halves with RUN_MAX / 2 blocks or more. */
    uint32_t most = count / (RUN_MAX / 2) + 1;
    shelf->runs = REGION_NEW(region, struct run *, most);
    shelf->pool = REGION_NEW(region, struct run, most);
    shelf->runs[0] = &shelf->pool[0];
    shelf->runs[0]->first = UINT32_MAX;
    shelf->run_count = shelf->pool_used = 1;
}

static void run_summarize(struct run *run)
{
    run->top = 0;
    run->first = UINT32_MAX;
    run->end = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct placed *b = &run->blocks[i];
        run->top = b->top > run->top ? b->top : run->top;
        run->first = b->first < run->first ? b->first : run->first;
        run->end = b->end > run->end ? b->end : run->end;
    }
}

static void shelf_split(struct shelf *shelf, uint32_t at)
{
    struct run *low = shelf->runs[at];
    struct run *high = &shelf->pool[shelf->pool_used++];
    high->count = RUN_MAX / 2;
    low->count = RUN_MAX - high->count;
    memcpy(high->blocks, low->blocks + low->count, high->count * sizeof(high->blocks[0]));
    run_summarize(low);
    run_summarize(high);
    memmove(shelf->runs + at + 2, shelf->runs + at + 1,
            (shelf->run_count - at - 1) * sizeof(struct run *));
    shelf->runs[at + 1] = high;
    shelf->run_count++;
}

static void shelf_insert(struct shelf *shelf, struct placed block)
{
    uint32_t low = 0;
    uint32_t high = shelf->run_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (shelf->runs[middle]->blocks[0].offset <= block.offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (shelf->runs[low]->count == RUN_MAX) {
        shelf_split(shelf, low);
        if (shelf->runs[low + 1]->blocks[0].offset <= block.offset) {
            low++;
        }
    }
    struct run *run = shelf->runs[low];
    uint32_t i = run->count++;
    while (i > 0 && run->blocks[i - 1].offset > block.offset) {
        run->blocks[i] = run->blocks[i - 1];
        i--;
    }
    run->blocks[i] = block;
    run->top = block.top > run->top ? block.top : run->top;
    run->first = block.first < run->first ? block.first : run->first;
    run->end = block.end > run->end ? block.end : run->end;
}

/* The walk over gaps of one query: [cursor, ...) is free so far. */
struct walk {
    uint64_t bytes, cursor;
    uint64_t best_offset, best_gap; /* best_gap 0: no gap was large enough yet */
    uint32_t first, end;
    bool tight;
};

/* True when the query is answered. */
static bool walk_run(struct walk *walk, const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct placed *b = &run->blocks[i];
        if (b->first >= walk->end || b->end <= walk->first) {
            continue;
        }
        if (b->offset > walk->cursor && b->offset - walk->cursor >= walk->bytes) {
            uint64_t gap = b->offset - walk->cursor;
            if (walk->best_gap == 0 || gap < walk->best_gap) {
                walk->best_gap = gap;
                walk->best_offset = walk->cursor;
            }
            if (!walk->tight || gap == walk->bytes) {
                return true;
            }
        }
        walk->cursor = b->top > walk->cursor ? b->top : walk->cursor;
    }
    return false;
}

static uint64_t shelf_find(const struct shelf *shelf, struct walk *walk, uint64_t *io_steps)
{
    *io_steps += shelf->run_count;
    for (uint32_t r = 0; r < shelf->run_count; r++) {
        const struct run *run = shelf->runs[r];
        if (run->first >= walk->end || run->end <= walk->first || run->top <= walk->cursor) {
            continue;
        }
        *io_steps += run->count;
        if (walk_run(walk, run)) {
            break;
        }
    }
    return walk->best_gap != 0 ? walk->best_offset : walk->cursor;
}

uint64_t place_in_order(const struct place_part *part, const uint32_t *order, bool tight,
                        struct region *region, uint64_t *offsets, uint64_t *io_steps)
{
    struct region_mark mark = region_mark(region);
    struct shelf shelf;
    shelf_init(&shelf, part->count, region);
    uint64_t height = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t b = order[i];
        struct walk walk = {
            .bytes = part->bytes[b], .first = part->first[b], .end = part->end[b], .tight = tight};
        offsets[b] = shelf_find(&shelf, &walk, io_steps);
        struct placed placed = {.offset = offsets[b],
                                .top = offsets[b] + part->bytes[b],
                                .first = part->first[b],
                                .end = part->end[b]};
        height = placed.top > height ? placed.top : height;
        shelf_insert(&shelf, placed);
    }
    region_reset(region, mark);
    return height;
}

/* Descending by key, then second key, then ascending by id: a total order, so that qsort's result
 * is the same everywhere. */
struct rank {
    uint64_t blame, key, second;
    uint32_t id;
};

static int rank_compare(const void *left, const void *right)
{
    const struct rank *a = left;
    const struct rank *b = right;
    if (a->blame != b->blame) {
        return a->blame > b->blame ? -1 : 1;
    }
    if (a->key != b->key) {
        return a->key > b->key ? -1 : 1;
    }
    if (a->second != b->second) {
        return a->second > b->second ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

enum base_order {
    BY_BYTES,
    BY_AREA,
    BY_LIFE,
    BY_FIRST,
    BY_END,
    BY_PRESSURE, /* the fullest clique that the block lives in */
    BASE_ORDER_COUNT
};

static uint64_t saturated_product(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t pressure(const struct place_part *part, uint32_t b)
{
    uint64_t most = 0;
    for (uint32_t c = part->first[b]; c < part->end[b]; c++) {
        most = part->live_bytes[c] > most ? part->live_bytes[c] : most;
    }
    return most;
}

static void ranks_fill(const struct place_part *part, enum base_order base, struct rank *ranks)
{
    for (uint32_t b = 0; b < part->count; b++) {
        uint64_t life = part->end[b] - part->first[b];
        uint64_t bytes = part->bytes[b];
        struct rank rank = {.id = b, .second = saturated_product(bytes, life)};
        switch (base) {
        case BY_BYTES:
            rank.key = bytes;
            break;
        case BY_AREA:
            rank.key = rank.second;
            rank.second = bytes;
            break;
        case BY_LIFE:
            rank.key = life;
            break;
        case BY_FIRST:
            rank.key = UINT32_MAX - part->first[b];
            rank.second = life;
            break;
        case BY_END:
            rank.key = part->end[b];
            rank.second = life;
            break;
        case BY_PRESSURE:
        case BASE_ORDER_COUNT:
        default:
            rank.key = pressure(part, b);
            break;
        }
        ranks[b] = rank;
    }
}

/* The best placement so far and the buffers that attempts share. */
struct attempt {
    const struct place_part *part;
    struct region *region;
    struct rank *ranks;
    uint32_t *order;
    uint64_t *offsets; /* of the latest attempt */
    uint64_t *best_offsets;
    uint64_t best_height;
    uint64_t steps;
};

static uint64_t attempt_run(struct attempt *attempt, bool tight)
{
    uint32_t count = attempt->part->count;
    qsort(attempt->ranks, count, sizeof(attempt->ranks[0]), rank_compare);
    for (uint32_t i = 0; i < count; i++) {
        attempt->order[i] = attempt->ranks[i].id;
    }
    uint64_t height = place_in_order(attempt->part, attempt->order, tight, attempt->region,
                                     attempt->offsets, &attempt->steps);
    if (height < attempt->best_height) {
        attempt->best_height = height;
        memcpy(attempt->best_offsets, attempt->offsets, count * sizeof(attempt->offsets[0]));
    }
    return height;
}

/* Squeaky wheels: whatever ended above the target is placed earlier next time. */
static void blame_high_blocks(struct attempt *attempt, uint64_t target_bytes)
{
    for (uint32_t i = 0; i < attempt->part->count; i++) {
        struct rank *rank = &attempt->ranks[i];
        if (attempt->offsets[rank->id] + attempt->part->bytes[rank->id] > target_bytes) {
            rank->blame++;
        }
    }
}

static void improve(struct attempt *attempt, enum base_order base, bool tight,
                    uint64_t target_bytes, struct place_work *io_work)
{
    const uint32_t rounds = 32;
    ranks_fill(attempt->part, base, attempt->ranks);
    for (uint32_t i = 0; i < rounds && io_work->spent < io_work->limit; i++) {
        attempt->steps = 0;
        uint64_t height = attempt_run(attempt, tight);
        io_work->spent += 1 + attempt->steps / PLACE_STEPS_PER_WORK;
        if (height <= target_bytes) {
            return;
        }
        blame_high_blocks(attempt, target_bytes);
    }
}

/* More orders are not worth their time: many steps were taken and half a percent is missing. */
static bool is_enough(const struct attempt *attempt, uint64_t target_bytes)
{
    const uint64_t many_steps = UINT64_C(1) << 27;
    return attempt->best_height <= target_bytes ||
           (attempt->steps > many_steps &&
            attempt->best_height - target_bytes <= target_bytes / 200);
}

/* Search is the better way for few blocks, and none for many. */
static uint64_t share_of(uint64_t work, uint32_t count)
{
    if (count > PLACE_SEARCH_COUNT_MAX) {
        return work;
    }
    return count > 400 ? work / 2 : work / 8;
}

uint64_t place_greedy(const struct place_part *part, uint64_t target_bytes,
                      struct place_work *io_work, struct region *region, uint64_t *offsets)
{
    struct attempt attempt = {.part = part,
                              .region = region,
                              .ranks = REGION_NEW(region, struct rank, part->count),
                              .order = REGION_NEW(region, uint32_t, part->count),
                              .offsets = REGION_NEW(region, uint64_t, part->count),
                              .best_offsets = REGION_NEW(region, uint64_t, part->count),
                              .best_height = UINT64_MAX};
    for (int i = 0; i < 2 * BASE_ORDER_COUNT && !is_enough(&attempt, target_bytes); i++) {
        ranks_fill(part, (enum base_order)(i % BASE_ORDER_COUNT), attempt.ranks);
        (void)attempt_run(&attempt, i >= BASE_ORDER_COUNT);
    }
    uint64_t left = io_work->limit > io_work->spent ? io_work->limit - io_work->spent : 0;
    const uint64_t share = share_of(left, part->count);
    struct place_work work = {0};
    for (int i = 0; i < 2 * BASE_ORDER_COUNT && attempt.best_height > target_bytes; i++) {
        /* Each order gets a third of what is left: the first ones are the better ones. */
        work.limit = work.spent < share ? work.spent + (share - work.spent) / 3 : 0;
        improve(&attempt, (enum base_order)(i % BASE_ORDER_COUNT), i >= BASE_ORDER_COUNT,
                target_bytes, &work);
    }
    io_work->spent += work.spent;
    memcpy(offsets, attempt.best_offsets, part->count * sizeof(*offsets));
    return attempt.best_height;
}
