/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"
#include "problem.h"

#define DEVICE                                                                                     \
    "device: {name: G, memory_bytes: 16e9, d2h_bytes_per_second: 12e9, "                           \
    "h2d_bytes_per_second: 11e9}\n"
#define HEAD "atp_profile: 1\nmodel: m\n" DEVICE
/* Five lines up to here, then the rest. */
#define ONE HEAD "batch_size: 4\nresident_bytes: 1000\n"

static struct region *region;
static const struct profile_file *file;

static void setup(void)
{
    region = region_create();
}

static void teardown(void)
{
    region_destroy(region);
}

static void parse(const char *text)
{
    struct atp_error err = {0};
    enum atp_status status = profile_parse(text, strlen(text), region, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s\n%s", err.line, err.column, err.text, text);
}

static struct profile at(uint64_t batch)
{
    struct atp_error err = {0};
    struct profile profile;
    enum atp_status status = profile_at_batch(file, batch, region, &profile, &err);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    return profile;
}

START_TEST(reads_what_the_file_says)
{
    parse("# a comment\n"
          "atp_profile: 1\n"
          "origin: measured by hand\n"
          "model: \"two: layers\"\n"
          "device: {name: G 1, memory_bytes: 16e9, d2h_bytes_per_second: 12.5e9,\n"
          "         h2d_bytes_per_second: 11e9, copy_latency_us: 10.5}\n"
          "host: {pinned_bytes: 64e9}\n"
          "batch_size: 4\n"
          "resident_bytes: 1000\n"
          "tensors:\n"
          "  - {name: x, bytes: 64, decide: keep}\n"
          "  - {name: y, bytes: 128, decide: recompute}\n"
          "  - {name: z, bytes: 0, decide: swap}\n"
          "steps:\n"
          "  - {name: f, phase: forward, time_us: 35.12, reads: [x], writes: [y], "
          "workspace_bytes: 7}\n"
          "  - {name: f2, phase: forward, time_us: 1, reads: [y], writes: [z], rerun: never}\n"
          "  - {name: f, phase: backward, time_us: 0, reads: [y, z, x], writes: []}\n"
          "  - {name: up, phase: update, time_us: 900.0, reads: [], writes: [], rerun: allowed}\n");
    uint32_t count;
    ck_assert_uint_eq(profile_batch_sizes(file, &count)[0], 4);
    ck_assert_uint_eq(count, 1);
    struct profile p = at(0);
    ck_assert_str_eq(p.model.name, "two: layers");
    ck_assert_str_eq(p.origin, "measured by hand");
    ck_assert_str_eq(p.device_name, "G 1");
    ck_assert_uint_eq(p.model.batch_size, 4);
    ck_assert_uint_eq(p.device_memory_bytes, 16000000000);
    ck_assert_uint_eq(p.pinned_bytes, 64000000000);
    ck_assert_uint_eq(p.resident_bytes, 1000);
    ck_assert_uint_eq(p.clock.d2h_bytes_per_second, 12500000000);
    ck_assert_uint_eq(p.clock.h2d_bytes_per_second, 11000000000);
    ck_assert_int_eq(p.clock.copy_latency_ns, 10500);
    ck_assert(!p.scaled);
    ck_assert_uint_eq(p.zero_time_count, 1);
    ck_assert_uint_eq(p.model.tensor_count, 3);
    ck_assert_str_eq(p.model.tensors[1].name, "y");
    ck_assert_uint_eq(p.model.tensors[1].bytes, 128);
    ck_assert_int_eq(p.pins[0], PROFILE_PIN_KEEP);
    ck_assert_int_eq(p.pins[1], PROFILE_PIN_RECOMPUTE);
    ck_assert_int_eq(p.pins[2], PROFILE_PIN_SWAP);
    ck_assert_uint_eq(p.model.step_count, 4);
    const struct atp_step *steps = p.model.steps;
    ck_assert_str_eq(steps[0].name, "f");
    ck_assert_uint_eq(steps[0].workspace_bytes, 7);
    ck_assert_int_eq(p.clock.step_ns[0], 35120);
    ck_assert_int_eq(p.clock.step_ns[3], 900000);
    ck_assert(!steps[0].rerun_never && steps[1].rerun_never && !steps[3].rerun_never);
    ck_assert_int_eq(steps[2].phase, ATP_PHASE_BACKWARD);
    ck_assert_uint_eq(steps[2].read_count, 3);
    ck_assert_uint_eq(steps[2].reads[2], 0);
    ck_assert_uint_eq(steps[2].write_count, 0);
    ck_assert_int_eq(steps[3].phase, ATP_PHASE_UPDATE);
}
END_TEST

START_TEST(takes_duplex_rates_and_defaults)
{
    parse("atp_profile: 1\nmodel: m\nbatch_size: 1\nresident_bytes: 0\ntensors: []\n"
          "device: {name: G, memory_bytes: 1, d2h_bytes_per_second: 12e9, "
          "h2d_bytes_per_second: 11e9, d2h_duplex_bytes_per_second: 9e9, "
          "h2d_duplex_bytes_per_second: 8e9}\n"
          "steps: [{name: f, phase: update, time_us: 1, reads: [], writes: []}]\n");
    struct profile p = at(0);
    ck_assert_uint_eq(p.clock.d2h_bytes_per_second, 9000000000);
    ck_assert_uint_eq(p.clock.h2d_bytes_per_second, 8000000000);
    ck_assert_int_eq(p.clock.copy_latency_ns, 0);
    ck_assert_uint_eq(p.pinned_bytes, UINT64_MAX);
    ck_assert_ptr_null(p.origin);
}
END_TEST

#define SCALED                                                                                     \
    "tensors: [{name: x, bytes: 10}]\n"                                                            \
    "steps:\n"                                                                                     \
    "  - {name: f, phase: forward, time_us: 0.010, reads: [x], writes: [], workspace_bytes: 3}\n"  \
    "  - {name: f, phase: backward, time_us: 0.007, reads: [x], writes: []}\n"                     \
    "  - {name: up, phase: update, time_us: 5, reads: [], writes: []}\n"

START_TEST(scales_a_single_batch_size_in_proportion)
{
    parse(ONE SCALED);
    struct profile p = at(6);
    ck_assert(p.scaled);
    ck_assert_uint_eq(p.model.batch_size, 6);
    ck_assert_uint_eq(p.resident_bytes, 1000);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 15);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 5); /* 4.5 rounded up */
    ck_assert_int_eq(p.clock.step_ns[0], 15);
    ck_assert_int_eq(p.clock.step_ns[1], 11); /* 10.5 to nearest */
    ck_assert_int_eq(p.clock.step_ns[2], 5000);
    p = at(7);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 6); /* 5.25 rounded up */
    ck_assert_int_eq(p.clock.step_ns[1], 12);               /* 12.25 to nearest */
    p = at(1);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 3);
    ck_assert_int_eq(p.clock.step_ns[0], 3);
    ck_assert(!at(4).scaled);
}
END_TEST

#define SERIES                                                                                     \
    HEAD "batch_sizes: [4, 8, 16]\nresident_bytes: [10, 20, 30]\n"                                 \
         "tensors: [{name: x, bytes: [40, 80, 100]}, {name: c, bytes: 7}]\n"                       \
         "steps:\n"                                                                                \
         "  - {name: f, phase: forward, time_us: [0.004, 0.008, 0.006], reads: [x, c], "           \
         "writes: [], workspace_bytes: [9, 5, 0]}\n"

START_TEST(interpolates_between_measured_batch_sizes)
{
    parse(SERIES);
    uint32_t count;
    (void)profile_batch_sizes(file, &count);
    ck_assert_uint_eq(count, 3);
    struct profile p = at(0);
    ck_assert_uint_eq(p.model.batch_size, 16);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 100);
    p = at(8);
    ck_assert(!p.scaled);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 80);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 5);
    p = at(6);
    ck_assert(p.scaled);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 60);
    ck_assert_uint_eq(p.model.tensors[1].bytes, 7);
    ck_assert_uint_eq(p.resident_bytes, 15);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 7);
    ck_assert_int_eq(p.clock.step_ns[0], 6);
    p = at(11);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 88);        /* 87.5 rounded up */
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 4); /* 3.1 rounded up */
    ck_assert_int_eq(p.clock.step_ns[0], 7);                /* 7.25 */
}
END_TEST

START_TEST(extends_the_last_slope_and_stops_at_zero)
{
    parse(SERIES);
    struct profile p = at(32);
    ck_assert(p.scaled);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 140);
    ck_assert_uint_eq(p.resident_bytes, 50);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 0);
    ck_assert_int_eq(p.clock.step_ns[0], 2);
    ck_assert_int_eq(at(400).clock.step_ns[0], 0);
    p = at(2);
    ck_assert_uint_eq(p.model.tensors[0].bytes, 20);
    ck_assert_uint_eq(p.model.steps[0].workspace_bytes, 11);
    ck_assert_int_eq(p.clock.step_ns[0], 2);
}
END_TEST

START_TEST(refuses_batch_sizes_at_which_sizes_leave_their_range)
{
    struct atp_error err = {0};
    struct profile p;
    parse(HEAD "batch_sizes: [4, 8]\nresident_bytes: 0\ntensors: [{name: x, bytes: [80, 40]}]\n"
               "steps: [{name: f, phase: forward, time_us: 1, reads: [x], writes: []}]\n");
    ck_assert_uint_eq(at(12).model.tensors[0].bytes, 0);
    ck_assert_int_eq(profile_at_batch(file, 13, region, &p, &err), ATP_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "at batch size 13 the size of tensor \"x\""));
    parse(HEAD "batch_size: 1\nresident_bytes: 0\ntensors: [{name: x, bytes: 4e18}]\n"
               "steps: [{name: f, phase: forward, time_us: 1e12, reads: [x], writes: []}]\n");
    ck_assert_int_eq(profile_at_batch(file, 2, region, &p, &err), ATP_ERR_INVALID);
    ck_assert_int_eq(profile_at_batch(file, 2000000000, region, &p, &err), ATP_ERR_INVALID);
    ck_assert_int_eq(profile_at_batch(file, UINT64_MAX, region, &p, &err), ATP_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "is too large"));
    parse(HEAD "batch_size: 1\nresident_bytes: 0\ntensors: []\n"
               "steps: [{name: f, phase: forward, time_us: 1e12, reads: [], writes: []}]\n");
    ck_assert_int_eq(at(4000).clock.step_ns[0], INT64_C(4000000000000000000));
    ck_assert_int_eq(profile_at_batch(file, 5000, region, &p, &err), ATP_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "the times up to step \"f\""));
}
END_TEST

#define T          "tensors: [{name: x, bytes: 1}, {name: y, bytes: 1}]\n"
#define STEP(rest) "steps: [{name: f, phase: forward, time_us: 1, " rest "}]\n"
#define GOOD_STEPS STEP("reads: [x], writes: [y]")

static const struct bad_text REFUSED[] = {
    {"", ATP_ERR_SYNTAX, 1, 1, "top level: the document is empty"},
    {"[1]", ATP_ERR_SYNTAX, 1, 1, "the key \"atp_profile\" is missing"},
    {"atp_plan: 1\n", ATP_ERR_SYNTAX, 1, 1, "the key \"atp_profile\" is missing"},
    {"atp_profile: 2\nnew: 1\n", ATP_ERR_VERSION, 1, 14, "atp_profile: this is version 2"},
    {"atp_profile: one\n", ATP_ERR_SYNTAX, 1, 14, "atp_profile: \"one\" is not a number"},
    {ONE T GOOD_STEPS "colour: 1\n", ATP_ERR_SYNTAX, 8, 1, "colour: unknown key"},
    {ONE T GOOD_STEPS "model: n\n", ATP_ERR_SYNTAX, 8, 1, "model: the key appears twice"},
    {ONE GOOD_STEPS, ATP_ERR_SYNTAX, 1, 1, "top level: the key \"tensors\" is missing"},
    {ONE T, ATP_ERR_SYNTAX, 1, 1, "top level: the key \"steps\" is missing"},
    {ONE T "steps: []\n", ATP_ERR_INVALID, 1, 1, "step"},
    {HEAD "resident_bytes: 0\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 1, 1,
     "the key \"batch_size\" (or \"batch_sizes\") is missing"},
    {ONE "batch_sizes: [4]\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 6, 14, "expected one of them"},
    {HEAD "batch_size: 0\nresident_bytes: 0\n" T GOOD_STEPS, ATP_ERR_INVALID, 4, 13,
     "batch_size: 0 is too small"},
    {HEAD "batch_sizes: []\nresident_bytes: 0\n" T GOOD_STEPS, ATP_ERR_INVALID, 4, 14,
     "batch_sizes: the list has 0 entries"},
    {HEAD "batch_sizes: [8, 8]\nresident_bytes: 0\n" T GOOD_STEPS, ATP_ERR_INVALID, 4, 18,
     "batch_sizes[1]: 8 comes after 8, expected ascending"},
    {HEAD "batch_sizes: [8, 16]\nresident_bytes: [1]\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 5, 17,
     "resident_bytes: the list has 1 entries, expected one per batch size, which makes 2"},
    {HEAD "batch_size: 8\nresident_bytes: [1, 2]\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 5, 17,
     "resident_bytes: the list has 2 entries"},
    {HEAD "batch_size: 8\nresident_bytes: -5\n" T GOOD_STEPS, ATP_ERR_INVALID, 5, 17,
     "resident_bytes: -5 is negative"},
    {HEAD "batch_size: 8\nresident_bytes: 5e18\n" T GOOD_STEPS, ATP_ERR_INVALID, 5, 17,
     "resident_bytes: 5e18 is too large"},
    {"atp_profile: 1\nmodel: m\ndevice: {name: G, memory_bytes: 1, d2h_bytes_per_second: 0, "
     "h2d_bytes_per_second: 1}\nbatch_size: 1\nresident_bytes: 0\n" T GOOD_STEPS,
     ATP_ERR_INVALID, 3, 58, "device.d2h_bytes_per_second: 0 is too small"},
    {"atp_profile: 1\nmodel: m\ndevice: {name: G, memory_bytes: 1, d2h_bytes_per_second: -1, "
     "h2d_bytes_per_second: 1}\nbatch_size: 1\nresident_bytes: 0\n" T GOOD_STEPS,
     ATP_ERR_INVALID, 3, 58, "device.d2h_bytes_per_second: -1 is negative"},
    {"atp_profile: 1\nmodel: m\ndevice: {name: G, memory_bytes: 1, d2h_bytes_per_second: 1}\n"
     "batch_size: 1\nresident_bytes: 0\n" T GOOD_STEPS,
     ATP_ERR_SYNTAX, 3, 9, "device: the key \"h2d_bytes_per_second\" is missing"},
    {ONE "host: {}\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 6, 7, "host: the key \"pinned_bytes\""},
    {ONE "host: {pinned: 1}\n" T GOOD_STEPS, ATP_ERR_SYNTAX, 6, 8, "host.pinned: unknown key"},
    {ONE "tensors: [{name: x, bytes: 1.5}]\n" GOOD_STEPS, ATP_ERR_INVALID, 6, 28,
     "tensors[0].bytes: 1.5 has too many decimals, expected a whole number of bytes"},
    {ONE "tensors: [{name: '', bytes: 1}]\n" GOOD_STEPS, ATP_ERR_INVALID, 6, 18,
     "tensors[0].name: the name is empty"},
    {ONE "tensors: [{name: x, bytes: 1, decide: drop}]\n" GOOD_STEPS, ATP_ERR_SYNTAX, 6, 39,
     "tensors[0].decide: \"drop\" is unknown, expected keep, swap or recompute"},
    {ONE "tensors: [{name: x, bytes: 1, alignment: 8}]\n" GOOD_STEPS, ATP_ERR_SYNTAX, 6, 31,
     "tensors[0].alignment: unknown key"},
    {ONE "tensors: [{name: x, bytes: 1},\n  {name: x, bytes: 2}]\n" STEP("reads: [x], writes: []"),
     ATP_ERR_INVALID, 7, 10, "tensors[1]: the name \"x\""},
    {ONE "tensors: [{name: x, bytes: 4e18}, {name: y, bytes: 4e18}]\n" GOOD_STEPS, ATP_ERR_INVALID,
     6, 42, "tensors[1]: with its"},
    {ONE T "steps: [{name: f, phase: sideways, time_us: 1, reads: [], writes: []}]\n",
     ATP_ERR_SYNTAX, 7, 26, "steps[0].phase: \"sideways\" is unknown, expected forward"},
    {ONE T "steps: [{name: f, phase: forward, time_us: -1, reads: [], writes: []}]\n",
     ATP_ERR_INVALID, 7, 44, "steps[0].time_us: -1 is negative, expected microseconds"},
    {ONE T "steps: [{name: f, phase: forward, time_us: .nan, reads: [], writes: []}]\n",
     ATP_ERR_SYNTAX, 7, 44, "steps[0].time_us: \".nan\" is not a number"},
    {ONE T "steps: [{name: f, phase: forward, time_us: 2e12, reads: [], writes: []}]\n",
     ATP_ERR_INVALID, 7, 44, "steps[0].time_us: 2e12 is too large"},
    {ONE T STEP("reads: [x, t9], writes: []"), ATP_ERR_INVALID, 7, 58,
     "steps[0].reads[1]: no tensor is named \"t9\""},
    {ONE T STEP("reads: x, writes: []"), ATP_ERR_SYNTAX, 7, 54,
     "steps[0].reads: this is a single value, expected a list"},
    {ONE T STEP("reads: []"), ATP_ERR_SYNTAX, 7, 9, "steps[0]: the key \"writes\" is missing"},
    {ONE T STEP("reads: [], write: []"), ATP_ERR_SYNTAX, 7, 58,
     "steps[0].write: unknown key, did you mean \"writes\"?"},
    {ONE T STEP("reads: [], writes: [], rerun: maybe"), ATP_ERR_SYNTAX, 7, 77,
     "steps[0].rerun: \"maybe\" is unknown, expected allowed or never"},
    {ONE T STEP("reads: [], writes: [], workspace_bytes: [1, 2]"), ATP_ERR_SYNTAX, 7, 87,
     "steps[0].workspace_bytes: the list has 2 entries"},
    {ONE T STEP("reads: [x, x], writes: []"), ATP_ERR_INVALID, 7, 58, "steps[0].reads[1]: \"x\""},
    {ONE T STEP("reads: [], writes: [x, y, x]"), ATP_ERR_INVALID, 7, 73, "steps[0].writes[2]:"},
    {ONE T "steps:\n  - {name: f, phase: forward, time_us: 1, reads: [x], writes: []}\n"
           "  - {name: g, phase: forward, time_us: 1, reads: [], writes: [x]}\n",
     ATP_ERR_INVALID, 8, 51, "steps[0].reads[0]: \"x\" is read before"},
    {ONE T "steps:\n  - {name: f, phase: update, time_us: 1, reads: [x], writes: []}\n"
           "  - {name: g, phase: forward, time_us: 1, reads: [], writes: []}\n",
     ATP_ERR_INVALID, 9, 5, "steps[1]: phase forward"},
    {ONE T "steps:\n  - {name: f, phase: forward, time_us: 1, reads: [x], writes: []}\n"
           "  - {name: f, phase: forward, time_us: 1, reads: [], writes: []}\n",
     ATP_ERR_INVALID, 9, 5, "steps[1]: "},
    {ONE "tensors: [{name: x, bytes: 1}, {name: y, bytes: 1, decide: recompute}]\n" STEP(
         "reads: [x], writes: [y], rerun: never"),
     ATP_ERR_INVALID, 6, 60, "tensors[1].decide: the tensor cannot be recomputed: step \"f\""},
    {ONE "tensors: [{name: x, bytes: 1, decide: recompute}, {name: y, bytes: 1}]\n" GOOD_STEPS,
     ATP_ERR_INVALID, 6, 39, "tensors[0].decide: the tensor cannot be recomputed: no forward"},
    {ONE T GOOD_STEPS "origin: []\n", ATP_ERR_SYNTAX, 8, 9, "origin: this is a list"},
};

START_TEST(refuses_with_line_column_and_path)
{
    const struct bad_text *bad = &REFUSED[_i];
    struct atp_error err = {0};
    enum atp_status status = profile_parse(bad->text, strlen(bad->text), region, &file, &err);
    ck_assert_ptr_null(file);
    expect_error(&err, status, bad);
    ck_assert_int_eq(profile_parse(bad->text, strlen(bad->text), region, &file, NULL), bad->status);
}
END_TEST

START_TEST(refuses_times_whose_sum_leaves_its_range)
{
    char *text = NULL;
    size_t size;
    struct atp_error err = {0};
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    (void)fputs(ONE "tensors: []\nsteps:\n", out);
    for (int i = 0; i < 5000; i++) {
        (void)fprintf(out,
                      "  - {name: s%d, phase: forward, time_us: 1e12, reads: [], writes: []}\n", i);
    }
    (void)fclose(out);
    ck_assert_int_eq(profile_parse(text, size, region, &file, &err), ATP_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "the times up to step"));
    free(text);
}
END_TEST

START_TEST(reads_5000_steps_quickly_and_builds_a_problem)
{
    char *text = NULL;
    size_t size;
    struct atp_error err = {0};
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    (void)fputs(ONE "tensors:\n", out);
    for (int i = 0; i <= 5000; i++) {
        (void)fprintf(out, "  - {name: t%d, bytes: 25165824}\n", i);
    }
    (void)fputs("steps:\n", out);
    for (int i = 0; i < 5000; i++) {
        (void)fprintf(out,
                      "  - {name: s%d, phase: forward, time_us: 35.12, reads: [t%d], writes: "
                      "[t%d], workspace_bytes: 0}\n",
                      i, i == 0 ? 5000 : i - 1, i);
    }
    (void)fclose(out);
    clock_t begin = clock();
    enum atp_status status = profile_parse(text, size, region, &file, &err);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    free(text);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    ck_assert_msg(seconds < 3.0, "%.3f s", seconds); /* 0.03 s without sanitizers */
    struct profile profile = at(0);
    struct problem problem;
    status = problem_build(&profile, UINT64_C(1) << 40, 256, region, &problem, &err);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    ck_assert_uint_eq(problem.access_count, 10001);
}
END_TEST

START_TEST(says_which_file_cannot_be_read)
{
    struct atp_error err = {0};
    ck_assert_int_eq(profile_read("/nonexistent.yaml", region, &file, &err), ATP_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent.yaml"));
}
END_TEST

START_TEST(another_device_takes_the_place_of_the_files_own)
{
    static const struct profile_device none = {0}, same = {.memory_bytes = 16000000000},
                                       other = {.d2h_bytes_per_second = 1,
                                                .h2d_bytes_per_second = 11000000000};
    bool differs = true;
    parse(ONE "tensors: []\nsteps:\n  - {name: f, phase: forward, time_us: 1, reads: [], writes: "
              "[]}\n");
    const struct profile_file *own = file;
    file = profile_with_device(own, &none, region, &differs);
    ck_assert(!differs);
    ck_assert_uint_eq(at(4).device_memory_bytes, 16000000000);
    file = profile_with_device(own, &same, region, &differs);
    ck_assert(!differs);
    file = profile_with_device(own, &other, region, &differs);
    ck_assert(differs);
    ck_assert_uint_eq(at(8).clock.d2h_bytes_per_second, 1);
    ck_assert_uint_eq(at(8).clock.h2d_bytes_per_second, 11000000000);
    file = own;
    ck_assert_uint_eq(at(4).clock.d2h_bytes_per_second, 12000000000);
}
END_TEST

START_TEST(counts_steps_whose_line_falls_to_zero_time)
{
    parse(HEAD "batch_sizes: [2, 4]\nresident_bytes: 0\ntensors: []\nsteps:\n"
               "  - {name: falls, phase: forward, time_us: [10, 30], reads: [], writes: []}\n"
               "  - {name: zero, phase: forward, time_us: [0, 1], reads: [], writes: []}\n");
    ck_assert_uint_eq(at(2).clamped_count, 0);
    ck_assert_uint_eq(at(2).zero_time_count, 1);
    ck_assert_uint_eq(at(1).clamped_count, 1);
    ck_assert_uint_eq(at(1).zero_time_count, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *cases = tcase_create("profile");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, reads_what_the_file_says);
    tcase_add_test(cases, takes_duplex_rates_and_defaults);
    tcase_add_test(cases, another_device_takes_the_place_of_the_files_own);
    tcase_add_test(cases, counts_steps_whose_line_falls_to_zero_time);
    tcase_add_test(cases, scales_a_single_batch_size_in_proportion);
    tcase_add_test(cases, interpolates_between_measured_batch_sizes);
    tcase_add_test(cases, extends_the_last_slope_and_stops_at_zero);
    tcase_add_test(cases, refuses_batch_sizes_at_which_sizes_leave_their_range);
    tcase_add_loop_test(cases, refuses_with_line_column_and_path, 0,
                        (int)(sizeof(REFUSED) / sizeof(REFUSED[0])));
    tcase_add_test(cases, refuses_times_whose_sum_leaves_its_range);
    tcase_add_test(cases, reads_5000_steps_quickly_and_builds_a_problem);
    tcase_add_test(cases, says_which_file_cannot_be_read);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
