/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The price of a recomputation is that of the chain of reruns as things stand, cut off where it
 * grows beyond reason. Cost: the open lazy tensors per drop, times the chains looked at.
 */
#include "pressure.h"

#include "schedule_internal.h"

#include <math.h>

/* Steps looked at to price one recomputation; a longer chain counts as dear. */
#define CHAIN_MAX 48U
/* A price takes as long as comparing so many. */
#define PRICE_WORK 20U
/* Of more lazy tensors, only some are looked at. */
#define COMPARED_MAX 256U
/* Of the cost of dropping, where the relaxation keeps nothing. */
#define LEAST_KEPT 0.05

struct chain {
    struct schedule *s;
    uint32_t left;
    double copy_price;
};

static double remake_ns(struct chain *c, uint32_t tensor, uint32_t version, bool is_gone)
{
    struct schedule *s = c->s;
    const struct problem *problem = s->problem;
    const struct tensor_state *state = &s->state[tensor];
    if (!is_gone && state->open != ATP_NONE && state->version == version) {
        return 0;
    }
    if (state->copy != ATP_NONE && state->copy_version == version) {
        return c->copy_price * (double)s->copy_in_ns[tensor];
    }
    if (problem->is_input[tensor]) {
        return HUGE_VAL;
    }
    double cost = 0;
    for (uint32_t v = 1; v <= version; v++) {
        uint32_t step = s->writer_steps[s->first_writer[tensor] + v - 1];
        const struct atp_step *model_step = &problem->model->steps[step];
        if (c->left == 0 || model_step->phase != ATP_PHASE_FORWARD || model_step->rerun_never) {
            return HUGE_VAL;
        }
        if (s->chain_stamp[step] == s->chain_now) {
            continue; /* it reruns for another input already */
        }
        s->chain_stamp[step] = s->chain_now;
        c->left--;
        cost += (double)problem->profile->clock.step_ns[step];
        for (uint32_t i = problem->step_first[step]; i < problem->step_first[step + 1]; i++) {
            const struct access *access = &problem->accesses[problem->step_accesses[i]];
            if (access->tensor != tensor && (access->reads || access->version > 1)) {
                cost += remake_ns(c, access->tensor, access->read_version, false);
            }
        }
    }
    return cost;
}

/* Prices both ways to drop the tensor in a gap; writes the cheaper and its cost. */
static void price(struct schedule *s, uint32_t tensor, uint32_t gap)
{
    const struct pressure *pressure = s->pressure;
    const struct tensor_state *state = &s->state[tensor];
    bool has_copy = state->copy != ATP_NONE && state->copy_version == state->version;
    double swap = pressure->swap_price *
                  (double)(s->copy_in_ns[tensor] + (has_copy ? 0 : s->copy_out_ns[tensor]));
    double recompute = HUGE_VAL;
    if (s->problem->recomputable[gap] && !has_copy) {
        struct chain chain = {s, CHAIN_MAX, pressure->swap_price};
        s->chain_now++;
        recompute = remake_ns(&chain, tensor, state->version, true);
    }
    double factor = 1;
    if (pressure->keep != NULL) {
        factor = LEAST_KEPT + pressure->keep[gap];
        swap *= 1.5 - pressure->swap[gap];
        recompute *= 1.5 - pressure->recompute[gap];
    }
    bool is_cheaper = recompute < swap;
    s->pressed->choices[gap] = CHOICE_LAZY | (is_cheaper ? CHOICE_RECOMPUTE : CHOICE_SWAP);
    s->pressed->weights[gap] = (float)(((is_cheaper ? recompute : swap) + 1) * factor);
}

void pressure_prepare(struct schedule *s)
{
    struct selection *pressed = s->pressed;
    for (uint32_t a = 0; a < s->problem->access_count; a++) {
        if (pressed->choices[a] & CHOICE_LAZY) {
            uint32_t tensor = s->problem->accesses[a].tensor;
            pressed->choices[a] = CHOICE_LAZY | CHOICE_SWAP;
            pressed->weights[a] = (float)(s->pressure->swap_price *
                                          (double)(s->copy_in_ns[tensor] + s->copy_out_ns[tensor]));
        }
    }
}

/* Time until the next use as if nothing reran or stalled; a tail ends long after the iteration. */
static double idle_us(const struct schedule *s, uint32_t gap)
{
    const struct problem *problem = s->problem;
    if (!problem->accesses[gap].has_next) {
        return 4e-3 * (double)problem->compute_ns;
    }
    float idle = s->step_start_us[problem->accesses[gap + 1].step] - s->step_start_us[s->at_step];
    return idle > 1 ? (double)idle : 1;
}

void pressure_relieve(struct schedule *s, uint64_t bytes, uint64_t limit)
{
    while (s->open_bytes + bytes > limit) {
        uint32_t best = ATP_NONE;
        double best_score = HUGE_VAL;
        uint32_t stride = 1 + s->lazy_count / COMPARED_MAX;
        s->compared += (uint64_t)(s->lazy_count / stride) * (s->pressure != NULL ? PRICE_WORK : 1);
        for (uint32_t i = s->at_step % stride; i < s->lazy_count; i += stride) {
            uint32_t tensor = s->lazy[i], gap = s->state[tensor].gap;
            if (s->state[tensor].needs > 0) {
                continue;
            }
            if (s->pressure != NULL) {
                price(s, tensor, gap);
            }
            double score = (double)s->weights[gap] /
                           ((double)s->problem->tensor_bytes[tensor] * sqrt(idle_us(s, gap)));
            if (best == ATP_NONE || score < best_score) {
                best = tensor;
                best_score = score;
            }
        }
        if (best == ATP_NONE) {
            return;
        }
        uint8_t kind = CHOICE_KIND(s->choices[s->state[best].gap]);
        sequence_close(s, best, kind == CHOICE_SWAP);
    }
}
