/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4) of a byte string that comes in pieces.
 */
#ifndef ATP_SHA256_H
#define ATP_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t size;     /* bytes so far */
    uint8_t block[64]; /* the last size % 64 of them wait here */
};

void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *bytes, size_t size);
/* The hash is spent afterwards. */
void sha256_finish(struct sha256 *hash, uint8_t out_digest[32]);

#endif
