/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "certificate_text.h"

#include "assert_error.h"
#include "run_tests.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct region *region;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static const char small[] = "rows 4 9f2c6f1c0a3b77de\n"
                            "checkpoints 12m 40mc 61\n"
                            "multipliers 2^-20\n"
                            "17 0*2 -5\n";

START_TEST(a_certificate_reads_as_it_says)
{
    struct certificate certificate;
    assert_ok(certificate_read(small, region, &certificate, &err), err);
    ck_assert_uint_eq(certificate.row_count, 4);
    ck_assert(certificate.identity == UINT64_C(0x9f2c6f1c0a3b77de));
    ck_assert_uint_eq(certificate.grid.count, 3);
    const struct relax_checkpoint *points = certificate.grid.points;
    ck_assert(points[0].step == 12 && points[0].memory && !points[0].cut);
    ck_assert(points[1].step == 40 && points[1].memory && points[1].cut);
    ck_assert(points[2].step == 61 && !points[2].memory && !points[2].cut);
    ck_assert(certificate.multipliers[0] == ldexp(17, -20));
    ck_assert(certificate.multipliers[1] == 0 && certificate.multipliers[2] == 0);
    ck_assert(certificate.multipliers[3] == ldexp(-5, -20));
}
END_TEST

START_TEST(what_was_read_is_written_as_it_was)
{
    struct certificate certificate;
    assert_ok(certificate_read(small, region, &certificate, &err), err);
    ck_assert_str_eq(certificate_write(&certificate, region), small);
}
END_TEST

START_TEST(long_certificates_are_broken_into_lines)
{
    struct relax_checkpoint points[90];
    double multipliers[3000];
    struct certificate certificate = {
        .grid = {90, points}, .row_count = 3000, .exponent = -30, .multipliers = multipliers};
    struct certificate again;
    for (uint32_t k = 0; k < 90; k++) {
        points[k] = (struct relax_checkpoint){1000 * k, k % 2 == 0, k % 7 == 0};
    }
    for (uint32_t i = 0; i < 3000; i++) {
        multipliers[i] = ldexp((double)i * 1e9 - 1e12, -30);
    }
    const char *text = certificate_write(&certificate, region);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_uint_le(strcspn(line, "\n"), 100);
    }
    assert_ok(certificate_read(text, region, &again, &err), err);
    for (uint32_t i = 0; i < 3000; i++) {
        ck_assert(again.multipliers[i] == multipliers[i]);
    }
    ck_assert_uint_eq(again.grid.count, 90);
    ck_assert_str_eq(certificate_write(&again, region), text);
}
END_TEST

START_TEST(what_is_no_certificate_is_refused_with_its_line)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"", "line 1: \"\", expected rows"},
        {"row 4", "line 1: \"row\", expected rows"},
        {"rows", "line 1: \"\", expected a number of rows"},
        {"rows -1", "\"-1\", expected a number of rows"},
        {"rows 4x", "\"4x\", expected a number of rows"},
        {"rows 99999999999999999999", "expected a number of rows"},
        {"rows 4194305", "expected a number of rows"},
        {"rows 4\n9F2C6f1c0a3b77de", "line 2: \"9F2C6f1c0a3b77de\", expected 16 hex digits"},
        {"rows 4 9f2c", "expected 16 hex digits"},
        {"rows 4 9f2c6f1c0a3b77de points", "expected checkpoints"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints 1m 2cm", "\"2cm\", expected a step"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints m", "\"m\", expected a step"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints 4294967295", "expected a step"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints 1m", "\"\", expected a step"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints multipliers 1", "expected a power of two"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints multipliers 2^", "expected a power of two"},
        {"rows 4 9f2c6f1c0a3b77de checkpoints multipliers 2^-257", "expected a power of two"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1.5", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 -", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 nan", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 -inf", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1e308", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 0x1", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1*0", "expected a whole number"},
        {"rows 1 9f2c6f1c0a3b77de checkpoints multipliers 2^0 9007199254740994",
         "expected a whole number"},
        {"rows 2 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1*3", "expected no more"},
        {"rows 2 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1*4294967297",
         "expected a whole number"},
        {"rows 2 9f2c6f1c0a3b77de checkpoints multipliers 2^0 1", "expected as many"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct certificate certificate;
        enum atp_status status = certificate_read(cases[i].text, region, &certificate, &err);
        assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, cases[i].problem);
    }
}
END_TEST

START_TEST(a_flood_of_checkpoints_or_cuts_is_refused)
{
    char text[4000] = "rows 1 9f2c6f1c0a3b77de checkpoints";
    struct certificate certificate;
    size_t length = strlen(text), first = length;
    for (uint32_t k = 0; k < 20; k++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, " %uc", k);
    }
    enum atp_status status = certificate_read(text, region, &certificate, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "\"16c\", expected fewer checkpoints");
    length = first;
    for (uint32_t k = 0; k < 300; k++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, " %u", k);
    }
    status = certificate_read(text, region, &certificate, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "\"256\", expected fewer checkpoints");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_certificate_reads_as_it_says,
        what_was_read_is_written_as_it_was,
        long_certificates_are_broken_into_lines,
        what_is_no_certificate_is_refused_with_its_line,
        a_flood_of_checkpoints_or_cuts_is_refused,
    };
    return RUN_TESTS("certificate_text", tests, set_up, tear_down);
}
