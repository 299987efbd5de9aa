/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What can be said is checked first, so that writing can only fail as input and output do.
 */
#include "plan_emit.h"

#include "fail.h"
#include "out_file.h"
#include "plan_gap.h"
#include "plan_text.h"
#include "yaml_reader.h"
#include "yaml_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define BYTES_MAX ((uint64_t)1 << 62)

static enum atp_status check_name(const char *what, uint32_t index, const char *name,
                                  struct atp_error *err)
{
    size_t length = name != NULL ? strlen(name) : 0;
    if (length == 0 || length > DOC_NAME_MAX) {
        return atp_fail(err, ATP_ERR_INVALID, "%s[%u]: the name has %zu bytes, expected 1 to %u",
                        what, index, length, DOC_NAME_MAX);
    }
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t size = yaml_decode(name + i, &code);
        if (size == 0) {
            return atp_fail(err, ATP_ERR_INVALID, "%s[%u]: the name is not UTF-8", what, index);
        }
        if (code < 0x20 || code == 0x7F) {
            return atp_fail(err, ATP_ERR_INVALID,
                            "%s[%u]: the name has a control character in it, expected none", what,
                            index);
        }
        i += size;
    }
    return ATP_OK;
}

static enum atp_status check_header(const struct atp_plan *plan, struct atp_error *err)
{
    const struct atp_predicted *p = &plan->predicted;
    const int64_t times[] = {p->iteration_ns, p->bound_ns, p->compute_ns, p->recompute_ns,
                             p->stall_ns};
    const uint64_t bytes[] = {plan->budget_bytes,     plan->resident_bytes, plan->arena_bytes,
                              plan->host_arena_bytes, p->peak_bytes,        p->evicted_bytes,
                              p->restored_bytes,      p->recomputed_bytes};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] < 0 || times[i] > PLAN_NS_MAX) {
            return atp_fail(err, ATP_ERR_INVALID,
                            "predicted: a time is %" PRId64 " ns, expected 0 to %" PRId64, times[i],
                            PLAN_NS_MAX);
        }
    }
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        if (bytes[i] > BYTES_MAX) {
            return atp_fail(err, ATP_ERR_INVALID,
                            "header: a size is %" PRIu64 " bytes, expected 0 to 2^62", bytes[i]);
        }
    }
    return check_name("model", 0, plan->model.name, err);
}

static enum atp_status check_ids(const struct atp_plan *plan, uint32_t step, const uint32_t *ids,
                                 uint32_t count, struct atp_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= plan->model.tensor_count) {
            return atp_fail(err, ATP_ERR_INVALID, "steps[%u]: no tensor has id %u", step, ids[i]);
        }
    }
    return ATP_OK;
}

static enum atp_status check_plan(const struct atp_plan *plan, struct atp_error *err)
{
    const struct atp_model *model = &plan->model;
    ATP_TRY(check_header(plan, err));
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        ATP_TRY(check_name("tensors", t, model->tensors[t].name, err));
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        ATP_TRY(check_name("steps", s, step->name, err));
        ATP_TRY(check_ids(plan, s, step->reads, step->read_count, err));
        ATP_TRY(check_ids(plan, s, step->writes, step->write_count, err));
    }
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct atp_instruction *instruction = &plan->program[i];
        bool is_step = instruction->op == ATP_OP_RUN || instruction->op == ATP_OP_RERUN;
        if (instruction->id >= (is_step ? model->step_count : model->tensor_count)) {
            return atp_fail(err, ATP_ERR_INVALID, "program[%u]: no %s has id %u", i,
                            is_step ? "step" : "tensor", instruction->id);
        }
    }
    return ATP_OK;
}

static enum atp_status check_certificate(const char *text, struct atp_error *err)
{
    if (text != NULL && !plan_is_text(text)) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "certificate: expected lines of printable ASCII, none of them empty or "
                        "with blanks before it");
    }
    return ATP_OK;
}

static void put_time(FILE *out, const char *key, int64_t ns)
{
    (void)fprintf(out, "  %s: %" PRId64 ".%03" PRId64 "\n", key, ns / 1000, ns % 1000);
}

static void put_header(FILE *out, const struct atp_plan *plan)
{
    (void)fputs("atp_plan: 1\nmodel: ", out);
    yaml_text(out, plan->model.name);
    (void)fputs("\nfingerprint: \"sha256:", out);
    for (size_t i = 0; i < sizeof(plan->fingerprint); i++) {
        (void)fprintf(out, "%02x", plan->fingerprint[i]);
    }
    (void)fprintf(out,
                  "\"\nbatch_size: %" PRIu64 "\nalignment_bytes: %" PRIu64
                  "\nbudget_bytes: %" PRIu64 "\nresident_bytes: %" PRIu64 "\narena_bytes: %" PRIu64
                  "\nhost_arena_bytes: %" PRIu64 "\n",
                  plan->model.batch_size, plan->alignment_bytes, plan->budget_bytes,
                  plan->resident_bytes, plan->arena_bytes, plan->host_arena_bytes);
    if (plan->time_limited) {
        (void)fputs("time_limited: true\n", out);
    }
}

static void put_predicted(FILE *out, const struct atp_predicted *predicted)
{
    uint64_t gap = plan_gap_millionths(predicted->iteration_ns, predicted->bound_ns);
    (void)fputs("predicted:\n", out);
    put_time(out, "iteration_us", predicted->iteration_ns);
    put_time(out, "bound_us", predicted->bound_ns);
    (void)fprintf(out, "  gap: %" PRIu64 ".%06" PRIu64 "\n", gap / 1000000, gap % 1000000);
    put_time(out, "compute_us", predicted->compute_ns);
    put_time(out, "recompute_us", predicted->recompute_ns);
    put_time(out, "stall_us", predicted->stall_ns);
    (void)fprintf(out,
                  "  peak_bytes: %" PRIu64 "\n  evicted_bytes: %" PRIu64
                  "\n  restored_bytes: %" PRIu64 "\n  recomputed_bytes: %" PRIu64 "\n",
                  predicted->peak_bytes, predicted->evicted_bytes, predicted->restored_bytes,
                  predicted->recomputed_bytes);
}

static void put_uses(FILE *out, const char *key, const struct atp_model *model, const uint32_t *ids,
                     uint32_t count)
{
    if (count == 0) {
        return;
    }
    (void)fprintf(out, ", %s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        yaml_text(out, model->tensors[ids[i]].name);
    }
    (void)fputc(']', out);
}

/* A list that is empty keeps its key. */
static void put_list(FILE *out, const char *key, uint32_t count)
{
    (void)fprintf(out, "%s:%s\n", key, count == 0 ? " []" : "");
}

static void put_model(FILE *out, const struct atp_plan *plan)
{
    const struct atp_model *model = &plan->model;
    put_list(out, "tensors", model->tensor_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        (void)fputs("  - {name: ", out);
        yaml_text(out, model->tensors[t].name);
        (void)fprintf(out, ", bytes: %" PRIu64 ", decision: %s}\n", model->tensors[t].bytes,
                      atp_decision_name(plan->decisions[t]));
    }
    put_list(out, "steps", model->step_count);
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        (void)fputs("  - {name: ", out);
        yaml_text(out, step->name);
        (void)fprintf(out, ", phase: %s", atp_phase_name(step->phase));
        put_uses(out, "reads", model, step->reads, step->read_count);
        put_uses(out, "writes", model, step->writes, step->write_count);
        (void)fputs(step->rerun_never ? ", rerun: never" : "", out);
        if (step->workspace_bytes > 0) {
            (void)fprintf(out, ", workspace_bytes: %" PRIu64, step->workspace_bytes);
        }
        (void)fputs("}\n", out);
    }
}

static void put_program(FILE *out, const struct atp_plan *plan)
{
    put_list(out, "program", plan->instruction_count);
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct atp_instruction *instruction = &plan->program[i];
        bool is_run = instruction->op == ATP_OP_RUN, has_offset;
        (void)fprintf(out, "  - [%s, ", atp_op_name(instruction->op));
        if (is_run || instruction->op == ATP_OP_RERUN) {
            const struct atp_step *step = &plan->model.steps[instruction->id];
            yaml_text(out, step->name);
            (void)fprintf(out, "%s%s", is_run ? ", " : "",
                          is_run ? atp_phase_name(step->phase) : "");
            has_offset = step->workspace_bytes > 0;
        } else {
            yaml_text(out, plan->model.tensors[instruction->id].name);
            has_offset = instruction->op == ATP_OP_ALLOC || instruction->op == ATP_OP_EVICT ||
                         instruction->op == ATP_OP_RESTORE;
        }
        if (has_offset) {
            (void)fprintf(out, ", %" PRIu64, instruction->offset);
        }
        (void)fputs("]\n", out);
    }
}

static void put_certificate(FILE *out, const char *text)
{
    bool ends = text[strlen(text) - 1] == '\n';
    (void)fputs(ends ? "certificate: |\n" : "certificate: |-\n", out);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        (void)fprintf(out, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

enum atp_status plan_emit(const struct atp_plan *plan, FILE *out, struct atp_error *err)
{
    ATP_TRY(check_plan(plan, err));
    ATP_TRY(check_certificate(plan->certificate, err));
    put_header(out, plan);
    put_predicted(out, &plan->predicted);
    put_model(out, plan);
    put_program(out, plan);
    if (plan->certificate != NULL) {
        put_certificate(out, plan->certificate);
    }
    if (fflush(out) != 0 || ferror(out)) {
        return atp_fail(err, ATP_ERR_IO, "cannot write the plan: %s", strerror(errno));
    }
    return ATP_OK;
}

enum atp_status plan_emit_file(const struct atp_plan *plan, const char *path, struct atp_error *err)
{
    struct out_file file;
    ATP_TRY(out_file_open(path, &file, err));
    return out_file_end(&file, plan_emit(plan, file.stream, err), err);
}
