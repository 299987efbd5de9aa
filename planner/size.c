/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers are read as digits, never through floating point: 16.1GB is the same byte everywhere.
 */
#include "size.h"

#include "checked.h"
#include "fail.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define MILLION UINT64_C(1000000)

struct decimal {
    uint64_t whole;
    uint64_t millionths;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the number at the beginning; NULL where there is none, or it is too large or too fine. */
static const char *read_decimal(const char *text, struct decimal *out)
{
    *out = (struct decimal){0};
    if (!is_digit(*text)) {
        return NULL;
    }
    for (; is_digit(*text); text++) {
        if (out->whole > SIZE_BYTES_MAX / 10) {
            return NULL;
        }
        out->whole = out->whole * 10 + (uint64_t)(*text - '0');
    }
    if (*text != '.') {
        return text;
    }
    text++;
    if (!is_digit(*text)) {
        return NULL;
    }
    for (uint64_t unit = MILLION / 10; is_digit(*text); text++, unit /= 10) {
        if (unit == 0 && *text != '0') {
            return NULL;
        }
        out->millionths += unit * (uint64_t)(*text - '0');
    }
    return text;
}

/* Bytes of a unit, "" and "e9" included; 0 when it is none. */
static uint64_t unit_bytes(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", UINT64_C(1000)},
        {"MB", UINT64_C(1000000)},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(unit, units[i].name) == 0) {
            return units[i].bytes;
        }
    }
    uint64_t exponent;
    if ((unit[0] == 'e' || unit[0] == 'E') &&
        size_parse_count(unit + 1, 0, 12, &exponent, NULL) == ATP_OK) {
        uint64_t bytes = 1;
        for (; exponent > 0; exponent--) {
            bytes *= 10;
        }
        return bytes;
    }
    return 0;
}

/* number * unit, rounded down; units stay below 2^41, so that the fraction cannot overflow. */
static bool scale(const struct decimal *number, uint64_t unit, uint64_t *out)
{
    return checked_mul(number->whole, unit, out) &&
           checked_add(*out, number->millionths * unit / MILLION, out);
}

enum atp_status size_parse(const char *text, struct size *out, struct atp_error *err)
{
    struct decimal number;
    const char *unit = read_decimal(text, &number);
    *out = (struct size){0};
    if (unit == NULL) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\" is no size, expected one like 8000000000, 14GB, 16GiB or 60%%",
                        text);
    }
    if (strcmp(unit, "%") == 0) {
        out->is_share = true;
        return size_parse_percent(text, &out->amount, err);
    }
    uint64_t bytes = unit_bytes(unit);
    if (bytes == 0 && strlen(unit) == 1 && strchr("kKmMgGtT", unit[0]) != NULL) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\" has the unit \"%s\", expected %sB (power of ten) or %siB (power "
                        "of two)",
                        text, unit, unit, unit);
    }
    if (bytes == 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\" has the unit \"%s\", expected none (bytes), KB, MB, GB, TB, KiB, "
                        "MiB, GiB, TiB or %%",
                        text, unit);
    }
    if (bytes == 1 && number.millionths != 0) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is no whole number of bytes", text);
    }
    if (!scale(&number, bytes, &out->amount) || out->amount > SIZE_BYTES_MAX) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is too large, expected 2^62 bytes at most",
                        text);
    }
    return ATP_OK;
}

enum atp_status size_parse_percent(const char *text, uint64_t *out, struct atp_error *err)
{
    struct decimal number;
    const char *end = read_decimal(text, &number);
    if (end == NULL || (*end != '\0' && strcmp(end, "%") != 0)) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\" is no percentage, expected one like 1%% or 0.5%%", text);
    }
    if (!scale(&number, SIZE_PERCENT, out) || *out > SIZE_SHARE_MAX) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\" is too large, expected %" PRIu64 "%% at most",
                        text, SIZE_SHARE_MAX / SIZE_PERCENT);
    }
    return ATP_OK;
}

enum atp_status size_parse_memory(const char *text, uint64_t *out, struct atp_error *err)
{
    struct size size;
    ATP_TRY(size_parse(text, &size, err));
    if (size.is_share || size.amount == 0) {
        return atp_fail(err, ATP_ERR_INVALID, "\"%s\", expected bytes, one at least: 16GiB", text);
    }
    *out = size.amount;
    return ATP_OK;
}

enum atp_status size_parse_rate(const char *text, uint64_t *out, struct atp_error *err)
{
    char amount[64];
    size_t length = strlen(text);
    bool has_unit = length > 2 && strcmp(text + length - 2, "/s") == 0;
    length -= has_unit ? 2 : 0;
    struct size size = {0};
    if (length < sizeof(amount)) {
        memcpy(amount, text, length);
        amount[length] = '\0';
        ATP_TRY(size_parse(amount, &size, err));
    }
    if (size.is_share || size.amount == 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\" is no rate, expected bytes per second like 25GB/s or 50e9", text);
    }
    *out = size.amount;
    return ATP_OK;
}

enum atp_status size_parse_seconds(const char *text, uint32_t *out_ms, struct atp_error *err)
{
    struct decimal number;
    const char *end = read_decimal(text, &number);
    uint64_t ms = 0;
    if (end != NULL && *end == '\0' && number.whole <= MILLION) {
        ms = number.whole * 1000 + number.millionths / 1000;
    }
    if (ms == 0 || ms > MILLION * 1000) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\", expected seconds from 0.001 to 1000000, like 10 or 0.5", text);
    }
    *out_ms = (uint32_t)ms;
    return ATP_OK;
}

enum atp_status size_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out,
                                 struct atp_error *err)
{
    struct decimal number;
    const char *end = read_decimal(text, &number);
    bool is_whole = end != NULL && *end == '\0' && number.millionths == 0;
    if (!is_whole || number.whole < least || number.whole > most) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "\"%s\", expected a whole number from %" PRIu64 " to %" PRIu64, text, least,
                        most);
    }
    *out = number.whole;
    return ATP_OK;
}

uint64_t size_share_of(uint64_t share, uint64_t bytes)
{
    const uint64_t all = 100 * SIZE_PERCENT;
    uint64_t part = (bytes % all * share + all - 1) / all, whole;
    bool fits = checked_mul(bytes / all, share, &whole) && checked_add(whole, part, &whole);
    return fits && whole < SIZE_BYTES_MAX ? whole : SIZE_BYTES_MAX;
}
