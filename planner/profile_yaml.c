/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Profile files (version 1) -> struct profile_file. This file knows keys, types, ranges and names;
 * the rules about what steps may do with tensors are atp_model_check's, whose findings are given
 * their line and column here. Names are found by bisection: n log n in all.
 */
#include "profile_file.h"

#include "fail.h"

#include <inttypes.h>
#include <string.h>

enum {
    TOP_VERSION,
    TOP_MODEL,
    TOP_ORIGIN,
    TOP_DEVICE,
    TOP_HOST,
    TOP_BATCH_SIZE,
    TOP_BATCH_SIZES,
    TOP_RESIDENT,
    TOP_TENSORS,
    TOP_STEPS,
    TOP_COUNT
};
static const struct doc_key TOP_KEYS[TOP_COUNT] = {
    [TOP_VERSION] = {"atp_profile", true},
    [TOP_MODEL] = {"model", true},
    [TOP_ORIGIN] = {"origin", false},
    [TOP_DEVICE] = {"device", true},
    [TOP_HOST] = {"host", false},
    [TOP_BATCH_SIZE] = {"batch_size", false},
    [TOP_BATCH_SIZES] = {"batch_sizes", false},
    [TOP_RESIDENT] = {"resident_bytes", true},
    [TOP_TENSORS] = {"tensors", true},
    [TOP_STEPS] = {"steps", true},
};

enum {
    DEVICE_NAME,
    DEVICE_MEMORY,
    DEVICE_D2H,
    DEVICE_H2D,
    DEVICE_D2H_DUPLEX,
    DEVICE_H2D_DUPLEX,
    DEVICE_LATENCY,
    DEVICE_COUNT
};
static const struct doc_key DEVICE_KEYS[DEVICE_COUNT] = {
    [DEVICE_NAME] = {"name", true},
    [DEVICE_MEMORY] = {"memory_bytes", true},
    [DEVICE_D2H] = {"d2h_bytes_per_second", true},
    [DEVICE_H2D] = {"h2d_bytes_per_second", true},
    [DEVICE_D2H_DUPLEX] = {"d2h_duplex_bytes_per_second", false},
    [DEVICE_H2D_DUPLEX] = {"h2d_duplex_bytes_per_second", false},
    [DEVICE_LATENCY] = {"copy_latency_us", false},
};

enum { HOST_PINNED, HOST_COUNT };
static const struct doc_key HOST_KEYS[HOST_COUNT] = {[HOST_PINNED] = {"pinned_bytes", true}};

enum { TENSOR_NAME, TENSOR_BYTES, TENSOR_DECIDE, TENSOR_COUNT };
static const struct doc_key TENSOR_KEYS[TENSOR_COUNT] = {
    [TENSOR_NAME] = {"name", true},
    [TENSOR_BYTES] = {"bytes", true},
    [TENSOR_DECIDE] = {"decide", false},
};

enum {
    STEP_NAME,
    STEP_PHASE,
    STEP_TIME,
    STEP_READS,
    STEP_WRITES,
    STEP_WORKSPACE,
    STEP_RERUN,
    STEP_COUNT
};
static const struct doc_key STEP_KEYS[STEP_COUNT] = {
    [STEP_NAME] = {"name", true},     [STEP_PHASE] = {"phase", true},
    [STEP_TIME] = {"time_us", true},  [STEP_READS] = {"reads", true},
    [STEP_WRITES] = {"writes", true}, [STEP_WORKSPACE] = {"workspace_bytes", false},
    [STEP_RERUN] = {"rerun", false},
};

const struct doc_key *profile_keys(enum profile_map map, uint32_t *out_count)
{
    static const struct {
        const struct doc_key *keys;
        uint32_t count;
    } tables[] = {
        [PROFILE_MAP_TOP] = {TOP_KEYS, TOP_COUNT},
        [PROFILE_MAP_DEVICE] = {DEVICE_KEYS, DEVICE_COUNT},
        [PROFILE_MAP_HOST] = {HOST_KEYS, HOST_COUNT},
        [PROFILE_MAP_TENSOR] = {TENSOR_KEYS, TENSOR_COUNT},
        [PROFILE_MAP_STEP] = {STEP_KEYS, STEP_COUNT},
    };
    *out_count = tables[map].count;
    return tables[map].keys;
}

static const struct doc_number BYTES = {.what = "a whole number of bytes",
                                        .max = PROFILE_BYTES_MAX};
static const struct doc_number MEMORY = {
    .what = "a whole number of bytes", .min = 1, .max = PROFILE_BYTES_MAX};
static const struct doc_number RATE = {
    .what = "a whole number of bytes per second", .min = 1, .max = PROFILE_BYTES_MAX};
static const struct doc_number BATCH = {
    .what = "a whole number of samples", .min = 1, .max = PROFILE_BATCH_MAX};
/* 10^15 ns is eleven days. */
static const struct doc_number TIME = {
    .what = "microseconds", .decimals = 3, .rounds = true, .max = UINT64_C(1000000000000000)};

static const char *const PHASES[] = {"forward", "backward", "update"};
static const char *const RERUNS[] = {"allowed", "never"};
static const char *const DECISIONS[] = {"keep", "swap", "recompute"};

struct reader {
    struct profile_file *file;
    struct region *region;
    struct atp_error *err;
    const struct doc_node **tensor_nodes, **step_nodes; /* for errors found later */
    const struct doc_node **read_nodes, **write_nodes;  /* the lists of each step */
    const struct doc_node **pin_nodes;                  /* of each tensor, or NULL */
    struct doc_index *tensor_index;
};

/* One number for all batch sizes, or one for each. */
static enum atp_status read_series(const struct reader *r, const struct doc_node *node,
                                   const struct doc_number *rule, const uint64_t **out_series)
{
    uint32_t count = r->file->batch_count;
    uint64_t *series = REGION_NEW(r->region, uint64_t, count);
    *out_series = series;
    if (node->kind != DOC_LIST) {
        ATP_TRY(doc_number(node, rule, &series[0], r->err));
        for (uint32_t b = 1; b < count; b++) {
            series[b] = series[0];
        }
        return ATP_OK;
    }
    if (node->count != count) {
        return doc_fail(node, r->err, ATP_ERR_SYNTAX,
                        "the list has %u entries, expected one per batch size, which makes %u",
                        node->count, count);
    }
    uint32_t b = 0;
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next) {
        ATP_TRY(doc_number(entry, rule, &series[b++], r->err));
    }
    return ATP_OK;
}

static enum atp_status read_batch_sizes(const struct reader *r, const struct doc_node *root,
                                        const struct doc_node *one, const struct doc_node *several)
{
    if (one != NULL && several != NULL) {
        return doc_fail(one->index > several->index ? one : several, r->err, ATP_ERR_SYNTAX,
                        "both \"batch_size\" and \"batch_sizes\" are there, expected one of them");
    }
    if (one == NULL && several == NULL) {
        return doc_fail(root, r->err, ATP_ERR_SYNTAX,
                        "the key \"batch_size\" (or \"batch_sizes\") is missing");
    }
    uint32_t count = 1;
    if (several != NULL) {
        ATP_TRY(doc_list(several, r->err));
        count = several->count;
        if (count == 0 || count > PROFILE_BATCHES_MAX) {
            return doc_fail(several, r->err, ATP_ERR_INVALID,
                            "the list has %u entries, expected 1 to %u", count,
                            PROFILE_BATCHES_MAX);
        }
    }
    uint64_t *sizes = REGION_NEW(r->region, uint64_t, count);
    uint32_t b = 0;
    for (const struct doc_node *node = several != NULL ? several->first : one; b < count;
         node = node->next, b++) {
        ATP_TRY(doc_number(node, &BATCH, &sizes[b], r->err));
        if (b > 0 && sizes[b] <= sizes[b - 1]) {
            return doc_fail(node, r->err, ATP_ERR_INVALID,
                            "%" PRIu64 " comes after %" PRIu64 ", expected ascending batch sizes",
                            sizes[b], sizes[b - 1]);
        }
    }
    r->file->batch_count = count;
    r->file->batch_sizes = sizes;
    return ATP_OK;
}

static struct profile_place place_of(const struct doc_node *node)
{
    return (struct profile_place){.line = node->line, .column = node->column};
}

static enum atp_status read_name(const struct reader *r, const struct doc_node *node,
                                 const char **out_name)
{
    const char *name;
    ATP_TRY(doc_name(node, &name, r->err));
    *out_name = region_copy_text(r->region, name);
    return ATP_OK;
}

static enum atp_status read_device(const struct reader *r, const struct doc_node *node)
{
    struct profile_file *file = r->file;
    const struct doc_node *values[DEVICE_COUNT];
    ATP_TRY(doc_map(node, DEVICE_KEYS, DEVICE_COUNT, values, r->err));
    ATP_TRY(read_name(r, values[DEVICE_NAME], &file->device_name));
    ATP_TRY(doc_number(values[DEVICE_MEMORY], &MEMORY, &file->device_memory_bytes, r->err));
    struct profile_link *link = &file->link;
    ATP_TRY(doc_number(values[DEVICE_D2H], &RATE, &link->d2h, r->err));
    ATP_TRY(doc_number(values[DEVICE_H2D], &RATE, &link->h2d, r->err));
    if (values[DEVICE_D2H_DUPLEX] != NULL) {
        ATP_TRY(doc_number(values[DEVICE_D2H_DUPLEX], &RATE, &link->d2h_duplex, r->err));
    }
    if (values[DEVICE_H2D_DUPLEX] != NULL) {
        ATP_TRY(doc_number(values[DEVICE_H2D_DUPLEX], &RATE, &link->h2d_duplex, r->err));
    }
    profile_file_set_rates(file);
    if (values[DEVICE_LATENCY] != NULL) {
        uint64_t latency_ns;
        ATP_TRY(doc_number(values[DEVICE_LATENCY], &TIME, &latency_ns, r->err));
        file->copy_latency_ns = (int64_t)latency_ns;
    }
    return ATP_OK;
}

static enum atp_status read_host(const struct reader *r, const struct doc_node *node)
{
    const struct doc_node *values[HOST_COUNT];
    r->file->pinned_bytes = UINT64_MAX;
    if (node == NULL) {
        return ATP_OK;
    }
    ATP_TRY(doc_map(node, HOST_KEYS, HOST_COUNT, values, r->err));
    return doc_number(values[HOST_PINNED], &BYTES, &r->file->pinned_bytes, r->err);
}

static enum atp_status read_tensor(const struct reader *r, const struct doc_node *node, uint32_t id,
                                   struct profile_tensor *out)
{
    const struct doc_node *values[TENSOR_COUNT];
    ATP_TRY(doc_map(node, TENSOR_KEYS, TENSOR_COUNT, values, r->err));
    ATP_TRY(read_name(r, values[TENSOR_NAME], &out->name));
    ATP_TRY(read_series(r, values[TENSOR_BYTES], &BYTES, &out->bytes));
    if (values[TENSOR_DECIDE] != NULL) {
        uint32_t choice;
        ATP_TRY(doc_choice(values[TENSOR_DECIDE], DECISIONS, 3, &choice, r->err));
        out->pin = (enum profile_pin)(PROFILE_PIN_KEEP + choice);
    }
    out->place = place_of(node);
    r->pin_nodes[id] = values[TENSOR_DECIDE];
    r->tensor_nodes[id] = values[TENSOR_NAME];
    r->tensor_index[id] = (struct doc_index){.name = out->name, .id = id};
    return ATP_OK;
}

static enum atp_status read_tensors(struct reader *r, const struct doc_node *node)
{
    ATP_TRY(doc_list(node, r->err));
    uint32_t id = 0, count = node->count;
    struct profile_tensor *tensors = REGION_NEW(r->region, struct profile_tensor, count);
    r->tensor_nodes = REGION_NEW(r->region, const struct doc_node *, count);
    r->pin_nodes = REGION_NEW(r->region, const struct doc_node *, count);
    r->tensor_index = REGION_NEW(r->region, struct doc_index, count);
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next, id++) {
        ATP_TRY(read_tensor(r, entry, id, &tensors[id]));
    }
    doc_index_sort(r->tensor_index, count);
    r->file->tensor_count = count;
    r->file->tensors = tensors;
    return ATP_OK;
}

static enum atp_status read_uses(const struct reader *r, const struct doc_node *node,
                                 const uint32_t **out_ids, uint32_t *out_count)
{
    ATP_TRY(doc_list(node, r->err));
    *out_count = node->count;
    if (node->count == 0) {
        return ATP_OK;
    }
    uint32_t *ids = REGION_NEW(r->region, uint32_t, node->count), count = 0;
    *out_ids = ids;
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next) {
        const char *name;
        ATP_TRY(doc_name(entry, &name, r->err));
        uint32_t id = doc_index_find(r->tensor_index, r->file->tensor_count, name, 0);
        if (id == ATP_NONE) {
            return doc_fail(entry, r->err, ATP_ERR_INVALID, "no tensor is named \"%s\"",
                            doc_shorten(name).text);
        }
        ids[count++] = id;
    }
    return ATP_OK;
}

static enum atp_status read_step(const struct reader *r, const struct doc_node *node, uint32_t id,
                                 struct profile_step *out)
{
    static const uint64_t none[PROFILE_BATCHES_MAX];
    const struct doc_node *values[STEP_COUNT];
    uint32_t choice;
    ATP_TRY(doc_map(node, STEP_KEYS, STEP_COUNT, values, r->err));
    ATP_TRY(read_name(r, values[STEP_NAME], &out->step.name));
    ATP_TRY(doc_choice(values[STEP_PHASE], PHASES, 3, &choice, r->err));
    out->step.phase = (enum atp_phase)choice;
    ATP_TRY(read_series(r, values[STEP_TIME], &TIME, &out->time_ns));
    ATP_TRY(read_uses(r, values[STEP_READS], &out->step.reads, &out->step.read_count));
    ATP_TRY(read_uses(r, values[STEP_WRITES], &out->step.writes, &out->step.write_count));
    out->workspace_bytes = none;
    if (values[STEP_WORKSPACE] != NULL) {
        ATP_TRY(read_series(r, values[STEP_WORKSPACE], &BYTES, &out->workspace_bytes));
    }
    if (values[STEP_RERUN] != NULL) {
        ATP_TRY(doc_choice(values[STEP_RERUN], RERUNS, 2, &choice, r->err));
        out->step.rerun_never = choice == 1;
    }
    out->place = place_of(node);
    r->step_nodes[id] = node;
    r->read_nodes[id] = values[STEP_READS];
    r->write_nodes[id] = values[STEP_WRITES];
    return ATP_OK;
}

static enum atp_status read_steps(struct reader *r, const struct doc_node *node)
{
    ATP_TRY(doc_list(node, r->err));
    uint32_t id = 0, count = node->count;
    struct profile_step *steps = REGION_NEW(r->region, struct profile_step, count);
    r->step_nodes = REGION_NEW(r->region, const struct doc_node *, count);
    r->read_nodes = REGION_NEW(r->region, const struct doc_node *, count);
    r->write_nodes = REGION_NEW(r->region, const struct doc_node *, count);
    for (const struct doc_node *entry = node->first; entry != NULL; entry = entry->next, id++) {
        ATP_TRY(read_step(r, entry, id, &steps[id]));
    }
    r->file->step_count = count;
    r->file->steps = steps;
    return ATP_OK;
}

static const struct doc_node *entry_at(const struct doc_node *list, uint32_t index)
{
    const struct doc_node *entry = list->first;
    while (entry != NULL && entry->index < index) {
        entry = entry->next;
    }
    return entry;
}

/* The node that an error of atp_model_check is about. */
static const struct doc_node *node_of_place(const struct reader *r, const struct doc_node *root,
                                            const struct atp_model_place *place)
{
    switch (place->part) {
    case ATP_MODEL_WHOLE:
        return root;
    case ATP_MODEL_TENSOR:
        return r->tensor_nodes[place->index];
    case ATP_MODEL_STEP:
        return r->step_nodes[place->index];
    case ATP_MODEL_STEP_READ:
        return entry_at(r->read_nodes[place->index], place->item);
    case ATP_MODEL_STEP_WRITE:
        return entry_at(r->write_nodes[place->index], place->item);
    }
    return root;
}

/* The rules of the model hold at every batch size: sums of bytes differ. */
static enum atp_status check_models(const struct reader *r, const struct doc_node *root)
{
    struct region_mark mark = region_mark(r->region);
    for (uint32_t b = 0; b < r->file->batch_count; b++) {
        struct profile profile;
        struct atp_model_place place = {.part = ATP_MODEL_WHOLE};
        ATP_TRY(profile_at_batch(r->file, r->file->batch_sizes[b], r->region, &profile, r->err));
        enum atp_status status = atp_model_check(&profile.model, &place, r->err);
        region_reset(r->region, mark);
        if (status != ATP_OK) {
            const struct doc_node *node = node_of_place(r, root, &place);
            if (r->err != NULL && node != NULL) {
                r->err->line = node->line;
                r->err->column = node->column;
            }
            return status;
        }
    }
    return ATP_OK;
}

/* A tensor that is to be recomputed needs writers that can run again: forward, and not `rerun:
 * never`. */
static enum atp_status check_pins(const struct reader *r)
{
    const struct profile_file *file = r->file;
    bool *has_writer = REGION_NEW(r->region, bool, file->tensor_count);
    for (uint32_t s = 0; s < file->step_count; s++) {
        const struct atp_step *step = &file->steps[s].step;
        for (uint32_t i = 0; i < step->write_count && step->phase == ATP_PHASE_FORWARD; i++) {
            uint32_t t = step->writes[i];
            has_writer[t] = true;
            if (step->rerun_never && file->tensors[t].pin == PROFILE_PIN_RECOMPUTE) {
                return doc_fail(r->pin_nodes[t], r->err, ATP_ERR_INVALID,
                                "the tensor cannot be recomputed: step \"%s\" writes it and must "
                                "not run twice",
                                doc_shorten(step->name).text);
            }
        }
    }
    for (uint32_t t = 0; t < file->tensor_count; t++) {
        if (file->tensors[t].pin == PROFILE_PIN_RECOMPUTE && !has_writer[t]) {
            return doc_fail(r->pin_nodes[t], r->err, ATP_ERR_INVALID,
                            "the tensor cannot be recomputed: no forward step writes it");
        }
    }
    return ATP_OK;
}

static enum atp_status read_document(struct reader *r, const struct doc_node *root)
{
    struct profile_file *file = r->file;
    const struct doc_node *values[TOP_COUNT];
    ATP_TRY(doc_version(root, "atp_profile", 1, r->err));
    ATP_TRY(doc_map(root, TOP_KEYS, TOP_COUNT, values, r->err));
    ATP_TRY(read_name(r, values[TOP_MODEL], &file->model_name));
    if (values[TOP_ORIGIN] != NULL) {
        const char *origin;
        ATP_TRY(doc_text(values[TOP_ORIGIN], &origin, r->err));
        file->origin = region_copy_text(r->region, origin);
    }
    file->model_place = place_of(values[TOP_MODEL]);
    file->device_place = place_of(values[TOP_DEVICE]);
    ATP_TRY(read_device(r, values[TOP_DEVICE]));
    ATP_TRY(read_host(r, values[TOP_HOST]));
    ATP_TRY(read_batch_sizes(r, root, values[TOP_BATCH_SIZE], values[TOP_BATCH_SIZES]));
    bool is_list = values[TOP_BATCH_SIZES] != NULL;
    file->tensors_place = place_of(values[TOP_TENSORS]);
    file->steps_place = place_of(values[TOP_STEPS]);
    file->batch_place = place_of(values[is_list ? TOP_BATCH_SIZES : TOP_BATCH_SIZE]);
    ATP_TRY(read_series(r, values[TOP_RESIDENT], &BYTES, &file->resident_bytes));
    ATP_TRY(read_tensors(r, values[TOP_TENSORS]));
    ATP_TRY(read_steps(r, values[TOP_STEPS]));
    ATP_TRY(check_models(r, root));
    return check_pins(r);
}

static enum atp_status read_profile(struct doc *doc, struct region *region,
                                    const struct profile_file **out_file, struct atp_error *err)
{
    struct reader r = {
        .file = REGION_NEW(region, struct profile_file, 1), .region = region, .err = err};
    enum atp_status status = read_document(&r, doc_root(doc));
    doc_destroy(doc);
    if (status == ATP_OK) {
        *out_file = r.file;
    }
    return status;
}

enum atp_status profile_read(const char *path, struct region *region,
                             const struct profile_file **out_file, struct atp_error *err)
{
    struct doc *doc;
    *out_file = NULL;
    ATP_TRY(doc_read(path, &doc, err));
    return read_profile(doc, region, out_file, err);
}

enum atp_status profile_parse(const char *text, size_t size, struct region *region,
                              const struct profile_file **out_file, struct atp_error *err)
{
    struct doc *doc;
    *out_file = NULL;
    ATP_TRY(doc_parse(text, size, &doc, err));
    return read_profile(doc, region, out_file, err);
}
