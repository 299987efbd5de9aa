/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A layer holds the states in which the same steps have run; a state in it is the set of `bits` on
 * the device. Gradients and what update steps write cannot be made anew, so they are on the device
 * from their writer to their last reader in every program, and are no part of the state. Within a
 * layer a state goes on by dropping a tensor, free, or by rerunning a step; running the next step
 * leads to the next layer. Dijkstra layer by layer: times of a layer are final before the next one
 * is entered. Who reached a state first is kept, to walk the program back.
 */
#include "recompute_optimum.h"

#include "random_program.h"

#include <string.h>

#define NO_BIT     UINT8_MAX
#define UNKNOWN    INT64_MAX
#define STEPS_MAX  100U
#define MOVE_RERUN 128U /* plus the step; smaller moves are the bit that is dropped */
#define MOVE_RUN   UINT8_MAX

struct step_need {
    uint32_t reads, writes; /* sets of bits */
    uint64_t fixed_bytes;   /* workspace, and tensors without a bit that the step itself makes */
    bool may_rerun;
};

struct heap_entry {
    int64_t time;
    uint32_t state;
};

struct origin {
    uint32_t state;
    uint8_t move;
};

struct optimum {
    const struct problem *problem;
    const struct atp_model *model;
    struct region *region;
    uint64_t limit;
    uint32_t bit_count, state_count;
    uint32_t tensor_of[RECOMPUTE_OPTIMUM_TENSORS_MAX];
    uint8_t *bit_of; /* per tensor; NO_BIT: none */
    struct step_need *needs;
    uint64_t *held_bytes;  /* per layer: tensors without a bit, live between steps */
    uint64_t *state_bytes; /* per state */
    int64_t *time, *next_time;
    struct origin *origins; /* per layer and state */
    struct heap_entry *heap;
    uint32_t heap_count, heap_capacity;
};

static bool is_forward(const struct atp_model *model, uint32_t step)
{
    return step == ATP_NONE || model->steps[step].phase == ATP_PHASE_FORWARD;
}

/* A tensor with a bit: an input, or made by a forward step. */
static bool has_bit(const struct problem *problem, uint32_t tensor)
{
    uint32_t first = problem->first_access[tensor];
    return first < problem->first_access[tensor + 1] &&
           is_forward(problem->model, problem->accesses[first].step);
}

bool recompute_optimum_applies(const struct problem *problem)
{
    uint32_t bits = 0;
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        uint32_t written = 0;
        for (uint32_t a = problem->first_access[t]; a < problem->first_access[t + 1]; a++) {
            written += problem->accesses[a].writes;
        }
        bits += has_bit(problem, t);
        if (written > 1) {
            return false;
        }
    }
    return bits <= RECOMPUTE_OPTIMUM_TENSORS_MAX && problem->model->step_count <= STEPS_MAX;
}

/* ---- what steps need ---- */

static void number_bits(struct optimum *o)
{
    o->bit_of = REGION_NEW(o->region, uint8_t, o->model->tensor_count);
    for (uint32_t t = 0; t < o->model->tensor_count; t++) {
        o->bit_of[t] = NO_BIT;
        if (has_bit(o->problem, t)) {
            o->bit_of[t] = (uint8_t)o->bit_count;
            o->tensor_of[o->bit_count++] = t;
        }
    }
    o->state_count = UINT32_C(1) << o->bit_count;
    o->state_bytes = REGION_NEW(o->region, uint64_t, o->state_count);
    for (uint32_t state = 1; state < o->state_count; state++) {
        uint32_t low = (uint32_t)__builtin_ctz(state);
        o->state_bytes[state] =
            o->state_bytes[state & (state - 1)] + o->problem->tensor_bytes[o->tensor_of[low]];
    }
}

/* Layer l is the time before step l. */
static void sum_needs(struct optimum *o)
{
    const struct problem *p = o->problem;
    o->needs = REGION_NEW(o->region, struct step_need, o->model->step_count);
    o->held_bytes = REGION_NEW(o->region, uint64_t, (size_t)o->model->step_count + 1);
    for (uint32_t s = 0; s < o->model->step_count; s++) {
        struct step_need *need = &o->needs[s];
        need->fixed_bytes = p->workspace_bytes[s];
        need->may_rerun = is_forward(o->model, s) && !o->model->steps[s].rerun_never;
        for (uint32_t i = p->step_first[s]; i < p->step_first[s + 1]; i++) {
            const struct access *access = &p->accesses[p->step_accesses[i]];
            uint8_t bit = o->bit_of[access->tensor];
            if (bit != NO_BIT && access->writes) {
                need->writes |= UINT32_C(1) << bit;
            } else if (bit != NO_BIT) {
                need->reads |= UINT32_C(1) << bit;
            } else if (access->writes) {
                need->fixed_bytes += p->tensor_bytes[access->tensor];
            }
        }
    }
    for (uint32_t t = 0; t < o->model->tensor_count; t++) {
        uint32_t first = p->first_access[t], end = p->first_access[t + 1];
        if (o->bit_of[t] == NO_BIT && first < end) {
            for (uint32_t l = p->accesses[first].step + 1; l <= p->accesses[end - 1].step; l++) {
                o->held_bytes[l] += p->tensor_bytes[t];
            }
        }
    }
}

/* ---- the heap: least time first, then least state ---- */

static bool comes_before(struct heap_entry a, struct heap_entry b)
{
    return a.time < b.time || (a.time == b.time && a.state < b.state);
}

static void push(struct optimum *o, int64_t time, uint32_t state)
{
    if (o->heap_count == o->heap_capacity) {
        struct heap_entry *larger =
            REGION_NEW(o->region, struct heap_entry, (size_t)o->heap_capacity * 2);
        memcpy(larger, o->heap, o->heap_count * sizeof(*larger));
        o->heap = larger;
        o->heap_capacity *= 2;
    }
    uint32_t at = o->heap_count++;
    struct heap_entry entry = {time, state};
    while (at > 0 && comes_before(entry, o->heap[(at - 1) / 2])) {
        o->heap[at] = o->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    o->heap[at] = entry;
}

static struct heap_entry pop(struct optimum *o)
{
    struct heap_entry top = o->heap[0], last = o->heap[--o->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= o->heap_count) {
            break;
        }
        if (child + 1 < o->heap_count && comes_before(o->heap[child + 1], o->heap[child])) {
            child++;
        }
        if (!comes_before(o->heap[child], last)) {
            break;
        }
        o->heap[at] = o->heap[child];
        at = child;
    }
    o->heap[at] = last;
    return top;
}

/* ---- the search ---- */

static struct origin *origin_at(struct optimum *o, uint32_t layer, uint32_t state)
{
    return &o->origins[(size_t)layer * o->state_count + state];
}

/* Does the step fit beside what the state holds in this layer? */
static bool step_fits(const struct optimum *o, uint32_t layer, uint32_t step, uint32_t state)
{
    const struct step_need *need = &o->needs[step];
    return (state & need->reads) == need->reads &&
           o->held_bytes[layer] + o->state_bytes[state | need->writes] + need->fixed_bytes <=
               o->limit;
}

static void reach(struct optimum *o, uint32_t layer, int64_t time, uint32_t state,
                  struct origin origin)
{
    if (time < o->time[state]) {
        o->time[state] = time;
        *origin_at(o, layer, state) = origin;
        push(o, time, state);
    }
}

/* Final times of a layer from those with which its states were entered, all on the heap. */
static void settle_layer(struct optimum *o, uint32_t layer)
{
    while (o->heap_count > 0) {
        struct heap_entry at = pop(o);
        if (at.time > o->time[at.state]) {
            continue;
        }
        for (uint32_t bit = 0; bit < o->bit_count; bit++) {
            if (at.state >> bit & 1) {
                reach(o, layer, at.time, at.state & ~(UINT32_C(1) << bit),
                      (struct origin){at.state, (uint8_t)bit});
            }
        }
        for (uint32_t s = 0; s < layer; s++) {
            if (o->needs[s].may_rerun && step_fits(o, layer, s, at.state)) {
                reach(o, layer, at.time + o->problem->profile->clock.step_ns[s],
                      at.state | o->needs[s].writes,
                      (struct origin){at.state, (uint8_t)(MOVE_RERUN + s)});
            }
        }
    }
}

/* Runs step `layer` from every state that it fits. */
static void enter_next_layer(struct optimum *o, uint32_t layer)
{
    int64_t step_ns = o->problem->profile->clock.step_ns[layer];
    for (uint32_t state = 0; state < o->state_count; state++) {
        o->next_time[state] = UNKNOWN;
    }
    for (uint32_t state = 0; state < o->state_count; state++) {
        if (o->time[state] == UNKNOWN || !step_fits(o, layer, layer, state)) {
            continue;
        }
        uint32_t next = state | o->needs[layer].writes;
        if (o->time[state] + step_ns < o->next_time[next]) {
            o->next_time[next] = o->time[state] + step_ns;
            *origin_at(o, layer + 1, next) = (struct origin){state, MOVE_RUN};
        }
    }
    int64_t *swap = o->time;
    o->time = o->next_time;
    o->next_time = swap;
    for (uint32_t state = 0; state < o->state_count; state++) {
        if (o->time[state] != UNKNOWN) {
            push(o, o->time[state], state);
        }
    }
}

/* ---- the program ---- */

struct writer {
    const struct optimum *optimum;
    uint64_t *offsets; /* per tensor; step workspaces behind them */
    struct atp_instruction *program;
    uint32_t count;
    bool *present, *was_remade; /* per tensor */
};

static void emit(struct writer *w, enum atp_op op, uint32_t id, uint64_t offset)
{
    w->program[w->count++] = (struct atp_instruction){.op = op, .id = id, .offset = offset};
}

static void emit_alloc(struct writer *w, uint32_t tensor)
{
    emit(w, ATP_OP_ALLOC, tensor, w->offsets[tensor]);
    w->present[tensor] = true;
}

static void emit_free(struct writer *w, uint32_t tensor)
{
    emit(w, ATP_OP_FREE, tensor, 0);
    w->present[tensor] = false;
}

static void emit_step(struct writer *w, uint32_t step, bool again)
{
    const struct problem *p = w->optimum->problem;
    const struct atp_step *model_step = &p->model->steps[step];
    for (uint32_t i = 0; i < model_step->write_count; i++) {
        uint32_t tensor = model_step->writes[i];
        if (!w->present[tensor]) {
            emit_alloc(w, tensor);
            w->was_remade[tensor] = w->was_remade[tensor] || again;
        }
    }
    emit(w, again ? ATP_OP_RERUN : ATP_OP_RUN, step,
         model_step->workspace_bytes > 0 ? w->offsets[p->model->tensor_count + step] : 0);
    for (uint32_t i = p->step_first[step]; i < p->step_first[step + 1]; i++) {
        const struct access *access = &p->accesses[p->step_accesses[i]];
        if (w->optimum->bit_of[access->tensor] == NO_BIT && !access->has_next) {
            emit_free(w, access->tensor);
        }
    }
}

static bool is_begin(struct origin origin, uint32_t layer, uint32_t state)
{
    return layer == 0 && origin.state == state && origin.move == MOVE_RUN;
}

/* The moves that lead to `state` of the last layer, last to first; NULL: only their number. */
static uint32_t list_moves(struct optimum *o, uint32_t state, uint8_t *moves)
{
    uint32_t layer = o->model->step_count, count = 0;
    struct origin origin = *origin_at(o, layer, state);
    while (!is_begin(origin, layer, state)) {
        if (moves != NULL) {
            moves[count] = origin.move;
        }
        count++;
        layer -= origin.move == MOVE_RUN;
        state = origin.state;
        origin = *origin_at(o, layer, state);
    }
    return count;
}

static void write_program(struct writer *w, const uint8_t *moves, uint32_t move_count)
{
    const struct optimum *o = w->optimum;
    uint32_t next_step = 0;
    for (uint32_t t = 0; t < o->model->tensor_count; t++) {
        if (o->problem->is_input[t]) {
            emit_alloc(w, t);
        }
    }
    for (uint32_t i = move_count; i-- > 0;) {
        if (moves[i] == MOVE_RUN) {
            emit_step(w, next_step++, false);
        } else if (moves[i] < MOVE_RERUN) {
            emit_free(w, o->tensor_of[moves[i]]);
        } else {
            emit_step(w, moves[i] - MOVE_RERUN, true);
        }
    }
    for (uint32_t t = 0; t < o->model->tensor_count; t++) {
        if (w->present[t]) {
            emit_free(w, t);
        }
    }
}

static void build_plan(struct optimum *o, uint32_t state, struct atp_plan *plan)
{
    const struct atp_model *model = o->model;
    uint32_t move_count = list_moves(o, state, NULL);
    uint8_t *moves = REGION_NEW(o->region, uint8_t, move_count);
    (void)list_moves(o, state, moves);
    struct writer w = {
        .optimum = o,
        .offsets = REGION_NEW(o->region, uint64_t, (size_t)model->tensor_count + model->step_count),
        /* A move is a step with its outputs and what it frees, or one instruction. */
        .program = REGION_NEW(o->region, struct atp_instruction,
                              ((size_t)move_count + 2) * (model->tensor_count + 1)),
        .present = REGION_NEW(o->region, bool, model->tensor_count),
        .was_remade = REGION_NEW(o->region, bool, model->tensor_count),
    };
    uint64_t end = random_program_offsets(model, w.offsets);
    write_program(&w, moves, move_count);
    enum atp_decision *decisions = REGION_NEW(o->region, enum atp_decision, model->tensor_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        decisions[t] = w.was_remade[t] ? ATP_DECISION_RECOMPUTE : ATP_DECISION_KEEP;
    }
    *plan = (struct atp_plan){.model = *model,
                              .alignment_bytes = 1,
                              .budget_bytes = end,
                              .arena_bytes = end,
                              .decisions = decisions,
                              .instruction_count = w.count,
                              .program = w.program};
    atp_model_fingerprint(model, plan->fingerprint);
}

bool recompute_optimum(const struct problem *problem, uint64_t limit_bytes, struct region *region,
                       struct atp_plan *out_plan)
{
    struct optimum o = {.problem = problem,
                        .model = problem->model,
                        .region = region,
                        .limit = limit_bytes,
                        .heap_capacity = 1024};
    const uint32_t step_count = problem->model->step_count;
    number_bits(&o);
    sum_needs(&o);
    o.time = REGION_NEW(region, int64_t, o.state_count);
    o.next_time = REGION_NEW(region, int64_t, o.state_count);
    o.origins = REGION_NEW(region, struct origin, ((size_t)step_count + 1) * o.state_count);
    o.heap = REGION_NEW(region, struct heap_entry, o.heap_capacity);
    uint32_t begin = 0;
    for (uint32_t bit = 0; bit < o.bit_count; bit++) {
        begin |= (uint32_t)problem->is_input[o.tensor_of[bit]] << bit;
    }
    if (o.state_bytes[begin] > limit_bytes) {
        return false;
    }
    for (uint32_t state = 0; state < o.state_count; state++) {
        o.time[state] = UNKNOWN;
    }
    reach(&o, 0, 0, begin, (struct origin){begin, MOVE_RUN});
    for (uint32_t layer = 0; layer < step_count; layer++) {
        settle_layer(&o, layer);
        enter_next_layer(&o, layer);
    }
    uint32_t best = 0;
    for (uint32_t state = 0; state < o.state_count; state++) {
        best = o.time[state] < o.time[best] ? state : best;
    }
    if (o.time[best] == UNKNOWN) {
        return false;
    }
    build_plan(&o, best, out_plan);
    out_plan->predicted.iteration_ns = o.time[best];
    return true;
}
