/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "summary.h"

#include "plan_builder.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

static struct region *region;
static struct plan_builder *b;

static void set_up(void)
{
    region = region_create();
    b = plan_builder_create("layers");
}

static void tear_down(void)
{
    plan_builder_destroy(b);
    region_destroy(region);
}

/* The table of layers, to be freed; NULL where there is none. */
static char *print_layers(uint32_t width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    bool is_there = summary_print_layers(&b->plan, width, region, out);
    (void)fclose(out);
    ck_assert(is_there == (size > 0));
    if (!is_there) {
        free(text);
        return NULL;
    }
    return text;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        longest = length > longest ? length : longest;
    }
    return longest;
}

START_TEST(prints_no_layers_where_names_tell_of_none)
{
    (void)plan_builder_tensor(b, "x", 8);
    (void)plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(0));
    plan_builder_seal(b);
    ck_assert_ptr_null(print_layers(80));
}
END_TEST

START_TEST(puts_equal_neighbours_on_one_line)
{
    static const char *const names[] = {"h0.x", "h1.x", "h2.x", "head.x"};
    for (uint32_t t = 0; t < 4; t++) {
        (void)plan_builder_tensor(b, names[t], 1000);
    }
    (void)plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(0, 1, 2, 3));
    plan_builder_seal(b);
    b->decisions[3] = ATP_DECISION_SWAP;
    char *text = print_layers(80);
    const char *row = strstr(text, "h0 to h2 ");
    ck_assert_msg(row != NULL, "%s", text);
    ck_assert_msg(strstr(row, "1, 1.00 KB") != NULL && strstr(row, " each\nhead ") != NULL, "%s",
                  text);
    ck_assert_msg(strstr(text, "h1.") == NULL, "%s", text);
    free(text);
}
END_TEST

START_TEST(cuts_long_names_between_characters)
{
    /* 26 two-byte characters: 27 columns, or 19 of the least width, end inside of one. */
    (void)plan_builder_tensor(b,
                              "x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                              "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9.y",
                              8);
    (void)plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(0));
    plan_builder_seal(b);
    static const uint32_t widths[] = {0, 40, 73, 80, 81, 400};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        char *text = print_layers(widths[i]);
        char *cut = strchr(text, '~');
        ck_assert_msg(cut != NULL, "%u: %s", widths[i], text);
        ck_assert_msg(((unsigned char)cut[-1] & 0xC0U) == 0x80, "%u: %s", widths[i], text);
        ck_assert_uint_le(longest_line(text), widths[i] > 72 ? widths[i] : 72);
        free(text);
    }
}
END_TEST

START_TEST(counts_in_json_what_the_layers_hold)
{
    char *text = NULL;
    size_t size = 0;
    (void)plan_builder_tensor(b, "h0.x", 7);
    (void)plan_builder_tensor(b, "h0.y", 5);
    (void)plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(0, 1));
    plan_builder_seal(b);
    b->decisions[1] = ATP_DECISION_RECOMPUTE;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    summary_print_json(&b->plan, region, out);
    (void)fclose(out);
    ck_assert_msg(strstr(text, "{\"layer\":\"h0\",\"keep\":{\"tensors\":1,\"bytes\":7},"
                               "\"swap\":{\"tensors\":0,\"bytes\":0},"
                               "\"recompute\":{\"tensors\":1,\"bytes\":5}}") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        prints_no_layers_where_names_tell_of_none,
        puts_equal_neighbours_on_one_line,
        cuts_long_names_between_characters,
        counts_in_json_what_the_layers_hold,
    };
    return RUN_TESTS("summary", tests, set_up, tear_down);
}
