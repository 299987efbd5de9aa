/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Linear in the number of uses: one pass counts them, one files them per tensor, one sums sizes
 * over steps.
 */
#include "problem.h"

#include "checked.h"
#include "fail.h"

#include <inttypes.h>
#include <string.h>

#define ALIGNMENT_MAX 256U

static bool is_in(const uint32_t *ids, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static uint64_t align_up(uint64_t bytes, uint64_t alignment)
{
    uint64_t out = bytes;
    /* Cannot overflow: the model's sums are below 2^62. */
    (void)checked_align(bytes, alignment, &out);
    return out;
}

static void round_sizes(const struct atp_model *model, uint64_t alignment, struct region *region,
                        struct problem *problem)
{
    uint64_t *tensor_bytes = REGION_NEW(region, uint64_t, model->tensor_count);
    uint64_t *workspace_bytes = REGION_NEW(region, uint64_t, model->step_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        tensor_bytes[t] = align_up(model->tensors[t].bytes, alignment);
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        workspace_bytes[s] = align_up(model->steps[s].workspace_bytes, alignment);
    }
    problem->tensor_bytes = tensor_bytes;
    problem->workspace_bytes = workspace_bytes;
}

static void find_inputs(const struct atp_model *model, struct region *region,
                        struct problem *problem)
{
    bool *is_input = REGION_NEW(region, bool, model->tensor_count);
    memset(is_input, 1, model->tensor_count * sizeof(*is_input));
    for (uint32_t s = 0; s < model->step_count; s++) {
        for (uint32_t i = 0; i < model->steps[s].write_count; i++) {
            is_input[model->steps[s].writes[i]] = false;
        }
    }
    problem->is_input = is_input;
}

/* Calls for each use of a tensor by a step once: reads first, then writes that are not reads too.
 */
struct use {
    uint32_t tensor;
    bool reads, writes;
};

static uint32_t step_use_count(const struct atp_step *step)
{
    uint32_t count = step->read_count;
    for (uint32_t i = 0; i < step->write_count; i++) {
        count += !is_in(step->reads, step->read_count, step->writes[i]);
    }
    return count;
}

static void step_uses(const struct atp_step *step, struct use *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->read_count; i++) {
        uint32_t tensor = step->reads[i];
        out[count++] = (struct use){tensor, true, is_in(step->writes, step->write_count, tensor)};
    }
    for (uint32_t i = 0; i < step->write_count; i++) {
        if (!is_in(step->reads, step->read_count, step->writes[i])) {
            out[count++] = (struct use){step->writes[i], false, true};
        }
    }
}

/* Offsets of each tensor's and each step's accesses, by counting. Returns the largest number of
 * uses of a step. */
static uint32_t count_accesses(const struct atp_model *model, struct region *region,
                               struct problem *problem)
{
    uint32_t *first = REGION_NEW(region, uint32_t, (size_t)model->tensor_count + 1);
    uint32_t *step_first = REGION_NEW(region, uint32_t, (size_t)model->step_count + 1);
    uint32_t widest = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        first[t + 1] = problem->is_input[t];
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        const struct atp_step *step = &model->steps[s];
        uint32_t count = step_use_count(step);
        step_first[s + 1] = step_first[s] + count;
        widest = count > widest ? count : widest;
        for (uint32_t i = 0; i < step->read_count; i++) {
            first[step->reads[i] + 1]++;
        }
        for (uint32_t i = 0; i < step->write_count; i++) {
            first[step->writes[i] + 1] += !is_in(step->reads, step->read_count, step->writes[i]);
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        first[t + 1] += first[t];
    }
    problem->first_access = first;
    problem->step_first = step_first;
    problem->access_count = first[model->tensor_count];
    return widest;
}

static void file_accesses(const struct atp_model *model, uint32_t widest, struct region *region,
                          struct problem *problem)
{
    struct access *accesses = REGION_NEW(region, struct access, problem->access_count);
    uint32_t *step_accesses = REGION_NEW(region, uint32_t, problem->step_first[model->step_count]);
    uint32_t *next = REGION_NEW(region, uint32_t, model->tensor_count);
    uint32_t *version = REGION_NEW(region, uint32_t, model->tensor_count);
    struct use *uses = REGION_NEW(region, struct use, widest);
    memcpy(next, problem->first_access, model->tensor_count * sizeof(*next));
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        if (problem->is_input[t]) {
            accesses[next[t]++] = (struct access){.tensor = t, .step = ATP_NONE};
        }
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        uint32_t count = problem->step_first[s + 1] - problem->step_first[s];
        step_uses(&model->steps[s], uses);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t t = uses[i].tensor, before = version[t];
            version[t] += uses[i].writes;
            accesses[next[t]] = (struct access){
                .tensor = t,
                .step = s,
                .reads = uses[i].reads,
                .writes = uses[i].writes,
                .version = version[t],
                .read_version = uses[i].writes && before == 0 ? version[t] : before,
            };
            step_accesses[problem->step_first[s] + i] = next[t]++;
        }
    }
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        for (uint32_t a = problem->first_access[t]; a + 1 < problem->first_access[t + 1]; a++) {
            accesses[a].has_next = true;
        }
    }
    problem->accesses = accesses;
    problem->step_accesses = step_accesses;
}

static void find_recomputable(const struct atp_model *model, struct region *region,
                              struct problem *problem)
{
    bool *recomputable = REGION_NEW(region, bool, problem->access_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        bool so_far = !problem->is_input[t];
        for (uint32_t a = problem->first_access[t]; a < problem->first_access[t + 1]; a++) {
            const struct access *access = &problem->accesses[a];
            if (access->writes) {
                const struct atp_step *step = &model->steps[access->step];
                so_far = so_far && step->phase == ATP_PHASE_FORWARD && !step->rerun_never;
            }
            recomputable[a] = so_far;
        }
    }
    problem->recomputable = recomputable;
}

static void sum_sizes(const struct atp_model *model, struct region *region, struct problem *problem)
{
    uint64_t *working_set = REGION_NEW(region, uint64_t, model->step_count);
    uint64_t *live = REGION_NEW(region, uint64_t, model->step_count);
    uint64_t *change =
        REGION_NEW(region, uint64_t, (size_t)model->step_count + 1); /* modulo 2^64 */
    problem->input_bytes = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        uint32_t begin = problem->first_access[t], end = problem->first_access[t + 1];
        uint64_t bytes = problem->tensor_bytes[t];
        problem->input_bytes += problem->is_input[t] ? bytes : 0;
        if (begin == end || problem->accesses[end - 1].step == ATP_NONE) {
            continue;
        }
        uint32_t first = problem->accesses[begin].step;
        change[first == ATP_NONE ? 0 : first] += bytes;
        change[problem->accesses[end - 1].step + 1] -= bytes;
        for (uint32_t a = begin; a < end; a++) {
            if (problem->accesses[a].step != ATP_NONE) {
                working_set[problem->accesses[a].step] += bytes;
            }
        }
    }
    uint64_t running = 0;
    problem->least_arena_bytes = problem->peak_bytes = problem->input_bytes;
    problem->least_step = ATP_NONE;
    problem->compute_ns = 0;
    for (uint32_t s = 0; s < model->step_count; s++) {
        running += change[s];
        live[s] = running + problem->workspace_bytes[s];
        working_set[s] += problem->workspace_bytes[s];
        problem->compute_ns += problem->profile->clock.step_ns[s];
        if (live[s] > problem->peak_bytes) {
            problem->peak_bytes = live[s];
        }
        if (working_set[s] > problem->least_arena_bytes) {
            problem->least_arena_bytes = working_set[s];
            problem->least_step = s;
        }
    }
    problem->working_set_bytes = working_set;
    problem->live_bytes = live;
}

static void build_at_alignment(const struct profile *profile, uint64_t alignment,
                               struct region *region, struct problem *problem)
{
    const struct atp_model *model = &profile->model;
    memset(problem, 0, sizeof(*problem));
    problem->profile = profile;
    problem->model = model;
    problem->alignment_bytes = alignment;
    round_sizes(model, alignment, region, problem);
    find_inputs(model, region, problem);
    uint32_t widest = count_accesses(model, region, problem);
    file_accesses(model, widest, region, problem);
    find_recomputable(model, region, problem);
    sum_sizes(model, region, problem);
}

enum atp_status problem_build(const struct profile *profile, uint64_t budget_bytes,
                              uint64_t alignment_bytes, struct region *region,
                              struct problem *out_problem, struct atp_error *err)
{
    if (profile->resident_bytes > budget_bytes) {
        return atp_fail(err, ATP_ERR_INFEASIBLE,
                        "resident bytes alone are %" PRIu64 ", more than the budget of %" PRIu64,
                        profile->resident_bytes, budget_bytes);
    }
    build_at_alignment(profile, alignment_bytes, region, out_problem);
    out_problem->budget_bytes = budget_bytes;
    out_problem->arena_limit = out_problem->arena_capacity =
        (budget_bytes - profile->resident_bytes) & ~(alignment_bytes - 1);
    out_problem->host_limit = profile->pinned_bytes & ~(alignment_bytes - 1);
    return ATP_OK;
}

uint64_t problem_alignment(const struct profile *profile, struct region *region)
{
    struct region_mark mark = region_mark(region);
    struct problem exact, rounded;
    uint64_t alignment = ALIGNMENT_MAX;
    build_at_alignment(profile, 1, region, &exact);
    for (; alignment > 1; alignment /= 2) {
        build_at_alignment(profile, alignment, region, &rounded);
        if (rounded.peak_bytes - exact.peak_bytes <= exact.peak_bytes / 1000 &&
            rounded.least_arena_bytes - exact.least_arena_bytes <= exact.least_arena_bytes / 1000) {
            break;
        }
    }
    region_reset(region, mark);
    return alignment;
}
