/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's arguments. common/train.c is what there is to copy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt.h"
#include "program.h"
#include "ranks.h"

const char program_name[] = "gpt";

struct settings {
    struct gpt_config net;
    struct training training;
    const char *text_path;
    uint32_t dropout_percent, seed;
    bool wants_help;
};

static const char help[] =
    "usage: gpt [option]...\n"
    "Trains a decoder in the shape of GPT-2 on the bytes of a text.\n"
    "\n" TRAINING_HELP "  --size NAME       toy, small or medium: the next four (toy)\n"
    "  --layers N        blocks (6, 12, 24)\n"
    "  --width N         width of the residual stream, a multiple of heads (128, 768, 1024)\n"
    "  --heads N         attention heads (4, 12, 16)\n"
    "  --context N       tokens in a sequence (64, 1024, 1024)\n"
    "  --batch N         sequences per iteration, of each rank (8)\n"
    "  --dropout N       percent (10)\n"
    "  --seed N          of parameters, choice of text and dropout (1)\n"
    "  --text FILE       train on this (the text that comes with the example)\n"
    "  --ranks N         this is one of N processes, started by mpirun -n N; {rank} in the\n"
    "                    names of profile and plan stands for its number\n"
    "\n" EXIT_CODES_HELP;

/* ---- arguments ---- */

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

static bool parse_other(void *ctx, const char *option, const char *value, bool *out_known)
{
    struct settings *s = (struct settings *)ctx;
    *out_known = true;
    if (strcmp(option, "--size") == 0) {
        return parse_size(value, &s->net);
    }
    *out_known = strcmp(option, "--text") == 0;
    s->text_path = value;
    return *out_known;
}

static bool parse(int argc, char **argv, struct settings *s)
{
    const struct number_option numbers[] = {
        {"--layers", 1, 1000, &s->net.layers}, {"--width", 1, 16384, &s->net.width},
        {"--heads", 1, 1024, &s->net.heads},   {"--context", 1, 16384, &s->net.context},
        {"--batch", 1, 65536, &s->net.batch},  {"--dropout", 0, 90, &s->dropout_percent},
        {"--seed", 0, UINT32_MAX, &s->seed},   {"--ranks", 1, 1024, &s->net.ranks}};
    const struct arguments arguments = {.training = &s->training,
                                        .numbers = numbers,
                                        .number_count = sizeof(numbers) / sizeof(numbers[0]),
                                        .other = parse_other,
                                        .ctx = s,
                                        .wants_help = &s->wants_help};
    if (!parse_arguments(argc, argv, &arguments)) {
        return false;
    }
    if (s->net.width % s->net.heads != 0) {
        (void)fprintf(stderr, "gpt: --width %" PRIu32 " is no multiple of --heads %" PRIu32 "\n",
                      s->net.width, s->net.heads);
        return false;
    }
    s->net.dropout = (float)s->dropout_percent / 100;
    s->net.seed = s->seed;
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

/* ---- the network as train.h wants it ---- */

static void load(void *ctx, uint64_t iteration, void *tokens, void *targets)
{
    gpt_load_batch((struct gpt *)ctx, iteration, (int32_t *)tokens, (int32_t *)targets);
}

static bool work(void *ctx, const struct work *work)
{
    return gpt_work((struct gpt *)ctx, work->step, work->iteration, work->reads, work->writes,
                    work->workspace);
}

static float loss_of_net(void *ctx)
{
    return gpt_loss((struct gpt *)ctx);
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
    struct network net = {.model = &gpt.model,
                          .device = gpt.device,
                          .resident_bytes = gpt_resident_bytes(&gpt),
                          .ctx = &gpt,
                          .load = load,
                          .work = work,
                          .loss = loss_of_net};
    int code = train_network(&training, &net, gpt.parameter_count);
    gpt_finish(&gpt);
    free(text);
    return code;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .net = {.batch = 8, .ranks = 1, .rate = 6e-4f, .decay = 0.1f},
        .training = {.iterations = 20, .copies = {.copies = ATP_HOST_THREADS}},
        .text_path = GPT_TEXT,
        .dropout_percent = 10,
        .seed = 1};
    (void)parse_size("toy", &settings.net);
    if (!parse(argc, argv, &settings)) {
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
