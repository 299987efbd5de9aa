/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "words.h"

#include "run_tests.h"

START_TEST(gives_bytes_the_unit_that_suits_them)
{
    ck_assert_str_eq(words_bytes(0).text, "0 B");
    ck_assert_str_eq(words_bytes(999).text, "999 B");
    ck_assert_str_eq(words_bytes(1000).text, "1.00 KB");
    ck_assert_str_eq(words_bytes(999994).text, "999.99 KB");
    ck_assert_str_eq(words_bytes(999996).text, "1.00 MB");
    ck_assert_str_eq(words_bytes(17179869184).text, "17.18 GB");
    ck_assert_str_eq(words_bytes(UINT64_MAX).text, "18.45 EB");
}
END_TEST

START_TEST(gives_times_the_unit_that_suits_them)
{
    ck_assert_str_eq(words_time(0).text, "0.000 us");
    ck_assert_str_eq(words_time(999999).text, "999.999 us");
    ck_assert_str_eq(words_time(1000000).text, "1.000 ms");
    ck_assert_str_eq(words_time(999999999).text, "1.000 s");
    ck_assert_str_eq(words_time(INT64_MAX).text, "9223372036.855 s");
}
END_TEST

START_TEST(gives_gaps_in_percent)
{
    ck_assert_str_eq(words_gap(2490000, 2330000).text, "6.87 %");
    ck_assert_str_eq(words_gap(100, 100).text, "0.00 %");
    ck_assert_str_eq(words_percent(0.0288).text, "2.88 %");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gives_bytes_the_unit_that_suits_them,
        gives_times_the_unit_that_suits_them,
        gives_gaps_in_percent,
    };
    return RUN_TESTS("words", tests, NULL, NULL);
}
