/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The schemas name exactly the keys that the readers take, and require exactly those that they
 * require. JSON is YAML, so the readers' own reader reads the schemas.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_yaml_keys.h"
#include "profile_file.h"

static const char *folder = "schemas";

static const struct doc_node *find(const struct doc_node *map, const char *key)
{
    for (const struct doc_node *entry = map != NULL ? map->first : NULL; entry != NULL;
         entry = entry->next) {
        if (entry->key != NULL && strcmp(entry->key, key) == 0) {
            return entry;
        }
    }
    return NULL;
}

static struct doc *read_schema(const char *name)
{
    char path[4096];
    struct doc *doc;
    struct atp_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    enum atp_status status = doc_read(path, &doc, &err);
    ck_assert_msg(status == ATP_OK, "%s:%u:%u: %s", path, err.line, err.column, err.text);
    return doc;
}

static bool is_listed(const struct doc_node *list, const char *text)
{
    for (const struct doc_node *entry = list != NULL ? list->first : NULL; entry != NULL;
         entry = entry->next) {
        if (entry->text != NULL && strcmp(entry->text, text) == 0) {
            return true;
        }
    }
    return false;
}

static void expect_same_keys(const struct doc_node *schema, const char *what,
                             const struct doc_key *keys, uint32_t count)
{
    ck_assert_msg(schema != NULL, "%s: the schema has no such map", what);
    const struct doc_node *properties = find(schema, "properties");
    const struct doc_node *required = find(schema, "required");
    const struct doc_node *additional = find(schema, "additionalProperties");
    uint32_t required_count = 0;
    ck_assert_msg(additional != NULL && additional->text != NULL &&
                      strcmp(additional->text, "false") == 0,
                  "%s: the schema lets unknown keys pass", what);
    ck_assert_ptr_nonnull(properties);
    for (uint32_t k = 0; k < count; k++) {
        ck_assert_msg(find(properties, keys[k].name) != NULL, "%s: the schema lacks %s", what,
                      keys[k].name);
        ck_assert_msg(is_listed(required, keys[k].name) == keys[k].required,
                      "%s: the reader and the schema differ on whether %s is required", what,
                      keys[k].name);
        required_count += keys[k].required;
    }
    ck_assert_msg(properties->count == count, "%s: the schema has %u keys, the reader %u", what,
                  properties->count, count);
    ck_assert_uint_eq(required != NULL ? required->count : 0, required_count);
}

START_TEST(profile_schema_has_the_keys_of_the_reader)
{
    static const struct {
        const char *name;
        enum profile_map map;
    } maps[] = {{"device", PROFILE_MAP_DEVICE},
                {"host", PROFILE_MAP_HOST},
                {"tensor", PROFILE_MAP_TENSOR},
                {"step", PROFILE_MAP_STEP}};
    struct doc *doc = read_schema("profile.v1.schema.json");
    uint32_t count;
    const struct doc_key *keys = profile_keys(PROFILE_MAP_TOP, &count);
    expect_same_keys(doc_root(doc), "top level", keys, count);
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        keys = profile_keys(maps[i].map, &count);
        expect_same_keys(find(find(doc_root(doc), "definitions"), maps[i].name), maps[i].name, keys,
                         count);
    }
    doc_destroy(doc);
}
END_TEST

START_TEST(plan_schema_has_the_keys_of_the_reader)
{
    static const struct {
        const char *name;
        enum plan_map map;
    } maps[] = {
        {"predicted", PLAN_MAP_PREDICTED}, {"tensor", PLAN_MAP_TENSOR}, {"step", PLAN_MAP_STEP}};
    struct doc *doc = read_schema("plan.v1.schema.json");
    uint32_t count;
    const struct doc_key *keys = plan_keys(PLAN_MAP_TOP, &count);
    expect_same_keys(doc_root(doc), "top level", keys, count);
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        keys = plan_keys(maps[i].map, &count);
        expect_same_keys(find(find(doc_root(doc), "definitions"), maps[i].name), maps[i].name, keys,
                         count);
    }
    doc_destroy(doc);
}
END_TEST

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : folder;
    Suite *suite = suite_create("schemas");
    TCase *cases = tcase_create("schemas");
    tcase_add_test(cases, profile_schema_has_the_keys_of_the_reader);
    tcase_add_test(cases, plan_schema_has_the_keys_of_the_reader);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
