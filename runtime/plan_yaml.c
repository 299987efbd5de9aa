/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan files (version 1) -> struct atp_plan. Only the form is checked here; what the program does
 * is atp_plan_check's. Everything lives in the document that the text was read into, which the
 * plan keeps. Names are found by bisection: n log n in all.
 */
#include "plan_yaml_keys.h"

#include <atp/plan_yaml.h>

#include "fail.h"
#include "plan_gap.h"
#include "plan_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((uint64_t)1 << 62)

enum {
    TOP_VERSION,
    TOP_MODEL,
    TOP_FINGERPRINT,
    TOP_BATCH_SIZE,
    TOP_ALIGNMENT,
    TOP_BUDGET,
    TOP_RESIDENT,
    TOP_ARENA,
    TOP_HOST_ARENA,
    TOP_TIME_LIMITED,
    TOP_PREDICTED,
    TOP_TENSORS,
    TOP_STEPS,
    TOP_PROGRAM,
    TOP_CERTIFICATE,
    TOP_COUNT
};
static const struct doc_key TOP_KEYS[TOP_COUNT] = {
    [TOP_VERSION] = {"atp_plan", true},
    [TOP_MODEL] = {"model", true},
    [TOP_FINGERPRINT] = {"fingerprint", true},
    [TOP_BATCH_SIZE] = {"batch_size", true},
    [TOP_ALIGNMENT] = {"alignment_bytes", true},
    [TOP_BUDGET] = {"budget_bytes", true},
    [TOP_RESIDENT] = {"resident_bytes", true},
    [TOP_ARENA] = {"arena_bytes", true},
    [TOP_HOST_ARENA] = {"host_arena_bytes", true},
    [TOP_TIME_LIMITED] = {"time_limited", false},
    [TOP_PREDICTED] = {"predicted", true},
    [TOP_TENSORS] = {"tensors", true},
    [TOP_STEPS] = {"steps", true},
    [TOP_PROGRAM] = {"program", true},
    [TOP_CERTIFICATE] = {"certificate", false},
};

enum {
    PREDICTED_ITERATION,
    PREDICTED_BOUND,
    PREDICTED_GAP,
    PREDICTED_COMPUTE,
    PREDICTED_RECOMPUTE,
    PREDICTED_STALL,
    PREDICTED_PEAK,
    PREDICTED_EVICTED,
    PREDICTED_RESTORED,
    PREDICTED_RECOMPUTED,
    PREDICTED_COUNT
};
static const struct doc_key PREDICTED_KEYS[PREDICTED_COUNT] = {
    [PREDICTED_ITERATION] = {"iteration_us", true},
    [PREDICTED_BOUND] = {"bound_us", true},
    [PREDICTED_GAP] = {"gap", true},
    [PREDICTED_COMPUTE] = {"compute_us", true},
    [PREDICTED_RECOMPUTE] = {"recompute_us", true},
    [PREDICTED_STALL] = {"stall_us", true},
    [PREDICTED_PEAK] = {"peak_bytes", true},
    [PREDICTED_EVICTED] = {"evicted_bytes", true},
    [PREDICTED_RESTORED] = {"restored_bytes", true},
    [PREDICTED_RECOMPUTED] = {"recomputed_bytes", true},
};

enum { TENSOR_NAME, TENSOR_BYTES, TENSOR_DECISION, TENSOR_COUNT };
static const struct doc_key TENSOR_KEYS[TENSOR_COUNT] = {
    [TENSOR_NAME] = {"name", true},
    [TENSOR_BYTES] = {"bytes", true},
    [TENSOR_DECISION] = {"decision", true},
};

enum { STEP_NAME, STEP_PHASE, STEP_READS, STEP_WRITES, STEP_RERUN, STEP_WORKSPACE, STEP_COUNT };
static const struct doc_key STEP_KEYS[STEP_COUNT] = {
    [STEP_NAME] = {"name", true},    [STEP_PHASE] = {"phase", true},
    [STEP_READS] = {"reads", false}, [STEP_WRITES] = {"writes", false},
    [STEP_RERUN] = {"rerun", false}, [STEP_WORKSPACE] = {"workspace_bytes", false},
};

const struct doc_key *plan_keys(enum plan_map map, uint32_t *out_count)
{
    static const struct {
        const struct doc_key *keys;
        uint32_t count;
    } tables[] = {
        [PLAN_MAP_TOP] = {TOP_KEYS, TOP_COUNT},
        [PLAN_MAP_PREDICTED] = {PREDICTED_KEYS, PREDICTED_COUNT},
        [PLAN_MAP_TENSOR] = {TENSOR_KEYS, TENSOR_COUNT},
        [PLAN_MAP_STEP] = {STEP_KEYS, STEP_COUNT},
    };
    *out_count = tables[map].count;
    return tables[map].keys;
}

static const struct doc_number BYTES = {.what = "a whole number of bytes", .max = BYTES_MAX};
static const struct doc_number BATCH = {
    .what = "a whole number of samples", .min = 1, .max = BYTES_MAX};
static const struct doc_number TIME = {
    .what = "microseconds with at most three decimals", .decimals = 3, .max = PLAN_NS_MAX};
static const struct doc_number GAP = {
    .what = "a ratio with at most six decimals", .decimals = 6, .max = PLAN_GAP_MAX};

static const char *const BOOLS[] = {"false", "true"};
static const char *const PHASES[] = {"forward", "backward", "update"};
static const char *const RERUNS[] = {"allowed", "never"};
static const char *const DECISIONS[] = {"keep", "swap", "recompute"};
static const char *const OPS[ATP_OP_COUNT] = {
    [ATP_OP_ALLOC] = "alloc",       [ATP_OP_RUN] = "run",         [ATP_OP_RERUN] = "rerun",
    [ATP_OP_EVICT] = "evict",       [ATP_OP_EVICTED] = "evicted", [ATP_OP_RESTORE] = "restore",
    [ATP_OP_RESTORED] = "restored", [ATP_OP_FREE] = "free",
};

struct owner {
    struct atp_plan_file file; /* first: the caller's pointer is this one */
    struct doc *doc;
};

struct reader {
    struct doc *doc;
    struct atp_plan_file *file;
    struct atp_error *err;
    struct doc_index *tensor_index, *step_index;
};

static enum atp_status no_memory(const struct reader *r)
{
    return atp_fail(r->err, ATP_ERR_NO_MEMORY, "no memory for a plan");
}

static enum atp_status read_fingerprint(const struct reader *r, const struct doc_node *node)
{
    static const char prefix[] = "sha256:";
    static const char digits[] = "0123456789abcdef";
    const char *text;
    ATP_TRY(doc_name(node, &text, r->err));
    const size_t start = sizeof(prefix) - 1;
    if (strncmp(text, prefix, start) != 0 || strlen(text) != start + 64 ||
        strspn(text + start, digits) != 64) {
        return doc_fail(node, r->err, ATP_ERR_SYNTAX,
                        "\"%s\" is no fingerprint, expected sha256: and 64 lower-case hex digits",
                        doc_shorten(text).text);
    }
    for (size_t i = 0; i < 32; i++) {
        const char *high = strchr(digits, text[start + 2 * i]);
        const char *low = strchr(digits, text[start + 2 * i + 1]);
        if (high != NULL && low != NULL) {
            r->file->plan.fingerprint[i] = (uint8_t)((high - digits) * 16 + (low - digits));
        }
    }
    return ATP_OK;
}

static enum atp_status read_alignment(const struct reader *r, const struct doc_node *node)
{
    static const struct doc_number rule = {
        .what = "a power of two", .min = 1, .max = (uint64_t)1 << 30};
    uint64_t alignment;
    ATP_TRY(doc_number(node, &rule, &alignment, r->err));
    if ((alignment & (alignment - 1)) != 0) {
        return doc_fail(node, r->err, ATP_ERR_INVALID, "%" PRIu64 " is not a power of two",
                        alignment);
    }
    r->file->plan.alignment_bytes = alignment;
    return ATP_OK;
}

static enum atp_status read_time(const struct reader *r, const struct doc_node *node,
                                 int64_t *out_ns)
{
    uint64_t ns;
    ATP_TRY(doc_number(node, &TIME, &ns, r->err));
    *out_ns = (int64_t)ns;
    return ATP_OK;
}

static enum atp_status read_predicted(const struct reader *r, const struct doc_node *node)
{
    struct atp_predicted *out = &r->file->plan.predicted;
    const struct doc_node *values[PREDICTED_COUNT];
    uint64_t gap;
    ATP_TRY(doc_map(node, PREDICTED_KEYS, PREDICTED_COUNT, values, r->err));
    ATP_TRY(read_time(r, values[PREDICTED_ITERATION], &out->iteration_ns));
    ATP_TRY(read_time(r, values[PREDICTED_BOUND], &out->bound_ns));
    ATP_TRY(doc_number(values[PREDICTED_GAP], &GAP, &gap, r->err));
    ATP_TRY(read_time(r, values[PREDICTED_COMPUTE], &out->compute_ns));
    ATP_TRY(read_time(r, values[PREDICTED_RECOMPUTE], &out->recompute_ns));
    ATP_TRY(read_time(r, values[PREDICTED_STALL], &out->stall_ns));
    ATP_TRY(doc_number(values[PREDICTED_PEAK], &BYTES, &out->peak_bytes, r->err));
    ATP_TRY(doc_number(values[PREDICTED_EVICTED], &BYTES, &out->evicted_bytes, r->err));
    ATP_TRY(doc_number(values[PREDICTED_RESTORED], &BYTES, &out->restored_bytes, r->err));
    ATP_TRY(doc_number(values[PREDICTED_RECOMPUTED], &BYTES, &out->recomputed_bytes, r->err));
    uint64_t derived = plan_gap_millionths(out->iteration_ns, out->bound_ns);
    if (gap != derived) {
        return doc_fail(
            values[PREDICTED_GAP], r->err, ATP_ERR_INVALID,
            "the gap is %s, expected %" PRIu64 ".%06" PRIu64 " from iteration_us and bound_us",
            doc_shorten(values[PREDICTED_GAP]->text).text, derived / 1000000, derived % 1000000);
    }
    return ATP_OK;
}

static enum atp_status read_tensors(struct reader *r, const struct doc_node *node)
{
    struct atp_model *model = &r->file->plan.model;
    ATP_TRY(doc_list(node, r->err));
    struct atp_tensor *tensors = doc_take(r->doc, node->count, sizeof(*tensors));
    enum atp_decision *decisions = doc_take(r->doc, node->count, sizeof(*decisions));
    r->tensor_index = doc_take(r->doc, node->count, sizeof(*r->tensor_index));
    if (tensors == NULL || decisions == NULL || r->tensor_index == NULL) {
        return no_memory(r);
    }
    uint32_t id = 0;
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next, id++) {
        const struct doc_node *values[TENSOR_COUNT];
        uint32_t choice;
        ATP_TRY(doc_map(entry, TENSOR_KEYS, TENSOR_COUNT, values, r->err));
        ATP_TRY(doc_name(values[TENSOR_NAME], &tensors[id].name, r->err));
        ATP_TRY(doc_number(values[TENSOR_BYTES], &BYTES, &tensors[id].bytes, r->err));
        ATP_TRY(doc_choice(values[TENSOR_DECISION], DECISIONS, 3, &choice, r->err));
        decisions[id] = (enum atp_decision)choice;
        r->tensor_index[id] = (struct doc_index){.name = tensors[id].name, .id = id};
    }
    doc_index_sort(r->tensor_index, id);
    model->tensors = tensors;
    model->tensor_count = id;
    r->file->plan.decisions = decisions;
    return ATP_OK;
}

static enum atp_status find_tensor(const struct reader *r, const struct doc_node *node,
                                   uint32_t *out_id)
{
    const char *name;
    ATP_TRY(doc_name(node, &name, r->err));
    *out_id = doc_index_find(r->tensor_index, r->file->plan.model.tensor_count, name, 0);
    if (*out_id == ATP_NONE) {
        return doc_fail(node, r->err, ATP_ERR_INVALID, "no tensor is named \"%s\"",
                        doc_shorten(name).text);
    }
    return ATP_OK;
}

static enum atp_status find_step(const struct reader *r, const struct doc_node *node,
                                 enum atp_phase phase, uint32_t *out_id)
{
    const char *name;
    ATP_TRY(doc_name(node, &name, r->err));
    *out_id = doc_index_find(r->step_index, r->file->plan.model.step_count, name, (uint32_t)phase);
    if (*out_id == ATP_NONE) {
        return doc_fail(node, r->err, ATP_ERR_INVALID, "no %s step is named \"%s\"", PHASES[phase],
                        doc_shorten(name).text);
    }
    return ATP_OK;
}

static enum atp_status read_uses(const struct reader *r, const struct doc_node *node,
                                 const uint32_t **out_ids, uint32_t *out_count)
{
    if (node == NULL) {
        return ATP_OK;
    }
    ATP_TRY(doc_list(node, r->err));
    if (node->count == 0) {
        return ATP_OK;
    }
    uint32_t *ids = doc_take(r->doc, node->count, sizeof(*ids)), count = 0;
    if (ids == NULL) {
        return no_memory(r);
    }
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next) {
        ATP_TRY(find_tensor(r, entry, &ids[count++]));
    }
    *out_ids = ids;
    *out_count = count;
    return ATP_OK;
}

static enum atp_status read_step(const struct reader *r, const struct doc_node *node,
                                 struct atp_step *out)
{
    const struct doc_node *values[STEP_COUNT];
    uint32_t choice;
    ATP_TRY(doc_map(node, STEP_KEYS, STEP_COUNT, values, r->err));
    ATP_TRY(doc_name(values[STEP_NAME], &out->name, r->err));
    ATP_TRY(doc_choice(values[STEP_PHASE], PHASES, 3, &choice, r->err));
    out->phase = (enum atp_phase)choice;
    ATP_TRY(read_uses(r, values[STEP_READS], &out->reads, &out->read_count));
    ATP_TRY(read_uses(r, values[STEP_WRITES], &out->writes, &out->write_count));
    if (values[STEP_RERUN] != NULL) {
        ATP_TRY(doc_choice(values[STEP_RERUN], RERUNS, 2, &choice, r->err));
        out->rerun_never = choice == 1;
    }
    if (values[STEP_WORKSPACE] != NULL) {
        ATP_TRY(doc_number(values[STEP_WORKSPACE], &BYTES, &out->workspace_bytes, r->err));
    }
    return ATP_OK;
}

static enum atp_status read_steps(struct reader *r, const struct doc_node *node)
{
    struct atp_model *model = &r->file->plan.model;
    ATP_TRY(doc_list(node, r->err));
    struct atp_step *steps = doc_take(r->doc, node->count, sizeof(*steps));
    r->step_index = doc_take(r->doc, node->count, sizeof(*r->step_index));
    if (steps == NULL || r->step_index == NULL) {
        return no_memory(r);
    }
    uint32_t id = 0;
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next, id++) {
        ATP_TRY(read_step(r, entry, &steps[id]));
        r->step_index[id] = (struct doc_index){
            .name = steps[id].name, .group = (uint32_t)steps[id].phase, .id = id};
    }
    doc_index_sort(r->step_index, id);
    model->steps = steps;
    model->step_count = id;
    return ATP_OK;
}

/* What follows name (and phase) in an instruction. */
static enum atp_status read_offset(const struct reader *r, const struct doc_node *entry,
                                   const struct doc_node *last, bool wanted, uint64_t *out_offset)
{
    const struct doc_node *node = last->next;
    if (!wanted && node != NULL) {
        return doc_fail(node, r->err, ATP_ERR_SYNTAX,
                        "the instruction \"%s\" ends before this, expected no more entries",
                        entry->first->text);
    }
    if (!wanted) {
        return ATP_OK;
    }
    if (node == NULL) {
        return doc_fail(entry, r->err, ATP_ERR_SYNTAX,
                        "the instruction \"%s\" lacks its offset, expected bytes at its end",
                        entry->first->text);
    }
    ATP_TRY(doc_number(node, &BYTES, out_offset, r->err));
    return read_offset(r, entry, node, false, out_offset);
}

static enum atp_status read_step_instruction(const struct reader *r, const struct doc_node *entry,
                                             struct atp_instruction *out)
{
    const struct doc_node *last = entry->first->next;
    uint32_t phase = ATP_PHASE_FORWARD;
    if (out->op == ATP_OP_RUN) {
        if (last->next == NULL) {
            return doc_fail(entry, r->err, ATP_ERR_SYNTAX,
                            "the instruction lacks its phase, expected [run, STEP, PHASE]");
        }
        ATP_TRY(doc_choice(last->next, PHASES, 3, &phase, r->err));
    }
    ATP_TRY(find_step(r, last, (enum atp_phase)phase, &out->id));
    last = out->op == ATP_OP_RUN ? last->next : last;
    bool has_workspace = r->file->plan.model.steps[out->id].workspace_bytes > 0;
    return read_offset(r, entry, last, has_workspace, &out->offset);
}

static enum atp_status read_instruction(const struct reader *r, const struct doc_node *entry,
                                        struct atp_instruction *out)
{
    uint32_t op;
    ATP_TRY(doc_list(entry, r->err));
    if (entry->count < 2) {
        return doc_fail(entry, r->err, ATP_ERR_SYNTAX,
                        "the instruction has %u entries, expected its name and what it acts on",
                        entry->count);
    }
    ATP_TRY(doc_choice(entry->first, OPS, ATP_OP_COUNT, &op, r->err));
    out->op = (enum atp_op)op;
    if (out->op == ATP_OP_RUN || out->op == ATP_OP_RERUN) {
        return read_step_instruction(r, entry, out);
    }
    ATP_TRY(find_tensor(r, entry->first->next, &out->id));
    bool has_offset =
        out->op == ATP_OP_ALLOC || out->op == ATP_OP_EVICT || out->op == ATP_OP_RESTORE;
    return read_offset(r, entry, entry->first->next, has_offset, &out->offset);
}

static enum atp_status read_program(const struct reader *r, const struct doc_node *node)
{
    ATP_TRY(doc_list(node, r->err));
    struct atp_instruction *program = doc_take(r->doc, node->count, sizeof(*program));
    uint32_t *lines = doc_take(r->doc, node->count, sizeof(*lines)), count = 0;
    if (program == NULL || lines == NULL) {
        return no_memory(r);
    }
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next, count++) {
        ATP_TRY(read_instruction(r, entry, &program[count]));
        lines[count] = entry->line;
    }
    r->file->plan.program = program;
    r->file->plan.instruction_count = count;
    r->file->instruction_lines = lines;
    return ATP_OK;
}

/* What it says is for whoever proves the bound; here it is only text. */
static enum atp_status read_certificate(const struct reader *r, const struct doc_node *node)
{
    if (node == NULL) {
        return ATP_OK;
    }
    if (node->kind != DOC_SCALAR || !plan_is_text(node->text)) {
        return doc_fail(node, r->err, ATP_ERR_SYNTAX,
                        "this is no certificate, expected lines of printable ASCII, none of them "
                        "empty or with blanks before it");
    }
    r->file->plan.certificate = node->text;
    return ATP_OK;
}

static enum atp_status read_plan(struct reader *r)
{
    struct atp_plan *plan = &r->file->plan;
    const struct doc_node *root = doc_root(r->doc), *values[TOP_COUNT];
    ATP_TRY(doc_version(root, "atp_plan", 1, r->err));
    ATP_TRY(doc_map(root, TOP_KEYS, TOP_COUNT, values, r->err));
    ATP_TRY(doc_name(values[TOP_MODEL], &plan->model.name, r->err));
    ATP_TRY(read_fingerprint(r, values[TOP_FINGERPRINT]));
    ATP_TRY(doc_number(values[TOP_BATCH_SIZE], &BATCH, &plan->model.batch_size, r->err));
    ATP_TRY(read_alignment(r, values[TOP_ALIGNMENT]));
    ATP_TRY(doc_number(values[TOP_BUDGET], &BYTES, &plan->budget_bytes, r->err));
    ATP_TRY(doc_number(values[TOP_RESIDENT], &BYTES, &plan->resident_bytes, r->err));
    ATP_TRY(doc_number(values[TOP_ARENA], &BYTES, &plan->arena_bytes, r->err));
    ATP_TRY(doc_number(values[TOP_HOST_ARENA], &BYTES, &plan->host_arena_bytes, r->err));
    if (values[TOP_TIME_LIMITED] != NULL) {
        uint32_t choice;
        ATP_TRY(doc_choice(values[TOP_TIME_LIMITED], BOOLS, 2, &choice, r->err));
        plan->time_limited = choice == 1;
    }
    ATP_TRY(read_predicted(r, values[TOP_PREDICTED]));
    ATP_TRY(read_tensors(r, values[TOP_TENSORS]));
    ATP_TRY(read_steps(r, values[TOP_STEPS]));
    ATP_TRY(read_certificate(r, values[TOP_CERTIFICATE]));
    return read_program(r, values[TOP_PROGRAM]);
}

/* Takes over `doc`, whatever happens. */
static enum atp_status own_plan(struct doc *doc, struct atp_plan_file **out_file,
                                struct atp_error *err)
{
    struct owner *owner = calloc(1, sizeof(*owner));
    if (owner == NULL) {
        doc_destroy(doc);
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory for a plan");
    }
    owner->doc = doc;
    struct reader r = {.doc = doc, .file = &owner->file, .err = err};
    enum atp_status status = read_plan(&r);
    if (status != ATP_OK) {
        atp_plan_file_destroy(&owner->file);
        return status;
    }
    *out_file = &owner->file;
    return ATP_OK;
}

enum atp_status atp_plan_read(const char *path, struct atp_plan_file **out_file,
                              struct atp_error *err)
{
    struct doc *doc;
    *out_file = NULL;
    ATP_TRY(doc_read(path, &doc, err));
    return own_plan(doc, out_file, err);
}

enum atp_status atp_plan_parse(const char *text, size_t size, struct atp_plan_file **out_file,
                               struct atp_error *err)
{
    struct doc *doc;
    *out_file = NULL;
    ATP_TRY(doc_parse(text, size, &doc, err));
    return own_plan(doc, out_file, err);
}

void atp_plan_file_destroy(struct atp_plan_file *file)
{
    struct owner *owner = (struct owner *)(void *)file;
    if (owner != NULL) {
        doc_destroy(owner->doc);
        free(owner);
    }
}
