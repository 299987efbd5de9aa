/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text as YAML, for what writes plans and profiles. Errors stay in the stream, for whoever closes
 * it.
 */
#ifndef YAML_TEXT_H
#define YAML_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at `text`, its code point in *out_code; 0 when it is none. */
size_t yaml_decode(const char *text, uint32_t *out_code);

/* Cuts text of more than `most` bytes, between two characters. */
void yaml_cut(char *text, size_t most);

/* Bare where every reader takes it for that text, else in quotes. Bytes that are not UTF-8 stand as
 * they are: no reader takes them. */
void yaml_text(FILE *out, const char *text);

#endif
