/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command.h"

#include "fail.h"
#include "import.h"
#include "out_file.h"
#include "profile_emit.h"
#include "words.h"
#include "yaml_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Traces of large models are large. */
#define TRACE_BYTES_MAX ((size_t)1 << 30)

/* "layers" of "measured/layers.csv". */
static const char *name_of_path(const char *path, struct region *region)
{
    const char *slash = strrchr(path, '/');
    char *name = region_copy_text(region, slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name) {
        *dot = '\0';
    }
    if (strlen(name) > DOC_NAME_MAX || name[0] == '\0') {
        return "imported";
    }
    return name;
}

static void say(const struct profile *profile)
{
    int64_t ns = 0;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < profile->model.step_count; s++) {
        ns += profile->clock.step_ns[s];
    }
    for (uint32_t t = 0; t < profile->model.tensor_count; t++) {
        bytes += profile->model.tensors[t].bytes;
    }
    (void)fprintf(stderr, "%s: %" PRIu32 " steps, %s; %" PRIu32 " tensors", profile->model.name,
                  profile->model.step_count, words_time(ns).text, profile->model.tensor_count);
    (void)fprintf(stderr, ", %s\n%s\n", words_bytes(bytes).text, profile->origin);
}

/* The profile borrows from the text. */
static enum atp_status import(const struct options *options, const char *text, size_t size,
                              struct region *region, struct atp_error *err)
{
    struct profile profile;
    const char *name = name_of_path(options->input, region);
    ATP_TRY((options->pytorch ? import_pytorch : import_csv)(text, size, name, &options->import,
                                                             region, &profile, err));
    ATP_TRY(profile_emit_to(profile_file_of(&profile, region), options->output, err));
    if (!options->quiet) {
        say(&profile);
    }
    return ATP_OK;
}

enum exit_code command_import(const struct options *options, struct region *region)
{
    struct atp_error err;
    char *text = NULL;
    size_t size = 0;
    if (options->output != NULL && out_file_is_same(options->input, options->output)) {
        (void)fputs("atp-plan: -o: the profile would replace what it is made of\n", stderr);
        return EXIT_CODE_USAGE;
    }
    size_t most = options->pytorch ? TRACE_BYTES_MAX : DOC_BYTES_MAX;
    if (doc_read_text(options->input, most, &text, &size, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    enum atp_status status = import(options, text, size, region, &err);
    free(text);
    return status == ATP_OK ? EXIT_CODE_DONE : command_fail(options->input, &err);
}
