/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plan_equal.h"

#include <string.h>

static bool equal_ids(const uint32_t *a, uint32_t a_count, const uint32_t *b, uint32_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof(*a)) == 0);
}

static const char *model_difference(const struct atp_model *a, const struct atp_model *b)
{
    if (strcmp(a->name, b->name) != 0 || a->batch_size != b->batch_size) {
        return "model name or batch size";
    }
    if (a->tensor_count != b->tensor_count || a->step_count != b->step_count) {
        return "number of tensors or steps";
    }
    for (uint32_t t = 0; t < a->tensor_count; t++) {
        if (strcmp(a->tensors[t].name, b->tensors[t].name) != 0 ||
            a->tensors[t].bytes != b->tensors[t].bytes) {
            return "tensors";
        }
    }
    for (uint32_t s = 0; s < a->step_count; s++) {
        const struct atp_step *x = &a->steps[s], *y = &b->steps[s];
        if (strcmp(x->name, y->name) != 0 || x->phase != y->phase ||
            x->rerun_never != y->rerun_never || x->workspace_bytes != y->workspace_bytes ||
            !equal_ids(x->reads, x->read_count, y->reads, y->read_count) ||
            !equal_ids(x->writes, x->write_count, y->writes, y->write_count)) {
            return "steps";
        }
    }
    return NULL;
}

static const char *header_difference(const struct atp_plan *a, const struct atp_plan *b)
{
    if (memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)) != 0) {
        return "fingerprint";
    }
    if (a->alignment_bytes != b->alignment_bytes || a->budget_bytes != b->budget_bytes ||
        a->resident_bytes != b->resident_bytes || a->arena_bytes != b->arena_bytes ||
        a->host_arena_bytes != b->host_arena_bytes) {
        return "sizes in the header";
    }
    if (a->time_limited != b->time_limited) {
        return "time_limited";
    }
    const struct atp_predicted *p = &a->predicted, *q = &b->predicted;
    if (p->iteration_ns != q->iteration_ns || p->bound_ns != q->bound_ns ||
        p->compute_ns != q->compute_ns || p->recompute_ns != q->recompute_ns ||
        p->stall_ns != q->stall_ns || p->peak_bytes != q->peak_bytes ||
        p->evicted_bytes != q->evicted_bytes || p->restored_bytes != q->restored_bytes ||
        p->recomputed_bytes != q->recomputed_bytes) {
        return "predicted";
    }
    return NULL;
}

const char *plan_difference(const struct atp_plan *a, const struct atp_plan *b)
{
    const char *difference = header_difference(a, b);
    if (difference == NULL) {
        difference = model_difference(&a->model, &b->model);
    }
    if (difference != NULL) {
        return difference;
    }
    for (uint32_t t = 0; t < a->model.tensor_count; t++) {
        if (a->decisions[t] != b->decisions[t]) {
            return "decisions";
        }
    }
    const char *x = a->certificate, *y = b->certificate;
    if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0)) {
        return "certificate";
    }
    if (a->instruction_count != b->instruction_count) {
        return "number of instructions";
    }
    for (uint32_t i = 0; i < a->instruction_count; i++) {
        if (a->program[i].op != b->program[i].op || a->program[i].id != b->program[i].id ||
            a->program[i].offset != b->program[i].offset) {
            return "program";
        }
    }
    return NULL;
}
