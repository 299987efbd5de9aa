/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Walks the steps with the state of every tensor (on the device at which version, on the host at
 * which version) and makes present what each step needs: by a restore where a host copy of the
 * right version exists, else by rerunning the writers of the version, whose own inputs are made
 * present the same way. What a rerun brings back early stays until the tensor's next use, so that
 * the tensors of a segment share one rerun each.
 *
 * The state drives everything, so that any vector of choices gives right bytes or a named missing
 * tensor. Cost: linear in the uses of runs and reruns.
 */
#include "schedule_internal.h"

#include <string.h>

/* A chain of reruns deeper than this is never worth its time, and would need a deep stack. */
#define DEPTH_MAX 3000U
/* Lazy gaps compared in the time that an op takes, about. */
#define COMPARED_PER_OP 16U

static bool ensure(struct schedule *s, uint32_t tensor, uint32_t version);

static bool is_lazy(const struct schedule *s, uint32_t tensor)
{
    uint32_t gap = s->state[tensor].gap;
    return s->weights != NULL && gap != ATP_NONE && (s->choices[gap] & CHOICE_LAZY) != 0;
}

static void enter_lazy(struct schedule *s, uint32_t tensor)
{
    if (s->state[tensor].lazy_index == ATP_NONE && is_lazy(s, tensor)) {
        s->state[tensor].lazy_index = s->lazy_count;
        s->lazy[s->lazy_count++] = tensor;
    }
}

static void leave_lazy(struct schedule *s, uint32_t tensor)
{
    uint32_t index = s->state[tensor].lazy_index;
    if (index != ATP_NONE) {
        uint32_t last = s->lazy[--s->lazy_count];
        s->lazy[index] = last;
        s->state[last].lazy_index = index;
        s->state[tensor].lazy_index = ATP_NONE;
    }
}

static void discount(struct schedule *s, uint32_t tensor)
{
    if (s->state[tensor].is_counted) {
        s->open_bytes -= s->problem->tensor_bytes[tensor];
        s->state[tensor].is_counted = false;
    }
}

static uint32_t open_residence(struct schedule *s, uint32_t tensor, bool by_restore, uint32_t copy)
{
    struct sequence *sequence = &s->sequence;
    if (sequence->residence_count == s->residence_capacity) {
        sequence->too_long = true;
        return ATP_NONE;
    }
    uint32_t id = sequence->residence_count++;
    sequence->residences[id] = (struct residence){
        .tensor = tensor,
        .first_op = ATP_NONE,
        .last_op = ATP_NONE,
        .ready_op = ATP_NONE,
        .by_restore = by_restore,
        .copy = copy,
    };
    s->state[tensor].open = id;
    s->state[tensor].is_counted = true;
    s->open_bytes += s->problem->tensor_bytes[tensor];
    enter_lazy(s, tensor);
    return id;
}

/* An eviction is tentative until something restores its copy. */
void sequence_close(struct schedule *s, uint32_t tensor, bool by_evict)
{
    struct tensor_state *state = &s->state[tensor];
    struct residence *residence = &s->sequence.residences[state->open];
    if (by_evict && !(state->copy != ATP_NONE && state->copy_version == state->version)) {
        residence->by_evict = true;
        state->copy = state->open;
        state->copy_version = state->version;
    }
    state->open = ATP_NONE;
    discount(s, tensor);
    leave_lazy(s, tensor);
}

static void note_touched(struct schedule *s, uint32_t tensor)
{
    if (!s->state[tensor].touched) {
        s->state[tensor].touched = true;
        s->touched[s->touched_count++] = tensor;
    }
}

static void mark_needs(struct schedule *s, uint32_t step, uint32_t change)
{
    const uint32_t *first = &s->problem->step_first[step];
    for (const struct use *use = &s->uses[first[0]]; use < &s->uses[first[1]]; use++) {
        s->state[use->tensor].needs += change;
    }
}

/* What the step writes and is not there yet, and its workspace, must fit beside all else. */
static void make_room(struct schedule *s, uint32_t step)
{
    const uint32_t *first = &s->problem->step_first[step];
    uint64_t bytes = s->problem->workspace_bytes[step];
    uint64_t limit = problem_step_limit(s->problem, step);
    for (const struct use *use = &s->uses[first[0]]; use < &s->uses[first[1]]; use++) {
        bytes += s->state[use->tensor].open == ATP_NONE ? use->bytes : 0;
    }
    if (s->open_bytes + bytes > limit) {
        mark_needs(s, step, 1);
        pressure_relieve(s, bytes, limit);
        mark_needs(s, step, UINT32_MAX);
    }
}

/* Appends an op whose inputs are present, and lets it use its tensors. */
static bool append_op(struct schedule *s, uint32_t step, bool is_rerun)
{
    struct sequence *sequence = &s->sequence;
    if (is_rerun) {
        sequence->rerun_ns += s->problem->profile->clock.step_ns[step];
    }
    if (sequence->op_count == s->op_capacity || sequence->rerun_ns > s->rerun_limit_ns) {
        sequence->too_long = true;
        return false;
    }
    if (s->weights != NULL) {
        make_room(s, step);
    }
    uint32_t op = sequence->op_count++;
    sequence->ops[op] = (struct op){step, is_rerun};
    const uint32_t *first = &s->problem->step_first[step];
    for (const struct use *use = &s->uses[first[0]]; use < &s->uses[first[1]]; use++) {
        struct tensor_state *state = &s->state[use->tensor];
        if (state->open == ATP_NONE &&
            open_residence(s, use->tensor, false, ATP_NONE) == ATP_NONE) {
            return false;
        }
        struct residence *residence = &sequence->residences[state->open];
        if (residence->first_op == ATP_NONE) {
            residence->first_op = residence->ready_op = op;
        }
        residence->last_op = op;
        if (use->writes) {
            residence->ready_op = op;
            state->version = use->version;
        }
        residence->version = state->version;
        if (is_rerun) {
            note_touched(s, use->tensor);
        }
    }
    return true;
}

static bool is_present(const struct schedule *s, const struct use *use)
{
    const struct tensor_state *state = &s->state[use->tensor];
    return !use->needs || (state->open != ATP_NONE && state->version == use->read_version);
}

/* The step that makes the version that a use needs; ATP_NONE: none does, it is an input. */
static uint32_t writer_of(const struct schedule *s, const struct use *use)
{
    return use->read_version == 0
               ? ATP_NONE
               : s->writer_steps[s->first_writer[use->tensor] + use->read_version - 1];
}

/* The use of the step that is to be made ready next; NULL: all are ready. Walking on from `use`,
 * or, latest first, always among all. */
static const struct use *find_absent(const struct schedule *s, const struct use *use, uint32_t step)
{
    const struct use *end = &s->uses[s->problem->step_first[step + 1]], *latest = NULL;
    for (; use < end; use++) {
        if (is_present(s, use)) {
            continue;
        }
        if (!s->latest_first) {
            return use;
        }
        if (latest == NULL || writer_of(s, use) > writer_of(s, latest)) {
            latest = use;
        }
    }
    return latest;
}

/* Making one input may overwrite the storage of another (in-place chains), so the inputs are looked
 * at again. */
static bool make_inputs(struct schedule *s, uint32_t step)
{
    const uint32_t *first = &s->problem->step_first[step];
    const struct use *absent = NULL;
    for (uint32_t made = 0; made <= 3 * (first[1] - first[0]); made++) {
        bool goes_on = absent != NULL && !s->latest_first;
        absent = goes_on ? find_absent(s, absent + 1, step) : NULL;
        absent = absent == NULL ? find_absent(s, &s->uses[first[0]], step) : absent;
        if (absent == NULL) {
            return true;
        }
        if (!ensure(s, absent->tensor, absent->read_version)) {
            return false;
        }
    }
    s->sequence.missing_tensor = absent->tensor;
    return false;
}

static bool ensure_inputs(struct schedule *s, uint32_t step)
{
    if (find_absent(s, &s->uses[s->problem->step_first[step]], step) == NULL) {
        return true;
    }
    mark_needs(s, step, 1);
    bool done = make_inputs(s, step);
    mark_needs(s, step, UINT32_MAX);
    return done;
}

static bool may_rerun(const struct schedule *s, uint32_t tensor, uint32_t from_version,
                      uint32_t to_version)
{
    for (uint32_t v = from_version; v <= to_version; v++) {
        const struct atp_step *step =
            &s->problem->model->steps[s->writer_steps[s->first_writer[tensor] + v - 1]];
        if (step->phase != ATP_PHASE_FORWARD || step->rerun_never) {
            return false;
        }
    }
    return true;
}

static bool rerun_writers(struct schedule *s, uint32_t tensor, uint32_t from_version,
                          uint32_t to_version)
{
    for (uint32_t v = from_version; v <= to_version; v++) {
        uint32_t step = s->writer_steps[s->first_writer[tensor] + v - 1];
        if (s->depth == DEPTH_MAX) {
            s->sequence.too_long = true;
            return false;
        }
        s->depth++;
        bool done = ensure_inputs(s, step) && append_op(s, step, true);
        s->depth--;
        if (!done) {
            return false;
        }
    }
    return true;
}

/* Makes `tensor` present at `version`. */
static bool ensure(struct schedule *s, uint32_t tensor, uint32_t version)
{
    struct tensor_state *state = &s->state[tensor];
    bool is_open = state->open != ATP_NONE;
    if (is_open && state->version == version) {
        return true;
    }
    if (is_open && state->version < version && may_rerun(s, tensor, state->version + 1, version)) {
        return rerun_writers(s, tensor, state->version + 1, version);
    }
    if (state->copy != ATP_NONE && state->copy_version <= version &&
        (state->copy_version == version ||
         may_rerun(s, tensor, state->copy_version + 1, version))) {
        if (is_open) {
            sequence_close(s, tensor, false);
        }
        uint32_t from = state->copy_version;
        if (open_residence(s, tensor, true, state->copy) == ATP_NONE) {
            return false;
        }
        state->version = from;
        note_touched(s, tensor);
        return from == version || rerun_writers(s, tensor, from + 1, version);
    }
    if (s->problem->is_input[tensor] || version == 0 || !may_rerun(s, tensor, 1, version)) {
        s->sequence.missing_tensor = tensor;
        return false;
    }
    return rerun_writers(s, tensor, 1, version);
}

/* The gap behind `gap` begins, or goes on after a rerun (`again`) used the tensor within it. */
static void apply_choice(struct schedule *s, uint32_t tensor, uint32_t gap, bool again)
{
    const struct access *access = &s->problem->accesses[gap];
    uint8_t choice = s->choices[gap];
    uint8_t kind = CHOICE_KIND(choice);
    if (choice & CHOICE_LAZY) {
        enter_lazy(s, tensor);
        kind = CHOICE_KEEP;
    } else if (!access->has_next && kind == CHOICE_KEEP) {
        discount(s, tensor); /* no use of it is known */
    }
    if (kind == CHOICE_RECOMPUTE && !s->problem->recomputable[gap]) {
        kind = access->has_next ? CHOICE_SWAP : CHOICE_KEEP;
    }
    if (again) {
        uint32_t version = s->state[tensor].version;
        bool is_right = version == access->version;
        /* An older version is what the later writers rerun on. */
        bool is_start = version < access->version && kind == CHOICE_KEEP;
        struct tensor_state *state = &s->state[tensor];
        bool is_dropped = (choice & (CHOICE_AGAIN_FIRST << state->touches)) != 0;
        bool is_held = !is_dropped && (access->has_next || kind == CHOICE_KEEP);
        state->touches = (uint8_t)(state->touches + (state->touches < TOUCHES_MAX));
        if ((is_right || is_start) && is_held) {
            return;
        }
        sequence_close(s, tensor, false);
        return;
    }
    if (kind != CHOICE_KEEP) {
        sequence_close(s, tensor, kind == CHOICE_SWAP);
    }
}

static bool run_step(struct schedule *s, uint32_t step)
{
    const uint32_t *first = &s->problem->step_first[step];
    s->touched_count = 0;
    s->at_step = step;
    if (!ensure_inputs(s, step) || !append_op(s, step, false)) {
        return false;
    }
    for (const struct use *use = &s->uses[first[0]]; use < &s->uses[first[1]]; use++) {
        s->state[use->tensor].gap = use->access;
        s->state[use->tensor].touched = false;
        s->state[use->tensor].touches = 0;
        leave_lazy(s, use->tensor);
        apply_choice(s, use->tensor, use->access, false);
    }
    for (uint32_t i = 0; i < s->touched_count; i++) {
        uint32_t tensor = s->touched[i];
        struct tensor_state *state = &s->state[tensor];
        if (state->touched && state->open != ATP_NONE) {
            apply_choice(s, tensor, state->gap, true);
        }
        state->touched = false;
    }
    return true;
}

static bool begin(struct schedule *s)
{
    const struct problem *problem = s->problem;
    struct sequence *sequence = &s->sequence;
    sequence->ops[0] = (struct op){ATP_NONE, false};
    sequence->op_count = 1;
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        s->state[t] = (struct tensor_state){
            .open = ATP_NONE, .copy = ATP_NONE, .gap = ATP_NONE, .lazy_index = ATP_NONE};
    }
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        if (!problem->is_input[t]) {
            continue;
        }
        uint32_t id = open_residence(s, t, false, ATP_NONE);
        if (id == ATP_NONE) {
            return false;
        }
        struct residence *residence = &sequence->residences[id];
        residence->first_op = residence->last_op = residence->ready_op = 0;
        s->state[t].gap = problem->first_access[t];
        apply_choice(s, t, s->state[t].gap, false);
    }
    return true;
}

/* Evictions that nothing restores become plain releases; sizes are summed over ops. */
static void finish(struct schedule *s)
{
    const struct problem *problem = s->problem;
    struct sequence *sequence = &s->sequence;
    uint64_t *memory = sequence->memory_bytes;
    memset(memory, 0, ((size_t)sequence->op_count + 1) * sizeof(*memory));
    memset(s->copy_used, 0, sequence->residence_count * sizeof(*s->copy_used));
    for (uint32_t r = 0; r < sequence->residence_count; r++) {
        const struct residence *residence = &sequence->residences[r];
        if (residence->by_restore && residence->first_op != ATP_NONE) {
            s->copy_used[residence->copy] = true;
        }
    }
    for (uint32_t r = 0; r < sequence->residence_count; r++) {
        struct residence *residence = &sequence->residences[r];
        residence->by_evict = residence->by_evict && s->copy_used[r];
        if (residence->first_op == ATP_NONE) {
            continue;
        }
        memory[residence->first_op] += problem->tensor_bytes[residence->tensor];
        memory[residence->last_op + 1] -= problem->tensor_bytes[residence->tensor];
    }
    uint64_t running = 0;
    for (uint32_t op = 0; op < sequence->op_count; op++) {
        uint32_t step = sequence->ops[op].step;
        running += memory[op];
        memory[op] = running;
        if (step != ATP_NONE) {
            memory[op] += problem->workspace_bytes[step];
        }
        uint64_t limit = problem_step_limit(problem, step);
        if (memory[op] > limit) {
            uint64_t excess = memory[op] - limit;
            sequence->excess_sum += excess;
            if (excess > sequence->excess_bytes) {
                sequence->excess_bytes = excess;
                sequence->excess_op = op;
            }
        }
    }
}

void sequence_build(struct schedule *s, const struct selection *selection)
{
    struct sequence *sequence = &s->sequence;
    s->choices = selection->choices;
    s->weights = selection->weights;
    s->latest_first = selection->latest_first;
    s->depth = 0;
    s->touched_count = 0;
    s->open_bytes = s->compared = 0;
    s->lazy_count = 0;
    sequence->op_count = sequence->residence_count = 0;
    sequence->rerun_ns = 0;
    sequence->excess_bytes = sequence->excess_sum = 0;
    sequence->excess_op = sequence->missing_tensor = ATP_NONE;
    sequence->too_long = false;
    bool goes_on = begin(s);
    for (uint32_t step = 0; goes_on && step < s->problem->model->step_count; step++) {
        goes_on = run_step(s, step);
    }
    if (goes_on) {
        finish(s);
    }
    sequence->work = sequence->op_count + s->compared / COMPARED_PER_OP;
}
