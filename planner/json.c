/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "json.h"

#include <inttypes.h>

void json_text(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            (void)fputc('\\', out);
            (void)fputc(c, out);
        } else if (c < 0x20 || c == 0x7F) {
            (void)fprintf(out, "\\u%04x", c);
        } else {
            (void)fputc(c, out);
        }
    }
    (void)fputc('"', out);
}

void json_us(FILE *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    (void)fprintf(out, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000,
                  (unsigned)(size % 1000));
}
