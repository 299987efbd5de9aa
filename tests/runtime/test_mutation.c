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

int main(void)
{
    const TTest *const tests[] = {
        the_machine_agrees_with_good_plans,
        the_machine_sees_a_missing_wait_at_one_timing_only,
        the_machine_sees_a_write_during_an_eviction_at_one_timing_only,
        random_plans_are_good,
        every_deletion_and_every_swap_of_neighbours_is_refused_or_harmless,
        small_damage_to_random_plans_is_refused_or_harmless,
        double_damage_to_random_plans_is_refused_or_harmless,
    };
    return RUN_TESTS("mutation", tests, NULL, NULL);
}
