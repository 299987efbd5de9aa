/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "csv.h"

#include "run_tests.h"

#include <string.h>

static struct region *region;
static const struct doc_node *rows;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static enum atp_status parse(const char *text)
{
    return csv_parse(text, strlen(text), region, &rows, &err);
}

static const struct doc_node *value_at(uint32_t row, uint32_t column)
{
    const struct doc_node *node = rows->first;
    for (; row > 0; row--) {
        node = node->next;
    }
    for (node = node->first; column > 0; column--) {
        node = node->next;
    }
    return node;
}

START_TEST(gives_each_value_its_name_and_place)
{
    ck_assert_int_eq(parse("a,b\n1,22\n x ,y\n"), ATP_OK);
    ck_assert_uint_eq(rows->count, 2);
    const struct doc_node *node = value_at(1, 0);
    ck_assert_str_eq(node->text, "x");
    ck_assert_str_eq(node->key, "a");
    ck_assert_uint_eq(node->line, 3);
    ck_assert_uint_eq(node->column, 2);
    ck_assert_uint_eq(value_at(0, 1)->column, 3);
    ck_assert_uint_eq(value_at(0, 1)->key_column, 3);
}
END_TEST

START_TEST(reads_quotes_as_rfc_4180_has_them)
{
    ck_assert_int_eq(parse("a,b\n\"1,\"\"2\"\"\n3\" ,4\n\"\",5"), ATP_OK);
    ck_assert_str_eq(value_at(0, 0)->text, "1,\"2\"\n3");
    ck_assert_str_eq(value_at(0, 1)->text, "4");
    ck_assert_uint_eq(value_at(0, 1)->line, 3);
    ck_assert_str_eq(value_at(1, 0)->text, "");
}
END_TEST

START_TEST(takes_what_spreadsheets_write)
{
    ck_assert_int_eq(parse("\xef\xbb\xbf# mine\r\n\r\na,b\r\n  \r\n1,\xc3\xa9,\r\n"),
                     ATP_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, 5);
    ck_assert_uint_eq(err.column, 5);
    ck_assert_int_eq(parse("\xef\xbb\xbf# mine\r\n\r\na,b\r\n  \r\n1,\xc3\xa9\r\n"), ATP_OK);
    ck_assert_uint_eq(rows->count, 1);
    ck_assert_str_eq(value_at(0, 1)->text, "\xc3\xa9");
    ck_assert_str_eq(value_at(0, 0)->key, "a");
}
END_TEST

START_TEST(finds_no_rows_where_there_are_none)
{
    static const char *const texts[] = {"", "\n\n", "# a\n", "a,b", "a,b\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_int_eq(parse(texts[i]), ATP_OK);
        ck_assert_uint_eq(rows->count, 0);
        ck_assert_ptr_null(rows->first);
    }
}
END_TEST

START_TEST(names_the_place_of_what_is_no_csv)
{
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *what;
    } bad[] = {
        {"a,b\n1\n", 2, 2, "fewer values"},
        {"a,b\n1,2,3\n", 2, 5, "more values"},
        {"a,a\n", 1, 3, "twice"},
        {"a,\n", 1, 3, "is empty"},
        {"a\n\"1\n2", 2, 1, "no closing quote"},
        {"a\n1\"2\n", 2, 2, "a quote within"},
        {"a,b\n\"1\"2,3\n", 2, 4, "behind a quote"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(parse(bad[i].text), ATP_ERR_SYNTAX);
        ck_assert_msg(strstr(err.text, bad[i].what) != NULL && err.line == bad[i].line &&
                          err.column == bad[i].column,
                      "case %zu: %u:%u: %s", i, err.line, err.column, err.text);
    }
    ck_assert_int_eq(csv_parse("a\n\0\n", 4, region, &rows, &err), ATP_ERR_SYNTAX);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gives_each_value_its_name_and_place, reads_quotes_as_rfc_4180_has_them,
        takes_what_spreadsheets_write,       finds_no_rows_where_there_are_none,
        names_the_place_of_what_is_no_csv,
    };
    return RUN_TESTS("csv", tests, set_up, tear_down);
}
