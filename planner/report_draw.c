/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Paths in whole units on a canvas that the page stretches; labels are HTML beside it, so that text
 * stays text. One path per colour: a plan of thousands of instructions is a dozen elements.
 */
#include "report_draw.h"

#include "report_html.h"
#include "words.h"

#include <inttypes.h>

#define DOWN         1000U /* units from top to bottom */
#define COLUMNS      1000U /* of the memory picture: no screen shows more steps in it */
#define COLUMN_WIDTH (HTML_ACROSS / COLUMNS)
#define LANE         100U /* units from one engine to the next */
#define LANE_PAD     10U
#define MARK_APART   40U /* from this width on a mark stands apart from its neighbour */
#define MARK_SPACE   4U
#define FINE_PLACES  1500U /* more places than that are drawn without outlines */

static void write_scaled(FILE *out, uint64_t value, uint64_t unit, const char *name)
{
    (void)fprintf(out, "%g %s", (double)value / (double)unit, name);
}

static void write_bytes(FILE *out, uint64_t bytes, uint64_t most)
{
    static const char *const names[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t unit = 1;
    unsigned i = 0;
    for (; i < 6 && most / unit >= 2000; i++) {
        unit *= 1000;
    }
    write_scaled(out, bytes, unit, names[i]);
}

static void write_time(FILE *out, uint64_t ns, uint64_t most)
{
    static const char *const names[] = {"ns", "us", "ms", "s"};
    uint64_t unit = 1;
    unsigned i = 0;
    for (; i < 3 && most / unit >= 2000; i++) {
        unit *= 1000;
    }
    write_scaled(out, ns, unit, names[i]);
}

static double percent_of(uint64_t value, uint64_t most)
{
    return most == 0 ? 0 : 100.0 * (double)value / (double)most;
}

static void write_bytes_axis(FILE *out, uint64_t most)
{
    uint64_t tick = html_tick(most);
    (void)fputs("<div class=\"ys\" aria-hidden=\"true\">", out);
    for (uint64_t at = 0; at <= most && most > 0; at += tick) {
        (void)fprintf(out, "<span style=\"bottom:%.2f%%\">", percent_of(at, most));
        write_bytes(out, at, most);
        (void)fputs("</span>", out);
    }
    (void)fputs("</div>\n", out);
}

static void write_time_axis(FILE *out, int64_t most_ns)
{
    uint64_t most = (uint64_t)most_ns, tick = html_tick(most);
    (void)fputs("<div class=\"xs\" aria-hidden=\"true\">", out);
    for (uint64_t at = 0; at <= most && most > 0; at += tick) {
        double left = percent_of(at, most);
        /* A label in the middle of its mark would leave the page there. */
        (void)fprintf(out, "<span%s style=\"left:%.2f%%\">", left > 97 ? " class=\"last\"" : "",
                      left);
        write_time(out, at, most);
        (void)fputs("</span>", out);
    }
    (void)fputs("</div>\n", out);
}

static void write_grid(FILE *out, uint64_t most_bytes, uint64_t most_ns, uint32_t down)
{
    uint64_t tick = html_tick(most_bytes);
    (void)fputs("<path class=\"grid\" d=\"", out);
    for (uint64_t at = 0; at <= most_bytes && most_bytes > 0; at += tick) {
        (void)fprintf(out, "M0 %" PRIu32 "h%d", down - html_scale(at, most_bytes, down),
                      HTML_ACROSS);
    }
    tick = html_tick(most_ns);
    for (uint64_t at = 0; at <= most_ns && most_ns > 0; at += tick) {
        (void)fprintf(out, "M%" PRIu32 " 0v%" PRIu32, html_across(at, most_ns), down);
    }
    (void)fputs("\"/>\n", out);
}

/* The largest level that each column sees. */
static void fill_columns(const struct report *report, uint64_t *plan, uint64_t *keep_all)
{
    uint64_t most = (uint64_t)report->plan->predicted.iteration_ns;
    for (uint32_t i = 0; i < report->level_count; i++) {
        const struct report_level *level = &report->levels[i];
        uint32_t first = html_scale((uint64_t)level->start_ns, most, COLUMNS);
        uint32_t last = html_scale((uint64_t)level->end_ns, most, COLUMNS);
        for (uint32_t c = first; c <= last && c < COLUMNS; c++) {
            plan[c] = level->bytes > plan[c] ? level->bytes : plan[c];
            keep_all[c] = level->keep_all_bytes > keep_all[c] ? level->keep_all_bytes : keep_all[c];
        }
    }
}

/* A line over all columns; with `is_area`, down to the ground and closed. */
static void draw_columns(FILE *out, const char *class, const uint64_t *columns, uint64_t most,
                         bool is_area)
{
    uint32_t y = DOWN - html_scale(columns[0], most, DOWN), run = 0;
    (void)fprintf(out, "<path class=\"%s\" d=\"M0 %" PRIu32, class, is_area ? DOWN : y);
    if (is_area) {
        (void)fprintf(out, "V%" PRIu32, y);
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        uint32_t next = DOWN - html_scale(columns[c], most, DOWN);
        if (next != y) {
            (void)fprintf(out, "h%" PRIu32 "V%" PRIu32, run, next);
            y = next;
            run = 0;
        }
        run += COLUMN_WIDTH;
    }
    (void)fprintf(out, "h%" PRIu32, run);
    if (is_area) {
        (void)fprintf(out, "V%uz", DOWN);
    }
    (void)fputs("\"/>\n", out);
}

void report_draw_memory(const struct report *report, struct region *region, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    uint64_t most = plan->budget_bytes > report->keep_all_peak_bytes ? plan->budget_bytes
                                                                     : report->keep_all_peak_bytes;
    uint64_t most_ns = (uint64_t)plan->predicted.iteration_ns;
    uint64_t *columns = REGION_NEW(region, uint64_t, COLUMNS);
    uint64_t *keep_all = REGION_NEW(region, uint64_t, COLUMNS);
    fill_columns(report, columns, keep_all);
    /* A budget far above the need would flatten the picture; it is then said in words alone. */
    bool shows_budget = plan->budget_bytes <= 3 * report->keep_all_peak_bytes;
    most = shows_budget ? most : report->keep_all_peak_bytes;
    most += most / 20;
    (void)fputs("<div class=\"plot tall\">\n", out);
    write_bytes_axis(out, most);
    (void)fprintf(out,
                  "<div class=\"canvas\" id=\"memory-canvas\" data-chart=\"memory\" tabindex=\"0\" "
                  "role=\"application\" aria-label=\"Device memory over time. Left and right arrow "
                  "keys move through the steps.\" aria-describedby=\"memory-text\">"
                  "<svg viewBox=\"0 0 %d %u\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n",
                  HTML_ACROSS, DOWN);
    write_grid(out, most, most_ns, DOWN);
    draw_columns(out, "area", columns, most, true);
    uint32_t resident = html_scale(plan->resident_bytes, most, DOWN);
    if (resident > 0) {
        (void)fprintf(out, "<path class=\"resident\" d=\"M0 %uh%dV%uH0z\"/>\n", DOWN - resident,
                      HTML_ACROSS, DOWN);
    }
    draw_columns(out, "line keepall", keep_all, most, false);
    draw_columns(out, "line plan", columns, most, false);
    if (shows_budget) {
        (void)fprintf(out, "<path class=\"line budget\" d=\"M0 %" PRIu32 "h%d\"/>\n",
                      DOWN - html_scale(plan->budget_bytes, most, DOWN), HTML_ACROSS);
    }
    (void)fputs("</svg>", out);
    if (shows_budget) {
        (void)fprintf(out, "<span class=\"mark-label\" style=\"bottom:%.2f%%\">budget %s</span>",
                      percent_of(plan->budget_bytes, most), words_bytes(plan->budget_bytes).text);
    }
    (void)fputs("</div>\n", out);
    write_time_axis(out, plan->predicted.iteration_ns);
    (void)fputs("</div>\n", out);
}

/* Draws marks from left to right as few rectangles: neighbours that touch are one unless they are
 * wide, and what is too narrow to see is saved up until it makes a unit. */
struct brush {
    FILE *out;
    uint32_t top, height;
    uint64_t most_ns, saved_ns;
    uint32_t start, end; /* of the rectangle at hand; equal: none */
    bool is_wide;        /* it is one wide mark */
};

static void brush_flush(struct brush *brush)
{
    if (brush->end > brush->start) {
        uint32_t width = brush->end - brush->start;
        width -= brush->is_wide ? MARK_SPACE : 0;
        (void)fprintf(brush->out, "M%" PRIu32 " %" PRIu32 "h%" PRIu32 "v%" PRIu32 "h-%" PRIu32 "z",
                      brush->start, brush->top, width, brush->height, width);
    }
    brush->start = brush->end;
}

static void brush_add(struct brush *brush, const struct report_mark *mark)
{
    uint32_t start = html_across((uint64_t)mark->start_ns, brush->most_ns);
    uint32_t end = html_across((uint64_t)mark->end_ns, brush->most_ns);
    if (start == end) {
        brush->saved_ns += (uint64_t)(mark->end_ns - mark->start_ns);
        uint32_t units = html_across(brush->saved_ns, brush->most_ns);
        if (units == 0 || end <= brush->end) {
            return;
        }
        brush->saved_ns = 0;
        start = end - 1;
    }
    bool is_wide = end - start >= MARK_APART;
    if (start > brush->end || is_wide || brush->is_wide) {
        brush_flush(brush);
        brush->start = start;
        brush->is_wide = is_wide;
    }
    brush->end = end;
}

static void draw_marks(const struct report *report, const struct report_marks *marks,
                       enum report_kind kind, uint32_t lane, FILE *out)
{
    static const char *const classes[REPORT_KIND_COUNT] = {
        [REPORT_FORWARD] = "forward", [REPORT_BACKWARD] = "backward", [REPORT_UPDATE] = "update",
        [REPORT_RERUN] = "recompute", [REPORT_STALL] = "stall",       [REPORT_OUT] = "swap",
        [REPORT_IN] = "swap-in"};
    struct brush brush = {.out = out,
                          .top = lane * LANE + LANE_PAD,
                          .height = LANE - 2 * LANE_PAD,
                          .most_ns = (uint64_t)report->plan->predicted.iteration_ns};
    (void)fprintf(out, "<path class=\"%s\" d=\"", classes[kind]);
    for (uint32_t i = 0; i < marks->count; i++) {
        if (marks->items[i].kind == kind) {
            brush_add(&brush, &marks->items[i]);
        }
    }
    brush_flush(&brush);
    (void)fputs("\"/>\n", out);
}

void report_draw_engines(const struct report *report, FILE *out)
{
    (void)fputs("<div class=\"plot lanes\">\n<div class=\"ys lane-names\" aria-hidden=\"true\">"
                "<span>compute</span><span>copy out</span><span>copy in</span></div>\n",
                out);
    (void)fprintf(out,
                  "<div class=\"canvas\" id=\"engines-canvas\" data-chart=\"engines\" "
                  "tabindex=\"0\" role=\"application\" aria-label=\"The three engines over time. "
                  "Left and right arrow keys move through the steps, S to the next stall.\" "
                  "aria-describedby=\"engines-text\"><svg viewBox=\"0 0 %d %u\" "
                  "preserveAspectRatio=\"none\" aria-hidden=\"true\">\n<defs><pattern "
                  "id=\"hatch\" width=\"24\" height=\"24\" patternUnits=\"userSpaceOnUse\"><path "
                  "class=\"hatch\" d=\"M0 0h24v24h-24z\"/><path class=\"hatch-line\" d=\"M0 0h8v24"
                  "h-8z\"/></pattern></defs>\n",
                  HTML_ACROSS, 3 * LANE);
    write_grid(out, 0, (uint64_t)report->plan->predicted.iteration_ns, 3 * LANE);
    for (int kind = REPORT_FORWARD; kind <= REPORT_STALL; kind++) {
        draw_marks(report, &report->compute, (enum report_kind)kind, 0, out);
    }
    draw_marks(report, &report->out, REPORT_OUT, 1, out);
    draw_marks(report, &report->in, REPORT_IN, 2, out);
    (void)fputs("</svg></div>\n", out);
    write_time_axis(out, report->plan->predicted.iteration_ns);
    (void)fputs("</div>\n", out);
}

/* Workspaces, or the tensors of one decision. */
static void draw_places(const struct report *report, const char *class, bool is_workspace,
                        enum atp_decision decision, FILE *out)
{
    uint64_t most_ns = (uint64_t)report->plan->predicted.iteration_ns;
    uint64_t most = report->plan->arena_bytes;
    uint32_t last[4] = {0};
    (void)fprintf(out, "<path class=\"%s\" d=\"", class);
    for (uint32_t i = 0; i < report->place_count; i++) {
        const struct report_place *place = &report->places[i];
        if (place->is_workspace != is_workspace ||
            (!is_workspace && report->plan->decisions[place->id] != decision)) {
            continue;
        }
        uint32_t left = html_across((uint64_t)place->start_ns, most_ns);
        uint32_t right = html_across((uint64_t)place->end_ns, most_ns);
        uint32_t low = html_scale(place->offset, most, DOWN);
        uint32_t high = html_scale(place->offset + place->bytes, most, DOWN);
        /* Too small to see, and as large as the last one: drawn once. */
        bool is_dot = right == left && high == low;
        if (is_dot && left == last[0] && low == last[1]) {
            continue;
        }
        last[0] = left;
        last[1] = low;
        right += right == left;
        high += high == low;
        (void)fprintf(out, "M%" PRIu32 " %" PRIu32 "h%" PRIu32 "v%" PRIu32 "h-%" PRIu32 "z", left,
                      DOWN - (high > DOWN ? DOWN : high), right - left, high - low, right - left);
    }
    (void)fputs("\"/>\n", out);
}

void report_draw_arena(const struct report *report, FILE *out)
{
    const struct atp_plan *plan = report->plan;
    (void)fputs("<div class=\"plot taller\">\n", out);
    write_bytes_axis(out, plan->arena_bytes);
    (void)fprintf(out,
                  "<div class=\"canvas\" id=\"arena-canvas\" data-chart=\"arena\" tabindex=\"0\" "
                  "role=\"application\" aria-label=\"The arena: offset against time. Left and "
                  "right arrow keys move through its tensors.\" aria-describedby=\"arena-text\">"
                  "<svg class=\"%s\" viewBox=\"0 0 %d %u\" preserveAspectRatio=\"none\" "
                  "aria-hidden=\"true\">\n",
                  report->place_count > FINE_PLACES ? "fine" : "outlined", HTML_ACROSS, DOWN);
    write_grid(out, plan->arena_bytes, (uint64_t)plan->predicted.iteration_ns, DOWN);
    draw_places(report, "workspace", true, ATP_DECISION_KEEP, out);
    draw_places(report, "keep", false, ATP_DECISION_KEEP, out);
    draw_places(report, "swap", false, ATP_DECISION_SWAP, out);
    draw_places(report, "recompute", false, ATP_DECISION_RECOMPUTE, out);
    (void)fputs("<path class=\"chosen\" d=\"\"/></svg></div>\n", out);
    write_time_axis(out, plan->predicted.iteration_ns);
    (void)fputs("</div>\n", out);
}
