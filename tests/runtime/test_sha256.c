/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "run_tests.h"
#include "sha256.h"

#include <stdio.h>
#include <string.h>

static void assert_digest(struct sha256 *hash, const char *want)
{
    uint8_t digest[32];
    char text[65];
    sha256_finish(hash, digest);
    for (size_t i = 0; i < 32; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    ck_assert_str_eq(text, want);
}

/* The published examples for FIPS 180-4. */
START_TEST(matches_the_published_digests)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct sha256 hash;
        sha256_init(&hash);
        sha256_update(&hash, known[i].text, strlen(known[i].text));
        assert_digest(&hash, known[i].digest);
    }
}
END_TEST

START_TEST(matches_the_published_digest_of_a_million_letters)
{
    struct sha256 hash;
    char letters[1000];
    memset(letters, 'a', sizeof(letters));
    sha256_init(&hash);
    for (int i = 0; i < 1000; i++) {
        sha256_update(&hash, letters, sizeof(letters));
    }
    assert_digest(&hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(does_not_depend_on_how_the_bytes_are_cut)
{
    uint8_t bytes[200], whole_digest[32], digest[32];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        struct sha256 whole, cut;
        sha256_init(&whole);
        sha256_update(&whole, bytes, size);
        sha256_finish(&whole, whole_digest);
        sha256_init(&cut);
        sha256_update(&cut, bytes, size / 3);
        sha256_update(&cut, bytes + size / 3, size - size / 3);
        sha256_finish(&cut, digest);
        ck_assert_mem_eq(digest, whole_digest, sizeof(digest));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        matches_the_published_digests,
        matches_the_published_digest_of_a_million_letters,
        does_not_depend_on_how_the_bytes_are_cut,
    };
    return RUN_TESTS("sha256", tests, NULL, NULL);
}
