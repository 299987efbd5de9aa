/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_kernels.h"

#include <stdio.h>
#include <stdlib.h>

#include "fail.h"
#include "fake_cuda.h"

#define ACCESSES_MAX 64

struct launch {
    struct fake_kernels *kernels;
    struct toy_kernel *kernel;
    struct launch *next; /* of those that a graph may run again */
    bool is_captured;
    uint32_t access_count;
    struct fake_access accesses[ACCESSES_MAX];
};

void fake_kernels_init(struct fake_kernels *kernels, const struct atp_model *model, uint64_t salt)
{
    toy_init(&kernels->toy, model, salt);
    kernels->late = (struct atp_error){.status = ATP_OK};
    kernels->captured = NULL;
}

void fake_kernels_finish(struct fake_kernels *kernels)
{
    while (kernels->captured != NULL) {
        struct launch *next = kernels->captured->next;
        free(kernels->captured->kernel);
        free(kernels->captured);
        kernels->captured = next;
    }
    toy_finish(&kernels->toy);
}

static void declare(struct launch *launch, const void *address, uint64_t bytes, bool is_write)
{
    if (address == NULL || bytes == 0) {
        return; /* the kernel itself complains when there should be something */
    }
    if (launch->access_count == ACCESSES_MAX) {
        abort();
    }
    launch->accesses[launch->access_count++] = (struct fake_access){address, bytes, is_write};
}

static void declare_tensors(struct launch *launch, const uint32_t *ids, uint32_t count,
                            bool is_write)
{
    const struct atp_model *model = launch->kernels->toy.model;
    for (uint32_t i = 0; i < count; i++) {
        declare(launch, launch->kernel->data[ids[i]], model->tensors[ids[i]].bytes, is_write);
    }
}

static void declare_inputs(struct launch *launch)
{
    const struct atp_model *model = launch->kernels->toy.model;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (toy_is_input(&launch->kernels->toy, t)) {
            declare_tensors(launch, &t, 1, true);
        }
    }
}

static void run(void *ctx)
{
    struct launch *launch = (struct launch *)ctx;
    struct atp_error err;
    if (toy_run(launch->kernel, &err) != ATP_OK && launch->kernels->late.status == ATP_OK) {
        launch->kernels->late = err;
    }
    if (!launch->is_captured) {
        free(launch->kernel);
        free(launch);
    }
}

enum atp_status fake_kernels_step(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    struct fake_kernels *kernels = (struct fake_kernels *)ctx;
    const struct atp_model *model = kernels->toy.model;
    char label[32] = "inputs";
    struct toy_kernel *kernel = toy_capture(&kernels->toy, call, err);
    if (kernel == NULL) {
        return ATP_ERR_IO;
    }
    struct launch *launch = (struct launch *)malloc(sizeof(*launch));
    if (launch == NULL) {
        abort();
    }
    launch->kernels = kernels;
    launch->kernel = kernel;
    launch->is_captured = call->is_capture;
    launch->access_count = 0;
    if (call->step == ATP_NONE) {
        declare_inputs(launch);
    } else {
        const struct atp_step *step = &model->steps[call->step];
        declare_tensors(launch, step->reads, step->read_count, false);
        declare_tensors(launch, step->writes, step->write_count, true);
        declare(launch, call->workspace, step->workspace_bytes, true);
        (void)snprintf(label, sizeof(label), "%ssteps[%u]", call->is_rerun ? "rerun of " : "",
                       call->step);
    }
    if (!fake_cuda_launch(call->stream, label, launch->accesses, launch->access_count, run,
                          launch)) {
        free(kernel);
        free(launch);
        return atp_fail(err, ATP_ERR_INVALID, "%s: it touches what is not there", label);
    }
    if (call->is_capture) { /* one that is not may have run by now, and be gone */
        launch->next = kernels->captured;
        kernels->captured = launch;
    }
    return ATP_OK;
}
