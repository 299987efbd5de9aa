/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lifetimes are counted in actions: a residence owns its bytes from its alloc or restore up to its
 * free or evicted, a workspace for its one op, a host copy from its evict up to the last restored
 * that reads it. Two placements, one pass that writes instructions.
 */
#include "assemble.h"

#include "place.h"

#include <string.h>

struct lives {
    uint32_t *first, *end;           /* per residence, on the device */
    uint32_t *host_first, *host_end; /* per residence, of the host copy it leaves */
    uint32_t *op_action;             /* per op */
};

static void find_lives(const struct sequence *sequence, const struct timeline *timeline,
                       struct region *region, struct lives *lives)
{
    uint32_t count = sequence->residence_count;
    lives->first = REGION_NEW(region, uint32_t, count);
    lives->end = REGION_NEW(region, uint32_t, count);
    lives->host_first = REGION_NEW(region, uint32_t, count);
    lives->host_end = REGION_NEW(region, uint32_t, count);
    lives->op_action = REGION_NEW(region, uint32_t, sequence->op_count);
    for (uint32_t i = 0; i < timeline->action_count; i++) {
        uint32_t id = timeline->actions[i].id;
        switch (timeline->actions[i].kind) {
        case ACTION_ALLOC:
        case ACTION_RESTORE:
            lives->first[id] = i;
            break;
        case ACTION_FREE:
        case ACTION_EVICTED:
            lives->end[id] = i;
            break;
        case ACTION_EVICT:
            lives->host_first[id] = i;
            break;
        case ACTION_RESTORED:
            lives->host_end[sequence->residences[id].copy] = i + 1;
            break;
        case ACTION_OP:
            lives->op_action[id] = i;
            break;
        }
    }
}

static void place_device(const struct problem *problem, const struct sequence *sequence,
                         const struct lives *lives, uint64_t place_work, struct region *region,
                         struct place_result *out)
{
    uint32_t count = sequence->residence_count;
    struct place_block *blocks =
        REGION_NEW(region, struct place_block, (size_t)count + sequence->op_count);
    for (uint32_t r = 0; r < count; r++) {
        blocks[r] = (struct place_block){lives->first[r], lives->end[r],
                                         problem->tensor_bytes[sequence->residences[r].tensor]};
    }
    for (uint32_t op = 0; op < sequence->op_count; op++) {
        uint32_t step = sequence->ops[op].step;
        blocks[count + op] =
            (struct place_block){lives->op_action[op], lives->op_action[op] + 1,
                                 step == ATP_NONE ? 0 : problem->workspace_bytes[step]};
    }
    place_offsets(blocks, count + sequence->op_count, problem->arena_capacity, place_work, region,
                  out);
}

static void place_host(const struct problem *problem, const struct sequence *sequence,
                       const struct lives *lives, uint64_t place_work, struct region *region,
                       struct place_result *out)
{
    uint32_t count = sequence->residence_count;
    struct place_block *blocks = REGION_NEW(region, struct place_block, count);
    for (uint32_t r = 0; r < count; r++) {
        bool used = sequence->residences[r].by_evict;
        blocks[r] = (struct place_block){lives->host_first[r],
                                         used ? lives->host_end[r] : lives->host_first[r],
                                         problem->tensor_bytes[sequence->residences[r].tensor]};
    }
    place_offsets(blocks, count, 0, place_work, region, out);
    out->fits = out->height_bytes <= problem->host_limit;
}

/* Fills the decisions as atp/plan.h defines them. */
static void decide(const struct problem *problem, const struct sequence *sequence,
                   struct region *region, struct atp_plan *plan)
{
    enum atp_decision *decisions =
        REGION_NEW(region, enum atp_decision, problem->model->tensor_count);
    for (uint32_t r = 0; r < sequence->residence_count; r++) {
        const struct residence *residence = &sequence->residences[r];
        enum atp_decision *decision = &decisions[residence->tensor];
        if (residence->by_evict) {
            *decision = ATP_DECISION_SWAP;
        } else if (*decision == ATP_DECISION_KEEP && !residence->by_restore &&
                   residence->first_op != ATP_NONE && sequence->ops[residence->first_op].is_rerun) {
            *decision = ATP_DECISION_RECOMPUTE;
        }
    }
    plan->decisions = decisions;
}

static struct atp_instruction instruction_of(const struct problem *problem,
                                             const struct sequence *sequence,
                                             const struct action *action, const uint64_t *device,
                                             const uint64_t *host)
{
    static const enum atp_op ops[] = {
        [ACTION_ALLOC] = ATP_OP_ALLOC,       [ACTION_EVICT] = ATP_OP_EVICT,
        [ACTION_EVICTED] = ATP_OP_EVICTED,   [ACTION_RESTORE] = ATP_OP_RESTORE,
        [ACTION_RESTORED] = ATP_OP_RESTORED, [ACTION_FREE] = ATP_OP_FREE,
    };
    if (action->kind == ACTION_OP) {
        const struct op *op = &sequence->ops[action->id];
        bool has_workspace = problem->workspace_bytes[op->step] > 0;
        return (struct atp_instruction){
            op->is_rerun ? ATP_OP_RERUN : ATP_OP_RUN, op->step,
            has_workspace ? device[sequence->residence_count + action->id] : 0};
    }
    uint64_t offset = action->kind == ACTION_ALLOC || action->kind == ACTION_RESTORE
                          ? device[action->id]
                      : action->kind == ACTION_EVICT ? host[action->id]
                                                     : 0;
    return (struct atp_instruction){ops[action->kind], sequence->residences[action->id].tensor,
                                    offset};
}

static void write_program(const struct problem *problem, const struct sequence *sequence,
                          const struct timeline *timeline, const struct place_result *device,
                          const struct place_result *host, struct region *region,
                          struct atp_plan *plan)
{
    struct atp_instruction *program =
        REGION_NEW(region, struct atp_instruction, timeline->action_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < timeline->action_count; i++) {
        const struct action *action = &timeline->actions[i];
        if (action->kind == ACTION_OP && sequence->ops[action->id].step == ATP_NONE) {
            continue; /* the beginning of the iteration is not an instruction */
        }
        program[count++] =
            instruction_of(problem, sequence, action, device->offsets, host->offsets);
    }
    plan->program = program;
    plan->instruction_count = count;
}

static uint32_t find_crowded_op(const struct sequence *sequence)
{
    uint32_t crowded = 0;
    for (uint32_t op = 1; op < sequence->op_count; op++) {
        crowded = sequence->memory_bytes[op] > sequence->memory_bytes[crowded] ? op : crowded;
    }
    return crowded;
}

void assemble(const struct problem *problem, const struct sequence *sequence,
              const struct timeline *timeline, uint64_t place_work, struct region *region,
              struct atp_plan *out_plan, struct assemble_result *out_result)
{
    struct lives lives;
    struct place_result device, host;
    find_lives(sequence, timeline, region, &lives);
    place_device(problem, sequence, &lives, place_work, region, &device);
    place_host(problem, sequence, &lives, place_work, region, &host);
    *out_result = (struct assemble_result){
        .fits = device.fits && host.fits,
        .arena_bytes = device.height_bytes,
        .live_bytes = device.peak_bytes,
        .host_arena_bytes = host.height_bytes,
        .crowded_op = find_crowded_op(sequence),
    };
    if (!out_result->fits) {
        return;
    }
    *out_plan = (struct atp_plan){
        .model = *problem->model,
        .alignment_bytes = problem->alignment_bytes,
        .budget_bytes = problem->budget_bytes,
        .resident_bytes = problem->profile->resident_bytes,
        .arena_bytes = device.height_bytes,
        .host_arena_bytes = host.height_bytes,
    };
    atp_model_fingerprint(&out_plan->model, out_plan->fingerprint);
    decide(problem, sequence, region, out_plan);
    write_program(problem, sequence, timeline, &device, &host, region, out_plan);
}
