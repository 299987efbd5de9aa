/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Placement of blocks: cuts the problem into parts that share no time, replaces time by cliques
 * (place_part.h), and solves part by part, fast ways first. O(n log n) beside the stages it calls.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "place_part.h"

/* One end of a block's life. At one time all ends come before all starts. */
struct event {
    uint32_t time, id;
    bool starts;
};

static int event_compare(const void *left, const void *right)
{
    const struct event *a = left;
    const struct event *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    if (a->starts != b->starts) {
        return a->starts ? 1 : -1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool is_empty(const struct place_block *block)
{
    return block->bytes == 0 || block->first >= block->end;
}

static struct event *events_of(const struct place_block *blocks, uint32_t count,
                               struct region *region, uint32_t *out_count)
{
    struct event *events = REGION_NEW(region, struct event, 2 * (size_t)count);
    uint32_t used = 0;
    for (uint32_t b = 0; b < count; b++) {
        if (!is_empty(&blocks[b])) {
            events[used++] = (struct event){.time = blocks[b].first, .id = b, .starts = true};
            events[used++] = (struct event){.time = blocks[b].end, .id = b, .starts = false};
        }
    }
    qsort(events, used, sizeof(*events), event_compare);
    *out_count = used;
    return events;
}

/* A part with the ids of its blocks in the whole problem. */
struct piece {
    struct place_part part;
    uint32_t *ids;
    uint64_t *offsets;
};

/* Makes the part whose life is told by events[0 .. 2 * count). */
static void piece_init(struct piece *piece, const struct event *events, uint32_t count,
                       const struct place_block *blocks, uint32_t *local, struct region *region)
{
    uint32_t *first = REGION_NEW(region, uint32_t, count);
    uint32_t *end = REGION_NEW(region, uint32_t, count);
    uint64_t *bytes = REGION_NEW(region, uint64_t, count);
    uint64_t *live = REGION_NEW(region, uint64_t, count);
    piece->ids = REGION_NEW(region, uint32_t, count);
    piece->offsets = REGION_NEW(region, uint64_t, count);
    uint32_t used = 0;
    uint32_t clique = 0;
    bool grew = false;
    uint64_t now = 0;
    uint64_t peak = 0;
    for (uint32_t e = 0; e < 2 * count; e++) {
        uint32_t id = events[e].id;
        if (events[e].starts) {
            local[id] = used;
            piece->ids[used] = id;
            bytes[used] = blocks[id].bytes;
            first[used++] = clique;
            now += blocks[id].bytes;
            grew = true;
            continue;
        }
        if (grew) {
            live[clique++] = now;
            peak = now > peak ? now : peak;
            grew = false;
        }
        end[local[id]] = clique;
        now -= blocks[id].bytes;
    }
    piece->part = (struct place_part){.count = count,
                                      .clique_count = clique,
                                      .first = first,
                                      .end = end,
                                      .bytes = bytes,
                                      .live_bytes = live,
                                      .peak_bytes = peak};
}

static struct piece *pieces_of(const struct place_block *blocks, uint32_t count,
                               struct region *region, uint32_t *out_count)
{
    uint32_t event_count;
    struct event *events = events_of(blocks, count, region, &event_count);
    struct piece *pieces = REGION_NEW(region, struct piece, count);
    uint32_t *local = REGION_NEW(region, uint32_t, count);
    uint32_t piece_count = 0;
    uint32_t live = 0;
    uint32_t begin = 0;
    for (uint32_t e = 0; e < event_count; e++) {
        live = events[e].starts ? live + 1 : live - 1;
        if (live == 0) {
            uint32_t size = (e + 1 - begin) / 2;
            piece_init(&pieces[piece_count++], events + begin, size, blocks, local, region);
            begin = e + 1;
        }
    }
    *out_count = piece_count;
    return pieces;
}

/* Searches between what is proven impossible and what was found, halving the distance; a target
 * that the search gave up on counts as impossible from then on. */
static uint64_t lower(const struct piece *piece, uint64_t height, uint64_t target_bytes,
                      struct place_work *io_work, struct region *region)
{
    uint64_t goal = target_bytes;
    while (height > target_bytes && goal < height && io_work->spent < io_work->limit) {
        struct place_work share = {.limit = (io_work->limit - io_work->spent + 1) / 2};
        struct region_mark mark = region_mark(region);
        enum place_answer answer = place_search(&piece->part, goal, &share, region, piece->offsets);
        region_reset(region, mark);
        io_work->spent += share.spent;
        if (answer == PLACE_FOUND) {
            height = 0;
            for (uint32_t b = 0; b < piece->part.count; b++) {
                uint64_t top = piece->offsets[b] + piece->part.bytes[b];
                height = top > height ? top : height;
            }
        } else {
            target_bytes = goal + 1;
        }
        goal = target_bytes + (height - target_bytes) / 2;
    }
    return height;
}

void place_offsets(const struct place_block *blocks, uint32_t count, uint64_t capacity_bytes,
                   uint64_t work_limit, struct region *region, struct place_result *out_result)
{
    *out_result = (struct place_result){.offsets = REGION_NEW(region, uint64_t, count)};
    struct region_mark mark = region_mark(region);
    uint32_t piece_count;
    struct piece *pieces = pieces_of(blocks, count, region, &piece_count);
    for (uint32_t i = 0; i < piece_count; i++) {
        uint64_t peak = pieces[i].part.peak_bytes;
        out_result->peak_bytes = peak > out_result->peak_bytes ? peak : out_result->peak_bytes;
    }
    uint64_t target =
        capacity_bytes > out_result->peak_bytes ? capacity_bytes : out_result->peak_bytes;
    struct place_work work = {.limit = work_limit};
    for (uint32_t i = 0; i < piece_count; i++) {
        struct piece *piece = &pieces[i];
        uint64_t height = place_greedy(&piece->part, target, &work, region, piece->offsets);
        height = lower(piece, height, target, &work, region);
        out_result->height_bytes =
            height > out_result->height_bytes ? height : out_result->height_bytes;
        for (uint32_t b = 0; b < piece->part.count; b++) {
            out_result->offsets[piece->ids[b]] = piece->offsets[b];
        }
    }
    out_result->fits = out_result->height_bytes <= capacity_bytes;
    out_result->work = work.spent;
    region_reset(region, mark);
}
