/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program is walked once into a tour: what lies where during which steps. A cell of the arena's
 * picture adds up bytes x steps of what overlaps it, and shows what has most. Floating point is
 * good enough here: nothing is decided by it.
 */
#include "picture.h"

#include "words.h"

#include <string.h>

#define LABEL_WIDTH     11U
#define MEMORY_ROWS     8U
#define LETTERS         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LETTER_COUNT    52U
#define WORKSPACE       '*'
#define LEGEND_NAME_MAX 40U

/* A stay in the arena, over steps of the tour [first, end). */
struct span {
    uint32_t tensor; /* ATP_NONE: a step's workspace */
    uint32_t first, end;
    uint64_t offset, bytes;
};

struct tour {
    uint32_t length; /* runs and reruns */
    uint32_t span_count;
    struct span *spans;
    uint64_t *live_bytes; /* per position: the most since the one before */
    char *phases;         /* per position: f, b, u, of reruns too: where the iteration is then */
    bool *reruns, *copies_out, *copies_in;
};

/* What a tensor is doing while the program is walked. */
struct stay {
    bool is_here;
    uint32_t first, copy_from;
    uint64_t offset;
};

static void add_span(struct tour *tour, uint32_t tensor, uint32_t first, uint64_t offset,
                     uint64_t bytes)
{
    if (first < tour->length && bytes > 0) {
        tour->spans[tour->span_count++] = (struct span){tensor, first, tour->length, offset, bytes};
    }
}

/* A copy that compute waits for at once still shows. */
static void mark_copy(const struct tour *tour, uint32_t from, uint32_t total, bool *busy)
{
    uint32_t end = from < tour->length ? tour->length : from + 1;
    for (uint32_t i = from; i < end && i < total; i++) {
        busy[i] = true;
    }
}

static void visit_step(const struct atp_plan *plan, const struct atp_instruction *in, uint64_t live,
                       uint64_t *highest, struct tour *tour)
{
    static const char phases[] = {'f', 'b', 'u'};
    const struct atp_step *step = &plan->model.steps[in->id];
    uint64_t now = live + step->workspace_bytes;
    uint32_t at = tour->length++;
    add_span(tour, ATP_NONE, at, in->offset, step->workspace_bytes);
    tour->reruns[at] = in->op == ATP_OP_RERUN;
    tour->phases[at] = phases[step->phase];
    if (tour->reruns[at] && at > 0) {
        tour->phases[at] = tour->phases[at - 1];
    }
    tour->live_bytes[at] = now > *highest ? now : *highest;
    *highest = 0;
}

static struct tour make_tour(const struct atp_plan *plan, struct region *region)
{
    uint32_t total = plan->instruction_count;
    struct tour tour = {.spans = REGION_NEW(region, struct span, total),
                        .live_bytes = REGION_NEW(region, uint64_t, total),
                        .phases = REGION_NEW(region, char, total),
                        .reruns = REGION_NEW(region, bool, total),
                        .copies_out = REGION_NEW(region, bool, total),
                        .copies_in = REGION_NEW(region, bool, total)};
    struct stay *stays = REGION_NEW(region, struct stay, plan->model.tensor_count);
    uint64_t live = 0, highest = 0;
    for (uint32_t i = 0; i < total; i++) {
        const struct atp_instruction *in = &plan->program[i];
        if (in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN) {
            visit_step(plan, in, live, &highest, &tour);
            continue;
        }
        struct stay *stay = &stays[in->id];
        uint64_t bytes = plan->model.tensors[in->id].bytes;
        if ((in->op == ATP_OP_ALLOC || in->op == ATP_OP_RESTORE) && !stay->is_here) {
            *stay = (struct stay){true, tour.length, tour.length, in->offset};
            live += bytes;
            highest = live > highest ? live : highest;
        } else if (in->op == ATP_OP_EVICT) {
            stay->copy_from = tour.length;
        } else if (in->op == ATP_OP_RESTORED) {
            mark_copy(&tour, stay->copy_from, total, tour.copies_in);
        } else if ((in->op == ATP_OP_FREE || in->op == ATP_OP_EVICTED) && stay->is_here) {
            stay->is_here = false;
            live -= bytes;
            add_span(&tour, in->id, stay->first, stay->offset, bytes);
        }
        if (in->op == ATP_OP_EVICTED) {
            mark_copy(&tour, stay->copy_from, total, tour.copies_out);
        }
    }
    return tour;
}

/* Columns: whole numbers of them per step where there is room, else several steps in one. */
static uint32_t column_count(const struct tour *tour, const struct picture_style *style)
{
    uint32_t room = style->width > LABEL_WIDTH + 12 ? style->width - LABEL_WIDTH - 2 : 10;
    if (tour->length == 0) {
        return 0;
    }
    uint32_t each = room / tour->length;
    return each == 0 ? room : tour->length * (each < 8 ? each : 8);
}

static uint32_t first_position(const struct tour *tour, uint32_t column, uint32_t columns)
{
    return (uint32_t)((uint64_t)column * tour->length / columns);
}

static uint32_t end_position(const struct tour *tour, uint32_t column, uint32_t columns)
{
    uint32_t first = first_position(tour, column, columns);
    uint32_t end = first_position(tour, column + 1, columns);
    return end > first ? end : first + 1;
}

static void print_label(const char *text, const struct picture_style *style, FILE *out)
{
    (void)fprintf(out, "%*s %s", (int)LABEL_WIDTH - 1, text, style->utf8 ? "\xE2\x94\x82" : "|");
}

/* `eighths` of a character's height, 0 to 8. */
static void print_bar(uint64_t eighths, const struct picture_style *style, FILE *out)
{
    static const char *const bars[] = {" ",
                                       "\xE2\x96\x81",
                                       "\xE2\x96\x82",
                                       "\xE2\x96\x83",
                                       "\xE2\x96\x84",
                                       "\xE2\x96\x85",
                                       "\xE2\x96\x86",
                                       "\xE2\x96\x87",
                                       "\xE2\x96\x88"};
    if (style->utf8) {
        (void)fputs(bars[eighths], out);
    } else {
        (void)fputc(eighths == 0 ? ' ' : eighths <= 4 ? '.' : '#', out);
    }
}

static void print_lane(const char *label, const bool *busy, char mark, const struct tour *tour,
                       uint32_t columns, const struct picture_style *style, FILE *out)
{
    if (tour->length == 0 || memchr(busy, true, tour->length) == NULL) {
        return;
    }
    print_label(label, style, out);
    for (uint32_t c = 0; c < columns; c++) {
        uint32_t first = first_position(tour, c, columns);
        uint32_t length = end_position(tour, c, columns) - first;
        (void)fputc(memchr(&busy[first], true, length) != NULL ? mark : ' ', out);
    }
    (void)fputc('\n', out);
}

static void print_phases(const struct tour *tour, uint32_t columns,
                         const struct picture_style *style, FILE *out)
{
    print_label("phase", style, out);
    for (uint32_t c = 0; c < columns; c++) {
        (void)fputc(tour->phases[first_position(tour, c, columns)], out);
    }
    (void)fputc('\n', out);
    print_lane("rerun", tour->reruns, 'r', tour, columns, style, out);
}

void picture_memory(const struct atp_plan *plan, const struct picture_style *style,
                    struct region *region, FILE *out)
{
    struct tour tour = make_tour(plan, region);
    uint32_t columns = column_count(&tour, style);
    uint64_t top = 1;
    for (uint32_t i = 0; i < tour.length; i++) {
        top = tour.live_bytes[i] > top ? tour.live_bytes[i] : top;
    }
    (void)fprintf(out, "live bytes over the program (%u runs and reruns of steps)\n", tour.length);
    for (uint32_t row = MEMORY_ROWS; row-- > 0;) {
        print_label(words_bytes((uint64_t)((double)top * (row + 1) / MEMORY_ROWS)).text, style,
                    out);
        for (uint32_t c = 0; c < columns; c++) {
            uint64_t highest = 0;
            for (uint32_t i = first_position(&tour, c, columns);
                 i < end_position(&tour, c, columns); i++) {
                highest = tour.live_bytes[i] > highest ? tour.live_bytes[i] : highest;
            }
            double level = (double)highest / (double)top * MEMORY_ROWS * 8 - (double)row * 8;
            print_bar(level <= 0 ? 0 : level >= 8 ? 8 : (uint64_t)(level + 0.5), style, out);
        }
        (void)fputc('\n', out);
    }
    print_phases(&tour, columns, style, out);
    print_lane("evict", tour.copies_out, '>', &tour, columns, style, out);
    print_lane("restore", tour.copies_in, '<', &tour, columns, style, out);
    (void)fputs("f forward, b backward, u update\n", out);
}

/* What a cell can show: one kind per letter, and the workspace. */
struct kinds {
    bool by_tensor;
    uint32_t count;
    const uint32_t *of_tensor;
    const bool *is_seen; /* per tensor: has a stay of some length */
    char letters[LETTER_COUNT + 1];
    enum atp_decision decisions[LETTER_COUNT + 1]; /* for the colour */
};

/* The first letter of its name where that is free, else its other case, else the next free one. */
static char take_letter(const char *name, bool *is_taken)
{
    static const char letters[] = LETTERS;
    const uint32_t half = LETTER_COUNT / 2;
    const char *own = strchr(letters, name[0]);
    uint32_t first = own == NULL || *own == '\0' ? 0 : (uint32_t)(own - letters);
    uint32_t letter = first;
    if (is_taken[letter]) {
        letter = (first + half) % LETTER_COUNT;
    }
    for (uint32_t i = 0; is_taken[letter] && i < LETTER_COUNT; i++) {
        letter = i;
    }
    is_taken[letter] = true;
    return letters[letter];
}

static uint32_t find_seen(const struct atp_plan *plan, const struct tour *tour, bool *is_seen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tour->span_count; i++) {
        uint32_t t = tour->spans[i].tensor;
        if (t != ATP_NONE && t < plan->model.tensor_count && !is_seen[t]) {
            is_seen[t] = true;
            count++;
        }
    }
    return count;
}

static struct kinds make_kinds(const struct atp_plan *plan, const struct tour *tour,
                               struct region *region)
{
    static const char decision_letters[] = {'k', 's', 'r'};
    struct kinds kinds = {0};
    uint32_t *of_tensor = REGION_NEW(region, uint32_t, plan->model.tensor_count);
    bool *is_seen = REGION_NEW(region, bool, plan->model.tensor_count);
    bool is_taken[LETTER_COUNT] = {false};
    kinds.by_tensor = find_seen(plan, tour, is_seen) <= LETTER_COUNT;
    kinds.is_seen = is_seen;
    kinds.of_tensor = of_tensor;
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        if (!kinds.by_tensor) {
            of_tensor[t] = plan->decisions[t];
        } else if (is_seen[t]) {
            of_tensor[t] = kinds.count;
            kinds.letters[kinds.count] = take_letter(plan->model.tensors[t].name, is_taken);
            kinds.decisions[kinds.count++] = plan->decisions[t];
        }
    }
    for (uint32_t d = 0; !kinds.by_tensor && d < sizeof(decision_letters); d++) {
        kinds.letters[d] = decision_letters[d];
        kinds.decisions[d] = (enum atp_decision)d;
        kinds.count++;
    }
    kinds.letters[kinds.count++] = WORKSPACE;
    return kinds;
}

struct grid {
    uint32_t rows, columns;
    double band_bytes; /* of a row */
    double *areas;     /* rows x columns x kinds: bytes x positions */
};

static double overlap(double a_first, double a_end, double b_first, double b_end)
{
    double first = a_first > b_first ? a_first : b_first;
    double end = a_end < b_end ? a_end : b_end;
    return end > first ? end - first : 0;
}

static void add_to_grid(const struct grid *grid, const struct tour *tour, const struct span *span,
                        uint32_t kind, uint32_t kind_count)
{
    double step = (double)tour->length / grid->columns;
    double low = (double)span->offset, high = low + (double)span->bytes;
    for (uint32_t row = 0; row < grid->rows; row++) {
        double height = overlap(low, high, row * grid->band_bytes, (row + 1) * grid->band_bytes);
        uint32_t first = (uint32_t)(span->first / step);
        for (uint32_t c = first; height > 0 && c < grid->columns && c * step < span->end; c++) {
            double width = overlap(span->first, span->end, c * step, (c + 1) * step);
            grid->areas[((size_t)row * grid->columns + c) * kind_count + kind] += width * height;
        }
    }
}

static struct grid make_grid(const struct atp_plan *plan, const struct tour *tour,
                             const struct kinds *kinds, const struct picture_style *style,
                             struct region *region)
{
    struct grid grid = {.rows = kinds->by_tensor ? 16 : 24, .columns = column_count(tour, style)};
    grid.band_bytes = plan->arena_bytes > 0 ? (double)plan->arena_bytes / grid.rows : 1;
    grid.areas = REGION_NEW(region, double, (size_t)grid.rows *grid.columns * kinds->count);
    for (uint32_t i = 0; i < tour->span_count; i++) {
        const struct span *span = &tour->spans[i];
        uint32_t kind =
            span->tensor == ATP_NONE ? kinds->count - 1 : kinds->of_tensor[span->tensor];
        add_to_grid(&grid, tour, span, kind, kinds->count);
    }
    return grid;
}

/* The kind that has most of the cell; kinds->count when most of it is free. */
static uint32_t shown_kind(const double *areas, const struct kinds *kinds, double cell_area,
                           double *out_filled)
{
    uint32_t best = 0;
    double filled = 0;
    for (uint32_t k = 0; k < kinds->count; k++) {
        filled += areas[k];
        best = areas[k] > areas[best] ? k : best;
    }
    *out_filled = filled / cell_area;
    return *out_filled < 0.25 ? kinds->count : best;
}

static const char *color_of(const struct kinds *kinds, uint32_t kind)
{
    static const char *const colors[] = {[ATP_DECISION_KEEP] = "\033[34m",
                                         [ATP_DECISION_SWAP] = "\033[33m",
                                         [ATP_DECISION_RECOMPUTE] = "\033[35m"};
    return kind + 1 >= kinds->count ? "\033[0m" : colors[kinds->decisions[kind]];
}

static void print_row(const struct grid *grid, uint32_t row, double step, const struct kinds *kinds,
                      const struct picture_style *style, FILE *out)
{
    const char *color = "\033[0m";
    for (uint32_t c = 0; c < grid->columns; c++) {
        double filled;
        const double *areas = &grid->areas[((size_t)row * grid->columns + c) * kinds->count];
        uint32_t kind = shown_kind(areas, kinds, grid->band_bytes * step, &filled);
        if (style->color && color_of(kinds, kind) != color) {
            color = color_of(kinds, kind);
            (void)fputs(color, out);
        }
        int letter = kind < kinds->count ? kinds->letters[kind] : ' ';
        bool is_dense = !kinds->by_tensor && letter >= 'a' && letter <= 'z' && filled >= 0.75;
        (void)fputc(is_dense ? letter - 'a' + 'A' : letter, out);
    }
    (void)fputs(style->color ? "\033[0m\n" : "\n", out);
}

/* Bytes of the name that fit the legend, whole characters only. */
static int shown_bytes(const char *name)
{
    size_t length = strnlen(name, LEGEND_NAME_MAX);
    while (length > 0 && ((unsigned char)name[length] & 0xC0U) == 0x80U) {
        length--;
    }
    return (int)length;
}

static void print_legend(const struct atp_plan *plan, const struct tour *tour,
                         const struct kinds *kinds, const struct picture_style *style, FILE *out)
{
    bool has_workspace = false;
    uint32_t used = 0;
    for (uint32_t i = 0; i < tour->span_count; i++) {
        has_workspace = has_workspace || tour->spans[i].tensor == ATP_NONE;
    }
    if (!kinds->by_tensor) {
        (void)fprintf(out,
                      "k keep, s swap, r recompute%s; capitals where it is full, blank where less "
                      "than a quarter is used\n",
                      has_workspace ? ", * workspace" : "");
        return;
    }
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        if (kinds->is_seen[t]) {
            char text[LEGEND_NAME_MAX + 64];
            const char *name = plan->model.tensors[t].name;
            int length = snprintf(text, sizeof(text), "%c = %.*s, %s, %s",
                                  kinds->letters[kinds->of_tensor[t]], shown_bytes(name), name,
                                  words_bytes(plan->model.tensors[t].bytes).text,
                                  atp_decision_name(plan->decisions[t]));
            uint32_t next = used + (uint32_t)length + 2;
            (void)fprintf(out, "%s%s", used == 0 ? "" : next > style->width ? "\n" : "; ", text);
            used = next > style->width ? (uint32_t)length : next;
        }
    }
    (void)fprintf(out, "%s\n",
                  !has_workspace ? ""
                  : used > 0     ? "; * = workspace"
                                 : "* = workspace");
}

void picture_arena(const struct atp_plan *plan, const struct picture_style *style,
                   struct region *region, FILE *out)
{
    struct tour tour = make_tour(plan, region);
    struct kinds kinds = make_kinds(plan, &tour, region);
    struct grid grid = make_grid(plan, &tour, &kinds, style, region);
    (void)fprintf(out, "arena: offset of each row of %s, over the program\n",
                  words_bytes((uint64_t)grid.band_bytes).text);
    for (uint32_t row = grid.rows; row-- > 0;) {
        print_label(words_bytes((uint64_t)(grid.band_bytes * row)).text, style, out);
        print_row(&grid, row, (double)tour.length / (grid.columns > 0 ? grid.columns : 1), &kinds,
                  style, out);
    }
    print_phases(&tour, grid.columns, style, out);
    print_legend(plan, &tour, &kinds, style, out);
}
