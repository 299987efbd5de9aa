/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Initialisers without designators, which C++11 lacks: the structs of a version of libatp are
 * fixed, and a program built against another version is refused by its check of the fingerprint.
 * Ids of reads and writes share one array, for thousands of tiny ones are slow to compile. What is
 * empty has no array: C has none of length zero.
 */
#include "emit_c.h"

#include "fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Octal escapes end after three digits, whatever follows; `?` could begin a trigraph. */
static void put_text(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?') {
            (void)fprintf(out, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7F) {
            (void)fprintf(out, "\\%03o", c);
        } else {
            (void)fputc(c, out);
        }
    }
    (void)fputc('"', out);
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    (void)fprintf(out, "UINT64_C(%" PRIu64 ")", bytes);
}

static void put_head(FILE *out, const struct atp_plan *plan, const char *symbol)
{
    (void)fputs("/* Made by atp-plan emit --c; do not edit. Plan fingerprint sha256:", out);
    for (size_t i = 0; i < sizeof(plan->fingerprint); i++) {
        (void)fprintf(out, "%02x", plan->fingerprint[i]);
    }
    (void)fprintf(out,
                  "\n *\n"
                  " * Compile it into the program, as C or C++, and declare it where it is used:\n"
                  " *\n"
                  " *     extern const struct atp_plan %s;\n"
                  " *\n"
                  " * in C++ within extern \"C\" { }.\n"
                  " */\n"
                  "#include <stddef.h>\n"
                  "#include <stdint.h>\n\n"
                  "#include <atp/plan.h>\n\n"
                  "#ifdef __cplusplus\n"
                  "extern \"C\" {\n"
                  "#endif\n"
                  "extern const struct atp_plan %s;\n"
                  "#ifdef __cplusplus\n"
                  "}\n"
                  "#endif\n",
                  symbol, symbol);
}

static void put_tensors(FILE *out, const struct atp_model *model, const char *symbol)
{
    if (model->tensor_count == 0) {
        return;
    }
    (void)fprintf(out, "\nstatic const struct atp_tensor %s_tensors[] = {\n", symbol);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        (void)fputs("    {", out);
        put_text(out, model->tensors[t].name);
        (void)fputs(", ", out);
        put_bytes(out, model->tensors[t].bytes);
        (void)fputs("},\n", out);
    }
    (void)fputs("};\n", out);
}

/* The reads of each step, then its writes. */
static void put_uses(FILE *out, const struct atp_model *model, const char *symbol)
{
    uint64_t count = 0;
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        uint64_t uses = (uint64_t)step->read_count + step->write_count;
        if (count == 0 && uses > 0) {
            (void)fprintf(out, "\nstatic const uint32_t %s_uses[] = {\n", symbol);
        }
        count += uses;
        for (uint64_t i = 0; i < uses; i++) {
            uint32_t id =
                i < step->read_count ? step->reads[i] : step->writes[i - step->read_count];
            (void)fprintf(out, "%s%" PRIu32 "%s", i == 0 ? "    " : " ", id,
                          i + 1 == uses ? ",\n" : ",");
        }
    }
    (void)fputs(count > 0 ? "};\n" : "", out);
}

static void put_use(FILE *out, const char *symbol, uint32_t count, uint64_t at)
{
    if (count == 0) {
        (void)fputs(", NULL", out);
    } else {
        (void)fprintf(out, ", %s_uses + %" PRIu64, symbol, at);
    }
}

static void put_steps(FILE *out, const struct atp_model *model, const char *symbol)
{
    static const char *const phases[] = {[ATP_PHASE_FORWARD] = "ATP_PHASE_FORWARD",
                                         [ATP_PHASE_BACKWARD] = "ATP_PHASE_BACKWARD",
                                         [ATP_PHASE_UPDATE] = "ATP_PHASE_UPDATE"};
    uint64_t at = 0;
    (void)fprintf(out, "\nstatic const struct atp_step %s_steps[] = {\n", symbol);
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        (void)fputs("    {", out);
        put_text(out, step->name);
        (void)fprintf(out, ", %s, %s, %" PRIu32 ", %" PRIu32, phases[step->phase],
                      step->rerun_never ? "true" : "false", step->read_count, step->write_count);
        put_use(out, symbol, step->read_count, at);
        put_use(out, symbol, step->write_count, at + step->read_count);
        (void)fputs(", ", out);
        put_bytes(out, step->workspace_bytes);
        (void)fputs("},\n", out);
        at += (uint64_t)step->read_count + step->write_count;
    }
    (void)fputs("};\n", out);
}

static void put_program(FILE *out, const struct atp_plan *plan, const char *symbol)
{
    static const char *const decisions[] = {[ATP_DECISION_KEEP] = "KEEP",
                                            [ATP_DECISION_SWAP] = "SWAP",
                                            [ATP_DECISION_RECOMPUTE] = "RECOMPUTE"};
    static const char *const ops[] = {
        [ATP_OP_ALLOC] = "ALLOC",       [ATP_OP_RUN] = "RUN",         [ATP_OP_RERUN] = "RERUN",
        [ATP_OP_EVICT] = "EVICT",       [ATP_OP_EVICTED] = "EVICTED", [ATP_OP_RESTORE] = "RESTORE",
        [ATP_OP_RESTORED] = "RESTORED", [ATP_OP_FREE] = "FREE"};
    if (plan->model.tensor_count > 0) {
        (void)fprintf(out, "\nstatic const enum atp_decision %s_decisions[] = {\n", symbol);
        for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
            (void)fprintf(out, "    ATP_DECISION_%s,\n", decisions[plan->decisions[t]]);
        }
        (void)fputs("};\n", out);
    }
    (void)fprintf(out, "\nstatic const struct atp_instruction %s_program[] = {\n", symbol);
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct atp_instruction *in = &plan->program[i];
        (void)fprintf(out, "    {ATP_OP_%s, %" PRIu32 ", ", ops[in->op], in->id);
        put_bytes(out, in->offset);
        (void)fputs("},\n", out);
    }
    (void)fputs("};\n", out);
}

static void put_predicted(FILE *out, const struct atp_predicted *p)
{
    const int64_t times[] = {p->iteration_ns, p->bound_ns, p->compute_ns, p->recompute_ns,
                             p->stall_ns};
    const uint64_t bytes[] = {p->peak_bytes, p->evicted_bytes, p->restored_bytes,
                              p->recomputed_bytes};
    (void)fputs("    {", out);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        (void)fprintf(out, "%sINT64_C(%" PRId64 ")", i > 0 ? ", " : "", times[i]);
    }
    (void)fputs(",\n     ", out);
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        put_bytes(out, bytes[i]);
    }
    (void)fputs("},\n", out);
}

static void put_plan(FILE *out, const struct atp_plan *plan, const char *symbol)
{
    const struct atp_model *model = &plan->model;
    const uint64_t sizes[] = {plan->alignment_bytes, plan->budget_bytes, plan->resident_bytes,
                              plan->arena_bytes, plan->host_arena_bytes};
    bool has_tensors = model->tensor_count > 0;
    (void)fprintf(out, "\nconst struct atp_plan %s = {\n    {", symbol);
    put_text(out, model->name);
    (void)fputs(", ", out);
    put_bytes(out, model->batch_size);
    (void)fprintf(out, ", %" PRIu32 ", %" PRIu32 ", %s%s, %s_steps},\n    {", model->tensor_count,
                  model->step_count, has_tensors ? symbol : "NULL", has_tensors ? "_tensors" : "",
                  symbol);
    for (size_t i = 0; i < sizeof(plan->fingerprint); i++) {
        (void)fprintf(out, "%s0x%02x",
                      i == 0        ? ""
                      : i % 16 == 0 ? ",\n     "
                                    : ", ",
                      plan->fingerprint[i]);
    }
    (void)fputs("},\n", out);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        (void)fputs("    ", out);
        put_bytes(out, sizes[i]);
        (void)fputs(",\n", out);
    }
    (void)fprintf(out, "    %s,\n", plan->time_limited ? "true" : "false");
    put_predicted(out, &plan->predicted);
    /* No certificate: who proves the bound has the plan's file, and a program need not carry it. */
    (void)fprintf(out, "    %s%s,\n    %" PRIu32 ",\n    %s_program,\n    NULL,\n};\n",
                  has_tensors ? symbol : "NULL", has_tensors ? "_decisions" : "",
                  plan->instruction_count, symbol);
}

bool emit_c_is_symbol(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char digits[] = "0123456789";
    size_t length = strlen(text);
    bool is_good = length > 0 && length <= 48 && strchr(letters, text[0]) != NULL;
    for (size_t i = 1; i < length && is_good; i++) {
        is_good = strchr(letters, text[i]) != NULL || strchr(digits, text[i]) != NULL;
    }
    return is_good;
}

enum atp_status emit_c(const struct atp_plan *plan, const char *symbol, FILE *out,
                       struct atp_error *err)
{
    put_head(out, plan, symbol);
    put_tensors(out, &plan->model, symbol);
    put_uses(out, &plan->model, symbol);
    put_steps(out, &plan->model, symbol);
    put_program(out, plan, symbol);
    put_plan(out, plan, symbol);
    if (fflush(out) != 0 || ferror(out)) {
        return atp_fail(err, ATP_ERR_IO, "cannot write the source: %s", strerror(errno));
    }
    return ATP_OK;
}
