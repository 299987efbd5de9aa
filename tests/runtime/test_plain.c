/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assert_error.h"
#include "plain.h"
#include "plan_builder.h"

/* The plain plan of a builder's model, in memory of exactly the size that it asks for. */
static struct plain *make_plain(const struct atp_model *model)
{
    struct atp_error err = {0};
    struct plain *plain = (struct plain *)calloc(1, sizeof(*plain));
    struct carve carve = {0};
    ck_assert_ptr_nonnull(plain);
    plain_lay_out(plain, model, &carve);
    ck_assert(!carve.overflowed);
    carve = (struct carve){.base = (unsigned char *)malloc((size_t)carve.used_bytes)};
    ck_assert_ptr_nonnull(carve.base);
    memset(carve.base, 0xEE, 1);
    plain_lay_out(plain, model, &carve);
    assert_ok(plain_build(plain, model, &err), err);
    return plain;
}

static void drop_plain(struct plain *plain)
{
    free(plain->program); /* the first array is the block */
    free(plain);
}

static void assert_sound(const struct plain *plain)
{
    struct atp_error err = {0};
    enum atp_status status = atp_plan_check(&plain->plan, &err);
    assert_ok(status, err);
}

static void assert_instruction(const struct plain *plain, uint32_t at, enum atp_op op, uint32_t id,
                               uint64_t offset)
{
    ck_assert_uint_lt(at, plain->plan.instruction_count);
    const struct atp_instruction *instruction = &plain->plan.program[at];
    ck_assert_str_eq(atp_op_name(instruction->op), atp_op_name(op));
    ck_assert_uint_eq(instruction->id, id);
    ck_assert_uint_eq(instruction->offset, offset);
}

START_TEST(allocates_at_the_first_use_and_frees_after_the_last)
{
    struct plan_builder *b = plan_builder_create("chain");
    uint32_t x = plan_builder_tensor(b, "x", 100);
    uint32_t y = plan_builder_tensor(b, "y", 300);
    uint32_t z = plan_builder_tensor(b, "z", 10);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(x), IDS(y));
    uint32_t g = plan_builder_step(b, ATP_PHASE_BACKWARD, "g", IDS(y), IDS(z));
    struct plain *plain = make_plain(&b->plan.model);
    ck_assert_uint_eq(plain->plan.instruction_count, 8);
    assert_instruction(plain, 0, ATP_OP_ALLOC, x, 0);
    assert_instruction(plain, 1, ATP_OP_ALLOC, y, 256);
    assert_instruction(plain, 2, ATP_OP_RUN, f, 0);
    assert_instruction(plain, 3, ATP_OP_FREE, x, 0);
    assert_instruction(plain, 4, ATP_OP_ALLOC, z, 0); /* the hole that x left */
    assert_instruction(plain, 5, ATP_OP_RUN, g, 0);
    assert_instruction(plain, 6, ATP_OP_FREE, y, 0);
    assert_instruction(plain, 7, ATP_OP_FREE, z, 0);
    ck_assert_uint_eq(plain->plan.arena_bytes, 768);
    ck_assert_uint_eq(plain->plan.predicted.peak_bytes, 400);
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(gives_a_workspace_to_a_step_only_while_it_runs)
{
    struct plan_builder *b = plan_builder_create("workspace");
    uint32_t x = plan_builder_tensor(b, "x", 256);
    uint32_t y = plan_builder_tensor(b, "y", 256);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(x), NO_IDS);
    uint32_t g = plan_builder_step(b, ATP_PHASE_FORWARD, "g", IDS(x), IDS(y));
    b->steps[f].workspace_bytes = 1000;
    struct plain *plain = make_plain(&b->plan.model);
    assert_instruction(plain, 1, ATP_OP_RUN, f, 256);
    assert_instruction(plain, 2, ATP_OP_ALLOC, y, 256);
    assert_instruction(plain, 3, ATP_OP_RUN, g, 0);
    ck_assert_uint_eq(plain->plan.arena_bytes, 1280);
    ck_assert_uint_eq(plain->plan.predicted.peak_bytes, 1256);
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(merges_holes_on_both_sides)
{
    struct plan_builder *b = plan_builder_create("holes");
    uint32_t p = plan_builder_tensor(b, "p", 256);
    uint32_t q = plan_builder_tensor(b, "q", 256);
    uint32_t r = plan_builder_tensor(b, "r", 256);
    uint32_t last = plan_builder_tensor(b, "last", 256);
    uint32_t big = plan_builder_tensor(b, "big", 768);
    plan_builder_step(b, ATP_PHASE_FORWARD, "p", IDS(p), NO_IDS);
    plan_builder_step(b, ATP_PHASE_FORWARD, "r", IDS(r), NO_IDS);
    plan_builder_step(b, ATP_PHASE_FORWARD, "q", IDS(q), NO_IDS);
    plan_builder_step(b, ATP_PHASE_FORWARD, "big", IDS(last), IDS(big));
    struct plain *plain = make_plain(&b->plan.model);
    ck_assert_uint_eq(plain->plan.arena_bytes, 1024); /* big takes the room of p, q and r */
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(keeps_an_unused_input_until_the_first_step_has_run)
{
    struct plan_builder *b = plan_builder_create("unused");
    uint32_t x = plan_builder_tensor(b, "x", 8);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, NO_IDS);
    plan_builder_step(b, ATP_PHASE_FORWARD, "g", NO_IDS, NO_IDS);
    struct plain *plain = make_plain(&b->plan.model);
    assert_instruction(plain, 0, ATP_OP_ALLOC, x, 0);
    assert_instruction(plain, 1, ATP_OP_RUN, f, 0);
    assert_instruction(plain, 2, ATP_OP_FREE, x, 0);
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(frees_a_tensor_that_is_updated_in_place_once)
{
    struct plan_builder *b = plan_builder_create("in place");
    uint32_t x = plan_builder_tensor(b, "x", 0);
    uint32_t y = plan_builder_tensor(b, "y", 8);
    plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(x), IDS(y));
    plan_builder_step(b, ATP_PHASE_FORWARD, "g", IDS(y), IDS(y));
    struct plain *plain = make_plain(&b->plan.model);
    ck_assert_uint_eq(plain->plan.instruction_count, 6);
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(makes_a_sound_plan_for_a_model_of_every_kind)
{
    struct plan_builder *b = plan_builder_rich();
    struct plain *plain = make_plain(&b->plan.model);
    assert_sound(plain);
    for (uint32_t t = 0; t < b->plan.model.tensor_count; t++) {
        ck_assert_int_eq(plain->plan.decisions[t], ATP_DECISION_KEEP);
    }
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

/* xorshift: seeds in, sizes and lives out. */
static uint32_t draw(uint32_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % limit;
}

START_TEST(makes_sound_plans_for_random_models)
{
    uint32_t state = (uint32_t)_i * 7919u + 1;
    struct plan_builder *b = plan_builder_create("random");
    uint32_t tensor_count = 1 + draw(&state, 30), step_count = 1 + draw(&state, 40);
    for (uint32_t t = 0; t < tensor_count; t++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "t%u", t);
        plan_builder_tensor(b, name, draw(&state, 5) == 0 ? 0 : draw(&state, 2000));
    }
    uint32_t known_count = draw(&state, tensor_count + 1); /* those below are inputs or written */
    for (uint32_t s = 0; s < step_count; s++) {
        char name[16];
        struct ids reads = NO_IDS, writes = NO_IDS;
        (void)snprintf(name, sizeof(name), "s%u", s);
        if (known_count > 0) {
            reads = IDS(draw(&state, known_count));
        }
        if (known_count < tensor_count) {
            writes = IDS(known_count);
            known_count++;
        }
        uint32_t id = plan_builder_step(b, ATP_PHASE_FORWARD, name, reads, writes);
        b->steps[id].workspace_bytes = draw(&state, 3) == 0 ? draw(&state, 3000) : 0;
    }
    struct plain *plain = make_plain(&b->plan.model);
    assert_sound(plain);
    drop_plain(plain);
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plain");
    TCase *tests = tcase_create("plain");
    tcase_add_test(tests, allocates_at_the_first_use_and_frees_after_the_last);
    tcase_add_test(tests, gives_a_workspace_to_a_step_only_while_it_runs);
    tcase_add_test(tests, merges_holes_on_both_sides);
    tcase_add_test(tests, keeps_an_unused_input_until_the_first_step_has_run);
    tcase_add_test(tests, frees_a_tensor_that_is_updated_in_place_once);
    tcase_add_test(tests, makes_a_sound_plan_for_a_model_of_every_kind);
    tcase_add_loop_test(tests, makes_sound_plans_for_random_models, 0, 200);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
