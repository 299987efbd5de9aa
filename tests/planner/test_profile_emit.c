/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile_emit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modeline.h"
#include "random_profile.h"
#include "run_tests.h"

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static const struct profile_file *parse(const char *text, size_t size)
{
    struct atp_error err = {0};
    const struct profile_file *file = NULL;
    enum atp_status status = profile_parse(text, size, region, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s\n%s", err.line, err.column, err.text, text);
    return file;
}

static struct profile at(const struct profile_file *file, uint64_t batch)
{
    struct atp_error err = {0};
    struct profile profile;
    enum atp_status status = profile_at_batch(file, batch, region, &profile, &err);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    return profile;
}

/* The caller frees. */
static char *emit_text(const struct profile_file *file, size_t *out_size)
{
    char *text = NULL;
    struct atp_error err = {0};
    FILE *out = open_memstream(&text, out_size);
    ck_assert_ptr_nonnull(out);
    enum atp_status status = profile_emit(file, out, &err);
    (void)fclose(out);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    return text;
}

/* All that a profile file can say. */
static const char ALL[] =
    "atp_profile: 1\n"
    "model: \"two: layers\"\n"
    "origin: \"measured\\nby \\\"hand\\\"\"\n"
    "device: {name: \"G 1\", memory_bytes: 16000000000,\n"
    "  d2h_bytes_per_second: 12000000000,\n"
    "  h2d_bytes_per_second: 11000000000,\n"
    "  d2h_duplex_bytes_per_second: 9000000000,\n"
    "  h2d_duplex_bytes_per_second: 8000000000,\n"
    "  copy_latency_us: 10.500}\n"
    "host: {pinned_bytes: 64000000000}\n"
    "batch_sizes: [2, 4, 8]\n"
    "resident_bytes: 1000\n"
    "tensors:\n"
    "  - {name: x, bytes: [64, 128, 256], decide: keep}\n"
    "  - {name: \"no\", bytes: 128, decide: recompute}\n"
    "  - {name: \"\xc3\xa9 [z]\", bytes: 0, decide: swap}\n"
    "  - {name: w, bytes: 1}\n"
    "steps:\n"
    "  - {name: f, phase: forward, time_us: [35.120, 70.000, 140.001], reads: [x], "
    "writes: [\"no\"], workspace_bytes: 7}\n"
    "  - {name: f2, phase: forward, time_us: 1.000, reads: [\"no\"], writes: [\"\xc3\xa9 [z]\", "
    "w], "
    "rerun: never}\n"
    "  - {name: f, phase: backward, time_us: 0.000, reads: [\"no\", \"\xc3\xa9 [z]\", x], "
    "writes: [], workspace_bytes: [1, 2, 4]}\n"
    "  - {name: up, phase: update, time_us: 900.000, reads: [], writes: []}\n";

static void expect_under_modeline(const char *text, const char *rest)
{
    size_t length = strlen(atp_profile_modeline);
    ck_assert(strncmp(text, atp_profile_modeline, length) == 0);
    ck_assert_str_eq(text + length, rest);
}

START_TEST(writes_everything_that_a_file_can_say)
{
    size_t size;
    char *text = emit_text(parse(ALL, strlen(ALL)), &size);
    expect_under_modeline(text, ALL);
    free(text);
}
END_TEST

START_TEST(leaves_out_what_the_file_leaves_open)
{
    static const char least[] = "atp_profile: 1\n"
                                "model: m\n"
                                "device: {name: G, memory_bytes: 1,\n"
                                "  d2h_bytes_per_second: 2,\n"
                                "  h2d_bytes_per_second: 3}\n"
                                "batch_size: 1\n"
                                "resident_bytes: 0\n"
                                "tensors: []\n"
                                "steps:\n"
                                "  - {name: f, phase: forward, time_us: 0.001, reads: [], "
                                "writes: []}\n";
    size_t size;
    char *text = emit_text(parse(least, strlen(least)), &size);
    expect_under_modeline(text, least);
    free(text);
}
END_TEST

static void expect_same(const struct profile *a, const struct profile *b, uint64_t seed)
{
    struct atp_error err = {0};
    enum atp_status same = atp_model_compare(&a->model, "before", &b->model, "after", &err);
    ck_assert_msg(same == ATP_OK, "seed %llu: %s", (unsigned long long)seed, err.text);
    ck_assert_uint_eq(a->resident_bytes, b->resident_bytes);
    ck_assert_uint_eq(a->pinned_bytes, b->pinned_bytes);
    ck_assert_uint_eq(a->device_memory_bytes, b->device_memory_bytes);
    ck_assert_uint_eq(a->clock.d2h_bytes_per_second, b->clock.d2h_bytes_per_second);
    ck_assert_uint_eq(a->clock.h2d_bytes_per_second, b->clock.h2d_bytes_per_second);
    ck_assert_int_eq(a->clock.copy_latency_ns, b->clock.copy_latency_ns);
    for (uint32_t s = 0; s < a->model.step_count; s++) {
        ck_assert_int_eq(a->clock.step_ns[s], b->clock.step_ns[s]);
    }
    for (uint32_t t = 0; t < a->model.tensor_count; t++) {
        ck_assert_int_eq(a->pins[t], b->pins[t]);
    }
}

START_TEST(what_is_read_again_is_what_was_written)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct random random = {seed};
        struct profile profile;
        size_t size, again_size;
        random_profile_build(&random, 1 + random_below(&random, 20), region, &profile);
        profile.device_name = "G";
        profile.device_memory_bytes = seed;
        profile.resident_bytes = random_below(&random, 1000);
        profile.clock.copy_latency_ns = random_below(&random, 2) * INT64_C(10500);
        profile.pinned_bytes = random_chance(&random, 50) ? UINT64_MAX : 12345;
        char *text = emit_text(profile_file_of(&profile, region), &size);
        const struct profile_file *file = parse(text, size);
        const struct profile again = at(file, 0);
        expect_same(&profile, &again, seed);
        char *second = emit_text(file, &again_size);
        ck_assert_str_eq(text, second);
        free(second);
        free(text);
    }
}
END_TEST

START_TEST(writes_nothing_that_the_reader_refuses)
{
    struct random random = {1};
    struct profile profile;
    struct atp_error err = {0};
    char *text = NULL;
    size_t size = 1;
    random_profile_build(&random, 3, region, &profile);
    profile.device_name = "G";
    profile.device_memory_bytes = 1;
    profile.model.name = "not \xff UTF-8";
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ne(profile_emit(profile_file_of(&profile, region), out, &err), ATP_OK);
    (void)fclose(out);
    ck_assert_uint_eq(size, 0);
    ck_assert_msg(strstr(err.text, "this makes no profile: ") != NULL, "%s", err.text);
    free(text);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_an_error_that_leaves_none)
{
    struct atp_error err = {0};
    const struct profile_file *file = parse(ALL, strlen(ALL));
    ck_assert_int_eq(profile_emit_to(file, "missing/p.yaml", &err), ATP_ERR_IO);
    FILE *full = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(full);
    ck_assert_int_eq(profile_emit(file, full, &err), ATP_ERR_IO);
    ck_assert_msg(strstr(err.text, "cannot write the profile") != NULL, "%s", err.text);
    (void)fclose(full);
    char path[] = "/tmp/atp_profile_emit_XXXXXX";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    (void)close(descriptor);
    const struct profile_file *again = NULL;
    ck_assert_int_eq(profile_emit_to(file, path, &err), ATP_OK);
    ck_assert_int_eq(profile_read(path, region, &again, &err), ATP_OK);
    (void)unlink(path);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        writes_everything_that_a_file_can_say,
        leaves_out_what_the_file_leaves_open,
        what_is_read_again_is_what_was_written,
        writes_nothing_that_the_reader_refuses,
        a_file_that_cannot_be_written_is_an_error_that_leaves_none,
    };
    return RUN_TESTS("profile_emit", tests, set_up, tear_down);
}
