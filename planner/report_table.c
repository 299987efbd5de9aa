/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reasons are facts of plan and profile, not thoughts of the search: what a gap could hide, what
 * the copies did cost, where memory is short.
 */
#include "report_table.h"

#include "report_html.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>

#define ROWS_MOST  5000U /* keeps a page well below what a browser scrolls through with ease */
#define ROWS_SHOWN 100U  /* the others wait for a button */
#define PLACE_WORK UINT64_C(1000)

struct row {
    uint32_t tensor;
    bool is_kept;
    uint64_t bytes;
};

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->is_kept != y->is_kept) {
        return x->is_kept ? 1 : -1;
    }
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->tensor < y->tensor ? -1 : 1;
}

struct report_order report_table_order(const struct report *report, struct region *region)
{
    uint32_t count = report->plan->model.tensor_count;
    struct row *rows = REGION_NEW(region, struct row, count);
    uint32_t *tensors = REGION_NEW(region, uint32_t, count);
    for (uint32_t t = 0; t < count; t++) {
        rows[t] = (struct row){.tensor = t,
                               .is_kept = report->plan->decisions[t] == ATP_DECISION_KEEP,
                               .bytes = report->plan->model.tensors[t].bytes};
    }
    qsort(rows, count, sizeof(*rows), compare_rows);
    for (uint32_t t = 0; t < count; t++) {
        tensors[t] = rows[t].tensor;
    }
    return (struct report_order){.count = count < ROWS_MOST ? count : ROWS_MOST,
                                 .tensors = tensors};
}

/* Nanoseconds for each million bytes. */
static double rerun_per_megabyte(const struct report_tensor *tensor, uint64_t bytes)
{
    return (double)tensor->rerun_ns / ((double)bytes / 1e6);
}

static void write_keep_reason(const struct report *report, uint32_t t, FILE *out)
{
    const struct report_tensor *tensor = &report->tensors[t];
    if (report->profile->pins[t] == PROFILE_PIN_KEEP) {
        (void)fputs("the profile says so", out);
    } else if (report->keep_all_peak_bytes <= report->plan->budget_bytes) {
        (void)fputs("everything fits", out);
    } else if (tensor->end_step == 0) {
        (void)fputs("it is never idle", out);
    } else if (!tensor->is_short) {
        (void)fputs("it idles only where memory is free", out);
    } else if (tensor->copy_ns > tensor->gap_ns && tensor->rerun_ns < 0) {
        (void)fputs("copies are longer than the gap; it cannot be recomputed", out);
    } else if (tensor->copy_ns > tensor->gap_ns) {
        (void)fputs("copies are longer than the gap", out);
    } else {
        (void)fputs("others make enough room", out);
    }
}

static void write_swap_reason(const struct report *report, uint32_t t, FILE *out)
{
    const struct report_tensor *tensor = &report->tensors[t];
    if (report->profile->pins[t] == PROFILE_PIN_SWAP) {
        (void)fputs("the profile says so; ", out);
    }
    if (tensor->stall_ns > 0) {
        (void)fprintf(out, "compute waits %s for its copies", words_time(tensor->stall_ns).text);
    } else {
        (void)fputs("its copies are hidden", out);
    }
    if (tensor->rerun_ns < 0) {
        (void)fputs("; it cannot be recomputed", out);
    }
}

static void write_reason(const struct report *report, uint32_t t, FILE *out)
{
    const struct report_tensor *tensor = &report->tensors[t];
    switch (report->plan->decisions[t]) {
    case ATP_DECISION_KEEP:
        write_keep_reason(report, t, out);
        break;
    case ATP_DECISION_SWAP:
        write_swap_reason(report, t, out);
        break;
    case ATP_DECISION_RECOMPUTE:
        if (report->profile->pins[t] == PROFILE_PIN_RECOMPUTE) {
            (void)fputs("the profile says so", out);
        } else if (tensor->end_step == 0) {
            (void)fputs("needed again only to recompute others", out);
        } else if (tensor->rerun_ns >= 0 && tensor->rerun_ns < tensor->copy_ns) {
            (void)fprintf(out, "its steps take %s, its copies would take %s",
                          words_time(tensor->rerun_ns).text, words_time(tensor->copy_ns).text);
        } else {
            (void)fputs("reruns cost compute, but no time of the copy engines", out);
        }
        break;
    }
}

static void write_row(const struct report *report, uint32_t t, uint32_t row, FILE *out)
{
    const struct atp_tensor *model = &report->plan->model.tensors[t];
    const struct report_tensor *tensor = &report->tensors[t];
    enum atp_decision decision = report->plan->decisions[t];
    bool is_swap = decision == ATP_DECISION_SWAP;
    (void)fprintf(out, "<tr data-row=\"%" PRIu32 "\"%s><th scope=\"row\">", row,
                  row < ROWS_SHOWN ? "" : " hidden=\"hidden\"");
    html_text(out, model->name);
    (void)fprintf(out, "</th><td><span class=\"tag %s\">%s</span></td><td>%s</td>",
                  atp_decision_name(decision), atp_decision_name(decision),
                  words_bytes(model->bytes).text);
    if (tensor->end_step != 0) {
        (void)fprintf(out, "<td>%s</td>", words_time(tensor->gap_ns).text);
    } else {
        (void)fputs("<td>none</td>", out);
    }
    if (tensor->rerun_ns >= 0 && model->bytes > 0) {
        (void)fprintf(out, "<td>%.3f us/MB</td>", rerun_per_megabyte(tensor, model->bytes) / 1e3);
    } else {
        (void)fputs("<td>never</td>", out);
    }
    (void)fprintf(out, "<td>%s</td><td>%s</td><td>", words_time(tensor->copy_ns).text,
                  !is_swap               ? ""
                  : tensor->stall_ns > 0 ? words_time(tensor->stall_ns).text
                                         : "hidden");
    write_reason(report, t, out);
    (void)fputs("</td></tr>\n", out);
}

void report_table_tensors(const struct report *report, const struct report_order *order, FILE *out)
{
    static const struct {
        const char *title, *note;
    } columns[] = {{"Tensor", ""},
                   {"Decision", ""},
                   {"Size", ""},
                   {"Idle gap", "longest, in step time"},
                   {"Recompute", "own steps"},
                   {"Copies", "out and in"},
                   {"Exposed", "compute waits"},
                   {"Why", ""}};
    (void)fputs(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Tensors\"><table "
        "id=\"tensors\">\n<caption class=\"sr\">Tensors and "
        "what the plan does with them</caption>\n<thead><tr>",
        out);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        bool sorts = i + 1 < sizeof(columns) / sizeof(columns[0]);
        (void)fputs("<th scope=\"col\">", out);
        (void)fprintf(out,
                      sorts ? "<button type=\"button\" data-column=\"%zu\">%s</button>"
                            : "<span data-last=\"%zu\">%s</span>",
                      i, columns[i].title);
        (void)fprintf(out, "<small>%s</small></th>", columns[i].note);
    }
    (void)fputs("</tr></thead>\n<tbody>\n", out);
    for (uint32_t i = 0; i < order->count; i++) {
        write_row(report, order->tensors[i], i, out);
    }
    (void)fputs("</tbody></table></div>\n", out);
    uint64_t rest_bytes = 0;
    uint32_t count = report->plan->model.tensor_count;
    for (uint32_t i = order->count; i < count; i++) {
        rest_bytes += report->plan->model.tensors[order->tensors[i]].bytes;
    }
    (void)fprintf(out,
                  "<p class=\"note\"><span id=\"shown\" role=\"status\">%" PRIu32 " of %" PRIu32
                  " tensors shown.</span> ",
                  order->count < ROWS_SHOWN ? order->count : ROWS_SHOWN, count);
    if (order->count < count) {
        (void)fprintf(out, "The %" PRIu32 " smallest, %s in all, have no row. ",
                      count - order->count, words_bytes(rest_bytes).text);
    }
    (void)fprintf(out, "<button type=\"button\" id=\"more\"%s>Show all</button></p>\n",
                  order->count > ROWS_SHOWN ? "" : " hidden=\"hidden\"");
}

/* A policy is judged as a plan is: tensors that have no place do not fit. */
static bool place_baseline(const struct report *report, const struct baseline *baseline,
                           struct region *region, struct atp_predicted *out)
{
    struct region_mark mark = region_mark(region);
    struct atp_plan plan;
    bool fits = baseline_plan(&report->problem, baseline, PLACE_WORK, region, &plan);
    if (fits) {
        *out = plan.predicted;
    }
    region_reset(region, mark);
    return fits;
}

static void write_policy(const struct report *report, const char *name, const char *verdict,
                         const struct atp_predicted *predicted, int64_t most_ns, FILE *out)
{
    bool is_plan = predicted == &report->plan->predicted;
    double added = (double)(predicted->iteration_ns - predicted->compute_ns);
    double share = most_ns > 0 ? 100.0 * (double)predicted->iteration_ns / (double)most_ns : 0;
    (void)fprintf(out, "<tr%s><th scope=\"row\">%s</th>", is_plan ? " class=\"this\"" : "", name);
    (void)fprintf(
        out, "<td>%s</td><td>%s</td>", words_time(predicted->iteration_ns).text,
        words_percent(predicted->compute_ns > 0 ? added / (double)predicted->compute_ns : 0).text);
    (void)fprintf(out, "<td>%s</td>",
                  words_bytes(report->plan->resident_bytes + predicted->peak_bytes).text);
    (void)fprintf(out,
                  "<td><span class=\"bar\" style=\"width:%.2f%%\"></span></td><td>%s</td></tr>\n",
                  share, verdict);
}

static void write_unfit(const struct report *report, const struct baseline *baseline, FILE *out)
{
    const char *verdict =
        baseline->verdict == BASELINE_FITS ? "fragments" : baseline_verdict_name(baseline->verdict);
    (void)fprintf(out, "<tr class=\"unfit\"><th scope=\"row\">%s</th><td>-</td><td>-</td>",
                  baseline->name);
    (void)fprintf(out, "<td>%s</td><td></td><td>%s</td></tr>\n",
                  baseline->peak_bytes == 0
                      ? "-"
                      : words_bytes(report->plan->resident_bytes + baseline->peak_bytes).text,
                  verdict);
}

void report_table_policies(const struct report *report, struct region *region, FILE *out)
{
    const struct baseline_list *list = report->baselines;
    struct atp_predicted *placed = REGION_NEW(region, struct atp_predicted, list->count);
    bool *fits = REGION_NEW(region, bool, list->count);
    int64_t most_ns = report->plan->predicted.iteration_ns;
    for (uint32_t i = 0; i < list->count; i++) {
        fits[i] = place_baseline(report, &list->items[i], region, &placed[i]);
        if (fits[i] && placed[i].iteration_ns > most_ns) {
            most_ns = placed[i].iteration_ns;
        }
    }
    (void)fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Simple "
                "policies\"><table "
                "id=\"policies\">\n<caption class=\"sr\">This plan and "
                "simple policies at the same budget</caption>\n<thead><tr><th scope=\"col\">Policy"
                "</th><th scope=\"col\">Iteration</th><th scope=\"col\">Overhead</th><th "
                "scope=\"col\">Device peak</th><th scope=\"col\"><span class=\"sr\">Iteration, as "
                "a bar</span></th><th scope=\"col\">Result</th></tr></thead>\n<tbody>\n",
                out);
    write_policy(report, "this plan", "fits", &report->plan->predicted, most_ns, out);
    for (uint32_t i = 0; i < list->count; i++) {
        if (fits[i]) {
            write_policy(report, list->items[i].name, "fits", &placed[i], most_ns, out);
        } else {
            write_unfit(report, &list->items[i], out);
        }
    }
    (void)fputs("</tbody></table></div>\n", out);
}

static void write_copies(const char *key, const struct report_marks *marks, FILE *out)
{
    (void)fprintf(out, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < marks->count; i++) {
        const struct report_mark *mark = &marks->items[i];
        (void)fprintf(out, "%s%" PRIu32 ",%" PRId64 ",%" PRId64, i == 0 ? "" : ",", mark->id,
                      mark->start_ns, mark->end_ns - mark->start_ns);
    }
    (void)fputc(']', out);
}

static void write_compute(const struct report_marks *marks, FILE *out)
{
    /* They follow each other without a break, so that lengths say when each begins. */
    (void)fputs(",\n\"compute\":[", out);
    for (uint32_t i = 0; i < marks->count; i++) {
        const struct report_mark *mark = &marks->items[i];
        (void)fprintf(out, "%s%d,%" PRIu32 ",%" PRId64 ",%" PRIu64 ",%" PRIu64, i == 0 ? "" : ",",
                      (int)mark->kind, mark->id, mark->end_ns - mark->start_ns, mark->bytes,
                      mark->keep_all_bytes);
    }
    (void)fputc(']', out);
}

static void write_places(const struct report *report, FILE *out)
{
    (void)fputs(",\n\"places\":[", out);
    for (uint32_t i = 0; i < report->place_count; i++) {
        const struct report_place *place = &report->places[i];
        (void)fprintf(out, "%s%d,%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64,
                      i == 0 ? "" : ",", place->is_workspace ? 1 : 0, place->id, place->start_ns,
                      place->end_ns - place->start_ns, place->offset, place->bytes);
    }
    (void)fputc(']', out);
}

static void write_rows(const struct report *report, const struct report_order *order, FILE *out)
{
    (void)fputs(",\n\"rows\":[", out);
    for (uint32_t i = 0; i < order->count; i++) {
        uint32_t t = order->tensors[i];
        const struct report_tensor *tensor = &report->tensors[t];
        uint64_t bytes = report->plan->model.tensors[t].bytes;
        bool is_known = tensor->rerun_ns >= 0 && bytes > 0;
        bool is_swap = report->plan->decisions[t] == ATP_DECISION_SWAP;
        (void)fprintf(out, "%s%" PRIu32 ",%" PRIu64 ",%" PRId64 ",%.0f,%" PRId64 ",%" PRId64,
                      i == 0 ? "" : ",", t, bytes, tensor->end_step != 0 ? tensor->gap_ns : -1,
                      is_known ? rerun_per_megabyte(tensor, bytes) : -1.0, tensor->copy_ns,
                      is_swap ? tensor->stall_ns : -1);
    }
    (void)fputc(']', out);
}

void report_table_numbers(const struct report *report, const struct report_order *order, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    (void)fprintf(out,
                  "{\"iteration_ns\":%" PRId64 ",\"bound_ns\":%" PRId64 ",\"compute_ns\":%" PRId64
                  ",\"recompute_ns\":%" PRId64 ",\"stall_ns\":%" PRId64,
                  plan->predicted.iteration_ns, plan->predicted.bound_ns,
                  plan->predicted.compute_ns, plan->predicted.recompute_ns,
                  plan->predicted.stall_ns);
    (void)fprintf(out,
                  ",\"budget_bytes\":%" PRIu64 ",\"resident_bytes\":%" PRIu64
                  ",\"arena_bytes\":%" PRIu64 ",\"peak_bytes\":%" PRIu64,
                  plan->budget_bytes, plan->resident_bytes, plan->arena_bytes,
                  plan->predicted.peak_bytes);
    (void)fputs(",\n\"tensors\":[", out);
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        (void)fputs(t == 0 ? "" : ",", out);
        html_string(out, plan->model.tensors[t].name);
    }
    (void)fputs("],\n\"decisions\":[", out);
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        (void)fprintf(out, "%s%d", t == 0 ? "" : ",", (int)plan->decisions[t]);
    }
    (void)fputs("],\n\"steps\":[", out);
    for (uint32_t s = 0; s < plan->model.step_count; s++) {
        (void)fputs(s == 0 ? "" : ",", out);
        html_string(out, plan->model.steps[s].name);
    }
    (void)fputc(']', out);
    write_compute(&report->compute, out);
    write_copies("out", &report->out, out);
    write_copies("in", &report->in, out);
    write_places(report, out);
    write_rows(report, order, out);
    (void)fputs("}\n", out);
}
