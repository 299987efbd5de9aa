/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "size.h"

#include "run_tests.h"

#include <string.h>

START_TEST(reads_bytes_and_their_units)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"8000000000", 8000000000},
        {"4611686018427387904", SIZE_BYTES_MAX},
        {"1KB", 1000},
        {"14GB", 14000000000},
        {"14gb", 14000000000},
        {"2TB", 2000000000000},
        {"3MB", 3000000},
        {"7B", 7},
        {"1KiB", 1024},
        {"3MiB", 3145728},
        {"16GiB", 17179869184},
        {"16gib", 17179869184},
        {"1TiB", 1099511627776},
        {"1.5GiB", 1610612736},
        {"16.1GB", 16100000000},
        {"0.000001KB", 0},
        {"0.3KiB", 307},
        {"1.0", 1},
        {"1.5000000KB", 1500},
        {"12e9", 12000000000},
        {"1.5e9", 1500000000},
        {"1E3", 1000},
        {"007", 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct size size;
        struct atp_error err;
        ck_assert_msg(size_parse(cases[i].text, &size, &err) == ATP_OK, "%s", err.text);
        ck_assert(!size.is_share);
        ck_assert_msg(size.amount == cases[i].bytes, "%s is %llu", cases[i].text,
                      (unsigned long long)size.amount);
    }
}
END_TEST

START_TEST(reads_rates_with_and_without_their_unit)
{
    static const struct {
        const char *text;
        uint64_t rate; /* 0: refused */
    } cases[] = {
        {"50e9", 50000000000},
        {"25GB/s", 25000000000},
        {"1", 1},
        {"1KiB/s", 1024},
        {"0", 0},
        {"50%", 0},
        {"/s", 0},
        {"25GB/", 0},
        {"25GB/s/s", 0},
        {"-1", 0},
        {"", 0},
        {"25Gb/h", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t rate = 0;
        struct atp_error err;
        enum atp_status status = size_parse_rate(cases[i].text, &rate, &err);
        ck_assert_msg((status == ATP_OK) == (cases[i].rate != 0), "%s", cases[i].text);
        ck_assert_uint_eq(rate, cases[i].rate);
    }
}
END_TEST

START_TEST(refuses_a_memory_that_is_nothing_or_a_share)
{
    uint64_t bytes;
    struct atp_error err;
    ck_assert(size_parse_memory("16GiB", &bytes, &err) == ATP_OK && bytes == UINT64_C(17179869184));
    ck_assert(size_parse_memory("0", &bytes, &err) == ATP_ERR_INVALID);
    ck_assert(size_parse_memory("60%", &bytes, &err) == ATP_ERR_INVALID);
}
END_TEST

START_TEST(reads_shares)
{
    static const struct {
        const char *text;
        uint64_t share;
    } cases[] = {
        {"0%", 0},        {"60%", 60 * SIZE_PERCENT},  {"62.5%", 62500000},
        {"0.000001%", 1}, {"100000%", SIZE_SHARE_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct size size;
        ck_assert_int_eq(size_parse(cases[i].text, &size, NULL), ATP_OK);
        ck_assert(size.is_share);
        ck_assert_uint_eq(size.amount, cases[i].share);
    }
}
END_TEST

START_TEST(refuses_what_is_no_size_and_says_why)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "is no size"},
        {"GB", "is no size"},
        {"-1", "is no size"},
        {"+1", "is no size"},
        {" 1", "is no size"},
        {".5GB", "is no size"},
        {"1.GB", "is no size"},
        {"%", "is no size"},
        {"inf", "is no size"},
        {"0x10", "has the unit \"x10\""},
        {"1 GB", "has the unit \" GB\""},
        {"1GBs", "has the unit \"GBs\""},
        {"1XB", "has the unit \"XB\""},
        {"1e", "has the unit \"e\""},
        {"1e13", "has the unit \"e13\""},
        {"1e-3", "has the unit"},
        {"16G", "expected GB (power of ten) or GiB (power of two)"},
        {"16k", "expected kB"},
        {"1.5", "no whole number of bytes"},
        {"1.5B", "no whole number of bytes"},
        {"1.0000001GB", "is no size"},
        {"4611686018427387905", "too large"},
        {"99999999999999999999999", "is no size"},
        {"5000000TiB", "too large"},
        {"100001%", "too large"},
        {"60%%", "has the unit"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct size size;
        struct atp_error err;
        ck_assert_msg(size_parse(cases[i].text, &size, &err) == ATP_ERR_INVALID, "\"%s\"",
                      cases[i].text);
        ck_assert_msg(strstr(err.text, cases[i].message) != NULL, "\"%s\" does not say \"%s\"",
                      err.text, cases[i].message);
    }
}
END_TEST

START_TEST(reads_percentages_with_or_without_the_sign)
{
    uint64_t share;
    ck_assert_int_eq(size_parse_percent("1%", &share, NULL), ATP_OK);
    ck_assert_uint_eq(share, SIZE_PERCENT);
    ck_assert_int_eq(size_parse_percent("0.25", &share, NULL), ATP_OK);
    ck_assert_uint_eq(share, SIZE_PERCENT / 4);
    ck_assert_int_eq(size_parse_percent("1GB", &share, NULL), ATP_ERR_INVALID);
    ck_assert_int_eq(size_parse_percent("", &share, NULL), ATP_ERR_INVALID);
}
END_TEST

START_TEST(reads_seconds_to_the_millisecond)
{
    uint32_t ms;
    ck_assert_int_eq(size_parse_seconds("10", &ms, NULL), ATP_OK);
    ck_assert_uint_eq(ms, 10000);
    ck_assert_int_eq(size_parse_seconds("0.0019", &ms, NULL), ATP_OK);
    ck_assert_uint_eq(ms, 1);
    ck_assert_int_eq(size_parse_seconds("1000000", &ms, NULL), ATP_OK);
    ck_assert_uint_eq(ms, 1000000000);
    const char *const bad[] = {"0", "0.0009", "1000001", "1000000.5", "1s", "-1", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(size_parse_seconds(bad[i], &ms, NULL) == ATP_ERR_INVALID, "%s", bad[i]);
    }
}
END_TEST

START_TEST(reads_counts_within_their_limits)
{
    uint64_t count;
    ck_assert_int_eq(size_parse_count("3", 3, 5, &count, NULL), ATP_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(size_parse_count("5", 3, 5, &count, NULL), ATP_OK);
    const char *const bad[] = {"2", "6", "3.5", "4x", "", "-4", "4e0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(size_parse_count(bad[i], 3, 5, &count, NULL) == ATP_ERR_INVALID, "%s",
                      bad[i]);
    }
}
END_TEST

START_TEST(takes_shares_rounded_up_and_without_overflow)
{
    ck_assert_uint_eq(size_share_of(60 * SIZE_PERCENT, 1000), 600);
    ck_assert_uint_eq(size_share_of(100 * SIZE_PERCENT, 12345678901), 12345678901);
    ck_assert_uint_eq(size_share_of(50 * SIZE_PERCENT, 3), 2);
    ck_assert_uint_eq(size_share_of(1, 1), 1);
    ck_assert_uint_eq(size_share_of(0, SIZE_BYTES_MAX), 0);
    ck_assert_uint_eq(size_share_of(100 * SIZE_PERCENT, SIZE_BYTES_MAX), SIZE_BYTES_MAX);
    ck_assert_uint_eq(size_share_of(SIZE_SHARE_MAX, SIZE_BYTES_MAX), SIZE_BYTES_MAX);
    ck_assert_uint_eq(size_share_of(SIZE_SHARE_MAX, 99999999), UINT64_C(99999999000));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        reads_bytes_and_their_units,
        reads_rates_with_and_without_their_unit,
        refuses_a_memory_that_is_nothing_or_a_share,
        reads_shares,
        refuses_what_is_no_size_and_says_why,
        reads_percentages_with_or_without_the_sign,
        reads_seconds_to_the_millisecond,
        reads_counts_within_their_limits,
        takes_shares_rounded_up_and_without_overflow,
    };
    return RUN_TESTS("size", tests, NULL, NULL);
}
