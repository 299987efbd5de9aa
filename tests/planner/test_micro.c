/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "micro.h"

#include "assert_error.h"
#include "profile_builder.h"
#include "run_tests.h"

static struct region *region;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

START_TEST(drops_update_steps_and_what_only_they_use)
{
    struct profile_builder *b = profile_builder_create(region);
    uint32_t rate = profile_builder_tensor(b, 1), x = profile_builder_tensor(b, 2);
    uint32_t g = profile_builder_tensor(b, 3), idle = profile_builder_tensor(b, 4);
    uint32_t s = profile_builder_tensor(b, 5);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 10, NO_IDS, IDS(x));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 20, IDS(x), IDS(g));
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 30, IDS(g, rate), IDS(s));
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 40, IDS(s), NO_IDS);
    b->pins[g] = PROFILE_PIN_KEEP;
    struct profile micro;
    int64_t update_ns;
    assert_ok(micro_profile(&b->profile, region, &micro, &update_ns, &err), err);
    ck_assert_int_eq(update_ns, 70);
    ck_assert_uint_eq(micro.model.step_count, 2);
    ck_assert_uint_eq(micro.model.tensor_count, 3); /* x, g, and the idle input */
    ck_assert_uint_eq(micro.model.tensors[0].bytes, b->tensors[x].bytes);
    ck_assert_uint_eq(micro.model.tensors[1].bytes, b->tensors[g].bytes);
    ck_assert_uint_eq(micro.model.tensors[2].bytes, b->tensors[idle].bytes);
    ck_assert_int_eq(micro.pins[1], PROFILE_PIN_KEEP);
    ck_assert_uint_eq(micro.model.steps[1].reads[0], 0);
    ck_assert_uint_eq(micro.model.steps[1].writes[0], 1);
    assert_ok(atp_model_check(&micro.model, NULL, &err), err);
}
END_TEST

START_TEST(changes_nothing_without_update_steps)
{
    struct profile_builder *b = profile_builder_chain(3, 10, 5, region);
    struct profile micro;
    int64_t update_ns;
    assert_ok(micro_profile(&b->profile, region, &micro, &update_ns, &err), err);
    ck_assert_int_eq(update_ns, 0);
    assert_ok(atp_model_compare(&b->profile.model, "whole", &micro.model, "micro", &err), err);
}
END_TEST

START_TEST(refuses_a_profile_of_update_steps_alone)
{
    enum atp_status status;
    struct profile_builder *b = profile_builder_create(region);
    (void)profile_builder_step(b, ATP_PHASE_UPDATE, 30, NO_IDS, NO_IDS);
    struct profile micro;
    int64_t update_ns;
    status = micro_profile(&b->profile, region, &micro, &update_ns, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, "update steps only");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        drops_update_steps_and_what_only_they_use,
        changes_nothing_without_update_steps,
        refuses_a_profile_of_update_steps_alone,
    };
    return RUN_TESTS("micro", tests, set_up, tear_down);
}
