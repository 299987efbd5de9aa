/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 64U

static void need(bool holds)
{
    if (!holds) {
        (void)fputs("profile_builder: out of room\n", stderr);
        abort();
    }
}

static const char *name_of(struct profile_builder *builder, char letter, uint32_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%c%u", letter, number);
    return region_copy_text(builder->region, text);
}

static const uint32_t *copy_ids(struct profile_builder *builder, const struct ids *ids)
{
    uint32_t *copy = REGION_NEW(builder->region, uint32_t, ids->count);
    return memcpy(copy, ids->items, ids->count * sizeof(*copy));
}

struct profile_builder *profile_builder_create(struct region *region)
{
    struct profile_builder *b = REGION_NEW(region, struct profile_builder, 1);
    b->region = region;
    b->tensors = REGION_NEW(region, struct atp_tensor, ROOM);
    b->steps = REGION_NEW(region, struct atp_step, ROOM);
    b->step_ns = REGION_NEW(region, int64_t, ROOM);
    b->pins = REGION_NEW(region, enum profile_pin, ROOM);
    b->profile = (struct profile){
        .model = {.name = "built", .batch_size = 1, .tensors = b->tensors, .steps = b->steps},
        .device_name = "none",
        .pinned_bytes = UINT64_MAX,
        .clock = {.step_ns = b->step_ns,
                  .d2h_bytes_per_second = 1000000000,
                  .h2d_bytes_per_second = 1000000000},
        .pins = b->pins,
    };
    return b;
}

uint32_t profile_builder_tensor(struct profile_builder *builder, uint64_t bytes)
{
    struct atp_model *model = &builder->profile.model;
    need(model->tensor_count < ROOM);
    builder->tensors[model->tensor_count] =
        (struct atp_tensor){name_of(builder, 't', model->tensor_count), bytes};
    return model->tensor_count++;
}

uint32_t profile_builder_step(struct profile_builder *builder, enum atp_phase phase,
                              int64_t step_ns, struct ids reads, struct ids writes)
{
    struct atp_model *model = &builder->profile.model;
    need(model->step_count < ROOM);
    builder->steps[model->step_count] = (struct atp_step){
        .name = name_of(builder, 's', model->step_count),
        .phase = phase,
        .read_count = reads.count,
        .write_count = writes.count,
        .reads = copy_ids(builder, &reads),
        .writes = copy_ids(builder, &writes),
    };
    builder->step_ns[model->step_count] = step_ns;
    return model->step_count++;
}

struct profile_builder *profile_builder_chain(uint32_t count, uint64_t bytes, int64_t step_ns,
                                              struct region *region)
{
    struct profile_builder *b = profile_builder_create(region);
    for (uint32_t t = 0; t < 2 * count + 1; t++) {
        (void)profile_builder_tensor(b, bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)profile_builder_step(b, ATP_PHASE_FORWARD, step_ns, IDS(i), IDS(i + 1));
    }
    for (uint32_t i = count; i-- > 0;) {
        uint32_t gradient = 2 * count - i;
        struct ids reads = IDS(i, i + 1, gradient - 1);
        reads.count = i + 1 == count ? 2 : 3;
        (void)profile_builder_step(b, ATP_PHASE_BACKWARD, step_ns, reads, IDS(gradient));
    }
    return b;
}
