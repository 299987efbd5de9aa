/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "assert_error.h"
#include "backends.h"

#define SALT 41

void rig_start(struct rig *r, const struct atp_model *model, const struct fake_options *options)
{
    memset(r, 0, sizeof(*r));
    fake_cuda_start(options);
    fake_kernels_init(&r->kernels, model, SALT);
    r->options = (struct atp_replay_options){
        .step = fake_kernels_step, .step_ctx = &r->kernels, .poison = true};
}

enum atp_status rig_open(struct rig *r, const struct atp_plan *plan)
{
    enum atp_status status = ATP_OK;
    if (r->backend == NULL) {
        status = cuda_backend_create(fake_cuda_api(), 0, &r->backend, &r->err);
    }
    if (status == ATP_OK) {
        status = atp_replay_open(plan, r->kernels.toy.model, r->backend, &r->options, &r->replay,
                                 &r->err);
    }
    return status;
}

void rig_close(struct rig *r)
{
    atp_replay_close(r->replay);
    r->replay = NULL;
}

void rig_finish(struct rig *r)
{
    atp_replay_close(r->replay);
    atp_backend_destroy(r->backend);
    fake_cuda_finish(&r->report);
    fake_kernels_finish(&r->kernels);
    ck_assert_ptr_null(fake_cuda_current());
}

void rig_iterate(struct rig *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_ok(atp_replay_run_iteration(r->replay, fake_kernels_step, &r->err), r->err);
    }
}

void rig_finish_clean(struct rig *r)
{
    rig_finish(r);
    ck_assert_msg(r->report.total == 0, "%s", r->report.text);
    ck_assert_msg(r->kernels.late.status == ATP_OK, "%s", r->kernels.late.text);
}

uint64_t rig_plain_digest(const struct atp_model *model)
{
    struct atp_backend *backend = test_host_create(ATP_HOST_EAGER, 0, 0);
    struct atp_replay *replay;
    struct atp_error err;
    struct toy toy;
    toy_init(&toy, model, SALT);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy};
    assert_ok(atp_replay_open(NULL, model, backend, &options, &replay, &err), err);
    assert_ok(atp_replay_run_iteration(replay, toy_work, &err), err);
    uint64_t digest = toy_digest(&toy);
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    toy_finish(&toy);
    return digest;
}

uint64_t rig_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}
