/* SPDX-License-Identifier: Apache-2.0
 *
 * ==== The whole integration with libatp ====
 *
 * A network is a model, which is plain data, and functions that do any of its steps on arrays. What
 * is here connects the two: a callback that looks up the addresses of a step's tensors, and a loop.
 */
#include "train.h"

#include <inttypes.h>
#include <stdio.h>

#include <atp/plan_yaml.h>
#include <atp/replay.h>

#include "timing.h"

/* An atp_step_fn. ATP_NONE asks for the inputs. */
static enum atp_status run_step(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    const struct network *net = (const struct network *)ctx;
    struct work work = {.step = call->step,
                        .is_rerun = call->is_rerun,
                        .iteration = call->iteration,
                        .workspace = call->workspace};
    device_use_stream(net->device, call->stream);
    if (call->step == ATP_NONE) {
        net->load(net->ctx, call->iteration, atp_replay_tensor_data(call->replay, 0),
                  atp_replay_tensor_data(call->replay, 1));
        return ATP_OK;
    }
    const struct atp_step *step = &net->model->steps[call->step];
    for (uint32_t i = 0; i < step->read_count; i++) {
        work.reads[i] = atp_replay_tensor_data(call->replay, step->reads[i]);
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        work.writes[i] = atp_replay_tensor_data(call->replay, step->writes[i]);
    }
    (void)err; /* what went wrong is in device_failure */
    return net->work(net->ctx, &work) ? ATP_OK : ATP_ERR_DEVICE;
}

static enum atp_status check_memory(const struct training *t, const struct network *net,
                                    const struct atp_plan *plan, struct atp_error *err)
{
    if (t->memory_bytes == 0 || plan->arena_bytes <= t->memory_bytes) {
        return ATP_OK;
    }
    *err = (struct atp_error){.status = ATP_ERR_LIMIT, .instruction = ATP_NONE};
    (void)snprintf(err->text, sizeof(err->text),
                   "%s needs %" PRIu64 " bytes for activations, --memory allows %" PRIu64
                   ": plan a profile (--record) with atp-plan --budget %" PRIu64
                   ", and train with --plan",
                   t->plan_path == NULL ? "without a plan, training" : t->plan_path,
                   plan->arena_bytes, t->memory_bytes, net->resident_bytes + t->memory_bytes);
    return ATP_ERR_LIMIT;
}

static enum atp_status iterate(const struct training *t, const struct network *net,
                               struct atp_replay *replay, struct timing *timing,
                               struct atp_error *err)
{
    for (uint64_t i = 0; i < t->iterations; i++) {
        struct atp_iteration_report report;
        enum atp_status status = atp_replay_run_iteration(replay, run_step, err);
        if (status == ATP_OK) {
            status = atp_replay_report(replay, &report, err);
        }
        if (status != ATP_OK) {
            return status;
        }
        timing_add(timing, &report);
        if (!t->is_silent && t->prints_losses) {
            (void)printf("%a\n", (double)net->loss(net->ctx));
        } else if (!t->is_silent && (i < 5 || (i + 1) % 10 == 0)) {
            (void)printf("iteration %" PRIu64 ": loss %.4f\n", i, (double)net->loss(net->ctx));
        }
    }
    return ATP_OK;
}

static enum atp_status train_on(const struct training *t, const struct network *net,
                                const struct atp_plan *plan, struct atp_backend *backend,
                                struct atp_error *err)
{
    struct atp_replay *replay;
    struct timing timing;
    struct atp_replay_options options = {.step = run_step,
                                         .step_ctx = (void *)net,
                                         .record = t->record_path != NULL,
                                         .report = true,
                                         .poison = t->poison};
    struct atp_profile_facts facts = {.device_name = device_is_cuda ? "cuda" : "host",
                                      .device_memory_bytes = (uint64_t)1 << 34,
                                      .resident_bytes = net->resident_bytes,
                                      .note = "recorded by a program of examples/"};
    enum atp_status status = atp_replay_open(plan, net->model, backend, &options, &replay, err);
    if (status != ATP_OK) {
        return status;
    }
    plan = atp_replay_plan(replay);
    status = check_memory(t, net, plan, err);
    if (status == ATP_OK && !timing_init(&timing, t->iterations)) {
        status = ATP_ERR_NO_MEMORY;
    }
    if (status == ATP_OK) {
        status = iterate(t, net, replay, &timing, err);
        if (status == ATP_OK && !t->is_silent) {
            timing_print(&timing, plan, t->plan_path != NULL);
        }
        timing_finish(&timing);
    }
    if (status == ATP_OK && t->record_path != NULL) {
        status = atp_replay_write_profile(replay, t->record_path, &facts, err);
    }
    device_use_stream(net->device, NULL); /* the replay's goes with it */
    atp_replay_close(replay);
    return status;
}

enum atp_status train(const struct training *t, const struct network *net, struct atp_error *err)
{
    struct atp_plan_file *file = NULL;
    struct atp_backend *backend = NULL;
    enum atp_status status =
        t->plan_path == NULL ? ATP_OK : atp_plan_read(t->plan_path, &file, err);
    if (status == ATP_OK) {
        status = device_is_cuda ? atp_backend_cuda_create(0, &backend, err)
                                : atp_backend_host_create(&t->copies, &backend, err);
    }
    if (status == ATP_OK) {
        status = train_on(t, net, file == NULL ? NULL : &file->plan, backend, err);
    }
    atp_backend_destroy(backend);
    atp_plan_file_destroy(file);
    return status;
}

/* ==== end of the integration ==== */
