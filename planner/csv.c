/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "csv.h"

#include "fail.h"

#include <string.h>

/* More columns than anybody means, so that looking for a name twice is cheap. */
#define COLUMNS_MAX 64U

struct parser {
    const char *at, *end;
    uint32_t line, column;
    uint32_t node_count;
    struct region *region;
    struct atp_error *err;
    struct doc_node *rows;
    uint32_t column_count; /* 0: before the header */
    struct doc_node *header[COLUMNS_MAX];
};

/* Fails where the parser stands. */
static enum atp_status fail_at(const struct parser *p, uint32_t line, uint32_t column,
                               const char *text)
{
    (void)atp_fail(p->err, ATP_ERR_SYNTAX, "%s", text);
    if (p->err != NULL) {
        p->err->line = line;
        p->err->column = column;
    }
    return ATP_ERR_SYNTAX;
}

static void advance(struct parser *p)
{
    unsigned char c = (unsigned char)*p->at++;
    if (c == '\n') {
        p->line++;
        p->column = 1;
    } else {
        p->column += (c & 0xC0U) != 0x80U; /* characters, not bytes */
    }
}

static bool is_at_line_end(const struct parser *p)
{
    return p->at == p->end || *p->at == '\n' ||
           (*p->at == '\r' && (p->at + 1 == p->end || p->at[1] == '\n'));
}

/* A line of blanks, or one that begins with #. */
static bool is_idle_line(const struct parser *p)
{
    const char *at = p->at;
    while (at < p->end && (*at == ' ' || *at == '\t' || *at == '\r')) {
        at++;
    }
    return at == p->end || *at == '\n' || *p->at == '#';
}

/* Blanks around a value that is not quoted do not belong to it. */
static enum atp_status read_bare(struct parser *p, char *out)
{
    size_t length = 0;
    for (; !is_at_line_end(p) && *p->at != ','; advance(p)) {
        if (*p->at == '"') {
            return fail_at(p, p->line, p->column,
                           "a quote within a value, expected the whole value in quotes");
        }
        out[length++] = *p->at;
    }
    while (length > 0 && (out[length - 1] == ' ' || out[length - 1] == '\t')) {
        length--;
    }
    out[length] = '\0';
    return ATP_OK;
}

static enum atp_status read_quoted(struct parser *p, char *out)
{
    uint32_t line = p->line, column = p->column;
    size_t length = 0;
    advance(p);
    for (;; advance(p)) {
        if (p->at == p->end) {
            return fail_at(p, line, column, "the value has no closing quote");
        }
        if (*p->at == '"') {
            advance(p);
            if (p->at == p->end || *p->at != '"') {
                break;
            }
        }
        out[length++] = *p->at;
    }
    out[length] = '\0';
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) {
        advance(p);
    }
    if (!is_at_line_end(p) && *p->at != ',') {
        return fail_at(p, p->line, p->column,
                       "expected a comma or the end of the line behind a quote");
    }
    return ATP_OK;
}

/* No value is longer: to its closing quote, or to the end of the line. */
static size_t value_size(const struct parser *p)
{
    const char *at = p->at;
    if (at == p->end || *at != '"') {
        return strcspn(at, "\n,");
    }
    for (at++; at < p->end && (*at != '"' || at[1] == '"'); at++) {
        at += *at == '"';
    }
    return (size_t)(at - p->at);
}

/* One value; `parent` is its row, NULL for the header. */
static enum atp_status read_value(struct parser *p, struct doc_node *parent,
                                  struct doc_node **out_node)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) {
        advance(p);
    }
    struct doc_node *node = REGION_NEW(p->region, struct doc_node, 1);
    char *text = REGION_NEW(p->region, char, value_size(p) + 1);
    *node = (struct doc_node){.kind = DOC_SCALAR,
                              .plain = true,
                              .line = p->line,
                              .column = p->column,
                              .text = text,
                              .parent = parent};
    if (++p->node_count > DOC_NODES_MAX) {
        return atp_fail(p->err, ATP_ERR_LIMIT, "more than %u values", DOC_NODES_MAX);
    }
    *out_node = node;
    return p->at < p->end && *p->at == '"' ? read_quoted(p, text) : read_bare(p, text);
}

static enum atp_status add_column(struct parser *p, struct doc_node *name)
{
    if (p->column_count == COLUMNS_MAX) {
        return fail_at(p, name->line, name->column, "the header has more than 64 names");
    }
    if (name->text[0] == '\0') {
        return fail_at(p, name->line, name->column, "a name of the header is empty");
    }
    for (uint32_t i = 0; i < p->column_count; i++) {
        if (strcmp(p->header[i]->text, name->text) == 0) {
            return fail_at(p, name->line, name->column, "the header has this name twice");
        }
    }
    p->header[p->column_count++] = name;
    return ATP_OK;
}

/* A line; what it ends with stays. */
static enum atp_status read_header(struct parser *p)
{
    for (;; advance(p)) {
        struct doc_node *name = NULL;
        ATP_TRY(read_value(p, NULL, &name));
        ATP_TRY(add_column(p, name));
        if (is_at_line_end(p)) {
            return ATP_OK;
        }
    }
}

static enum atp_status read_row(struct parser *p, struct doc_node *row)
{
    struct doc_node **link = (struct doc_node **)&row->first;
    for (;; advance(p)) {
        struct doc_node *value = NULL;
        ATP_TRY(read_value(p, row, &value));
        if (row->count == p->column_count) {
            return fail_at(p, value->line, value->column,
                           "the row has more values than the header has names");
        }
        const struct doc_node *name = p->header[row->count];
        value->key = name->text;
        value->key_line = name->line;
        value->key_column = name->column;
        value->index = row->count++;
        *link = value;
        link = (struct doc_node **)&value->next;
        if (is_at_line_end(p)) {
            break;
        }
    }
    if (row->count < p->column_count) {
        return fail_at(p, p->line, p->column, "the row has fewer values than the header has names");
    }
    return ATP_OK;
}

static enum atp_status read_lines(struct parser *p)
{
    struct doc_node **link = (struct doc_node **)&p->rows->first;
    while (p->at < p->end) {
        if (is_idle_line(p)) {
            while (p->at < p->end && *p->at != '\n') {
                advance(p);
            }
        } else if (p->column_count == 0) {
            p->rows->line = p->line;
            p->rows->column = p->column;
            ATP_TRY(read_header(p));
        } else {
            struct doc_node *row = REGION_NEW(p->region, struct doc_node, 1);
            *row = (struct doc_node){.kind = DOC_MAP,
                                     .line = p->line,
                                     .column = p->column,
                                     .index = p->rows->count++,
                                     .parent = p->rows};
            ATP_TRY(read_row(p, row));
            *link = row;
            link = (struct doc_node **)&row->next;
        }
        while (p->at < p->end && (*p->at == '\r' || *p->at == '\n')) {
            bool is_over = *p->at == '\n';
            advance(p);
            if (is_over) {
                break;
            }
        }
    }
    return ATP_OK;
}

enum atp_status csv_parse(const char *text, size_t size, struct region *region,
                          const struct doc_node **out_rows, struct atp_error *err)
{
    struct parser p = {.line = 1, .column = 1, .region = region, .err = err};
    if (size > DOC_BYTES_MAX) {
        return atp_fail(err, ATP_ERR_LIMIT, "more than %zu bytes", DOC_BYTES_MAX);
    }
    /* Terminated, for strcspn. */
    char *copy = REGION_NEW(region, char, size + 1);
    memcpy(copy, text, size);
    p.at = copy;
    p.end = copy + size;
    const char *nul = memchr(copy, '\0', size);
    if (nul != NULL) {
        return fail_at(&p, 1, 1, "a NUL character, expected text");
    }
    if (size >= 3 && memcmp(copy, "\xef\xbb\xbf", 3) == 0) {
        p.at += 3;
    }
    struct doc_node *root = REGION_NEW(region, struct doc_node, 1);
    *root = (struct doc_node){.kind = DOC_MAP, .line = 1, .column = 1, .count = 1};
    p.rows = REGION_NEW(region, struct doc_node, 1);
    *p.rows =
        (struct doc_node){.kind = DOC_LIST, .line = 1, .column = 1, .key = "rows", .parent = root};
    ATP_TRY(read_lines(&p));
    *out_rows = p.rows;
    return ATP_OK;
}
