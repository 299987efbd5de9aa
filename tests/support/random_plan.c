/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program is made by walking over the steps. One invariant keeps it legal: every tensor that
 * has contents can be had again, from the device, from a host copy of its present version, or by a
 * rerun on tensors of which the same is true.
 */
#include "random_plan.h"

#include "random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT   8
#define TENSORS_MAX 256
#define NEVER       UINT32_MAX

struct tensor {
    uint32_t writer_count, first_writer, last_user; /* of the model */
    bool is_recomputable, feeds_reruns;
    bool is_on_device, is_evicting, is_restoring;
    uint32_t version, host_version; /* NEVER: no contents, no copy */
    uint64_t offset, host_offset;
};

struct maker {
    struct plan_builder *builder;
    struct random random;
    struct tensor tensors[TENSORS_MAX];
};

static bool holds(const struct ids *ids, uint32_t id)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        if (ids->items[i] == id) {
            return true;
        }
    }
    return false;
}

static void add_id(struct ids *ids, uint32_t id)
{
    if (!holds(ids, id)) {
        ids->items[ids->count++] = id;
    }
}

static uint32_t new_tensor(struct maker *maker, struct ids *writes)
{
    char name[16];
    uint32_t count = maker->builder->plan.model.tensor_count;
    (void)snprintf(name, sizeof(name), "t%u", count);
    uint32_t t = plan_builder_tensor(maker->builder, name, 1 + random_below(&maker->random, 40));
    if (writes != NULL) {
        add_id(writes, t);
    }
    return t;
}

/* Tensors below `made` have contents by then. */
static void add_step(struct maker *maker, enum atp_phase phase, uint32_t layer, uint32_t made,
                     uint32_t input_count)
{
    struct ids reads = NO_IDS, writes = NO_IDS;
    char name[16];
    for (uint32_t i = 1 + random_below(&maker->random, 3); i > 0; i--) {
        /* Late tensors more often: they are the layer before. */
        uint32_t near = made < 4 ? made : 4;
        add_id(&reads, random_chance(&maker->random, 60)
                           ? made - 1 - random_below(&maker->random, near)
                           : random_below(&maker->random, made));
    }
    for (uint32_t i = 1 + random_chance(&maker->random, 30); i > 0; i--) {
        (void)new_tensor(maker, &writes);
    }
    if (made > input_count && random_chance(&maker->random, phase == ATP_PHASE_FORWARD ? 15 : 40)) {
        uint32_t updated = input_count + random_below(&maker->random, made - input_count);
        add_id(&writes, updated);
        if (random_chance(&maker->random, 70)) {
            add_id(&reads, updated);
        }
    }
    (void)snprintf(name, sizeof(name), "l%u", layer);
    uint32_t s = plan_builder_step(maker->builder, phase, name, reads, writes);
    maker->builder->steps[s].rerun_never = random_chance(&maker->random, 15);
    if (random_chance(&maker->random, 30)) {
        maker->builder->steps[s].workspace_bytes = 1 + random_below(&maker->random, 40);
    }
}

static void add_model(struct maker *maker, uint32_t layer_count)
{
    const struct atp_model *model = &maker->builder->plan.model;
    uint32_t input_count = 1 + random_below(&maker->random, 3);
    for (uint32_t i = 0; i < input_count; i++) {
        (void)new_tensor(maker, NULL);
    }
    for (uint32_t i = 0; i < layer_count; i++) {
        add_step(maker, ATP_PHASE_FORWARD, i, model->tensor_count, input_count);
    }
    for (uint32_t i = layer_count; i > 0; i--) {
        add_step(maker, ATP_PHASE_BACKWARD, i - 1, model->tensor_count, input_count);
    }
    add_step(maker, ATP_PHASE_UPDATE, 0, model->tensor_count, input_count);
}

static bool is_step_recomputable(const struct maker *maker, const struct atp_step *step)
{
    if (step->phase != ATP_PHASE_FORWARD || step->rerun_never) {
        return false;
    }
    for (uint32_t i = 0; i < step->read_count; i++) {
        if (maker->tensors[step->reads[i]].writer_count > 1) {
            return false;
        }
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (maker->tensors[step->writes[i]].writer_count > 1) {
            return false;
        }
    }
    return true;
}

static void study_model(struct maker *maker)
{
    const struct atp_model *model = &maker->builder->plan.model;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        maker->tensors[t] = (struct tensor){.version = NEVER, .host_version = NEVER};
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        for (uint32_t i = 0; i < step->read_count; i++) {
            maker->tensors[step->reads[i]].last_user = s;
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            struct tensor *tensor = &maker->tensors[step->writes[i]];
            tensor->last_user = s;
            if (tensor->writer_count++ == 0) {
                tensor->first_writer = s;
            }
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        bool recomputable = is_step_recomputable(maker, step);
        for (uint32_t i = 0; i < step->write_count; i++) {
            maker->tensors[step->writes[i]].is_recomputable |= recomputable;
        }
        for (uint32_t i = 0; i < step->read_count; i++) {
            maker->tensors[step->reads[i]].feeds_reruns |= recomputable;
        }
    }
}

static void emit(struct maker *maker, enum atp_op op, uint32_t id, uint64_t offset)
{
    plan_builder_add(maker->builder, op, id, offset);
}

static uint64_t size_of(const struct maker *maker, uint32_t t)
{
    return maker->builder->tensors[t].bytes;
}

static bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* First fit, now and then not from the beginning. */
static uint64_t find_device_bytes(struct maker *maker, uint64_t bytes)
{
    uint64_t offset =
        random_chance(&maker->random, 80) ? 0 : ALIGNMENT * random_below(&maker->random, 64);
    for (uint32_t t = 0; t < maker->builder->plan.model.tensor_count; t++) {
        const struct tensor *tensor = &maker->tensors[t];
        if (tensor->is_on_device && overlaps(offset, bytes, tensor->offset, size_of(maker, t))) {
            offset += ALIGNMENT;
            t = NEVER; /* begin again */
        }
    }
    return offset;
}

static bool has_copy(const struct tensor *tensor)
{
    return tensor->host_version != NEVER && tensor->host_version == tensor->version;
}

/* Host bytes that no copy in flight touches and nobody needs; others may lose a copy to them. */
static uint64_t find_host_bytes(struct maker *maker, uint32_t evicted)
{
    uint64_t offset = 0, bytes = size_of(maker, evicted);
    bool is_polite = random_chance(&maker->random, 50);
    for (uint32_t t = 0; t < maker->builder->plan.model.tensor_count; t++) {
        const struct tensor *tensor = &maker->tensors[t];
        bool is_busy = tensor->is_evicting || tensor->is_restoring;
        bool is_needed =
            has_copy(tensor) && (is_polite || (!tensor->is_on_device && !tensor->is_recomputable));
        if (t != evicted && (is_busy || is_needed) && tensor->host_version != NEVER &&
            overlaps(offset, bytes, tensor->host_offset, size_of(maker, t))) {
            offset += ALIGNMENT;
            t = NEVER;
        }
    }
    return offset;
}

static void alloc_tensor(struct maker *maker, uint32_t t)
{
    maker->tensors[t].offset = find_device_bytes(maker, size_of(maker, t));
    maker->tensors[t].is_on_device = true;
    emit(maker, ATP_OP_ALLOC, t, maker->tensors[t].offset);
}

static void start_eviction(struct maker *maker, uint32_t t)
{
    struct tensor *tensor = &maker->tensors[t];
    uint64_t offset = find_host_bytes(maker, t);
    for (uint32_t other = 0; other < maker->builder->plan.model.tensor_count; other++) {
        if (overlaps(offset, size_of(maker, t), maker->tensors[other].host_offset,
                     size_of(maker, other))) {
            maker->tensors[other].host_version = NEVER;
        }
    }
    tensor->host_offset = offset;
    tensor->host_version = tensor->version;
    tensor->is_evicting = true;
    emit(maker, ATP_OP_EVICT, t, offset);
}

static void end_eviction(struct maker *maker, uint32_t t)
{
    maker->tensors[t].is_evicting = maker->tensors[t].is_on_device = false;
    emit(maker, ATP_OP_EVICTED, t, 0);
}

static void start_restore(struct maker *maker, uint32_t t)
{
    maker->tensors[t].offset = find_device_bytes(maker, size_of(maker, t));
    maker->tensors[t].is_on_device = maker->tensors[t].is_restoring = true;
    emit(maker, ATP_OP_RESTORE, t, maker->tensors[t].offset);
}

static void end_restore(struct maker *maker, uint32_t t)
{
    maker->tensors[t].is_restoring = false;
    emit(maker, ATP_OP_RESTORED, t, 0);
}

static void free_tensor(struct maker *maker, uint32_t t)
{
    maker->tensors[t].is_on_device = false;
    emit(maker, ATP_OP_FREE, t, 0);
}

/* Device bytes with no copy in flight, whatever they hold. */
static void make_room(struct maker *maker, uint32_t t)
{
    if (maker->tensors[t].is_evicting) {
        end_eviction(maker, t);
    }
    if (maker->tensors[t].is_restoring) {
        end_restore(maker, t);
    }
    if (!maker->tensors[t].is_on_device) {
        alloc_tensor(maker, t);
    }
}

static void do_step(struct maker *maker, enum atp_op op, uint32_t s)
{
    uint64_t bytes = maker->builder->steps[s].workspace_bytes;
    emit(maker, op, s, bytes == 0 ? 0 : find_device_bytes(maker, bytes));
}

/* Brings the present contents of t onto the device, by a chain of reruns if need be. */
static void ensure(struct maker *maker, uint32_t t) /* NOLINT(misc-no-recursion) */
{
    struct tensor *tensor = &maker->tensors[t];
    if (tensor->is_restoring) {
        end_restore(maker, t);
    }
    if (tensor->is_on_device) {
        return;
    }
    if (has_copy(tensor)) {
        start_restore(maker, t);
        end_restore(maker, t);
        return;
    }
    uint32_t s = tensor->first_writer;
    const struct atp_step *step = &maker->builder->steps[s];
    for (uint32_t i = 0; i < step->read_count; i++) {
        ensure(maker, step->reads[i]);
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        make_room(maker, step->writes[i]);
    }
    do_step(maker, ATP_OP_RERUN, s);
}

static void run_step(struct maker *maker, uint32_t s)
{
    const struct atp_step *step = &maker->builder->steps[s];
    for (uint32_t i = 0; i < step->read_count; i++) {
        ensure(maker, step->reads[i]);
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        uint32_t t = step->writes[i];
        if (maker->tensors[t].version != NEVER) {
            ensure(maker, t);
            if (maker->tensors[t].is_evicting) {
                end_eviction(maker, t);
                ensure(maker, t);
            }
        } else {
            make_room(maker, t);
        }
    }
    do_step(maker, ATP_OP_RUN, s);
    for (uint32_t i = 0; i < step->write_count; i++) {
        struct tensor *tensor = &maker->tensors[step->writes[i]];
        tensor->version = tensor->version == NEVER ? 1 : tensor->version + 1;
    }
}

/* One tensor between two steps, `s` being the one that has run. */
static void disturb(struct maker *maker, uint32_t t, uint32_t s)
{
    struct tensor *tensor = &maker->tensors[t];
    struct random *random = &maker->random;
    bool is_dead = tensor->last_user <= s && !tensor->feeds_reruns;
    if (tensor->is_evicting) {
        if (random_chance(random, 40)) {
            end_eviction(maker, t);
        }
    } else if (tensor->is_restoring) {
        if (random_chance(random, 30)) {
            end_restore(maker, t);
        }
    } else if (tensor->is_on_device) {
        if ((is_dead && random_chance(random, 70)) ||
            (has_copy(tensor) && random_chance(random, 30)) ||
            (tensor->is_recomputable && random_chance(random, 25))) {
            free_tensor(maker, t);
        } else if (random_chance(random, 20)) {
            start_eviction(maker, t);
        }
    } else if (has_copy(tensor) && random_chance(random, 10)) {
        start_restore(maker, t);
    }
}

static void end_program(struct maker *maker)
{
    for (uint32_t t = 0; t < maker->builder->plan.model.tensor_count; t++) {
        if (maker->tensors[t].is_evicting) {
            end_eviction(maker, t);
        }
        if (maker->tensors[t].is_restoring) {
            end_restore(maker, t);
        }
        if (maker->tensors[t].is_on_device) {
            free_tensor(maker, t);
        }
    }
}

struct plan_builder *random_plan(uint64_t seed, uint32_t layer_count)
{
    struct maker *maker = calloc(1, sizeof(*maker));
    if (maker == NULL || layer_count > 60) {
        abort();
    }
    struct plan_builder *builder = plan_builder_create("random");
    const struct atp_model *model = &builder->plan.model;
    maker->builder = builder;
    maker->random.state = seed;
    add_model(maker, layer_count);
    study_model(maker);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (maker->tensors[t].writer_count == 0) {
            alloc_tensor(maker, t);
            maker->tensors[t].version = 0;
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        run_step(maker, s);
        for (uint32_t t = 0; t < model->tensor_count; t++) {
            disturb(maker, t, s);
        }
    }
    end_program(maker);
    builder->plan.alignment_bytes = ALIGNMENT;
    builder->plan.resident_bytes = 8;
    plan_builder_seal(builder);
    free(maker);
    return builder;
}
