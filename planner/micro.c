/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Update steps come last, so that the others are a prefix; tensors are numbered anew.
 */
#include "micro.h"

#include "fail.h"

#include <string.h>

static void mark_used(const struct atp_model *model, uint32_t first_step, uint32_t end_step,
                      bool *used)
{
    for (uint32_t s = first_step; s < end_step; s++) {
        const struct atp_step *step = &model->steps[s];
        for (uint32_t i = 0; i < step->read_count; i++) {
            used[step->reads[i]] = true;
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            used[step->writes[i]] = true;
        }
    }
}

static const uint32_t *map_ids(const uint32_t *ids, uint32_t count, const uint32_t *new_ids,
                               struct region *region)
{
    uint32_t *out = REGION_NEW(region, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = new_ids[ids[i]];
    }
    return out;
}

static void copy_tensors(const struct profile *profile, uint32_t step_count, uint32_t *new_ids,
                         struct region *region, struct profile *out)
{
    const struct atp_model *model = &profile->model;
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, model->tensor_count);
    enum profile_pin *pins = REGION_NEW(region, enum profile_pin, model->tensor_count);
    bool *used = REGION_NEW(region, bool, model->tensor_count);
    bool *updated = REGION_NEW(region, bool, model->tensor_count);
    uint32_t count = 0;
    mark_used(model, 0, step_count, used);
    mark_used(model, step_count, model->step_count, updated);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (used[t] || !updated[t]) {
            pins[count] = profile->pins[t];
            tensors[count] = model->tensors[t];
            new_ids[t] = count++;
        }
    }
    out->model.tensors = tensors;
    out->model.tensor_count = count;
    out->pins = pins;
}

enum atp_status micro_profile(const struct profile *profile, struct region *region,
                              struct profile *out_profile, int64_t *out_update_ns,
                              struct atp_error *err)
{
    const struct atp_model *model = &profile->model;
    uint32_t step_count = 0;
    while (step_count < model->step_count && model->steps[step_count].phase != ATP_PHASE_UPDATE) {
        step_count++;
    }
    *out_update_ns = 0;
    for (uint32_t s = step_count; s < model->step_count; s++) {
        *out_update_ns += profile->clock.step_ns[s];
    }
    if (step_count == 0) {
        return atp_fail(err, ATP_ERR_INVALID, "the profile has update steps only");
    }
    struct atp_step *steps = REGION_NEW(region, struct atp_step, step_count);
    uint32_t *new_ids = REGION_NEW(region, uint32_t, model->tensor_count);
    *out_profile = *profile;
    copy_tensors(profile, step_count, new_ids, region, out_profile);
    for (uint32_t s = 0; s < step_count; s++) {
        steps[s] = model->steps[s];
        steps[s].reads = map_ids(steps[s].reads, steps[s].read_count, new_ids, region);
        steps[s].writes = map_ids(steps[s].writes, steps[s].write_count, new_ids, region);
    }
    out_profile->model.steps = steps;
    out_profile->model.step_count = step_count;
    return ATP_OK;
}
