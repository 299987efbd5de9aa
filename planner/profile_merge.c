/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The first input sets the structure, every other one is held against it. A column is one batch
 * size of one input; the columns in ascending order are the merged series. Linear in the size of
 * the inputs.
 */
#include "profile_merge.h"

#include "fail.h"
#include "profile_file.h"
#include "yaml_reader.h"
#include "yaml_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct column {
    uint32_t input, index; /* of the input's batch sizes */
    uint64_t batch;
};

struct merge {
    const struct profile_merge_input *inputs;
    uint32_t input_count, column_count;
    struct column columns[PROFILE_BATCHES_MAX];
    struct region *region;
    uint32_t at; /* the input that is looked at */
    struct atp_error *err;
};

/* "PATH: what, expected ... as in FILE:LINE". */
__attribute__((format(printf, 5, 6))) static enum atp_status
fail_at(const struct merge *m, struct profile_place place, const char *path,
        struct profile_place other, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    enum atp_status status = atp_fail(m->err, ATP_ERR_INVALID, "%s: %s as in %s:%" PRIu32, path,
                                      text, m->inputs[0].path, other.line);
    if (m->err != NULL) {
        m->err->line = place.line;
        m->err->column = place.column;
    }
    return status;
}

static enum atp_status same_head(const struct merge *m)
{
    const struct profile_file *is = m->inputs[m->at].file, *as = m->inputs[0].file;
    if (strcmp(is->model_name, as->model_name) != 0) {
        return fail_at(m, is->model_place, "model", as->model_place,
                       "this is \"%s\", expected \"%s\"", doc_shorten(is->model_name).text,
                       doc_shorten(as->model_name).text);
    }
    if (strcmp(is->device_name, as->device_name) != 0) {
        return fail_at(m, is->device_place, "device.name", as->device_place,
                       "this is \"%s\", expected \"%s\"", doc_shorten(is->device_name).text,
                       doc_shorten(as->device_name).text);
    }
    if (is->device_memory_bytes != as->device_memory_bytes) {
        return fail_at(m, is->device_place, "device.memory_bytes", as->device_place,
                       "this is %" PRIu64 ", expected %" PRIu64, is->device_memory_bytes,
                       as->device_memory_bytes);
    }
    return ATP_OK;
}

static const char *pin_name(enum profile_pin pin)
{
    static const char *const names[] = {
        [PROFILE_PIN_NONE] = "not there",
        [PROFILE_PIN_KEEP] = "keep",
        [PROFILE_PIN_SWAP] = "swap",
        [PROFILE_PIN_RECOMPUTE] = "recompute",
    };
    return names[pin];
}

static enum atp_status same_tensor(const struct merge *m, uint32_t id)
{
    const struct profile_tensor *is = &m->inputs[m->at].file->tensors[id];
    const struct profile_tensor *as = &m->inputs[0].file->tensors[id];
    char path[48];
    if (strcmp(is->name, as->name) != 0) {
        (void)snprintf(path, sizeof(path), "tensors[%" PRIu32 "].name", id);
        return fail_at(m, is->place, path, as->place, "this is \"%s\", expected \"%s\"",
                       doc_shorten(is->name).text, doc_shorten(as->name).text);
    }
    if (is->pin != as->pin) {
        (void)snprintf(path, sizeof(path), "tensors[%" PRIu32 "].decide", id);
        return fail_at(m, is->place, path, as->place, "this is %s, expected %s", pin_name(is->pin),
                       pin_name(as->pin));
    }
    return ATP_OK;
}

/* Names, not ids: those of the tensors are known to agree by now, but ids say nothing to people. */
static enum atp_status same_uses(const struct merge *m, uint32_t id, bool is_reads)
{
    const struct profile_file *file = m->inputs[m->at].file, *other = m->inputs[0].file;
    const struct profile_step *is = &file->steps[id], *as = &other->steps[id];
    const uint32_t *a = is_reads ? is->step.reads : is->step.writes;
    const uint32_t *b = is_reads ? as->step.reads : as->step.writes;
    uint32_t a_count = is_reads ? is->step.read_count : is->step.write_count;
    uint32_t b_count = is_reads ? as->step.read_count : as->step.write_count;
    uint32_t i = 0;
    while (i < a_count && i < b_count && a[i] == b[i]) {
        i++;
    }
    if (i == a_count && i == b_count) {
        return ATP_OK;
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "steps[%" PRIu32 "].%s[%" PRIu32 "]", id,
                   is_reads ? "reads" : "writes", i);
    if (i == a_count) {
        return fail_at(m, is->place, path, as->place, "nothing is there, expected \"%s\"",
                       doc_shorten(other->tensors[b[i]].name).text);
    }
    if (i == b_count) {
        return fail_at(m, is->place, path, as->place, "this is \"%s\", expected none",
                       doc_shorten(file->tensors[a[i]].name).text);
    }
    return fail_at(m, is->place, path, as->place, "this is \"%s\", expected \"%s\"",
                   doc_shorten(file->tensors[a[i]].name).text,
                   doc_shorten(other->tensors[b[i]].name).text);
}

static enum atp_status same_step(const struct merge *m, uint32_t id)
{
    const struct profile_step *is = &m->inputs[m->at].file->steps[id];
    const struct profile_step *as = &m->inputs[0].file->steps[id];
    char path[48];
    if (strcmp(is->step.name, as->step.name) != 0) {
        (void)snprintf(path, sizeof(path), "steps[%" PRIu32 "].name", id);
        return fail_at(m, is->place, path, as->place, "this is \"%s\", expected \"%s\"",
                       doc_shorten(is->step.name).text, doc_shorten(as->step.name).text);
    }
    if (is->step.phase != as->step.phase) {
        (void)snprintf(path, sizeof(path), "steps[%" PRIu32 "].phase", id);
        return fail_at(m, is->place, path, as->place, "this is %s, expected %s",
                       atp_phase_name(is->step.phase), atp_phase_name(as->step.phase));
    }
    if (is->step.rerun_never != as->step.rerun_never) {
        (void)snprintf(path, sizeof(path), "steps[%" PRIu32 "].rerun", id);
        return fail_at(m, is->place, path, as->place, "this is %s, expected %s",
                       is->step.rerun_never ? "never" : "allowed",
                       as->step.rerun_never ? "never" : "allowed");
    }
    ATP_TRY(same_uses(m, id, true));
    return same_uses(m, id, false);
}

/* Of two lists that agree as far as the shorter one goes. `is` and `as` are the places of the
 * entry at which only one of them has ended; the other's is that of its list's head. */
static enum atp_status fail_length(const struct merge *m, const char *list, uint32_t is_count,
                                   uint32_t as_count, struct profile_place is,
                                   struct profile_place as)
{
    char path[48];
    uint32_t least = is_count < as_count ? is_count : as_count;
    (void)snprintf(path, sizeof(path), "%s[%" PRIu32 "]", list, least);
    if (is_count < as_count) {
        return fail_at(m, is, path, as, "the list ends here, expected %" PRIu32 " entries",
                       as_count);
    }
    return fail_at(m, is, path, as, "this is one too many, expected %" PRIu32 " entries", as_count);
}

static enum atp_status same_tensors(const struct merge *m)
{
    const struct profile_file *is = m->inputs[m->at].file, *as = m->inputs[0].file;
    uint32_t a = is->tensor_count, b = as->tensor_count;
    for (uint32_t t = 0; t < a && t < b; t++) {
        ATP_TRY(same_tensor(m, t));
    }
    if (a != b) {
        return fail_length(m, "tensors", a, b, a > b ? is->tensors[b].place : is->tensors_place,
                           b > a ? as->tensors[a].place : as->tensors_place);
    }
    return ATP_OK;
}

static enum atp_status same_steps(const struct merge *m)
{
    const struct profile_file *is = m->inputs[m->at].file, *as = m->inputs[0].file;
    uint32_t a = is->step_count, b = as->step_count;
    for (uint32_t s = 0; s < a && s < b; s++) {
        ATP_TRY(same_step(m, s));
    }
    if (a != b) {
        return fail_length(m, "steps", a, b, a > b ? is->steps[b].place : is->steps_place,
                           b > a ? as->steps[a].place : as->steps_place);
    }
    return ATP_OK;
}

/* Puts the batch sizes of the input among the columns. */
static enum atp_status add_columns(struct merge *m)
{
    const struct profile_file *file = m->inputs[m->at].file;
    const char *key = file->batch_count > 1 ? "batch_sizes" : "batch_size";
    for (uint32_t b = 0; b < file->batch_count; b++) {
        uint64_t batch = file->batch_sizes[b];
        uint32_t i = m->column_count;
        while (i > 0 && m->columns[i - 1].batch >= batch) {
            i--;
        }
        if (i < m->column_count && m->columns[i].batch == batch) {
            (void)atp_fail(m->err, ATP_ERR_INVALID,
                           "%s: %" PRIu64 " is in %s:%" PRIu32 " too, expected each one once", key,
                           batch, m->inputs[m->columns[i].input].path,
                           m->inputs[m->columns[i].input].file->batch_place.line);
        } else if (m->column_count == PROFILE_BATCHES_MAX) {
            (void)atp_fail(m->err, ATP_ERR_INVALID,
                           "%s: %" PRIu64 " is one too many, expected %u batch sizes at most", key,
                           batch, PROFILE_BATCHES_MAX);
        } else {
            memmove(&m->columns[i + 1], &m->columns[i],
                    (m->column_count - i) * sizeof(m->columns[0]));
            m->columns[i] = (struct column){.input = m->at, .index = b, .batch = batch};
            m->column_count++;
            continue;
        }
        if (m->err != NULL) {
            m->err->line = file->batch_place.line;
            m->err->column = file->batch_place.column;
        }
        return ATP_ERR_INVALID;
    }
    return ATP_OK;
}

static const struct profile_file *file_of(const struct merge *m, uint32_t column)
{
    return m->inputs[m->columns[column].input].file;
}

static void merge_tensors(const struct merge *m, struct profile_file *out)
{
    struct profile_tensor *tensors =
        REGION_NEW(m->region, struct profile_tensor, out->tensor_count);
    for (uint32_t t = 0; t < out->tensor_count; t++) {
        uint64_t *bytes = REGION_NEW(m->region, uint64_t, m->column_count);
        for (uint32_t c = 0; c < m->column_count; c++) {
            bytes[c] = file_of(m, c)->tensors[t].bytes[m->columns[c].index];
        }
        tensors[t] = m->inputs[0].file->tensors[t];
        tensors[t].bytes = bytes;
    }
    out->tensors = tensors;
}

static void merge_steps(const struct merge *m, struct profile_file *out)
{
    struct profile_step *steps = REGION_NEW(m->region, struct profile_step, out->step_count);
    for (uint32_t s = 0; s < out->step_count; s++) {
        uint64_t *time_ns = REGION_NEW(m->region, uint64_t, m->column_count);
        uint64_t *workspace_bytes = REGION_NEW(m->region, uint64_t, m->column_count);
        for (uint32_t c = 0; c < m->column_count; c++) {
            const struct profile_step *step = &file_of(m, c)->steps[s];
            time_ns[c] = step->time_ns[m->columns[c].index];
            workspace_bytes[c] = step->workspace_bytes[m->columns[c].index];
        }
        steps[s] = m->inputs[0].file->steps[s];
        steps[s].time_ns = time_ns;
        steps[s].workspace_bytes = workspace_bytes;
    }
    out->steps = steps;
}

/* The lower of two rates, where 0 is none. */
static uint64_t lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static bool is_far(uint64_t low, uint64_t high)
{
    return high - low > high / 10;
}

static void merge_link(const struct merge *m, struct profile_file *out,
                       struct profile_merge_report *report)
{
    struct profile_link low = out->link, high = out->link;
    int64_t low_latency = out->copy_latency_ns;
    uint64_t pinned = out->pinned_bytes;
    for (uint32_t i = 1; i < m->input_count; i++) {
        const struct profile_file *file = m->inputs[i].file;
        const uint64_t rates[] = {file->link.d2h, file->link.h2d, file->link.d2h_duplex,
                                  file->link.h2d_duplex};
        uint64_t *lows[] = {&low.d2h, &low.h2d, &low.d2h_duplex, &low.h2d_duplex};
        uint64_t *highs[] = {&high.d2h, &high.h2d, &high.d2h_duplex, &high.h2d_duplex};
        for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
            *lows[r] = lower(*lows[r], rates[r]);
            *highs[r] = rates[r] > *highs[r] ? rates[r] : *highs[r];
            report->links_differ = report->links_differ || is_far(*lows[r], *highs[r]);
        }
        int64_t latency = file->copy_latency_ns;
        low_latency = latency < low_latency ? latency : low_latency;
        out->copy_latency_ns = latency > out->copy_latency_ns ? latency : out->copy_latency_ns;
        out->pinned_bytes =
            file->pinned_bytes < out->pinned_bytes ? file->pinned_bytes : out->pinned_bytes;
        report->pinned_differ = report->pinned_differ || file->pinned_bytes != pinned;
    }
    report->links_differ =
        report->links_differ || is_far((uint64_t)low_latency, (uint64_t)out->copy_latency_ns);
    out->link = low;
    profile_file_set_rates(out);
}

/* Where each batch size's numbers come from; once where all say the same, if anything. */
static const char *merge_origin(const struct merge *m)
{
    enum { ROOM = PROFILE_BATCHES_MAX * (DOC_TEXT_MAX + 32) };
    char *text = REGION_NEW(m->region, char, ROOM);
    size_t used = (size_t)snprintf(text, ROOM, "merged from %" PRIu32 " profiles", m->input_count);
    bool is_one = true;
    for (uint32_t i = 0; i < m->input_count; i++) {
        const char *origin = m->inputs[i].file->origin, *first = m->inputs[0].file->origin;
        is_one = is_one && (origin == NULL) == (first == NULL) &&
                 (origin == NULL || strcmp(origin, first) == 0);
    }
    if (is_one && m->inputs[0].file->origin != NULL) {
        (void)snprintf(text + used, ROOM - used, "; each: %s", m->inputs[0].file->origin);
    }
    for (uint32_t c = 0; c < m->column_count && !is_one; c++) {
        const char *origin = file_of(m, c)->origin;
        int size = snprintf(text + used, ROOM - used, "; batch size %" PRIu64 ": %s",
                            m->columns[c].batch, origin != NULL ? origin : "not said");
        used += (size_t)size;
    }
    yaml_cut(text, DOC_TEXT_MAX);
    return text;
}

static enum atp_status merge(struct merge *m, struct profile_merge_report *report,
                             struct profile_file *out)
{
    for (m->at = 0; m->at < m->input_count; m->at++) {
        ATP_TRY(same_head(m));
        ATP_TRY(same_tensors(m));
        ATP_TRY(same_steps(m));
        ATP_TRY(add_columns(m));
    }
    *out = *m->inputs[0].file;
    uint64_t *sizes = REGION_NEW(m->region, uint64_t, m->column_count);
    uint64_t *resident = REGION_NEW(m->region, uint64_t, m->column_count);
    for (uint32_t c = 0; c < m->column_count; c++) {
        sizes[c] = m->columns[c].batch;
        resident[c] = file_of(m, c)->resident_bytes[m->columns[c].index];
    }
    out->batch_count = m->column_count;
    out->batch_sizes = sizes;
    out->resident_bytes = resident;
    out->origin = merge_origin(m);
    merge_link(m, out, report);
    merge_tensors(m, out);
    merge_steps(m, out);
    return ATP_OK;
}

enum atp_status profile_merge(const struct profile_merge_input *inputs, uint32_t count,
                              struct region *region, const struct profile_file **out_file,
                              struct profile_merge_report *out_report, uint32_t *out_at,
                              struct atp_error *err)
{
    struct merge m = {.inputs = inputs, .input_count = count, .region = region, .err = err};
    struct profile_file *file = REGION_NEW(region, struct profile_file, 1);
    *out_file = NULL;
    *out_report = (struct profile_merge_report){0};
    enum atp_status status = merge(&m, out_report, file);
    *out_at = m.at;
    if (status == ATP_OK) {
        *out_file = file;
    }
    return status;
}
