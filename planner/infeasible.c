/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * While a step runs, its working set is on the device in every program, and so is, pinned or not,
 * each tensor that is idle over the step and can be nowhere else: kept by a pin; or impossible to
 * recompute, when the host is full. One sweep over the steps sums these; a few sweeps under
 * different rules say what each rule costs. Linear in the accesses. The largest batch size that
 * fits takes a binary search: needs grow with the batch.
 */
#include "infeasible.h"

#include "profile.h"
#include "size.h"
#include "words.h"

#include <inttypes.h>
#include <string.h>

#define TENSORS_SHOWN 4U
#define STEPS_SHOWN   3U

/* ---- what is needed ---- */

/* May what is idle behind the access be recomputed, if `rerun: never` did not count? */
static bool is_made_forward(const struct problem *problem, uint32_t a)
{
    uint32_t tensor = problem->accesses[a].tensor;
    for (uint32_t b = problem->first_access[tensor]; b <= a; b++) {
        const struct access *access = &problem->accesses[b];
        if (access->writes && problem->model->steps[access->step].phase != ATP_PHASE_FORWARD) {
            return false;
        }
    }
    return !problem->is_input[tensor];
}

enum idle { IDLE_ANYWHERE, IDLE_KEPT, IDLE_STUCK };

static enum idle idle_behind(const struct problem *problem, const struct infeasible_rules *rules,
                             uint32_t a)
{
    enum profile_pin pin = problem->profile->pins[problem->accesses[a].tensor];
    if (pin == PROFILE_PIN_KEEP && rules->keep_pins) {
        return IDLE_KEPT;
    }
    bool remakes =
        problem->recomputable[a] || (rules->reruns_allowed && is_made_forward(problem, a));
    return remakes ? IDLE_ANYWHERE : IDLE_STUCK;
}

/* Per step, bytes of tensors that are idle over it and of the kind given. */
static uint64_t *sum_idle(const struct problem *problem, const struct infeasible_rules *rules,
                          enum idle kind, struct region *region)
{
    uint32_t step_count = problem->model->step_count;
    uint64_t *sums = REGION_NEW(region, uint64_t, (size_t)step_count + 1); /* modulo 2^64 */
    for (uint32_t a = 0; a < problem->access_count; a++) {
        const struct access *access = &problem->accesses[a];
        if (!access->has_next || idle_behind(problem, rules, a) != kind) {
            continue;
        }
        uint64_t bytes = problem->tensor_bytes[access->tensor];
        sums[access->step == ATP_NONE ? 0 : access->step + 1] += bytes;
        sums[problem->accesses[a + 1].step] -= bytes;
    }
    for (uint32_t s = 1; s <= step_count; s++) {
        sums[s] += sums[s - 1];
    }
    return sums;
}

void infeasible_need(const struct problem *problem, const struct infeasible_rules *rules,
                     struct region *region, struct infeasible_need *out_need)
{
    struct region_mark mark = region_mark(region);
    const uint64_t *kept = sum_idle(problem, rules, IDLE_KEPT, region);
    const uint64_t *stuck = sum_idle(problem, rules, IDLE_STUCK, region);
    *out_need = (struct infeasible_need){.arena_bytes = problem->input_bytes,
                                         .working_set_bytes = problem->input_bytes,
                                         .step = ATP_NONE};
    for (uint32_t s = 0; s < problem->model->step_count; s++) {
        struct infeasible_need need = {
            .working_set_bytes = problem->working_set_bytes[s],
            .kept_bytes = kept[s],
            .stuck_bytes = stuck[s] > rules->host_bytes ? stuck[s] - rules->host_bytes : 0,
            .step = s,
        };
        need.arena_bytes = need.working_set_bytes + need.kept_bytes + need.stuck_bytes;
        if (need.arena_bytes > out_need->arena_bytes) {
            *out_need = need;
        }
    }
    region_reset(region, mark);
}

/* The least host memory with which no step needs more than `arena_bytes`, kept ones included. */
static uint64_t host_bytes_for(const struct problem *problem, uint64_t arena_bytes,
                               struct region *region)
{
    static const struct infeasible_rules rules = {.keep_pins = true, .host_bytes = UINT64_MAX};
    struct region_mark mark = region_mark(region);
    const uint64_t *kept = sum_idle(problem, &rules, IDLE_KEPT, region);
    const uint64_t *stuck = sum_idle(problem, &rules, IDLE_STUCK, region);
    uint64_t most = 0;
    for (uint32_t s = 0; s < problem->model->step_count; s++) {
        uint64_t fixed = problem->working_set_bytes[s] + kept[s];
        uint64_t room = arena_bytes > fixed ? arena_bytes - fixed : 0;
        uint64_t host = stuck[s] > room ? stuck[s] - room : 0;
        most = host > most ? host : most;
    }
    region_reset(region, mark);
    return most;
}

/* ---- in words ---- */

struct explanation {
    const struct profile *profile;
    const struct problem *problem;
    uint64_t budget_bytes;
    struct region *region;
    FILE *out;
};

static uint64_t need_under(const struct explanation *e, bool keep_pins, bool reruns_allowed,
                           uint64_t host_bytes)
{
    struct infeasible_rules rules = {keep_pins, reruns_allowed, host_bytes};
    struct infeasible_need need;
    infeasible_need(e->problem, &rules, e->region, &need);
    return e->profile->resident_bytes + need.arena_bytes;
}

static const char *step_name(const struct explanation *e, uint32_t step)
{
    return step == ATP_NONE ? "the beginning of the iteration" : e->profile->model.steps[step].name;
}

/* Which tensors to name: those that the step uses; those that pins keep while it runs; those that
 * only `rerun: never` keeps from being recomputed. */
enum part { PART_WORKING_SET, PART_KEPT, PART_NEVER };

static bool is_part(const struct explanation *e, uint32_t step, uint32_t tensor, enum part part)
{
    static const struct infeasible_rules rules = {.keep_pins = true, .host_bytes = UINT64_MAX};
    const struct problem *p = e->problem;
    if (step == ATP_NONE) {
        return part == PART_WORKING_SET && p->is_input[tensor];
    }
    for (uint32_t a = p->first_access[tensor]; a < p->first_access[tensor + 1]; a++) {
        uint32_t at = p->accesses[a].step;
        if (at == step) {
            return part == PART_WORKING_SET;
        }
        bool is_before = at == ATP_NONE || at < step;
        if (is_before && p->accesses[a].has_next && p->accesses[a + 1].step > step) {
            enum idle idle = idle_behind(p, &rules, a);
            return part == PART_KEPT
                       ? idle == IDLE_KEPT
                       : part == PART_NEVER && idle == IDLE_STUCK && is_made_forward(p, a);
        }
    }
    return false;
}

/* "a 8.00 MB, b 4.00 MB and 12 more": the largest first. */
static void list_tensors(const struct explanation *e, uint32_t step, enum part part)
{
    uint32_t count = 0, shown = 0, last = ATP_NONE;
    for (uint32_t t = 0; t < e->profile->model.tensor_count; t++) {
        count += is_part(e, step, t, part);
    }
    for (; shown < count && shown < TENSORS_SHOWN; shown++) {
        uint32_t largest = ATP_NONE;
        for (uint32_t t = 0; t < e->profile->model.tensor_count; t++) {
            const uint64_t *bytes = e->problem->tensor_bytes;
            bool is_left =
                last == ATP_NONE || bytes[t] < bytes[last] || (bytes[t] == bytes[last] && t > last);
            if (is_left && (largest == ATP_NONE || bytes[t] > bytes[largest]) &&
                is_part(e, step, t, part)) {
                largest = t;
            }
        }
        last = largest;
        (void)fprintf(e->out, "%s%s %s", shown > 0 ? ", " : "",
                      e->profile->model.tensors[last].name,
                      words_bytes(e->problem->tensor_bytes[last]).text);
    }
    if (count > shown) {
        (void)fprintf(e->out, " and %" PRIu32 " more", count - shown);
    }
}

/* The step that needs most, and what for. */
static void print_step(const struct explanation *e, const struct infeasible_need *need)
{
    bool is_step = need->step != ATP_NONE;
    const struct atp_step *step = is_step ? &e->profile->model.steps[need->step] : NULL;
    (void)fprintf(e->out, "most needed   %s at %s%s%s%s beside %s resident: ",
                  words_bytes(need->arena_bytes).text, step_name(e, need->step),
                  is_step ? " (" : "", is_step ? atp_phase_name(step->phase) : "",
                  is_step ? ")," : ",", words_bytes(e->profile->resident_bytes).text);
    list_tensors(e, need->step, PART_WORKING_SET);
    if (is_step && step->workspace_bytes > 0) {
        (void)fprintf(e->out, ", workspace %s",
                      words_bytes(e->problem->workspace_bytes[need->step]).text);
    }
    if (need->kept_bytes > 0) {
        (void)fprintf(e->out, ", kept by pins %s", words_bytes(need->kept_bytes).text);
    }
    if (need->stuck_bytes > 0) {
        (void)fprintf(e->out, ", not recomputable and beyond host.pinned_bytes %s",
                      words_bytes(need->stuck_bytes).text);
    }
    (void)fputc('\n', e->out);
}

/* Other steps that alone are too large. */
static void print_steps(const struct explanation *e)
{
    uint32_t count = 0, steps[STEPS_SHOWN] = {0};
    uint64_t resident = e->profile->resident_bytes;
    uint64_t room = e->budget_bytes > resident ? e->budget_bytes - resident : 0;
    for (uint32_t s = 0; s < e->profile->model.step_count; s++) {
        if (e->problem->working_set_bytes[s] > room) {
            if (count < STEPS_SHOWN) {
                steps[count] = s;
            }
            count++;
        }
    }
    if (resident >= e->budget_bytes) {
        (void)fprintf(e->out, "resident      %s: alone as much as the budget or more\n",
                      words_bytes(resident).text);
    } else if (count > 1) {
        (void)fprintf(e->out, "too large     %" PRIu32 " of %" PRIu32 " steps: ", count,
                      e->profile->model.step_count);
        for (uint32_t i = 0; i < count && i < STEPS_SHOWN; i++) {
            (void)fprintf(e->out, "%s%s (%s)", i > 0 ? ", " : "", step_name(e, steps[i]),
                          atp_phase_name(e->profile->model.steps[steps[i]].phase));
        }
        (void)fputs(count > STEPS_SHOWN ? ", ...\n" : "\n", e->out);
    }
}

static void print_pins(const struct explanation *e, const struct infeasible_need *need)
{
    uint64_t with = e->profile->resident_bytes + need->arena_bytes;
    uint64_t without = need_under(e, false, false, e->problem->host_limit);
    if (without < with) {
        (void)fputs("decide: keep  holds ", e->out);
        list_tensors(e, need->step, PART_KEPT);
        (void)fprintf(e->out, "; without any the least budget is %" PRIu64 "\n", without);
    }
}

static void print_host(const struct explanation *e, const struct infeasible_need *need)
{
    uint64_t with = e->profile->resident_bytes + need->arena_bytes;
    uint64_t roomy = need_under(e, true, false, UINT64_MAX);
    if (roomy >= with) {
        return;
    }
    uint64_t resident = e->profile->resident_bytes;
    uint64_t target = e->budget_bytes > roomy ? e->budget_bytes : roomy;
    (void)fprintf(e->out,
                  "host memory   host.pinned_bytes is %" PRIu64 ": a budget of %" PRIu64
                  " needs %" PRIu64 " at least\n",
                  e->profile->pinned_bytes, target,
                  host_bytes_for(e->problem, target - resident, e->region));
    uint64_t rerun = need_under(e, true, true, e->problem->host_limit);
    if (rerun < with) {
        (void)fputs("rerun: never  holds ", e->out);
        list_tensors(e, need->step, PART_NEVER);
        (void)fprintf(e->out, "; without any the least budget is %" PRIu64 " or more\n", rerun);
    }
}

/* ---- the batch ---- */

static bool batch_fits(const struct profile_file *file, uint64_t batch, const struct explanation *e)
{
    struct region_mark mark = region_mark(e->region);
    struct infeasible_rules rules = {.keep_pins = true};
    struct profile profile;
    struct problem problem;
    struct infeasible_need need;
    bool fits = false;
    if (profile_at_batch(file, batch, e->region, &profile, NULL) == ATP_OK &&
        problem_build(&profile, e->budget_bytes, e->problem->alignment_bytes, e->region, &problem,
                      NULL) == ATP_OK) {
        rules.host_bytes = problem.host_limit;
        infeasible_need(&problem, &rules, e->region, &need);
        fits = need.arena_bytes <= problem.arena_limit;
    }
    region_reset(e->region, mark);
    return fits;
}

static void print_batch(const struct explanation *e, const char *path)
{
    const struct profile_file *file = NULL;
    uint64_t batch = e->profile->model.batch_size, fits = 0, over = batch;
    if (batch == 1 || profile_read(path, e->region, &file, NULL) != ATP_OK) {
        return;
    }
    while (over - fits > 1) {
        uint64_t middle = fits + (over - fits) / 2;
        if (batch_fits(file, middle, e)) {
            fits = middle;
        } else {
            over = middle;
        }
    }
    if (fits > 0) {
        (void)fprintf(e->out, "batch size    %" PRIu64 " instead of %" PRIu64 " would fit\n", fits,
                      batch);
    } else {
        (void)fputs("batch size    not even 1 would fit\n", e->out);
    }
}

void infeasible_explain(const struct profile *profile, const char *path, uint64_t budget_bytes,
                        uint64_t alignment_bytes, struct region *region, FILE *out)
{
    struct problem problem;
    struct infeasible_need need;
    if (problem_build(profile, SIZE_BYTES_MAX, alignment_bytes == 0 ? 1 : alignment_bytes, region,
                      &problem, NULL) != ATP_OK) {
        return;
    }
    struct infeasible_rules rules = {.keep_pins = true, .host_bytes = problem.host_limit};
    struct explanation e = {profile, &problem, budget_bytes, region, out};
    infeasible_need(&problem, &rules, region, &need);
    uint64_t least = profile->resident_bytes + need.arena_bytes;
    if (least <= budget_bytes) {
        (void)fprintf(out, "no budget below %" PRIu64 " can have a plan, this one might\n", least);
        return;
    }
    if (need.kept_bytes + need.stuck_bytes > 0) { /* else the caller's line has said it */
        (void)fprintf(out, "least budget  %s%" PRIu64 " (%s)\n",
                      need.stuck_bytes > 0 ? "at least " : "", least, words_bytes(least).text);
    }
    print_step(&e, &need);
    print_steps(&e);
    print_pins(&e, &need);
    print_host(&e, &need);
    print_batch(&e, path);
}
