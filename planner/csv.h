/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Comma-separated values (RFC 4180) as the nodes that the readers of YAML take, so that both check
 * keys, types and ranges with the same code and words: a list `rows` with a map for each row, whose
 * keys are the names in the header line. Lines of blanks, and lines that begin with #, are left
 * out; a byte order mark and either line ending are fine.
 */
#ifndef CSV_H
#define CSV_H

#include <stddef.h>

#include "region.h"
#include "yaml_reader.h"

/* *out_rows lives in the region. ATP_ERR_SYNTAX with line and column for what is no CSV, for rows
 * with more or fewer values than the header, and for a name that the header has twice;
 * ATP_ERR_LIMIT above DOC_BYTES_MAX bytes or DOC_NODES_MAX values. */
ATP_MUST_USE enum atp_status csv_parse(const char *text, size_t size, struct region *region,
                                       const struct doc_node **out_rows, struct atp_error *err);

#endif
