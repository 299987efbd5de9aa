/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the checker accepts, the runtime performs. The first bytes of an input choose a good plan
 * (random_plan.h), the others damage it, four bytes a blow, so that many plans are still accepted
 * and all are strange. Accepted: the host replay with poison gives every step the bytes of the
 * plain iteration, twice in a row, with late copies and in every fourth case with copies on threads
 * too.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atp/replay.h>

#include "random_plan.h"
#include "toy_work.h"

#define HEAD_BYTES 4
#define BLOW_BYTES 4

static void insist(bool is_true, const char *what, const struct atp_error *err)
{
    if (!is_true) {
        (void)fprintf(stderr, "fuzz_replay: %s: %s\n", what, err->text);
        abort();
    }
}

/* Takes an instruction out and puts it back a little earlier or later. */
static void move(struct plan_builder *b, uint32_t at, uint32_t distance)
{
    struct atp_instruction taken = b->program[at];
    plan_builder_remove(b, at);
    uint32_t to = (at + distance) % (b->plan.instruction_count + 1);
    plan_builder_insert(b, to, taken.op, taken.id, taken.offset);
}

/* A copy out and its wait, with some instructions between them. */
static void insert_copy(struct plan_builder *b, uint32_t at, uint32_t tensor, uint32_t value)
{
    static const enum atp_op pairs[2][2] = {{ATP_OP_EVICT, ATP_OP_EVICTED},
                                            {ATP_OP_RESTORE, ATP_OP_RESTORED}};
    const enum atp_op *pair = pairs[value % 2];
    uint32_t wait = at + 1 + value / 2 % 4;
    plan_builder_insert(b, at, pair[0], tensor, (uint64_t)(value / 8) * 8);
    if (wait > b->plan.instruction_count) {
        wait = b->plan.instruction_count;
    }
    plan_builder_insert(b, wait, pair[1], tensor, 0);
}

static uint32_t id_count(const struct atp_model *model, enum atp_op op)
{
    return op == ATP_OP_RUN || op == ATP_OP_RERUN ? model->step_count : model->tensor_count;
}

/* Sealing wants ids that exist; the checker's own tests try others. */
static void insert_any(struct plan_builder *b, uint32_t at, enum atp_op op, uint32_t id,
                       uint64_t offset)
{
    bool has_offset = op != ATP_OP_FREE && op != ATP_OP_EVICTED && op != ATP_OP_RESTORED;
    plan_builder_insert(b, at, op, id % id_count(&b->plan.model, op), has_offset ? offset : 0);
}

static void strike(struct plan_builder *b, const uint8_t *blow)
{
    const struct atp_model *model = &b->plan.model;
    if (b->plan.instruction_count == 0) {
        return;
    }
    uint32_t at = (blow[1] | (uint32_t)blow[2] << 8) % b->plan.instruction_count;
    uint32_t value = blow[3];
    struct atp_instruction *instruction = &b->program[at];
    switch (blow[0] % 8) {
    case 0:
    case 1:
        move(b, at,
             value % 2 == 0 ? 1 + value / 2 % 4 : b->plan.instruction_count - 1 - value / 2 % 4);
        break;
    case 2:
    case 3:
        if (instruction->offset != 0 || instruction->op == ATP_OP_ALLOC ||
            instruction->op == ATP_OP_RESTORE || instruction->op == ATP_OP_EVICT) {
            instruction->offset = (uint64_t)value * 8;
        }
        break;
    case 4:
        insert_copy(b, at, instruction->id % model->tensor_count, value);
        break;
    case 5:
        plan_builder_remove(b, at);
        break;
    case 6:
        insert_any(b, at, (enum atp_op)(value % ATP_OP_COUNT), instruction->id,
                   instruction->offset);
        break;
    default:
        instruction->id = value % id_count(model, instruction->op);
        break;
    }
}

static uint64_t replay_digest(const struct atp_plan *plan, const struct atp_model *model,
                              enum atp_host_copies copies)
{
    struct atp_host_options host = {.copies = copies, .seed = 3, .delay_max_us = 20};
    struct atp_backend *backend;
    struct atp_replay *replay;
    struct atp_error err = {0};
    struct toy toy;
    toy_init(&toy, model, 5);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy, .poison = true};
    insist(atp_backend_host_create(&host, &backend, &err) == ATP_OK, "backend", &err);
    insist(atp_replay_open(plan, model, backend, &options, &replay, &err) == ATP_OK, "open", &err);
    insist(atp_replay_run_iteration(replay, toy_work, &err) == ATP_OK, "first iteration", &err);
    uint64_t digest = toy_digest(&toy);
    insist(atp_replay_run_iteration(replay, toy_work, &err) == ATP_OK, "second iteration", &err);
    insist(toy_digest(&toy) == digest, "the second iteration has other bytes", &err);
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    toy_finish(&toy);
    return digest;
}

bool fuzz_one(const uint8_t *data, size_t size)
{
    struct atp_error err = {0};
    if (size < HEAD_BYTES) {
        return false;
    }
    uint64_t seed = data[1] | (uint64_t)data[2] << 8 | (uint64_t)data[3] << 16;
    struct plan_builder *b = random_plan(seed, 2 + data[0] % 8);
    size_t blow_count = data[0] / 8 % 8;
    for (size_t n = 0; n < blow_count && HEAD_BYTES + (n + 1) * BLOW_BYTES <= size; n++) {
        strike(b, data + HEAD_BYTES + n * BLOW_BYTES);
    }
    plan_builder_seal(b);
    bool is_accepted = atp_plan_check(&b->plan, &err) == ATP_OK;
    if (is_accepted) {
        uint64_t plain = replay_digest(NULL, &b->plan.model, ATP_HOST_EAGER);
        uint64_t planned = replay_digest(&b->plan, &b->plan.model, ATP_HOST_LATE);
        insist(plain == planned, "late copies give other bytes than the plain iteration", &err);
        if (data[0] >> 6 == 3) {
            planned = replay_digest(&b->plan, &b->plan.model, ATP_HOST_THREADS);
            insist(plain == planned, "threads give other bytes than the plain iteration", &err);
        }
    }
    plan_builder_destroy(b);
    return is_accepted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_one(data, size);
    return 0;
}
