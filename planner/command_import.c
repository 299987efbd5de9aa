/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command.h"

#include "fail.h"
#include "import.h"
#include "out_file.h"
#include "profile_emit.h"
#include "words.h"
#include "yaml_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Traces of large models are large. */
#define TRACE_BYTES_MAX ((size_t)1 << 30)

/* The whole file; one byte more than the readers take shows that it is too long. */
static enum atp_status read_text(const char *path, size_t most, struct region *region,
                                 const char **out_text, size_t *out_size, struct atp_error *err)
{
    size_t size = 0, room = (size_t)1 << 16;
    FILE *file = fopen(path, "rb");
    char *text = file != NULL ? malloc(room) : NULL;
    while (text != NULL) {
        size += fread(text + size, 1, room - size, file);
        if (size < room || size > most) {
            break;
        }
        room *= 2;
        char *larger = realloc(text, room);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    enum atp_status status = ATP_OK;
    if (file == NULL || ferror(file)) {
        status = atp_fail(err, ATP_ERR_IO, "cannot %s %s: %s", file == NULL ? "open" : "read", path,
                          strerror(errno));
    } else if (text == NULL) {
        status = atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to read %s", path);
    } else {
        char *copy = REGION_NEW(region, char, size + 1);
        memcpy(copy, text, size);
        *out_text = copy;
        *out_size = size;
    }
    free(text);
    if (file != NULL) {
        (void)fclose(file);
    }
    return status;
}

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

enum exit_code command_import(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct profile profile;
    const char *text = NULL;
    size_t size = 0;
    if (options->output != NULL && out_file_is_same(options->input, options->output)) {
        (void)fputs("atp-plan: -o: the profile would replace what it is made of\n", stderr);
        return EXIT_CODE_USAGE;
    }
    const char *name = name_of_path(options->input, region);
    size_t most = options->pytorch ? TRACE_BYTES_MAX : DOC_BYTES_MAX;
    enum atp_status (*make)(const char *, size_t, const char *, const struct import_numbers *,
                            struct region *, struct profile *, struct atp_error *) =
        options->pytorch ? import_pytorch : import_csv;
    if (read_text(options->input, most, region, &text, &size, &err) != ATP_OK ||
        make(text, size, name, &options->import, region, &profile, &err) != ATP_OK ||
        profile_emit_to(profile_file_of(&profile, region), options->output, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (!options->quiet) {
        say(&profile);
    }
    return EXIT_CODE_DONE;
}
