/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "summary.h"

#include "words.h"

#include <inttypes.h>

#define DECISION_COUNT 3

static void print_decisions(const struct atp_plan *plan, FILE *out)
{
    uint32_t counts[DECISION_COUNT] = {0};
    uint64_t bytes[DECISION_COUNT] = {0};
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        counts[plan->decisions[t]]++;
        bytes[plan->decisions[t]] += plan->model.tensors[t].bytes;
    }
    (void)fputs("decisions   ", out);
    for (unsigned d = 0; d < DECISION_COUNT; d++) {
        (void)fprintf(out, "%s%s %" PRIu32 " (%s)", d > 0 ? ", " : "",
                      atp_decision_name((enum atp_decision)d), counts[d],
                      words_bytes(bytes[d]).text);
    }
    (void)fputc('\n', out);
}

void summary_print(const struct atp_plan *plan, FILE *out)
{
    const struct atp_predicted *p = &plan->predicted;
    int64_t added = p->iteration_ns - p->compute_ns;
    (void)fprintf(out,
                  "plan        %s at batch size %" PRIu64 ": %" PRIu32 " steps, %" PRIu32
                  " tensors, %" PRIu32 " instructions\n",
                  plan->model.name, plan->model.batch_size, plan->model.step_count,
                  plan->model.tensor_count, plan->instruction_count);
    (void)fprintf(out, "predicted   %s = compute %s", words_time(p->iteration_ns).text,
                  words_time(p->compute_ns).text);
    (void)fprintf(out, " + recompute %s + stall %s", words_time(p->recompute_ns).text,
                  words_time(p->stall_ns).text);
    (void)fprintf(
        out, "; %s over compute\n",
        words_percent(p->compute_ns > 0 ? (double)added / (double)p->compute_ns : 0).text);
    (void)fprintf(out, "bound       %s, gap %s%s\n", words_time(p->bound_ns).text,
                  words_gap(p->iteration_ns, p->bound_ns).text,
                  plan->time_limited ? "; the search was cut short" : "");
    (void)fprintf(out, "budget      %s: resident %s", words_bytes(plan->budget_bytes).text,
                  words_bytes(plan->resident_bytes).text);
    (void)fprintf(out, " + arena %s (peak of live bytes %s)", words_bytes(plan->arena_bytes).text,
                  words_bytes(p->peak_bytes).text);
    (void)fprintf(out, "; host arena %s\n", words_bytes(plan->host_arena_bytes).text);
    (void)fprintf(out, "moved       %s evicted", words_bytes(p->evicted_bytes).text);
    (void)fprintf(out, ", %s restored", words_bytes(p->restored_bytes).text);
    (void)fprintf(out, "; %s recomputed\n", words_bytes(p->recomputed_bytes).text);
    print_decisions(plan, out);
}
