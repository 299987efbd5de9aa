/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "peak_print.h"

#include "words.h"

#include <inttypes.h>
#include <math.h>

#define BAR_WIDTH 24

static double plan_rate(const struct peak_batch *batch)
{
    return batch->has_plan ? peak_rate(batch, batch->predicted.iteration_ns) : 0;
}

/* What everything kept would need, in budgets. */
static double memory_ratio(const struct peak *peak, const struct peak_batch *batch)
{
    return (double)batch->model.keep_all_bytes / (double)peak->options.budget_bytes;
}

/* The batch size at which the model allows most. */
static uint32_t model_peak(const struct peak *peak)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < peak->count; i++) {
        const struct peak_batch *batch = &peak->batches[i], *so_far = &peak->batches[best];
        if (peak_rate(batch, batch->model.bound_ns) > peak_rate(so_far, so_far->model.bound_ns)) {
            best = i;
        }
    }
    return best;
}

/* `#` up to the plan, `.` up to the bound. */
static void print_bar(const struct peak_batch *batch, double most, FILE *out)
{
    int plan = most > 0 ? (int)(plan_rate(batch) / most * BAR_WIDTH + 0.5) : 0;
    int bound = most > 0 ? (int)(peak_rate(batch, batch->bound_ns) / most * BAR_WIDTH + 0.5) : 0;
    (void)fputs(bound > 0 ? "  " : "", out);
    for (int i = 0; i < plan || i < bound; i++) {
        (void)fputc(i < plan ? '#' : '.', out);
    }
}

static void print_line(const struct peak *peak, uint32_t index, double most, FILE *out)
{
    const struct peak_batch *batch = &peak->batches[index];
    (void)fprintf(out, "%6" PRIu64 " %6.2fx", batch->batch_size, memory_ratio(peak, batch));
    if (batch->bound_ns == INT64_MAX) {
        (void)fprintf(out, " %10s %10s %10s  %s\n", "-", "-", "-",
                      throughput_limit_name(batch->model.limit));
        return;
    }
    (void)fprintf(out, " %10.2f %10.2f", peak_rate(batch, batch->model.bound_ns),
                  peak_rate(batch, batch->bound_ns));
    if (batch->has_plan) {
        (void)fprintf(out, " %10.2f", plan_rate(batch));
    } else {
        (void)fprintf(out, " %10s", batch->planned ? "none" : "-");
    }
    (void)fprintf(out, "  %-9s", throughput_limit_name(batch->model.limit));
    print_bar(batch, most, out);
    (void)fputs(index == peak->best ? "  peak\n" : "\n", out);
}

static void print_curve(const struct peak_findings *f, FILE *out)
{
    const struct peak *peak = f->peak;
    double most = 0;
    for (uint32_t i = 0; i < peak->count; i++) {
        double rate = peak_rate(&peak->batches[i], peak->batches[i].bound_ns);
        most = f->shown[i] && rate > most ? rate : most;
    }
    (void)fprintf(out, "%6s %7s %10s %10s %10s  %-9s\n", "batch", "memory", "model", "bound",
                  "plan", "limit");
    for (uint32_t i = 0; i < peak->count; i++) {
        if (f->shown[i]) {
            print_line(peak, i, most, out);
        }
    }
}

static void print_head(const struct peak_findings *f, FILE *out)
{
    const struct peak *peak = f->peak;
    const struct peak_options *options = &peak->options;
    (void)fprintf(out, "%s within %s: samples a second at batch sizes %" PRIu64 " to %" PRIu64,
                  f->model_name, words_bytes(options->budget_bytes).text,
                  peak->batches[0].batch_size, peak->batches[peak->count - 1].batch_size);
    if (options->multiple > 1) {
        (void)fprintf(out, ", multiples of %" PRIu64, options->multiple);
    }
    (void)fputc('\n', out);
    if (options->global_batch != 0) {
        (void)fprintf(out,
                      "%" PRIu64 " samples between two updates: forward and backward steps run "
                      "%" PRIu64 " / batch size times, update steps once;\nplans are for the "
                      "forward and backward steps alone\n",
                      options->global_batch, options->global_batch);
    }
    (void)fputc('\n', out);
}

static void print_proof(const struct peak *peak, FILE *out)
{
    if (peak->rival == ATP_NONE) {
        (void)fputs("proof        there is no other batch size\n", out);
        return;
    }
    bool is_proven = peak->proven_gap <= peak->options.gap;
    (void)fprintf(out, "proof        %s", is_proven ? "no other batch size can be faster" : "");
    if (!is_proven) {
        (void)fprintf(out, "incomplete: batch size %" PRIu64 " could be faster",
                      peak->batches[peak->rival].batch_size);
    }
    (void)fprintf(out, " by more than %s\n",
                  words_percent(is_proven ? peak->proven_gap : peak->options.gap).text);
    if (!is_proven) {
        (void)fprintf(out, "             (by its bound, by %s at most)\n",
                      words_percent(peak->proven_gap).text);
    }
}

static void print_peak(const struct peak *peak, FILE *out)
{
    const struct peak_batch *best = &peak->batches[peak->best];
    const struct peak_batch *ideal = &peak->batches[model_peak(peak)];
    (void)fprintf(out, "\npeak         batch size %" PRIu64 ", %.2f samples/s: %s an iteration",
                  best->batch_size, plan_rate(best), words_time(best->predicted.iteration_ns).text);
    (void)fprintf(out, ", gap to its bound %s\n",
                  words_gap(best->predicted.iteration_ns, best->bound_ns).text);
    (void)fprintf(out, "             %s recomputed",
                  words_bytes(best->predicted.recomputed_bytes).text);
    (void)fprintf(out, ", %s swapped\n", words_bytes(best->predicted.evicted_bytes).text);
    print_proof(peak, out);
    (void)fprintf(out, "model        batch size %" PRIu64 ", %.2f samples/s at most, limit: %s\n",
                  ideal->batch_size, peak_rate(ideal, ideal->model.bound_ns),
                  throughput_limit_name(ideal->model.limit));
    (void)fprintf(out, "             %s to recompute",
                  words_bytes(ideal->model.recompute_bytes).text);
    (void)fprintf(out, ", %s to swap", words_bytes(ideal->model.swap_bytes).text);
    (void)fprintf(out, ", of %s too much at its fullest\n",
                  words_bytes(ideal->model.excess_bytes).text);
}

static void print_memory(const struct peak *peak, FILE *out)
{
    const struct peak_batch *best = &peak->batches[peak->best];
    uint32_t unplanned = peak_largest_unplanned(peak), largest = peak_largest_planned(peak);
    if (unplanned == ATP_NONE) {
        (void)fputs("unplanned    no batch size fits with everything kept\n", out);
    } else {
        const struct peak_batch *batch = &peak->batches[unplanned];
        double rate = peak_rate(batch, batch->model.compute_ns);
        (void)fprintf(out,
                      "unplanned    batch size %" PRIu64
                      " is the largest, %.2f samples/s: the peak "
                      "has %.3f times that\n",
                      batch->batch_size, rate, plan_rate(best) / rate);
    }
    (void)fprintf(out, "memory       %.2f times the budget with everything kept at the peak\n",
                  memory_ratio(peak, best));
    if (largest != ATP_NONE && peak->batches[largest].has_plan) {
        const struct peak_batch *batch = &peak->batches[largest];
        (void)fprintf(out,
                      "             %.2f times at batch size %" PRIu64
                      ", the largest with a plan, %.2f samples/s\n",
                      memory_ratio(peak, batch), batch->batch_size, plan_rate(batch));
    }
}

static void print_policies(const struct peak_findings *f, FILE *out)
{
    const struct peak *peak = f->peak;
    double best = plan_rate(&peak->batches[peak->best]);
    (void)fprintf(out, "\n%-16s %6s %10s %14s\n", "policy", "batch", "samples/s", "peak is faster");
    for (uint32_t i = 0; i < f->policies->count; i++) {
        const struct peak_policy *policy = &f->policies->items[i];
        if (policy->index == ATP_NONE) {
            (void)fprintf(out, "%-16s %6s %10s %14s\n", policy->name, "-", "-", "fits at none");
            continue;
        }
        const struct peak_batch *batch = &peak->batches[policy->index];
        double rate = peak_rate(batch, policy->iteration_ns);
        (void)fprintf(out, "%-16s %6" PRIu64 " %10.2f %13.3fx\n", policy->name, batch->batch_size,
                      rate, best / rate);
    }
    (void)fprintf(out,
                  "\nevery policy at its best of %" PRIu32 " batch sizes; %" PRIu32
                  " batch sizes modelled, %" PRIu32 " relaxed, %" PRIu32 " planned\n",
                  f->policies->tried_count, peak->count, peak->relaxation_count, peak->plan_count);
}

void peak_print_text(const struct peak_findings *findings, FILE *out)
{
    print_head(findings, out);
    print_curve(findings, out);
    if (findings->peak->best != ATP_NONE) {
        print_peak(findings->peak, out);
        print_memory(findings->peak, out);
        print_policies(findings, out);
    }
}

static void print_rate(const struct peak_batch *batch, int64_t iteration_ns, FILE *out)
{
    if (iteration_ns == INT64_MAX) {
        (void)fputs(",,", out);
    } else {
        (void)fprintf(out, ",%" PRId64 ",%.4f", iteration_ns, peak_rate(batch, iteration_ns));
    }
}

/* What a batch size is known for, joined by `+`. */
static void print_roles(const struct peak *peak, uint32_t index, FILE *out)
{
    const struct {
        const char *name;
        uint32_t index;
    } roles[] = {{"peak", peak->best},
                 {"largest-unplanned", peak_largest_unplanned(peak)},
                 {"largest-planned", peak_largest_planned(peak)},
                 {"rival", peak->rival}};
    bool is_first = true;
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (roles[i].index == index) {
            (void)fprintf(out, "%s%s", is_first ? "" : "+", roles[i].name);
            is_first = false;
        }
    }
}

void peak_print_csv(const struct peak_findings *findings, FILE *out)
{
    const struct peak *peak = findings->peak;
    (void)fputs("policy,batch_size,role,limit,memory_ratio,model_ns,model_per_s,bound_ns,"
                "bound_per_s,iteration_ns,per_s,recompute_ns,stall_ns,recomputed_bytes,"
                "evicted_bytes\n",
                out);
    for (uint32_t i = 0; i < peak->count; i++) {
        const struct peak_batch *batch = &peak->batches[i];
        const struct atp_predicted *p = &batch->predicted;
        if (!findings->shown[i]) {
            continue;
        }
        (void)fprintf(out, "plan,%" PRIu64 ",", batch->batch_size);
        print_roles(peak, i, out);
        (void)fprintf(out, ",%s,%.6f", throughput_limit_name(batch->model.limit),
                      memory_ratio(peak, batch));
        print_rate(batch, batch->model.bound_ns, out);
        print_rate(batch, batch->bound_ns, out);
        print_rate(batch, batch->has_plan ? p->iteration_ns : INT64_MAX, out);
        if (batch->has_plan) {
            (void)fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n",
                          p->recompute_ns, p->stall_ns, p->recomputed_bytes, p->evicted_bytes);
        } else {
            (void)fputs(",,,,\n", out);
        }
    }
    for (uint32_t i = 0; i < findings->policies->count; i++) {
        const struct peak_policy *policy = &findings->policies->items[i];
        if (policy->index != ATP_NONE) {
            const struct peak_batch *batch = &peak->batches[policy->index];
            (void)fprintf(out, "%s,%" PRIu64 ",best,,%.6f,,,,", policy->name, batch->batch_size,
                          memory_ratio(peak, batch));
            print_rate(batch, policy->iteration_ns, out);
            (void)fputs(",,,,\n", out);
        }
    }
}
