/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "summary.h"

#include "json.h"
#include "layers.h"
#include "plan_gap.h"

#include <inttypes.h>

static uint64_t time_of(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

void summary_numbers(const struct atp_plan *plan,
                     struct summary_number out_numbers[SUMMARY_NUMBER_COUNT])
{
    const struct atp_predicted *p = &plan->predicted;
    const struct summary_number numbers[SUMMARY_NUMBER_COUNT] = {
        {"batch_size", plan->model.batch_size},     {"alignment_bytes", plan->alignment_bytes},
        {"budget_bytes", plan->budget_bytes},       {"resident_bytes", plan->resident_bytes},
        {"arena_bytes", plan->arena_bytes},         {"host_arena_bytes", plan->host_arena_bytes},
        {"iteration_ns", time_of(p->iteration_ns)}, {"bound_ns", time_of(p->bound_ns)},
        {"compute_ns", time_of(p->compute_ns)},     {"recompute_ns", time_of(p->recompute_ns)},
        {"stall_ns", time_of(p->stall_ns)},         {"peak_bytes", p->peak_bytes},
        {"evicted_bytes", p->evicted_bytes},        {"restored_bytes", p->restored_bytes},
        {"recomputed_bytes", p->recomputed_bytes},  {"instructions", plan->instruction_count},
    };
    for (unsigned i = 0; i < SUMMARY_NUMBER_COUNT; i++) {
        out_numbers[i] = numbers[i];
    }
}

static void put_decisions(const uint32_t tensors[DECISION_COUNT],
                          const uint64_t bytes[DECISION_COUNT], FILE *out)
{
    for (unsigned d = 0; d < DECISION_COUNT; d++) {
        (void)fprintf(out, "%s\"%s\":{\"tensors\":%" PRIu32 ",\"bytes\":%" PRIu64 "}",
                      d > 0 ? "," : "", atp_decision_name((enum atp_decision)d), tensors[d],
                      bytes[d]);
    }
}

static void put_layers(const struct layers *layers, FILE *out)
{
    struct layer all = {0};
    for (uint32_t i = 0; i < layers->count; i++) {
        for (unsigned d = 0; d < DECISION_COUNT; d++) {
            all.tensors[d] += layers->items[i].tensors[d];
            all.bytes[d] += layers->items[i].bytes[d];
        }
    }
    (void)fputs(",\n\"decisions\":{", out);
    put_decisions(all.tensors, all.bytes, out);
    (void)fputs("},\n\"layers\":[", out);
    for (uint32_t i = 0; i < layers->count; i++) {
        (void)fputs(i > 0 ? ",\n{\"layer\":" : "\n{\"layer\":", out);
        json_text(out, layers->items[i].name);
        (void)fputc(',', out);
        put_decisions(layers->items[i].tensors, layers->items[i].bytes, out);
        (void)fputc('}', out);
    }
    (void)fputc(']', out);
}

static void put_tensors(const struct atp_plan *plan, const struct layers *layers, FILE *out)
{
    (void)fputs(",\n\"tensors\":[", out);
    for (uint32_t t = 0; t < plan->model.tensor_count; t++) {
        (void)fputs(t > 0 ? ",\n{\"name\":" : "\n{\"name\":", out);
        json_text(out, plan->model.tensors[t].name);
        (void)fputs(",\"layer\":", out);
        json_text(out, layers->items[layers->of_tensor[t]].name);
        (void)fprintf(out, ",\"bytes\":%" PRIu64 ",\"decision\":\"%s\"}",
                      plan->model.tensors[t].bytes, atp_decision_name(plan->decisions[t]));
    }
    (void)fputc(']', out);
}

void summary_print_json(const struct atp_plan *plan, struct region *region, FILE *out)
{
    struct summary_number numbers[SUMMARY_NUMBER_COUNT];
    struct layers layers;
    uint64_t gap = plan_gap_millionths((int64_t)time_of(plan->predicted.iteration_ns),
                                       (int64_t)time_of(plan->predicted.bound_ns));
    summary_numbers(plan, numbers);
    layers_build(plan, region, &layers);
    (void)fputs("{\"atp_show\":1,\n\"model\":", out);
    json_text(out, plan->model.name);
    (void)fputs(",\n\"fingerprint\":\"sha256:", out);
    for (size_t i = 0; i < sizeof(plan->fingerprint); i++) {
        (void)fprintf(out, "%02x", plan->fingerprint[i]);
    }
    (void)fprintf(out, "\",\n\"time_limited\":%s,\n\"gap\":%" PRIu64 ".%06" PRIu64,
                  plan->time_limited ? "true" : "false", gap / 1000000, gap % 1000000);
    for (unsigned i = 0; i < SUMMARY_NUMBER_COUNT; i++) {
        (void)fprintf(out, ",\n\"%s\":%" PRIu64, numbers[i].key, numbers[i].value);
    }
    put_layers(&layers, out);
    put_tensors(plan, &layers, out);
    (void)fputs("}\n", out);
}
