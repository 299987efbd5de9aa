/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What each command's help says above its options.
 */
#ifndef USAGE_H
#define USAGE_H

#include "options.h"

/* Static text, lines that end in a newline. */
const char *usage_text(enum command command);

#endif
