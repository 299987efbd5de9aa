/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of a model, its fingerprint, and what differs between two models.
 *
 * The check is three passes over the uses and one sort of the names: O(n log n).
 *
 * The fingerprint is SHA-256 over these bytes. Every number is little-endian and of fixed width,
 * every text and list is preceded by its length, so that no two structures give the same bytes:
 *
 *   the 16 bytes "atp structure 1\n"
 *   u32 number of tensors; per tensor: name, u64 bytes
 *   u32 number of steps; per step: name, u8 phase (0 forward, 1 backward, 2 update), u8 rerun
 *       (0 allowed, 1 never), u32 number of reads, u32 tensor id each, u32 number of writes,
 *       u32 tensor id each, u64 workspace bytes
 *   a name is u64 size in bytes, then these bytes without a terminating zero
 */
#include <atp/model.h>
#include <atp/plan.h>

#include "fail.h"
#include "sha256.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((uint64_t)1 << 62)

struct judge {
    const struct atp_model *model;
    struct atp_model_place *out_place;
    struct atp_error *err;
};

/* Per tensor: the last step that read and that wrote it, ATP_NONE before; whether any writes it. */
struct history {
    uint32_t last_reader, last_writer;
    bool is_written;
};

static void print_place(struct atp_model_place place, char *out, size_t size)
{
    switch (place.part) {
    case ATP_MODEL_WHOLE:
        (void)snprintf(out, size, "model");
        return;
    case ATP_MODEL_TENSOR:
        (void)snprintf(out, size, "tensors[%" PRIu32 "]", place.index);
        return;
    case ATP_MODEL_STEP:
        (void)snprintf(out, size, "steps[%" PRIu32 "]", place.index);
        return;
    case ATP_MODEL_STEP_READ:
        (void)snprintf(out, size, "steps[%" PRIu32 "].reads[%" PRIu32 "]", place.index, place.item);
        return;
    case ATP_MODEL_STEP_WRITE:
        (void)snprintf(out, size, "steps[%" PRIu32 "].writes[%" PRIu32 "]", place.index,
                       place.item);
        return;
    }
    out[0] = '\0';
}

__attribute__((format(printf, 3, 4))) static enum atp_status
refuse(const struct judge *judge, struct atp_model_place place, const char *format, ...)
{
    char where[64], what[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    print_place(place, where, sizeof(where));
    if (judge->out_place != NULL) {
        *judge->out_place = place;
    }
    return atp_fail(judge->err, ATP_ERR_INVALID, "%s: %s", where, what);
}

static struct atp_model_place at_whole(void)
{
    return (struct atp_model_place){.part = ATP_MODEL_WHOLE};
}

static struct atp_model_place at_tensor(uint32_t tensor)
{
    return (struct atp_model_place){.part = ATP_MODEL_TENSOR, .index = tensor};
}

static struct atp_model_place at_step(uint32_t step)
{
    return (struct atp_model_place){.part = ATP_MODEL_STEP, .index = step};
}

static bool is_named(const char *name)
{
    return name != NULL && name[0] != '\0';
}

/* One list of ids of a step. Marks what it uses in `history`, which finds a tensor listed twice. */
static enum atp_status check_ids(const struct judge *judge, struct history *history, uint32_t step,
                                 enum atp_model_part part)
{
    const struct atp_step *s = &judge->model->steps[step];
    bool writes = part == ATP_MODEL_STEP_WRITE;
    uint32_t count = writes ? s->write_count : s->read_count;
    const uint32_t *ids = writes ? s->writes : s->reads;
    if (count > 0 && ids == NULL) {
        return refuse(judge, at_step(step), "%s is NULL, expected %" PRIu32 " ids",
                      writes ? "writes" : "reads", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct atp_model_place place = {.part = part, .index = step, .item = i};
        if (ids[i] >= judge->model->tensor_count) {
            return refuse(judge, place, "no tensor has id %" PRIu32 ", there are %" PRIu32, ids[i],
                          judge->model->tensor_count);
        }
        struct history *h = &history[ids[i]];
        uint32_t *last = writes ? &h->last_writer : &h->last_reader;
        if (*last == step) {
            return refuse(judge, place, "\"%s\" is listed twice",
                          judge->model->tensors[ids[i]].name);
        }
        *last = step;
        h->is_written = h->is_written || writes;
    }
    return ATP_OK;
}

static enum atp_status check_tensors(const struct judge *judge, uint64_t *total_bytes)
{
    for (uint32_t t = 0; t < judge->model->tensor_count; t++) {
        const struct atp_tensor *tensor = &judge->model->tensors[t];
        if (!is_named(tensor->name)) {
            return refuse(judge, at_tensor(t), "the name is empty");
        }
        if (tensor->bytes > BYTES_MAX - *total_bytes) {
            return refuse(judge, at_tensor(t),
                          "with its %" PRIu64 " bytes the sum of all sizes leaves 2^62",
                          tensor->bytes);
        }
        *total_bytes += tensor->bytes;
    }
    return ATP_OK;
}

static enum atp_status check_steps(const struct judge *judge, struct history *history,
                                   uint64_t *total_bytes)
{
    enum atp_phase latest = ATP_PHASE_FORWARD;
    for (uint32_t s = 0; s < judge->model->step_count; s++) {
        const struct atp_step *step = &judge->model->steps[s];
        if (!is_named(step->name)) {
            return refuse(judge, at_step(s), "the name is empty");
        }
        if ((unsigned)step->phase > (unsigned)ATP_PHASE_UPDATE) {
            return refuse(judge, at_step(s), "no phase has number %u", (unsigned)step->phase);
        }
        if (step->phase < latest) {
            return refuse(judge, at_step(s),
                          "phase %s follows phase %s, expected forward, backward, update",
                          atp_phase_name(step->phase), atp_phase_name(latest));
        }
        latest = step->phase;
        if (step->workspace_bytes > BYTES_MAX - *total_bytes) {
            return refuse(judge, at_step(s),
                          "with its workspace of %" PRIu64
                          " bytes the sum of all sizes leaves 2^62",
                          step->workspace_bytes);
        }
        *total_bytes += step->workspace_bytes;
        ATP_TRY(check_ids(judge, history, s, ATP_MODEL_STEP_READ));
        ATP_TRY(check_ids(judge, history, s, ATP_MODEL_STEP_WRITE));
    }
    return ATP_OK;
}

/* After check_steps: a tensor that some step writes is read by none before the first of them. */
static enum atp_status check_order(const struct judge *judge, struct history *history)
{
    for (uint32_t t = 0; t < judge->model->tensor_count; t++) {
        history[t].last_writer = ATP_NONE;
    }
    for (uint32_t s = 0; s < judge->model->step_count; s++) {
        const struct atp_step *step = &judge->model->steps[s];
        for (uint32_t i = 0; i < step->read_count; i++) {
            const struct history *h = &history[step->reads[i]];
            if (h->is_written && h->last_writer == ATP_NONE) {
                struct atp_model_place place = {ATP_MODEL_STEP_READ, s, i};
                return refuse(judge, place, "\"%s\" is read before the first step that writes it",
                              judge->model->tensors[step->reads[i]].name);
            }
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            history[step->writes[i]].last_writer = s;
        }
    }
    return ATP_OK;
}

/* A name and the group within which it is unique. */
struct named {
    const char *name;
    uint32_t group, index;
};

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order == 0) {
        order = (a->group > b->group) - (a->group < b->group);
    }
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

/* Sorts the names. Returns the one whose second use comes first, its first use before it in the
 * array; NULL when all are unique. */
static const struct named *find_double_name(struct named *names, uint32_t count)
{
    const struct named *found = NULL;
    qsort(names, count, sizeof(*names), compare_named);
    for (uint32_t i = 1; i < count; i++) {
        if (names[i].group == names[i - 1].group && strcmp(names[i].name, names[i - 1].name) == 0 &&
            (found == NULL || names[i].index < found->index)) {
            found = &names[i];
        }
    }
    return found;
}

/* `names` has room for the tensors or the steps, whichever are more. */
static enum atp_status check_names(const struct judge *judge, struct named *names)
{
    const struct atp_model *model = judge->model;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        names[t] = (struct named){model->tensors[t].name, 0, t};
    }
    const struct named *found = find_double_name(names, model->tensor_count);
    if (found != NULL) {
        return refuse(judge, at_tensor(found->index),
                      "the name \"%s\" is that of tensors[%" PRIu32 "] already", found->name,
                      found[-1].index);
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        names[s] = (struct named){model->steps[s].name, (uint32_t)model->steps[s].phase, s};
    }
    found = find_double_name(names, model->step_count);
    if (found != NULL) {
        return refuse(judge, at_step(found->index),
                      "the name \"%s\" is that of steps[%" PRIu32 "] already, in the same phase",
                      found->name, found[-1].index);
    }
    return ATP_OK;
}

static enum atp_status check_all(const struct judge *judge, struct history *history,
                                 struct named *names)
{
    uint64_t total_bytes = 0;
    for (uint32_t t = 0; t < judge->model->tensor_count; t++) {
        history[t] = (struct history){ATP_NONE, ATP_NONE, false};
    }
    ATP_TRY(check_tensors(judge, &total_bytes));
    ATP_TRY(check_steps(judge, history, &total_bytes));
    ATP_TRY(check_names(judge, names));
    return check_order(judge, history);
}

enum atp_status atp_model_check(const struct atp_model *model, struct atp_model_place *out_place,
                                struct atp_error *err)
{
    struct judge judge = {model, out_place, err};
    uint32_t name_count =
        model->tensor_count > model->step_count ? model->tensor_count : model->step_count;
    if (!is_named(model->name)) {
        return refuse(&judge, at_whole(), "the name is empty");
    }
    if (model->step_count == 0) {
        return refuse(&judge, at_whole(), "there is no step, expected at least one");
    }
    if (model->steps == NULL || (model->tensor_count > 0 && model->tensors == NULL)) {
        return refuse(&judge, at_whole(), "%s is NULL", model->steps == NULL ? "steps" : "tensors");
    }
    struct history *history = calloc((size_t)model->tensor_count + 1, sizeof(*history));
    struct named *names = calloc(name_count, sizeof(*names));
    enum atp_status status =
        history == NULL || names == NULL
            ? atp_fail(err, ATP_ERR_NO_MEMORY, "model: no memory to check %" PRIu32 " tensors",
                       model->tensor_count)
            : check_all(&judge, history, names);
    free(names);
    free(history);
    return status;
}

static void hash_number(struct sha256 *hash, uint64_t number, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    sha256_update(hash, bytes, size);
}

static void hash_name(struct sha256 *hash, const char *name)
{
    size_t size = strlen(name);
    hash_number(hash, size, 8);
    sha256_update(hash, name, size);
}

static void hash_ids(struct sha256 *hash, const uint32_t *ids, uint32_t count)
{
    hash_number(hash, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        hash_number(hash, ids[i], 4);
    }
}

void atp_model_fingerprint(const struct atp_model *model, uint8_t out_digest[32])
{
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, "atp structure 1\n", 16);
    hash_number(&hash, model->tensor_count, 4);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        hash_name(&hash, model->tensors[t].name);
        hash_number(&hash, model->tensors[t].bytes, 8);
    }
    hash_number(&hash, model->step_count, 4);
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        hash_name(&hash, step->name);
        hash_number(&hash, (uint64_t)step->phase, 1);
        hash_number(&hash, step->rerun_never, 1);
        hash_ids(&hash, step->reads, step->read_count);
        hash_ids(&hash, step->writes, step->write_count);
        hash_number(&hash, step->workspace_bytes, 8);
    }
    sha256_finish(&hash, out_digest);
}

/* Two models side by side, and the part of them that is compared. */
struct pair {
    const struct atp_model *planned, *actual;
    const char *planned_name, *actual_name;
    char where[200];
    struct atp_error *err;
};

static enum atp_status same_text(const struct pair *pair, const char *what, const char *planned,
                                 const char *actual)
{
    if (strcmp(planned, actual) == 0) {
        return ATP_OK;
    }
    return atp_fail(pair->err, ATP_ERR_MISMATCH, "%s: %s is \"%s\" in %s, \"%s\" in %s",
                    pair->where, what, planned, pair->planned_name, actual, pair->actual_name);
}

static enum atp_status same_number(const struct pair *pair, const char *what, const char *unit,
                                   uint64_t planned, uint64_t actual)
{
    if (planned == actual) {
        return ATP_OK;
    }
    return atp_fail(pair->err, ATP_ERR_MISMATCH, "%s: %s is %" PRIu64 "%s in %s, %" PRIu64 " in %s",
                    pair->where, what, planned, unit, pair->planned_name, actual,
                    pair->actual_name);
}

static enum atp_status same_ids(const struct pair *pair, uint32_t step, bool writes)
{
    const struct atp_step *planned = &pair->planned->steps[step];
    const struct atp_step *actual = &pair->actual->steps[step];
    uint32_t planned_count = writes ? planned->write_count : planned->read_count;
    uint32_t actual_count = writes ? actual->write_count : actual->read_count;
    const uint32_t *planned_ids = writes ? planned->writes : planned->reads;
    const uint32_t *actual_ids = writes ? actual->writes : actual->reads;
    for (uint32_t i = 0; i < planned_count && i < actual_count; i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "%s[%" PRIu32 "]", writes ? "writes" : "reads", i);
        ATP_TRY(same_text(pair, what, pair->planned->tensors[planned_ids[i]].name,
                          pair->actual->tensors[actual_ids[i]].name));
    }
    return same_number(pair, writes ? "number of writes" : "number of reads", "", planned_count,
                       actual_count);
}

static enum atp_status same_tensors(struct pair *pair)
{
    const struct atp_model *planned = pair->planned, *actual = pair->actual;
    for (uint32_t t = 0; t < planned->tensor_count && t < actual->tensor_count; t++) {
        (void)snprintf(pair->where, sizeof(pair->where), "tensors[%" PRIu32 "]", t);
        ATP_TRY(same_text(pair, "name", planned->tensors[t].name, actual->tensors[t].name));
        (void)snprintf(pair->where, sizeof(pair->where), "tensors[%" PRIu32 "] \"%s\"", t,
                       planned->tensors[t].name);
        ATP_TRY(same_number(pair, "size", " bytes", planned->tensors[t].bytes,
                            actual->tensors[t].bytes));
    }
    (void)snprintf(pair->where, sizeof(pair->where), "tensors");
    return same_number(pair, "their number", "", planned->tensor_count, actual->tensor_count);
}

static enum atp_status same_steps(struct pair *pair)
{
    const struct atp_model *planned = pair->planned, *actual = pair->actual;
    for (uint32_t s = 0; s < planned->step_count && s < actual->step_count; s++) {
        const struct atp_step *a = &planned->steps[s], *b = &actual->steps[s];
        (void)snprintf(pair->where, sizeof(pair->where), "steps[%" PRIu32 "]", s);
        ATP_TRY(same_text(pair, "name", a->name, b->name));
        ATP_TRY(same_text(pair, "phase", atp_phase_name(a->phase), atp_phase_name(b->phase)));
        (void)snprintf(pair->where, sizeof(pair->where), "steps[%" PRIu32 "] \"%s\" %s", s, a->name,
                       atp_phase_name(a->phase));
        ATP_TRY(same_text(pair, "rerun", a->rerun_never ? "never" : "allowed",
                          b->rerun_never ? "never" : "allowed"));
        ATP_TRY(same_ids(pair, s, false));
        ATP_TRY(same_ids(pair, s, true));
        ATP_TRY(same_number(pair, "workspace", " bytes", a->workspace_bytes, b->workspace_bytes));
    }
    (void)snprintf(pair->where, sizeof(pair->where), "steps");
    return same_number(pair, "their number", "", planned->step_count, actual->step_count);
}

enum atp_status atp_model_compare(const struct atp_model *planned, const char *planned_name,
                                  const struct atp_model *actual, const char *actual_name,
                                  struct atp_error *err)
{
    struct pair pair = {.planned = planned,
                        .actual = actual,
                        .planned_name = planned_name,
                        .actual_name = actual_name,
                        .err = err};
    ATP_TRY(same_tensors(&pair));
    return same_steps(&pair);
}
