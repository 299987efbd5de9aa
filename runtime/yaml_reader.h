/* SPDX-License-Identifier: Apache-2.0
 *
 * A strict subset of YAML as a tree of plain nodes that know their line, column and path, and typed
 * readers for them. Refused: aliases, anchors, tags, duplicate keys, keys that are not scalars,
 * several documents, nesting deeper than DOC_DEPTH_MAX, NUL bytes, bytes that are not UTF-8, more
 * than DOC_BYTES_MAX bytes or DOC_NODES_MAX nodes.
 *
 * Every function that fails sets `err` to line, column and "PATH: what is wrong, what was
 * expected": ATP_ERR_SYNTAX for what is not YAML or not of the expected form, ATP_ERR_INVALID for a
 * value out of its range.
 */
#ifndef ATP_YAML_READER_H
#define ATP_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <atp/status.h>

#define DOC_DEPTH_MAX 16U
#define DOC_BYTES_MAX ((size_t)64 << 20)
#define DOC_NODES_MAX ((uint32_t)1 << 23)
#define DOC_NAME_MAX  200U
#define DOC_TEXT_MAX  4000U

enum doc_kind { DOC_SCALAR, DOC_LIST, DOC_MAP };

struct doc_node {
    enum doc_kind kind;
    bool plain; /* a scalar without quotes */
    uint32_t line, column;
    uint32_t key_line, key_column; /* of an entry of a map */
    uint32_t index;                /* among the entries of `parent` */
    uint32_t count;                /* entries of a list or map */
    const char *key;               /* NULL unless `parent` is a map */
    const char *text;              /* of a scalar; NULL for others */
    const struct doc_node *parent; /* NULL: the root */
    const struct doc_node *first, *next;
};

/* A document: owns all its nodes and their texts until doc_destroy. */
struct doc;

/* `text` need not be terminated and is not kept. On failure *out_doc is NULL. Near linear in the
 * size: a map of n keys costs n log n. ATP_ERR_SYNTAX, ATP_ERR_LIMIT, ATP_ERR_NO_MEMORY. */
ATP_MUST_USE enum atp_status doc_parse(const char *text, size_t size, struct doc **out_doc,
                                       struct atp_error *err);

/* All of a file or pipe, to be freed; not terminated. One of more than `most` bytes is read no
 * further than shows that it is. ATP_ERR_IO when it cannot be read, ATP_ERR_NO_MEMORY. */
ATP_MUST_USE enum atp_status doc_read_text(const char *path, size_t most, char **out_text,
                                           size_t *out_size, struct atp_error *err);

/* doc_parse of a file; ATP_ERR_IO when it cannot be read. */
ATP_MUST_USE enum atp_status doc_read(const char *path, struct doc **out_doc,
                                      struct atp_error *err);

void doc_destroy(struct doc *doc); /* NULL is allowed */

const struct doc_node *doc_root(const struct doc *doc);

/* Zeroed memory for `count` elements of `size` bytes that lives and dies with the document; NULL
 * when there is none. */
void *doc_take(struct doc *doc, size_t count, size_t size);

/* "steps[12].reads[0]"; "top level" for the root. Shortened to fit, always terminated. */
void doc_path(const struct doc_node *node, char *out_text, size_t size);

/* Fills *err (NULL allowed) with the node's place and path before the message; returns `status`. */
__attribute__((format(printf, 4, 5))) enum atp_status doc_fail(const struct doc_node *node,
                                                               struct atp_error *err,
                                                               enum atp_status status,
                                                               const char *format, ...);

/* A text fit for a message: short, cut between characters, control characters replaced. */
struct doc_short {
    char text[64];
};
struct doc_short doc_shorten(const char *text);

/* One key of a map: the readers' tables of keys are what the schemas are tested against. */
struct doc_key {
    const char *name;
    bool required;
};

/* Sorts a map's entries into the order of `keys`: out_values[i] is the value of keys[i], NULL when
 * it is absent. Refuses unknown keys (naming a close one) and missing required ones. */
ATP_MUST_USE enum atp_status doc_map(const struct doc_node *node, const struct doc_key *keys,
                                     uint32_t key_count, const struct doc_node **out_values,
                                     struct atp_error *err);

/* The root must be a map whose entry `key` is `version`: ATP_ERR_VERSION for any other number. To
 * be asked first, since another version may have other keys. */
ATP_MUST_USE enum atp_status doc_version(const struct doc_node *root, const char *key,
                                         uint64_t version, struct atp_error *err);

ATP_MUST_USE enum atp_status doc_list(const struct doc_node *node, struct atp_error *err);

/* A number in a fixed unit: read as value * 10^decimals, an integer in [min, max]. */
struct doc_number {
    const char *what;  /* "a whole number of bytes" */
    uint32_t decimals; /* 0: whole numbers */
    bool rounds;       /* more decimals are rounded to nearest; false: they are refused */
    uint64_t min, max; /* of the integer */
};
ATP_MUST_USE enum atp_status doc_number(const struct doc_node *node, const struct doc_number *rule,
                                        uint64_t *out_value, struct atp_error *err);

/* A scalar of 1 to DOC_NAME_MAX bytes without control characters, quoted or not: 12 and "12" are
 * the same name. The text lives as long as the document. */
ATP_MUST_USE enum atp_status doc_name(const struct doc_node *node, const char **out_name,
                                      struct atp_error *err);

/* Free text: as a name, but of at most DOC_TEXT_MAX bytes and with line breaks and tabs. */
ATP_MUST_USE enum atp_status doc_text(const struct doc_node *node, const char **out_text,
                                      struct atp_error *err);

/* The index in `choices` of a scalar. */
ATP_MUST_USE enum atp_status doc_choice(const struct doc_node *node, const char *const *choices,
                                        uint32_t choice_count, uint32_t *out_choice,
                                        struct atp_error *err);

/* Names and what they stand for. An index is an array of these, the caller's, sorted once. */
struct doc_index {
    const char *name;
    uint32_t group; /* names of different groups are different: the phase of a step */
    uint32_t id;
};
void doc_index_sort(struct doc_index *index, size_t count);

/* The lowest id of that name and group, or ATP_NONE. */
uint32_t doc_index_find(const struct doc_index *index, size_t count, const char *name,
                        uint32_t group);

#endif
