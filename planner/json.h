/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parts of JSON text (RFC 8259). Errors stay in the stream, for whoever closes it.
 */
#ifndef JSON_H
#define JSON_H

#include <stdint.h>
#include <stdio.h>

/* The text in quotes, with escapes; bytes beyond ASCII as they are. */
void json_text(FILE *out, const char *text);

/* Nanoseconds as microseconds with three decimals, "1234.567": exact. */
void json_us(FILE *out, int64_t ns);

#endif
