/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What every part of a report writes with: escaped text, numbers, the scale of an axis.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Names are anything that a profile can spell. `html_text` suits elements and quoted attributes,
 * `html_string` is a quoted JSON string inside of a script element. Control characters become
 * U+FFFD, as does what is not UTF-8. */
void html_text(FILE *out, const char *text);
void html_string(FILE *out, const char *text);

/* Pictures are HTML_ACROSS units wide, whatever the screen. */
#define HTML_ACROSS 4000

/* value * HTML_ACROSS / most, rounded down; both are at most 2^62, `most` may be 0. */
uint32_t html_across(uint64_t value, uint64_t most);
/* The same of another number of units. */
uint32_t html_scale(uint64_t value, uint64_t most, uint32_t units);

/* The distance of four to eight round marks (1, 2, 5 times a power of ten) on an axis from 0 to
 * `most`; at least 1. */
uint64_t html_tick(uint64_t most);

#endif
