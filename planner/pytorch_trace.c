/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Jansson reads the JSON, in this file alone. It forgets where values stood, so that the place of
 * an event is found again when there is something to say about it.
 */
#include "pytorch_trace.h"

#include "fail.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond it doubles have no nanoseconds any more. */
#define TIME_MAX_US 9e12
#define DIMS_MAX    64U

/* Line and column, in characters, of element `index` of the list `traceEvents`. */
static void find_event(const struct pytorch_trace *trace, uint32_t index, uint32_t *out_line,
                       uint32_t *out_column)
{
    static const char key[] = "\"traceEvents\"";
    uint32_t line = 1, column = 0, depth = 0, count = 0;
    bool in_text = false, is_escaped = false, is_list = false, is_between = true;
    *out_line = *out_column = 1;
    for (size_t i = 0; i < trace->size; i++) {
        char c = trace->text[i];
        if (c == '\n') {
            line++;
            column = 0;
            continue;
        }
        column += ((unsigned char)c & 0xC0U) != 0x80U;
        if (in_text) {
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        if (depth == 1 && c == '"') {
            is_list =
                trace->size - i >= sizeof(key) && strncmp(trace->text + i, key, strlen(key)) == 0;
        }
        if (is_list && depth == 2 && is_between && strchr(" \t\r,]", c) == NULL) {
            is_between = false;
            if (count++ == index) {
                *out_line = line;
                *out_column = column;
                return;
            }
        }
        in_text = c == '"';
        depth += c == '{' || c == '[';
        depth -= (c == '}' || c == ']') && depth > 0;
        is_between = is_between || (depth == 2 && c == ',');
    }
}

enum atp_status pytorch_trace_fail(const struct pytorch_trace *trace, uint32_t index,
                                   struct atp_error *err, const char *format, ...)
{
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)atp_fail(err, ATP_ERR_SYNTAX, "traceEvents[%u]: %s", index, text);
    if (err != NULL) {
        find_event(trace, index, &err->line, &err->column);
    }
    return ATP_ERR_SYNTAX;
}

/* 0: a type that it does not know. */
static uint64_t size_of_type(const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"float", 4},
                 {"double", 8},
                 {"long int", 8},
                 {"long", 8},
                 {"int", 4},
                 {"short int", 2},
                 {"short", 2},
                 {"signed char", 1},
                 {"unsigned char", 1},
                 {"bool", 1},
                 {"c10::Half", 2},
                 {"c10::BFloat16", 2},
                 {"c10::complex<float>", 8},
                 {"c10::complex<double>", 16},
                 {"c10::Float8_e4m3fn", 1},
                 {"c10::Float8_e5m2", 1}};
    for (size_t i = 0; type != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, type) == 0) {
            return types[i].bytes;
        }
    }
    return 0;
}

/* 0: too large for any device, or not a shape. */
static uint64_t size_of_shape(const json_t *shape, const char *type)
{
    uint64_t bytes = size_of_type(type);
    size_t count = json_array_size(shape);
    for (size_t i = 0; i < count; i++) {
        const json_t *dim = json_array_get(shape, i);
        json_int_t value = json_is_integer(dim) ? json_integer_value(dim) : 0;
        if (value < 0 || count > DIMS_MAX ||
            __builtin_mul_overflow(bytes, (uint64_t)value, &bytes)) {
            return 0;
        }
    }
    return bytes;
}

static void read_inputs(const json_t *args, struct region *region, struct trace_op *op)
{
    const json_t *shapes = json_object_get(args, "Input Dims");
    const json_t *types = json_object_get(args, "Input type");
    size_t count = json_array_size(shapes);
    uint64_t *bytes = REGION_NEW(region, uint64_t, count);
    for (size_t i = 0; i < count; i++) {
        bytes[i] =
            size_of_shape(json_array_get(shapes, i), json_string_value(json_array_get(types, i)));
    }
    op->input_count = (uint32_t)count;
    op->input_bytes = bytes;
}

static int64_t integer_of(const json_t *map, const char *key)
{
    const json_t *value = json_object_get(map, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* A time in microseconds, as nanoseconds. */
static enum atp_status read_time(const struct pytorch_trace *trace, uint32_t index,
                                 const json_t *event, const char *key, int64_t *out_ns,
                                 struct atp_error *err)
{
    const json_t *value = json_object_get(event, key);
    double us = json_number_value(value);
    if (!json_is_number(value) || us < 0 || us > TIME_MAX_US) {
        return pytorch_trace_fail(trace, index, err, "%s is %s, expected microseconds", key,
                                  value == NULL ? "missing" : "no time");
    }
    *out_ns = (int64_t)(us * 1000 + 0.5);
    return ATP_OK;
}

static bool is_text(const json_t *map, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(map, key));
    return value != NULL && strcmp(value, text) == 0;
}

static enum atp_status read_op(struct pytorch_trace *trace, uint32_t index, const json_t *event,
                               struct region *region, struct atp_error *err)
{
    const json_t *args = json_object_get(event, "args");
    const char *name = json_string_value(json_object_get(event, "name"));
    struct trace_op *op = &trace->ops[trace->op_count];
    int64_t duration_ns = 0;
    if (name == NULL) {
        return pytorch_trace_fail(trace, index, err, "name is missing");
    }
    *op = (struct trace_op){.index = index,
                            .is_range = is_text(event, "cat", "user_annotation"),
                            .name = region_copy_text(region, name),
                            .thread = integer_of(event, "tid"),
                            .sequence = integer_of(args, "Sequence number"),
                            .id = integer_of(args, "External id")};
    ATP_TRY(read_time(trace, index, event, "ts", &op->start_ns, err));
    ATP_TRY(read_time(trace, index, event, "dur", &duration_ns, err));
    op->end_ns = op->start_ns + duration_ns;
    read_inputs(args, region, op);
    trace->has_shapes = trace->has_shapes || op->input_count > 0;
    trace->op_count++;
    return ATP_OK;
}

static enum atp_status read_memory(struct pytorch_trace *trace, uint32_t index, const json_t *event,
                                   struct atp_error *err)
{
    const json_t *args = json_object_get(event, "args");
    const json_t *bytes = json_object_get(args, "Bytes"), *address = json_object_get(args, "Addr");
    struct trace_memory *memory = &trace->memory[trace->memory_count];
    if (!json_is_integer(bytes) || !json_is_integer(address)) {
        return pytorch_trace_fail(trace, index, err, "args.%s is no whole number",
                                  json_is_integer(bytes) ? "Addr" : "Bytes");
    }
    *memory = (struct trace_memory){.index = index,
                                    .thread = integer_of(event, "tid"),
                                    .address = (uint64_t)json_integer_value(address),
                                    .bytes = (int64_t)json_integer_value(bytes),
                                    .device_type = integer_of(args, "Device Type"),
                                    .device_id = integer_of(args, "Device Id")};
    ATP_TRY(read_time(trace, index, event, "ts", &memory->ns, err));
    trace->memory_count++;
    return ATP_OK;
}

static enum atp_status read_event(struct pytorch_trace *trace, uint32_t index, const json_t *event,
                                  struct region *region, struct atp_error *err)
{
    if (!json_is_object(event)) {
        return pytorch_trace_fail(trace, index, err, "this is no map, expected an event");
    }
    if (is_text(event, "name", "[memory]")) {
        return read_memory(trace, index, event, err);
    }
    if (!is_text(event, "ph", "X")) {
        return ATP_OK;
    }
    if (is_text(event, "cat", "cpu_op") || is_text(event, "cat", "user_annotation")) {
        return read_op(trace, index, event, region, err);
    }
    if (is_text(event, "cat", "kernel") || is_text(event, "cat", "gpu_memcpy") ||
        is_text(event, "cat", "gpu_memset")) {
        struct trace_kernel *kernel = &trace->kernels[trace->kernel_count];
        kernel->id = integer_of(json_object_get(event, "args"), "External id");
        ATP_TRY(read_time(trace, index, event, "dur", &kernel->ns, err));
        trace->kernel_count++;
    }
    return ATP_OK;
}

static int compare_ops(const void *left, const void *right)
{
    const struct trace_op *a = left, *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    if (a->end_ns != b->end_ns) {
        return a->end_ns > b->end_ns ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

static int compare_memory(const void *left, const void *right)
{
    const struct trace_memory *a = left, *b = right;
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

static enum atp_status read_events(struct pytorch_trace *trace, const json_t *root,
                                   struct region *region, struct atp_error *err)
{
    const json_t *events = json_object_get(root, "traceEvents");
    const json_t *device = json_array_get(json_object_get(root, "deviceProperties"), 0);
    const char *name = json_string_value(json_object_get(device, "name"));
    size_t count = json_array_size(events);
    if (!json_is_array(events) || count >= UINT32_MAX) {
        (void)atp_fail(err, ATP_ERR_SYNTAX,
                       "there is no list traceEvents, expected a trace of torch.profiler, written "
                       "by export_chrome_trace");
        if (err != NULL) {
            err->line = err->column = 1;
        }
        return ATP_ERR_SYNTAX;
    }
    trace->device_name = name != NULL ? region_copy_text(region, name) : NULL;
    trace->ops = REGION_NEW(region, struct trace_op, count);
    trace->memory = REGION_NEW(region, struct trace_memory, count);
    trace->kernels = REGION_NEW(region, struct trace_kernel, count);
    for (size_t i = 0; i < count; i++) {
        ATP_TRY(read_event(trace, (uint32_t)i, json_array_get(events, i), region, err));
    }
    qsort(trace->ops, trace->op_count, sizeof(*trace->ops), compare_ops);
    qsort(trace->memory, trace->memory_count, sizeof(*trace->memory), compare_memory);
    return ATP_OK;
}

enum atp_status pytorch_trace_parse(const char *text, size_t size, struct region *region,
                                    struct pytorch_trace *out_trace, struct atp_error *err)
{
    json_error_t error;
    *out_trace = (struct pytorch_trace){.text = text, .size = size};
    json_t *root = json_loadb(text, size, 0, &error);
    if (root == NULL) {
        bool is_packed = size > 1 && memcmp(text, "\x1f\x8b", 2) == 0;
        (void)atp_fail(err, ATP_ERR_SYNTAX, "this is no JSON: %s",
                       is_packed ? "it is compressed, gunzip(1) unpacks it" : error.text);
        if (err != NULL) {
            err->line = error.line > 0 ? (uint32_t)error.line : 1;
            err->column = error.column > 0 ? (uint32_t)error.column : 1;
        }
        return ATP_ERR_SYNTAX;
    }
    enum atp_status status = read_events(out_trace, root, region, err);
    json_decref(root);
    return status;
}
