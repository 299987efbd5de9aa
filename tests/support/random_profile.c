/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "random_profile.h"

#include <stdio.h>
#include <string.h>

#define USES_MAX 6U

struct maker {
    struct random *random;
    struct region *region;
    uint32_t tensor_count, step_count;
    struct atp_tensor *tensors;
    struct atp_step *steps;
    int64_t *step_ns;
    uint32_t *reads, *writes; /* USES_MAX per step */
    uint32_t size_scale;
};

static const char *name_of(struct maker *m, char letter, uint32_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%c%u", letter, number);
    return region_copy_text(m->region, text);
}

static uint32_t add_tensor(struct maker *m)
{
    uint64_t bytes = random_chance(m->random, 15)
                         ? 1
                         : (uint64_t)(1 + random_below(m->random, 12)) * m->size_scale;
    m->tensors[m->tensor_count] =
        (struct atp_tensor){.name = name_of(m, 't', m->tensor_count), .bytes = bytes};
    return m->tensor_count++;
}

static struct atp_step *add_step(struct maker *m, enum atp_phase phase)
{
    struct atp_step *step = &m->steps[m->step_count];
    *step = (struct atp_step){
        .name = name_of(m, 's', m->step_count),
        .phase = phase,
        .rerun_never = random_chance(m->random, 10),
        .reads = m->reads + (size_t)m->step_count * USES_MAX,
        .writes = m->writes + (size_t)m->step_count * USES_MAX,
        .workspace_bytes = random_chance(m->random, 20)
                               ? (uint64_t)(1 + random_below(m->random, 6)) * m->size_scale
                               : 0,
    };
    m->step_ns[m->step_count++] = random_chance(m->random, 8) ? 0 : 1 + random_below(m->random, 30);
    return step;
}

static void add_use(uint32_t *uses, uint32_t *count, uint32_t tensor)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (uses[i] == tensor) {
            return;
        }
    }
    if (*count < USES_MAX) {
        uses[(*count)++] = tensor;
    }
}

static void reads(struct maker *m, struct atp_step *step, uint32_t tensor)
{
    add_use(m->reads + (step - m->steps) * USES_MAX, &step->read_count, tensor);
}

static void writes(struct maker *m, struct atp_step *step, uint32_t tensor)
{
    add_use(m->writes + (step - m->steps) * USES_MAX, &step->write_count, tensor);
}

/* A tensor made by a step, mostly a late one; ATP_NONE: there is none yet. */
static uint32_t pick_made(struct maker *m, uint32_t input_count)
{
    uint32_t made = m->tensor_count - input_count;
    if (made == 0) {
        return ATP_NONE;
    }
    uint32_t back = random_chance(m->random, 70) && made > 3 ? 3 : made;
    return m->tensor_count - 1 - random_below(m->random, back);
}

static void add_forward(struct maker *m, uint32_t input_count)
{
    struct atp_step *step = add_step(m, ATP_PHASE_FORWARD);
    uint32_t tensor = pick_made(m, input_count);
    if (tensor != ATP_NONE && random_chance(m->random, 95)) {
        reads(m, step, tensor);
    }
    if (input_count > 0 && (tensor == ATP_NONE || random_chance(m->random, 15))) {
        reads(m, step, random_below(m->random, input_count));
    }
    if (tensor != ATP_NONE && random_chance(m->random, 30)) {
        reads(m, step, pick_made(m, input_count));
    }
    uint32_t updated = pick_made(m, input_count);
    if (updated != ATP_NONE && random_chance(m->random, 30)) {
        writes(m, step, updated);
        if (random_chance(m->random, 80)) {
            reads(m, step, updated);
        }
    }
    if (step->write_count == 0 || random_chance(m->random, 20)) {
        writes(m, step, add_tensor(m));
    }
    if (random_chance(m->random, 15)) {
        writes(m, step, add_tensor(m));
    }
}

/* The backward step of forward step f: reads some of what that one touched and the gradient. */
static uint32_t add_backward(struct maker *m, uint32_t f, uint32_t gradient, uint32_t forward_end)
{
    struct atp_step *step = add_step(m, ATP_PHASE_BACKWARD);
    const struct atp_step *forward = &m->steps[f];
    if (gradient != ATP_NONE) {
        reads(m, step, gradient);
    }
    for (uint32_t i = 0; i < forward->read_count; i++) {
        if (random_chance(m->random, 60)) {
            reads(m, step, forward->reads[i]);
        }
    }
    for (uint32_t i = 0; i < forward->write_count; i++) {
        if (random_chance(m->random, 50)) {
            reads(m, step, forward->writes[i]);
        }
    }
    if (m->tensor_count > forward_end && random_chance(m->random, 20)) {
        uint32_t older = forward_end + random_below(m->random, m->tensor_count - forward_end);
        reads(m, step, older);
        if (random_chance(m->random, 60)) {
            writes(m, step, older);
        }
    }
    if (gradient != ATP_NONE && random_chance(m->random, 25)) {
        writes(m, step, gradient);
        return gradient;
    }
    uint32_t next = add_tensor(m);
    writes(m, step, next);
    return next;
}

void random_profile_build(struct random *random, uint32_t forward_count, struct region *region,
                          struct profile *out_profile)
{
    uint32_t room = 8 * forward_count + 16;
    struct maker m = {
        .random = random,
        .region = region,
        .tensors = REGION_NEW(region, struct atp_tensor, room),
        .steps = REGION_NEW(region, struct atp_step, room),
        .step_ns = REGION_NEW(region, int64_t, room),
        .reads = REGION_NEW(region, uint32_t, (size_t)room * USES_MAX),
        .writes = REGION_NEW(region, uint32_t, (size_t)room * USES_MAX),
        .size_scale = random_chance(random, 30) ? 1000 : 1 + random_below(random, 4),
    };
    uint32_t input_count = random_below(random, 3);
    for (uint32_t i = 0; i < input_count; i++) {
        (void)add_tensor(&m);
    }
    for (uint32_t i = 0; i < forward_count; i++) {
        add_forward(&m, input_count);
    }
    uint32_t forward_end = m.tensor_count, gradient = ATP_NONE;
    for (uint32_t i = forward_count; i-- > 0;) {
        if (random_chance(random, 90)) {
            gradient = add_backward(&m, i, gradient, forward_end);
        }
    }
    if (random_chance(random, 50)) {
        struct atp_step *update = add_step(&m, ATP_PHASE_UPDATE);
        if (gradient != ATP_NONE) {
            reads(&m, update, gradient);
        }
    }
    memset(out_profile, 0, sizeof(*out_profile));
    out_profile->model = (struct atp_model){.name = "random",
                                            .batch_size = 1,
                                            .tensor_count = m.tensor_count,
                                            .step_count = m.step_count,
                                            .tensors = m.tensors,
                                            .steps = m.steps};
    uint64_t unit = (uint64_t)m.size_scale * 1000000000;
    out_profile->clock = (struct atp_clock){
        .step_ns = m.step_ns,
        .d2h_bytes_per_second = unit / (1 + random_below(random, 8)),
        .h2d_bytes_per_second = unit / (1 + random_below(random, 8)),
        .copy_latency_ns = random_chance(random, 70) ? 0 : random_below(random, 4),
    };
    out_profile->pinned_bytes = UINT64_MAX;
    out_profile->pins = REGION_NEW(region, enum profile_pin, m.tensor_count);
}
