/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile_fit.h"

#include <atp/model.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"

#define HEAD                                                                                       \
    "atp_profile: 1\nmodel: m\ndevice: {name: G, memory_bytes: 16e9, d2h_bytes_per_second: 12e9, " \
    "h2d_bytes_per_second: 11e9}\n"
#define FORWARD(name, time)                                                                        \
    "  - {name: " name ", phase: forward, time_us: " time ", reads: [x], writes: []}\n"
/* Three batch sizes; f takes 5 us and 10 us a sample, its backward step 7 and 20, the update 90. */
#define THREE                                                                                      \
    HEAD "batch_sizes: [1, 2, 4]\nresident_bytes: 0\n"                                             \
         "tensors:\n  - {name: x, bytes: [1100, 2100, 4100]}\nsteps:\n"
#define LINEAR                                                                                     \
    FORWARD("f", "[15, 25, 45]")                                                                   \
    "  - {name: f, phase: backward, time_us: [27, 47, 87], reads: [x], writes: []}\n"              \
    "  - {name: up, phase: update, time_us: 90, reads: [], writes: []}\n"

static struct region *region;
static const struct profile_file *file;
static struct profile_fit fit;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static void build(const char *text)
{
    struct atp_error err = {0};
    enum atp_status status = profile_parse(text, strlen(text), region, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s\n%s", err.line, err.column, err.text, text);
    profile_fit_build(file, region, &fit);
}

/* What is printed, or warned about. The region holds it. */
static const char *printed(bool is_warnings)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    if (is_warnings) {
        profile_fit_warn(file, &fit, "p.yaml", out);
    } else {
        profile_fit_print(file, &fit, out);
    }
    (void)fclose(out);
    const char *copy = region_copy_text(region, text);
    free(text);
    return copy;
}

static void expect_near(double is, double want)
{
    ck_assert_msg(fabs(is - want) < 1e-6 * (1 + fabs(want)), "%.9g, expected %.9g", is, want);
}

START_TEST(finds_the_fixed_cost_and_the_part_per_sample_of_a_line)
{
    build(THREE LINEAR);
    expect_near(fit.time[0].fixed, 5000);
    expect_near(fit.time[0].per_sample, 10000);
    expect_near(fit.phase[ATP_PHASE_BACKWARD].fixed_ns, 7000);
    expect_near(fit.phase[ATP_PHASE_BACKWARD].sample_ns, 20000);
    expect_near(fit.phase[ATP_PHASE_UPDATE].fixed_ns, 90000);
    expect_near(fit.all.fixed_ns, 102000);
    expect_near(fit.all.sample_ns, 30000);
    expect_near(fit.launch_ns, 6000);
    expect_near(fit.fixed_bytes, 100);
    expect_near(fit.sample_bytes, 1000);
    ck_assert_uint_eq(fit.worst_count, 0);
    ck_assert_str_eq(printed(true), "");
    ck_assert_str_eq(printed(false),
                     "m: 3 batch sizes from 1 to 4, 3 steps, 1 tensors; fixed, and in proportion "
                     "to the batch:\n"
                     "  forward          5.000 us + 10.000 us a sample\n"
                     "  backward         7.000 us + 20.000 us a sample\n"
                     "  update          90.000 us + 0.000 us a sample\n"
                     "  iteration      102.000 us + 30.000 us a sample\n"
                     "  tensors             100 B + 1.00 KB a sample\n"
                     "  a step           6.000 us fixed, in the median of forward and backward\n");
}
END_TEST

START_TEST(one_batch_size_has_no_line)
{
    build(HEAD
          "batch_size: 1\nresident_bytes: 0\ntensors:\n  - {name: x, bytes: 1}\nsteps:\n" FORWARD(
              "f", "15") FORWARD("g", "0"));
    ck_assert_uint_eq(fit.batch_count, 1);
    ck_assert_str_eq(printed(false), "");
    ck_assert_str_eq(printed(true),
                     "p.yaml: warning: 1 of 2 steps take no time at some batch size\n");
}
END_TEST

START_TEST(two_batch_sizes_are_always_on_a_line)
{
    build(HEAD "batch_sizes: [1, 8]\nresident_bytes: 0\ntensors:\n  - {name: x, bytes: "
               "[1, 9]}\nsteps:\n" FORWARD("f", "[10, 700]"));
    ck_assert(fit.time[0].off == 0);
    expect_near(fit.time[0].fixed, 10000 - 690000.0 / 7);
    ck_assert_str_eq(printed(true), "");
    ck_assert_msg(strstr(printed(false), "  forward        -88.571 us + 98.571 us a sample\n"),
                  "%s", printed(false));
}
END_TEST

START_TEST(a_step_that_takes_no_time_somewhere_is_worth_a_warning)
{
    build(THREE FORWARD("g", "[3, 0, 9]") LINEAR);
    ck_assert_uint_eq(fit.zero_count, 1);
    ck_assert_msg(strstr(printed(true), "1 of 4 steps take no time at some batch size"), "%s",
                  printed(true));
}
END_TEST

START_TEST(names_the_steps_that_are_farthest_off_and_where)
{
    build(THREE FORWARD("slight", "[10, 20.5, 40]") FORWARD("worst", "[100, 400, 400]")
              FORWARD("bad", "[10, 40, 40]") FORWARD("fair", "[10, 22, 40]") LINEAR);
    ck_assert_uint_eq(fit.poor_count, 2);
    ck_assert_uint_eq(fit.worst_count, 3);
    ck_assert_uint_eq(fit.worst[0], 1);
    ck_assert_uint_eq(fit.worst[1], 2);
    ck_assert_uint_eq(fit.worst[2], 3);
    ck_assert_uint_eq(fit.poor_step, 1);
    const char *text = printed(true);
    ck_assert_msg(strstr(text, "2 steps, up to 68.27 %") != NULL &&
                      strstr(text, "are not on a line through the batch sizes: forward worst is "
                                   "off by 42.86 % at 4\n") != NULL,
                  "%s", text);
    text = printed(false);
    ck_assert_msg(strstr(text, "at 4: forward worst\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "at 2: forward fair\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "slight") == NULL, "%s", text);
}
END_TEST

START_TEST(jitter_of_tiny_steps_is_not_worth_a_warning)
{
    build(THREE FORWARD("tiny", "[0.1, 0.4, 0.1]") LINEAR);
    ck_assert_uint_eq(fit.poor_count, 1);
    ck_assert(fit.poor_share < 0.01);
    ck_assert_msg(strstr(printed(true), "are not on a line") == NULL, "%s", printed(true));
}
END_TEST

START_TEST(time_that_falls_as_the_batch_grows_is_worth_a_warning)
{
    build(THREE FORWARD("falls", "[40, 35, 25]") LINEAR);
    ck_assert_uint_eq(fit.falling_count, 1);
    ck_assert_str_eq(printed(true),
                     "p.yaml: warning: 1 steps take less time the larger the batch: forward "
                     "falls\n");
}
END_TEST

START_TEST(so_are_sizes_that_are_on_no_line)
{
    build(HEAD "batch_sizes: [1, 2, 4]\nresident_bytes: 0\n"
               "tensors:\n  - {name: x, bytes: [1100, 2100, 4100]}\n"
               "  - {name: padded, bytes: [1024, 4096, 4096]}\nsteps:\n" LINEAR);
    ck_assert_uint_eq(fit.poor_tensor_count, 1);
    ck_assert_str_eq(printed(true), "p.yaml: warning: the sizes of 1 tensors are not on a line "
                                    "through the batch sizes: padded\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        finds_the_fixed_cost_and_the_part_per_sample_of_a_line,
        one_batch_size_has_no_line,
        two_batch_sizes_are_always_on_a_line,
        a_step_that_takes_no_time_somewhere_is_worth_a_warning,
        names_the_steps_that_are_farthest_off_and_where,
        jitter_of_tiny_steps_is_not_worth_a_warning,
        time_that_falls_as_the_batch_grows_is_worth_a_warning,
        so_are_sizes_that_are_on_no_line,
    };
    return RUN_TESTS("profile_fit", tests, set_up, tear_down);
}
