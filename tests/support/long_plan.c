/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "long_plan.h"

#include <inttypes.h>
#include <stdio.h>

#define BYTES    UINT64_C(256)
#define RING     4 /* places of activations that come and go */
#define GRADIENT 2 /* places of gradients */

struct layout {
    struct plan_builder *b;
    uint32_t layer_count, first_gradient, loss;
    bool swaps;
};

static uint32_t add_tensor(struct plan_builder *b, char kind, uint32_t layer)
{
    char name[24];
    (void)snprintf(name, sizeof(name), "%c%" PRIu32, kind, layer);
    return plan_builder_tensor(b, name, BYTES);
}

/* Activation and tensor number are the same. The last layers keep theirs: they turn at once. */
static bool is_swapped(const struct layout *l, uint32_t layer)
{
    return l->swaps && layer % 2 == 1 && layer + 3 <= l->layer_count;
}

static uint64_t place(const struct layout *l, uint32_t layer)
{
    uint64_t ring = BYTES * GRADIENT;
    return is_swapped(l, layer) ? ring + (uint64_t)(layer / 2 % RING) * BYTES
                                : ring + (uint64_t)(RING + layer) * BYTES;
}

static void add(const struct layout *l, enum atp_op op, uint32_t id, uint64_t offset)
{
    (void)plan_builder_add(l->b, op, id, offset);
}

static void alloc_gradient(const struct layout *l, uint32_t layer)
{
    add(l, ATP_OP_ALLOC, l->first_gradient + layer, (uint64_t)(layer % GRADIENT) * BYTES);
}

/* Steps: forward 0 to n - 1, the loss, backward n - 1 to 0. */
static void make_model(struct layout *l)
{
    char name[24];
    for (uint32_t i = 0; i <= l->layer_count; i++) {
        (void)add_tensor(l->b, 'a', i);
    }
    l->first_gradient = l->layer_count + 1;
    for (uint32_t i = 0; i <= l->layer_count; i++) {
        (void)add_tensor(l->b, 'g', i);
    }
    for (uint32_t i = 0; i < l->layer_count; i++) {
        (void)snprintf(name, sizeof(name), "layer%" PRIu32, i);
        (void)plan_builder_step(l->b, ATP_PHASE_FORWARD, name, IDS(i), IDS(i + 1));
    }
    l->loss = plan_builder_step(l->b, ATP_PHASE_BACKWARD, "loss", IDS(l->layer_count),
                                IDS(l->first_gradient + l->layer_count));
    for (uint32_t i = l->layer_count; i-- > 0;) {
        (void)snprintf(name, sizeof(name), "layer%" PRIu32, i);
        (void)plan_builder_step(l->b, ATP_PHASE_BACKWARD, name, IDS(i, l->first_gradient + i + 1),
                                IDS(l->first_gradient + i));
    }
}

static void add_forward(const struct layout *l, uint32_t i)
{
    add(l, ATP_OP_ALLOC, i + 1, place(l, i + 1));
    add(l, ATP_OP_RUN, i, 0);
    if (i > 0 && is_swapped(l, i - 1)) {
        add(l, ATP_OP_EVICTED, i - 1, 0);
    }
    if (is_swapped(l, i)) {
        add(l, ATP_OP_EVICT, i, (uint64_t)(i / 2) * BYTES);
    }
}

static void add_backward(const struct layout *l, uint32_t i)
{
    if (i > 0 && is_swapped(l, i - 1)) {
        add(l, ATP_OP_RESTORE, i - 1, place(l, i - 1));
    }
    if (is_swapped(l, i)) {
        add(l, ATP_OP_RESTORED, i, 0);
    }
    alloc_gradient(l, i);
    add(l, ATP_OP_RUN, l->loss + l->layer_count - i, 0);
    add(l, ATP_OP_FREE, i, 0);
    add(l, ATP_OP_FREE, l->first_gradient + i + 1, 0);
}

struct plan_builder *long_plan(uint32_t layer_count, bool swaps)
{
    struct layout l = {
        .b = plan_builder_create("long"), .layer_count = layer_count, .swaps = swaps};
    make_model(&l);
    add(&l, ATP_OP_ALLOC, 0, place(&l, 0));
    for (uint32_t i = 0; i < layer_count; i++) {
        add_forward(&l, i);
    }
    alloc_gradient(&l, layer_count);
    add(&l, ATP_OP_RUN, l.loss, 0);
    add(&l, ATP_OP_FREE, layer_count, 0);
    for (uint32_t i = layer_count; i-- > 0;) {
        add_backward(&l, i);
    }
    add(&l, ATP_OP_FREE, l.first_gradient, 0);
    plan_builder_seal(l.b);
    return l.b;
}
