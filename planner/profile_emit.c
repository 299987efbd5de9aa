/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Texts are written as JSON, which YAML has as its double-quoted style.
 */
#include "profile_emit.h"

#include "fail.h"
#include "json.h"
#include "modeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_uses(const struct atp_model *model, const char *key, uint32_t count,
                     const uint32_t *ids, FILE *out)
{
    (void)fprintf(out, ", %s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        json_text(out, model->tensors[ids[i]].name);
    }
    (void)fputc(']', out);
}

static void put_step(const struct profile *profile, uint32_t index, FILE *out)
{
    const struct atp_model *model = &profile->model;
    const struct atp_step *step = &model->steps[index];
    (void)fputs("  - {name: ", out);
    json_text(out, step->name);
    (void)fprintf(out, ", phase: %s, time_us: ", atp_phase_name(step->phase));
    json_us(out, profile->clock.step_ns[index]);
    put_uses(model, "reads", step->read_count, step->reads, out);
    put_uses(model, "writes", step->write_count, step->writes, out);
    if (step->workspace_bytes > 0) {
        (void)fprintf(out, ", workspace_bytes: %" PRIu64, step->workspace_bytes);
    }
    (void)fputs(step->rerun_never ? ", rerun: never}\n" : "}\n", out);
}

static void put_profile(const struct profile *profile, FILE *out)
{
    const struct atp_model *model = &profile->model;
    (void)fputs(atp_profile_modeline, out);
    (void)fputs("atp_profile: 1\nmodel: ", out);
    json_text(out, model->name);
    if (profile->origin != NULL) {
        (void)fputs("\norigin: ", out);
        json_text(out, profile->origin);
    }
    (void)fputs("\ndevice: {name: ", out);
    json_text(out, profile->device_name);
    (void)fprintf(out,
                  ", memory_bytes: %" PRIu64 ", d2h_bytes_per_second: %" PRIu64
                  ", h2d_bytes_per_second: %" PRIu64 "}\n",
                  profile->device_memory_bytes, profile->clock.d2h_bytes_per_second,
                  profile->clock.h2d_bytes_per_second);
    (void)fprintf(out, "batch_size: %" PRIu64 "\nresident_bytes: %" PRIu64 "\ntensors:%s\n",
                  model->batch_size, profile->resident_bytes,
                  model->tensor_count == 0 ? " []" : "");
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        (void)fputs("  - {name: ", out);
        json_text(out, model->tensors[t].name);
        (void)fprintf(out, ", bytes: %" PRIu64 "}\n", model->tensors[t].bytes);
    }
    (void)fputs("steps:\n", out);
    for (uint32_t s = 0; s < model->step_count; s++) {
        put_step(profile, s, out);
    }
}

enum atp_status profile_emit(const struct profile *profile, struct region *region, FILE *out,
                             struct atp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    const struct profile_file *again = NULL;
    struct atp_error cause;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to write a profile");
    }
    put_profile(profile, memory);
    if (fclose(memory) != 0) {
        free(text);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to write a profile");
    }
    enum atp_status status = profile_parse(text, size, region, &again, &cause);
    if (status != ATP_OK) {
        status = atp_fail(err, status, "this makes no profile: %s", cause.text);
    } else if (fwrite(text, 1, size, out) != size || fflush(out) != 0) {
        status = atp_fail(err, ATP_ERR_IO, "cannot write the profile: %s", strerror(errno));
    }
    free(text);
    return status;
}
