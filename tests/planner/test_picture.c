/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "picture.h"

#include "plan_builder.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

/* The picture as text, to be freed. */
static char *draw(void (*picture)(const struct atp_plan *, const struct picture_style *,
                                  struct region *, FILE *),
                  const struct atp_plan *plan, const struct picture_style *style)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    picture(plan, style, region, out);
    (void)fclose(out);
    return text;
}

static uint32_t count_of(const char *text, char letter)
{
    uint32_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == letter;
    }
    return count;
}

/* `low` lies below `high`, which dies when its place is needed. */
static struct plan_builder *two_tensors(void)
{
    struct plan_builder *b = plan_builder_create("two");
    uint32_t low = plan_builder_tensor(b, "low", 100), high = plan_builder_tensor(b, "high", 100);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(low, high));
    uint32_t g = plan_builder_step(b, ATP_PHASE_BACKWARD, "g", IDS(low), NO_IDS);
    plan_builder_add(b, ATP_OP_ALLOC, low, 0);
    plan_builder_add(b, ATP_OP_ALLOC, high, 100);
    plan_builder_add(b, ATP_OP_RUN, f, 0);
    plan_builder_add(b, ATP_OP_FREE, high, 0);
    plan_builder_add(b, ATP_OP_RUN, g, 0);
    plan_builder_add(b, ATP_OP_FREE, low, 0);
    plan_builder_seal(b);
    return b;
}

START_TEST(draws_tensors_where_and_when_they_live)
{
    struct plan_builder *b = two_tensors();
    const struct picture_style style = {.width = 80};
    char *text = draw(picture_arena, &b->plan, &style);
    ck_assert_ptr_nonnull(strstr(text, "     187 B |hhhhhhhh        \n"));
    ck_assert_ptr_nonnull(strstr(text, "     100 B |hhhhhhhh        \n"));
    ck_assert_ptr_nonnull(strstr(text, "       0 B |llllllllllllllll\n"));
    ck_assert_ptr_nonnull(strstr(text, "     phase |ffffffffbbbbbbbb\n"));
    ck_assert_ptr_nonnull(strstr(text, "l = low, 100 B, keep; h = high, 100 B, keep"));
    free(text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(draws_the_height_of_the_live_bytes)
{
    struct plan_builder *b = two_tensors();
    const struct picture_style style = {.width = 80};
    char *text = draw(picture_memory, &b->plan, &style);
    ck_assert_ptr_nonnull(strstr(text, "     200 B |########        \n"));
    ck_assert_ptr_nonnull(strstr(text, "     125 B |########        \n"));
    ck_assert_ptr_nonnull(strstr(text, "     100 B |################\n"));
    ck_assert_ptr_nonnull(strstr(text, "      25 B |################\n"));
    ck_assert_ptr_null(strstr(text, "rerun |"));
    ck_assert_ptr_null(strstr(text, "evict |"));
    free(text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(shows_reruns_and_copies_in_lanes)
{
    struct plan_builder *b = plan_builder_rich();
    const struct picture_style style = {.width = 80};
    char *text = draw(picture_memory, &b->plan, &style);
    ck_assert_ptr_nonnull(strstr(text, "rerun |"));
    ck_assert_ptr_nonnull(strstr(text, "evict |"));
    ck_assert_ptr_nonnull(strstr(text, "restore |"));
    free(text);
    text = draw(picture_arena, &b->plan, &style);
    ck_assert_uint_gt(count_of(text, '*'), 1);
    ck_assert_ptr_nonnull(strstr(text, "* = workspace"));
    free(text);
    plan_builder_destroy(b);
}
END_TEST

/* A plan of many steps and tensors, each tensor swapped or kept by its number. */
static struct plan_builder *long_plan(uint32_t count)
{
    struct plan_builder *b = plan_builder_create("long");
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "t%u", i);
        uint32_t t = plan_builder_tensor(b, name, 1000);
        (void)plan_builder_step(b, ATP_PHASE_FORWARD, name, NO_IDS, IDS(t));
    }
    for (uint32_t i = 0; i < count; i++) {
        plan_builder_add(b, ATP_OP_ALLOC, i, (uint64_t)i * 1000);
        plan_builder_add(b, ATP_OP_RUN, i, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        plan_builder_add(b, ATP_OP_FREE, i, 0);
    }
    plan_builder_seal(b);
    return b;
}

START_TEST(keeps_to_its_width_and_shows_decisions_when_letters_run_out)
{
    struct plan_builder *b = long_plan(1500);
    for (uint32_t width = 20; width <= 200; width += 45) {
        const struct picture_style style = {.width = width};
        char *text = draw(picture_arena, &b->plan, &style);
        uint32_t limit = width < 40 ? 40 : width;
        const char *line = text;
        for (int i = 0; i < 25; i++) {
            size_t length = strcspn(line, "\n");
            ck_assert_msg(i == 0 || length <= limit, "%zu columns: %.*s", length, (int)length,
                          line);
            line += length + 1;
        }
        ck_assert_ptr_nonnull(strstr(text, "k keep, s swap, r recompute"));
        ck_assert_uint_gt(count_of(text, 'K'), 30);
        free(text);
    }
    plan_builder_destroy(b);
}
END_TEST

START_TEST(uses_colours_and_bars_only_where_they_are_wanted)
{
    struct plan_builder *b = two_tensors();
    const struct picture_style plain = {.width = 80};
    const struct picture_style rich = {.width = 80, .utf8 = true, .color = true};
    char *text = draw(picture_arena, &b->plan, &plain);
    for (const char *c = text; *c != '\0'; c++) {
        ck_assert(*c == '\n' || (*c >= ' ' && *c <= '~'));
    }
    free(text);
    text = draw(picture_arena, &b->plan, &rich);
    ck_assert_ptr_nonnull(strstr(text, "\033[34m"));
    free(text);
    text = draw(picture_memory, &b->plan, &rich);
    ck_assert_ptr_nonnull(strstr(text, "\xE2\x96\x88"));
    free(text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(draws_damaged_and_empty_plans_without_harm)
{
    struct plan_builder *b = two_tensors();
    const struct picture_style style = {.width = 80};
    b->program[0].offset = UINT64_C(1) << 61;
    b->program[3].op = ATP_OP_ALLOC;
    b->program[4].op = ATP_OP_RESTORED;
    free(draw(picture_arena, &b->plan, &style));
    free(draw(picture_memory, &b->plan, &style));
    b->plan.arena_bytes = 0;
    free(draw(picture_arena, &b->plan, &style));
    b->plan.instruction_count = 0;
    free(draw(picture_arena, &b->plan, &style));
    free(draw(picture_memory, &b->plan, &style));
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        draws_tensors_where_and_when_they_live,
        draws_the_height_of_the_live_bytes,
        shows_reruns_and_copies_in_lanes,
        keeps_to_its_width_and_shows_decisions_when_letters_run_out,
        uses_colours_and_bars_only_where_they_are_wanted,
        draws_damaged_and_empty_plans_without_harm,
    };
    return RUN_TESTS("picture", tests, set_up, tear_down);
}
