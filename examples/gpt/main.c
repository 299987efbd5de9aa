/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's arguments. train.c is what there is to copy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt.h"
#include "ranks.h"
#include "train.h"

enum exit_code { EXIT_TRAINED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_BAD_PLAN = 3 };

struct settings {
    struct gpt_config net;
    struct training training;
    const char *text_path;
    uint32_t dropout_percent;
    bool wants_help;
};

static const char help[] =
    "usage: gpt [option]...\n"
    "Trains a decoder in the shape of GPT-2 on the bytes of a text.\n"
    "\n"
    "  --record FILE     time every step and write a profile there at the end\n"
    "  --plan FILE       replay this plan (made by atp-plan from a recorded profile)\n"
    "  --memory SIZE     fail if activations take more: 300MiB, 2GB (no limit)\n"
    "  --iterations N    how many to run (20)\n"
    "  --size NAME       toy, small or medium: the next four (toy)\n"
    "  --layers N        blocks (6, 12, 24)\n"
    "  --width N         width of the residual stream, a multiple of heads (128, 768, 1024)\n"
    "  --heads N         attention heads (4, 12, 16)\n"
    "  --context N       tokens in a sequence (64, 1024, 1024)\n"
    "  --batch N         sequences per iteration, of each rank (8)\n"
    "  --dropout N       percent (10)\n"
    "  --seed N          of parameters, choice of text and dropout (1)\n"
    "  --text FILE       train on this (the text that comes with the example)\n"
    "  --copies HOW      eager, late or threads (threads): when copies to the host run\n"
    "  --link SIZE       threads: copies take at least their bytes / SIZE seconds (as memcpy)\n"
    "  --poison          overwrite device bytes whenever they become free\n"
    "  --ranks N         this is one of N processes, started by mpirun -n N; {rank} in the\n"
    "                    names of profile and plan stands for its number\n"
    "  --print-losses    one loss a line on standard output, as exact hexadecimal floats\n"
    "  --help            this text\n"
    "\n"
    "A plan is good for the sizes and the batch that its profile was recorded with.\n"
    "Exit codes: 0 trained, 1 failed, 2 bad usage, 3 a plan that is bad or for another network.\n";

/* ---- arguments ---- */

static bool parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
                         uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < least || value > most) {
        (void)fprintf(stderr, "gpt: %s %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
                      option, text, least, most);
        return false;
    }
    *out = value;
    return true;
}

static bool parse_bytes(const char *option, const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"kB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"KiB", (uint64_t)1 << 10},
                 {"MiB", (uint64_t)1 << 20},
                 {"GiB", (uint64_t)1 << 30}};
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (errno == 0 && *text >= '0' && *text <= '9' && strcmp(end, units[i].name) == 0 &&
            value > 0 && value <= UINT64_MAX / units[i].bytes) {
            *out = value * units[i].bytes;
            return true;
        }
    }
    (void)fprintf(stderr, "gpt: %s %s: expected a size such as 300MiB or 2GB\n", option, text);
    return false;
}

static bool parse_copies(const char *text, enum atp_host_copies *out)
{
    static const char *const names[] = {"eager", "late", "threads"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum atp_host_copies)i;
            return true;
        }
    }
    (void)fprintf(stderr, "gpt: --copies %s: expected eager, late or threads\n", text);
    return false;
}

static bool parse_size(const char *text, struct gpt_config *net)
{
    static const struct {
        const char *name;
        uint32_t layers, width, heads, context;
    } sizes[] = {
        {"toy", 6, 128, 4, 64}, {"small", 12, 768, 12, 1024}, {"medium", 24, 1024, 16, 1024}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (strcmp(text, sizes[i].name) == 0) {
            net->layers = sizes[i].layers;
            net->width = sizes[i].width;
            net->heads = sizes[i].heads;
            net->context = sizes[i].context;
            return true;
        }
    }
    (void)fprintf(stderr, "gpt: --size %s: expected toy, small or medium\n", text);
    return false;
}

/* An option that takes a value. */
static bool parse_value(struct settings *s, const char *option, const char *value)
{
    const struct {
        const char *name;
        uint32_t least, most, *out;
    } numbers[] = {{"--layers", 1, 1000, &s->net.layers}, {"--width", 1, 16384, &s->net.width},
                   {"--heads", 1, 1024, &s->net.heads},   {"--context", 1, 16384, &s->net.context},
                   {"--batch", 1, 65536, &s->net.batch},  {"--dropout", 0, 90, &s->dropout_percent},
                   {"--ranks", 1, 1024, &s->net.ranks}};
    const struct {
        const char *name;
        const char **out;
    } words[] = {{"--record", &s->training.record_path},
                 {"--plan", &s->training.plan_path},
                 {"--text", &s->text_path}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(option, numbers[i].name) == 0) {
            uint64_t number;
            bool is_good = parse_number(option, value, numbers[i].least, numbers[i].most, &number);
            *numbers[i].out = is_good ? (uint32_t)number : 0;
            return is_good;
        }
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(option, words[i].name) == 0) {
            *words[i].out = value;
            return true;
        }
    }
    if (strcmp(option, "--iterations") == 0) {
        return parse_number(option, value, 1, 1000000000, &s->training.iterations);
    }
    if (strcmp(option, "--seed") == 0) {
        return parse_number(option, value, 0, UINT32_MAX, &s->net.seed);
    }
    if (strcmp(option, "--size") == 0) {
        return parse_size(value, &s->net);
    }
    if (strcmp(option, "--memory") == 0) {
        return parse_bytes(option, value, &s->training.memory_bytes);
    }
    if (strcmp(option, "--link") == 0) {
        return parse_bytes(option, value, &s->training.copies.bytes_per_second);
    }
    if (strcmp(option, "--copies") == 0) {
        return parse_copies(value, &s->training.copies.copies);
    }
    (void)fprintf(stderr, "gpt: no option %s; try gpt --help\n", option);
    return false;
}

static bool parse_arguments(int argc, char **argv, struct settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            s->wants_help = true;
        } else if (strcmp(argv[i], "--poison") == 0) {
            s->training.poison = true;
        } else if (strcmp(argv[i], "--print-losses") == 0) {
            s->training.prints_losses = true;
        } else if (i + 1 == argc) {
            (void)fprintf(stderr,
                          "gpt: %s: no such option, or its value is missing; try gpt --help\n",
                          argv[i]);
            return false;
        } else if (!parse_value(s, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    if (s->net.width % s->net.heads != 0) {
        (void)fprintf(stderr, "gpt: --width %" PRIu32 " is no multiple of --heads %" PRIu32 "\n",
                      s->net.width, s->net.heads);
        return false;
    }
    s->net.dropout = (float)s->dropout_percent / 100;
    return true;
}

/* ---- the text ---- */

/* The caller frees it; NULL with the reason on standard error. */
static char *read_text(const char *path, uint32_t context, uint64_t *out_size)
{
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
        rewind(file);
    }
    if (size > 0) {
        text = (char *)malloc((size_t)size);
    }
    if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) {
        (void)fprintf(stderr, "gpt: %s: cannot be read\n", path);
        free(text);
        text = NULL;
    } else if ((uint64_t)size <= context) {
        (void)fprintf(stderr, "gpt: %s: is no longer than the context of %" PRIu32 " bytes\n", path,
                      context);
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    *out_size = (uint64_t)size;
    return text;
}

/* ---- several ranks ---- */

/* With the rank's number for "{rank}"; `path` may be NULL. False when it is too long. */
static bool name_for_rank(const char **path, uint32_t rank, char *out, size_t out_size)
{
    const char *mark = *path == NULL ? NULL : strstr(*path, "{rank}");
    if (mark == NULL) {
        return true;
    }
    int length = snprintf(out, out_size, "%.*s%" PRIu32 "%s", (int)(mark - *path), *path, rank,
                          mark + strlen("{rank}"));
    *path = out;
    return length > 0 && (size_t)length < out_size;
}

/* ---- */

static int train_net(const struct training *t, struct gpt *gpt)
{
    struct atp_error err = {.status = ATP_OK};
    enum atp_status status = train(t, gpt, &err);
    const char *failure = device_failure(gpt->device);
    if (status == ATP_OK && failure == NULL) {
        return EXIT_TRAINED;
    }
    bool is_plan = t->plan_path != NULL && failure == NULL &&
                   (err.line > 0 || status == ATP_ERR_INVALID || status == ATP_ERR_MISMATCH ||
                    status == ATP_ERR_IO);
    if (err.line > 0) {
        (void)fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": %s\n", t->plan_path, err.line,
                      err.column, err.text);
    } else {
        (void)fprintf(stderr, "gpt: %s%s%s\n", is_plan && status != ATP_ERR_IO ? t->plan_path : "",
                      is_plan && status != ATP_ERR_IO ? ": " : "",
                      failure != NULL ? failure : err.text);
    }
    return is_plan ? EXIT_BAD_PLAN : EXIT_FAILED;
}

static int run(const struct settings *s)
{
    struct training training = s->training;
    char record_path[4096], plan_path[4096];
    uint64_t text_size;
    struct gpt gpt;
    if (!name_for_rank(&training.record_path, s->net.rank, record_path, sizeof(record_path)) ||
        !name_for_rank(&training.plan_path, s->net.rank, plan_path, sizeof(plan_path))) {
        (void)fputs("gpt: the name of a file is too long\n", stderr);
        return EXIT_USAGE;
    }
    char *text = read_text(s->text_path, s->net.context, &text_size);
    if (text == NULL) {
        return EXIT_FAILED;
    }
    if (!gpt_init(&gpt, &s->net, text, text_size)) {
        (void)fputs("gpt: no device, or not enough memory for the network\n", stderr);
        free(text);
        return EXIT_FAILED;
    }
    gpt.sum_over_ranks = ranks_sum;
    training.is_silent = s->net.rank != 0;
    if (!training.is_silent) {
        (void)fprintf(stderr,
                      "gpt: %" PRIu64 " parameters, %" PRIu64 " resident bytes, %" PRIu32
                      " steps on %" PRIu32 " tensors\n",
                      gpt.parameter_count, gpt_resident_bytes(&gpt), gpt.model.step_count,
                      gpt.model.tensor_count);
    }
    int code = train_net(&training, &gpt);
    gpt_finish(&gpt);
    free(text);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .net = {.batch = 8, .ranks = 1, .rate = 6e-4f, .decay = 0.1f, .seed = 1},
        .training = {.iterations = 20, .copies = {.copies = ATP_HOST_THREADS}},
        .text_path = GPT_TEXT,
        .dropout_percent = 10};
    (void)parse_size("toy", &settings.net);
    if (!parse_arguments(argc, argv, &settings)) {
        return EXIT_USAGE;
    }
    if (settings.wants_help) {
        (void)fputs(help, stdout);
        return EXIT_TRAINED;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* losses among the words of standard error */
    bool has_ranks = settings.net.ranks > 1;
    if (has_ranks && !ranks_begin(settings.net.ranks, &settings.net.rank)) {
        return EXIT_FAILED;
    }
    int code = run(&settings);
    if (has_ranks) {
        ranks_end(code != EXIT_TRAINED);
    }
    return code;
}
