/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "yaml_reader.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

static struct doc *parse(const char *text)
{
    struct doc *doc;
    struct atp_error err = {0};
    enum atp_status status = doc_parse(text, strlen(text), &doc, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s", err.line, err.column, err.text);
    return doc;
}

START_TEST(knows_line_column_and_path_of_every_node)
{
    struct doc *doc = parse("# comment\nsteps:\n  - {name: f, reads: [a, \"b\"]}\nlast: 'x'\n");
    const struct doc_node *steps = doc_root(doc)->first, *step = steps->first;
    const struct doc_node *reads = step->first->next, *b = reads->first->next;
    char path[64];
    doc_path(b, path, sizeof(path));
    ck_assert_str_eq(path, "steps[0].reads[1]");
    ck_assert_uint_eq(b->line, 3);
    ck_assert_uint_eq(b->column, 26);
    ck_assert(!b->plain && reads->first->plain);
    ck_assert_uint_eq(reads->count, 2);
    ck_assert_str_eq(reads->key, "reads");
    ck_assert_uint_eq(reads->key_column, 15);
    ck_assert_uint_eq(reads->column, 22);
    ck_assert_str_eq(steps->next->text, "x");
    ck_assert_ptr_null(steps->next->next);
    doc_path(doc_root(doc), path, sizeof(path));
    ck_assert_str_eq(path, "top level");
    doc_path(b, path, 8);
    ck_assert_str_eq(path, "steps[0");
    doc_destroy(doc);
    doc_destroy(NULL);
}
END_TEST

START_TEST(counts_columns_in_characters)
{
    struct doc *doc = parse("{\xC3\xA9\xE5\xB1\x82: 1, b: 2}");
    ck_assert_uint_eq(doc_root(doc)->first->next->key_column, 9);
    doc_destroy(doc);
}
END_TEST

static const struct bad_text REFUSED[] = {
    {"", ATP_ERR_SYNTAX, 1, 1, "top level: the document is empty"},
    {"# nothing\n", ATP_ERR_SYNTAX, 1, 1, "top level: the document is empty"},
    {"a: 1\n---\na: 2\n", ATP_ERR_SYNTAX, 2, 1, "a second document begins here"},
    {"a: &x 1\n", ATP_ERR_SYNTAX, 1, 4, "a: anchors are not allowed"},
    {"a: &x [1]\n", ATP_ERR_SYNTAX, 1, 4, "a: anchors are not allowed"},
    {"a: &x {b: 1}\n", ATP_ERR_SYNTAX, 1, 4, "a: anchors are not allowed"},
    {"a: [1, *x]\n", ATP_ERR_SYNTAX, 1, 8, "a: aliases are not allowed"},
    {"a: !!int 1\n", ATP_ERR_SYNTAX, 1, 4, "a: tags are not allowed"},
    {"a: !t [1]\n", ATP_ERR_SYNTAX, 1, 4, "a: tags are not allowed"},
    {"a: 1\nb: 2\na: 3\n", ATP_ERR_SYNTAX, 3, 1, "a: the key appears twice, first in line 1"},
    {"x: [{a: 1, \"a\": 3}]", ATP_ERR_SYNTAX, 1, 12, "x[0].a: the key appears twice"},
    {"? [a]\n: 1\n", ATP_ERR_SYNTAX, 1, 3, "a key is a list or a map"},
    {"{{a: 1}: 2}", ATP_ERR_SYNTAX, 1, 2, "a key is a list or a map"},
    {"a: [1, 2\nb: 3\n", ATP_ERR_SYNTAX, 2, 2, "a: not YAML: "},
    {"a: \"open", ATP_ERR_SYNTAX, 1, 9, "a: not YAML: "},
    {"a: 1\n b: 2\n", ATP_ERR_SYNTAX, 2, 3, "not YAML: "},
    {"a: \t- b\n", ATP_ERR_SYNTAX, 1, 5, "not YAML: "},
    {"a: 1\nb: \xFF\n", ATP_ERR_SYNTAX, 2, 4, "not YAML: "},
    {"a: \x01\n", ATP_ERR_SYNTAX, 1, 4, "not YAML: "},
    {"a: \xED\xA0\x80\n", ATP_ERR_SYNTAX, 1, 4, "not YAML: "},
    {"a: \"x\\0y\"\n", ATP_ERR_SYNTAX, 1, 4, "a: a NUL character is not allowed"},
    {"[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", ATP_OK, 0, 0, ""},
    {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", ATP_ERR_SYNTAX, 1, 17, "nest too deep"},
};

START_TEST(refuses_with_place_and_path)
{
    struct doc *doc;
    struct atp_error err = {0};
    const struct bad_text *bad = &REFUSED[_i];
    enum atp_status status = doc_parse(bad->text, strlen(bad->text), &doc, &err);
    if (bad->status == ATP_OK) {
        ck_assert_int_eq(status, ATP_OK);
        doc_destroy(doc);
        return;
    }
    ck_assert_ptr_null(doc);
    expect_error(&err, status, bad);
    ck_assert_int_eq(doc_parse(bad->text, strlen(bad->text), &doc, NULL), bad->status);
}
END_TEST

START_TEST(refuses_nul_bytes_and_too_much_text)
{
    struct doc *doc;
    struct atp_error err = {0};
    ck_assert_int_eq(doc_parse("a: 1\nb\0: 2", 10, &doc, &err), ATP_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, 2);
    ck_assert_uint_eq(err.column, 2);
    ck_assert_int_eq(doc_parse("a", DOC_BYTES_MAX + 1, &doc, &err), ATP_ERR_LIMIT);
}
END_TEST

/* `piece` repeated `times`, `%u` in it replaced by the number of the piece. The caller frees. */
static char *repeat(const char *head, const char *piece, uint32_t times, size_t *out_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, out_size);
    ck_assert_ptr_nonnull(out);
    (void)fputs(head, out);
    for (uint32_t i = 0; i < times; i++) {
        const char *mark = strstr(piece, "%u");
        if (mark != NULL) {
            (void)fprintf(out, "%.*s%u%s", (int)(mark - piece), piece, i, mark + 2);
        } else {
            (void)fputs(piece, out);
        }
    }
    (void)fclose(out);
    return text;
}

static void expect_quick(const char *head, const char *piece, uint32_t times, enum atp_status want)
{
    size_t size;
    struct doc *doc;
    struct atp_error err = {0};
    char *text = repeat(head, piece, times, &size);
    clock_t begin = clock();
    enum atp_status status = doc_parse(text, size, &doc, &err);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    ck_assert_msg(status == want, "%s: %s", piece, err.text);
    ck_assert_msg(seconds < 20.0, "%u of \"%s\" take %.1f s", times, piece, seconds);
    doc_destroy(doc);
    free(text);
}

/* Quadratic would be minutes. The limit leaves room for sanitizers on a busy machine. */
START_TEST(ends_soon_on_hostile_texts)
{
    expect_quick("", "[", 100000, ATP_ERR_SYNTAX);
    expect_quick("", "[\n", 100000, ATP_ERR_SYNTAX);
    expect_quick("", "{a: ", 100000, ATP_ERR_SYNTAX);
    expect_quick("", "- ", 100000, ATP_ERR_SYNTAX);
    expect_quick("", "? ", 100000, ATP_ERR_SYNTAX);
    expect_quick("a: ", "&a ", 100000, ATP_ERR_SYNTAX);
    expect_quick("\"", "a", 1000000, ATP_ERR_SYNTAX);
    expect_quick("a: 1\n", "key%u: 1\n", 300000, ATP_OK);
    expect_quick("a: 1\na: 2\n", "key%u: 1\n", 300000, ATP_ERR_SYNTAX);
    expect_quick("", "- 1\n", 300000, ATP_OK);
}
END_TEST

struct number_case {
    const char *text;
    uint32_t decimals;
    bool rounds;
    enum atp_status status;
    uint64_t value;
};

static const struct number_case NUMBERS[] = {
    {"0", 0, false, ATP_OK, 0},
    {"12", 0, false, ATP_OK, 12},
    {"12e9", 0, false, ATP_OK, 12000000000},
    {"12.0e9", 0, false, ATP_OK, 12000000000},
    {"12.5E+1", 0, false, ATP_OK, 125},
    {"1200e-2", 0, false, ATP_OK, 12},
    {"1.0", 0, false, ATP_OK, 1},
    {"0e9999", 0, false, ATP_OK, 0},
    {"4611686018427387904", 0, false, ATP_OK, UINT64_C(1) << 62},
    {"4611686018427387905", 0, false, ATP_ERR_INVALID, 0},
    {"99999999999999999999999", 0, false, ATP_ERR_INVALID, 0},
    {"1e9999", 0, false, ATP_ERR_INVALID, 0},
    {"12.5", 0, false, ATP_ERR_INVALID, 0},
    {"1e-1", 0, false, ATP_ERR_INVALID, 0},
    {"-1", 0, false, ATP_ERR_INVALID, 0},
    {"-0.5", 0, false, ATP_ERR_INVALID, 0},
    {"35.12", 3, true, ATP_OK, 35120},
    {"35.123", 3, false, ATP_OK, 35123},
    {"35.1234", 3, false, ATP_ERR_INVALID, 0},
    {"35.1230", 3, false, ATP_OK, 35123},
    {"35.1234", 3, true, ATP_OK, 35123},
    {"35.1235", 3, true, ATP_OK, 35124},
    {"0.0005", 3, true, ATP_OK, 1},
    {"0.0004999", 3, true, ATP_OK, 0},
    {"0.00005", 3, true, ATP_OK, 0},
    {"5e-4", 3, true, ATP_OK, 1},
    {"9e-5", 3, true, ATP_OK, 0},
    {"1e3", 3, true, ATP_OK, 1000000},
    {"", 0, false, ATP_ERR_SYNTAX, 0},
    {"x", 0, false, ATP_ERR_SYNTAX, 0},
    {"012", 0, false, ATP_ERR_SYNTAX, 0},
    {"0x10", 0, false, ATP_ERR_SYNTAX, 0},
    {"1_000", 0, false, ATP_ERR_SYNTAX, 0},
    {"+1", 0, false, ATP_ERR_SYNTAX, 0},
    {".5", 3, false, ATP_ERR_SYNTAX, 0},
    {"1e", 0, false, ATP_ERR_SYNTAX, 0},
    {"1e+", 0, false, ATP_ERR_SYNTAX, 0},
    {"1e99999", 0, false, ATP_ERR_SYNTAX, 0},
    {"1 2", 0, false, ATP_ERR_SYNTAX, 0},
    {".nan", 3, false, ATP_ERR_SYNTAX, 0},
    {"nan", 3, false, ATP_ERR_SYNTAX, 0},
    {".inf", 3, false, ATP_ERR_SYNTAX, 0},
    {"\"12\"", 0, false, ATP_ERR_SYNTAX, 0},
    {"[12]", 0, false, ATP_ERR_SYNTAX, 0},
    {"11111111111111111111111111111111111111111111111111111111111111111111111111", 0, false,
     ATP_ERR_SYNTAX, 0},
};

START_TEST(reads_numbers_exactly_or_not_at_all)
{
    const struct number_case *c = &NUMBERS[_i];
    char text[120];
    struct atp_error err = {0};
    uint64_t value = 0;
    (void)snprintf(text, sizeof(text), "n: %s", c->text);
    struct doc *doc = parse(text);
    const struct doc_number rule = {
        .what = "a number", .decimals = c->decimals, .rounds = c->rounds, .max = UINT64_C(1) << 62};
    ck_assert_msg(doc_number(doc_root(doc)->first, &rule, &value, &err) == c->status, "%s: %s",
                  c->text, err.text);
    ck_assert_uint_eq(value, c->value);
    ck_assert(c->status == ATP_OK || strstr(err.text, "expected a number") != NULL);
    doc_destroy(doc);
}
END_TEST

START_TEST(names_the_limit_that_a_number_leaves)
{
    struct doc *doc = parse("[0, 8]");
    const struct doc_number rule = {.what = "some", .decimals = 1, .min = 5, .max = 75};
    struct atp_error err = {0};
    uint64_t value;
    const struct doc_node *first = doc_root(doc)->first;
    ck_assert_int_eq(doc_number(first, &rule, &value, &err), ATP_ERR_INVALID);
    ck_assert_str_eq(err.text, "[0]: 0 is too small, expected some from 0.5 on");
    ck_assert_int_eq(doc_number(first->next, &rule, &value, &err), ATP_ERR_INVALID);
    ck_assert_str_eq(err.text, "[1]: 8 is too large, expected some up to 7.5");
    doc_destroy(doc);
}
END_TEST

START_TEST(sorts_a_map_by_its_table_of_keys)
{
    static const struct doc_key keys[] = {{"name", true}, {"bytes", true}, {"decide", false}};
    struct doc *doc = parse("- {bytes: 1, name: x}\n- {name: x}\n- {name: x, byte: 1}\n"
                            "- {name: x, colour: 1}\n- 7\n");
    const struct doc_node *values[3], *node = doc_root(doc)->first;
    struct atp_error err = {0};
    ck_assert_int_eq(doc_map(node, keys, 3, values, &err), ATP_OK);
    ck_assert_str_eq(values[0]->text, "x");
    ck_assert_str_eq(values[1]->text, "1");
    ck_assert_ptr_null(values[2]);
    node = node->next;
    ck_assert_int_eq(doc_map(node, keys, 3, values, &err), ATP_ERR_SYNTAX);
    ck_assert_str_eq(err.text, "[1]: the key \"bytes\" is missing");
    node = node->next;
    ck_assert_int_eq(doc_map(node, keys, 3, values, &err), ATP_ERR_SYNTAX);
    ck_assert_str_eq(err.text, "[2].byte: unknown key, did you mean \"bytes\"?");
    ck_assert_uint_eq(err.column, 13);
    node = node->next;
    ck_assert_int_eq(doc_map(node, keys, 3, values, &err), ATP_ERR_SYNTAX);
    ck_assert_str_eq(err.text, "[3].colour: unknown key, expected one of name, bytes, decide");
    node = node->next;
    ck_assert_int_eq(doc_map(node, keys, 3, values, &err), ATP_ERR_SYNTAX);
    ck_assert_str_eq(err.text, "[4]: this is a single value, expected a map with the key \"name\"");
    doc_destroy(doc);
}
END_TEST

START_TEST(reads_names_and_choices)
{
    static const char *const choices[] = {"keep", "swap", "recompute"};
    struct doc *doc = parse("- yes\n- ''\n- \"a\\nb\"\n- [x]\n- swap\n- drop\n");
    const struct doc_node *node = doc_root(doc)->first;
    struct atp_error err = {0};
    const char *name = NULL;
    uint32_t choice = 9;
    ck_assert_int_eq(doc_name(node, &name, &err), ATP_OK);
    ck_assert_str_eq(name, "yes");
    node = node->next;
    ck_assert_int_eq(doc_name(node, &name, &err), ATP_ERR_INVALID);
    node = node->next;
    ck_assert_int_eq(doc_name(node, &name, &err), ATP_ERR_INVALID);
    ck_assert_str_eq(err.text,
                     "[2]: the name \"a?b\" has a control character in it, expected none");
    ck_assert_int_eq(doc_text(node, &name, &err), ATP_OK);
    node = node->next;
    ck_assert_int_eq(doc_name(node, &name, &err), ATP_ERR_SYNTAX);
    node = node->next;
    ck_assert_int_eq(doc_choice(node, choices, 3, &choice, &err), ATP_OK);
    ck_assert_uint_eq(choice, 1);
    node = node->next;
    ck_assert_int_eq(doc_choice(node, choices, 3, &choice, &err), ATP_ERR_SYNTAX);
    ck_assert_str_eq(err.text, "[5]: \"drop\" is unknown, expected keep, swap or recompute");
    doc_destroy(doc);
}
END_TEST

START_TEST(asks_for_the_version_before_anything_else)
{
    struct doc *doc = parse("{future: 1, atp_x: 2}");
    struct atp_error err = {0};
    ck_assert_int_eq(doc_version(doc_root(doc), "atp_x", 1, &err), ATP_ERR_VERSION);
    ck_assert_str_eq(err.text, "atp_x: this is version 2 of the format, expected 1");
    ck_assert_int_eq(doc_version(doc_root(doc), "atp_y", 1, &err), ATP_ERR_SYNTAX);
    ck_assert_int_eq(doc_version(doc_root(doc), "atp_x", 2, &err), ATP_OK);
    doc_destroy(doc);
}
END_TEST

START_TEST(finds_the_lowest_id_of_a_name_in_its_group)
{
    struct doc_index index[] = {{"b", 0, 0}, {"a", 1, 1}, {"a", 0, 2}, {"b", 0, 3}, {"", 2, 4}};
    doc_index_sort(index, 5);
    ck_assert_uint_eq(doc_index_find(index, 5, "b", 0), 0);
    ck_assert_uint_eq(doc_index_find(index, 5, "a", 0), 2);
    ck_assert_uint_eq(doc_index_find(index, 5, "a", 1), 1);
    ck_assert_uint_eq(doc_index_find(index, 5, "b", 1), ATP_NONE);
    ck_assert_uint_eq(doc_index_find(index, 5, "z", 9), ATP_NONE);
    ck_assert_uint_eq(doc_index_find(NULL, 0, "a", 0), ATP_NONE);
}
END_TEST

START_TEST(shortens_between_characters)
{
    char text[200];
    memset(text, 'a', sizeof(text));
    memcpy(text + 59, "\xE5\xB1\x82", 3);
    text[199] = '\0';
    struct doc_short out = doc_shorten(text);
    ck_assert_uint_eq(strlen(out.text), 62);
    ck_assert_str_eq(out.text + 59, "...");
    ck_assert_str_eq(doc_shorten("a\tb").text, "a?b");
}
END_TEST

START_TEST(says_why_a_file_cannot_be_read)
{
    struct doc *doc;
    struct atp_error err = {0};
    ck_assert_int_eq(doc_read("/nonexistent.yaml", &doc, &err), ATP_ERR_IO);
    ck_assert_ptr_null(doc);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent.yaml"));
    ck_assert_int_eq(doc_read("/tmp", &doc, &err), ATP_ERR_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("yaml_reader");
    TCase *cases = tcase_create("yaml_reader");
    tcase_set_timeout(cases, 200);
    tcase_add_test(cases, knows_line_column_and_path_of_every_node);
    tcase_add_test(cases, counts_columns_in_characters);
    tcase_add_loop_test(cases, refuses_with_place_and_path, 0,
                        (int)(sizeof(REFUSED) / sizeof(REFUSED[0])));
    tcase_add_test(cases, refuses_nul_bytes_and_too_much_text);
    tcase_add_test(cases, ends_soon_on_hostile_texts);
    tcase_add_loop_test(cases, reads_numbers_exactly_or_not_at_all, 0,
                        (int)(sizeof(NUMBERS) / sizeof(NUMBERS[0])));
    tcase_add_test(cases, names_the_limit_that_a_number_leaves);
    tcase_add_test(cases, sorts_a_map_by_its_table_of_keys);
    tcase_add_test(cases, reads_names_and_choices);
    tcase_add_test(cases, asks_for_the_version_before_anything_else);
    tcase_add_test(cases, finds_the_lowest_id_of_a_name_in_its_group);
    tcase_add_test(cases, shortens_between_characters);
    tcase_add_test(cases, says_why_a_file_cannot_be_read);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
