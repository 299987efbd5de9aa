/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "report_html.h"
#include "run_tests.h"

#include <string.h>

static char text[512];

static const char *written(void (*write)(FILE *, const char *), const char *from)
{
    FILE *out = fmemopen(text, sizeof(text), "w");
    ck_assert_ptr_nonnull(out);
    write(out, from);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(text_cannot_be_markup_nor_leave_an_attribute)
{
    ck_assert_str_eq(written(html_text, "<b a=\"x\" c='y'>&amp;"),
                     "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;");
}
END_TEST

START_TEST(a_string_cannot_end_its_script)
{
    ck_assert_str_eq(written(html_string, "</script>\"\\&"),
                     "\"\\u003c/script\\u003e\\\"\\\\\\u0026\"");
    ck_assert_str_eq(written(html_string, ""), "\"\"");
}
END_TEST

START_TEST(characters_of_every_length_pass)
{
    const char *all = "a\xC3\xBC\xE4\xB8\xAD\xF0\x9F\x98\x80\xEF\xBF\xBD";
    ck_assert_str_eq(written(html_text, all), all);
}
END_TEST

START_TEST(control_characters_and_bad_bytes_are_replaced)
{
    static const struct {
        const char *from;
        unsigned replaced;
    } cases[] = {
        {"\t", 1},
        {"\n", 1},
        {"\x7F", 1},
        {"\xC2\x80", 1}, /* a control character of two bytes */
        {"\xFF", 1},
        {"\x80", 1},
        {"\xC3", 1},
        {"\xC0\xAF", 2}, /* overlong */
        {"\xE0\x9F\xBF", 3},
        {"\xED\xA0\x80", 3}, /* overlong; a surrogate */
        {"\xF4\x90\x80\x80", 4},
        {"\xF0\x8F\xBF\xBF", 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const char replacements[] = "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
        const char *expected =
            replacements + sizeof(replacements) - 1 - (size_t)3 * cases[i].replaced;
        ck_assert_str_eq(written(html_text, cases[i].from), expected);
    }
}
END_TEST

START_TEST(scales_reach_from_zero_to_all_units)
{
    const uint64_t huge = UINT64_C(1) << 62;
    ck_assert_uint_eq(html_across(0, 10), 0);
    ck_assert_uint_eq(html_across(5, 10), HTML_ACROSS / 2);
    ck_assert_uint_eq(html_across(10, 10), HTML_ACROSS);
    ck_assert_uint_eq(html_across(7, 0), 0);
    ck_assert_uint_eq(html_scale(huge, huge, 1000), 1000);
    ck_assert_uint_eq(html_scale(huge / 4, huge, 1000), 250);
}
END_TEST

START_TEST(ticks_are_round_and_four_to_eight)
{
    ck_assert_uint_eq(html_tick(0), 1);
    for (uint64_t most = 4; most < UINT64_C(1) << 61; most += 1 + most / 7) {
        uint64_t tick = html_tick(most), first = tick;
        while (first % 10 == 0) {
            first /= 10;
        }
        ck_assert(first == 1 || first == 2 || first == 5);
        ck_assert_uint_ge(most / tick, 3);
        ck_assert_uint_le(most / tick, 8);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        text_cannot_be_markup_nor_leave_an_attribute,
        a_string_cannot_end_its_script,
        characters_of_every_length_pass,
        control_characters_and_bad_bytes_are_replaced,
        scales_reach_from_zero_to_all_units,
        ticks_are_round_and_four_to_eight,
    };
    return RUN_TESTS("report_html", tests, NULL, NULL);
}
