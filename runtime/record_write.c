/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording as a profile file, version 1 (schemas/). Names are always quoted, so that no name can
 * be taken for another YAML type.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fail.h"
#include "link_probe.h"
#include "modeline.h"
#include "replay_state.h"
#include "whole_file.h"

#define DEFAULT_PROBE_BYTES ((uint64_t)16 << 20)

/* In double quotes, with the escapes of YAML; bytes of UTF-8 pass. */
static void write_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            (void)fprintf(file, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7F) {
            (void)fprintf(file, "\\x%02X", byte);
        } else {
            (void)fputc(byte, file);
        }
    }
    (void)fputc('"', file);
}

static void write_comment(FILE *file, const char *note)
{
    (void)fputs("# ", file);
    for (const char *c = note; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '\n') {
            (void)fputs("\n# ", file);
        } else {
            (void)fputc(byte < 0x20 || byte == 0x7F ? ' ' : byte, file);
        }
    }
    (void)fputc('\n', file);
}

static void write_us(FILE *file, int64_t ns)
{
    (void)fprintf(file, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

static void write_ids(FILE *file, const char *key, const struct atp_model *model,
                      const uint32_t *ids, uint32_t count)
{
    (void)fprintf(file, ", %s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ", " : "", file);
        write_text(file, model->tensors[ids[i]].name);
    }
    (void)fputs("]", file);
}

/* What makes a time doubtful, as a comment. */
static void write_doubts(FILE *file, const struct record_times *times)
{
    if (times->median_ns == 0) {
        (void)fputs(" # took no time", file);
    }
    if (times->is_unsteady) {
        (void)fputs(" # spread ", file);
        write_us(file, times->spread_ns);
        (void)fprintf(file, " us, %" PRIu32 " of %" PRIu32 " are outliers", times->outlier_count,
                      times->sample_count);
    }
    (void)fputc('\n', file);
}

/* One comment that says how good the times are. */
static void write_quality(FILE *file, const struct atp_replay *r)
{
    uint32_t unsteady_count = 0, zero_count = 0;
    struct record_times times = {0};
    for (uint32_t s = 0; s < r->plan->model.step_count; s++) {
        record_times(&r->record, s, &times);
        unsteady_count += times.is_unsteady;
        zero_count += times.median_ns == 0;
    }
    (void)fprintf(file,
                  "# Medians of %" PRIu32 " iterations; of %" PRIu32 " steps %" PRIu32
                  " are unsteady, %" PRIu32 " took no time.\n",
                  times.sample_count, r->plan->model.step_count, unsteady_count, zero_count);
}

static void write_step(FILE *file, const struct atp_replay *r, uint32_t s)
{
    const struct atp_model *model = &r->plan->model;
    const struct atp_step *step = &model->steps[s];
    struct record_times times;
    record_times(&r->record, s, &times);
    (void)fputs("  - {name: ", file);
    write_text(file, step->name);
    (void)fprintf(file, ", phase: %s, time_us: ", atp_phase_name(step->phase));
    write_us(file, times.median_ns);
    write_ids(file, "reads", model, step->reads, step->read_count);
    write_ids(file, "writes", model, step->writes, step->write_count);
    if (step->workspace_bytes > 0) {
        (void)fprintf(file, ", workspace_bytes: %" PRIu64, step->workspace_bytes);
    }
    (void)fputs(step->rerun_never ? ", rerun: never}" : "}", file);
    write_doubts(file, &times);
}

static void write_all(FILE *file, const struct atp_replay *r, const struct atp_profile_facts *facts,
                      const struct link_rates *rates)
{
    const struct atp_model *model = &r->plan->model;
    (void)fputs(atp_profile_modeline, file);
    if (facts->note != NULL) {
        write_comment(file, facts->note);
    }
    (void)fputs("atp_profile: 1\nmodel: ", file);
    write_text(file, model->name);
    (void)fputs("\ndevice:\n  name: ", file);
    write_text(file, facts->device_name != NULL ? facts->device_name : "unknown");
    (void)fprintf(file,
                  "\n  memory_bytes: %" PRIu64 "\n  d2h_bytes_per_second: %" PRIu64
                  "\n  h2d_bytes_per_second: %" PRIu64 "\n  d2h_duplex_bytes_per_second: %" PRIu64
                  "\n  h2d_duplex_bytes_per_second: %" PRIu64 "\n  copy_latency_us: ",
                  facts->device_memory_bytes, rates->d2h_bytes_per_second,
                  rates->h2d_bytes_per_second, rates->d2h_duplex_bytes_per_second,
                  rates->h2d_duplex_bytes_per_second);
    write_us(file, rates->copy_latency_ns);
    if (facts->pinned_bytes > 0) {
        (void)fprintf(file, "\nhost: {pinned_bytes: %" PRIu64 "}", facts->pinned_bytes);
    }
    (void)fprintf(file, "\nbatch_size: %" PRIu64 "\nresident_bytes: %" PRIu64 "\n",
                  model->batch_size, facts->resident_bytes);
    (void)fputs(model->tensor_count > 0 ? "tensors:\n" : "tensors: []\n", file);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        (void)fputs("  - {name: ", file);
        write_text(file, model->tensors[t].name);
        (void)fprintf(file, ", bytes: %" PRIu64 "}\n", model->tensors[t].bytes);
    }
    write_quality(file, r);
    (void)fputs("steps:\n", file);
    for (uint32_t s = 0; s < model->step_count; s++) {
        write_step(file, r, s);
    }
}

static enum atp_status write_file(const struct atp_replay *r, const char *path,
                                  const struct atp_profile_facts *facts,
                                  const struct link_rates *rates, struct atp_error *err)
{
    struct whole_file whole;
    ATP_TRY(whole_file_open(&whole, path, err));
    write_all(whole.file, r, facts, rates);
    return whole_file_finish(&whole, err);
}

/* What no profile can be without, and neither a model nor a recording is sure to have. */
static enum atp_status check_facts(const struct atp_model *model, const char *path,
                                   const struct atp_profile_facts *facts, struct atp_error *err)
{
    if (facts->device_memory_bytes == 0) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "%s: facts.device_memory_bytes is 0, expected the device's memory", path);
    }
    if (model->batch_size == 0) {
        return atp_fail(err, ATP_ERR_INVALID, "%s: the model's batch_size is 0, expected 1 or more",
                        path);
    }
    return ATP_OK;
}

enum atp_status atp_replay_write_profile(struct atp_replay *r, const char *path,
                                         const struct atp_profile_facts *facts,
                                         struct atp_error *err)
{
    struct link_rates rates;
    uint64_t probe_bytes =
        facts->copy_probe_bytes > 0 ? facts->copy_probe_bytes : DEFAULT_PROBE_BYTES;
    if (!r->options.record) {
        return atp_fail(err, ATP_ERR_STATE, "%s: the replay was opened without options.record",
                        path);
    }
    if (r->state != REPLAY_OUTSIDE && r->state != REPLAY_LOST) {
        return atp_fail(err, ATP_ERR_STATE, "%s: an iteration is under way", path);
    }
    ATP_TRY(check_facts(&r->plan->model, path, facts, err));
    ATP_TRY(record_read(&r->record, err));
    if (r->record.iteration_count == 0) {
        return atp_fail(err, ATP_ERR_STATE, "%s: no iteration is complete", path);
    }
    ATP_TRY(link_probe(r->backend, probe_bytes, &rates, err));
    return write_file(r, path, facts, &rates, err);
}
