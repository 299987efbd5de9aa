/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A tensor is a storage that came in one step and went in a later one; what came and went within a
 * step is workspace. The trace does not say what an operator reads. Three things do:
 *
 * - a step of autograd gives back what it needed last: what goes within a step was read by it;
 * - shapes: an input is taken to be the storage of its size that was written last;
 * - numbers: a backward step may need what the forward step of its number read or wrote, while it
 *   is there, but for those of which autograd keeps nothing.
 */
#include "import.h"

#include "fail.h"
#include "pytorch_steps.h"
#include "yaml_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA_QUANTUM 512U /* CUDA's sizes are multiples of it */

/* An operator of the forward pass by its number in autograd. */
struct numbered {
    int64_t sequence;
    uint32_t step;
};

struct import {
    struct pytorch_steps found;
    struct region *region;
    struct numbered *numbers; /* by number, then step */
    uint32_t number_count;
    uint32_t tensor_count;
    uint64_t gradient_bytes; /* of weights: resident */
};

/* Nodes of autograd that keep no tensor of the forward pass. */
static bool keeps_nothing(const char *name)
{
    static const char *const words[] = {
        "AccumulateGrad", "AddBackward",   "SubBackward",     "NegBackward",    "ViewBackward",
        "TBackward",      "Transpose",     "PermuteBackward", "ExpandBackward", "SumBackward",
        "MeanBackward",   "CatBackward",   "StackBackward",   "SplitBackward",  "SliceBackward",
        "SelectBackward", "Unsqueeze",     "SqueezeBackward", "ReshapeAlias",   "CloneBackward",
        "ToCopyBackward", "UnbindBackward"};
    return pytorch_has_any(name, words, sizeof(words) / sizeof(words[0]));
}

static void add_use(struct trace_uses *uses, uint32_t storage)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->ids[i] == storage) {
            return;
        }
    }
    if (uses->count < PYTORCH_USES_MAX) {
        uses->ids[uses->count++] = storage;
    }
}

/* Tensors are what lives between two steps, but for the gradients of weights, which the update
 * needs. What goes in the update stays to the end. */
static void find_tensors(struct import *import)
{
    for (uint32_t i = 0; i < import->found.storage_count; i++) {
        struct trace_storage *storage = &import->found.storages[i];
        enum atp_phase phase = import->found.steps[storage->made].phase;
        if (phase == ATP_PHASE_UPDATE || storage->made == storage->gone) {
            continue;
        }
        if (storage->gone != ATP_NONE &&
            import->found.steps[storage->gone].phase == ATP_PHASE_UPDATE) {
            storage->gone = ATP_NONE;
        }
        if (phase == ATP_PHASE_BACKWARD && storage->gone == ATP_NONE) {
            import->gradient_bytes += storage->bytes;
            continue;
        }
        storage->tensor = import->tensor_count++;
        add_use(&import->found.steps[storage->made].writes, i);
    }
}

static bool is_there(const struct import *import, uint32_t storage, uint32_t step)
{
    const struct trace_storage *s = &import->found.storages[storage];
    return s->tensor != ATP_NONE && s->made < step && (s->gone == ATP_NONE || s->gone >= step);
}

/* The storage of these bytes that was written last, but for those that other inputs are. */
static uint32_t find_input(const struct import *import, const struct trace_step *step, uint32_t at,
                           uint64_t bytes, const uint32_t *live, uint32_t live_count)
{
    uint64_t quantum = import->found.is_cuda ? CUDA_QUANTUM : 1, best_written = 0;
    uint32_t best = ATP_NONE;
    if (bytes == 0 || bytes > INT64_MAX) {
        return ATP_NONE;
    }
    bytes = (bytes + quantum - 1) / quantum * quantum;
    for (uint32_t i = 0; i < live_count; i++) {
        const struct trace_storage *storage = &import->found.storages[live[i]];
        bool is_taken = false;
        for (uint32_t k = 0; k < step->reads.count; k++) {
            is_taken = is_taken || step->reads.ids[k] == live[i];
        }
        if (!is_taken && storage->bytes == bytes && is_there(import, live[i], at) &&
            (best == ATP_NONE || storage->written >= best_written)) {
            best = live[i];
            best_written = storage->written;
        }
    }
    return best;
}

static void read_by_shape(struct import *import, uint32_t at, const uint32_t *live,
                          uint32_t live_count)
{
    struct trace_step *step = &import->found.steps[at];
    for (uint32_t i = 0; i < step->input_count && i < PYTORCH_USES_MAX; i++) {
        uint32_t found = find_input(import, step, at, step->input_bytes[i], live, live_count);
        if (found == ATP_NONE) {
            continue;
        }
        add_use(&step->reads, found);
        if (step->is_inplace && i == 0) {
            add_use(&step->writes, found);
            import->found.storages[found].written = at;
        }
    }
}

static int compare_numbers(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }
    return (a->step > b->step) - (a->step < b->step);
}

static void number_forward(struct import *import)
{
    const struct pytorch_trace *trace = import->found.trace;
    import->numbers = REGION_NEW(import->region, struct numbered, trace->op_count);
    for (uint32_t i = 0; i < trace->op_count; i++) {
        uint32_t step = import->found.op_step[i];
        if (step != ATP_NONE && trace->ops[i].sequence >= 0 &&
            import->found.steps[step].phase == ATP_PHASE_FORWARD) {
            import->numbers[import->number_count++] =
                (struct numbered){.sequence = trace->ops[i].sequence, .step = step};
        }
    }
    qsort(import->numbers, import->number_count, sizeof(*import->numbers), compare_numbers);
}

/* The last forward step with an operator of this number. */
static uint32_t find_forward(const struct import *import, int64_t sequence)
{
    uint32_t low = 0, high = import->number_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (import->numbers[middle].sequence <= sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found = low > 0 && sequence >= 0 && import->numbers[low - 1].sequence == sequence;
    return is_found ? import->numbers[low - 1].step : ATP_NONE;
}

static void read_by_number(struct import *import, uint32_t at)
{
    struct trace_step *step = &import->found.steps[at];
    uint32_t forward = find_forward(import, step->op->sequence);
    if (step->phase != ATP_PHASE_BACKWARD || forward == ATP_NONE || keeps_nothing(step->name)) {
        return;
    }
    const struct trace_uses *both[] = {&import->found.steps[forward].reads,
                                       &import->found.steps[forward].writes};
    for (size_t b = 0; b < 2; b++) {
        for (uint32_t i = 0; i < both[b]->count; i++) {
            if (is_there(import, both[b]->ids[i], at)) {
                add_use(&step->reads, both[b]->ids[i]);
            }
        }
    }
}

/* In the order of the steps, so that an input finds what was written before it. */
static void find_reads(struct import *import)
{
    struct pytorch_steps *found = &import->found;
    uint32_t *live = REGION_NEW(import->region, uint32_t, found->storage_count), live_count = 0;
    uint32_t next = 0;
    for (uint32_t at = 0; at < found->step_count; at++) {
        uint32_t kept = 0;
        /* Those of other threads may come in another order: they are seen a little later. */
        while (next < found->storage_count && found->storages[next].made < at) {
            live[live_count++] = next++;
        }
        for (uint32_t i = 0; i < live_count; i++) {
            if (is_there(import, live[i], at)) {
                live[kept++] = live[i];
            }
        }
        live_count = kept;
        if (found->steps[at].phase == ATP_PHASE_UPDATE) {
            continue;
        }
        read_by_shape(import, at, live, live_count);
        for (uint32_t i = 0; i < live_count; i++) {
            const struct trace_storage *storage = &found->storages[live[i]];
            if (storage->gone == at && storage->gone_within) {
                add_use(&found->steps[at].reads, live[i]);
            }
        }
        read_by_number(import, at);
    }
}

static int compare_names(const void *left, const void *right)
{
    const struct doc_index *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order == 0) {
        order = (a->group > b->group) - (a->group < b->group);
    }
    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

/* "aten::linear", "aten::linear#2", ...: names of steps are unique within a phase. */
static void number_names(struct import *import)
{
    uint32_t count = import->found.step_count, nth = 1;
    struct doc_index *index = REGION_NEW(import->region, struct doc_index, count);
    for (uint32_t s = 0; s < count; s++) {
        const struct trace_step *step = &import->found.steps[s];
        index[s] = (struct doc_index){.name = step->name, .group = step->phase, .id = s};
    }
    qsort(index, count, sizeof(*index), compare_names);
    for (uint32_t i = 0; i < count; i++) {
        bool is_next = i > 0 && index[i].group == index[i - 1].group &&
                       strcmp(index[i].name, index[i - 1].name) == 0;
        nth = is_next ? nth + 1 : 1;
        if (nth > 1) {
            size_t size = strlen(index[i].name) + 12;
            char *name = REGION_NEW(import->region, char, size);
            (void)snprintf(name, size, "%s#%" PRIu32, index[i].name, nth);
            import->found.steps[index[i].id].name = name;
        }
    }
}

static uint32_t tensor_ids(const struct import *import, const struct trace_uses *uses,
                           const uint32_t **out_ids)
{
    uint32_t *ids = REGION_NEW(import->region, uint32_t, uses->count);
    for (uint32_t i = 0; i < uses->count; i++) {
        ids[i] = import->found.storages[uses->ids[i]].tensor;
    }
    *out_ids = ids;
    return uses->count;
}

static void name_tensors(const struct import *import, struct atp_tensor *tensors)
{
    for (uint32_t i = 0, nth = 0; i < import->found.storage_count; i++) {
        const struct trace_storage *storage = &import->found.storages[i];
        if (storage->tensor == ATP_NONE) {
            continue;
        }
        const struct trace_step *step = &import->found.steps[storage->made];
        size_t size = strlen(step->name) + 24;
        char *name = REGION_NEW(import->region, char, size);
        const char *what = step->phase == ATP_PHASE_FORWARD ? "out" : "grad";
        for (nth = 0; step->writes.ids[nth] != i && nth + 1 < step->writes.count;) {
            nth++;
        }
        (void)snprintf(name, size, nth == 0 ? "%s.%s" : "%s.%s.%" PRIu32, step->name, what, nth);
        tensors[storage->tensor] = (struct atp_tensor){.name = name, .bytes = storage->bytes};
    }
}

/* Forward, backward, and all of the update as one step. */
static uint32_t make_steps(const struct import *import, struct atp_step *steps, int64_t *step_ns)
{
    struct atp_step update = {.name = "update", .phase = ATP_PHASE_UPDATE};
    int64_t update_ns = 0;
    uint32_t count = 0;
    for (uint32_t phase = ATP_PHASE_FORWARD; phase <= ATP_PHASE_UPDATE; phase++) {
        for (uint32_t s = 0; s < import->found.step_count; s++) {
            const struct trace_step *from = &import->found.steps[s];
            if (from->phase != phase) {
                continue;
            }
            if (phase == ATP_PHASE_UPDATE) {
                update_ns += from->ns;
                if (from->workspace_bytes > update.workspace_bytes) {
                    update.workspace_bytes = from->workspace_bytes;
                }
                continue;
            }
            struct atp_step *step = &steps[count];
            *step = (struct atp_step){.name = from->name,
                                      .phase = from->phase,
                                      .rerun_never = from->never && phase == ATP_PHASE_FORWARD,
                                      .workspace_bytes = from->workspace_bytes};
            step->read_count = tensor_ids(import, &from->reads, &step->reads);
            step->write_count = tensor_ids(import, &from->writes, &step->writes);
            step_ns[count++] = from->ns;
        }
    }
    if (update_ns > 0) {
        steps[count] = update;
        step_ns[count++] = update_ns;
    }
    return count;
}

static const char *describe(const struct import *import)
{
    char text[1200];
    (void)snprintf(
        text, sizeof(text),
        "a trace of torch.profiler, atp-plan import --pytorch. In it: the steps, their times (%s), "
        "sizes, when memory came and went. Inferred: what steps read, from shapes, from what went "
        "in which step, and from the numbers that pair backward with forward. Not in it: weights, "
        "buffers and the batch, which count as resident, as do the gradients of weights, %" PRIu64
        " bytes here; the link to the host; which steps must not run twice: by their names, random "
        "operators, batch normalisation, fused attention and collectives",
        import->found.trace->kernel_count > 0 ? "of their kernels" : "of the CPU",
        import->gradient_bytes);
    return region_copy_text(import->region, text);
}

enum atp_status import_pytorch(const char *text, size_t size, const char *model_name,
                               const struct import_numbers *numbers, struct region *region,
                               struct profile *out_profile, struct atp_error *err)
{
    struct pytorch_trace trace;
    struct import import = {.region = region};
    ATP_TRY(pytorch_trace_parse(text, size, region, &trace, err));
    ATP_TRY(pytorch_steps_find(&trace, region, &import.found, err));
    if (!trace.has_shapes) {
        return pytorch_trace_fail(&trace, 0, err,
                                  "no event has \"Input Dims\", expected shapes: "
                                  "profile(record_shapes=True)");
    }
    number_names(&import);
    find_tensors(&import);
    number_forward(&import);
    find_reads(&import);
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, import.tensor_count);
    struct atp_step *steps = REGION_NEW(region, struct atp_step, import.found.step_count + 1);
    int64_t *step_ns = REGION_NEW(region, int64_t, import.found.step_count + 1);
    name_tensors(&import, tensors);
    *out_profile = import_base(model_name, numbers);
    out_profile->model.tensor_count = import.tensor_count;
    out_profile->model.step_count = make_steps(&import, steps, step_ns);
    out_profile->model.tensors = tensors;
    out_profile->model.steps = steps;
    out_profile->clock.step_ns = step_ns;
    out_profile->origin = describe(&import);
    if (trace.device_name != NULL) {
        out_profile->device_name = trace.device_name;
    }
    return ATP_OK;
}
