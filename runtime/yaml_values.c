/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed values from the nodes of a document, and the errors that name their place. Numbers are read
 * as decimal digits and scaled as digits, so that 12.0e9 bytes and 0.001 us are exact integers
 * without a floating-point step in between.
 */
#include "yaml_reader.h"

#include "fail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 64
#define WORD_MAX   32U

struct doc_short doc_shorten(const char *text)
{
    struct doc_short out;
    const size_t room = sizeof(out.text) - 4;
    size_t length = strlen(text), kept = length;
    if (kept > room) {
        kept = room;
        while (kept > 0 && ((unsigned char)text[kept] & 0xC0U) == 0x80U) {
            kept--;
        }
    }
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)text[i];
        out.text[i] = text[i];
        if (c < 0x20U || c == 0x7FU) {
            out.text[i] = '?';
        }
    }
    (void)snprintf(out.text + kept, sizeof(out.text) - kept, "%s", kept < length ? "..." : "");
    return out;
}

void doc_path(const struct doc_node *node, char *out_text, size_t size)
{
    const struct doc_node *chain[DOC_DEPTH_MAX + 2];
    size_t depth = 0, used = 0;
    for (; node->parent != NULL && depth < sizeof(chain) / sizeof(chain[0]); node = node->parent) {
        chain[depth++] = node;
    }
    if (depth == 0) {
        (void)snprintf(out_text, size, "top level");
    }
    while (depth > 0 && used < size) {
        const struct doc_node *link = chain[--depth];
        int written;
        if (link->key != NULL) {
            written = snprintf(out_text + used, size - used, "%s%s", used > 0 ? "." : "",
                               doc_shorten(link->key).text);
        } else {
            written = snprintf(out_text + used, size - used, "[%u]", link->index);
        }
        used += written > 0 ? (size_t)written : 0;
    }
}

enum atp_status doc_fail(const struct doc_node *node, struct atp_error *err, enum atp_status status,
                         const char *format, ...)
{
    if (err != NULL) {
        char path[120], what[sizeof(err->text)];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        doc_path(node, path, sizeof(path));
        (void)atp_fail(err, status, "%s: %s", path, what);
        err->line = node->line;
        err->column = node->column;
    }
    return status;
}

static const char *kind_name(const struct doc_node *node)
{
    switch (node->kind) {
    case DOC_SCALAR:
        return "a single value";
    case DOC_LIST:
        return "a list";
    case DOC_MAP:
        return "a map";
    }
    return "something else";
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance of two words of at most WORD_MAX letters; larger words are far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], length_a = strlen(a), length_b = strlen(b);
    if (length_a > WORD_MAX || length_b > WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= length_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= length_a; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[length_b];
}

static enum atp_status fail_unknown_key(const struct doc_node *entry, const struct doc_key *keys,
                                        uint32_t key_count, struct atp_error *err)
{
    const char *near = NULL;
    size_t best = 3;
    for (uint32_t k = 0; k < key_count; k++) {
        size_t far = distance(entry->key, keys[k].name);
        if (far < best && far < strlen(keys[k].name)) {
            best = far;
            near = keys[k].name;
        }
    }
    if (near != NULL) {
        (void)doc_fail(entry, err, ATP_ERR_SYNTAX, "unknown key, did you mean \"%s\"?", near);
    } else {
        char list[300] = "";
        size_t used = 0;
        for (uint32_t k = 0; k < key_count && used < sizeof(list); k++) {
            int written =
                snprintf(list + used, sizeof(list) - used, "%s%s", k > 0 ? ", " : "", keys[k].name);
            used += written > 0 ? (size_t)written : 0;
        }
        (void)doc_fail(entry, err, ATP_ERR_SYNTAX, "unknown key, expected one of %s", list);
    }
    if (err != NULL) {
        err->line = entry->key_line;
        err->column = entry->key_column;
    }
    return ATP_ERR_SYNTAX;
}

enum atp_status doc_map(const struct doc_node *node, const struct doc_key *keys, uint32_t key_count,
                        const struct doc_node **out_values, struct atp_error *err)
{
    for (uint32_t k = 0; k < key_count; k++) {
        out_values[k] = NULL;
    }
    if (node->kind != DOC_MAP) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "this is %s, expected a map with the key \"%s\"",
                        kind_name(node), keys[0].name);
    }
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next) {
        uint32_t k = 0;
        while (k < key_count && strcmp(entry->key, keys[k].name) != 0) {
            k++;
        }
        if (k == key_count) {
            return fail_unknown_key(entry, keys, key_count, err);
        }
        out_values[k] = entry;
    }
    for (uint32_t k = 0; k < key_count; k++) {
        if (keys[k].required && out_values[k] == NULL) {
            return doc_fail(node, err, ATP_ERR_SYNTAX, "the key \"%s\" is missing", keys[k].name);
        }
    }
    return ATP_OK;
}

enum atp_status doc_version(const struct doc_node *root, const char *key, uint64_t version,
                            struct atp_error *err)
{
    const struct doc_number rule = {.what = "a version number", .max = UINT32_MAX};
    uint64_t found = 0;
    const struct doc_node *entry = root->first;
    while (root->kind == DOC_MAP && entry != NULL && strcmp(entry->key, key) != 0) {
        entry = entry->next;
    }
    if (root->kind != DOC_MAP || entry == NULL) {
        return doc_fail(root, err, ATP_ERR_SYNTAX,
                        "the key \"%s\" is missing, expected \"%s: %" PRIu64 "\"", key, key,
                        version);
    }
    ATP_TRY(doc_number(entry, &rule, &found, err));
    if (found != version) {
        return doc_fail(entry, err, ATP_ERR_VERSION,
                        "this is version %" PRIu64 " of the format, expected %" PRIu64, found,
                        version);
    }
    return ATP_OK;
}

enum atp_status doc_list(const struct doc_node *node, struct atp_error *err)
{
    if (node->kind != DOC_LIST) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "this is %s, expected a list", kind_name(node));
    }
    return ATP_OK;
}

/* Digits and where their decimal point stands, counted from their left end. */
struct decimal {
    char digits[DIGITS_MAX];
    int count, point;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *take_digits(const char *text, struct decimal *out)
{
    while (is_digit(*text) && out->count < DIGITS_MAX) {
        out->digits[out->count++] = *text++;
    }
    return text;
}

/* `12`, `12.5`, `12e9`, `12.5e+9`. A number does not begin with a superfluous zero: other readers
 * take 010 for eight. */
static bool parse_decimal(const char *text, struct decimal *out)
{
    out->count = 0;
    const char *end = take_digits(text, out);
    out->point = out->count;
    if (out->count == 0 || (text[0] == '0' && out->count > 1)) {
        return false;
    }
    if (*end == '.') {
        end = take_digits(end + 1, out);
    }
    if (*end == 'e' || *end == 'E') {
        int exponent = 0, sign = 1, count = 0;
        end++;
        if (*end == '+' || *end == '-') {
            sign = *end++ == '-' ? -1 : 1;
        }
        for (; is_digit(*end) && count < 4; count++) {
            exponent = exponent * 10 + (*end++ - '0');
        }
        if (count == 0) {
            return false;
        }
        out->point += sign * exponent;
    }
    return *end == '\0';
}

enum scaled { SCALED, SCALED_TOO_LARGE, SCALED_NOT_EXACT };

static enum scaled scale_decimal(const struct decimal *number, const struct doc_number *rule,
                                 uint64_t *out_value)
{
    int point = number->point + (int)rule->decimals;
    uint64_t value = 0;
    bool any_left = false;
    for (int i = 0; i < point; i++) {
        uint64_t digit = i < number->count ? (uint64_t)(number->digits[i] - '0') : 0;
        if (value > (UINT64_MAX - digit) / 10) {
            return SCALED_TOO_LARGE;
        }
        value = value * 10 + digit;
    }
    for (int i = point > 0 ? point : 0; i < number->count; i++) {
        any_left = any_left || number->digits[i] != '0';
    }
    if (any_left && !rule->rounds) {
        return SCALED_NOT_EXACT;
    }
    if (point >= 0 && point < number->count && number->digits[point] >= '5') {
        if (value == UINT64_MAX) {
            return SCALED_TOO_LARGE;
        }
        value++;
    }
    *out_value = value;
    return SCALED;
}

/* value / 10^decimals as text, for messages. */
static struct doc_short unscaled(uint64_t value, uint32_t decimals)
{
    struct doc_short out;
    uint64_t unit = 1;
    for (uint32_t i = 0; i < decimals; i++) {
        unit *= 10;
    }
    if (value % unit == 0) {
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu64, value / unit);
    } else {
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu64 ".%0*" PRIu64, value / unit,
                       (int)decimals, value % unit);
    }
    return out;
}

enum atp_status doc_number(const struct doc_node *node, const struct doc_number *rule,
                           uint64_t *out_value, struct atp_error *err)
{
    struct decimal number;
    if (node->kind != DOC_SCALAR) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "this is %s, expected %s", kind_name(node),
                        rule->what);
    }
    struct doc_short text = doc_shorten(node->text);
    if (!node->plain) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "\"%s\" is text, expected %s without quotes",
                        text.text, rule->what);
    }
    if (node->text[0] == '-' && parse_decimal(node->text + 1, &number)) {
        return doc_fail(node, err, ATP_ERR_INVALID, "%s is negative, expected %s", text.text,
                        rule->what);
    }
    if (!parse_decimal(node->text, &number)) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "\"%s\" is not a number, expected %s", text.text,
                        rule->what);
    }
    uint64_t value = 0;
    enum scaled scaled = scale_decimal(&number, rule, &value);
    if (scaled == SCALED_NOT_EXACT) {
        return doc_fail(node, err, ATP_ERR_INVALID, "%s has too many decimals, expected %s",
                        text.text, rule->what);
    }
    if (scaled == SCALED_TOO_LARGE || value > rule->max) {
        return doc_fail(node, err, ATP_ERR_INVALID, "%s is too large, expected %s up to %s",
                        text.text, rule->what, unscaled(rule->max, rule->decimals).text);
    }
    if (value < rule->min) {
        return doc_fail(node, err, ATP_ERR_INVALID, "%s is too small, expected %s from %s on",
                        text.text, rule->what, unscaled(rule->min, rule->decimals).text);
    }
    *out_value = value;
    return ATP_OK;
}

static enum atp_status read_text(const struct doc_node *node, const char *what, uint32_t max_bytes,
                                 bool is_line, struct atp_error *err)
{
    if (node->kind != DOC_SCALAR) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "this is %s, expected a %s", kind_name(node),
                        what);
    }
    size_t length = strlen(node->text);
    struct doc_short text = doc_shorten(node->text);
    if (length == 0) {
        return doc_fail(node, err, ATP_ERR_INVALID, "the %s is empty, expected 1 to %u bytes", what,
                        max_bytes);
    }
    if (length > max_bytes) {
        return doc_fail(node, err, ATP_ERR_INVALID, "\"%s\" has %zu bytes, expected 1 to %u",
                        text.text, length, max_bytes);
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)node->text[i];
        bool is_space = !is_line && (c == '\n' || c == '\t');
        if ((c < 0x20U && !is_space) || c == 0x7FU) {
            return doc_fail(node, err, ATP_ERR_INVALID,
                            "the %s \"%s\" has a control character in it, expected none", what,
                            text.text);
        }
    }
    return ATP_OK;
}

enum atp_status doc_name(const struct doc_node *node, const char **out_name, struct atp_error *err)
{
    ATP_TRY(read_text(node, "name", DOC_NAME_MAX, true, err));
    *out_name = node->text;
    return ATP_OK;
}

enum atp_status doc_text(const struct doc_node *node, const char **out_text, struct atp_error *err)
{
    ATP_TRY(read_text(node, "text", DOC_TEXT_MAX, false, err));
    *out_text = node->text;
    return ATP_OK;
}

enum atp_status doc_choice(const struct doc_node *node, const char *const *choices,
                           uint32_t choice_count, uint32_t *out_choice, struct atp_error *err)
{
    char list[200] = "";
    size_t used = 0;
    for (uint32_t c = 0; c < choice_count; c++) {
        if (node->kind == DOC_SCALAR && strcmp(node->text, choices[c]) == 0) {
            *out_choice = c;
            return ATP_OK;
        }
        const char *between = c == 0 ? "" : c + 1 < choice_count ? ", " : " or ";
        int written = used < sizeof(list)
                          ? snprintf(list + used, sizeof(list) - used, "%s%s", between, choices[c])
                          : 0;
        used += written > 0 ? (size_t)written : 0;
    }
    if (node->kind != DOC_SCALAR) {
        return doc_fail(node, err, ATP_ERR_SYNTAX, "this is %s, expected %s", kind_name(node),
                        list);
    }
    return doc_fail(node, err, ATP_ERR_SYNTAX, "\"%s\" is unknown, expected %s",
                    doc_shorten(node->text).text, list);
}

static int compare_entries(const void *left, const void *right)
{
    const struct doc_index *a = left, *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    int order = strcmp(a->name, b->name);
    if (order != 0) {
        return order;
    }
    return (a->id > b->id) - (a->id < b->id);
}

void doc_index_sort(struct doc_index *index, size_t count)
{
    if (count > 1) {
        qsort(index, count, sizeof(*index), compare_entries);
    }
}

uint32_t doc_index_find(const struct doc_index *index, size_t count, const char *name,
                        uint32_t group)
{
    const struct doc_index key = {.name = name, .group = group, .id = 0};
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_entries(&index[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == count || index[low].group != group || strcmp(index[low].name, name) != 0) {
        return ATP_NONE;
    }
    return index[low].id;
}
