/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A fuzz target is one file with these two functions. libFuzzer calls the first; driver.c calls the
 * second on files and on random inputs, as an ordinary test.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts when the property is broken. True when the input went all the way to the property. */
bool fuzz_one(const uint8_t *data, size_t size);

#endif
