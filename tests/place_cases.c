/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * place-cases [--work N] FILE.csv...
 *
 * Places public test cases: files with the columns id,lower,upper,size (lives are half-open), whose
 * capacity stands in the file's name, NAME.CAPACITY.csv. Prints one line per case. Exit 1 when a
 * case does not fit or a placement is wrong by the check in this file, 2 for wrong usage, 3 for bad
 * input.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "place.h"

#define LINE_MAX_CHARS   512
#define DEFAULT_WORK     4000000U
#define SUM_MAX          ((uint64_t)1 << 62)
#define COUNT_MAX        ((uint32_t)1 << 30)
#define HEADER           "id,lower,upper,size"
#define NUMBER_MAX_CHARS 20

enum exit_code { EXIT_FITS = 0, EXIT_FAILS = 1, EXIT_USAGE = 2, EXIT_INPUT = 3 };

struct cases_file {
    const char *path;
    FILE *stream;
    uint32_t line;
    struct place_block *blocks;
    uint32_t count, room;
    uint64_t sum_bytes;
};

/* A whole decimal number and nothing else. */
static bool parse_number(const char *text, size_t length, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (length == 0 || length > NUMBER_MAX_CHARS) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i])) {
            return false;
        }
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (most - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* NAME.CAPACITY.csv */
static bool parse_capacity(const char *path, uint64_t *out)
{
    size_t length = strlen(path);
    if (length < 4 || strcmp(path + length - 4, ".csv") != 0) {
        return false;
    }
    size_t end = length - 4;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '.' && path[begin - 1] != '/') {
        begin--;
    }
    return begin > 0 && path[begin - 1] == '.' &&
           parse_number(path + begin, end - begin, SUM_MAX, out);
}

static bool fail_at(const struct cases_file *file, const char *what)
{
    (void)fprintf(stderr, "%s:%" PRIu32 ": %s\n", file->path, file->line, what);
    return false;
}

/* One line without its end; *out_more is false at the end of the file. */
static bool read_line(struct cases_file *file, char *line, bool *out_more)
{
    *out_more = fgets(line, LINE_MAX_CHARS, file->stream) != NULL;
    if (!*out_more) {
        if (ferror(file->stream) != 0) {
            (void)fprintf(stderr, "%s: cannot read: %s\n", file->path, strerror(errno));
            return false;
        }
        return true;
    }
    file->line++;
    size_t length = strlen(line);
    if (length == 0 || (line[length - 1] != '\n' && feof(file->stream) == 0)) {
        return fail_at(file, "the line is too long or holds a zero byte, expected text");
    }
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
        line[--length] = '\0';
    }
    return true;
}

static bool add_block(struct cases_file *file, struct place_block block)
{
    if (block.bytes > SUM_MAX - file->sum_bytes) {
        return fail_at(file, "the sizes add up to more than 2^62");
    }
    file->sum_bytes += block.bytes;
    if (file->count == file->room) {
        uint32_t room = file->room == 0 ? 256 : 2 * file->room;
        struct place_block *blocks = NULL;
        if (room < COUNT_MAX) {
            blocks = realloc(file->blocks, room * sizeof(*blocks));
        }
        if (blocks == NULL) {
            return fail_at(file, "too many blocks for the memory of this machine");
        }
        file->blocks = blocks;
        file->room = room;
    }
    file->blocks[file->count++] = block;
    return true;
}

static bool parse_row(struct cases_file *file, const char *line)
{
    static const char *const columns[] = {"lower", "upper", "size"};
    static const uint64_t most[] = {UINT32_MAX, UINT32_MAX, SUM_MAX};
    uint64_t values[3];
    const char *at = strchr(line, ',');
    if (at == NULL || at == line) {
        return fail_at(file, "no id, expected " HEADER);
    }
    for (int i = 0; i < 3; i++) {
        if (at == NULL) {
            return fail_at(file, "too few columns, expected " HEADER);
        }
        const char *begin = at + 1;
        at = strchr(begin, ',');
        size_t length = at == NULL ? strlen(begin) : (size_t)(at - begin);
        if (!parse_number(begin, length, most[i], &values[i])) {
            char what[96];
            (void)snprintf(what, sizeof(what), "%s is \"%.*s\", expected a whole number up to %s",
                           columns[i], (int)(length > 24 ? 24 : length), begin,
                           i < 2 ? "2^32 - 1" : "2^62");
            return fail_at(file, what);
        }
    }
    if (at != NULL) {
        return fail_at(file, "too many columns, expected " HEADER);
    }
    if (values[1] < values[0]) {
        return fail_at(file, "upper is less than lower");
    }
    return add_block(file, (struct place_block){.first = (uint32_t)values[0],
                                                .end = (uint32_t)values[1],
                                                .bytes = values[2]});
}

static bool read_rows(struct cases_file *file)
{
    char line[LINE_MAX_CHARS];
    bool more;
    if (!read_line(file, line, &more)) {
        return false;
    }
    if (!more || strcmp(line, HEADER) != 0) {
        file->line = 1;
        return fail_at(file, "the first line is not " HEADER);
    }
    while (read_line(file, line, &more)) {
        if (!more) {
            return true;
        }
        if (line[0] != '\0' && !parse_row(file, line)) {
            return false;
        }
    }
    return false;
}

static bool read_file(struct cases_file *file)
{
    file->stream = fopen(file->path, "r");
    if (file->stream == NULL) {
        (void)fprintf(stderr, "%s: cannot open: %s\n", file->path, strerror(errno));
        return false;
    }
    bool done = read_rows(file);
    (void)fclose(file->stream);
    return done;
}

/* Looks at all pairs: too simple to be wrong. */
static bool is_right(const struct cases_file *file, const struct place_result *result)
{
    for (uint32_t i = 0; i < file->count; i++) {
        const struct place_block *a = &file->blocks[i];
        uint64_t a_top = result->offsets[i] + a->bytes;
        if (a->bytes > 0 && a->first < a->end && a_top > result->height_bytes) {
            (void)fprintf(stderr, "%s: block %" PRIu32 " ends above the height\n", file->path, i);
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            const struct place_block *b = &file->blocks[j];
            if (a->first < b->end && b->first < a->end && a->first < a->end && b->first < b->end &&
                result->offsets[i] < result->offsets[j] + b->bytes && result->offsets[j] < a_top) {
                (void)fprintf(stderr, "%s: blocks %" PRIu32 " and %" PRIu32 " overlap\n",
                              file->path, j, i);
                return false;
            }
        }
    }
    return true;
}

static double now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int place_file(const struct cases_file *file, uint64_t capacity, uint64_t work_limit)
{
    const char *slash = strrchr(file->path, '/');
    struct region *region = region_create();
    struct place_result result;
    double begin = now_ms();
    place_offsets(file->blocks, file->count, capacity, work_limit, region, &result);
    double spent = now_ms() - begin;
    (void)printf("%-24s %6" PRIu32 " blocks  peak %" PRIu64 "  height %" PRIu64
                 "  capacity %" PRIu64 "  %s  %" PRIu64 " nodes  %.1f ms\n",
                 slash == NULL ? file->path : slash + 1, file->count, result.peak_bytes,
                 result.height_bytes, capacity, result.fits ? "fits" : "does not fit", result.work,
                 spent);
    bool good = is_right(file, &result) && result.fits;
    region_destroy(region);
    return good ? EXIT_FITS : EXIT_FAILS;
}

static int run_case(const char *path, uint64_t work_limit)
{
    struct cases_file file = {.path = path};
    uint64_t capacity = 0;
    if (!parse_capacity(path, &capacity)) {
        (void)fprintf(stderr, "%s: no capacity in the file's name, expected NAME.CAPACITY.csv\n",
                      path);
        return EXIT_INPUT;
    }
    int code = read_file(&file) ? place_file(&file, capacity, work_limit) : EXIT_INPUT;
    free(file.blocks);
    return code;
}

int main(int argc, char **argv)
{
    uint64_t work_limit = DEFAULT_WORK;
    int next = 1;
    if (next + 1 < argc && strcmp(argv[next], "--work") == 0) {
        if (!parse_number(argv[next + 1], strlen(argv[next + 1]), SUM_MAX, &work_limit)) {
            (void)fprintf(stderr, "place-cases: --work %s: expected a whole number\n",
                          argv[next + 1]);
            return EXIT_USAGE;
        }
        next += 2;
    }
    if (next >= argc || argv[next][0] == '-') {
        (void)fputs("usage: place-cases [--work N] NAME.CAPACITY.csv...\n", stderr);
        return EXIT_USAGE;
    }
    int worst = EXIT_FITS;
    for (; next < argc; next++) {
        int code = run_case(argv[next], work_limit);
        worst = code > worst ? code : worst;
        (void)fflush(stdout);
    }
    return worst;
}
