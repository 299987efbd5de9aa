/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two passes in time: operators, which make steps; then memory, each allocation with the step that
 * runs on its thread.
 */
#include "pytorch_steps.h"

#include "fail.h"
#include "yaml_reader.h"
#include "yaml_text.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX    150U
#define DEVICE_CUDA 1
#define DEVICES_MAX 64U

/* What one knows about a thread on the way. */
struct thread {
    int64_t id, optimizer_end_ns;
    uint32_t step; /* the last; ATP_NONE: none yet */
};

struct finder {
    struct pytorch_steps *out;
    struct region *region;
    int64_t first_ns, end_ns; /* of the iteration */
    int64_t device_id;
    struct thread *threads;
    uint32_t thread_count;
    uint32_t update; /* the step; ATP_NONE: none yet */
    uint32_t *open;  /* storages that have not gone */
    uint32_t open_count;
};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool pytorch_has_any(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Random, or with running statistics, or shared with other ranks: must not run twice. */
static bool is_never(const char *name)
{
    static const char *const words[] = {"bernoulli",
                                        "native_dropout",
                                        "fused_dropout",
                                        "aten::rand",
                                        "normal_",
                                        "uniform_",
                                        "exponential_",
                                        "multinomial",
                                        "batch_norm",
                                        "flash_attention",
                                        "efficient_attention",
                                        "cudnn_attention",
                                        "c10d::",
                                        "nccl:",
                                        "gloo:"};
    return pytorch_has_any(name, words, sizeof(words) / sizeof(words[0]));
}

/* The last iteration that torch.profiler was told of, or everything. */
static void find_iteration(struct finder *finder)
{
    finder->first_ns = INT64_MIN;
    finder->end_ns = INT64_MAX;
    for (uint32_t i = 0; i < finder->out->trace->op_count; i++) {
        const struct trace_op *op = &finder->out->trace->ops[i];
        if (op->is_range && begins_with(op->name, "ProfilerStep#")) {
            finder->first_ns = op->start_ns;
            finder->end_ns = op->end_ns;
        }
    }
}

static bool is_inside(const struct finder *finder, int64_t ns)
{
    return ns >= finder->first_ns && ns < finder->end_ns;
}

static struct thread *find_thread(struct finder *finder, int64_t id)
{
    for (uint32_t i = 0; i < finder->thread_count; i++) {
        if (finder->threads[i].id == id) {
            return &finder->threads[i];
        }
    }
    struct thread *thread = &finder->threads[finder->thread_count++];
    *thread = (struct thread){.id = id, .optimizer_end_ns = INT64_MIN, .step = ATP_NONE};
    return thread;
}

/* Fit for a profile: no control characters, not too long, cut between characters. */
static const char *clean_name(const char *name, struct region *region)
{
    if (begins_with(name, PYTORCH_AUTOGRAD)) {
        name += strlen(PYTORCH_AUTOGRAD);
    }
    char *copy = region_copy_text(region, name);
    yaml_cut(copy, NAME_MAX);
    for (char *c = copy; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            *c = '_';
        }
    }
    return copy[0] != '\0' ? copy : "unnamed";
}

static uint32_t add_step(struct finder *finder, const struct trace_op *op, const char *name)
{
    size_t length = strlen(op->name);
    finder->out->steps[finder->out->step_count] = (struct trace_step){
        .op = op,
        .name = name,
        .end_ns = op->end_ns,
        .phase = begins_with(op->name, PYTORCH_AUTOGRAD) ? ATP_PHASE_BACKWARD : ATP_PHASE_FORWARD,
        .is_inplace = length > 0 && op->name[length - 1] == '_',
        .input_count = op->input_count,
        .input_bytes = op->input_bytes};
    return finder->out->step_count++;
}

/* The step that an operator belongs to, a new one where no other encloses it. */
static uint32_t step_of_op(struct finder *finder, const struct trace_op *op)
{
    struct thread *thread = find_thread(finder, op->thread);
    if (op->is_range) {
        if (begins_with(op->name, "Optimizer.")) {
            thread->optimizer_end_ns = op->end_ns;
        }
        return ATP_NONE;
    }
    if (op->start_ns < thread->optimizer_end_ns) {
        bool is_outer = thread->step != finder->update || finder->update == ATP_NONE ||
                        op->start_ns >= finder->out->steps[finder->update].end_ns;
        if (finder->update == ATP_NONE) {
            finder->update = add_step(finder, op, "update");
        }
        struct trace_step *update = &finder->out->steps[finder->update];
        update->phase = ATP_PHASE_UPDATE;
        update->input_count = 0;
        if (is_outer) {
            update->end_ns = op->end_ns;
            update->ns += op->end_ns - op->start_ns;
        }
        thread->step = finder->update;
        return finder->update;
    }
    if (thread->step == ATP_NONE || op->start_ns >= finder->out->steps[thread->step].end_ns) {
        thread->step = add_step(finder, op, clean_name(op->name, finder->region));
        finder->out->steps[thread->step].ns = op->end_ns - op->start_ns;
    }
    struct trace_step *step = &finder->out->steps[thread->step];
    step->never = step->never || is_never(op->name);
    if (step->input_count == 0) {
        step->input_count = op->input_count;
        step->input_bytes = op->input_bytes;
    }
    return thread->step;
}

/* Whatever runs between two steps of autograd is one of them; what runs behind the last is the
 * update. A forward step there makes the trace more than one iteration. */
static enum atp_status find_phases(struct finder *finder, struct atp_error *err)
{
    uint32_t first = ATP_NONE, last = ATP_NONE;
    for (uint32_t s = 0; s < finder->out->step_count; s++) {
        if (finder->out->steps[s].phase == ATP_PHASE_BACKWARD) {
            first = first == ATP_NONE ? s : first;
            last = s;
        }
    }
    if (first == ATP_NONE) {
        return pytorch_trace_fail(finder->out->trace, 0, err,
                                  "there is no backward pass in the iteration, expected events "
                                  "named \"" PYTORCH_AUTOGRAD "...\"");
    }
    for (uint32_t s = first; s < finder->out->step_count; s++) {
        struct trace_step *step = &finder->out->steps[s];
        if (step->phase != ATP_PHASE_FORWARD) {
            continue;
        }
        if (step->op->sequence >= 0) {
            return pytorch_trace_fail(finder->out->trace, step->op->index, err,
                                      "\"%s\" runs forward behind a backward step, expected one "
                                      "iteration: call step() of the profiler after each",
                                      doc_shorten(step->name).text);
        }
        step->phase = s < last ? ATP_PHASE_BACKWARD : ATP_PHASE_UPDATE;
    }
    return ATP_OK;
}

static enum atp_status find_steps(struct finder *finder, struct atp_error *err)
{
    const struct pytorch_trace *trace = finder->out->trace;
    for (uint32_t i = 0; i < trace->op_count; i++) {
        finder->out->op_step[i] = is_inside(finder, trace->ops[i].start_ns)
                                      ? step_of_op(finder, &trace->ops[i])
                                      : ATP_NONE;
    }
    return find_phases(finder, err);
}

static int compare_ids(const void *left, const void *right)
{
    const struct doc_index *a = left, *b = right;
    return (a->group > b->group) - (a->group < b->group);
}

/* Where there are kernels, a step takes what its kernels take. */
static void time_kernels(struct finder *finder)
{
    const struct pytorch_trace *trace = finder->out->trace;
    struct doc_index *ids = REGION_NEW(finder->region, struct doc_index, trace->op_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->op_count; i++) {
        if (finder->out->op_step[i] != ATP_NONE && trace->ops[i].id >= 0) {
            ids[count++] = (struct doc_index){.group = (uint32_t)trace->ops[i].id,
                                              .id = finder->out->op_step[i]};
        }
    }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (uint32_t s = 0; s < finder->out->step_count && trace->kernel_count > 0; s++) {
        finder->out->steps[s].ns = 0;
    }
    for (uint32_t k = 0; k < trace->kernel_count; k++) {
        struct doc_index key = {.group = (uint32_t)trace->kernels[k].id};
        const struct doc_index *found = count > 0 && trace->kernels[k].id >= 0
                                            ? bsearch(&key, ids, count, sizeof(*ids), compare_ids)
                                            : NULL;
        if (found != NULL) {
            finder->out->steps[found->id].ns += trace->kernels[k].ns;
        }
    }
}

/* The GPU that takes most bytes, or the CPU where there is no GPU. */
static void find_device(struct finder *finder)
{
    const struct pytorch_trace *trace = finder->out->trace;
    uint64_t bytes[DEVICES_MAX] = {0}, most = 0;
    for (uint32_t i = 0; i < trace->memory_count; i++) {
        const struct trace_memory *memory = &trace->memory[i];
        uint64_t id = (uint64_t)memory->device_id;
        if (memory->device_type != DEVICE_CUDA || id >= DEVICES_MAX || memory->bytes <= 0) {
            continue;
        }
        bytes[id] += (uint64_t)memory->bytes;
        if (bytes[id] >= most) {
            most = bytes[id];
            finder->out->is_cuda = true;
            finder->device_id = memory->device_id;
        }
    }
}

static bool is_of_device(const struct finder *finder, const struct trace_memory *memory)
{
    return finder->out->is_cuda
               ? memory->device_type == DEVICE_CUDA && memory->device_id == finder->device_id
               : memory->device_type == 0;
}

/* The step that runs on the thread at a time, or the last that began before on any. */
static uint32_t step_at(struct finder *finder, const struct trace_memory *memory, uint32_t latest,
                        bool *out_within)
{
    const struct thread *thread = find_thread(finder, memory->thread);
    *out_within = thread->step != ATP_NONE && memory->ns <= finder->out->steps[thread->step].end_ns;
    return *out_within ? thread->step : latest;
}

static void give_back(struct finder *finder, const struct trace_memory *memory, uint32_t step,
                      bool within)
{
    for (uint32_t i = finder->open_count; i-- > 0;) {
        struct trace_storage *storage = &finder->out->storages[finder->open[i]];
        if (storage->address == memory->address) {
            storage->gone = step;
            storage->gone_within = within;
            if (storage->made == step) {
                finder->out->steps[step].running_bytes -= storage->bytes;
            }
            finder->open[i] = finder->open[--finder->open_count];
            return;
        }
    }
}

static void take(struct finder *finder, const struct trace_memory *memory, uint32_t at)
{
    struct pytorch_steps *out = finder->out;
    struct trace_step *step = &out->steps[at];
    finder->open[finder->open_count++] = out->storage_count;
    out->storages[out->storage_count++] = (struct trace_storage){.address = memory->address,
                                                                 .bytes = (uint64_t)memory->bytes,
                                                                 .made = at,
                                                                 .gone = ATP_NONE,
                                                                 .written = at,
                                                                 .tensor = ATP_NONE};
    step->running_bytes += (uint64_t)memory->bytes;
    if (step->running_bytes > step->workspace_bytes) {
        step->workspace_bytes = step->running_bytes;
    }
}

/* The workspace of a step: the most that it took at once, less what stays. */
static void find_storages(struct finder *finder)
{
    const struct pytorch_trace *trace = finder->out->trace;
    const uint32_t *op_step = finder->out->op_step;
    uint32_t op = 0, latest = ATP_NONE;
    bool within;
    for (uint32_t i = 0; i < finder->thread_count; i++) {
        finder->threads[i].step = ATP_NONE;
    }
    for (uint32_t m = 0; m < trace->memory_count; m++) {
        const struct trace_memory *memory = &trace->memory[m];
        for (; op < trace->op_count && trace->ops[op].start_ns <= memory->ns; op++) {
            if (op_step[op] != ATP_NONE) {
                latest = op_step[op];
                find_thread(finder, trace->ops[op].thread)->step = latest;
            }
        }
        if (!is_of_device(finder, memory) || latest == ATP_NONE || !is_inside(finder, memory->ns)) {
            continue;
        }
        uint32_t at = step_at(finder, memory, latest, &within);
        if (memory->bytes < 0) {
            give_back(finder, memory, at, within);
        } else {
            take(finder, memory, at);
        }
    }
    for (uint32_t i = 0; i < finder->out->storage_count; i++) {
        const struct trace_storage *storage = &finder->out->storages[i];
        if (storage->made != storage->gone) {
            finder->out->steps[storage->made].workspace_bytes -= storage->bytes;
        }
    }
}

enum atp_status pytorch_steps_find(const struct pytorch_trace *trace, struct region *region,
                                   struct pytorch_steps *out_steps, struct atp_error *err)
{
    *out_steps = (struct pytorch_steps){
        .trace = trace,
        .steps = REGION_NEW(region, struct trace_step, trace->op_count),
        .storages = REGION_NEW(region, struct trace_storage, trace->memory_count),
        .op_step = REGION_NEW(region, uint32_t, trace->op_count)};
    struct finder finder = {
        .out = out_steps,
        .region = region,
        .update = ATP_NONE,
        .threads = REGION_NEW(region, struct thread, (size_t)trace->op_count + trace->memory_count),
        .open = REGION_NEW(region, uint32_t, trace->memory_count)};
    find_iteration(&finder);
    ATP_TRY(find_steps(&finder, err));
    time_kernels(&finder);
    find_device(&finder);
    find_storages(&finder);
    if (out_steps->storage_count == 0) {
        return pytorch_trace_fail(trace, 0, err,
                                  "no memory comes or goes in the iteration, expected events named "
                                  "\"[memory]\": profile(profile_memory=True)");
    }
    return ATP_OK;
}
