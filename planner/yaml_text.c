/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text stands without quotes when it consists of letters, digits and a few signs and no YAML reader
 * takes it for anything else; all other is quoted, with escapes for what YAML would fold.
 */
#include "yaml_text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

size_t yaml_decode(const char *text, uint32_t *out_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)text[0];
    size_t size = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size == 0 || lead > 0xF4) {
        return 0;
    }
    uint32_t code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xC0U) != 0x80U) {
            return 0;
        }
        code = code << 6 | (next & 0x3FU);
    }
    bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    *out_code = code;
    return code < least[size] || code > 0x10FFFF || is_surrogate ? 0 : size;
}

void yaml_cut(char *text, size_t most)
{
    if (strlen(text) <= most) {
        return;
    }
    while (most > 0 && ((unsigned char)text[most] & 0xC0U) == 0x80U) {
        most--;
    }
    text[most] = '\0';
}

static bool is_plain(const char *name)
{
    static const char *const reserved[] = {"true", "false", "yes", "no", "on",
                                           "off",  "null",  "y",   "n"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
                                 "./+-()=";
    if (strchr(letters, name[0]) == NULL || name[strspn(name, others)] != '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strcasecmp(name, reserved[i]) == 0) {
            return false;
        }
    }
    return true;
}

void yaml_text(FILE *out, const char *text)
{
    if (is_plain(text)) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (uint32_t code = 0; *text != '\0';) {
        size_t size = yaml_decode(text, &code);
        if (size == 0) {
            /* What is not UTF-8 stays as it is, for the reader to refuse. */
            (void)fputc(*text++, out);
            continue;
        }
        /* Controls, line breaks, marks and non-characters that a reader may fold or refuse. */
        bool is_hidden = (code >= 0x80 && code <= 0xA0) || code == 0x2028 || code == 0x2029 ||
                         code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
        if (code == '\n' || code == '\t' || code == '\r') {
            (void)fputs(code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r", out);
        } else if (is_hidden) {
            (void)fprintf(out, "\\u%04X", code);
        } else if (code == '"' || code == '\\') {
            (void)fprintf(out, "\\%c", (int)code);
        } else {
            (void)fwrite(text, 1, size, out);
        }
        text += size;
    }
    (void)fputc('"', out);
}
