/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "byte_machine.h"

#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT64_MAX

/* A tensor's copy that has been issued and has not run. */
struct pending {
    bool is_due;
    uint64_t device, host;
};

struct machine {
    const struct atp_plan *plan;
    struct byte_timing timing;
    uint8_t *device, *host;
    uint64_t device_bytes, host_bytes;
    uint64_t *device_at, *host_at;        /* per tensor; NOWHERE */
    struct pending *evictions, *restores; /* per tensor */
    struct random poison;
    uint64_t *digests; /* per step: of what its run read */
    uint32_t run_count;
};

static void *must_calloc(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        (void)fputs("byte_machine: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    struct random random = {hash ^
                            (value + UINT64_C(0x632be59bd9b4e019)) * UINT64_C(0x100000001b3)};
    return random_next(&random);
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        hash = mix(hash, bytes[i]);
    }
    return hash;
}

static bool is_written_before(const struct atp_model *model, uint32_t tensor, uint32_t step)
{
    for (uint32_t s = 0; s < step; s++) {
        for (uint32_t i = 0; i < model->steps[s].write_count; i++) {
            if (model->steps[s].writes[i] == tensor) {
                return true;
            }
        }
    }
    return false;
}

static bool is_input(const struct atp_model *model, uint32_t tensor)
{
    return !is_written_before(model, tensor, model->step_count);
}

static void fill_input(uint8_t *bytes, uint64_t count, uint32_t tensor)
{
    for (uint64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)mix(tensor + UINT64_C(1), i);
    }
}

static void poison(struct machine *machine, uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)random_next(&machine->poison);
    }
}

/* The work of a step on tensors that lie at memory + at[tensor]. Returns the digest of its reads. A
 * tensor written before by another step keeps part of its old bytes in the new ones. */
static uint64_t work(const struct atp_model *model, uint32_t step, uint8_t *memory,
                     const uint64_t *at)
{
    const struct atp_step *s = &model->steps[step];
    uint64_t digest = mix(UINT64_C(77), step);
    for (uint32_t i = 0; i < s->read_count; i++) {
        uint32_t t = s->reads[i];
        digest = hash_bytes(digest, memory + at[t], model->tensors[t].bytes);
    }
    for (uint32_t i = 0; i < s->write_count; i++) {
        uint32_t t = s->writes[i];
        bool updates = is_written_before(model, t, step);
        for (uint64_t j = 0; j < model->tensors[t].bytes; j++) {
            uint8_t *byte = memory + at[t] + j;
            *byte = (uint8_t)mix(digest + i, j ^ (updates ? (uint64_t)*byte << 32 : 0));
        }
    }
    return digest;
}

static void run_plain(const struct atp_model *model, uint64_t *digests)
{
    uint64_t *at = must_calloc(model->tensor_count, sizeof(*at)), bytes = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        at[t] = bytes;
        bytes += model->tensors[t].bytes;
    }
    uint8_t *memory = must_calloc(bytes, 1);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (is_input(model, t)) {
            fill_input(memory + at[t], model->tensors[t].bytes, t);
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        digests[s] = work(model, s, memory, at);
    }
    free(memory);
    free(at);
}

static bool fits(uint64_t offset, uint64_t bytes, uint64_t arena_bytes)
{
    return offset <= arena_bytes && bytes <= arena_bytes - offset;
}

static void finish_eviction(struct machine *machine, uint32_t tensor)
{
    struct pending *copy = &machine->evictions[tensor];
    if (copy->is_due) {
        memcpy(machine->host + copy->host, machine->device + copy->device,
               machine->plan->model.tensors[tensor].bytes);
        copy->is_due = false;
    }
}

static void finish_restore(struct machine *machine, uint32_t tensor)
{
    struct pending *copy = &machine->restores[tensor];
    if (copy->is_due) {
        memcpy(machine->device + copy->device, machine->host + copy->host,
               machine->plan->model.tensors[tensor].bytes);
        copy->is_due = false;
    }
}

static struct pending start_copy(const struct machine *machine, uint32_t tensor)
{
    return (struct pending){true, machine->device_at[tensor], machine->host_at[tensor]};
}

static bool run_step(struct machine *machine, const struct atp_instruction *in)
{
    const struct atp_model *model = &machine->plan->model;
    const struct atp_step *step = in->id < model->step_count ? &model->steps[in->id] : NULL;
    if (step == NULL || (in->op == ATP_OP_RUN && in->id != machine->run_count)) {
        return false;
    }
    for (uint32_t i = 0; i < step->read_count + step->write_count; i++) {
        uint32_t t = i < step->read_count ? step->reads[i] : step->writes[i - step->read_count];
        if (machine->device_at[t] == NOWHERE) {
            return false;
        }
    }
    if (!fits(in->offset, step->workspace_bytes, machine->device_bytes)) {
        return false;
    }
    poison(machine, machine->device + in->offset, step->workspace_bytes);
    uint64_t digest = work(model, in->id, machine->device, machine->device_at);
    poison(machine, machine->device + in->offset, step->workspace_bytes);
    if (in->op == ATP_OP_RUN) {
        machine->digests[machine->run_count++] = digest;
    }
    return true;
}

static bool give_bytes(struct machine *machine, const struct atp_instruction *in)
{
    uint64_t bytes = machine->plan->model.tensors[in->id].bytes;
    if (!fits(in->offset, bytes, machine->device_bytes)) {
        return false;
    }
    machine->device_at[in->id] = in->offset;
    poison(machine, machine->device + in->offset, bytes);
    return true;
}

static bool take_bytes(struct machine *machine, uint32_t tensor)
{
    if (machine->device_at[tensor] == NOWHERE) {
        return false;
    }
    poison(machine, machine->device + machine->device_at[tensor],
           machine->plan->model.tensors[tensor].bytes);
    machine->device_at[tensor] = NOWHERE;
    return true;
}

static bool evict(struct machine *machine, const struct atp_instruction *in)
{
    if (machine->device_at[in->id] == NOWHERE ||
        !fits(in->offset, machine->plan->model.tensors[in->id].bytes, machine->host_bytes)) {
        return false;
    }
    machine->host_at[in->id] = in->offset;
    machine->evictions[in->id] = start_copy(machine, in->id);
    if (!machine->timing.late_evictions) {
        finish_eviction(machine, in->id);
    }
    return true;
}

static bool restore(struct machine *machine, const struct atp_instruction *in)
{
    if (machine->host_at[in->id] == NOWHERE || !give_bytes(machine, in)) {
        return false;
    }
    machine->restores[in->id] = start_copy(machine, in->id);
    if (!machine->timing.late_restores) {
        finish_restore(machine, in->id);
    }
    return true;
}

static bool execute(struct machine *machine, const struct atp_instruction *in, bool is_first)
{
    if (in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN) {
        return run_step(machine, in);
    }
    if (in->id >= machine->plan->model.tensor_count) {
        return false;
    }
    switch (in->op) {
    case ATP_OP_ALLOC:
        if (!give_bytes(machine, in)) {
            return false;
        }
        if (is_first && is_input(&machine->plan->model, in->id)) {
            fill_input(machine->device + in->offset, machine->plan->model.tensors[in->id].bytes,
                       in->id);
        }
        return true;
    case ATP_OP_EVICT:
        return evict(machine, in);
    case ATP_OP_EVICTED:
        finish_eviction(machine, in->id);
        return take_bytes(machine, in->id);
    case ATP_OP_RESTORE:
        return restore(machine, in);
    case ATP_OP_RESTORED:
        finish_restore(machine, in->id);
        return true;
    case ATP_OP_FREE:
        return take_bytes(machine, in->id);
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        break;
    }
    return false;
}

/* The inputs are filled by the allocs that begin the program. */
static bool execute_all(struct machine *machine)
{
    bool is_first = true;
    for (uint32_t i = 0; i < machine->plan->instruction_count; i++) {
        const struct atp_instruction *in = &machine->plan->program[i];
        is_first = is_first && in->op == ATP_OP_ALLOC &&
                   in->id < machine->plan->model.tensor_count &&
                   is_input(&machine->plan->model, in->id);
        if (!execute(machine, in, is_first)) {
            return false;
        }
    }
    return machine->run_count == machine->plan->model.step_count;
}

bool byte_machine_agrees(const struct atp_plan *plan, struct byte_timing timing)
{
    const struct atp_model *model = &plan->model;
    struct machine machine = {
        .plan = plan,
        .timing = timing,
        .device = must_calloc(plan->arena_bytes, 1),
        .host = must_calloc(plan->host_arena_bytes, 1),
        .device_bytes = plan->arena_bytes,
        .host_bytes = plan->host_arena_bytes,
        .device_at = must_calloc(model->tensor_count, sizeof(uint64_t)),
        .host_at = must_calloc(model->tensor_count, sizeof(uint64_t)),
        .evictions = must_calloc(model->tensor_count, sizeof(struct pending)),
        .restores = must_calloc(model->tensor_count, sizeof(struct pending)),
        .poison = {UINT64_C(0xdead)},
        .digests = must_calloc(model->step_count, sizeof(uint64_t)),
    };
    uint64_t *plain = must_calloc(model->step_count, sizeof(*plain));
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        machine.device_at[t] = machine.host_at[t] = NOWHERE;
    }
    poison(&machine, machine.device, machine.device_bytes);
    poison(&machine, machine.host, machine.host_bytes);
    run_plain(model, plain);
    bool agrees = execute_all(&machine) &&
                  memcmp(plain, machine.digests, model->step_count * sizeof(*plain)) == 0;
    free(plain);
    free(machine.digests);
    free(machine.restores);
    free(machine.evictions);
    free(machine.host_at);
    free(machine.device_at);
    free(machine.host);
    free(machine.device);
    return agrees;
}

bool byte_machine_always_agrees(const struct atp_plan *plan)
{
    for (int i = 0; i < 4; i++) {
        if (!byte_machine_agrees(plan, (struct byte_timing){(i & 1) != 0, (i & 2) != 0})) {
            return false;
        }
    }
    return true;
}
