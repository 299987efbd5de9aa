/* SPDX-License-Identifier: Apache-2.0
 *
 * One walk over the steps in program order, with the arena's free bytes as a list of holes sorted
 * by offset: first fit at a tensor's first use, merge with its neighbours after its last. All free
 * bytes behind the last live tensor are not in the list; `end` marks where they begin.
 *
 * Cost: O(steps + uses * holes); holes are few, as most tensors live from the forward pass to the
 * backward pass.
 */
#include "plain.h"

#include <string.h>

#include "fail.h"

struct builder {
    struct plain *plain;
    const struct atp_model *model;
    uint32_t instruction_count;
    uint64_t end_bytes;  /* everything from here on is free */
    uint64_t top_bytes;  /* largest end_bytes so far */
    uint64_t live_bytes; /* not rounded: what the program needs, not what alignment wastes */
    uint64_t peak_bytes;
};

void plain_lay_out(struct plain *plain, const struct atp_model *model, struct carve *carve)
{
    uint64_t tensors = model->tensor_count;
    plain->program = CARVE(carve, struct atp_instruction, 2 * tensors + model->step_count);
    plain->decisions = CARVE(carve, enum atp_decision, tensors);
    plain->offsets = CARVE(carve, uint64_t, tensors);
    plain->first_step = CARVE(carve, uint32_t, tensors);
    plain->end_step = CARVE(carve, uint32_t, tensors);
    /* Holes lie between live blocks, and a workspace is one. */
    plain->holes = CARVE(carve, struct plain_hole, tensors + 2);
}

static void use(struct plain *plain, uint32_t tensor, uint32_t step, bool writes)
{
    /* What is read before it was written is an input: it lives from the beginning. */
    if (plain->end_step[tensor] == 0) {
        plain->first_step[tensor] = writes ? step : ATP_NONE;
    }
    plain->end_step[tensor] = step + 1;
}

/* first_step is ATP_NONE for inputs. An input that nothing uses lives until after the first step:
 * the program may still fill it. */
static void find_lives(struct plain *plain, const struct atp_model *model)
{
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        plain->first_step[t] = ATP_NONE;
        plain->end_step[t] = 0;
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        for (uint32_t i = 0; i < step->read_count; i++) {
            use(plain, step->reads[i], s, false);
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            use(plain, step->writes[i], s, true);
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (plain->end_step[t] == 0) {
            plain->end_step[t] = 1;
        }
    }
}

static void remove_hole(struct plain *plain, uint32_t index)
{
    plain->hole_count--;
    memmove(&plain->holes[index], &plain->holes[index + 1],
            (plain->hole_count - index) * sizeof(*plain->holes));
}

static enum atp_status take(struct builder *b, uint64_t bytes, uint64_t *out_offset,
                            struct atp_error *err)
{
    struct plain *plain = b->plain;
    uint64_t rounded;
    *out_offset = 0;
    if (bytes == 0) {
        return ATP_OK;
    }
    if (!checked_align(bytes, PLAIN_ALIGNMENT, &rounded) ||
        !checked_add(b->live_bytes, bytes, &b->live_bytes)) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "the plain iteration needs 2^64 bytes or more");
    }
    b->peak_bytes = b->live_bytes > b->peak_bytes ? b->live_bytes : b->peak_bytes;
    for (uint32_t h = 0; h < plain->hole_count; h++) {
        struct plain_hole *hole = &plain->holes[h];
        if (hole->end - hole->offset >= rounded) {
            *out_offset = hole->offset;
            hole->offset += rounded;
            if (hole->offset == hole->end) {
                remove_hole(plain, h);
            }
            return ATP_OK;
        }
    }
    *out_offset = b->end_bytes;
    if (!checked_add(b->end_bytes, rounded, &b->end_bytes)) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "the plain iteration needs 2^64 bytes or more");
    }
    b->top_bytes = b->end_bytes > b->top_bytes ? b->end_bytes : b->top_bytes;
    return ATP_OK;
}

static void give(struct builder *b, uint64_t bytes, uint64_t offset)
{
    struct plain *plain = b->plain;
    if (bytes == 0) {
        return;
    }
    struct plain_hole hole = {offset, offset + (bytes + PLAIN_ALIGNMENT - 1) / PLAIN_ALIGNMENT *
                                                   PLAIN_ALIGNMENT};
    b->live_bytes -= bytes;
    uint32_t h = 0;
    while (h < plain->hole_count && plain->holes[h].offset < hole.offset) {
        h++;
    }
    if (h < plain->hole_count && plain->holes[h].offset == hole.end) {
        hole.end = plain->holes[h].end;
        remove_hole(plain, h);
    }
    if (h > 0 && plain->holes[h - 1].end == hole.offset) {
        h--;
        hole.offset = plain->holes[h].offset;
        remove_hole(plain, h);
    }
    if (hole.end == b->end_bytes) {
        b->end_bytes = hole.offset;
        return;
    }
    memmove(&plain->holes[h + 1], &plain->holes[h], (plain->hole_count - h) * sizeof(hole));
    plain->holes[h] = hole;
    plain->hole_count++;
}

static void emit(struct builder *b, enum atp_op op, uint32_t id, uint64_t offset)
{
    b->plain->program[b->instruction_count++] =
        (struct atp_instruction){.op = op, .id = id, .offset = offset};
}

static enum atp_status emit_alloc(struct builder *b, uint32_t tensor, struct atp_error *err)
{
    uint64_t *offset = &b->plain->offsets[tensor];
    ATP_TRY(take(b, b->model->tensors[tensor].bytes, offset, err));
    emit(b, ATP_OP_ALLOC, tensor, *offset);
    return ATP_OK;
}

/* end_step becomes 0 so that a tensor which a step both reads and writes is freed once. */
static void emit_free(struct builder *b, uint32_t tensor, uint32_t step)
{
    if (b->plain->end_step[tensor] == step + 1) {
        b->plain->end_step[tensor] = 0;
        give(b, b->model->tensors[tensor].bytes, b->plain->offsets[tensor]);
        emit(b, ATP_OP_FREE, tensor, 0);
    }
}

static enum atp_status emit_step(struct builder *b, uint32_t s, struct atp_error *err)
{
    const struct atp_step *step = &b->model->steps[s];
    uint64_t workspace;
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (b->plain->first_step[step->writes[i]] == s) {
            ATP_TRY(emit_alloc(b, step->writes[i], err));
        }
    }
    ATP_TRY(take(b, step->workspace_bytes, &workspace, err));
    emit(b, ATP_OP_RUN, s, workspace);
    give(b, step->workspace_bytes, workspace);
    for (uint32_t i = 0; i < step->read_count; i++) {
        emit_free(b, step->reads[i], s);
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        emit_free(b, step->writes[i], s);
    }
    return ATP_OK;
}

enum atp_status plain_build(struct plain *plain, const struct atp_model *model,
                            struct atp_error *err)
{
    struct builder b = {.plain = plain, .model = model};
    plain->hole_count = 0;
    find_lives(plain, model);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        plain->decisions[t] = ATP_DECISION_KEEP;
        if (plain->first_step[t] == ATP_NONE) {
            ATP_TRY(emit_alloc(&b, t, err));
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        ATP_TRY(emit_step(&b, s, err));
        for (uint32_t t = 0; s == 0 && t < model->tensor_count; t++) {
            emit_free(&b, t, s); /* inputs that no step uses */
        }
    }
    plain->plan = (struct atp_plan){.model = *model,
                                    .alignment_bytes = PLAIN_ALIGNMENT,
                                    .budget_bytes = b.top_bytes,
                                    .arena_bytes = b.top_bytes,
                                    .predicted = {.peak_bytes = b.peak_bytes},
                                    .decisions = plain->decisions,
                                    .instruction_count = b.instruction_count,
                                    .program = plain->program};
    atp_model_fingerprint(model, plain->plan.fingerprint);
    return ATP_OK;
}
