/* SPDX-License-Identifier: Apache-2.0
 *
 * libyaml's events become a tree whose nodes never move: they and their texts are cut from blocks
 * that go together. Events rather than libyaml's own documents, because those follow aliases into
 * cycles and keep duplicate keys, and because depth must be capped before libyaml's cost per nested
 * bracket, which grows with the depth, adds up. Duplicate keys are found by sorting, n log n.
 */
#include "yaml_reader.h"

#include "fail.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define BLOCK_BYTES ((size_t)128 << 10)

struct block {
    struct block *previous;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct doc {
    struct block *last;
    struct doc_node *root;
    uint32_t node_count;
};

struct builder {
    struct doc *doc;
    struct doc_node *open;        /* innermost list or map that is not complete; NULL outside */
    const struct doc_node **tail; /* where the next entry of `open` is linked */
    struct {
        struct doc_node *open;
        const struct doc_node **tail;
    } around[DOC_DEPTH_MAX]; /* both, for the lists and maps around it */
    uint32_t depth;
    const char *key; /* read, and its value not yet; NULL: none */
    uint32_t key_line, key_column;
    struct atp_error *err;
};

static void *take(struct doc *doc, size_t bytes)
{
    const size_t unit = alignof(max_align_t);
    size_t rounded = (bytes + unit - 1) / unit * unit;
    if (doc->last == NULL || doc->last->size - doc->last->used < rounded) {
        size_t size = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
        struct block *block = malloc(sizeof(*block) + size);
        if (block == NULL) {
            return NULL;
        }
        block->previous = doc->last;
        block->size = size;
        block->used = 0;
        doc->last = block;
    }
    void *taken = doc->last->bytes + doc->last->used;
    doc->last->used += rounded;
    return taken;
}

void *doc_take(struct doc *doc, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / 2 / size) {
        return NULL;
    }
    void *taken = take(doc, count * size);
    return taken != NULL ? memset(taken, 0, count * size) : NULL;
}

void doc_destroy(struct doc *doc)
{
    if (doc == NULL) {
        return;
    }
    while (doc->last != NULL) {
        struct block *block = doc->last;
        doc->last = block->previous;
        free(block);
    }
    free(doc);
}

const struct doc_node *doc_root(const struct doc *doc)
{
    return doc->root;
}

static uint32_t place(size_t zero_based)
{
    return zero_based < UINT32_MAX ? (uint32_t)zero_based + 1 : UINT32_MAX;
}

static void put_place(struct atp_error *err, yaml_mark_t mark)
{
    if (err != NULL) {
        err->line = place(mark.line);
        err->column = place(mark.column);
    }
}

/* Fails at `mark` with the path of what is being read. */
static enum atp_status fail_at(const struct builder *b, yaml_mark_t mark, enum atp_status status,
                               const char *what)
{
    struct doc_node here = {.parent = b->open};
    if (b->open == NULL) {
        (void)doc_fail(&here, b->err, status, "%s", what);
    } else if (b->key != NULL) {
        here.key = b->key;
        (void)doc_fail(&here, b->err, status, "%s", what);
    } else {
        (void)doc_fail(b->open, b->err, status, "%s", what);
    }
    put_place(b->err, mark);
    return status;
}

static enum atp_status no_memory(const struct builder *b)
{
    return atp_fail(b->err, ATP_ERR_NO_MEMORY, "no memory for a document of %u nodes",
                    b->doc->node_count);
}

static enum atp_status copy_scalar(struct builder *b, const yaml_event_t *event,
                                   const char **out_text)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, 0, length) != NULL) {
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX, "a NUL character is not allowed");
    }
    char *text = take(b->doc, length + 1);
    if (text == NULL) {
        return no_memory(b);
    }
    memcpy(text, value, length);
    text[length] = '\0';
    *out_text = text;
    return ATP_OK;
}

/* Links a new node behind the entries that `open` has so far. */
static enum atp_status add_node(struct builder *b, const yaml_event_t *event, enum doc_kind kind,
                                const char *text, struct doc_node **out_node)
{
    if (b->doc->node_count == DOC_NODES_MAX) {
        return fail_at(b, event->start_mark, ATP_ERR_LIMIT, "the document has too many nodes");
    }
    struct doc_node *node = take(b->doc, sizeof(*node));
    if (node == NULL) {
        return no_memory(b);
    }
    *node = (struct doc_node){
        .kind = kind,
        .line = place(event->start_mark.line),
        .column = place(event->start_mark.column),
        .key = b->key,
        .key_line = b->key_line,
        .key_column = b->key_column,
        .parent = b->open,
        .text = text,
        .plain = kind == DOC_SCALAR && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
    };
    b->doc->node_count++;
    b->key = NULL;
    if (b->open == NULL) {
        b->doc->root = node;
    } else {
        node->index = b->open->count++;
        *b->tail = node;
        b->tail = &node->next;
    }
    *out_node = node;
    return ATP_OK;
}

static enum atp_status on_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = NULL;
    ATP_TRY(copy_scalar(b, event, &text));
    if (b->open != NULL && b->open->kind == DOC_MAP && b->key == NULL) {
        b->key = text;
        b->key_line = place(event->start_mark.line);
        b->key_column = place(event->start_mark.column);
        return ATP_OK;
    }
    struct doc_node *node;
    return add_node(b, event, DOC_SCALAR, text, &node);
}

static enum atp_status on_start(struct builder *b, const yaml_event_t *event, enum doc_kind kind)
{
    if (b->open != NULL && b->open->kind == DOC_MAP && b->key == NULL) {
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX,
                       "a key is a list or a map, expected a name");
    }
    if (b->depth == DOC_DEPTH_MAX) {
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX, "lists and maps nest too deep");
    }
    struct doc_node *node = NULL, *outer = b->open;
    ATP_TRY(add_node(b, event, kind, NULL, &node));
    b->around[b->depth].open = outer;
    b->around[b->depth++].tail = b->tail;
    b->open = node;
    b->tail = &node->first;
    return ATP_OK;
}

/* The entry of `map` whose key was there before and that comes first; NULL when there is none. */
static const struct doc_node *find_duplicate(const struct doc_node *map,
                                             const struct doc_index *sorted,
                                             const struct doc_node **out_earlier)
{
    uint32_t again = ATP_NONE, before = ATP_NONE;
    for (uint32_t i = 1; i < map->count; i++) {
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0 && sorted[i].id < again) {
            again = sorted[i].id;
            before = sorted[i - 1].id;
        }
    }
    const struct doc_node *found = NULL;
    for (const struct doc_node *entry = map->first; entry != NULL; entry = entry->next) {
        *out_earlier = entry->index == before ? entry : *out_earlier;
        found = entry->index == again ? entry : found;
    }
    return found;
}

static enum atp_status check_duplicates(const struct builder *b, const struct doc_node *map)
{
    struct doc_index few[16], *index = few;
    if (map->count > 16) {
        index = malloc(map->count * sizeof(*index));
        if (index == NULL) {
            return no_memory(b);
        }
    }
    uint32_t count = 0;
    for (const struct doc_node *entry = map->first; entry != NULL; entry = entry->next, count++) {
        index[count] = (struct doc_index){.name = entry->key, .id = count};
    }
    doc_index_sort(index, count);
    const struct doc_node *earlier = map, *again = find_duplicate(map, index, &earlier);
    if (index != few) {
        free(index);
    }
    if (again == NULL) {
        return ATP_OK;
    }
    (void)doc_fail(again, b->err, ATP_ERR_SYNTAX, "the key appears twice, first in line %u",
                   earlier->key_line);
    if (b->err != NULL) {
        b->err->line = again->key_line;
        b->err->column = again->key_column;
    }
    return ATP_ERR_SYNTAX;
}

static enum atp_status on_end(struct builder *b)
{
    assert(b->open != NULL);
    if (b->open->kind == DOC_MAP) {
        ATP_TRY(check_duplicates(b, b->open));
    }
    b->depth--;
    b->tail = b->around[b->depth].tail;
    b->open = b->around[b->depth].open;
    return ATP_OK;
}

static enum atp_status refuse_properties(const struct builder *b, const yaml_event_t *event,
                                         const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL) {
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX, "anchors are not allowed");
    }
    if (tag != NULL) {
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX, "tags are not allowed");
    }
    return ATP_OK;
}

static enum atp_status on_event(struct builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root != NULL) {
            return fail_at(b, event->start_mark, ATP_ERR_SYNTAX,
                           "a second document begins here, expected one");
        }
        return ATP_OK;
    case YAML_ALIAS_EVENT:
        return fail_at(b, event->start_mark, ATP_ERR_SYNTAX, "aliases are not allowed");
    case YAML_SCALAR_EVENT:
        ATP_TRY(refuse_properties(b, event, event->data.scalar.anchor, event->data.scalar.tag));
        return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        ATP_TRY(refuse_properties(b, event, event->data.sequence_start.anchor,
                                  event->data.sequence_start.tag));
        return on_start(b, event, DOC_LIST);
    case YAML_MAPPING_START_EVENT:
        ATP_TRY(refuse_properties(b, event, event->data.mapping_start.anchor,
                                  event->data.mapping_start.tag));
        return on_start(b, event, DOC_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(b);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return ATP_OK;
    }
    return ATP_OK;
}

static yaml_mark_t mark_of_offset(const char *text, size_t size, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < size; i++) {
        if (text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)text[i] & 0xC0U) != 0x80U) {
            mark.column++;
        }
    }
    return mark;
}

static enum atp_status fail_parser(const struct builder *b, const yaml_parser_t *parser,
                                   const char *text, size_t size)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return no_memory(b);
    }
    char what[200];
    yaml_mark_t mark = parser->problem_mark;
    const char *problem = parser->problem != NULL ? parser->problem : "unknown problem";
    if (parser->error == YAML_READER_ERROR) {
        mark = mark_of_offset(text, size, parser->problem_offset);
    }
    if (parser->context != NULL) {
        (void)snprintf(what, sizeof(what), "not YAML: %s, %s", parser->context, problem);
    } else {
        (void)snprintf(what, sizeof(what), "not YAML: %s", problem);
    }
    return fail_at(b, mark, ATP_ERR_SYNTAX, what);
}

static enum atp_status build(struct builder *b, yaml_parser_t *parser, const char *text,
                             size_t size)
{
    for (bool at_end = false; !at_end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            return fail_parser(b, parser, text, size);
        }
        at_end = event.type == YAML_STREAM_END_EVENT;
        enum atp_status status = on_event(b, &event);
        yaml_event_delete(&event);
        ATP_TRY(status);
    }
    if (b->doc->root == NULL) {
        return fail_at(b, (yaml_mark_t){0}, ATP_ERR_SYNTAX, "the document is empty");
    }
    return ATP_OK;
}

enum atp_status doc_parse(const char *text, size_t size, struct doc **out_doc,
                          struct atp_error *err)
{
    struct builder b = {.err = err};
    yaml_parser_t parser;
    *out_doc = NULL;
    if (size > DOC_BYTES_MAX) {
        return atp_fail(err, ATP_ERR_LIMIT, "the document has %zu bytes, at most %zu are read",
                        size, DOC_BYTES_MAX);
    }
    b.doc = calloc(1, sizeof(*b.doc));
    if (b.doc == NULL || !yaml_parser_initialize(&parser)) {
        free(b.doc);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to read a document");
    }
    const char *nul = size > 0 ? memchr(text, 0, size) : NULL;
    enum atp_status status;
    if (nul != NULL) {
        yaml_mark_t mark = mark_of_offset(text, size, (size_t)(nul - text));
        status = fail_at(&b, mark, ATP_ERR_SYNTAX, "a NUL byte is not allowed");
    } else {
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
        status = build(&b, &parser, text, size);
    }
    yaml_parser_delete(&parser);
    if (status != ATP_OK) {
        doc_destroy(b.doc);
        return status;
    }
    *out_doc = b.doc;
    return ATP_OK;
}

/* Reads by growing, so that pipes work as well as files. */
static enum atp_status read_all(FILE *file, const char *path, size_t most, char **out_text,
                                size_t *out_size, struct atp_error *err)
{
    size_t size = 0, capacity = (size_t)1 << 16;
    char *text = malloc(capacity);
    while (text != NULL) {
        size += fread(text + size, 1, capacity - size, file);
        if (size < capacity || size > most) {
            break;
        }
        capacity *= 2;
        char *larger = realloc(text, capacity);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    if (text == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to read %s", path);
    }
    if (ferror(file)) {
        free(text);
        return atp_fail(err, ATP_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    *out_text = text;
    *out_size = size;
    return ATP_OK;
}

enum atp_status doc_read_text(const char *path, size_t most, char **out_text, size_t *out_size,
                              struct atp_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return atp_fail(err, ATP_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    }
    enum atp_status status = read_all(file, path, most, out_text, out_size, err);
    (void)fclose(file);
    return status;
}

enum atp_status doc_read(const char *path, struct doc **out_doc, struct atp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    *out_doc = NULL;
    ATP_TRY(doc_read_text(path, DOC_BYTES_MAX, &text, &size, err));
    enum atp_status status = doc_parse(text, size, out_doc, err);
    free(text);
    return status;
}
