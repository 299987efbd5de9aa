/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A profile at one batch size: as measured, interpolated or scaled. Sizes are rounded up and times
 * to nearest. A line through two measurements may fall below zero far outside them: times and
 * workspaces, which jitter from one batch size to the next, then are zero; sizes of tensors do not
 * jitter, so that it is an error.
 */
#include "profile.h"

#include "checked.h"
#include "fail.h"
#include "profile_file.h"

#include <inttypes.h>

enum rounding { ROUND_DOWN, ROUND_NEAREST, ROUND_UP };

const uint64_t *profile_batch_sizes(const struct profile_file *file, uint32_t *out_count)
{
    *out_count = file->batch_count;
    return file->batch_sizes;
}

const struct profile_file *profile_file_of(const struct profile *profile, struct region *region)
{
    const struct atp_model *model = &profile->model;
    struct profile_file *file = REGION_NEW(region, struct profile_file, 1);
    struct profile_tensor *tensors = REGION_NEW(region, struct profile_tensor, model->tensor_count);
    struct profile_step *steps = REGION_NEW(region, struct profile_step, model->step_count);
    uint64_t *times = REGION_NEW(region, uint64_t, model->step_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        tensors[t] = (struct profile_tensor){.name = model->tensors[t].name,
                                             .pin = profile->pins != NULL ? profile->pins[t]
                                                                          : PROFILE_PIN_NONE,
                                             .bytes = &model->tensors[t].bytes};
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        times[s] = (uint64_t)profile->clock.step_ns[s];
        steps[s] = (struct profile_step){.step = model->steps[s],
                                         .workspace_bytes = &model->steps[s].workspace_bytes,
                                         .time_ns = &times[s]};
        steps[s].step.workspace_bytes = 0;
    }
    *file = (struct profile_file){.link = {.d2h = profile->clock.d2h_bytes_per_second,
                                           .h2d = profile->clock.h2d_bytes_per_second},
                                  .model_name = model->name,
                                  .device_name = profile->device_name,
                                  .origin = profile->origin,
                                  .device_memory_bytes = profile->device_memory_bytes,
                                  .pinned_bytes = profile->pinned_bytes,
                                  .copy_latency_ns = profile->clock.copy_latency_ns,
                                  .batch_count = 1,
                                  .tensor_count = model->tensor_count,
                                  .step_count = model->step_count,
                                  .batch_sizes = &model->batch_size,
                                  .resident_bytes = &profile->resident_bytes,
                                  .tensors = tensors,
                                  .steps = steps};
    profile_file_set_rates(file);
    return file;
}

static void replace(uint64_t *value, uint64_t by, bool *differs)
{
    *differs = *differs || (by != 0 && by != *value);
    *value = by != 0 ? by : *value;
}

const struct profile_file *profile_with_device(const struct profile_file *file,
                                               const struct profile_device *device,
                                               struct region *region, bool *out_differs)
{
    struct profile_file *other = REGION_NEW(region, struct profile_file, 1);
    *other = *file;
    *out_differs = false;
    replace(&other->device_memory_bytes, device->memory_bytes, out_differs);
    replace(&other->d2h_bytes_per_second, device->d2h_bytes_per_second, out_differs);
    replace(&other->h2d_bytes_per_second, device->h2d_bytes_per_second, out_differs);
    return other;
}

/* value * times / by, for times and by up to 2^32. False on overflow. */
static bool scale(uint64_t value, uint64_t times, uint64_t by, enum rounding rounding,
                  uint64_t *out)
{
    uint64_t whole, rest = value % by * times;
    uint64_t left = rest % by;
    bool up = rounding == ROUND_UP ? left > 0 : rounding == ROUND_NEAREST && left >= by - left;
    return checked_mul(value / by, times, &whole) && checked_add(whole, rest / by + up, out);
}

/* How a value depends on the batch size. */
struct growth {
    bool is_time;       /* rounds to nearest */
    bool may_vanish;    /* zero where the line falls below it */
    bool is_proportion; /* to the batch, when there is only one measurement */
};

static bool value_at(const struct profile_file *file, const uint64_t *series, uint64_t batch,
                     const struct growth *growth, uint64_t *out)
{
    const uint64_t *sizes = file->batch_sizes;
    uint32_t last = file->batch_count - 1, i = 0;
    while (i < last && sizes[i] < batch) {
        i++;
    }
    if (sizes[i] == batch || (last == 0 && !growth->is_proportion)) {
        *out = series[i];
        return true;
    }
    enum rounding up = growth->is_time ? ROUND_NEAREST : ROUND_UP;
    if (last == 0) {
        return scale(series[0], batch, sizes[0], up, out);
    }
    i -= i > 0;
    uint64_t from = sizes[i], span = sizes[i + 1] - from;
    uint64_t low = series[i], high = series[i + 1];
    uint64_t distance = batch > from ? batch - from : from - batch;
    bool rises = (high > low) == (batch > from);
    uint64_t change;
    enum rounding rounding = rises ? up : growth->is_time ? ROUND_NEAREST : ROUND_DOWN;
    if (!scale(high > low ? high - low : low - high, distance, span, rounding, &change)) {
        return !rises && growth->may_vanish ? (*out = 0, true) : false;
    }
    if (rises) {
        return checked_add(low, change, out);
    }
    *out = change < low ? low - change : 0;
    return change <= low || growth->may_vanish;
}

static enum atp_status fail_range(struct atp_error *err, uint64_t batch, const char *what,
                                  const char *name)
{
    return atp_fail(err, ATP_ERR_INVALID,
                    "at batch size %" PRIu64 " %s \"%s\" leaves its range, expected 0 to 2^62",
                    batch, what, name);
}

static enum atp_status scale_tensors(const struct profile_file *file, uint64_t batch,
                                     struct region *region, struct profile *out,
                                     struct atp_error *err)
{
    static const struct growth bytes = {.is_proportion = true};
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, file->tensor_count);
    enum profile_pin *pins = REGION_NEW(region, enum profile_pin, file->tensor_count);
    for (uint32_t t = 0; t < file->tensor_count; t++) {
        const struct profile_tensor *tensor = &file->tensors[t];
        tensors[t].name = tensor->name;
        pins[t] = tensor->pin;
        if (!value_at(file, tensor->bytes, batch, &bytes, &tensors[t].bytes) ||
            tensors[t].bytes > PROFILE_BYTES_MAX) {
            return fail_range(err, batch, "the size of tensor", tensor->name);
        }
    }
    out->model.tensors = tensors;
    out->model.tensor_count = file->tensor_count;
    out->pins = pins;
    return ATP_OK;
}

/* Whether a line that was never measured at zero is there now. */
static bool is_clamped(const struct profile_file *file, const uint64_t *series, uint64_t value)
{
    for (uint32_t b = 0; b < file->batch_count; b++) {
        if (series[b] == 0) {
            return false;
        }
    }
    return value == 0 && file->batch_count > 1;
}

static enum atp_status scale_steps(const struct profile_file *file, uint64_t batch,
                                   struct region *region, struct profile *out,
                                   struct atp_error *err)
{
    static const struct growth workspace = {.may_vanish = true, .is_proportion = true};
    struct growth time = {.is_time = true, .may_vanish = true};
    struct atp_step *steps = REGION_NEW(region, struct atp_step, file->step_count);
    int64_t *step_ns = REGION_NEW(region, int64_t, file->step_count);
    uint64_t total_ns = 0;
    for (uint32_t s = 0; s < file->step_count; s++) {
        const struct profile_step *step = &file->steps[s];
        uint64_t ns;
        steps[s] = step->step;
        time.is_proportion = step->step.phase != ATP_PHASE_UPDATE;
        if (!value_at(file, step->workspace_bytes, batch, &workspace, &steps[s].workspace_bytes) ||
            steps[s].workspace_bytes > PROFILE_BYTES_MAX) {
            return fail_range(err, batch, "the workspace of step", step->step.name);
        }
        if (!value_at(file, step->time_ns, batch, &time, &ns) ||
            !checked_add(total_ns, ns, &total_ns) || total_ns > INT64_MAX / 2) {
            return atp_fail(err, ATP_ERR_INVALID,
                            "at batch size %" PRIu64
                            " the times up to step \"%s\" add up to more than 2^62 ns",
                            batch, step->step.name);
        }
        step_ns[s] = (int64_t)ns;
        out->zero_time_count += ns == 0;
        out->clamped_count += is_clamped(file, step->time_ns, ns);
    }
    out->model.steps = steps;
    out->model.step_count = file->step_count;
    out->clock.step_ns = step_ns;
    return ATP_OK;
}

static bool is_measured(const struct profile_file *file, uint64_t batch)
{
    for (uint32_t b = 0; b < file->batch_count; b++) {
        if (file->batch_sizes[b] == batch) {
            return true;
        }
    }
    return false;
}

enum atp_status profile_at_batch(const struct profile_file *file, uint64_t batch_size,
                                 struct region *region, struct profile *out_profile,
                                 struct atp_error *err)
{
    static const struct growth resident = {.is_proportion = false};
    uint64_t batch = batch_size != 0 ? batch_size : file->batch_sizes[file->batch_count - 1];
    if (batch > PROFILE_BATCH_MAX) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "batch size %" PRIu64 " is too large, expected at most %" PRIu64, batch,
                        PROFILE_BATCH_MAX);
    }
    *out_profile = (struct profile){
        .model = {.name = file->model_name, .batch_size = batch},
        .device_name = file->device_name,
        .origin = file->origin,
        .device_memory_bytes = file->device_memory_bytes,
        .pinned_bytes = file->pinned_bytes,
        .clock = {.d2h_bytes_per_second = file->d2h_bytes_per_second,
                  .h2d_bytes_per_second = file->h2d_bytes_per_second,
                  .copy_latency_ns = file->copy_latency_ns},
        .scaled = !is_measured(file, batch),
    };
    if (!value_at(file, file->resident_bytes, batch, &resident, &out_profile->resident_bytes) ||
        out_profile->resident_bytes > PROFILE_BYTES_MAX) {
        return fail_range(err, batch, "resident_bytes of", file->model_name);
    }
    ATP_TRY(scale_tensors(file, batch, region, out_profile, err));
    ATP_TRY(scale_steps(file, batch, region, out_profile, err));
    /* Measured sizes were checked when the file was read. */
    return out_profile->scaled ? atp_model_check(&out_profile->model, NULL, err) : ATP_OK;
}
