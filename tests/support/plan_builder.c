/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plan_builder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL) {
        (void)fputs("plan_builder: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(must(malloc(size)), text, size);
}

static uint32_t *copy_ids(struct ids ids)
{
    if (ids.count == 0) {
        return NULL;
    }
    return memcpy(must(malloc(ids.count * sizeof(uint32_t))), ids.items,
                  ids.count * sizeof(uint32_t));
}

/* Room for one more element. */
static void *grow(void *items, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return items;
    }
    *room = *room == 0 ? 16 : *room * 2;
    return must(realloc(items, *room * size));
}

struct plan_builder *plan_builder_create(const char *name)
{
    struct plan_builder *builder = must(calloc(1, sizeof(*builder)));
    builder->plan.model.name = copy_text(name);
    builder->plan.model.batch_size = 1;
    builder->plan.alignment_bytes = 1;
    return builder;
}

void plan_builder_destroy(struct plan_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    for (uint32_t t = 0; t < builder->plan.model.tensor_count; t++) {
        free((void *)builder->tensors[t].name);
    }
    for (uint32_t s = 0; s < builder->plan.model.step_count; s++) {
        free((void *)builder->steps[s].name);
        free((void *)builder->steps[s].reads);
        free((void *)builder->steps[s].writes);
    }
    free((void *)builder->plan.model.name);
    free(builder->tensors);
    free(builder->steps);
    free(builder->program);
    free(builder->decisions);
    free(builder);
}

uint32_t plan_builder_tensor(struct plan_builder *builder, const char *name, uint64_t bytes)
{
    struct atp_model *model = &builder->plan.model;
    builder->tensors = grow(builder->tensors, model->tensor_count, &builder->tensor_room,
                            sizeof(*builder->tensors));
    builder->tensors[model->tensor_count] = (struct atp_tensor){copy_text(name), bytes};
    model->tensors = builder->tensors;
    return model->tensor_count++;
}

uint32_t plan_builder_step(struct plan_builder *builder, enum atp_phase phase, const char *name,
                           struct ids reads, struct ids writes)
{
    struct atp_model *model = &builder->plan.model;
    builder->steps =
        grow(builder->steps, model->step_count, &builder->step_room, sizeof(*builder->steps));
    builder->steps[model->step_count] = (struct atp_step){
        .name = copy_text(name),
        .phase = phase,
        .read_count = reads.count,
        .write_count = writes.count,
        .reads = copy_ids(reads),
        .writes = copy_ids(writes),
    };
    model->steps = builder->steps;
    return model->step_count++;
}

void plan_builder_insert(struct plan_builder *builder, uint32_t index, enum atp_op op, uint32_t id,
                         uint64_t offset)
{
    struct atp_plan *plan = &builder->plan;
    builder->program = grow(builder->program, plan->instruction_count, &builder->program_room,
                            sizeof(*builder->program));
    memmove(builder->program + index + 1, builder->program + index,
            (plan->instruction_count - index) * sizeof(*builder->program));
    builder->program[index] = (struct atp_instruction){op, id, offset};
    plan->program = builder->program;
    plan->instruction_count++;
}

uint32_t plan_builder_add(struct plan_builder *builder, enum atp_op op, uint32_t id,
                          uint64_t offset)
{
    plan_builder_insert(builder, builder->plan.instruction_count, op, id, offset);
    return builder->plan.instruction_count - 1;
}

void plan_builder_remove(struct plan_builder *builder, uint32_t index)
{
    builder->plan.instruction_count--;
    memmove(builder->program + index, builder->program + index + 1,
            (builder->plan.instruction_count - index) * sizeof(*builder->program));
}

void plan_builder_move(struct plan_builder *builder, uint32_t from, uint32_t to)
{
    struct atp_instruction in = builder->program[from];
    plan_builder_insert(builder, to, in.op, in.id, in.offset);
    plan_builder_remove(builder, from < to ? from : from + 1);
}

uint32_t plan_builder_find(const struct plan_builder *builder, enum atp_op op, uint32_t id,
                           uint32_t nth)
{
    for (uint32_t i = 0; i < builder->plan.instruction_count; i++) {
        if (builder->program[i].op == op && builder->program[i].id == id && nth-- == 0) {
            return i;
        }
    }
    (void)fprintf(stderr, "plan_builder: no such instruction: %s %u\n", atp_op_name(op), id);
    abort();
}

/* What sealing tracks per tensor. */
struct trace {
    bool is_live, is_defined, was_evicted, was_remade;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void seal_work(struct plan_builder *builder, const struct atp_instruction *in,
                      struct trace *traces, uint64_t live)
{
    struct atp_plan *plan = &builder->plan;
    const struct atp_step *step = &builder->steps[in->id];
    for (uint32_t i = 0; i < step->write_count; i++) {
        struct trace *trace = &traces[step->writes[i]];
        trace->was_remade |= in->op == ATP_OP_RERUN && !trace->is_defined;
        trace->is_defined = true;
    }
    plan->predicted.peak_bytes = larger(plan->predicted.peak_bytes, live + step->workspace_bytes);
    if (step->workspace_bytes > 0) {
        plan->arena_bytes = larger(plan->arena_bytes, in->offset + step->workspace_bytes);
    }
}

static void seal_tensor(struct plan_builder *builder, const struct atp_instruction *in,
                        struct trace *trace, uint64_t *live)
{
    struct atp_plan *plan = &builder->plan;
    uint64_t bytes = builder->tensors[in->id].bytes;
    bool gives = in->op == ATP_OP_ALLOC || in->op == ATP_OP_RESTORE;
    bool takes = in->op == ATP_OP_EVICTED || in->op == ATP_OP_FREE;
    if (gives && !trace->is_live) {
        trace->is_live = true;
        trace->is_defined = in->op == ATP_OP_RESTORE;
        *live += bytes;
        plan->arena_bytes = larger(plan->arena_bytes, in->offset + bytes);
    }
    if (takes && trace->is_live) {
        trace->is_live = false;
        *live -= bytes;
    }
    if (in->op == ATP_OP_EVICT) {
        trace->was_evicted = true;
        plan->host_arena_bytes = larger(plan->host_arena_bytes, in->offset + bytes);
    }
    plan->predicted.peak_bytes = larger(plan->predicted.peak_bytes, *live);
}

void plan_builder_seal(struct plan_builder *builder)
{
    struct atp_plan *plan = &builder->plan;
    uint32_t tensor_count = plan->model.tensor_count;
    struct trace *traces = must(calloc((size_t)tensor_count + 1, sizeof(*traces)));
    uint64_t live = 0;
    plan->arena_bytes = plan->host_arena_bytes = plan->predicted.peak_bytes = 0;
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct atp_instruction *in = &plan->program[i];
        if (in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN) {
            seal_work(builder, in, traces, live);
        } else {
            seal_tensor(builder, in, &traces[in->id], &live);
        }
    }
    free(builder->decisions);
    builder->decisions = must(calloc((size_t)tensor_count + 1, sizeof(*builder->decisions)));
    for (uint32_t t = 0; t < tensor_count; t++) {
        builder->decisions[t] = traces[t].was_evicted  ? ATP_DECISION_SWAP
                                : traces[t].was_remade ? ATP_DECISION_RECOMPUTE
                                                       : ATP_DECISION_KEEP;
    }
    free(traces);
    plan->decisions = builder->decisions;
    plan->budget_bytes = plan->resident_bytes + plan->arena_bytes;
    atp_model_fingerprint(&plan->model, plan->fingerprint);
}

static void add_rich_model(struct plan_builder *b)
{
    static const char *const names[] = {"x", "a", "acc", "b", "m", "c", "d", "g", "w"};
    for (uint32_t t = RICH_X; t <= RICH_W; t++) {
        plan_builder_tensor(b, names[t], t == RICH_M ? 32 : 64);
    }
    plan_builder_step(b, ATP_PHASE_FORWARD, "l0", IDS(RICH_X), IDS(RICH_A, RICH_ACC));
    plan_builder_step(b, ATP_PHASE_FORWARD, "l1", IDS(RICH_A), IDS(RICH_B, RICH_M));
    plan_builder_step(b, ATP_PHASE_FORWARD, "l2", IDS(RICH_B, RICH_ACC), IDS(RICH_ACC, RICH_C));
    plan_builder_step(b, ATP_PHASE_FORWARD, "l3", IDS(RICH_C), IDS(RICH_D));
    plan_builder_step(b, ATP_PHASE_BACKWARD, "l3", IDS(RICH_D, RICH_C), IDS(RICH_G));
    plan_builder_step(b, ATP_PHASE_BACKWARD, "l2", IDS(RICH_G, RICH_B, RICH_ACC), IDS(RICH_G));
    plan_builder_step(b, ATP_PHASE_BACKWARD, "l1", IDS(RICH_G, RICH_A, RICH_M), IDS(RICH_G));
    plan_builder_step(b, ATP_PHASE_BACKWARD, "l0", IDS(RICH_G, RICH_X, RICH_A), IDS(RICH_W));
    plan_builder_step(b, ATP_PHASE_UPDATE, "adam", IDS(RICH_W), NO_IDS);
    b->steps[RICH_F1].workspace_bytes = 32;
    b->steps[RICH_B1].workspace_bytes = 32;
    b->steps[RICH_F3].rerun_never = true;
}

struct plan_builder *plan_builder_rich(void)
{
    static const struct atp_instruction program[] = {
        {ATP_OP_ALLOC, RICH_X, 0},       {ATP_OP_ALLOC, RICH_A, 64},
        {ATP_OP_ALLOC, RICH_ACC, 128},   {ATP_OP_RUN, RICH_F0, 0},
        {ATP_OP_EVICT, RICH_X, 0},       {ATP_OP_ALLOC, RICH_B, 192},
        {ATP_OP_ALLOC, RICH_M, 256},     {ATP_OP_RUN, RICH_F1, 288},
        {ATP_OP_EVICTED, RICH_X, 0},     {ATP_OP_EVICT, RICH_A, 64},
        {ATP_OP_ALLOC, RICH_C, 0},       {ATP_OP_RUN, RICH_F2, 0},
        {ATP_OP_FREE, RICH_B, 0},        {ATP_OP_EVICTED, RICH_A, 0},
        {ATP_OP_EVICT, RICH_ACC, 128},   {ATP_OP_ALLOC, RICH_D, 64},
        {ATP_OP_RUN, RICH_F3, 0},        {ATP_OP_EVICTED, RICH_ACC, 0},
        {ATP_OP_ALLOC, RICH_G, 192},     {ATP_OP_RUN, RICH_B3, 0},
        {ATP_OP_FREE, RICH_D, 0},        {ATP_OP_RESTORE, RICH_A, 64},
        {ATP_OP_FREE, RICH_C, 0},        {ATP_OP_ALLOC, RICH_B, 0},
        {ATP_OP_RESTORE, RICH_ACC, 128}, {ATP_OP_RESTORED, RICH_A, 0},
        {ATP_OP_RERUN, RICH_F1, 288},    {ATP_OP_RESTORED, RICH_ACC, 0},
        {ATP_OP_EVICT, RICH_M, 128},     {ATP_OP_RUN, RICH_B2, 0},
        {ATP_OP_EVICTED, RICH_M, 0},     {ATP_OP_FREE, RICH_B, 0},
        {ATP_OP_FREE, RICH_ACC, 0},      {ATP_OP_RESTORE, RICH_M, 256},
        {ATP_OP_RESTORE, RICH_X, 0},     {ATP_OP_RESTORED, RICH_M, 0},
        {ATP_OP_RUN, RICH_B1, 288},      {ATP_OP_FREE, RICH_A, 0},
        {ATP_OP_FREE, RICH_M, 0},        {ATP_OP_ALLOC, RICH_W, 64},
        {ATP_OP_RESTORE, RICH_A, 128},   {ATP_OP_RESTORED, RICH_A, 0},
        {ATP_OP_RESTORED, RICH_X, 0},    {ATP_OP_RUN, RICH_B0, 0},
        {ATP_OP_FREE, RICH_A, 0},        {ATP_OP_FREE, RICH_X, 0},
        {ATP_OP_FREE, RICH_G, 0},        {ATP_OP_RUN, RICH_UP, 0},
        {ATP_OP_FREE, RICH_W, 0},
    };
    struct plan_builder *builder = plan_builder_create("rich");
    add_rich_model(builder);
    for (size_t i = 0; i < sizeof(program) / sizeof(program[0]); i++) {
        plan_builder_add(builder, program[i].op, program[i].id, program[i].offset);
    }
    builder->plan.alignment_bytes = 16;
    builder->plan.resident_bytes = 1000;
    plan_builder_seal(builder);
    return builder;
}
