/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain and portable: a model's structure is some hundred kilobytes, hashed once.
 */
#include "sha256.h"

#include <string.h>

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t word, unsigned count)
{
    return word >> count | word << (32 - count);
}

static uint32_t load_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void expand_block(const uint8_t block[64], uint32_t schedule[64])
{
    for (unsigned i = 0; i < 16; i++) {
        schedule[i] = load_big_endian(block + (size_t)i * 4);
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t early = schedule[i - 15], late = schedule[i - 2];
        uint32_t mixed_early = rotate_right(early, 7) ^ rotate_right(early, 18) ^ early >> 3;
        uint32_t mixed_late = rotate_right(late, 17) ^ rotate_right(late, 19) ^ late >> 10;
        schedule[i] = schedule[i - 16] + mixed_early + schedule[i - 7] + mixed_late;
    }
}

static void absorb_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t schedule[64], work[8];
    expand_block(block, schedule);
    memcpy(work, state, sizeof(work));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t a = work[0], e = work[4];
        uint32_t choice = (e & work[5]) ^ (~e & work[6]);
        uint32_t majority = (a & work[1]) ^ (a & work[2]) ^ (work[1] & work[2]);
        uint32_t sum_a = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t sum_e = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t mixed = work[7] + sum_e + choice + round_constants[i] + schedule[i];
        memmove(work + 1, work, 7 * sizeof(work[0]));
        work[4] += mixed;
        work[0] = mixed + sum_a + majority;
    }
    for (unsigned i = 0; i < 8; i++) {
        state[i] += work[i];
    }
}

void sha256_init(struct sha256 *hash)
{
    /* Fractional parts of the square roots of the first eight primes. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof(start));
    hash->size = 0;
}

void sha256_update(struct sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *next = bytes;
    while (size > 0) {
        size_t used = (size_t)(hash->size % 64);
        size_t taken = size < 64 - used ? size : 64 - used;
        memcpy(hash->block + used, next, taken);
        hash->size += taken;
        next += taken;
        size -= taken;
        if (used + taken == 64) {
            absorb_block(hash->state, hash->block);
        }
    }
}

void sha256_finish(struct sha256 *hash, uint8_t out_digest[32])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t bit_count[8];
    size_t used = (size_t)(hash->size % 64);
    for (unsigned i = 0; i < 8; i++) {
        bit_count[i] = (uint8_t)(hash->size * 8 >> (56 - 8 * i));
    }
    sha256_update(hash, padding, used < 56 ? 56 - used : 120 - used);
    sha256_update(hash, bit_count, sizeof(bit_count));
    for (size_t i = 0; i < 32; i++) {
        out_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
