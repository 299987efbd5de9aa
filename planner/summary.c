/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "summary.h"

#include "layers.h"
#include "words.h"

#include <inttypes.h>
#include <string.h>

/* Columns of the numbers of a layer, and of its name. */
#define LAYERS_WIDTH_CELLS 53U
#define LAYERS_WIDTH_LEAST 72U
#define LAYER_COLUMNS_MAX  48U
#define LAYER_NAME_MAX     200U

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

static bool is_alike(const struct layer *a, const struct layer *b)
{
    return memcmp(a->tensors, b->tensors, sizeof(a->tensors)) == 0 &&
           memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Of a layer, or of a range of them; cut between characters to `columns`. */
static void print_layer_name(const char *first, const char *last, uint32_t columns, FILE *out)
{
    char name[2 * LAYER_NAME_MAX + 8];
    (void)snprintf(name, sizeof(name), "%s%s%s", first[0] != '\0' ? first : "-",
                   first != last ? " to " : "", first != last ? last : "");
    size_t length = strlen(name);
    if (length > columns) {
        length = columns - 1;
        while (length > 0 && ((unsigned char)name[length] & 0xC0U) == 0x80) {
            length--;
        }
        name[length++] = '~';
        name[length] = '\0';
    }
    (void)fprintf(out, "%-*s", (int)columns, name);
}

bool summary_print_layers(const struct atp_plan *plan, uint32_t width, struct region *region,
                          FILE *out)
{
    struct layers layers;
    uint32_t columns = width > LAYERS_WIDTH_LEAST ? width : LAYERS_WIDTH_LEAST;
    columns -= LAYERS_WIDTH_CELLS;
    columns = columns < LAYER_COLUMNS_MAX ? columns : LAYER_COLUMNS_MAX;
    layers_build(plan, region, &layers);
    if (layers.count == 0 || (layers.count == 1 && layers.items[0].name[0] == '\0')) {
        return false;
    }
    print_layer_name("decisions by layer", "decisions by layer", columns, out);
    for (unsigned d = 0; d < DECISION_COUNT; d++) {
        (void)fprintf(out, " %15s", atp_decision_name((enum atp_decision)d));
    }
    (void)fputc('\n', out);
    for (uint32_t i = 0, next; i < layers.count; i = next) {
        const struct layer *layer = &layers.items[i];
        next = i + 1;
        while (next < layers.count && is_alike(layer, &layers.items[next])) {
            next++;
        }
        print_layer_name(layer->name, layers.items[next - 1].name, columns, out);
        for (unsigned d = 0; d < DECISION_COUNT; d++) {
            char cell[48] = "-";
            if (layer->tensors[d] > 0) {
                (void)snprintf(cell, sizeof(cell), "%" PRIu32 ", %s", layer->tensors[d],
                               words_bytes(layer->bytes[d]).text);
            }
            (void)fprintf(out, " %15s", cell);
        }
        (void)fprintf(out, "%s\n", next - i > 1 ? " each" : "");
    }
    return true;
}
