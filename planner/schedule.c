/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "schedule_internal.h"

#include <string.h>

/* Ops and residences of a sequence that reruns every step several times over; more is given up as
 * too long. */
#define OPS_PER_STEP 6U

/* Rounded up to a nanosecond, as the simulator does it. */
static int64_t copy_ns(uint64_t bytes, uint64_t bytes_per_second, int64_t latency_ns)
{
    __extension__ typedef unsigned __int128 wide;
    wide ns = ((wide)bytes * 1000000000U + bytes_per_second - 1) / bytes_per_second;
    return latency_ns + (int64_t)(ns < (wide)(INT64_MAX / 4) ? ns : (wide)(INT64_MAX / 4));
}

struct selection selection_create(const struct problem *problem, struct region *region)
{
    return (struct selection){
        .choices = REGION_NEW(region, uint8_t, problem->access_count),
        .weights = REGION_NEW(region, float, problem->access_count),
    };
}

void selection_copy(const struct problem *problem, const struct selection *from,
                    struct selection *to)
{
    memcpy(to->choices, from->choices, problem->access_count * sizeof(*to->choices));
    memcpy(to->weights, from->weights, problem->access_count * sizeof(*to->weights));
    to->latest_first = from->latest_first;
}

static void find_writers(struct schedule *s, struct region *region)
{
    const struct problem *problem = s->problem;
    uint32_t tensor_count = problem->model->tensor_count, count = 0;
    uint32_t *first = REGION_NEW(region, uint32_t, (size_t)tensor_count + 1);
    uint32_t *steps = REGION_NEW(region, uint32_t, problem->access_count);
    for (uint32_t t = 0; t < tensor_count; t++) {
        first[t] = count;
        for (uint32_t a = problem->first_access[t]; a < problem->first_access[t + 1]; a++) {
            if (problem->accesses[a].writes) {
                steps[count++] = problem->accesses[a].step;
            }
        }
    }
    first[tensor_count] = count;
    s->first_writer = first;
    s->writer_steps = steps;
}

static void price_copies(struct schedule *s, struct region *region)
{
    const struct atp_model *model = s->problem->model;
    const struct atp_clock *clock = &s->problem->profile->clock;
    int64_t *out = REGION_NEW(region, int64_t, model->tensor_count);
    int64_t *in = REGION_NEW(region, int64_t, model->tensor_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        out[t] =
            copy_ns(model->tensors[t].bytes, clock->d2h_bytes_per_second, clock->copy_latency_ns);
        in[t] =
            copy_ns(model->tensors[t].bytes, clock->h2d_bytes_per_second, clock->copy_latency_ns);
    }
    s->copy_out_ns = out;
    s->copy_in_ns = in;
}

static void pack_uses(struct schedule *s, struct region *region)
{
    const struct problem *problem = s->problem;
    uint32_t count = problem->step_first[problem->model->step_count];
    struct use *uses = REGION_NEW(region, struct use, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = problem->step_accesses[i];
        const struct access *access = &problem->accesses[id];
        uses[i] = (struct use){
            .access = id,
            .tensor = access->tensor,
            .version = access->version,
            .read_version = access->read_version,
            .bytes = problem->tensor_bytes[access->tensor],
            .writes = access->writes,
            .needs = access->reads || access->version > 1,
        };
    }
    s->uses = uses;
}

struct schedule *schedule_create(const struct problem *problem, struct region *region)
{
    struct schedule *s = REGION_NEW(region, struct schedule, 1);
    uint32_t ops = OPS_PER_STEP * problem->model->step_count + 1;
    uint32_t residences = OPS_PER_STEP * problem->access_count + 1;
    s->problem = problem;
    s->rerun_limit_ns = INT64_MAX;
    pack_uses(s, region);
    find_writers(s, region);
    price_copies(s, region);
    s->op_capacity = ops;
    s->residence_capacity = residences;
    s->sequence.ops = REGION_NEW(region, struct op, ops);
    s->sequence.residences = REGION_NEW(region, struct residence, residences);
    s->sequence.memory_bytes = REGION_NEW(region, uint64_t, (size_t)ops + 1);
    s->state = REGION_NEW(region, struct tensor_state, problem->model->tensor_count);
    s->touched = REGION_NEW(region, uint32_t, problem->model->tensor_count);
    s->lazy = REGION_NEW(region, uint32_t, problem->model->tensor_count);
    s->step_start_us = REGION_NEW(region, float, problem->model->step_count);
    s->chain_stamp = REGION_NEW(region, uint32_t, problem->model->step_count);
    int64_t clock = 0;
    for (uint32_t step = 0; step < problem->model->step_count; step++) {
        s->step_start_us[step] = (float)((double)clock * 1e-3);
        clock += problem->profile->clock.step_ns[step];
    }
    s->copy_used = REGION_NEW(region, bool, residences);
    s->op_start_ns = REGION_NEW(region, int64_t, ops);
    s->begin_first = REGION_NEW(region, uint32_t, (size_t)ops + 2);
    s->end_first = REGION_NEW(region, uint32_t, (size_t)ops + 2);
    s->ready_first = REGION_NEW(region, uint32_t, (size_t)ops + 2);
    s->issue_first = REGION_NEW(region, uint32_t, (size_t)ops + 2);
    s->planned_bytes = REGION_NEW(region, uint64_t, ops);
    s->last_of_tensor = REGION_NEW(region, uint32_t, problem->model->tensor_count);
    uint32_t **per_residence[] = {&s->begin_list, &s->end_list, &s->ready_list,
                                  &s->issue_list, &s->previous, &s->restores,
                                  &s->heap,       &s->queue,    &s->copy_readers};
    for (size_t i = 0; i < sizeof(per_residence) / sizeof(per_residence[0]); i++) {
        *per_residence[i] = REGION_NEW(region, uint32_t, residences);
    }
    s->evicted_ns = REGION_NEW(region, int64_t, residences);
    s->restored_ns = REGION_NEW(region, int64_t, residences);
    s->evict_state = REGION_NEW(region, uint8_t, residences);
    s->restore_state = REGION_NEW(region, uint8_t, residences);
    /* Begin, end, and both ends of both copies of every residence, and the ops. */
    s->timeline.actions = REGION_NEW(region, struct action, (size_t)ops + 6 * (size_t)residences);
    return s;
}

const struct sequence *schedule_sequence(struct schedule *schedule,
                                         const struct selection *selection)
{
    sequence_build(schedule, selection);
    return &schedule->sequence;
}

const struct sequence *schedule_press(struct schedule *schedule, const struct pressure *pressure,
                                      struct selection *selection)
{
    schedule->pressure = pressure;
    schedule->pressed = selection;
    pressure_prepare(schedule);
    sequence_build(schedule, selection);
    schedule->pressure = NULL;
    return &schedule->sequence;
}

const struct timeline *schedule_timeline(struct schedule *schedule, bool with_actions)
{
    timeline_build(schedule, with_actions);
    return &schedule->timeline;
}

void schedule_limit_reruns(struct schedule *schedule, int64_t limit_ns)
{
    schedule->rerun_limit_ns = limit_ns;
}

void schedule_set_serial(struct schedule *schedule)
{
    schedule->is_serial = true;
}

const int64_t *schedule_copy_out_ns(const struct schedule *schedule)
{
    return schedule->copy_out_ns;
}

const int64_t *schedule_copy_in_ns(const struct schedule *schedule)
{
    return schedule->copy_in_ns;
}
