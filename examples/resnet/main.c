/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's arguments. common/train.c is what there is to copy.
 */
#include <inttypes.h>
#include <stdio.h>

#include "program.h"
#include "resnet.h"

const char program_name[] = "resnet";

struct settings {
    struct resnet_config net;
    struct training training;
    uint32_t seed;
    bool prints_statistics, wants_help;
};

static const char help[] =
    "usage: resnet [option]...\n"
    "Trains a residual convolutional network to tell in which direction stripes run.\n"
    "\n" TRAINING_HELP "  --print-statistics\n"
    "                    at the end, a digest of the running statistics of all normalisations\n"
    "  --blocks N        of two convolutions, in each of three stages (3)\n"
    "  --width N         channels of the first stage; later stages double them (16)\n"
    "  --image N         pixels of a side, a multiple of 4 (32)\n"
    "  --batch N         images per iteration (32)\n"
    "  --seed N          of parameters and images (1)\n"
    "\n" EXIT_CODES_HELP;

static bool parse(int argc, char **argv, struct settings *s)
{
    const struct number_option numbers[] = {{"--blocks", 1, 1000, &s->net.blocks},
                                            {"--width", 1, 1024, &s->net.width},
                                            {"--image", 4, 1024, &s->net.image},
                                            {"--batch", 1, 65536, &s->net.batch},
                                            {"--seed", 0, UINT32_MAX, &s->seed}};
    const struct arguments arguments = {.training = &s->training,
                                        .numbers = numbers,
                                        .number_count = sizeof(numbers) / sizeof(numbers[0]),
                                        .flag = &s->prints_statistics,
                                        .flag_name = "--print-statistics",
                                        .wants_help = &s->wants_help};
    if (!parse_arguments(argc, argv, &arguments)) {
        return false;
    }
    if (s->net.image % 4 != 0) {
        (void)fprintf(stderr, "resnet: --image %" PRIu32 " is no multiple of 4\n", s->net.image);
        return false;
    }
    s->net.seed = s->seed;
    return true;
}

/* ---- the network as train.h wants it ---- */

static void load(void *ctx, uint64_t iteration, void *images, void *labels)
{
    resnet_load_batch((struct resnet *)ctx, iteration, (float *)images, (int32_t *)labels);
}

static bool work(void *ctx, const struct work *work)
{
    resnet_work((struct resnet *)ctx, work);
    return true;
}

static float loss_of_net(void *ctx)
{
    return resnet_loss((struct resnet *)ctx);
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .net = {.blocks = 3, .width = 16, .image = 32, .batch = 32, .rate = 2e-3f, .decay = 0.05f},
        .training = {.iterations = 20, .copies = {.copies = ATP_HOST_THREADS}},
        .seed = 1};
    struct resnet resnet;
    if (!parse(argc, argv, &settings)) {
        return EXIT_USAGE;
    }
    if (settings.wants_help) {
        (void)fputs(help, stdout);
        return EXIT_TRAINED;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* losses among the words of standard error */
    if (!resnet_init(&resnet, &settings.net)) {
        (void)fputs("resnet: no device, or not enough memory for the network\n", stderr);
        return EXIT_FAILED;
    }
    struct network net = {.model = &resnet.model,
                          .device = resnet.device,
                          .resident_bytes = resnet_resident_bytes(&resnet),
                          .ctx = &resnet,
                          .load = load,
                          .work = work,
                          .loss = loss_of_net};
    int code = train_network(&settings.training, &net, resnet.parameter_count);
    if (code == EXIT_TRAINED && settings.prints_statistics) {
        (void)printf("statistics %016" PRIx64 "\n", resnet_running_digest(&resnet));
    }
    resnet_finish(&resnet);
    return code;
}
