/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link_probe.h"
#include "modeline.h"
#include "record.h"
#include "scene.h"

#define SLOW_NS INT64_C(3000001)

static const struct atp_profile_facts facts = {.device_name = "a \"host\"",
                                               .device_memory_bytes = 1000000,
                                               .resident_bytes = 77,
                                               .pinned_bytes = 5000,
                                               .copy_probe_bytes = 1 << 16,
                                               .note = "recorded by a test\non two lines"};

/* A path of its own for each test process, in the build folder. */
static void make_path(char *path, size_t size)
{
    (void)snprintf(path, size, "test_record.%ld.yaml", (long)getpid());
    (void)remove(path);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "no file %s", path);
    char *text = (char *)calloc(1, 65536);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_lt(fread(text, 1, 65535, file), 65535);
    (void)fclose(file);
    return text;
}

/* Toy work on the spy's clock: RICH_F2 takes SLOW_NS, the others a microsecond, and in the first
 * iteration all take twice SLOW_NS. The context is the scene. */
static enum atp_status slow_work(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct scene *s = (struct scene *)ctx;
    if (!call->is_rerun && call->step != ATP_NONE) {
        s->spy.clock_ns += call->iteration == 0    ? 2 * SLOW_NS
                           : call->step == RICH_F2 ? SLOW_NS
                                                   : 1000;
    }
    return toy_work(&s->toy, call, err);
}

static void record_scene(struct scene *s, bool with_plan, int iterations)
{
    scene_init(s, ATP_HOST_LATE);
    s->options.record = true;
    s->options.step = slow_work;
    s->options.step_ctx = s;
    s->spy.has_clock = true;
    assert_ok(scene_open(s, with_plan), s->err);
    for (int i = 0; i < iterations; i++) {
        assert_ok(atp_replay_run_iteration(s->replay, slow_work, &s->err), s->err);
    }
}

/* The time_us of the line that contains `step`, in nanoseconds. */
static long time_of(const char *text, const char *step)
{
    const char *line = strstr(text, step);
    ck_assert_msg(line != NULL, "no %s in\n%s", step, text);
    line = strstr(line, "time_us: ");
    ck_assert_ptr_nonnull(line);
    char *point;
    long us = strtol(line + strlen("time_us: "), &point, 10);
    ck_assert_int_eq(*point, '.');
    long fraction = strtol(point + 1, NULL, 10); /* always three digits */
    return us * 1000 + fraction;
}

START_TEST(writes_a_profile_with_the_median_time_of_every_step)
{
    struct scene s;
    char path[64];
    make_path(path, sizeof(path));
    record_scene(&s, _i == 1, 4);
    assert_ok(atp_replay_write_profile(s.replay, path, &facts, &s.err), s.err);
    char *text = read_whole(path);
    ck_assert_int_eq(time_of(text, "name: \"l2\", phase: forward"), SLOW_NS);
    /* The first iteration, slow everywhere, does not count. */
    ck_assert_int_eq(time_of(text, "name: \"l0\", phase: forward"), 1000);
    ck_assert_int_eq(time_of(text, "name: \"adam\", phase: update"), 1000);
    free(text);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

START_TEST(counts_the_first_iteration_when_there_is_no_other)
{
    struct scene s;
    char path[64];
    make_path(path, sizeof(path));
    record_scene(&s, false, 1);
    assert_ok(atp_replay_write_profile(s.replay, path, &facts, &s.err), s.err);
    char *text = read_whole(path);
    ck_assert_int_eq(time_of(text, "name: \"adam\", phase: update"), 2 * SLOW_NS);
    free(text);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

START_TEST(writes_every_part_of_the_format)
{
    static const char *const parts[] = {
        "# recorded by a test\n# on two lines\natp_profile: 1\nmodel: \"rich\"\n",
        "device:\n  name: \"a \\\"host\\\"\"\n  memory_bytes: 1000000\n",
        "\n  d2h_bytes_per_second: 1000000000\n  h2d_bytes_per_second: 1000000000\n",
        /* On the spy's clock no two copies run at once; the rate is a copy's own. */
        "\n  d2h_duplex_bytes_per_second: 1000000000\n  h2d_duplex_bytes_per_second: 1000000000\n",
        "\n  copy_latency_us: 5.000\nhost: {pinned_bytes: 5000}\nbatch_size: ",
        "\nresident_bytes: 77\ntensors:\n  - {name: \"x\", bytes: 64}\n",
        "  - {name: \"m\", bytes: 32}\n",
        "\nsteps:\n  - {name: \"l0\", phase: forward, time_us: ",
        ", reads: [\"x\"], writes: [\"a\", \"acc\"]}\n",
        ", reads: [\"a\"], writes: [\"b\", \"m\"], workspace_bytes: 32}\n",
        ", reads: [\"c\"], writes: [\"d\"], rerun: never}\n",
        ", reads: [\"w\"], writes: []}\n",
    };
    struct scene s;
    char path[64];
    make_path(path, sizeof(path));
    record_scene(&s, false, 2);
    assert_ok(atp_replay_write_profile(s.replay, path, &facts, &s.err), s.err);
    char *text = read_whole(path);
    const char *at = text;
    /* Editors look for it in the first line. */
    ck_assert_int_eq(strncmp(text, atp_profile_modeline, strlen(atp_profile_modeline)), 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *found = strstr(at, parts[i]);
        ck_assert_msg(found != NULL, "no \"%s\" in \"%s\"", parts[i], at);
        at = found + 1;
    }
    free(text);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

START_TEST(escapes_names_that_would_break_the_file)
{
    struct scene s;
    char path[64];
    make_path(path, sizeof(path));
    scene_init(&s, ATP_HOST_EAGER);
    s.options.record = true;
    const char *name = s.builder->tensors[RICH_C].name;
    s.builder->tensors[RICH_C].name = "a\"b\\c\n: {#\x7F";
    assert_ok(scene_open(&s, false), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    assert_ok(atp_replay_write_profile(s.replay, path, &facts, &s.err), s.err);
    s.builder->tensors[RICH_C].name = name;
    char *text = read_whole(path);
    ck_assert_ptr_nonnull(strstr(text, "name: \"a\\\"b\\\\c\\x0A: {#\\x7F\", bytes: 64"));
    free(text);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_without_a_recording)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    s.options.record = _i > 0;
    assert_ok(scene_open(&s, true), s.err);
    enum atp_status status = atp_replay_write_profile(s.replay, "never", &facts, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE,
                 _i > 0 ? "no iteration is complete" : "options.record");
    if (_i > 0) {
        assert_ok(atp_replay_begin_iteration(s.replay, &s.err), s.err);
        status = atp_replay_write_profile(s.replay, "never", &facts, &s.err);
        assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "under way");
    }
    ck_assert_int_ne(access("never", F_OK), 0);
    scene_finish(&s);
}
END_TEST

START_TEST(refuses_to_write_what_no_reader_would_take)
{
    struct scene s;
    struct atp_profile_facts no_memory = facts;
    scene_init(&s, ATP_HOST_EAGER);
    s.options.record = true;
    no_memory.device_memory_bytes = 0;
    for (int i = 0; i < 2; i++) {
        static const char *const texts[] = {"facts.device_memory_bytes is 0", "batch_size is 0"};
        struct atp_model model = s.builder->plan.model;
        model.batch_size = i == 1 ? 0 : 1;
        assert_ok(atp_replay_open(NULL, &model, &s.spy.base, &s.options, &s.replay, &s.err), s.err);
        assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
        enum atp_status status =
            atp_replay_write_profile(s.replay, "never", i == 0 ? &no_memory : &facts, &s.err);
        assert_error(status, s.err, ATP_ERR_INVALID, ATP_NONE, texts[i]);
        ck_assert_int_ne(access("never", F_OK), 0);
        atp_replay_close(s.replay);
    }
    s.replay = NULL;
    scene_finish(&s);
}
END_TEST

START_TEST(does_not_count_an_iteration_that_was_lost)
{
    struct scene s;
    scene_init(&s, ATP_HOST_EAGER);
    s.options.record = true;
    s.toy.failing_step = RICH_UP;
    assert_ok(scene_open(&s, true), s.err);
    ck_assert_int_eq(atp_replay_run_iteration(s.replay, toy_work, &s.err), ATP_ERR_CALLBACK);
    enum atp_status status = atp_replay_write_profile(s.replay, "never", &facts, &s.err);
    assert_error(status, s.err, ATP_ERR_STATE, ATP_NONE, "no iteration is complete");
    scene_finish(&s);
}
END_TEST

START_TEST(leaves_no_file_when_it_cannot_be_written)
{
    struct scene s;
    record_scene(&s, false, 1);
    enum atp_status status =
        atp_replay_write_profile(s.replay, "no/such/folder.yaml", &facts, &s.err);
    assert_error(status, s.err, ATP_ERR_IO, ATP_NONE, "no/such/folder.yaml");
    status = atp_replay_write_profile(s.replay, ".", &facts, &s.err); /* rename fails */
    assert_error(status, s.err, ATP_ERR_IO, ATP_NONE, "cannot write it");
    char temporary[64];
    (void)snprintf(temporary, sizeof(temporary), "..%ld.tmp", (long)getpid());
    ck_assert_int_ne(access(temporary, F_OK), 0);
    scene_finish(&s);
}
END_TEST

START_TEST(releases_the_probe_when_any_of_its_calls_fails)
{
    char path[64];
    make_path(path, sizeof(path));
    struct scene s;
    scene_init(&s, ATP_HOST_LATE);
    s.options.record = true;
    assert_ok(scene_open(&s, true), s.err);
    assert_ok(atp_replay_run_iteration(s.replay, toy_work, &s.err), s.err);
    uint64_t before = s.spy.call_count;
    int64_t live_count = s.spy.live_count;
    enum atp_status status = ATP_ERR_DEVICE;
    for (uint64_t n = 1; status != ATP_OK; n++) {
        s.spy.failing = s.spy.call_count + n;
        status = atp_replay_write_profile(s.replay, path, &facts, &s.err);
        ck_assert_int_eq(s.spy.live_count, live_count);
        ck_assert_int_eq(access(path, F_OK) == 0, status == ATP_OK);
    }
    ck_assert_uint_gt(s.spy.call_count, before + 100);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

/* The times of a single step. The caller frees *out_memory. */
static void fill_record(struct record *record, void **out_memory, const int64_t *samples, int count)
{
    struct atp_step step = {.name = "s", .phase = ATP_PHASE_FORWARD};
    struct atp_model model = {.name = "m", .step_count = 1, .steps = &step};
    struct carve carve = {0};
    *record = (struct record){0};
    record_lay_out(record, &model, &carve);
    carve = (struct carve){.base = (unsigned char *)calloc(1, (size_t)carve.used_bytes)};
    ck_assert_ptr_nonnull(carve.base);
    record_lay_out(record, &model, &carve);
    memcpy(record->samples_ns, samples, (size_t)count * sizeof(*samples));
    record->iteration_count = (uint64_t)count + 1; /* and the warm-up */
    *out_memory = carve.base;
}

static int64_t median_ns(const struct record *record)
{
    struct record_times times;
    record_times(record, 0, &times);
    return times.median_ns;
}

START_TEST(takes_the_median_of_the_latest_iterations)
{
    struct record record;
    void *memory;
    int64_t samples[RECORD_SAMPLES];
    for (int64_t i = 0; i < RECORD_SAMPLES; i++) {
        samples[i] = (i * 37) % RECORD_SAMPLES; /* 0 to 62, shuffled */
    }
    fill_record(&record, &memory, samples, RECORD_SAMPLES);
    record.iteration_count = 1;
    ck_assert_int_eq(median_ns(&record), 0);
    record.iteration_count = 3; /* warm-up, 0 and 37 */
    ck_assert_int_eq(median_ns(&record), 18);
    record.iteration_count = 4; /* 0, 37, 11 */
    ck_assert_int_eq(median_ns(&record), 11);
    record.iteration_count = 1000;
    ck_assert_int_eq(median_ns(&record), 31);
    free(memory);
}
END_TEST

START_TEST(tells_steady_times_from_others)
{
    static const struct {
        int64_t samples[9];
        int64_t spread_ns;
        uint32_t outlier_count;
        bool is_unsteady;
    } cases[] = {
        {{50000, 50000, 50000, 50000, 50000, 50000, 50000, 50000, 50000}, 0, 0, false},
        {{50100, 50400, 50000, 50200, 50700, 50600, 50300, 50500, 50800}, 400, 0, false},
        {{50000, 50000, 50000, 53001, 50000, 50000, 50000, 50000, 46999}, 0, 2, true},
        {{50000, 50000, 50000, 53000, 50000, 50000, 50000, 50000, 47000}, 0, 0, false},
        {{50000, 56000, 50000, 56000, 50000, 56000, 50000, 56000, 50000}, 6000, 0, true},
        {{1000, 1900, 1000, 1900, 1000, 1900, 1000, 1900, 1000}, 900, 0, false}, /* too short */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record record;
        struct record_times times;
        void *memory;
        fill_record(&record, &memory, cases[i].samples, 9);
        record_times(&record, 0, &times);
        ck_assert_uint_eq(times.sample_count, 9);
        ck_assert_int_eq(times.spread_ns, cases[i].spread_ns);
        ck_assert_uint_eq(times.outlier_count, cases[i].outlier_count);
        ck_assert_int_eq(times.is_unsteady, cases[i].is_unsteady);
        free(memory);
    }
}
END_TEST

/* RICH_B3 takes long in every third iteration; RICH_UP never takes any time. */
static enum atp_status moody_work(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    struct scene *s = (struct scene *)ctx;
    if (call->step != ATP_NONE && call->step != RICH_UP) {
        s->spy.clock_ns += call->step == RICH_B3 && call->iteration % 3 == 0 ? 90000 : 10000;
    }
    return toy_work(&s->toy, call, err);
}

START_TEST(comments_on_times_that_are_doubtful)
{
    struct scene s;
    char path[64];
    make_path(path, sizeof(path));
    scene_init(&s, ATP_HOST_EAGER);
    s.options.record = true;
    s.options.step = moody_work;
    s.options.step_ctx = &s;
    s.spy.has_clock = true;
    assert_ok(scene_open(&s, false), s.err);
    for (int i = 0; i < 13; i++) {
        assert_ok(atp_replay_run_iteration(s.replay, moody_work, &s.err), s.err);
    }
    assert_ok(atp_replay_write_profile(s.replay, path, &facts, &s.err), s.err);
    char *text = read_whole(path);
    ck_assert_ptr_nonnull(strstr(text, "# Medians of 12 iterations; of 9 steps 1 are unsteady, 1 "
                                       "took no time.\nsteps:\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "writes: [\"g\"]} # spread 80.000 us, 0 of 12 are outliers\n"));
    ck_assert_ptr_nonnull(strstr(text, "writes: []} # took no time\n"));
    ck_assert_ptr_nonnull(strstr(text, "writes: [\"a\", \"acc\"]}\n"));
    free(text);
    (void)remove(path);
    scene_finish(&s);
}
END_TEST

START_TEST(finds_rate_and_latency_from_two_sizes)
{
    uint64_t rate;
    int64_t latency_ns;
    link_solve(1000, 5000 + 100, 16000, 5000 + 1600, &rate, &latency_ns); /* 10 GB/s, 5 us */
    ck_assert_uint_eq(rate, 10000000000);
    ck_assert_int_eq(latency_ns, 5000);
    link_solve(1000, 200, 16000, 1600, &rate, &latency_ns);
    ck_assert_uint_eq(rate, 10714285714);
    ck_assert_int_le(latency_ns, 107);
    link_solve(1000, 700, 16000, 700, &rate, &latency_ns); /* noise: one time for both */
    ck_assert_uint_eq(rate, 22857142857);
    ck_assert_int_eq(latency_ns, 0);
    link_solve(1000, 10, 16000, 16000, &rate, &latency_ns); /* faster than linear: no latency */
    ck_assert_uint_eq(rate, 1000000000);
    ck_assert_int_eq(latency_ns, 0);
    link_solve(4, 0, 4, 0, &rate, &latency_ns);
    ck_assert_uint_gt(rate, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tests = tcase_create("record");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, writes_a_profile_with_the_median_time_of_every_step, 0, 2);
    tcase_add_test(tests, counts_the_first_iteration_when_there_is_no_other);
    tcase_add_test(tests, writes_every_part_of_the_format);
    tcase_add_test(tests, escapes_names_that_would_break_the_file);
    tcase_add_loop_test(tests, refuses_without_a_recording, 0, 2);
    tcase_add_test(tests, refuses_to_write_what_no_reader_would_take);
    tcase_add_test(tests, does_not_count_an_iteration_that_was_lost);
    tcase_add_test(tests, leaves_no_file_when_it_cannot_be_written);
    tcase_add_test(tests, releases_the_probe_when_any_of_its_calls_fails);
    tcase_add_test(tests, takes_the_median_of_the_latest_iterations);
    tcase_add_test(tests, tells_steady_times_from_others);
    tcase_add_test(tests, comments_on_times_that_are_doubtful);
    tcase_add_test(tests, finds_rate_and_latency_from_two_sizes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
