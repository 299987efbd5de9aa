/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every tensor has arena and host bytes of its own, so that placement never stands in the way; the
 * limit on live bytes is kept by counting.
 */
#include "random_program.h"

#define DEPTH_MAX        24U
#define INSTRUCTIONS_MAX 4000U
#define NO_VERSION       UINT32_MAX

enum flight { FLIGHT_NONE, FLIGHT_EVICT, FLIGHT_RESTORE };

struct device {
    bool present;
    uint32_t version; /* NO_VERSION: undefined */
    enum flight flight;
    uint32_t host_version; /* NO_VERSION: no copy */
    uint32_t held;         /* by requests under way */
    bool was_evicted, was_remade;
};

struct walk {
    const struct problem *problem;
    const struct atp_model *model;
    struct random *random;
    struct device *devices;
    uint64_t *offsets; /* per tensor; step workspaces behind them */
    uint64_t limit, live, peak;
    uint32_t next_step;
    struct atp_instruction *program;
    uint32_t count;
    /* Temper, percent. */
    uint32_t evicts, restores, farthest, early_evict, early_restore, early_free, lazy_wait;
};

static bool emit(struct walk *w, enum atp_op op, uint32_t id, uint64_t offset)
{
    if (w->count == INSTRUCTIONS_MAX) {
        return false;
    }
    w->program[w->count++] = (struct atp_instruction){.op = op, .id = id, .offset = offset};
    return true;
}

static uint64_t bytes_of(const struct walk *w, uint32_t tensor)
{
    return w->model->tensors[tensor].bytes;
}

/* The tensor's next access by a step that has not run; access_count: none. */
static uint32_t next_access(const struct walk *w, uint32_t tensor)
{
    const struct problem *p = w->problem;
    for (uint32_t a = p->first_access[tensor]; a < p->first_access[tensor + 1]; a++) {
        if (p->accesses[a].step != ATP_NONE && p->accesses[a].step >= w->next_step) {
            return a;
        }
    }
    return p->access_count;
}

static bool needs_contents(const struct access *access)
{
    return !(access->writes && access->read_version == access->version);
}

/* Is the tensor's present version what its next access needs? */
static bool is_wanted(const struct walk *w, uint32_t tensor)
{
    uint32_t a = next_access(w, tensor);
    return a != w->problem->access_count && needs_contents(&w->problem->accesses[a]) &&
           w->problem->accesses[a].read_version == w->devices[tensor].version;
}

static uint32_t writer_of(const struct walk *w, uint32_t tensor, uint32_t version)
{
    const struct problem *p = w->problem;
    for (uint32_t a = p->first_access[tensor]; a < p->first_access[tensor + 1]; a++) {
        if (p->accesses[a].writes && p->accesses[a].version == version) {
            return p->accesses[a].step;
        }
    }
    return ATP_NONE;
}

static bool can_remake(const struct walk *w, uint32_t tensor, uint32_t version)
{
    uint32_t step =
        version == 0 || version == NO_VERSION ? ATP_NONE : writer_of(w, tensor, version);
    return step != ATP_NONE && step < w->next_step && !w->model->steps[step].rerun_never &&
           w->model->steps[step].phase == ATP_PHASE_FORWARD;
}

static void release(struct walk *w, uint32_t tensor)
{
    w->devices[tensor].present = false;
    w->devices[tensor].version = NO_VERSION;
    w->devices[tensor].flight = FLIGHT_NONE;
    w->live -= bytes_of(w, tensor);
}

static bool settle_restore(struct walk *w, uint32_t tensor)
{
    w->devices[tensor].flight = FLIGHT_NONE;
    return emit(w, ATP_OP_RESTORED, tensor, 0);
}

static bool begin_evict(struct walk *w, uint32_t tensor)
{
    struct device *d = &w->devices[tensor];
    d->flight = FLIGHT_EVICT;
    d->host_version = d->version;
    d->was_evicted = true;
    return emit(w, ATP_OP_EVICT, tensor, w->offsets[tensor]);
}

/* Takes the tensor off the device, by a copy to the host where its contents matter. */
static bool push_out(struct walk *w, uint32_t tensor, bool matters)
{
    struct device *d = &w->devices[tensor];
    if (d->flight == FLIGHT_RESTORE && !settle_restore(w, tensor)) {
        return false;
    }
    if (d->flight == FLIGHT_NONE && d->version != NO_VERSION && d->host_version != d->version &&
        matters && (!can_remake(w, tensor, d->version) || random_chance(w->random, w->evicts))) {
        if (!begin_evict(w, tensor)) {
            return false;
        }
    }
    enum atp_op op = d->flight == FLIGHT_EVICT ? ATP_OP_EVICTED : ATP_OP_FREE;
    release(w, tensor);
    return emit(w, op, tensor, 0);
}

/* Sooner for what matters less: 0 for tensors not worth anything any more. */
static uint32_t pick_victim(struct walk *w)
{
    uint32_t best = ATP_NONE, best_step = 0, seen = 0;
    bool farthest = random_chance(w->random, w->farthest);
    for (uint32_t t = 0; t < w->model->tensor_count; t++) {
        const struct device *d = &w->devices[t];
        if (!d->present || d->held > 0 || bytes_of(w, t) == 0) {
            continue;
        }
        uint32_t a = next_access(w, t);
        uint32_t step = is_wanted(w, t) ? w->problem->accesses[a].step : UINT32_MAX;
        seen++;
        if (best == ATP_NONE ||
            (farthest ? step > best_step : random_below(w->random, seen) == 0)) {
            best = t;
            best_step = step;
        }
    }
    return best;
}

static bool make_room(struct walk *w, uint64_t bytes)
{
    while (w->live + bytes > w->limit) {
        uint32_t victim = pick_victim(w);
        if (victim == ATP_NONE) {
            return false;
        }
        bool matters = is_wanted(w, victim) || random_chance(w->random, 10);
        if (!push_out(w, victim, matters)) {
            return false;
        }
    }
    w->peak = w->live + bytes > w->peak ? w->live + bytes : w->peak;
    return true;
}

static bool take_bytes(struct walk *w, uint32_t tensor, enum atp_op op)
{
    if (!make_room(w, bytes_of(w, tensor))) {
        return false;
    }
    w->live += bytes_of(w, tensor);
    w->devices[tensor].present = true;
    return emit(w, op, tensor, w->offsets[tensor]);
}

static bool begin_restore(struct walk *w, uint32_t tensor)
{
    w->devices[tensor].version = w->devices[tensor].host_version;
    w->devices[tensor].flight = FLIGHT_RESTORE;
    return take_bytes(w, tensor, ATP_OP_RESTORE);
}

static bool do_step(struct walk *w, uint32_t step, bool again, uint32_t depth);

/* Puts the version in place, to be read, or written when `to_write`. */
static bool bring(struct walk *w, uint32_t tensor, uint32_t version, bool to_write, uint32_t depth)
{
    struct device *d = &w->devices[tensor];
    if (d->present && d->version != version) {
        if (d->held > 0 || !push_out(w, tensor, is_wanted(w, tensor))) {
            return false;
        }
    }
    if (d->present && d->flight == FLIGHT_EVICT && to_write) {
        release(w, tensor);
        if (!emit(w, ATP_OP_EVICTED, tensor, 0)) {
            return false;
        }
    }
    if (!d->present) {
        bool remake = can_remake(w, tensor, version) && depth < DEPTH_MAX;
        bool restore =
            d->host_version == version && (!remake || random_chance(w->random, w->restores));
        if (!restore && !remake) {
            return false;
        }
        if (restore ? !begin_restore(w, tensor)
                    : !do_step(w, writer_of(w, tensor, version), true, depth + 1)) {
            return false;
        }
    }
    return d->flight != FLIGHT_RESTORE || settle_restore(w, tensor);
}

/* Device bytes for an output whose contents the step makes from nothing. */
static bool claim(struct walk *w, uint32_t tensor)
{
    struct device *d = &w->devices[tensor];
    if (d->present && d->flight == FLIGHT_EVICT) {
        release(w, tensor);
        if (!emit(w, ATP_OP_EVICTED, tensor, 0)) {
            return false;
        }
    }
    if (d->present && d->flight == FLIGHT_RESTORE && !settle_restore(w, tensor)) {
        return false;
    }
    if (!d->present) {
        d->version = NO_VERSION;
        return take_bytes(w, tensor, ATP_OP_ALLOC);
    }
    return true;
}

/* Is a present version about to be overwritten by a rerun that has to be saved first? */
static bool save_output(struct walk *w, uint32_t tensor, const struct access *access)
{
    struct device *d = &w->devices[tensor];
    if (!d->present || d->version == access->version || d->version == NO_VERSION ||
        d->version == access->read_version) {
        return true;
    }
    return d->held == 0 && push_out(w, tensor, is_wanted(w, tensor));
}

static bool do_step(struct walk *w, uint32_t step, bool again, uint32_t depth)
{
    const struct problem *p = w->problem;
    uint32_t first = p->step_first[step], end = p->step_first[step + 1], held = first;
    bool good = true;
    for (; held < end && good; held++) {
        const struct access *access = &p->accesses[p->step_accesses[held]];
        bool contents = needs_contents(access);
        good = (!again || !access->writes || save_output(w, access->tensor, access)) &&
               (contents ? bring(w, access->tensor, access->read_version, access->writes, depth)
                         : claim(w, access->tensor));
        w->devices[access->tensor].held += 1;
    }
    uint64_t workspace = w->model->steps[step].workspace_bytes;
    /* What was brought for an earlier use may be gone again: by a rerun of a common writer. */
    for (uint32_t i = first; i < end && good; i++) {
        const struct access *access = &p->accesses[p->step_accesses[i]];
        const struct device *d = &w->devices[access->tensor];
        good = d->present && d->flight != FLIGHT_RESTORE &&
               (!needs_contents(access) || d->version == access->read_version) &&
               (!access->writes || d->flight == FLIGHT_NONE);
    }
    good = good && make_room(w, workspace);
    for (uint32_t i = first; i < held; i++) {
        w->devices[p->accesses[p->step_accesses[i]].tensor].held -= 1;
    }
    if (!good) {
        return false;
    }
    for (uint32_t i = first; i < end; i++) {
        const struct access *access = &p->accesses[p->step_accesses[i]];
        struct device *d = &w->devices[access->tensor];
        if (access->writes) {
            d->was_remade = d->was_remade || (again && d->version == NO_VERSION);
            d->version = access->version;
        }
    }
    uint64_t offset = workspace > 0 ? w->offsets[w->model->tensor_count + step] : 0;
    return emit(w, again ? ATP_OP_RERUN : ATP_OP_RUN, step, offset);
}

/* Now and then something ahead of its time: most useful what the next steps need. */
static bool act_early(struct walk *w)
{
    for (uint32_t t = 0; t < w->model->tensor_count; t++) {
        struct device *d = &w->devices[t];
        bool wanted = is_wanted(w, t);
        uint32_t a = next_access(w, t);
        if (d->present && !wanted && random_chance(w->random, w->early_free)) {
            if (!push_out(w, t, false)) {
                return false;
            }
        } else if (d->present && d->flight == FLIGHT_NONE && d->version != NO_VERSION &&
                   d->host_version != d->version && random_chance(w->random, w->early_evict)) {
            if (!begin_evict(w, t)) {
                return false;
            }
        } else if (d->present && d->flight == FLIGHT_EVICT &&
                   random_chance(w->random, w->lazy_wait)) {
            release(w, t);
            if (!emit(w, ATP_OP_EVICTED, t, 0)) {
                return false;
            }
        } else if (!d->present && d->host_version != NO_VERSION && a != w->problem->access_count &&
                   needs_contents(&w->problem->accesses[a]) &&
                   w->problem->accesses[a].read_version == d->host_version &&
                   w->live + bytes_of(w, t) <= w->limit &&
                   random_chance(w->random, w->early_restore)) {
            if (!begin_restore(w, t)) {
                return false;
            }
        } else if (d->present && d->version != NO_VERSION && d->flight == FLIGHT_NONE &&
                   d->host_version == d->version && wanted &&
                   random_chance(w->random, w->early_free / 2)) {
            if (!push_out(w, t, true)) {
                return false;
            }
        }
    }
    return true;
}

uint64_t random_program_offsets(const struct atp_model *model, uint64_t *out_offsets)
{
    uint64_t end = 0;
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        out_offsets[t] = end;
        end += model->tensors[t].bytes;
    }
    for (uint32_t s = 0; s < model->step_count; s++) {
        out_offsets[model->tensor_count + s] = end;
        end += model->steps[s].workspace_bytes;
    }
    return end;
}

static bool walk_steps(struct walk *w)
{
    for (uint32_t t = 0; t < w->model->tensor_count; t++) {
        w->devices[t].version = w->devices[t].host_version = NO_VERSION;
        if (w->problem->is_input[t]) {
            if (!take_bytes(w, t, ATP_OP_ALLOC)) {
                return false;
            }
            w->devices[t].version = 0;
            w->devices[t].held = 1;
        }
    }
    for (uint32_t t = 0; t < w->model->tensor_count; t++) {
        w->devices[t].held = 0;
    }
    for (; w->next_step < w->model->step_count; w->next_step++) {
        if (!act_early(w) || !do_step(w, w->next_step, false, 0)) {
            return false;
        }
        if (random_chance(w->random, 5)) {
            uint32_t step = random_below(w->random, w->next_step + 1);
            const struct atp_step *s = &w->model->steps[step];
            if (s->phase == ATP_PHASE_FORWARD && !s->rerun_never && step < w->next_step &&
                !do_step(w, step, true, 0)) {
                return false;
            }
        }
    }
    for (uint32_t t = 0; t < w->model->tensor_count; t++) {
        if (w->devices[t].present && !push_out(w, t, false)) {
            return false;
        }
    }
    return true;
}

bool random_program_build(const struct problem *problem, uint64_t limit_bytes,
                          struct random *random, struct region *region, struct atp_plan *out_plan)
{
    const struct atp_model *model = problem->model;
    bool greedy = random_chance(random, 60);
    struct walk walk = {
        .problem = problem,
        .model = model,
        .random = random,
        .devices = REGION_NEW(region, struct device, model->tensor_count),
        .limit = limit_bytes,
        .program = REGION_NEW(region, struct atp_instruction, INSTRUCTIONS_MAX),
        .evicts = random_below(random, 101),
        .restores = random_below(random, 101),
        .farthest = greedy ? 90 + random_below(random, 11) : random_below(random, 101),
        .early_evict = greedy ? random_below(random, 30) : random_below(random, 60),
        .early_restore = random_below(random, 100),
        .early_free = greedy ? 100 : random_below(random, 101),
        .lazy_wait = greedy ? 0 : random_below(random, 60),
    };
    walk.offsets = REGION_NEW(region, uint64_t, (size_t)model->tensor_count + model->step_count);
    uint64_t end = random_program_offsets(model, walk.offsets);
    if (!walk_steps(&walk)) {
        return false;
    }
    enum atp_decision *decisions = REGION_NEW(region, enum atp_decision, model->tensor_count);
    for (uint32_t t = 0; t < model->tensor_count; t++) {
        const struct device *d = &walk.devices[t];
        decisions[t] = d->was_evicted  ? ATP_DECISION_SWAP
                       : d->was_remade ? ATP_DECISION_RECOMPUTE
                                       : ATP_DECISION_KEEP;
    }
    *out_plan = (struct atp_plan){.model = *model,
                                  .alignment_bytes = 1,
                                  .budget_bytes = end,
                                  .arena_bytes = end,
                                  .host_arena_bytes = end,
                                  .predicted = {.peak_bytes = walk.peak},
                                  .decisions = decisions,
                                  .instruction_count = walk.count,
                                  .program = walk.program};
    atp_model_fingerprint(model, out_plan->fingerprint);
    return true;
}
