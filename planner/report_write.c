/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The page from top to bottom. Without its script it still shows all of its numbers and pictures;
 * the script adds the readouts, sorting and filtering.
 */
#include "report_write.h"

#include "report_assets.h"
#include "report_curve.h"
#include "report_draw.h"
#include "report_html.h"
#include "report_table.h"
#include "words.h"

#include <inttypes.h>

static void write_head(const struct atp_plan *plan, FILE *out)
{
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
                "<link rel=\"icon\" href=\"data:,\"/>\n<title>",
                out);
    html_text(out, plan->model.name);
    (void)fprintf(out, " in %s - memory plan</title>\n<style>\n",
                  words_bytes(plan->budget_bytes).text);
    (void)fputs(REPORT_CSS, out);
    (void)fputs("</style>\n</head>\n<body class=\"no-script\">\n<a class=\"skip\" "
                "href=\"#tensors\">Skip to the table of "
                "tensors</a>\n",
                out);
}

static void write_title(const struct report *report, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    (void)fputs("<header>\n<p class=\"kicker\">ATP memory plan</p>\n<h1>", out);
    html_text(out, plan->model.name);
    (void)fprintf(out, "</h1>\n<p class=\"about\"><span>batch size %" PRIu64 "</span>",
                  plan->model.batch_size);
    if (report->profile->device_name != NULL) {
        (void)fputs("<span>", out);
        html_text(out, report->profile->device_name);
        (void)fputs("</span>", out);
    }
    (void)fprintf(out, "<span>%" PRIu32 " steps</span><span>%" PRIu32 " tensors</span>",
                  plan->model.step_count, plan->model.tensor_count);
    (void)fputs("<span>model <code>", out);
    for (int i = 0; i < 6; i++) {
        (void)fprintf(out, "%02x", plan->fingerprint[i]);
    }
    (void)fputs("</code></span></p>\n", out);
    if (report->profile->origin != NULL) {
        (void)fputs("<p class=\"origin\">Profile: ", out);
        html_text(out, report->profile->origin);
        (void)fputs("</p>\n", out);
    }
    if (report->profile->scaled) {
        (void)fprintf(out,
                      "<p class=\"warning\">Batch size %" PRIu64
                      " was not measured: sizes and times are scaled from other batch "
                      "sizes.</p>\n",
                      plan->model.batch_size);
    }
    if (plan->time_limited) {
        (void)fputs("<p class=\"warning\">A time limit ended the search: another run may give "
                    "another plan.</p>\n",
                    out);
    }
    (void)fputs("</header>\n<main>\n", out);
}

static void write_card(FILE *out, const char *id, const char *title, const char *value)
{
    (void)fprintf(out, "<div class=\"card\" id=\"%s\"><dt>%s</dt><dd>%s</dd><dd class=\"sub\">", id,
                  title, value);
}

static void end_card(FILE *out)
{
    (void)fputs("</dd></div>\n", out);
}

/* Nothing lost is worth a word of its own. */
static struct words time_or_none(int64_t ns)
{
    return ns > 0 ? words_time(ns) : (struct words){"none"};
}

static void write_cards(const struct report *report, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    const struct atp_predicted *predicted = &plan->predicted;
    double compute = (double)predicted->compute_ns;
    int64_t added_ns = predicted->iteration_ns - predicted->compute_ns;
    uint64_t peak = plan->resident_bytes + predicted->peak_bytes;
    (void)fputs("<dl class=\"cards\">\n", out);
    write_card(out, "card-iteration", "Iteration", words_time(predicted->iteration_ns).text);
    (void)fprintf(out, "%s more than compute alone",
                  words_percent(compute > 0 ? (double)added_ns / compute : 0).text);
    end_card(out);
    write_card(out, "card-gap", "Gap to the bound",
               words_gap(predicted->iteration_ns, predicted->bound_ns).text);
    (void)fprintf(out, "no plan takes less than %s", words_time(predicted->bound_ns).text);
    end_card(out);
    write_card(out, "card-peak", "Device peak", words_bytes(peak).text);
    (void)fprintf(out, "of a budget of %s; keeping everything needs %s",
                  words_bytes(plan->budget_bytes).text,
                  words_bytes(report->keep_all_peak_bytes).text);
    end_card(out);
    write_card(out, "card-swap", "Swapped", words_bytes(predicted->evicted_bytes).text);
    (void)fprintf(out, "%s back in; host arena %s", words_bytes(predicted->restored_bytes).text,
                  words_bytes(plan->host_arena_bytes).text);
    end_card(out);
    write_card(out, "card-stall", "Stalled", time_or_none(predicted->stall_ns).text);
    (void)fputs(predicted->stall_ns > 0 ? "of the iteration, waiting for copies"
                                        : "compute never waits for a copy",
                out);
    end_card(out);
    write_card(out, "card-recompute", "Recomputed", time_or_none(predicted->recompute_ns).text);
    if (predicted->recomputed_bytes > 0) {
        (void)fprintf(out, "of compute, to write %s again",
                      words_bytes(predicted->recomputed_bytes).text);
    } else {
        (void)fputs("no step runs twice", out);
    }
    end_card(out);
    (void)fputs("</dl>\n", out);
}

static void write_key(FILE *out, const char *class, const char *text)
{
    (void)fprintf(out, "<li><i class=\"%s\"></i>%s</li>", class, text);
}

static void begin_section(FILE *out, const char *id, const char *title)
{
    (void)fprintf(out, "<section aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n", id,
                  id, title);
}

/* Says how to use the picture until it is used. */
static void write_readout(FILE *out, const char *id, const char *keys)
{
    (void)fprintf(out,
                  "<p class=\"readout\" id=\"%s-readout\" role=\"status\">Point at the picture, "
                  "or focus it and use the arrow keys%s.</p>\n",
                  id, keys);
}

static void write_memory(const struct report *report, struct region *region, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    begin_section(out, "memory", "Memory over the iteration");
    (void)fprintf(out, "<p id=\"memory-text\">The plan peaks at %s of its budget of %s. ",
                  words_bytes(plan->resident_bytes + plan->predicted.peak_bytes).text,
                  words_bytes(plan->budget_bytes).text);
    (void)fprintf(out,
                  "At the same steps, the plain iteration would need up to %s. Weights and "
                  "optimizer state take %s all the time.</p>\n<ul class=\"key\">",
                  words_bytes(report->keep_all_peak_bytes).text,
                  words_bytes(plan->resident_bytes).text);
    write_key(out, "k-plan", "this plan");
    write_key(out, "k-keepall", "keep everything");
    write_key(out, "k-budget", "budget");
    write_key(out, "k-resident", "resident");
    (void)fputs("</ul>\n", out);
    report_draw_memory(report, region, out);
    write_readout(out, "memory", "");
    (void)fputs("</section>\n", out);
}

static void write_engines(const struct report *report, FILE *out)
{
    uint32_t stalls = 0;
    int64_t out_ns = 0, in_ns = 0;
    for (uint32_t i = 0; i < report->compute.count; i++) {
        stalls += report->compute.items[i].kind == REPORT_STALL;
    }
    for (uint32_t i = 0; i < report->out.count; i++) {
        out_ns += report->out.items[i].end_ns - report->out.items[i].start_ns;
    }
    for (uint32_t i = 0; i < report->in.count; i++) {
        in_ns += report->in.items[i].end_ns - report->in.items[i].start_ns;
    }
    double iteration = (double)report->plan->predicted.iteration_ns;
    begin_section(out, "engines", "The three engines");
    (void)fputs("<p id=\"engines-text\">", out);
    if (stalls == 0) {
        (void)fputs("Compute never waits for a copy. ", out);
    } else {
        (void)fprintf(out, "Compute stalls %" PRIu32 " %s, %s in all. ", stalls,
                      stalls == 1 ? "time" : "times",
                      words_time(report->plan->predicted.stall_ns).text);
    }
    (void)fprintf(out, "The copy engines are busy %s (out) and ",
                  words_percent(iteration > 0 ? (double)out_ns / iteration : 0).text);
    (void)fprintf(out, "%s (in) of the iteration.</p>\n<ul class=\"key\">",
                  words_percent(iteration > 0 ? (double)in_ns / iteration : 0).text);
    write_key(out, "k-forward", "forward");
    write_key(out, "k-backward", "backward");
    write_key(out, "k-update", "update");
    write_key(out, "k-recompute", "recompute");
    write_key(out, "k-stall", "stall");
    write_key(out, "k-swap", "copy out");
    write_key(out, "k-swap-in", "copy in");
    (void)fputs("</ul>\n", out);
    report_draw_engines(report, out);
    write_readout(out, "engines", "; S goes to the next stall");
    (void)fputs("</section>\n", out);
}

static void write_arena(const struct report *report, FILE *out)
{
    begin_section(out, "arena", "The arena");
    (void)fprintf(out,
                  "<p id=\"arena-text\">%s of device memory, offset against time: every tensor "
                  "has a fixed place whenever it is on the device.</p>\n<ul class=\"key\">",
                  words_bytes(report->plan->arena_bytes).text);
    write_key(out, "k-keep", "keep");
    write_key(out, "k-swap", "swap");
    write_key(out, "k-recompute", "recompute");
    write_key(out, "k-workspace", "workspace of a step");
    (void)fputs("</ul>\n", out);
    report_draw_arena(report, out);
    write_readout(out, "arena", "");
    (void)fputs("</section>\n", out);
}

static void write_policies(const struct report *report, struct region *region, FILE *out)
{
    if (report->baselines == NULL) {
        return;
    }
    begin_section(out, "policies", "Beside simple policies");
    (void)fputs("<p>The same profile, budget and clock, with the rules that people use instead of "
                "a plan.</p>\n",
                out);
    report_table_policies(report, region, out);
    (void)fputs("</section>\n", out);
}

static void write_curve(const struct report *report, FILE *out)
{
    if (report->curve == NULL) {
        return;
    }
    begin_section(out, "curve", "Throughput over batch sizes");
    report_curve_write(report->curve, report->plan, out);
    (void)fputs("</section>\n", out);
}

static void write_tensors(const struct report *report, const struct report_order *order, FILE *out)
{
    static const char *const names[] = {"keep", "swap", "recompute"};
    begin_section(out, "tensor", "Tensors");
    (void)fputs("<form class=\"filter\" role=\"search\"><label>Name <input type=\"search\" "
                "id=\"filter-name\" autocomplete=\"off\" placeholder=\"part of a name\"/></label>\n"
                "<fieldset><legend class=\"sr\">Decisions shown</legend>",
                out);
    for (int i = 0; i < 3; i++) {
        (void)fprintf(out,
                      "<label><input type=\"checkbox\" name=\"decision\" value=\"%d\" "
                      "checked=\"checked\"/> %s</label>\n",
                      i, names[i]);
    }
    (void)fputs("</fieldset></form>\n", out);
    report_table_tensors(report, order, out);
    (void)fputs("</section>\n", out);
}

void report_write(const struct report *report, struct region *region, FILE *out)
{
    struct report_order order = report_table_order(report, region);
    write_head(report->plan, out);
    write_title(report, out);
    write_cards(report, out);
    write_memory(report, region, out);
    write_engines(report, out);
    write_arena(report, out);
    write_policies(report, region, out);
    write_curve(report, out);
    write_tensors(report, &order, out);
    (void)fputs(
        "</main>\n<footer><p>Times are the simulator&#39;s, on the clock of the profile; the "
        "bound is proved. Everything on this page is in this file.</p></footer>\n"
        "<script type=\"application/json\" id=\"numbers\">\n",
        out);
    report_table_numbers(report, &order, out);
    (void)fputs("</script>\n<script>\n", out);
    (void)fputs(REPORT_JS, out);
    (void)fputs("</script>\n</body>\n</html>\n", out);
}
