/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * B's names are sorted once, A's are looked up: n log n. Changes are then put in the order of their
 * layers.
 */
#include "plan_diff.h"

#include "json.h"
#include "layers.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    uint32_t id;
    bool is_met;
};

static int by_name(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* All in one list, layer after layer. */
static void add_changes(struct plan_diff *diff, const struct plan_change *found,
                        const uint32_t *layer_of, uint32_t count, uint32_t layer_count,
                        struct region *region)
{
    struct plan_change *changes = REGION_NEW(region, struct plan_change, count);
    uint32_t *starts = REGION_NEW(region, uint32_t, (size_t)layer_count + 1);
    for (uint32_t i = 0; i < count; i++) {
        starts[layer_of[i] + 1]++;
    }
    for (uint32_t i = 0; i < layer_count; i++) {
        starts[i + 1] += starts[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        changes[starts[layer_of[i]]++] = found[i];
    }
    diff->changes = changes;
    diff->change_count = count;
}

static void find_changes(struct plan_diff *diff, struct region *region)
{
    const struct atp_model *ma = &diff->a->model, *mb = &diff->b->model;
    size_t most = (size_t)ma->tensor_count + mb->tensor_count;
    struct layers la, lb;
    layers_build(diff->a, region, &la);
    layers_build(diff->b, region, &lb);
    struct entry *entries = REGION_NEW(region, struct entry, mb->tensor_count);
    struct plan_change *found = REGION_NEW(region, struct plan_change, most);
    uint32_t *layer_of = REGION_NEW(region, uint32_t, most);
    uint32_t count = 0;
    for (uint32_t t = 0; t < mb->tensor_count; t++) {
        entries[t] = (struct entry){.name = mb->tensors[t].name, .id = t};
    }
    qsort(entries, mb->tensor_count, sizeof(*entries), by_name);
    for (uint32_t t = 0; t < ma->tensor_count; t++) {
        struct entry key = {.name = ma->tensors[t].name};
        struct entry *met = bsearch(&key, entries, mb->tensor_count, sizeof(*entries), by_name);
        if (met != NULL) {
            met->is_met = true;
        }
        if (met == NULL || diff->a->decisions[t] != diff->b->decisions[met->id]) {
            layer_of[count] = la.of_tensor[t];
            found[count++] = (struct plan_change){.name = key.name,
                                                  .layer = la.items[la.of_tensor[t]].name,
                                                  .a = t,
                                                  .b = met != NULL ? met->id : ATP_NONE};
        }
    }
    for (uint32_t i = 0; i < mb->tensor_count; i++) {
        if (!entries[i].is_met) {
            uint32_t layer = lb.of_tensor[entries[i].id];
            layer_of[count] = la.count + layer;
            found[count++] = (struct plan_change){.name = entries[i].name,
                                                  .layer = lb.items[layer].name,
                                                  .a = ATP_NONE,
                                                  .b = entries[i].id};
        }
    }
    add_changes(diff, found, layer_of, count, la.count + lb.count, region);
}

static uint32_t first_instruction(const struct atp_plan *a, const struct atp_plan *b)
{
    for (uint32_t i = 0; i < a->instruction_count || i < b->instruction_count; i++) {
        if (i >= a->instruction_count || i >= b->instruction_count) {
            return i;
        }
        const struct atp_instruction *ia = &a->program[i], *ib = &b->program[i];
        if (ia->op != ib->op || ia->id != ib->id || ia->offset != ib->offset) {
            return i;
        }
    }
    return ATP_NONE;
}

/* The first place where files of both differ. */
static void find_first(struct plan_diff *diff)
{
    const struct atp_plan *a = diff->a, *b = diff->b;
    size_t size = sizeof(diff->first);
    if (strcmp(a->model.name, b->model.name) != 0) {
        (void)snprintf(diff->first, size, "model");
        return;
    }
    if (!diff->is_same_model) {
        (void)snprintf(diff->first, size, "fingerprint");
        return;
    }
    for (unsigned i = 0; i + 1 < SUMMARY_NUMBER_COUNT; i++) {
        if (diff->a_numbers[i].value != diff->b_numbers[i].value) {
            (void)snprintf(diff->first, size, "%s", diff->a_numbers[i].key);
            return;
        }
    }
    if (a->time_limited != b->time_limited) {
        (void)snprintf(diff->first, size, "time_limited");
    } else if (diff->change_count > 0) {
        uint32_t least = ATP_NONE;
        for (uint32_t i = 0; i < diff->change_count; i++) {
            least = diff->changes[i].a < least ? diff->changes[i].a : least;
        }
        (void)snprintf(diff->first, size, "tensors[%" PRIu32 "].decision", least);
    } else if (diff->first_instruction != ATP_NONE) {
        (void)snprintf(diff->first, size, "program[%" PRIu32 "]", diff->first_instruction);
    }
}

void plan_diff_build(const struct atp_plan *a, const struct atp_plan *b, struct region *region,
                     struct plan_diff *out_diff)
{
    *out_diff = (struct plan_diff){
        .a = a,
        .b = b,
        .is_same_model = memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)) == 0,
        .first_instruction = first_instruction(a, b)};
    summary_numbers(a, out_diff->a_numbers);
    summary_numbers(b, out_diff->b_numbers);
    find_changes(out_diff, region);
    find_first(out_diff);
    out_diff->is_same = out_diff->first[0] == '\0';
}

static void format_number(const char *key, uint64_t value, struct words *out)
{
    if (strstr(key, "_bytes") != NULL) {
        *out = words_bytes(value);
    } else if (strstr(key, "_ns") != NULL) {
        *out = words_time((int64_t)value);
    } else {
        (void)snprintf(out->text, sizeof(out->text), "%" PRIu64, value);
    }
}

/* "budget" of "budget_bytes": the unit is with the value. */
static int label_length(const char *key)
{
    const char *unit = strstr(key, "_bytes");
    unit = unit != NULL ? unit : strstr(key, "_ns");
    return (int)(unit != NULL ? (size_t)(unit - key) : strlen(key));
}

static void print_number(const struct summary_number *a, const struct summary_number *b, FILE *out)
{
    struct words from, to, by;
    uint64_t change = a->value < b->value ? b->value - a->value : a->value - b->value;
    format_number(a->key, a->value, &from);
    format_number(b->key, b->value, &to);
    format_number(a->key, change, &by);
    (void)fprintf(out, "%-14.*s %14s %14s  ", label_length(a->key), a->key, from.text, to.text);
    if (change == 0) {
        (void)fputs("=\n", out);
    } else {
        double share = a->value > 0 ? (double)change / (double)a->value : 0;
        (void)fprintf(out, "%c%s", a->value < b->value ? '+' : '-', by.text);
        (void)fprintf(out, "%s%s%s\n", a->value > 0 ? " (" : "",
                      a->value > 0 ? words_percent(share).text : "", a->value > 0 ? ")" : "");
    }
}

static const char *decision_of(const struct atp_plan *plan, uint32_t tensor)
{
    return tensor == ATP_NONE ? "absent" : atp_decision_name(plan->decisions[tensor]);
}

static uint64_t bytes_of(const struct plan_diff *diff, const struct plan_change *change)
{
    return change->b != ATP_NONE ? diff->b->model.tensors[change->b].bytes
                                 : diff->a->model.tensors[change->a].bytes;
}

static void print_changes(const struct plan_diff *diff, FILE *out)
{
    const char *layer = NULL;
    (void)fprintf(out, "\ndecided otherwise: %" PRIu32 " of %" PRIu32 " tensors\n",
                  diff->change_count, diff->a->model.tensor_count);
    for (uint32_t i = 0; i < diff->change_count; i++) {
        const struct plan_change *change = &diff->changes[i];
        if (layer == NULL || strcmp(layer, change->layer) != 0) {
            layer = change->layer;
            (void)fprintf(out, "%s\n", layer[0] != '\0' ? layer : "-");
        }
        (void)fprintf(out, "  %-28s %11s  %s -> %s\n", change->name,
                      words_bytes(bytes_of(diff, change)).text, decision_of(diff->a, change->a),
                      decision_of(diff->b, change->b));
    }
}

static void print_instruction(const struct atp_plan *plan, uint32_t index, FILE *out)
{
    if (index >= plan->instruction_count) {
        (void)fputs("its end", out);
        return;
    }
    const struct atp_instruction *in = &plan->program[index];
    bool is_step = in->op == ATP_OP_RUN || in->op == ATP_OP_RERUN;
    (void)fprintf(out, "%s %s @%" PRIu64, atp_op_name(in->op),
                  is_step ? plan->model.steps[in->id].name : plan->model.tensors[in->id].name,
                  in->offset);
}

void plan_diff_print(const struct plan_diff *diff, FILE *out)
{
    if (diff->is_same) {
        (void)fputs("the plans are the same\n", out);
        return;
    }
    (void)fprintf(out, "first difference: %s\n\n%-14s %14s %14s  change\n", diff->first, "", "A",
                  "B");
    for (unsigned i = 0; i < SUMMARY_NUMBER_COUNT; i++) {
        print_number(&diff->a_numbers[i], &diff->b_numbers[i], out);
    }
    print_changes(diff, out);
    if (diff->first_instruction != ATP_NONE) {
        (void)fprintf(out,
                      "\nthe programs part at program[%" PRIu32 "]: ", diff->first_instruction);
        print_instruction(diff->a, diff->first_instruction, out);
        (void)fputs(" in A, ", out);
        print_instruction(diff->b, diff->first_instruction, out);
        (void)fputs(" in B\n", out);
    }
}

static void put_decision(const struct atp_plan *plan, uint32_t tensor, FILE *out)
{
    if (tensor == ATP_NONE) {
        (void)fputs("null", out);
    } else {
        json_text(out, decision_of(plan, tensor));
    }
}

void plan_diff_print_json(const struct plan_diff *diff, FILE *out)
{
    (void)fprintf(out, "{\"atp_diff\":1,\n\"same\":%s,\n\"same_model\":%s,\n\"first_difference\":",
                  diff->is_same ? "true" : "false", diff->is_same_model ? "true" : "false");
    if (diff->is_same) {
        (void)fputs("null", out);
    } else {
        json_text(out, diff->first);
    }
    (void)fputs(",\n\"first_instruction\":", out);
    if (diff->first_instruction == ATP_NONE) {
        (void)fputs("null", out);
    } else {
        (void)fprintf(out, "%" PRIu32, diff->first_instruction);
    }
    (void)fputs(",\n\"numbers\":{", out);
    for (unsigned i = 0; i < SUMMARY_NUMBER_COUNT; i++) {
        (void)fprintf(out, "%s\n\"%s\":{\"a\":%" PRIu64 ",\"b\":%" PRIu64 "}", i > 0 ? "," : "",
                      diff->a_numbers[i].key, diff->a_numbers[i].value, diff->b_numbers[i].value);
    }
    (void)fputs("},\n\"decisions\":[", out);
    for (uint32_t i = 0; i < diff->change_count; i++) {
        const struct plan_change *change = &diff->changes[i];
        (void)fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", out);
        json_text(out, change->name);
        (void)fputs(",\"layer\":", out);
        json_text(out, change->layer);
        (void)fprintf(out, ",\"bytes\":%" PRIu64 ",\"a\":", bytes_of(diff, change));
        put_decision(diff->a, change->a, out);
        (void)fputs(",\"b\":", out);
        put_decision(diff->b, change->b, out);
        (void)fputc('}', out);
    }
    (void)fputs("]}\n", out);
}
