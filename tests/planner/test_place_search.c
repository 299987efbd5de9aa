/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>

#include "place_part.h"
#include "placements.h"
#include "region.h"
#include "run_tests.h"

static struct region *region;

static void setup(void)
{
    region = region_create();
}

static void teardown(void)
{
    region_destroy(region);
}

/* A part in which every unit of time is a clique: more cliques than needed do no harm. */
static struct place_part part_of(struct placement_problem problem, uint32_t times)
{
    uint32_t *first = REGION_NEW(region, uint32_t, problem.count);
    uint32_t *end = REGION_NEW(region, uint32_t, problem.count);
    uint64_t *bytes = REGION_NEW(region, uint64_t, problem.count);
    uint64_t *live = REGION_NEW(region, uint64_t, times);
    uint64_t peak = 0;
    for (uint32_t b = 0; b < problem.count; b++) {
        first[b] = problem.blocks[b].first;
        end[b] = problem.blocks[b].end;
        bytes[b] = problem.blocks[b].bytes;
        for (uint32_t t = first[b]; t < end[b]; t++) {
            live[t] += bytes[b];
            peak = live[t] > peak ? live[t] : peak;
        }
    }
    return (struct place_part){.count = problem.count,
                               .clique_count = times,
                               .first = first,
                               .end = end,
                               .bytes = bytes,
                               .live_bytes = live,
                               .peak_bytes = peak};
}

static enum place_answer search(const struct place_part *part, uint64_t capacity_bytes,
                                uint64_t limit, uint64_t *offsets)
{
    struct place_work work = {.limit = limit};
    return place_search(part, capacity_bytes, &work, region, offsets);
}

/* No block ends above the capacity, and no two overlap. */
static void assert_fits(const struct place_part *part, const uint64_t *offsets,
                        uint64_t capacity_bytes)
{
    for (uint32_t i = 0; i < part->count; i++) {
        ck_assert_uint_le(offsets[i] + part->bytes[i], capacity_bytes);
        for (uint32_t j = 0; j < i; j++) {
            bool share_time = part->first[i] < part->end[j] && part->first[j] < part->end[i];
            ck_assert(!share_time || offsets[i] >= offsets[j] + part->bytes[j] ||
                      offsets[j] >= offsets[i] + part->bytes[i]);
        }
    }
}

START_TEST(agrees_with_brute_force_on_both_sides_of_the_least_height)
{
    for (uint32_t seed = 0; seed < 400; seed++) {
        struct region_mark mark = region_mark(region);
        struct random random = {.state = seed};
        uint32_t count = 2 + random_below(&random, 6);
        uint32_t times = 4 + random_below(&random, 5);
        struct placement_problem problem =
            random_blocks(count, times, 1 + random_below(&random, 9), seed, region);
        struct place_part part = part_of(problem, times);
        uint64_t offsets[8];
        uint64_t least = least_height_by_brute_force(problem);
        ck_assert_int_eq(search(&part, least, 10000, offsets), PLACE_FOUND);
        assert_fits(&part, offsets, least);
        ck_assert_int_eq(search(&part, least - 1, 10000, offsets), PLACE_IMPOSSIBLE);
        region_reset(region, mark);
    }
}
END_TEST

START_TEST(proves_a_capacity_between_peak_and_least_height_impossible)
{
    struct place_block hard[] = {{5, 8, 5 << 8}, {1, 4, 3 << 8}, {6, 8, 6 << 8}, {2, 3, 6 << 8},
                                 {3, 6, 4 << 8}, {4, 6, 5 << 8}, {3, 5, 3 << 8}, {0, 4, 4 << 8}};
    struct place_part part = part_of((struct placement_problem){8, hard}, 8);
    uint64_t offsets[8];
    ck_assert_int_eq(search(&part, 14 << 8, 10000, offsets), PLACE_IMPOSSIBLE);
    ck_assert_int_eq(search(&part, (15 << 8) - 1, 10000, offsets), PLACE_IMPOSSIBLE);
    ck_assert_int_eq(search(&part, 15 << 8, 10000, offsets), PLACE_FOUND);
    assert_fits(&part, offsets, 15 << 8);
}
END_TEST

START_TEST(never_calls_a_tiling_impossible)
{
    uint32_t found = 0;
    for (uint32_t seed = 0; seed < 1500; seed++) {
        struct region_mark mark = region_mark(region);
        uint32_t times = 5 + seed % 37;
        struct placement_problem problem =
            perfect_tiling(8 + seed % 53, times, 48 << 8, seed, region);
        struct place_part part = part_of(problem, times);
        uint64_t offsets[60];
        enum place_answer answer = search(&part, 48 << 8, 2000, offsets);
        ck_assert_msg(answer != PLACE_IMPOSSIBLE, "seed %u", (unsigned)seed);
        if (answer == PLACE_FOUND) {
            assert_fits(&part, offsets, 48 << 8);
            found++;
        }
        region_reset(region, mark);
    }
    ck_assert_uint_ge(found, 1400);
}
END_TEST

START_TEST(gives_up_at_its_limit_and_leaves_the_offsets_alone)
{
    struct placement_problem problem = perfect_tiling(200, 100, 1 << 20, 3, region);
    struct place_part part = part_of(problem, 100);
    uint64_t offsets[200] = {[7] = 77};
    ck_assert_int_eq(search(&part, 1 << 20, 20, offsets), PLACE_GAVE_UP);
    ck_assert_uint_eq(offsets[7], 77);
}
END_TEST

START_TEST(places_equal_blocks_without_trying_their_orders)
{
    struct place_block blocks[30];
    for (uint32_t b = 0; b < 30; b++) {
        blocks[b] = (struct place_block){b / 10, b / 10 + 2, 256};
    }
    struct place_part part = part_of((struct placement_problem){30, blocks}, 4);
    uint64_t offsets[30];
    ck_assert_int_eq(search(&part, 20 << 8, 200, offsets), PLACE_FOUND);
    assert_fits(&part, offsets, 20 << 8);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        agrees_with_brute_force_on_both_sides_of_the_least_height,
        proves_a_capacity_between_peak_and_least_height_impossible,
        never_calls_a_tiling_impossible,
        gives_up_at_its_limit_and_leaves_the_offsets_alone,
        places_equal_blocks_without_trying_their_orders,
    };
    return RUN_TESTS("place_search", tests, setup, teardown);
}
