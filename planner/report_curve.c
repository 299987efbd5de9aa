/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The range of batch sizes is that of `peak`, cut so that the plan's own is not lost in it. Rates
 * are drawn in thousandths of a sample a second, so that whole numbers do.
 */
#include "report_curve.h"

#include "fail.h"
#include "report_html.h"

#include <inttypes.h>

#define DOWN       1000U
#define RANGE_MOST 4U /* times the larger of the plan's batch size and the largest measured */

static uint64_t thousandths(double rate)
{
    return (uint64_t)(rate * 1000 + 0.5);
}

static uint64_t bound_of(const struct peak_batch *batch)
{
    return thousandths(peak_rate(batch, batch->model.bound_ns));
}

static double plan_rate(const struct atp_plan *plan)
{
    double ns = plan->predicted.iteration_ns > 0 ? (double)plan->predicted.iteration_ns : 1;
    return (double)plan->model.batch_size / (ns / 1e9);
}

enum atp_status report_curve_build(const struct atp_plan *plan, const struct profile_file *file,
                                   struct region *region, const struct report_curve **out_curve,
                                   struct atp_error *err)
{
    uint32_t size_count = 0;
    const uint64_t *sizes = profile_batch_sizes(file, &size_count);
    *out_curve = NULL;
    if (size_count < 2) {
        return ATP_OK; /* one measurement says nothing of how throughput changes */
    }
    uint64_t measured = sizes[size_count - 1], own = plan->model.batch_size;
    struct peak_file of_file = {file};
    const struct peak_source source = peak_file_source(&of_file);
    const struct peak_options options = {
        .budget_bytes = plan->budget_bytes,
        .last_batch = RANGE_MOST * (measured > own ? measured : own),
    };
    struct report_curve *curve = REGION_NEW(region, struct report_curve, 1);
    struct peak *peak = &curve->peak;
    enum atp_status status = peak_begin(&source, &options, region, peak, err);
    while (peak->count > 0 && peak->batches[peak->count - 1].model.bound_ns == INT64_MAX) {
        peak->count--; /* has no plan */
    }
    bool is_curve = status == ATP_OK && peak->count > 1;
    for (uint32_t i = 0; is_curve && i < peak->count; i++) {
        bool is_higher = bound_of(&peak->batches[i]) > bound_of(&peak->batches[curve->top]);
        curve->top = is_higher ? i : curve->top;
    }
    curve->most_unplanned = is_curve ? peak_largest_unplanned(peak) : ATP_NONE;
    peak_finish(peak); /* the batches are the region's */
    if (is_curve) {
        *out_curve = curve;
    }
    return status == ATP_ERR_INVALID || status == ATP_ERR_INFEASIBLE ? ATP_OK : status;
}

static double percent_of(uint64_t value, uint64_t most)
{
    return most == 0 ? 0 : 100.0 * (double)value / (double)most;
}

static void write_axis(FILE *out, const char *side, uint64_t most, double unit, const char *name)
{
    uint64_t tick = html_tick(most);
    (void)fprintf(out, "<div class=\"%s\" aria-hidden=\"true\">", *side == 'l' ? "xs" : "ys");
    for (uint64_t at = 0; at <= most && most > 0; at += tick) {
        double percent = percent_of(at, most);
        (void)fprintf(out, "<span%s style=\"%s:%.2f%%\">%g%s</span>",
                      *side == 'l' && percent > 97 ? " class=\"last\"" : "", side, percent,
                      (double)at / unit, name);
    }
    (void)fputs("</div>\n", out);
}

/* A line through the batch sizes up to `last`: bounds, or what keeping everything takes. */
static void draw_line(const struct report_curve *curve, const char *class, bool is_bound,
                      uint32_t last, uint64_t most, FILE *out)
{
    const struct peak *peak = &curve->peak;
    uint64_t most_batch = peak->batches[peak->count - 1].batch_size;
    char command = 'M';
    (void)fprintf(out, "<path class=\"%s\" d=\"", class);
    for (uint32_t i = 0; i <= last && i < peak->count; i++) {
        const struct peak_batch *batch = &peak->batches[i];
        uint64_t rate =
            is_bound ? bound_of(batch) : thousandths(peak_rate(batch, batch->model.compute_ns));
        if (is_bound && batch->model.bound_ns == INT64_MAX) {
            continue;
        }
        (void)fprintf(out, "%c%" PRIu32 " %" PRIu32, command,
                      html_across(batch->batch_size, most_batch),
                      DOWN - html_scale(rate, most, DOWN));
        command = 'L';
    }
    (void)fputs("\"/>\n", out);
}

static void write_text(const struct report_curve *curve, const struct atp_plan *plan, FILE *out)
{
    const struct peak *peak = &curve->peak;
    const struct peak_batch *top = &peak->batches[curve->top];
    (void)fprintf(
        out,
        "<p id=\"curve-text\">This plan trains %.2f samples a second at batch size %" PRIu64
        ". Within its budget no batch size from %" PRIu64 " to %" PRIu64
        " can exceed %.2f, the model's bound at batch size %" PRIu64 ". ",
        plan_rate(plan), plan->model.batch_size, peak->batches[0].batch_size,
        peak->batches[peak->count - 1].batch_size, peak_rate(top, top->model.bound_ns),
        top->batch_size);
    if (curve->most_unplanned != ATP_NONE) {
        const struct peak_batch *plain = &peak->batches[curve->most_unplanned];
        (void)fprintf(out,
                      "With everything kept, batch size %" PRIu64
                      " is the largest that fits: %.2f samples a second.",
                      plain->batch_size, peak_rate(plain, plain->model.compute_ns));
    } else {
        (void)fputs("None of them fits with everything kept.", out);
    }
    (void)fputs("</p>\n", out);
}

void report_curve_write(const struct report_curve *curve, const struct atp_plan *plan, FILE *out)
{
    const struct peak *peak = &curve->peak;
    uint64_t most_batch = peak->batches[peak->count - 1].batch_size;
    uint64_t most = bound_of(&peak->batches[curve->top]), own = thousandths(plan_rate(plan));
    most = own > most ? own : most;
    most += most / 10 + 1;
    write_text(curve, plan, out);
    (void)fputs("<ul class=\"key\"><li><i class=\"k-plan\"></i>no plan is faster</li>", out);
    (void)fputs("<li><i class=\"k-keepall\"></i>keep everything, while it fits</li>", out);
    (void)fputs("<li><i class=\"k-dot\"></i>this plan</li></ul>\n<div class=\"plot tall\">\n", out);
    write_axis(out, "bottom", most, 1000, "/s");
    (void)fprintf(
        out,
        "<div class=\"canvas still\" role=\"img\" aria-label=\"Samples a second over batch "
        "sizes\" aria-describedby=\"curve-text\"><svg viewBox=\"0 0 %d %u\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\">\n",
        HTML_ACROSS, DOWN);
    draw_line(curve, "line plan", true, peak->count - 1, most, out);
    if (curve->most_unplanned != ATP_NONE) {
        draw_line(curve, "line keepall", false, curve->most_unplanned, most, out);
    }
    (void)fprintf(out,
                  "</svg><span class=\"dot\" style=\"left:%.2f%%;bottom:%.2f%%\"></span></div>\n",
                  percent_of(plan->model.batch_size, most_batch), percent_of(own, most));
    write_axis(out, "left", most_batch, 1, "");
    (void)fputs("</div>\n", out);
}
