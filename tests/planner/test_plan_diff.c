/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plan_diff.h"

#include "plan_builder.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

static struct region *region;
static struct plan_builder *a, *b;
static struct plan_diff diff;

static void set_up(void)
{
    region = region_create();
    a = plan_builder_rich();
    b = plan_builder_rich();
}

static void tear_down(void)
{
    plan_builder_destroy(b);
    plan_builder_destroy(a);
    region_destroy(region);
}

static void build(void)
{
    plan_diff_build(&a->plan, &b->plan, region, &diff);
}

START_TEST(finds_equal_plans_the_same)
{
    build();
    ck_assert(diff.is_same && diff.is_same_model);
    ck_assert_uint_eq(diff.change_count, 0);
    ck_assert_uint_eq(diff.first_instruction, ATP_NONE);
}
END_TEST

START_TEST(names_a_number_of_the_header_first)
{
    b->plan.arena_bytes += 16;
    b->program[3].offset += 16;
    build();
    ck_assert(!diff.is_same && diff.is_same_model);
    ck_assert_str_eq(diff.first, "arena_bytes");
    ck_assert_uint_eq(diff.first_instruction, 3);
}
END_TEST

START_TEST(sees_a_mark_that_is_no_number)
{
    b->plan.time_limited = true;
    build();
    ck_assert_str_eq(diff.first, "time_limited");
}
END_TEST

START_TEST(lists_tensors_that_are_decided_otherwise)
{
    b->decisions[RICH_C] = ATP_DECISION_SWAP;
    b->decisions[RICH_B] = ATP_DECISION_KEEP;
    build();
    ck_assert_str_eq(diff.first, "tensors[3].decision");
    ck_assert_uint_eq(diff.change_count, 2);
    ck_assert_str_eq(diff.changes[0].name, "b");
    ck_assert_uint_eq(diff.changes[1].a, RICH_C);
}
END_TEST

START_TEST(names_the_instruction_where_programs_part)
{
    b->program[7].offset++;
    build();
    ck_assert_str_eq(diff.first, "program[7]");
    b->program[7].offset--;
    b->plan.instruction_count--;
    build();
    ck_assert_uint_eq(diff.first_instruction, b->plan.instruction_count);
    ck_assert(!diff.is_same);
}
END_TEST

START_TEST(matches_tensors_of_two_models_by_name)
{
    const char *d = b->tensors[RICH_D].name;
    free((void *)b->tensors[RICH_X].name);
    b->tensors[RICH_X].name = strdup("other.x");
    b->tensors[RICH_D].name = b->tensors[RICH_G].name;
    b->tensors[RICH_G].name = d;
    b->plan.fingerprint[0] ^= 1;
    build();
    ck_assert_str_eq(diff.first, "fingerprint");
    ck_assert_uint_eq(diff.change_count, 2);
    ck_assert_str_eq(diff.changes[0].name, "x");
    ck_assert_uint_eq(diff.changes[0].b, ATP_NONE);
    ck_assert_str_eq(diff.changes[1].name, "other.x");
    ck_assert_str_eq(diff.changes[1].layer, "other");
    ck_assert_uint_eq(diff.changes[1].a, ATP_NONE);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        finds_equal_plans_the_same,
        names_a_number_of_the_header_first,
        sees_a_mark_that_is_no_number,
        lists_tensors_that_are_decided_otherwise,
        names_the_instruction_where_programs_part,
        matches_tensors_of_two_models_by_name,
    };
    return RUN_TESTS("plan_diff", tests, set_up, tear_down);
}
