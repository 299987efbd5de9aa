/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "json.h"

#include "run_tests.h"

#include <stdint.h>
#include <stdlib.h>

START_TEST(escapes_what_json_does_not_allow_in_a_text)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    json_text(out, "a\"b\\c\n\x01\x7f \xc3\xa9/");
    (void)fclose(out);
    ck_assert_str_eq(text, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f \xc3\xa9/\"");
    free(text);
}
END_TEST

START_TEST(writes_every_nanosecond_of_a_time)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "0.000"},
                 {1, "0.001"},
                 {1234567, "1234.567"},
                 {-5, "-0.005"},
                 {INT64_MAX, "9223372036854775.807"},
                 {INT64_MIN, "-9223372036854775.808"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(out);
        json_us(out, cases[i].ns);
        (void)fclose(out);
        ck_assert_str_eq(text, cases[i].text);
        free(text);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        escapes_what_json_does_not_allow_in_a_text,
        writes_every_nanosecond_of_a_time,
    };
    return RUN_TESTS("json", tests, NULL, NULL);
}
