/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "scene.h"

#include <string.h>

void scene_init(struct scene *s, enum atp_host_copies copies)
{
    memset(s, 0, sizeof(*s));
    s->builder = plan_builder_rich();
    spy_backend_init(&s->spy, test_host_create(copies, 7, 300));
    toy_init(&s->toy, &s->builder->plan.model, SCENE_SALT);
    s->options = (struct atp_replay_options){.step = toy_work, .step_ctx = &s->toy, .poison = true};
}

enum atp_status scene_open(struct scene *s, bool with_plan)
{
    return atp_replay_open(with_plan ? &s->builder->plan : NULL, &s->builder->plan.model,
                           &s->spy.base, &s->options, &s->replay, &s->err);
}

void scene_finish(struct scene *s)
{
    atp_replay_close(s->replay);
    ck_assert_int_eq(s->spy.live_count, 0);
    toy_finish(&s->toy);
    spy_backend_finish(&s->spy);
    plan_builder_destroy(s->builder);
}

uint64_t scene_plain_digest(void)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(scene_open(&s, false), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    uint64_t digest = toy_digest(&s.toy);
    ck_assert_uint_eq(s.toy.rerun_count, 0);
    scene_finish(&s);
    return digest;
}

enum atp_status scene_drive(struct scene *s)
{
    struct atp_step_call call = {.replay = s->replay, .step = ATP_NONE};
    const struct atp_model *model = &s->builder->plan.model;
    enum atp_status status = atp_replay_begin_iteration(s->replay, &s->err);
    if (status == ATP_OK) {
        status = toy_work(&s->toy, &call, &s->err);
    }
    for (uint32_t step = 0; status == ATP_OK && step < model->step_count; step++) {
        status = atp_replay_begin_step(s->replay, step, &call, &s->err);
        if (status == ATP_OK) {
            ck_assert_uint_eq(call.step, step);
            ck_assert(!call.is_rerun);
            status = toy_work(&s->toy, &call, &s->err);
        }
        if (status == ATP_OK) {
            status = atp_replay_end_step(s->replay, step, &s->err);
        }
    }
    return status == ATP_OK ? atp_replay_end_iteration(s->replay, &s->err) : status;
}

enum atp_status do_nothing(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    (void)ctx;
    (void)call;
    (void)err;
    return ATP_OK;
}
