/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A value that is the same at all batch sizes stands alone, others are lists.
 */
#include "profile_emit.h"

#include "fail.h"
#include "modeline.h"
#include "out_file.h"
#include "profile_file.h"
#include "yaml_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct emitter {
    const struct profile_file *file;
    FILE *out;
};

static void put_bytes(FILE *out, uint64_t bytes)
{
    (void)fprintf(out, "%" PRIu64, bytes);
}

static void put_time(FILE *out, uint64_t ns)
{
    (void)fprintf(out, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void put_series(const struct emitter *e, const uint64_t *series,
                       void (*put)(FILE *out, uint64_t value))
{
    uint32_t count = e->file->batch_count, same = 1;
    while (same < count && series[same] == series[0]) {
        same++;
    }
    if (same == count) {
        put(e->out, series[0]);
        return;
    }
    for (uint32_t b = 0; b < count; b++) {
        (void)fputs(b == 0 ? "[" : ", ", e->out);
        put(e->out, series[b]);
    }
    (void)fputc(']', e->out);
}

static void put_rate(const struct emitter *e, const char *key, uint64_t rate)
{
    if (rate != 0) {
        (void)fprintf(e->out, ",\n  %s: %" PRIu64, key, rate);
    }
}

static void put_device(const struct emitter *e)
{
    const struct profile_file *file = e->file;
    (void)fputs("device: {name: ", e->out);
    yaml_text(e->out, file->device_name);
    (void)fprintf(e->out, ", memory_bytes: %" PRIu64, file->device_memory_bytes);
    put_rate(e, "d2h_bytes_per_second", file->link.d2h);
    put_rate(e, "h2d_bytes_per_second", file->link.h2d);
    put_rate(e, "d2h_duplex_bytes_per_second", file->link.d2h_duplex);
    put_rate(e, "h2d_duplex_bytes_per_second", file->link.h2d_duplex);
    if (file->copy_latency_ns != 0) {
        (void)fputs(",\n  copy_latency_us: ", e->out);
        put_time(e->out, (uint64_t)file->copy_latency_ns);
    }
    (void)fputs("}\n", e->out);
    if (file->pinned_bytes != UINT64_MAX) {
        (void)fprintf(e->out, "host: {pinned_bytes: %" PRIu64 "}\n", file->pinned_bytes);
    }
}

static void put_head(const struct emitter *e)
{
    const struct profile_file *file = e->file;
    (void)fputs(atp_profile_modeline, e->out);
    (void)fputs("atp_profile: 1\nmodel: ", e->out);
    yaml_text(e->out, file->model_name);
    if (file->origin != NULL) {
        (void)fputs("\norigin: ", e->out);
        yaml_text(e->out, file->origin);
    }
    (void)fputc('\n', e->out);
    put_device(e);
    (void)fputs(file->batch_count == 1 ? "batch_size: " : "batch_sizes: [", e->out);
    put_bytes(e->out, file->batch_sizes[0]);
    for (uint32_t b = 1; b < file->batch_count; b++) {
        (void)fprintf(e->out, ", %" PRIu64, file->batch_sizes[b]);
    }
    (void)fprintf(e->out, "%s\nresident_bytes: ", file->batch_count == 1 ? "" : "]");
    put_series(e, file->resident_bytes, put_bytes);
    (void)fputc('\n', e->out);
}

static void put_tensors(const struct emitter *e)
{
    static const char *const pins[] = {[PROFILE_PIN_NONE] = "",
                                       [PROFILE_PIN_KEEP] = ", decide: keep",
                                       [PROFILE_PIN_SWAP] = ", decide: swap",
                                       [PROFILE_PIN_RECOMPUTE] = ", decide: recompute"};
    (void)fputs(e->file->tensor_count == 0 ? "tensors: []\n" : "tensors:\n", e->out);
    for (uint32_t t = 0; t < e->file->tensor_count; t++) {
        const struct profile_tensor *tensor = &e->file->tensors[t];
        (void)fputs("  - {name: ", e->out);
        yaml_text(e->out, tensor->name);
        (void)fputs(", bytes: ", e->out);
        put_series(e, tensor->bytes, put_bytes);
        (void)fprintf(e->out, "%s}\n", pins[tensor->pin]);
    }
}

static void put_uses(const struct emitter *e, const char *key, const uint32_t *ids, uint32_t count)
{
    (void)fprintf(e->out, ", %s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ", " : "", e->out);
        yaml_text(e->out, e->file->tensors[ids[i]].name);
    }
    (void)fputc(']', e->out);
}

static bool is_zero(const uint64_t *series, uint32_t count)
{
    for (uint32_t b = 0; b < count; b++) {
        if (series[b] != 0) {
            return false;
        }
    }
    return true;
}

static void put_steps(const struct emitter *e)
{
    (void)fputs("steps:\n", e->out);
    for (uint32_t s = 0; s < e->file->step_count; s++) {
        const struct profile_step *step = &e->file->steps[s];
        (void)fputs("  - {name: ", e->out);
        yaml_text(e->out, step->step.name);
        (void)fprintf(e->out, ", phase: %s, time_us: ", atp_phase_name(step->step.phase));
        put_series(e, step->time_ns, put_time);
        put_uses(e, "reads", step->step.reads, step->step.read_count);
        put_uses(e, "writes", step->step.writes, step->step.write_count);
        if (!is_zero(step->workspace_bytes, e->file->batch_count)) {
            (void)fputs(", workspace_bytes: ", e->out);
            put_series(e, step->workspace_bytes, put_bytes);
        }
        (void)fputs(step->step.rerun_never ? ", rerun: never}\n" : "}\n", e->out);
    }
}

/* What was written is read again, so that no file is left that the reader refuses. */
static enum atp_status check_text(const char *text, size_t size, struct atp_error *err)
{
    struct region *region = region_create();
    const struct profile_file *again = NULL;
    struct atp_error cause;
    enum atp_status status = profile_parse(text, size, region, &again, &cause);
    if (status != ATP_OK) {
        status = atp_fail(err, status, "this makes no profile: %s", cause.text);
    }
    region_destroy(region);
    return status;
}

enum atp_status profile_emit(const struct profile_file *file, FILE *out, struct atp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    const struct emitter e = {.file = file, .out = open_memstream(&text, &size)};
    if (e.out != NULL) {
        put_head(&e);
        put_tensors(&e);
        put_steps(&e);
    }
    if (e.out == NULL || fclose(e.out) != 0) {
        free(text);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to write a profile");
    }
    enum atp_status status = check_text(text, size, err);
    if (status == ATP_OK && (fwrite(text, 1, size, out) != size || fflush(out) != 0)) {
        status = atp_fail(err, ATP_ERR_IO, "cannot write the profile: %s", strerror(errno));
    }
    free(text);
    return status;
}

enum atp_status profile_emit_to(const struct profile_file *file, const char *path,
                                struct atp_error *err)
{
    struct out_file out;
    ATP_TRY(out_file_open(path, &out, err));
    return out_file_end(&out, profile_emit(file, out.stream, err), err);
}
