/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The checker against a machine with real bytes: whatever the checker accepts reads the right bytes
 * at every timing, however the program came about. Good programs are broken in every small way; the
 * numbers in their headers are brought up to date first, so that only the rules of the program can
 * refuse them.
 */
#include "assert_plan.h"
#include "byte_machine.h"
#include "random.h"
#include "random_plan.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

/* How the mutants fared. `seen` counts refused ones that the machine finds wrong, too. */
struct tally {
    uint32_t accepted, refused, seen;
};

static void judge(struct plan_builder *builder, struct tally *tally, const char *how, uint64_t seed)
{
    struct atp_error err = {0};
    plan_builder_seal(builder);
    enum atp_status status = atp_plan_check(&builder->plan, &err);
    bool agrees = byte_machine_always_agrees(&builder->plan);
    ck_assert_msg(status == ATP_OK || status == ATP_ERR_INVALID, "%s", err.text);
    ck_assert_msg(status != ATP_OK || agrees, "accepted, but reads wrong bytes: %s, seed %llu", how,
                  (unsigned long long)seed);
    tally->accepted += status == ATP_OK;
    tally->refused += status != ATP_OK;
    tally->seen += !agrees;
}

static void delete_each(struct plan_builder *builder, struct tally *tally, uint64_t seed)
{
    for (uint32_t i = 0; i < builder->plan.instruction_count; i++) {
        struct atp_instruction in = builder->program[i];
        char how[64];
        (void)snprintf(how, sizeof(how), "without program[%u] %s", i, atp_op_name(in.op));
        plan_builder_remove(builder, i);
        judge(builder, tally, how, seed);
        plan_builder_insert(builder, i, in.op, in.id, in.offset);
    }
}

static void swap_each(struct plan_builder *builder, struct tally *tally, uint64_t seed)
{
    for (uint32_t i = 0; i + 1 < builder->plan.instruction_count; i++) {
        char how[64];
        (void)snprintf(how, sizeof(how), "program[%u] and the next in the other order", i);
        plan_builder_move(builder, i + 1, i);
        judge(builder, tally, how, seed);
        plan_builder_move(builder, i + 1, i);
    }
}

static uint32_t find_after(const struct plan_builder *builder, uint32_t from, enum atp_op op,
                           uint32_t id)
{
    while (builder->program[from].op != op || builder->program[from].id != id) {
        from++;
    }
    return from;
}

/* Frees a tensor in place of evicting it: an older host copy, if it has one, comes back later. */
static void skip_each_eviction(struct plan_builder *builder, struct tally *tally, uint64_t seed)
{
    for (uint32_t i = 0; i < builder->plan.instruction_count; i++) {
        struct atp_instruction in = builder->program[i];
        char how[64];
        if (in.op != ATP_OP_EVICT) {
            continue;
        }
        (void)snprintf(how, sizeof(how), "a free in place of the eviction in program[%u]", i);
        uint32_t evicted = find_after(builder, i, ATP_OP_EVICTED, in.id);
        builder->program[evicted].op = ATP_OP_FREE;
        plan_builder_remove(builder, i);
        judge(builder, tally, how, seed);
        plan_builder_insert(builder, i, in.op, in.id, in.offset);
        builder->program[evicted].op = ATP_OP_EVICTED;
    }
}

static void mutate_once(struct plan_builder *builder, struct random *random)
{
    uint32_t count = builder->plan.instruction_count, at = random_below(random, count);
    struct atp_instruction other = builder->program[random_below(random, count)];
    switch (random_below(random, 6)) {
    case 0:
        plan_builder_remove(builder, at);
        break;
    case 1: /* near, so that many are legal */
        plan_builder_move(builder, at, at - random_below(random, at < 6 ? at + 1 : 6));
        break;
    case 2:
        plan_builder_insert(builder, at, other.op, other.id, other.offset);
        break;
    case 3:
        builder->program[at].offset = other.offset;
        break;
    case 4:
        builder->program[at].id = other.id;
        break;
    default: /* any operation on a tensor or step that the program knows */
        builder->program[at].op = (enum atp_op)random_below(random, ATP_OP_COUNT);
        break;
    }
}

/* Ids of steps and tensors share their numbers; what cannot be one becomes the last. */
static void clamp_ids(struct plan_builder *builder)
{
    const struct atp_model *model = &builder->plan.model;
    for (uint32_t i = 0; i < builder->plan.instruction_count; i++) {
        struct atp_instruction *in = &builder->program[i];
        bool is_work = in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN;
        uint32_t limit = is_work ? model->step_count : model->tensor_count;
        in->id = in->id < limit ? in->id : limit - 1;
    }
}

START_TEST(the_machine_agrees_with_good_plans)
{
    struct plan_builder *rich = plan_builder_rich();
    assert_accepted(rich);
    ck_assert(byte_machine_always_agrees(&rich->plan));
    plan_builder_destroy(rich);
}
END_TEST

START_TEST(the_machine_sees_a_missing_wait_at_one_timing_only)
{
    struct plan_builder *rich = plan_builder_rich();
    plan_builder_remove(rich, plan_builder_find(rich, ATP_OP_RESTORED, RICH_X, 0));
    ck_assert(byte_machine_agrees(&rich->plan, (struct byte_timing){false, false}));
    ck_assert(!byte_machine_agrees(&rich->plan, (struct byte_timing){false, true}));
    plan_builder_destroy(rich);
}
END_TEST

START_TEST(the_machine_sees_a_write_during_an_eviction_at_one_timing_only)
{
    struct plan_builder *b = plan_builder_create("race");
    uint32_t t = plan_builder_tensor(b, "t", 8);
    plan_builder_step(b, ATP_PHASE_FORWARD, "first", NO_IDS, IDS(t));
    plan_builder_step(b, ATP_PHASE_FORWARD, "second", IDS(t), IDS(t));
    plan_builder_step(b, ATP_PHASE_BACKWARD, "last", IDS(t), NO_IDS);
    plan_builder_add(b, ATP_OP_ALLOC, t, 0);
    plan_builder_add(b, ATP_OP_RUN, 0, 0);
    plan_builder_add(b, ATP_OP_EVICT, t, 0);
    plan_builder_add(b, ATP_OP_RUN, 1, 0);
    plan_builder_add(b, ATP_OP_EVICTED, t, 0);
    plan_builder_add(b, ATP_OP_RESTORE, t, 0);
    plan_builder_add(b, ATP_OP_RESTORED, t, 0);
    plan_builder_add(b, ATP_OP_RUN, 2, 0);
    plan_builder_add(b, ATP_OP_FREE, t, 0);
    plan_builder_seal(b);
    ck_assert(byte_machine_agrees(&b->plan, (struct byte_timing){true, false}));
    ck_assert(!byte_machine_agrees(&b->plan, (struct byte_timing){false, false}));
    assert_refused(b, 3, "\"t\" is written while it is still being evicted");
    plan_builder_destroy(b);
}
END_TEST

START_TEST(random_plans_are_good)
{
    uint32_t ops[ATP_OP_COUNT] = {0};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct plan_builder *b = random_plan(seed, 2 + (uint32_t)(seed % 14));
        assert_accepted(b);
        ck_assert_msg(byte_machine_always_agrees(&b->plan), "seed %llu", (unsigned long long)seed);
        for (uint32_t i = 0; i < b->plan.instruction_count; i++) {
            ops[b->program[i].op]++;
        }
        plan_builder_destroy(b);
    }
    for (uint32_t op = 0; op < ATP_OP_COUNT; op++) {
        ck_assert_msg(ops[op] > 500, "only %u of %s", ops[op], atp_op_name((enum atp_op)op));
    }
}
END_TEST

START_TEST(every_deletion_and_every_swap_of_neighbours_is_refused_or_harmless)
{
    struct plan_builder *rich = plan_builder_rich();
    struct tally deleted = {0}, swapped = {0};
    delete_each(rich, &deleted, 0);
    swap_each(rich, &swapped, 0);
    /* Each instruction of this plan is needed. */
    ck_assert_uint_eq(deleted.accepted, 0);
    ck_assert_uint_gt(swapped.accepted, 0);
    ck_assert_uint_gt(swapped.seen, 0);
    plan_builder_destroy(rich);
}
END_TEST

START_TEST(small_damage_to_random_plans_is_refused_or_harmless)
{
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct plan_builder *b = random_plan(seed, 2 + (uint32_t)(seed % 6));
        delete_each(b, &tally, seed);
        swap_each(b, &tally, seed);
        plan_builder_destroy(b);
    }
    (void)printf("deletions and swaps: %u accepted, %u refused, %u read wrong bytes\n",
                 tally.accepted, tally.refused, tally.seen);
    ck_assert_uint_gt(tally.accepted, 100);
    ck_assert_uint_gt(tally.seen, 100);
}
END_TEST

START_TEST(a_free_in_place_of_an_eviction_is_refused_or_harmless)
{
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct plan_builder *b = random_plan(seed, 2 + (uint32_t)(seed % 10));
        skip_each_eviction(b, &tally, seed);
        plan_builder_destroy(b);
    }
    (void)printf("skipped evictions: %u accepted, %u refused, %u read wrong bytes\n",
                 tally.accepted, tally.refused, tally.seen);
    ck_assert_uint_gt(tally.accepted, 100);
    ck_assert_uint_gt(tally.seen, 100);
}
END_TEST

START_TEST(double_damage_to_random_plans_is_refused_or_harmless)
{
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct plan_builder *b = random_plan(seed % 200, 2 + (uint32_t)(seed % 200 % 6));
        struct random random = {seed + UINT64_C(1000000)};
        mutate_once(b, &random);
        mutate_once(b, &random);
        clamp_ids(b);
        judge(b, &tally, "two mutations", seed);
        plan_builder_destroy(b);
    }
    (void)printf("double mutations: %u accepted, %u refused, %u read wrong bytes\n", tally.accepted,
                 tally.refused, tally.seen);
    ck_assert_uint_gt(tally.accepted, 100);
    ck_assert_uint_gt(tally.seen, 10000);
}
END_TEST

/* A number that is more often near an edge than not. */
static uint64_t odd_number(struct random *random)
{
    static const uint64_t edges[] = {0, 1, 8, UINT32_MAX, UINT64_C(1) << 62, UINT64_MAX};
    return edges[random_below(random, 6)] + (random_chance(random, 30) ? random_next(random) : 0);
}

static void scramble(struct plan_builder *builder, struct random *random)
{
    struct atp_plan *plan = &builder->plan;
    struct atp_instruction *in = &builder->program[random_below(random, plan->instruction_count)];
    struct atp_step *step = &builder->steps[random_below(random, plan->model.step_count)];
    uint32_t tensor = random_below(random, plan->model.tensor_count);
    uint64_t number = odd_number(random);
    int small = (int)random_below(random, 12) - 2;
    switch (random_below(random, 10)) {
    case 0:
        memcpy(&in->op, &small, sizeof(small));
        break;
    case 1:
        in->id = (uint32_t)number;
        break;
    case 2:
        in->offset = number;
        break;
    case 3:
        memcpy(&step->phase, &small, sizeof(small));
        break;
    case 4:
        ((uint32_t *)step->writes)[0] = (uint32_t)number;
        break;
    case 5:
        builder->tensors[tensor].bytes = number;
        break;
    case 6:
        step->workspace_bytes = number;
        break;
    case 7:
        plan->arena_bytes = number;
        plan->budget_bytes = UINT64_MAX;
        break;
    case 8:
        plan->alignment_bytes = number;
        break;
    default:
        memcpy(&builder->decisions[tensor], &small, sizeof(small));
        break;
    }
}

/* The sanitizers are the judges here. */
START_TEST(any_plan_is_accepted_or_refused_in_words)
{
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct plan_builder *b = random_plan(seed % 50, 2 + (uint32_t)(seed % 50 % 6));
        struct random random = {seed + UINT64_C(2000000)};
        struct atp_error err = {0};
        for (uint32_t i = 1 + random_below(&random, 3); i > 0; i--) {
            scramble(b, &random);
        }
        if (atp_model_check(&b->plan.model, NULL, NULL) == ATP_OK) {
            atp_model_fingerprint(&b->plan.model, b->plan.fingerprint);
        }
        if (atp_plan_check(&b->plan, &err) != ATP_OK) {
            refused++;
            ck_assert_int_eq(err.status, ATP_ERR_INVALID);
            ck_assert_uint_gt(strlen(err.text), 10);
            ck_assert(err.instruction == ATP_NONE || err.instruction < b->plan.instruction_count);
        }
        plan_builder_destroy(b);
    }
    ck_assert_uint_gt(refused, 10000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_machine_agrees_with_good_plans,
        the_machine_sees_a_missing_wait_at_one_timing_only,
        the_machine_sees_a_write_during_an_eviction_at_one_timing_only,
        random_plans_are_good,
        every_deletion_and_every_swap_of_neighbours_is_refused_or_harmless,
        small_damage_to_random_plans_is_refused_or_harmless,
        a_free_in_place_of_an_eviction_is_refused_or_harmless,
        double_damage_to_random_plans_is_refused_or_harmless,
        any_plan_is_accepted_or_refused_in_words,
    };
    return RUN_TESTS("mutation", tests, NULL, NULL);
}
