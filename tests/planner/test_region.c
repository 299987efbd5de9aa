/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "region.h"

#include "run_tests.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

START_TEST(gives_zeroed_memory_aligned_for_any_type)
{
    for (size_t count = 1; count < 100; count += 7) {
        unsigned char *bytes = region_alloc(region, count, 3);
        ck_assert_uint_eq((uintptr_t)bytes % alignof(max_align_t), 0);
        ck_assert(is_zero(bytes, 3 * count));
        memset(bytes, 0xAA, 3 * count);
    }
}
END_TEST

START_TEST(no_elements_have_a_place_of_their_own)
{
    char *one = REGION_NEW(region, char, 0), *two = REGION_NEW(region, char, 0);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_ne(one, two);
    ck_assert_ptr_nonnull(region_alloc(region, 5, 0));
}
END_TEST

START_TEST(what_was_given_stays_when_more_is_taken)
{
    enum { COUNT = 64, BYTES = 100000 }; /* several blocks' worth */
    unsigned char *taken[COUNT];
    for (int i = 0; i < COUNT; i++) {
        taken[i] = memset(region_alloc(region, BYTES, 1), i + 1, BYTES);
    }
    for (int i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(taken[i][0], (unsigned)i + 1U);
        ck_assert_uint_eq(taken[i][BYTES - 1], (unsigned)i + 1U);
    }
}
END_TEST

START_TEST(gives_more_than_a_block_at_once)
{
    size_t size = (size_t)5 << 20;
    unsigned char *bytes = region_alloc(region, size, 1);
    ck_assert(is_zero(bytes, size));
    bytes[size - 1] = 1;
    ck_assert(is_zero(region_alloc(region, 1, 1), 1));
}
END_TEST

START_TEST(copies_text)
{
    char text[] = "h0.ln1";
    char *copy = region_copy_text(region, text);
    text[0] = 'x';
    ck_assert_str_eq(copy, "h0.ln1");
    ck_assert_str_eq(region_copy_text(region, ""), "");
}
END_TEST

START_TEST(a_mark_is_where_memory_is_given_again)
{
    unsigned char *kept = memset(region_alloc(region, 10, 1), 7, 10);
    struct region_mark mark = region_mark(region);
    unsigned char *first = region_alloc(region, 100, 1);
    memset(first, 9, 100);
    region_reset(region, mark);
    unsigned char *again = region_alloc(region, 100, 1);
    ck_assert_ptr_eq(again, first);
    ck_assert(is_zero(again, 100));
    ck_assert_uint_eq(kept[9], 7);
}
END_TEST

START_TEST(a_mark_takes_back_whole_blocks)
{
    unsigned char *kept = memset(region_alloc(region, 10, 1), 7, 10);
    for (int round = 0; round < 50; round++) {
        struct region_mark mark = region_mark(region);
        for (int i = 0; i < 8; i++) {
            memset(region_alloc(region, (size_t)1 << 19, 1), 1, (size_t)1 << 19);
        }
        region_reset(region, mark);
    }
    ck_assert_uint_eq(kept[0], 7);
}
END_TEST

START_TEST(destroying_nothing_is_allowed)
{
    region_destroy(NULL);
}
END_TEST

START_TEST(out_of_memory_ends_the_program_with_4)
{
    (void)fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) != NULL) {
            (void)region_alloc(region, SIZE_MAX / 4, 8);
        }
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 4);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gives_zeroed_memory_aligned_for_any_type,
        no_elements_have_a_place_of_their_own,
        what_was_given_stays_when_more_is_taken,
        gives_more_than_a_block_at_once,
        copies_text,
        a_mark_is_where_memory_is_given_again,
        a_mark_takes_back_whole_blocks,
        destroying_nothing_is_allowed,
        out_of_memory_ends_the_program_with_4,
    };
    return RUN_TESTS("region", tests, set_up, tear_down);
}
