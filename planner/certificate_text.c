/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Words between blanks and line ends. Few multipliers differ and many are zero, so that runs of
 * equal ones are what makes the text short.
 */
#include "certificate_text.h"

#include "fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 100U
#define WORD_MAX_BYTES 40U
/* Far more than any certificate needs: what a damaged one can cost is limited. */
#define ROWS_MAX   ((uint32_t)1 << 22)
#define POINTS_MAX 256U
#define CUTS_MAX   16U
#define WHOLE_MAX  9007199254740992.0 /* 2^53 */

/* ---- writing ---- */

struct writer {
    struct region *region;
    char *text;
    size_t size, capacity;
    size_t line; /* bytes in the last one */
};

static void put(struct writer *w, const char *word, size_t length)
{
    if (w->size + length + 2 > w->capacity) {
        size_t capacity = 2 * (w->capacity + length + 2);
        char *text = REGION_NEW(w->region, char, capacity);
        if (w->size > 0) {
            memcpy(text, w->text, w->size);
        }
        w->text = text;
        w->capacity = capacity;
    }
    memcpy(w->text + w->size, word, length);
    w->size += length;
    w->text[w->size] = '\0';
}

static void end_line(struct writer *w)
{
    put(w, "\n", 1);
    w->line = 0;
}

__attribute__((format(printf, 2, 3))) static void put_word(struct writer *w, const char *format,
                                                           ...)
{
    char word[WORD_MAX_BYTES + 1];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(word, sizeof(word), format, args);
    va_end(args);
    size_t size = length > 0 ? (size_t)length : 0;
    if (w->line > 0 && w->line + 1 + size > LINE_MAX_BYTES) {
        end_line(w);
    }
    if (w->line > 0) {
        put(w, " ", 1);
    }
    put(w, word, size);
    w->line += size + 1;
}

static void put_multipliers(struct writer *w, const struct certificate *certificate)
{
    const double *y = certificate->multipliers;
    for (uint32_t i = 0, end; i < certificate->row_count; i = end) {
        for (end = i + 1; end < certificate->row_count && y[end] == y[i]; end++) {
        }
        double whole = ldexp(y[i], -certificate->exponent);
        if (end - i == 1) {
            put_word(w, "%.0f", whole);
        } else {
            put_word(w, "%.0f*%" PRIu32, whole, end - i);
        }
    }
}

const char *certificate_write(const struct certificate *certificate, struct region *region)
{
    struct writer w = {.region = region};
    put_word(&w, "rows");
    put_word(&w, "%" PRIu32, certificate->row_count);
    put_word(&w, "%016" PRIx64, certificate->identity);
    end_line(&w);
    put_word(&w, "checkpoints");
    for (uint32_t k = 0; k < certificate->grid.count; k++) {
        const struct relax_checkpoint *point = &certificate->grid.points[k];
        put_word(&w, "%" PRIu32 "%s%s", point->step, point->memory ? "m" : "",
                 point->cut ? "c" : "");
    }
    end_line(&w);
    put_word(&w, "multipliers");
    put_word(&w, "2^%d", certificate->exponent);
    end_line(&w);
    put_multipliers(&w, certificate);
    if (w.line > 0) {
        end_line(&w);
    }
    return w.text;
}

/* ---- reading ---- */

struct reader {
    const char *at;
    uint32_t line;
    char word[WORD_MAX_BYTES + 1];
    struct atp_error *err;
};

static enum atp_status fail_word(const struct reader *r, const char *expected)
{
    return atp_fail(r->err, ATP_ERR_INVALID, "certificate: line %" PRIu32 ": \"%s\", expected %s",
                    r->line, r->word, expected);
}

/* The next word into r->word; empty at the end. Words that are too long are cut, and then wrong. */
static void next_word(struct reader *r)
{
    size_t length = 0;
    for (; *r->at == ' ' || *r->at == '\n'; r->at++) {
        r->line += *r->at == '\n';
    }
    for (; *r->at != '\0' && *r->at != ' ' && *r->at != '\n'; r->at++) {
        if (length < WORD_MAX_BYTES) {
            r->word[length++] = *r->at;
        }
    }
    r->word[length] = '\0';
}

static enum atp_status expect_word(struct reader *r, const char *word)
{
    next_word(r);
    return strcmp(r->word, word) == 0 ? ATP_OK : fail_word(r, word);
}

/* Decimal digits, at most `max`. NULL: there are none, or more. */
static const char *take_number(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    const char *end = text;
    for (; *end >= '0' && *end <= '9' && value <= max; end++) {
        value = value * 10 + (uint64_t)(*end - '0');
    }
    *out = (uint32_t)value;
    return end > text && value <= max ? end : NULL;
}

static enum atp_status read_rows(struct reader *r, struct certificate *out)
{
    ATP_TRY(expect_word(r, "rows"));
    next_word(r);
    const char *end = take_number(r->word, ROWS_MAX, &out->row_count);
    if (end == NULL || *end != '\0') {
        return fail_word(r, "a number of rows");
    }
    next_word(r);
    if (strlen(r->word) != 16 || strspn(r->word, "0123456789abcdef") != 16) {
        return fail_word(r, "16 hex digits");
    }
    out->identity = strtoull(r->word, NULL, 16);
    return ATP_OK;
}

/* Ends behind the word "multipliers". */
static enum atp_status read_checkpoints(struct reader *r, struct region *region,
                                        struct relax_grid *grid)
{
    uint32_t cuts = 0;
    ATP_TRY(expect_word(r, "checkpoints"));
    grid->points = REGION_NEW(region, struct relax_checkpoint, POINTS_MAX);
    for (next_word(r); strcmp(r->word, "multipliers") != 0; next_word(r)) {
        struct relax_checkpoint point = {0};
        const char *end = take_number(r->word, UINT32_MAX - 1, &point.step);
        if (end != NULL && *end == 'm') {
            point.memory = true;
            end++;
        }
        if (end != NULL && *end == 'c') {
            point.cut = true;
            end++;
        }
        if (end == NULL || *end != '\0') {
            return fail_word(r, "a step, with m and c, or \"multipliers\"");
        }
        cuts += point.cut;
        if (grid->count == POINTS_MAX || cuts > CUTS_MAX) {
            return fail_word(r, "fewer checkpoints");
        }
        grid->points[grid->count++] = point;
    }
    return ATP_OK;
}

static enum atp_status read_exponent(struct reader *r, struct certificate *out)
{
    uint32_t exponent;
    next_word(r);
    bool is_negative = strncmp(r->word, "2^-", 3) == 0;
    const char *digits = r->word + (is_negative ? 3 : 2);
    const char *end = strncmp(r->word, "2^", 2) == 0
                          ? take_number(digits, CERTIFICATE_EXPONENT_MAX, &exponent)
                          : NULL;
    if (end == NULL || *end != '\0') {
        return fail_word(r, "a power of two such as 2^-20");
    }
    out->exponent = is_negative ? -(int)exponent : (int)exponent;
    return ATP_OK;
}

/* `12`, `-12`, `12*3`. */
static bool parse_run(const char *word, double *out_whole, uint32_t *out_count)
{
    bool is_negative = word[0] == '-';
    const char *digits = word + is_negative, *end = digits;
    double whole = 0;
    for (; *end >= '0' && *end <= '9' && whole <= WHOLE_MAX; end++) {
        whole = whole * 10 + (*end - '0');
    }
    if (end == digits || whole > WHOLE_MAX) {
        return false;
    }
    *out_whole = is_negative ? -whole : whole;
    *out_count = 1;
    if (*end == '*') {
        end = take_number(end + 1, ROWS_MAX, out_count);
    }
    return end != NULL && *end == '\0' && *out_count > 0;
}

static enum atp_status read_multipliers(struct reader *r, struct region *region,
                                        struct certificate *out)
{
    uint32_t done = 0;
    out->multipliers = REGION_NEW(region, double, out->row_count);
    for (next_word(r); r->word[0] != '\0'; next_word(r)) {
        double whole = 0;
        uint32_t count = 0;
        if (!parse_run(r->word, &whole, &count)) {
            return fail_word(r, "a whole number, or number*times");
        }
        if (count > out->row_count - done) {
            return fail_word(r, "no more multipliers than rows");
        }
        for (uint32_t i = 0; i < count; i++) {
            out->multipliers[done++] = ldexp(whole, out->exponent);
        }
    }
    return done == out->row_count ? ATP_OK : fail_word(r, "as many multipliers as rows");
}

enum atp_status certificate_read(const char *text, struct region *region, struct certificate *out,
                                 struct atp_error *err)
{
    struct reader r = {.at = text, .line = 1, .err = err};
    *out = (struct certificate){0};
    ATP_TRY(read_rows(&r, out));
    ATP_TRY(read_checkpoints(&r, region, &out->grid));
    ATP_TRY(read_exponent(&r, out));
    return read_multipliers(&r, region, out);
}
