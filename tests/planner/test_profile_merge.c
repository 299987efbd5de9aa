/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "patience.h"
#include "plan_emit.h"
#include "problem.h"
#include "profile_emit.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"
#include "solve.h"

#define LINK   ", memory_bytes: 16e9, d2h_bytes_per_second: 12e9, h2d_bytes_per_second: 11e9"
#define DEVICE "device: {name: G" LINK "}\n"
#define TENSORS(size)                                                                              \
    "tensors:\n  - {name: x, bytes: " size "}\n  - {name: y, bytes: 8, decide: keep}\n"
#define F "  - {name: f, phase: forward, time_us: 10, reads: [x], writes: [y]}\n"
#define G "  - {name: g, phase: backward, time_us: 10, reads: [x, y], writes: []}\n"
#define U "  - {name: u, phase: update, time_us: 10, reads: [], writes: []}\n"
#define BATCH(number)                                                                              \
    "batch_size: " number "\nresident_bytes: 100" number "\n" TENSORS(number "000")
#define HEAD       "atp_profile: 1\nmodel: m\n"
#define AT(number) HEAD DEVICE BATCH(number) "steps:\n" F G U

static struct region *region;
static struct profile_merge_input inputs[65];
static const struct profile_file *merged;
static struct profile_merge_report report;
static uint32_t at;
static struct atp_error err;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static const struct profile_file *parse(const char *text)
{
    const struct profile_file *file = NULL;
    err = (struct atp_error){0};
    enum atp_status status = profile_parse(text, strlen(text), region, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s\n%s", err.line, err.column, err.text, text);
    return file;
}

static enum atp_status merge(const char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char path[16];
        (void)snprintf(path, sizeof(path), "%c.yaml", 'a' + (char)(i % 26));
        inputs[i].path = region_copy_text(region, path);
        inputs[i].file = parse(texts[i]);
    }
    return profile_merge(inputs, count, region, &merged, &report, &at, &err);
}

static struct profile merged_at(uint64_t batch)
{
    struct profile profile;
    enum atp_status status = profile_at_batch(merged, batch, region, &profile, &err);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    return profile;
}

START_TEST(puts_batch_sizes_in_order_whatever_the_order_of_the_inputs)
{
    static const char *const texts[] = {
        AT("4"), AT("1"),
        HEAD DEVICE "batch_sizes: [2, 8]\nresident_bytes: [1002, 1008]\n" TENSORS(
            "[2000, 8000]") "steps:\n"
                            "  - {name: f, phase: forward, time_us: [22, 88], reads: [x], writes: "
                            "[y], workspace_bytes: [1, 2]}\n" G U};
    static const uint64_t sizes[] = {1, 2, 4, 8};
    uint32_t count;
    ck_assert_int_eq(merge(texts, 3), ATP_OK);
    const uint64_t *merged_sizes = profile_batch_sizes(merged, &count);
    ck_assert_uint_eq(count, 4);
    for (uint32_t b = 0; b < count; b++) {
        ck_assert_uint_eq(merged_sizes[b], sizes[b]);
        struct profile profile = merged_at(sizes[b]);
        ck_assert(!profile.scaled);
        ck_assert_uint_eq(profile.resident_bytes, 1000 + sizes[b]);
        ck_assert_uint_eq(profile.model.tensors[0].bytes, 1000 * sizes[b]);
        ck_assert_int_eq(profile.pins[1], PROFILE_PIN_KEEP);
    }
    ck_assert_int_eq(merged_at(8).clock.step_ns[0], 88000);
    ck_assert_uint_eq(merged_at(2).model.steps[0].workspace_bytes, 1);
    ck_assert_uint_eq(merged_at(4).model.steps[0].workspace_bytes, 0);
    ck_assert_int_eq(merged_at(4).clock.step_ns[0], 10000);
    ck_assert(!report.links_differ && !report.pinned_differ);
    ck_assert_str_eq(merged_at(1).origin, "merged from 3 profiles");
}
END_TEST

START_TEST(says_once_where_the_numbers_come_from_when_all_say_the_same)
{
    static const char *const texts[] = {HEAD "origin: by hand\n" DEVICE BATCH("1") "steps:\n" F,
                                        HEAD "origin: by hand\n" DEVICE BATCH("2") "steps:\n" F};
    static const char *const other[] = {HEAD "origin: by hand\n" DEVICE BATCH("1") "steps:\n" F,
                                        HEAD "origin: by foot\n" DEVICE BATCH("2") "steps:\n" F};
    ck_assert_int_eq(merge(texts, 2), ATP_OK);
    ck_assert_str_eq(merged_at(1).origin, "merged from 2 profiles; each: by hand");
    ck_assert_int_eq(merge(other, 2), ATP_OK);
    ck_assert_str_eq(merged_at(1).origin,
                     "merged from 2 profiles; batch size 1: by hand; batch size 2: by foot");
}
END_TEST

/* What the device of the second recording says instead; the merged rates, latency and limit. */
START_TEST(takes_the_careful_value_of_the_links_and_tells)
{
    static const struct {
        const char *device;
        uint64_t d2h, h2d, pinned;
        int64_t latency_ns;
        bool links_differ, pinned_differ;
    } cases[] = {
        {DEVICE, 12000000000, 11000000000, UINT64_MAX, 0, false, false},
        {"device: {name: G, memory_bytes: 16e9, d2h_bytes_per_second: 11.5e9, "
         "h2d_bytes_per_second: 12e9}\n",
         11500000000, 11000000000, UINT64_MAX, 0, false, false},
        {"device: {name: G, memory_bytes: 16e9, d2h_bytes_per_second: 12e9, "
         "h2d_bytes_per_second: 9e9}\n",
         12000000000, 9000000000, UINT64_MAX, 0, true, false},
        {"device: {name: G" LINK ", copy_latency_us: 10}\n", 12000000000, 11000000000, UINT64_MAX,
         10000, true, false},
        {"device: {name: G" LINK ", d2h_duplex_bytes_per_second: 8e9}\n", 8000000000, 11000000000,
         UINT64_MAX, 0, false, false},
        {DEVICE "host: {pinned_bytes: 5}\n", 12000000000, 11000000000, 5, 0, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char second[1024];
        (void)snprintf(second, sizeof(second), HEAD "%s" BATCH("2") "steps:\n" F G U,
                       cases[i].device);
        const char *const texts[] = {AT("1"), second};
        ck_assert_int_eq(merge(texts, 2), ATP_OK);
        struct profile profile = merged_at(1);
        ck_assert_uint_eq(profile.clock.d2h_bytes_per_second, cases[i].d2h);
        ck_assert_uint_eq(profile.clock.h2d_bytes_per_second, cases[i].h2d);
        ck_assert_int_eq(profile.clock.copy_latency_ns, cases[i].latency_ns);
        ck_assert_uint_eq(profile.pinned_bytes, cases[i].pinned);
        ck_assert_msg(report.links_differ == cases[i].links_differ, "case %zu", i);
        ck_assert_msg(report.pinned_differ == cases[i].pinned_differ, "case %zu", i);
    }
}
END_TEST

/* Line and column are those of the second file; the message ends in the first one's place. */
START_TEST(names_the_first_difference_with_both_places)
{
    static const struct bad_text bad[] = {
        {"atp_profile: 1\nmodel: other\n" DEVICE BATCH("2") "steps:\n" F G U, ATP_ERR_INVALID, 2, 8,
         "model: this is \"other\", expected \"m\" as in a.yaml:2"},
        {HEAD "device: {name: H" LINK "}\n" BATCH("2") "steps:\n" F G U, ATP_ERR_INVALID, 3, 9,
         "device.name: this is \"H\", expected \"G\" as in a.yaml:3"},
        {HEAD "device: {name: G, memory_bytes: 1e9, d2h_bytes_per_second: 12e9, "
              "h2d_bytes_per_second: 11e9}\n" BATCH("2") "steps:\n" F G U,
         ATP_ERR_INVALID, 3, 9, "device.memory_bytes: this is 1000000000, expected 16000000000"},
        {HEAD DEVICE "batch_size: 2\nresident_bytes: 1\ntensors:\n  - {name: z, bytes: 1}\n"
                     "  - {name: y, bytes: 8, decide: keep}\nsteps:\n"
                     "  - {name: f, phase: forward, time_us: 1, reads: [z], writes: [y]}\n",
         ATP_ERR_INVALID, 7, 5, "tensors[0].name: this is \"z\", expected \"x\" as in a.yaml:7"},
        {HEAD DEVICE "batch_size: 2\nresident_bytes: 1\ntensors:\n  - {name: x, bytes: 1}\n"
                     "  - {name: y, bytes: 8, decide: swap}\nsteps:\n" F G U,
         ATP_ERR_INVALID, 8, 5, "tensors[1].decide: this is swap, expected keep as in a.yaml:8"},
        {HEAD DEVICE BATCH("2") "  - {name: w, bytes: 1}\nsteps:\n" F G U, ATP_ERR_INVALID, 9, 5,
         "tensors[2]: this is one too many, expected 2 entries as in a.yaml:"},
        {HEAD DEVICE BATCH("2") "steps:\n" F U, ATP_ERR_INVALID, 11, 5,
         "steps[1].name: this is \"u\", expected \"g\" as in a.yaml:11"},
        {HEAD DEVICE BATCH("2") "steps:\n" F G, ATP_ERR_INVALID, 10, 3,
         "steps[2]: the list ends here, expected 3 entries as in a.yaml:12"},
        {HEAD DEVICE BATCH(
             "2") "steps:\n" F
                  "  - {name: g, phase: update, time_us: 10, reads: [], writes: []}\n" U,
         ATP_ERR_INVALID, 11, 5, "steps[1].phase: this is update, expected backward"},
        {HEAD DEVICE BATCH(
             "2") "steps:\n" F
                  "  - {name: g, phase: backward, time_us: 10, reads: [x], writes: []}\n" U,
         ATP_ERR_INVALID, 11, 5,
         "steps[1].reads[1]: nothing is there, expected \"y\" as in a.yaml:11"},
        {HEAD DEVICE BATCH(
             "2") "steps:\n" F
                  "  - {name: g, phase: backward, time_us: 10, reads: [x, y], writes: [y]}\n" U,
         ATP_ERR_INVALID, 11, 5, "steps[1].writes[0]: this is \"y\", expected none"},
        {HEAD DEVICE BATCH(
             "2") "steps:\n" F
                  "  - {name: g, phase: backward, time_us: 10, reads: [y, x], writes: []}\n" U,
         ATP_ERR_INVALID, 11, 5, "steps[1].reads[0]: this is \"y\", expected \"x\""},
        {HEAD DEVICE BATCH(
             "2") "steps:\n"
                  "  - {name: f, phase: forward, time_us: 10, reads: [x], writes: [y], rerun: "
                  "never}\n" G U,
         ATP_ERR_INVALID, 10, 5, "steps[0].rerun: this is never, expected allowed"},
        {AT("1"), ATP_ERR_INVALID, 4, 13,
         "batch_size: 1 is in a.yaml:4 too, expected each one once"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *const texts[] = {AT("1"), bad[i].text};
        expect_error(&err, merge(texts, 2), &bad[i]);
        ck_assert_uint_eq(at, 1);
        ck_assert_ptr_null(merged);
    }
}
END_TEST

START_TEST(refuses_more_batch_sizes_than_the_format_has)
{
    static char texts[65][1024];
    const char *pointers[65];
    for (uint32_t i = 0; i < 65; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]),
                       HEAD DEVICE "batch_size: %" PRIu32
                                   "\nresident_bytes: 1\ntensors: []\nsteps:\n" U,
                       i + 1);
        pointers[i] = texts[i];
    }
    ck_assert_int_eq(merge(pointers, 64), ATP_OK);
    ck_assert_int_eq(merge(pointers, 65), ATP_ERR_INVALID);
    ck_assert_uint_eq(at, 64);
    ck_assert_msg(strstr(err.text, "65 is one too many, expected 64 batch sizes at most"), "%s",
                  err.text);
}
END_TEST

/* Text in the region. */
static const char *text_of_file(const struct profile_file *file)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    enum atp_status status = profile_emit(file, out, &err);
    (void)fclose(out);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    const char *copy = region_copy_text(region, text);
    free(text);
    return copy;
}

/* "none" where there is no plan. */
static const char *plan_of(const struct profile *profile, uint64_t budget)
{
    struct patience patience = {.plans = 2};
    struct solve_options options = patience_options(&patience, budget);
    struct solve_report solved;
    struct atp_plan plan;
    enum atp_status status = solve(profile, &options, region, &plan, &solved, &err);
    if (status == ATP_ERR_INFEASIBLE) {
        return "none";
    }
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    status = plan_emit(&plan, out, &err);
    (void)fclose(out);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    const char *copy = region_copy_text(region, text);
    free(text);
    return copy;
}

/* The recording at another batch size: sizes in proportion, times with jitter. */
static struct profile recorded_at(const struct profile *one, uint64_t batch, struct random *random)
{
    struct profile profile = *one;
    struct atp_tensor *tensors = REGION_NEW(region, struct atp_tensor, one->model.tensor_count);
    struct atp_step *steps = REGION_NEW(region, struct atp_step, one->model.step_count);
    int64_t *step_ns = REGION_NEW(region, int64_t, one->model.step_count);
    for (uint32_t t = 0; t < one->model.tensor_count; t++) {
        tensors[t] = one->model.tensors[t];
        tensors[t].bytes *= batch;
    }
    for (uint32_t s = 0; s < one->model.step_count; s++) {
        steps[s] = one->model.steps[s];
        steps[s].workspace_bytes *= batch;
        step_ns[s] = one->clock.step_ns[s] * (int64_t)batch + random_below(random, 100);
    }
    profile.model.batch_size = batch;
    profile.model.tensors = tensors;
    profile.model.steps = steps;
    profile.clock.step_ns = step_ns;
    profile.resident_bytes = random_below(random, 1000);
    return profile;
}

START_TEST(gives_at_each_batch_size_the_plan_of_its_own_recording)
{
    static const uint64_t sizes[] = {4, 1, 3};
    uint32_t plan_count = 0;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 10 : 40); seed++) {
        struct random random = {seed};
        struct profile one, own[3];
        const char *texts[3];
        random_profile_build(&random, 2 + random_below(&random, 8), region, &one);
        one.device_name = "G";
        one.device_memory_bytes = 1000000;
        for (uint32_t b = 0; b < 3; b++) {
            own[b] = recorded_at(&one, sizes[b], &random);
            texts[b] = text_of_file(profile_file_of(&own[b], region));
        }
        ck_assert_msg(merge(texts, 3) == ATP_OK, "%s", err.text);
        const struct profile_file *all = parse(text_of_file(merged));
        for (uint32_t b = 0; b < 3; b++) {
            struct problem problem;
            struct profile of_all;
            ck_assert_int_eq(profile_at_batch(all, sizes[b], region, &of_all, &err), ATP_OK);
            ck_assert_int_eq(problem_build(&own[b], UINT64_MAX / 4, 1, region, &problem, NULL),
                             ATP_OK);
            uint64_t budget = own[b].resident_bytes + problem.least_arena_bytes +
                              (problem.peak_bytes - problem.least_arena_bytes) / 2;
            const char *plan = plan_of(&own[b], budget);
            ck_assert_msg(strcmp(plan, plan_of(&of_all, budget)) == 0,
                          "seed %" PRIu64 ", batch size %" PRIu64, seed, sizes[b]);
            plan_count += strcmp(plan, "none") != 0;
        }
    }
    ck_assert_uint_gt(plan_count, SANITIZED ? 20 : 80);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        puts_batch_sizes_in_order_whatever_the_order_of_the_inputs,
        says_once_where_the_numbers_come_from_when_all_say_the_same,
        takes_the_careful_value_of_the_links_and_tells,
        names_the_first_difference_with_both_places,
        refuses_more_batch_sizes_than_the_format_has,
        gives_at_each_batch_size_the_plan_of_its_own_recording,
    };
    return RUN_TESTS("profile_merge", tests, set_up, tear_down);
}
