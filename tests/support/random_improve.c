/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A hill climb over instruction lists; the checker and the simulator are the judges.
 */
#include "random_program.h"

#include <atp/simulate.h>

#include <string.h>

struct changes {
    const struct problem *problem;
    const struct atp_model *model;
    uint64_t *offsets;
    uint64_t limit;
};

static uint32_t first_writer(const struct changes *c, uint32_t tensor)
{
    const struct access *access = &c->problem->accesses[c->problem->first_access[tensor]];
    bool made = c->problem->first_access[tensor] < c->problem->first_access[tensor + 1];
    return made && access->writes ? access->step : ATP_NONE;
}

/* Programs under change: instructions with room for more. */
struct draft {
    struct atp_instruction *items;
    uint32_t count;
};

static void put(struct draft *draft, uint32_t at, enum atp_op op, uint32_t id, uint64_t offset)
{
    memmove(draft->items + at + 1, draft->items + at, (draft->count - at) * sizeof(*draft->items));
    draft->items[at] = (struct atp_instruction){.op = op, .id = id, .offset = offset};
    draft->count++;
}

static void take(struct draft *draft, uint32_t at)
{
    draft->count--;
    memmove(draft->items + at, draft->items + at + 1, (draft->count - at) * sizeof(*draft->items));
}

static void move_one(struct draft *draft, struct random *random)
{
    uint32_t from = random_below(random, draft->count);
    uint32_t reach = random_chance(random, 70) ? 4 : 40;
    uint32_t low = from > reach ? from - reach : 0;
    uint32_t high = from + reach < draft->count ? from + reach : draft->count - 1;
    struct atp_instruction moved = draft->items[from];
    take(draft, from);
    put(draft, low + random_below(random, high - low + 1), moved.op, moved.id, moved.offset);
}

/* Index of the next instruction on the tensor after `at`; count: none. */
static uint32_t next_on(const struct draft *draft, uint32_t at)
{
    uint32_t id = draft->items[at].id;
    for (uint32_t i = at + 1; i < draft->count; i++) {
        enum atp_op op = draft->items[i].op;
        if (draft->items[i].id == id && op != ATP_OP_RUN && op != ATP_OP_RERUN) {
            return i;
        }
    }
    return draft->count;
}

/* Takes out a rerun, or an instruction on a tensor and what follows it on the same tensor. */
static void take_some(struct draft *draft, struct random *random)
{
    uint32_t at = random_below(random, draft->count), left = 1 + random_below(random, 4);
    if (draft->items[at].op == ATP_OP_RERUN) {
        take(draft, at);
        return;
    }
    while (left-- > 0 && at < draft->count && draft->items[at].op != ATP_OP_RUN) {
        uint32_t next = next_on(draft, at);
        take(draft, at);
        at = next > 0 ? next - 1 : 0;
    }
}

static uint32_t later(const struct draft *draft, uint32_t at, struct random *random)
{
    uint32_t left = draft->count - at;
    uint32_t reach = random_chance(random, 60) && left > 6 ? 6 : left;
    return at + random_below(random, reach + 1);
}

/* Sends a tensor away and brings it back, by copies, by a copy made before, or by a rerun. */
static void send_away(const struct changes *c, struct draft *draft, struct random *random)
{
    uint32_t tensor = random_below(random, c->model->tensor_count), way = random_below(random, 3);
    uint32_t at = random_below(random, draft->count);
    if (way == 0) {
        put(draft, at, ATP_OP_EVICT, tensor, c->offsets[tensor]);
        at = later(draft, at + 1, random);
    }
    put(draft, at, way == 0 ? ATP_OP_EVICTED : ATP_OP_FREE, tensor, 0);
    at = later(draft, at + 1, random);
    if (way < 2) {
        put(draft, at, ATP_OP_RESTORE, tensor, c->offsets[tensor]);
        put(draft, later(draft, at + 1, random), ATP_OP_RESTORED, tensor, 0);
        return;
    }
    put(draft, at, ATP_OP_ALLOC, tensor, c->offsets[tensor]);
    uint32_t step = first_writer(c, tensor);
    if (step != ATP_NONE) {
        bool works = c->model->steps[step].workspace_bytes > 0;
        put(draft, later(draft, at + 1, random), ATP_OP_RERUN, step,
            works ? c->offsets[c->model->tensor_count + step] : 0);
    }
}

/* Another way back for a tensor that is away: restore for rerun or the reverse. */
static void change_way(const struct changes *c, struct draft *draft, struct random *random)
{
    uint32_t at = random_below(random, draft->count);
    struct atp_instruction *in = &draft->items[at];
    if (in->op == ATP_OP_EVICTED || in->op == ATP_OP_FREE) {
        in->op = in->op == ATP_OP_FREE ? ATP_OP_EVICTED : ATP_OP_FREE;
        uint32_t tensor = in->id;
        if (in->op == ATP_OP_EVICTED) {
            uint32_t back = random_below(random, at + 1);
            put(draft, back, ATP_OP_EVICT, tensor, c->offsets[tensor]);
            return;
        }
        while (at-- > 0) {
            if (draft->items[at].op == ATP_OP_EVICT && draft->items[at].id == tensor) {
                take(draft, at);
                return;
            }
        }
    } else if (in->op == ATP_OP_RESTORE) {
        uint32_t next = next_on(draft, at), step = first_writer(c, in->id);
        if (next < draft->count && draft->items[next].op == ATP_OP_RESTORED && step != ATP_NONE) {
            bool works = c->model->steps[step].workspace_bytes > 0;
            in->op = ATP_OP_ALLOC;
            draft->items[next] = (struct atp_instruction){
                .op = ATP_OP_RERUN,
                .id = step,
                .offset = works ? c->offsets[c->model->tensor_count + step] : 0};
        }
    }
}

/* The time of the program, or INT64_MAX when it is illegal or too large. */
static int64_t judge(const struct changes *c, struct atp_plan *plan, const struct draft *draft)
{
    struct atp_error err;
    struct atp_predicted found;
    plan->program = draft->items;
    plan->instruction_count = draft->count;
    /* The checker looks at this claim once the whole program is proven. */
    plan->predicted.peak_bytes = UINT64_MAX;
    if (atp_plan_check(plan, &err) == ATP_OK ||
        strncmp(err.text, "predicted.peak_bytes", 20) != 0 ||
        atp_simulate(plan, &c->problem->profile->clock, NULL, NULL, &found, &err) != ATP_OK ||
        found.peak_bytes > c->limit) {
        return INT64_MAX;
    }
    plan->predicted.peak_bytes = found.peak_bytes;
    return found.iteration_ns;
}

int64_t random_program_improve(const struct problem *problem, uint64_t limit_bytes, uint32_t tries,
                               struct random *random, struct region *region, struct atp_plan *plan)
{
    const struct atp_model *model = problem->model;
    struct changes changes = {
        .problem = problem,
        .model = model,
        .offsets = REGION_NEW(region, uint64_t, (size_t)model->tensor_count + model->step_count),
        .limit = limit_bytes,
    };
    size_t room = (size_t)plan->instruction_count + 6 * (size_t)tries + 8;
    struct draft best = {REGION_NEW(region, struct atp_instruction, room), plan->instruction_count};
    struct draft draft = {REGION_NEW(region, struct atp_instruction, room), 0};
    (void)random_program_offsets(model, changes.offsets);
    memcpy(best.items, plan->program, best.count * sizeof(*best.items));
    int64_t best_ns = judge(&changes, plan, &best);
    for (uint32_t i = 0; i < tries; i++) {
        memcpy(draft.items, best.items, best.count * sizeof(*best.items));
        draft.count = best.count;
        for (uint32_t left = 1 + random_below(random, 2); left > 0; left--) {
            switch (random_below(random, 6)) {
            case 0:
                take_some(&draft, random);
                break;
            case 1:
                send_away(&changes, &draft, random);
                break;
            case 2:
                change_way(&changes, &draft, random);
                break;
            default:
                move_one(&draft, random);
                break;
            }
        }
        int64_t ns = judge(&changes, plan, &draft);
        if (ns <= best_ns) {
            struct draft swap = best;
            best = draft;
            draft = swap;
            best_ns = ns;
        }
    }
    return judge(&changes, plan, &best);
}
