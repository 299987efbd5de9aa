/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text is decoded and encoded again, so that nothing reaches the page but characters that it may
 * hold.
 */
#include "report_html.h"

#include <stdbool.h>

#define REPLACEMENT "\xEF\xBF\xBD"

/* Bytes of the UTF-8 character that begins here; 0 when it is none, or a surrogate. */
static unsigned character_length(const unsigned char *text)
{
    unsigned length = text[0] < 0x80   ? 1
                      : text[0] < 0xC2 ? 0
                      : text[0] < 0xE0 ? 2
                      : text[0] < 0xF0 ? 3
                      : text[0] < 0xF5 ? 4
                                       : 0;
    for (unsigned i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool is_bad = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
                  (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F);
    return length > 1 && is_bad ? 0 : length;
}

/* Text is written whole but for the characters that `special` answers for. */
static void write_text(FILE *out, const char *text, const char *(*special)(unsigned char))
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        unsigned length = character_length(at);
        bool is_control = *at < 0x20 || *at == 0x7F || (*at == 0xC2 && at[1] < 0xA0);
        const char *instead = special(*at);
        if (length == 0 || is_control) {
            (void)fputs(REPLACEMENT, out);
            length = length == 0 ? 1 : length;
        } else if (instead != NULL) {
            (void)fputs(instead, out);
        } else {
            (void)fwrite(at, 1, length, out);
        }
        at += length;
    }
}

static const char *special_in_text(unsigned char c)
{
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&quot;"
           : c == '\'' ? "&#39;"
                       : NULL;
}

/* `<` too: nothing in a string may end the script element. */
static const char *special_in_string(unsigned char c)
{
    return c == '"'    ? "\\\""
           : c == '\\' ? "\\\\"
           : c == '<'  ? "\\u003c"
           : c == '>'  ? "\\u003e"
           : c == '&'  ? "\\u0026"
                       : NULL;
}

void html_text(FILE *out, const char *text)
{
    write_text(out, text, special_in_text);
}

void html_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    write_text(out, text, special_in_string);
    (void)fputc('"', out);
}

uint32_t html_scale(uint64_t value, uint64_t most, uint32_t units)
{
    if (most == 0 || value >= most) {
        return most == 0 ? 0 : units;
    }
    /* 2^45 steps of a scale are more than any screen has. */
    while (most >> 45 != 0) {
        most >>= 1;
        value >>= 1;
    }
    return (uint32_t)(value * units / most);
}

uint32_t html_across(uint64_t value, uint64_t most)
{
    return html_scale(value, most, HTML_ACROSS);
}

uint64_t html_tick(uint64_t most)
{
    uint64_t power = 1;
    while (most / power >= 80) {
        power *= 10;
    }
    uint64_t count = most / power;
    uint64_t tick = count >= 40   ? 10 * power
                    : count >= 16 ? 5 * power
                    : count >= 8  ? 2 * power
                                  : power;
    return tick;
}
