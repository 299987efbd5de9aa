/* SPDX-License-Identifier: Apache-2.0
 *
 * What text a plan file can carry as its certificate: the same for whoever reads and writes it.
 */
#ifndef ATP_PLAN_TEXT_H
#define ATP_PLAN_TEXT_H

#include <stdbool.h>

/* Lines of printable ASCII, at least one, none of them empty or with blanks before it. */
static inline bool plan_is_text(const char *text)
{
    bool is_good = text[0] != '\0', begins = true;
    for (const char *c = text; is_good && *c != '\0'; c++) {
        is_good = begins ? *c > ' ' && *c <= '~' : *c == '\n' || (*c >= ' ' && *c <= '~');
        begins = *c == '\n';
    }
    return is_good;
}

#endif
