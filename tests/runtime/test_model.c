/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <atp/model.h>

#include "assert_error.h"
#include "plan_builder.h"
#include "run_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct plan_builder *rich;
static struct atp_model *model;

static void set_up(void)
{
    rich = plan_builder_rich();
    model = &rich->plan.model;
}

static void tear_down(void)
{
    plan_builder_destroy(rich);
}

static void assert_accepted(void)
{
    struct atp_error err = {0};
    assert_ok(atp_model_check(model, NULL, &err), err);
}

static void assert_refused(enum atp_model_part part, uint32_t index, uint32_t item,
                           const char *text)
{
    struct atp_error err = {0};
    struct atp_model_place place = {.part = ATP_MODEL_WHOLE, .index = 77, .item = 77};
    enum atp_status status = atp_model_check(model, &place, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, text);
    ck_assert_int_eq(place.part, part);
    ck_assert_uint_eq(place.index, index);
    ck_assert_uint_eq(place.item, item);
    ck_assert_int_eq(atp_model_check(model, NULL, NULL), ATP_ERR_INVALID);
}

/* The ids of a step are the builder's own memory. */
static uint32_t *reads(uint32_t step)
{
    return (uint32_t *)rich->steps[step].reads;
}

static uint32_t *writes(uint32_t step)
{
    return (uint32_t *)rich->steps[step].writes;
}

static void rename_text(const char **name, const char *to)
{
    free((void *)*name);
    *name = strdup(to);
    ck_assert_ptr_nonnull(*name);
}

START_TEST(accepts_a_good_model)
{
    assert_accepted();
}
END_TEST

START_TEST(accepts_one_step_without_tensors)
{
    struct atp_step step = {.name = "s", .phase = ATP_PHASE_UPDATE};
    struct atp_model tiny = {.name = "tiny", .step_count = 1, .steps = &step};
    struct atp_error err = {0};
    assert_ok(atp_model_check(&tiny, NULL, &err), err);
}
END_TEST

START_TEST(accepts_one_name_in_two_phases)
{
    ck_assert_str_eq(rich->steps[RICH_F0].name, rich->steps[RICH_B0].name);
    assert_accepted();
}
END_TEST

START_TEST(rejects_a_model_without_a_name)
{
    rename_text(&model->name, "");
    assert_refused(ATP_MODEL_WHOLE, 0, 0, "model: the name is empty");
}
END_TEST

START_TEST(rejects_a_model_without_steps)
{
    uint32_t count = model->step_count;
    model->step_count = 0;
    assert_refused(ATP_MODEL_WHOLE, 0, 0, "model: there is no step");
    model->step_count = count;
}
END_TEST

START_TEST(rejects_missing_arrays)
{
    model->steps = NULL;
    assert_refused(ATP_MODEL_WHOLE, 0, 0, "model: steps is NULL");
    model->steps = rich->steps;
    model->tensors = NULL;
    assert_refused(ATP_MODEL_WHOLE, 0, 0, "model: tensors is NULL");
}
END_TEST

START_TEST(rejects_missing_ids)
{
    free(reads(RICH_F1));
    rich->steps[RICH_F1].reads = NULL;
    assert_refused(ATP_MODEL_STEP, RICH_F1, 0, "steps[1]: reads is NULL, expected 1 ids");
}
END_TEST

START_TEST(rejects_an_empty_tensor_name)
{
    rename_text(&rich->tensors[RICH_ACC].name, "");
    assert_refused(ATP_MODEL_TENSOR, RICH_ACC, 0, "tensors[2]: the name is empty");
}
END_TEST

START_TEST(rejects_a_missing_step_name)
{
    free((void *)rich->steps[RICH_F2].name);
    rich->steps[RICH_F2].name = NULL;
    assert_refused(ATP_MODEL_STEP, RICH_F2, 0, "steps[2]: the name is empty");
}
END_TEST

START_TEST(rejects_a_tensor_name_used_twice_at_its_second_use)
{
    rename_text(&rich->tensors[RICH_W].name, "a");
    rename_text(&rich->tensors[RICH_C].name, "a");
    assert_refused(ATP_MODEL_TENSOR, RICH_C, 0, "tensors[5]: the name \"a\" is that of tensors[1]");
}
END_TEST

START_TEST(rejects_a_step_name_used_twice_in_a_phase)
{
    rename_text(&rich->steps[RICH_B1].name, "l3");
    assert_refused(ATP_MODEL_STEP, RICH_B1, 0,
                   "steps[6]: the name \"l3\" is that of steps[4] already, in the same phase");
}
END_TEST

START_TEST(rejects_phases_out_of_order)
{
    rich->steps[RICH_F2].phase = ATP_PHASE_BACKWARD;
    assert_refused(ATP_MODEL_STEP, RICH_F3, 0, "steps[3]: phase forward follows phase backward");
}
END_TEST

START_TEST(rejects_a_phase_out_of_range)
{
    int unknown = 3;
    memcpy(&rich->steps[RICH_UP].phase, &unknown, sizeof(unknown));
    assert_refused(ATP_MODEL_STEP, RICH_UP, 0, "steps[8]: no phase has number 3");
}
END_TEST

START_TEST(rejects_ids_out_of_range)
{
    reads(RICH_B2)[1] = 9;
    assert_refused(ATP_MODEL_STEP_READ, RICH_B2, 1,
                   "steps[5].reads[1]: no tensor has id 9, there are 9");
    reads(RICH_B2)[1] = RICH_B;
    writes(RICH_F2)[1] = ATP_NONE;
    assert_refused(ATP_MODEL_STEP_WRITE, RICH_F2, 1, "steps[2].writes[1]: no tensor has id");
}
END_TEST

START_TEST(rejects_a_tensor_listed_twice)
{
    reads(RICH_B2)[2] = RICH_G;
    assert_refused(ATP_MODEL_STEP_READ, RICH_B2, 2, "steps[5].reads[2]: \"g\" is listed twice");
    reads(RICH_B2)[2] = RICH_ACC;
    writes(RICH_F0)[1] = RICH_A;
    assert_refused(ATP_MODEL_STEP_WRITE, RICH_F0, 1, "steps[0].writes[1]: \"a\" is listed twice");
}
END_TEST

START_TEST(rejects_a_read_before_the_first_write)
{
    reads(RICH_F1)[0] = RICH_D;
    assert_refused(ATP_MODEL_STEP_READ, RICH_F1, 0,
                   "steps[1].reads[0]: \"d\" is read before the first step that writes it");
}
END_TEST

START_TEST(rejects_an_update_in_place_by_the_first_writer)
{
    reads(RICH_F3)[0] = RICH_D;
    assert_refused(ATP_MODEL_STEP_READ, RICH_F3, 0, "\"d\" is read before the first step");
}
END_TEST

START_TEST(rejects_sizes_whose_sum_leaves_the_range)
{
    rich->tensors[RICH_X].bytes = (UINT64_C(1) << 62) - 1000;
    assert_accepted();
    rich->tensors[RICH_A].bytes = 1001;
    assert_refused(ATP_MODEL_TENSOR, RICH_A, 0, "tensors[1]: with its 1001 bytes the sum");
    rich->tensors[RICH_A].bytes = UINT64_MAX;
    assert_refused(ATP_MODEL_TENSOR, RICH_A, 0, "the sum of all sizes leaves 2^62");
    rich->tensors[RICH_A].bytes = 64;
    rich->steps[RICH_F3].workspace_bytes = 1000;
    assert_refused(ATP_MODEL_STEP, RICH_F3, 0, "steps[3]: with its workspace of 1000 bytes");
}
END_TEST

static void assert_fingerprint_changes(const char *what, uint8_t last[32])
{
    uint8_t digest[32];
    atp_model_fingerprint(model, digest);
    ck_assert_msg(memcmp(digest, last, 32) != 0, "%s does not count", what);
    memcpy(last, digest, 32);
}

START_TEST(fingerprint_counts_every_part_of_the_structure)
{
    uint8_t digest[32] = {0};
    assert_fingerprint_changes("anything", digest);
    rename_text(&rich->tensors[RICH_W].name, "v");
    assert_fingerprint_changes("a tensor's name", digest);
    rich->tensors[RICH_W].bytes++;
    assert_fingerprint_changes("a tensor's size", digest);
    rename_text(&rich->steps[RICH_UP].name, "sgd");
    assert_fingerprint_changes("a step's name", digest);
    rich->steps[RICH_UP].phase = ATP_PHASE_BACKWARD;
    assert_fingerprint_changes("a step's phase", digest);
    rich->steps[RICH_F1].rerun_never = true;
    assert_fingerprint_changes("rerun", digest);
    rich->steps[RICH_F1].workspace_bytes++;
    assert_fingerprint_changes("a workspace", digest);
    reads(RICH_UP)[0] = RICH_X;
    assert_fingerprint_changes("a read", digest);
    writes(RICH_B0)[0] = RICH_G;
    assert_fingerprint_changes("a write", digest);
    model->step_count--;
    assert_fingerprint_changes("the number of steps", digest);
    model->step_count++;
}
END_TEST

START_TEST(fingerprint_tells_apart_what_only_runs_together)
{
    /* The same letters and ids, cut in two ways. */
    struct atp_tensor cut[] = {{"ab", 1}, {"c", 1}}, other_cut[] = {{"a", 1}, {"bc", 1}};
    uint32_t ids[] = {0, 1};
    struct atp_step reads_two = {.name = "s", .read_count = 2, .reads = ids};
    struct atp_step reads_one = {
        .name = "s", .read_count = 1, .reads = ids, .write_count = 1, .writes = ids + 1};
    struct atp_model models[] = {
        {.name = "m", .tensor_count = 2, .tensors = cut, .step_count = 1, .steps = &reads_two},
        {.name = "m",
         .tensor_count = 2,
         .tensors = other_cut,
         .step_count = 1,
         .steps = &reads_two},
        {.name = "m", .tensor_count = 2, .tensors = cut, .step_count = 1, .steps = &reads_one},
    };
    uint8_t digests[3][32];
    for (size_t i = 0; i < 3; i++) {
        atp_model_fingerprint(&models[i], digests[i]);
    }
    ck_assert_mem_ne(digests[0], digests[1], 32);
    ck_assert_mem_ne(digests[0], digests[2], 32);
}
END_TEST

START_TEST(fingerprint_does_not_count_name_and_batch_size)
{
    uint8_t before[32], after[32];
    atp_model_fingerprint(model, before);
    rename_text(&model->name, "another");
    model->batch_size = 99;
    atp_model_fingerprint(model, after);
    ck_assert_mem_eq(before, after, 32);
}
END_TEST

/* The serialisation at the top of model.c, written out by hand for a model of one tensor, and
 * hashed by another program: plans of older versions must stay good. */
START_TEST(fingerprint_never_changes)
{
    static const uint32_t id = 0;
    struct atp_tensor tensor = {"x", 258};
    struct atp_step step = {.name = "f",
                            .phase = ATP_PHASE_BACKWARD,
                            .rerun_never = true,
                            .read_count = 1,
                            .reads = &id,
                            .workspace_bytes = 3};
    struct atp_model one = {
        .name = "one", .tensor_count = 1, .tensors = &tensor, .step_count = 1, .steps = &step};
    uint8_t digest[32];
    char text[65];
    atp_model_fingerprint(&one, digest);
    for (size_t i = 0; i < 32; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    ck_assert_str_eq(text, "6460aa4ab0f58dd444c35e76a12a1c26464caba7e07fa577b63176be3581d1b8");
}
END_TEST

static struct plan_builder *other;

static void assert_differs(const char *text)
{
    struct atp_error err = {0};
    enum atp_status status =
        atp_model_compare(model, "the plan", &other->plan.model, "the program", &err);
    assert_error(status, err, ATP_ERR_MISMATCH, ATP_NONE, text);
    plan_builder_destroy(other);
    other = plan_builder_rich();
}

START_TEST(compare_accepts_the_same_structure)
{
    struct atp_error err = {0};
    other = plan_builder_rich();
    rename_text(&other->plan.model.name, "another");
    assert_ok(atp_model_compare(model, "the plan", &other->plan.model, "the program", &err), err);
    plan_builder_destroy(other);
}
END_TEST

START_TEST(compare_names_the_first_difference_of_tensors)
{
    other = plan_builder_rich();
    rename_text(&other->tensors[RICH_B].name, "beta");
    assert_differs("tensors[3]: name is \"b\" in the plan, \"beta\" in the program");
    other->tensors[RICH_B].bytes = 65;
    other->tensors[RICH_W].bytes = 66;
    assert_differs("tensors[3] \"b\": size is 64 bytes in the plan, 65 in the program");
    plan_builder_tensor(other, "extra", 1);
    assert_differs("tensors: their number is 9 in the plan, 10 in the program");
    plan_builder_destroy(other);
}
END_TEST

START_TEST(compare_names_the_first_difference_of_steps)
{
    other = plan_builder_rich();
    rename_text(&other->steps[RICH_B1].name, "h1");
    assert_differs("steps[6]: name is \"l1\" in the plan, \"h1\" in the program");
    other->steps[RICH_UP].phase = ATP_PHASE_BACKWARD;
    assert_differs("steps[8]: phase is \"update\" in the plan, \"backward\" in the program");
    other->steps[RICH_F3].rerun_never = false;
    assert_differs("steps[3] \"l3\" forward: rerun is \"never\" in the plan, \"allowed\" in the "
                   "program");
    other->steps[RICH_F1].workspace_bytes = 1024;
    assert_differs("steps[1] \"l1\" forward: workspace is 32 bytes in the plan, 1024 in the "
                   "program");
    ((uint32_t *)other->steps[RICH_B2].reads)[2] = RICH_M;
    assert_differs(
        "steps[5] \"l2\" backward: reads[2] is \"acc\" in the plan, \"m\" in the program");
    other->steps[RICH_B2].read_count = 2;
    assert_differs("steps[5] \"l2\" backward: number of reads is 3 in the plan, 2 in the program");
    ((uint32_t *)other->steps[RICH_F3].writes)[0] = RICH_W;
    assert_differs("steps[3] \"l3\" forward: writes[0] is \"d\" in the plan, \"w\" in the program");
    plan_builder_step(other, ATP_PHASE_UPDATE, "more", NO_IDS, NO_IDS);
    assert_differs("steps: their number is 9 in the plan, 10 in the program");
    plan_builder_destroy(other);
}
END_TEST

/* Quadratic work on this many names takes minutes. */
START_TEST(checks_a_large_model_in_a_moment)
{
    enum { STEPS = 5000, TENSORS = 20000 };
    struct plan_builder *b = plan_builder_create("large");
    char name[32];
    for (uint32_t t = 0; t < TENSORS; t++) {
        (void)snprintf(name, sizeof(name), "a_long_common_prefix_%u", t);
        plan_builder_tensor(b, name, 64);
    }
    for (uint32_t s = 0; s < STEPS; s++) {
        (void)snprintf(name, sizeof(name), "another_prefix_%u", s);
        plan_builder_step(b, ATP_PHASE_FORWARD, name, NO_IDS,
                          IDS(4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3));
    }
    struct atp_error err = {0};
    clock_t start = clock();
    assert_ok(atp_model_check(&b->plan.model, NULL, &err), err);
    double ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
    (void)printf("atp_model_check: %d steps, %d tensors: %.1f ms\n", STEPS, TENSORS, ms);
    ck_assert(ms < 1000);
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        accepts_a_good_model,
        accepts_one_step_without_tensors,
        accepts_one_name_in_two_phases,
        rejects_a_model_without_a_name,
        rejects_a_model_without_steps,
        rejects_missing_arrays,
        rejects_missing_ids,
        rejects_an_empty_tensor_name,
        rejects_a_missing_step_name,
        rejects_a_tensor_name_used_twice_at_its_second_use,
        rejects_a_step_name_used_twice_in_a_phase,
        rejects_phases_out_of_order,
        rejects_a_phase_out_of_range,
        rejects_ids_out_of_range,
        rejects_a_tensor_listed_twice,
        rejects_a_read_before_the_first_write,
        rejects_an_update_in_place_by_the_first_writer,
        rejects_sizes_whose_sum_leaves_the_range,
        fingerprint_counts_every_part_of_the_structure,
        fingerprint_tells_apart_what_only_runs_together,
        fingerprint_does_not_count_name_and_batch_size,
        fingerprint_never_changes,
        compare_accepts_the_same_structure,
        compare_names_the_first_difference_of_tensors,
        compare_names_the_first_difference_of_steps,
        checks_a_large_model_in_a_moment,
    };
    return RUN_TESTS("model", tests, set_up, tear_down);
}
