/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "batch_source.h"

#include <string.h>

static enum atp_status profile_at(void *ctx, uint64_t batch_size, struct region *region,
                                  struct profile *out_profile, struct atp_error *err)
{
    const struct batch_source *source = ctx;
    const struct atp_model *model = &source->profile->model;
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, model->tensor_count);
    struct atp_step *steps = REGION_NEW(region, struct atp_step, model->step_count);
    int64_t *step_ns = REGION_NEW(region, int64_t, model->step_count);
    (void)err;
    memcpy(tensors, model->tensors, model->tensor_count * sizeof(*tensors));
    memcpy(steps, model->steps, model->step_count * sizeof(*steps));
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        tensors[t].bytes *= batch_size;
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        steps[s].workspace_bytes *= batch_size;
        step_ns[s] = source->profile->clock.step_ns[s] * (source->fixed + (int64_t)batch_size);
    }
    *out_profile = *source->profile;
    out_profile->model.batch_size = batch_size;
    out_profile->model.tensors = tensors;
    out_profile->model.steps = steps;
    out_profile->clock.step_ns = step_ns;
    return ATP_OK;
}

struct peak_source batch_source_open(struct batch_source *source)
{
    return (struct peak_source){profile_at, source};
}
