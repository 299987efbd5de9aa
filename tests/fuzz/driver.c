/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A fuzz target as an ordinary test: `target [--random COUNT SEED | --damage COUNT SEED] [FILE |
 * FOLDER]...`: COUNT random inputs, or COUNT damaged copies of each file besides the file itself.
 * Prints how many inputs reached the property, and fails when none did.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "random.h"

#define INPUT_MAX  65536
#define RANDOM_MAX 64

struct tally {
    uint64_t input_count, reached_count;
    uint64_t damage_count, seed;
};

static void try_input(struct tally *tally, const uint8_t *data, size_t size)
{
    tally->input_count++;
    tally->reached_count += fuzz_one(data, size);
}

static size_t pick(struct random *random, size_t limit)
{
    return (size_t)(random_next(random) % limit);
}

/* One to four blows: a byte that means something in texts, a piece taken out, a piece put in again
 * elsewhere. Returns the new size. */
static size_t damage(struct random *random, uint8_t *data, size_t size)
{
    static const char signs[] = " \n:-,[]{}#&*!|>'\"%@`?0159e.xfy\\\xC3\xFF";
    for (size_t blows = 1 + pick(random, 2) * pick(random, 4); blows > 0 && size > 0; blows--) {
        size_t at = pick(random, size);
        size_t left = size - at, length = 1 + pick(random, left < 40 ? left : 40);
        size_t to = pick(random, size);
        switch (pick(random, 4)) {
        case 0:
            memmove(data + at, data + at + length, left - length);
            size -= length;
            break;
        case 1:
            length = length < size - to ? length : size - to;
            memmove(data + to, data + at, length);
            break;
        default:
            data[at] = (uint8_t)signs[pick(random, sizeof(signs) - 1)];
            break;
        }
    }
    return size;
}

static void try_damaged(struct tally *tally, const uint8_t *data, size_t size)
{
    static uint8_t copy[INPUT_MAX];
    for (uint64_t i = 0; i < tally->damage_count; i++) {
        struct random random = {.state = tally->seed + i};
        memcpy(copy, data, size);
        try_input(tally, copy, damage(&random, copy, size));
    }
}

static bool try_file(struct tally *tally, const char *path)
{
    static uint8_t data[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        (void)fprintf(stderr, "%s: cannot open it\n", path);
        return false;
    }
    size_t size = fread(data, 1, sizeof(data), file);
    (void)fclose(file);
    try_input(tally, data, size);
    try_damaged(tally, data, size);
    return true;
}

static bool try_path(struct tally *tally, const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return try_file(tally, path);
    }
    bool is_good = true;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[4096];
        struct stat status;
        (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (stat(name, &status) == 0 && S_ISREG(status.st_mode)) {
            is_good = try_file(tally, name) && is_good;
        }
    }
    (void)closedir(folder);
    return is_good;
}

static void try_random(struct tally *tally, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        struct random random = {.state = seed + i};
        uint8_t data[RANDOM_MAX];
        size_t size = random_below(&random, RANDOM_MAX + 1);
        for (size_t b = 0; b < size; b++) {
            data[b] = (uint8_t)random_next(&random);
        }
        try_input(tally, data, size);
    }
}

int main(int argc, char **argv)
{
    struct tally tally = {0};
    bool is_good = true;
    int at = 1;
    if (argc > 3 && strcmp(argv[1], "--random") == 0) {
        try_random(&tally, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
        at = 4;
    } else if (argc > 3 && strcmp(argv[1], "--damage") == 0) {
        tally.damage_count = strtoull(argv[2], NULL, 10);
        tally.seed = strtoull(argv[3], NULL, 10);
        at = 4;
    }
    for (; at < argc; at++) {
        is_good = try_path(&tally, argv[at]) && is_good;
    }
    (void)printf("%" PRIu64 " inputs, %" PRIu64 " reached the property\n", tally.input_count,
                 tally.reached_count);
    return is_good && tally.reached_count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
