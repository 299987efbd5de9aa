/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_tests.h"
#include "scene.h"

#define STEP_NS ((int64_t)700)

static char path[64];

/* Toy work on the spy's clock. The context is the scene. */
static enum atp_status timed_work(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    struct scene *s = (struct scene *)ctx;
    if (call->step != ATP_NONE) {
        s->spy.clock_ns += STEP_NS;
    }
    return toy_work(&s->toy, call, err);
}

static void trace_scene(struct scene *s, bool with_plan)
{
    (void)snprintf(path, sizeof(path), "/tmp/atp-trace-%ld.json", (long)getpid());
    scene_init(s, ATP_HOST_EAGER);
    s->options.report = true;
    s->options.step = timed_work;
    s->options.step_ctx = s;
    s->spy.has_clock = true;
    assert_ok(scene_open(s, with_plan), s->err);
    assert_ok(atp_replay_run_iteration(s->replay, timed_work, &s->err), s->err);
}

/* The file, which is removed. */
static char *take_file(void)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t bytes = fread(text, 1, sizeof(text) - 1, file);
    text[bytes] = '\0';
    (void)fclose(file);
    ck_assert_int_eq(remove(path), 0);
    return text;
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        found++;
    }
    return found;
}

/* Brackets match outside of strings, and every string ends: enough to tell a torn file from one. */
static void assert_balanced(const char *text)
{
    int depth = 0;
    bool in_text = false;
    for (const char *c = text; *c != '\0'; c++) {
        if (in_text && *c == '\\') {
            c++;
        } else if (*c == '"') {
            in_text = !in_text;
        } else if (!in_text) {
            ck_assert((unsigned char)*c >= 0x20 || *c == '\n');
            depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
            ck_assert_int_ge(depth, 0);
        }
    }
    ck_assert(!in_text && depth == 0);
}

START_TEST(draws_all_work_and_copies_beside_what_was_predicted)
{
    struct scene s;
    int64_t step_ns[9];
    for (int i = 0; i < 9; i++) {
        step_ns[i] = 1000;
    }
    /* A copy takes longer than a step: the prediction stalls. */
    struct atp_clock clock = {step_ns, 10000000, 10000000, 0};
    trace_scene(&s, true);
    assert_ok(atp_replay_write_trace(s.replay, path, &clock, &s.err), s.err);
    const struct atp_plan *plan = &s.builder->plan;
    uint32_t work_count = 0, copy_count = 0;
    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        enum atp_op op = plan->program[i].op;
        work_count += op == ATP_OP_RUN || op == ATP_OP_RERUN;
        copy_count += op == ATP_OP_EVICT || op == ATP_OP_RESTORE;
    }
    const char *text = take_file();
    assert_balanced(text);
    ck_assert_uint_eq(count(text, "\"cat\":\"copy\""), (uint64_t)2 * copy_count);
    ck_assert_uint_eq(count(text, "\"cat\":\"forward\"") + count(text, "\"cat\":\"backward\"") +
                          count(text, "\"cat\":\"update\"") + count(text, "\"cat\":\"rerun\""),
                      (uint64_t)2 * work_count);
    ck_assert_uint_eq(count(text, "\"dur\":0.700"), work_count);
    ck_assert_uint_eq(count(text, "\"name\":\"measured\""), 1);
    ck_assert_uint_eq(count(text, "\"name\":\"predicted\""), 1);
    /* The spy's clock stands still in waits; the simulator's does not. */
    ck_assert_uint_eq(count(text, "\"cat\":\"stall\",\"ph\":\"X\",\"pid\":1"), 0);
    ck_assert_uint_gt(count(text, "\"cat\":\"stall\",\"ph\":\"X\",\"pid\":2"), 0);
    scene_finish(&s);
}
END_TEST

START_TEST(leaves_the_prediction_out_without_a_clock_and_escapes_names)
{
    struct scene s;
    trace_scene(&s, false);
    s.builder->plan.model.steps = s.builder->steps;
    const char *name = s.builder->steps[0].name;
    s.builder->steps[0].name = "a \"b\"\\c\x01";
    assert_ok(atp_replay_write_trace(s.replay, path, NULL, &s.err), s.err);
    s.builder->steps[0].name = name;
    const char *text = take_file();
    assert_balanced(text);
    ck_assert_uint_eq(count(text, "\"name\":\"a \\\"b\\\"\\\\c\\u0001\""), 1);
    ck_assert_uint_eq(count(text, "predicted"), 0);
    ck_assert_uint_eq(count(text, "\"pid\":2"), 0);
    ck_assert_uint_eq(count(text, "\"ph\":\"X\""), s.toy.model->step_count);
    scene_finish(&s);
}
END_TEST

START_TEST(writes_no_file_where_there_is_nothing_to_write)
{
    struct scene s;
    trace_scene(&s, true);
    enum atp_status status = atp_replay_write_trace(s.replay, "/nowhere/at/all", NULL, &s.err);
    assert_error(status, s.err, ATP_ERR_IO, ATP_NONE, "/nowhere/at/all");
    struct atp_clock clock = {0};
    clock.copy_latency_ns = -1;
    ck_assert_int_eq(atp_replay_write_trace(s.replay, path, &clock, &s.err), ATP_ERR_INVALID);
    ck_assert_int_ne(access(path, F_OK), 0);
    s.spy.failing = s.spy.call_count + 60; /* while events are read for the file */
    ck_assert_int_eq(atp_replay_write_trace(s.replay, path, NULL, &s.err), ATP_ERR_DEVICE);
    ck_assert_int_ne(access(path, F_OK), 0);
    assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
    ck_assert_int_eq(atp_replay_write_trace(s.replay, path, NULL, &s.err), ATP_ERR_STATE);
    scene_finish(&s);
    scene_init(&s, ATP_HOST_EAGER);
    assert_ok(scene_open(&s, true), s.err);
    status = atp_replay_write_trace(s.replay, path, NULL, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "without options.report");
    scene_finish(&s);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        draws_all_work_and_copies_beside_what_was_predicted,
        leaves_the_prediction_out_without_a_clock_and_escapes_names,
        writes_no_file_where_there_is_nothing_to_write,
    };
    return RUN_TESTS("trace_write", tests, NULL, NULL);
}
