/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "toy_work.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        hash = mix(hash, bytes[i]);
    }
    return hash;
}

void toy_init(struct toy *toy, const struct atp_model *model, uint64_t salt)
{
    *toy = (struct toy){.model = model, .salt = salt, .failing_step = ATP_NONE};
    toy->first_writer = (uint32_t *)malloc(((size_t)model->tensor_count + 1) * sizeof(uint32_t));
    toy->digests = (uint64_t *)calloc(model->step_count, sizeof(uint64_t));
    if (toy->first_writer == NULL || toy->digests == NULL) {
        abort();
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        toy->first_writer[t] = ATP_NONE;
    }
    for (uint32_t s = model->step_count; s > 0; s--) {
        for (uint32_t i = 0; i < model->steps[s - 1].write_count; i++) {
            toy->first_writer[model->steps[s - 1].writes[i]] = s - 1;
        }
    }
}

void toy_finish(struct toy *toy)
{
    free(toy->first_writer);
    free(toy->digests);
}

struct toy_kernel *toy_capture(struct toy *toy, const struct atp_step_call *call,
                               struct atp_error *err)
{
    uint32_t tensor_count = toy->model->tensor_count;
    if (call->step != ATP_NONE && call->step == toy->failing_step) {
        enum atp_status ignored = atp_fail(err, ATP_ERR_IO, "step %u fails, as asked", call->step);
        (void)ignored;
        return NULL;
    }
    struct toy_kernel *kernel =
        (struct toy_kernel *)malloc(sizeof(*kernel) + tensor_count * sizeof(kernel->data[0]));
    if (kernel == NULL) {
        abort();
    }
    *kernel = (struct toy_kernel){.toy = toy,
                                  .step = call->step,
                                  .is_rerun = call->is_rerun,
                                  .workspace = (uint8_t *)call->workspace};
    for (uint32_t t = 0; t < tensor_count; t++) {
        kernel->data[t] = (uint8_t *)atp_replay_tensor_data(call->replay, t);
    }
    return kernel;
}

bool toy_is_input(const struct toy *toy, uint32_t tensor)
{
    return toy->first_writer[tensor] == ATP_NONE;
}

static enum atp_status fill_inputs(const struct toy_kernel *kernel, struct atp_error *err)
{
    const struct toy *toy = kernel->toy;
    for (uint32_t t = 0; t < toy->model->tensor_count; t++) {
        uint8_t *data = kernel->data[t];
        if (!toy_is_input(toy, t)) {
            continue;
        }
        if (data == NULL) {
            return atp_fail(err, ATP_ERR_INVALID, "input %u is not on the device", t);
        }
        for (uint64_t i = 0; i < toy->model->tensors[t].bytes; i++) {
            data[i] = (uint8_t)mix(mix(toy->salt, t), i);
        }
    }
    return ATP_OK;
}

static enum atp_status read_all(const struct toy_kernel *kernel, uint64_t *out_digest,
                                struct atp_error *err)
{
    const struct atp_model *model = kernel->toy->model;
    const struct atp_step *step = &model->steps[kernel->step];
    uint64_t digest = mix(17, kernel->step);
    for (uint32_t i = 0; i < step->read_count; i++) {
        uint32_t t = step->reads[i];
        if (kernel->data[t] == NULL) {
            return atp_fail(err, ATP_ERR_INVALID, "tensor %u is not on the device", t);
        }
        digest = mix_bytes(digest, kernel->data[t], model->tensors[t].bytes);
    }
    *out_digest = digest;
    return ATP_OK;
}

static enum atp_status write_all(const struct toy_kernel *kernel, uint64_t digest,
                                 struct atp_error *err)
{
    const struct toy *toy = kernel->toy;
    const struct atp_step *step = &toy->model->steps[kernel->step];
    for (uint32_t i = 0; i < step->write_count; i++) {
        uint32_t t = step->writes[i];
        uint8_t *data = kernel->data[t];
        bool is_first = toy->first_writer[t] == kernel->step;
        if (data == NULL) {
            return atp_fail(err, ATP_ERR_INVALID, "tensor %u is not on the device", t);
        }
        for (uint64_t n = 0; n < toy->model->tensors[t].bytes; n++) {
            uint64_t value = mix(mix(digest, t), n);
            if (is_first) {
                data[n] = (uint8_t)value;
            } else if (n % 2 == 0) {
                data[n] = (uint8_t)(data[n] * (uint64_t)3 + value);
            }
        }
    }
    return ATP_OK;
}

/* The workspace must be free of everything that the step touches. */
static enum atp_status scribble(const struct toy_kernel *kernel, struct atp_error *err)
{
    uint64_t bytes = kernel->toy->model->steps[kernel->step].workspace_bytes;
    uint64_t before = 0, after = 0;
    if ((bytes > 0) != (kernel->workspace != NULL)) {
        return atp_fail(err, ATP_ERR_INVALID, "a workspace that does not fit the step");
    }
    if (bytes == 0) {
        return ATP_OK;
    }
    enum atp_status status = read_all(kernel, &before, err);
    memset(kernel->workspace, 0x5C, bytes);
    if (status == ATP_OK) {
        status = read_all(kernel, &after, err);
    }
    if (status == ATP_OK && before != after) {
        status = atp_fail(err, ATP_ERR_INVALID, "the workspace lies in what the step reads");
    }
    return status;
}

enum atp_status toy_run(const struct toy_kernel *kernel, struct atp_error *err)
{
    struct toy *toy = kernel->toy;
    uint64_t digest = 0;
    if (kernel->step == ATP_NONE) {
        return fill_inputs(kernel, err);
    }
    ATP_TRY(scribble(kernel, err));
    ATP_TRY(read_all(kernel, &digest, err));
    if (kernel->is_rerun) {
        toy->rerun_count++;
        if (digest != toy->digests[kernel->step]) {
            return atp_fail(err, ATP_ERR_INVALID, "the rerun read other bytes than the run");
        }
    } else {
        toy->run_count++;
        toy->digests[kernel->step] = digest;
    }
    return write_all(kernel, digest, err);
}

enum atp_status toy_work(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct toy_kernel *kernel = toy_capture((struct toy *)ctx, call, err);
    if (kernel == NULL) {
        return ATP_ERR_IO;
    }
    enum atp_status status = toy_run(kernel, err);
    free(kernel);
    return status;
}

uint64_t toy_digest(const struct toy *toy)
{
    uint64_t digest = 23;
    for (uint32_t s = 0; s < toy->model->step_count; s++) {
        digest = mix(digest, toy->digests[s]);
    }
    return digest;
}
