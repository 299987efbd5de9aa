/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sizes, shares and counts as people write them on a command line.
 */
#ifndef SIZE_H
#define SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include <atp/status.h>

#define SIZE_BYTES_MAX ((uint64_t)1 << 62)
#define SIZE_PERCENT   UINT64_C(1000000) /* shares are counted in millionths of a percent */
#define SIZE_SHARE_MAX (100000 * SIZE_PERCENT)

/* Bytes, or a share of something that is not known yet. */
struct size {
    bool is_share;
    uint64_t amount; /* bytes up to SIZE_BYTES_MAX; a share up to SIZE_SHARE_MAX */
};

/* `8000000000`, `8e9`, `14GB`, `1.5GiB` (rounded down to a byte), `62.5%`; at most six decimals.
 * ATP_ERR_INVALID with what is wrong and what was expected. */
ATP_MUST_USE enum atp_status size_parse(const char *text, struct size *out, struct atp_error *err);

/* `1%`, `1`, `0.25`: in SIZE_PERCENT. */
ATP_MUST_USE enum atp_status size_parse_percent(const char *text, uint64_t *out,
                                                struct atp_error *err);

/* Bytes per second, at least 1: a size, with or without `/s` behind it. `25GB/s`, `50e9`. */
ATP_MUST_USE enum atp_status size_parse_rate(const char *text, uint64_t *out,
                                             struct atp_error *err);

/* A size that is no share, at least 1 byte. */
ATP_MUST_USE enum atp_status size_parse_memory(const char *text, uint64_t *out,
                                               struct atp_error *err);

/* Seconds, `10` or `0.5`, to milliseconds: from a millisecond to a million seconds. */
ATP_MUST_USE enum atp_status size_parse_seconds(const char *text, uint32_t *out_ms,
                                                struct atp_error *err);

/* A whole number in [least, most]. */
ATP_MUST_USE enum atp_status size_parse_count(const char *text, uint64_t least, uint64_t most,
                                              uint64_t *out, struct atp_error *err);

/* The share of `bytes` (up to SIZE_BYTES_MAX), rounded up, SIZE_BYTES_MAX at most. */
uint64_t size_share_of(uint64_t share, uint64_t bytes);

#endif
