/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers for people: rounded, with the unit that suits them. Results by value, to be printed at
 * once: `printf("%s", words_bytes(n).text)`.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stdint.h>

struct words {
    char text[32];
};

struct words words_bytes(uint64_t bytes); /* "4.00 MB": powers of ten, as profiles have them */
struct words words_time(int64_t ns);      /* "1.234 ms" */
struct words words_percent(double share); /* of a share of 1: "2.88 %" */
/* (iteration - bound) / bound */
struct words words_gap(int64_t iteration_ns, int64_t bound_ns);

#endif
