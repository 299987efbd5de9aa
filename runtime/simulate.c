/* SPDX-License-Identifier: Apache-2.0
 *
 * One pass over the program with three clocks: the end of all compute so far, and the time from
 * which each copy engine is free. Linear in the program; all sums are checked.
 */
#include <atp/simulate.h>

#include "checked.h"
#include "fail.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#define NS_PER_SECOND UINT64_C(1000000000)

struct simulation {
    const struct atp_plan *plan;
    const struct atp_clock *clock;
    struct atp_error *err;
    int64_t compute_ns, d2h_ns, h2d_ns;
    int64_t *copied_ns; /* per tensor: the end of its last copy */
    uint64_t live_bytes;
    struct atp_predicted *out;
};

/* ceil(rest * NS_PER_SECOND / rate) for rest < rate, one bit of the factor at a time, so that no
 * intermediate value leaves 64 bits. */
static uint64_t divide_slowly(uint64_t rest, uint64_t rate)
{
    uint64_t quotient = 0, remainder = 0;
    for (int bit = 29; bit >= 0; bit--) {
        uint64_t add = (NS_PER_SECOND >> bit & 1) != 0 ? rest : 0;
        bool carry = remainder >= rate - remainder;
        quotient = 2 * quotient + carry;
        remainder = carry ? remainder - (rate - remainder) : 2 * remainder;
        carry = remainder >= rate - add;
        quotient += carry;
        remainder = carry ? remainder - (rate - add) : remainder + add;
    }
    return quotient + (remainder != 0);
}

int64_t atp_copy_ns(uint64_t bytes, uint64_t bytes_per_second, int64_t latency_ns)
{
    if (bytes_per_second == 0) {
        return INT64_MAX;
    }
    uint64_t rest = bytes % bytes_per_second, product, ns;
    uint64_t part = checked_mul(rest, NS_PER_SECOND, &product)
                        ? product / bytes_per_second + (product % bytes_per_second != 0)
                        : divide_slowly(rest, bytes_per_second);
    if (!checked_mul(bytes / bytes_per_second, NS_PER_SECOND, &ns) || !checked_add(ns, part, &ns) ||
        !checked_add(ns, (uint64_t)latency_ns, &ns) || ns > INT64_MAX) {
        return INT64_MAX;
    }
    return (int64_t)ns;
}

static enum atp_status add_ns(const struct simulation *sim, int64_t *sum_ns, int64_t ns)
{
    if (ns >= INT64_MAX - *sum_ns) {
        return atp_fail(sim->err, ATP_ERR_INVALID, "the simulated time leaves 64 bits");
    }
    *sum_ns += ns;
    return ATP_OK;
}

static enum atp_status add_bytes(const struct simulation *sim, uint64_t *sum_bytes, uint64_t bytes)
{
    if (!checked_add(*sum_bytes, bytes, sum_bytes)) {
        return atp_fail(sim->err, ATP_ERR_INVALID, "the bytes copied or recomputed leave 64 bits");
    }
    return ATP_OK;
}

static void grow_peak(struct simulation *sim, uint64_t extra_bytes)
{
    if (sim->live_bytes + extra_bytes > sim->out->peak_bytes) {
        sim->out->peak_bytes = sim->live_bytes + extra_bytes;
    }
}

static void give_device_bytes(struct simulation *sim, uint32_t tensor)
{
    sim->live_bytes += sim->plan->model.tensors[tensor].bytes;
    grow_peak(sim, 0);
}

static void take_device_bytes(struct simulation *sim, uint32_t tensor)
{
    sim->live_bytes -= sim->plan->model.tensors[tensor].bytes;
}

static enum atp_status simulate_work(struct simulation *sim, uint32_t step, bool is_rerun)
{
    const struct atp_model *model = &sim->plan->model;
    const struct atp_step *s = &model->steps[step];
    int64_t ns = sim->clock->step_ns[step];
    if (ns < 0) {
        return atp_fail(sim->err, ATP_ERR_INVALID,
                        "steps[%" PRIu32 "] \"%s\": its time is negative", step, s->name);
    }
    grow_peak(sim, s->workspace_bytes);
    ATP_TRY(add_ns(sim, &sim->compute_ns, ns));
    *(is_rerun ? &sim->out->recompute_ns : &sim->out->compute_ns) += ns;
    for (uint32_t i = 0; is_rerun && i < s->write_count; i++) {
        ATP_TRY(add_bytes(sim, &sim->out->recomputed_bytes, model->tensors[s->writes[i]].bytes));
    }
    return ATP_OK;
}

/* Starts a copy when compute has got here and its engine is free. */
static enum atp_status simulate_copy(struct simulation *sim, uint32_t tensor, int64_t *engine_ns,
                                     uint64_t bytes_per_second, struct atp_simulated *event)
{
    uint64_t bytes = sim->plan->model.tensors[tensor].bytes;
    int64_t ns = atp_copy_ns(bytes, bytes_per_second, sim->clock->copy_latency_ns);
    if (*engine_ns < sim->compute_ns) {
        *engine_ns = sim->compute_ns;
    }
    event->start_ns = *engine_ns;
    ATP_TRY(add_ns(sim, engine_ns, ns));
    event->end_ns = *engine_ns;
    sim->copied_ns[tensor] = *engine_ns;
    return ATP_OK;
}

static void simulate_wait(struct simulation *sim, uint32_t tensor)
{
    if (sim->copied_ns[tensor] > sim->compute_ns) {
        sim->out->stall_ns += sim->copied_ns[tensor] - sim->compute_ns;
        sim->compute_ns = sim->copied_ns[tensor];
    }
}

static enum atp_status simulate_instruction(struct simulation *sim, struct atp_simulated *event)
{
    const struct atp_instruction *in = &sim->plan->program[event->instruction];
    event->start_ns = sim->compute_ns;
    switch (in->op) {
    case ATP_OP_ALLOC:
        give_device_bytes(sim, in->id);
        break;
    case ATP_OP_RUN:
    case ATP_OP_RERUN:
        ATP_TRY(simulate_work(sim, in->id, in->op == ATP_OP_RERUN));
        break;
    case ATP_OP_EVICT:
        ATP_TRY(add_bytes(sim, &sim->out->evicted_bytes, sim->plan->model.tensors[in->id].bytes));
        return simulate_copy(sim, in->id, &sim->d2h_ns, sim->clock->d2h_bytes_per_second, event);
    case ATP_OP_RESTORE:
        give_device_bytes(sim, in->id);
        ATP_TRY(add_bytes(sim, &sim->out->restored_bytes, sim->plan->model.tensors[in->id].bytes));
        return simulate_copy(sim, in->id, &sim->h2d_ns, sim->clock->h2d_bytes_per_second, event);
    case ATP_OP_EVICTED:
        simulate_wait(sim, in->id);
        take_device_bytes(sim, in->id);
        break;
    case ATP_OP_RESTORED:
        simulate_wait(sim, in->id);
        break;
    case ATP_OP_FREE:
        take_device_bytes(sim, in->id);
        break;
    }
    event->end_ns = sim->compute_ns;
    return ATP_OK;
}

static enum atp_status simulate_program(struct simulation *sim, atp_simulate_fn observe, void *ctx)
{
    for (uint32_t i = 0; i < sim->plan->instruction_count; i++) {
        struct atp_simulated event = {.instruction = i};
        ATP_TRY(simulate_instruction(sim, &event));
        if (observe != NULL) {
            observe(ctx, &event);
        }
    }
    sim->out->iteration_ns = sim->compute_ns;
    return ATP_OK;
}

enum atp_status atp_simulate(const struct atp_plan *plan, const struct atp_clock *clock,
                             atp_simulate_fn observe, void *ctx, struct atp_predicted *out,
                             struct atp_error *err)
{
    struct simulation sim = {.plan = plan, .clock = clock, .err = err, .out = out};
    *out = (struct atp_predicted){0};
    if (clock->copy_latency_ns < 0) {
        return atp_fail(err, ATP_ERR_INVALID, "copy_latency_ns: it is negative");
    }
    sim.copied_ns = calloc((size_t)plan->model.tensor_count + 1, sizeof(*sim.copied_ns));
    if (sim.copied_ns == NULL) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "plan: no memory to simulate it");
    }
    enum atp_status status = simulate_program(&sim, observe, ctx);
    free(sim.copied_ns);
    return status;
}

static enum atp_status same_ns(const char *field, int64_t said, int64_t found,
                               struct atp_error *err)
{
    if (said == found) {
        return ATP_OK;
    }
    return atp_fail(err, ATP_ERR_INVALID,
                    "predicted.%s: %" PRId64 ", but the simulation finds %" PRId64, field, said,
                    found);
}

static enum atp_status same_bytes(const char *field, uint64_t said, uint64_t found,
                                  struct atp_error *err)
{
    if (said == found) {
        return ATP_OK;
    }
    return atp_fail(err, ATP_ERR_INVALID,
                    "predicted.%s: %" PRIu64 ", but the simulation finds %" PRIu64, field, said,
                    found);
}

enum atp_status atp_plan_check_predicted(const struct atp_plan *plan, const struct atp_clock *clock,
                                         struct atp_error *err)
{
    const struct atp_predicted *said = &plan->predicted;
    struct atp_predicted found;
    ATP_TRY(atp_simulate(plan, clock, NULL, NULL, &found, err));
    ATP_TRY(same_ns("iteration_ns", said->iteration_ns, found.iteration_ns, err));
    ATP_TRY(same_ns("compute_ns", said->compute_ns, found.compute_ns, err));
    ATP_TRY(same_ns("recompute_ns", said->recompute_ns, found.recompute_ns, err));
    ATP_TRY(same_ns("stall_ns", said->stall_ns, found.stall_ns, err));
    ATP_TRY(same_bytes("peak_bytes", said->peak_bytes, found.peak_bytes, err));
    ATP_TRY(same_bytes("evicted_bytes", said->evicted_bytes, found.evicted_bytes, err));
    ATP_TRY(same_bytes("restored_bytes", said->restored_bytes, found.restored_bytes, err));
    ATP_TRY(same_bytes("recomputed_bytes", said->recomputed_bytes, found.recomputed_bytes, err));
    if (said->bound_ns < found.compute_ns || said->bound_ns > found.iteration_ns) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "predicted.bound_ns: %" PRId64 ", expected at least the step times of "
                        "%" PRId64 " and at most the iteration time of %" PRId64,
                        said->bound_ns, found.compute_ns, found.iteration_ns);
    }
    return ATP_OK;
}
