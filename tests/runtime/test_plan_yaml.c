/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <atp/plan_yaml.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

#define PRINT                                                                                      \
    "fingerprint: \"sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n"
#define SIZES                                                                                      \
    "batch_size: 8\nalignment_bytes: 256\nbudget_bytes: 8e9\nresident_bytes: 1990000000\n"         \
    "arena_bytes: 4096\nhost_arena_bytes: 512\n"
#define PREDICTED                                                                                  \
    "predicted: {iteration_us: 12.5, bound_us: 10.000, gap: 0.25, compute_us: 10, "                \
    "recompute_us: 2, stall_us: 0.5, peak_bytes: 4096, evicted_bytes: 512, restored_bytes: 512, "  \
    "recomputed_bytes: 64}\n"
/* Ten lines. */
#define HEAD "atp_plan: 1\nmodel: m\n" PRINT SIZES PREDICTED
#define TENSORS                                                                                    \
    "tensors:\n  - {name: x, bytes: 512, decision: swap}\n"                                        \
    "  - {name: \"y 1\", bytes: 64, decision: recompute}\n"
/* Line 14 begins the steps. */
#define STEPS                                                                                      \
    "steps:\n"                                                                                     \
    "  - {name: f, phase: forward, reads: [x], writes: [\"y 1\"], workspace_bytes: 32}\n"          \
    "  - {name: f, phase: backward, reads: [\"y 1\", x], rerun: never}\n"
#define TOP HEAD TENSORS STEPS
/* Line 17 is the program. */
#define PROGRAM(text) TOP "program: [" text "]\n"

START_TEST(reads_what_the_file_says)
{
    static const char text[] = TOP "time_limited: true\n"
                                   "program:\n"
                                   "  - [alloc, x, 0]\n"
                                   "  - [run, f, forward, 1024]\n"
                                   "  - [evict, x, 256]\n"
                                   "  - [evicted, x]\n"
                                   "  - [free, y 1]\n"
                                   "  - [restore, x, 2048]\n"
                                   "  - [restored, x]\n"
                                   "  - [rerun, f, 768]\n"
                                   "\n"
                                   "  - [run, f, backward]\n";
    struct atp_plan_file *file;
    struct atp_error err = {0};
    enum atp_status status = atp_plan_parse(text, sizeof(text) - 1, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s", err.line, err.column, err.text);
    const struct atp_plan *plan = &file->plan;
    ck_assert_str_eq(plan->model.name, "m");
    ck_assert_uint_eq(plan->model.batch_size, 8);
    ck_assert_uint_eq(plan->fingerprint[1], 0x11);
    ck_assert_uint_eq(plan->fingerprint[31], 0xff);
    ck_assert_uint_eq(plan->alignment_bytes, 256);
    ck_assert_uint_eq(plan->budget_bytes, 8000000000);
    ck_assert_uint_eq(plan->resident_bytes, 1990000000);
    ck_assert_uint_eq(plan->arena_bytes, 4096);
    ck_assert_uint_eq(plan->host_arena_bytes, 512);
    ck_assert(plan->time_limited);
    ck_assert_int_eq(plan->predicted.iteration_ns, 12500);
    ck_assert_int_eq(plan->predicted.bound_ns, 10000);
    ck_assert_int_eq(plan->predicted.compute_ns, 10000);
    ck_assert_int_eq(plan->predicted.recompute_ns, 2000);
    ck_assert_int_eq(plan->predicted.stall_ns, 500);
    ck_assert_uint_eq(plan->predicted.peak_bytes, 4096);
    ck_assert_uint_eq(plan->predicted.evicted_bytes, 512);
    ck_assert_uint_eq(plan->predicted.restored_bytes, 512);
    ck_assert_uint_eq(plan->predicted.recomputed_bytes, 64);
    ck_assert_uint_eq(plan->model.tensor_count, 2);
    ck_assert_str_eq(plan->model.tensors[1].name, "y 1");
    ck_assert_uint_eq(plan->model.tensors[0].bytes, 512);
    ck_assert_int_eq(plan->decisions[0], ATP_DECISION_SWAP);
    ck_assert_int_eq(plan->decisions[1], ATP_DECISION_RECOMPUTE);
    ck_assert_uint_eq(plan->model.step_count, 2);
    ck_assert_uint_eq(plan->model.steps[0].workspace_bytes, 32);
    ck_assert_uint_eq(plan->model.steps[0].writes[0], 1);
    ck_assert(!plan->model.steps[0].rerun_never && plan->model.steps[1].rerun_never);
    ck_assert_uint_eq(plan->model.steps[1].read_count, 2);
    ck_assert_uint_eq(plan->model.steps[1].write_count, 0);
    static const struct atp_instruction want[] = {
        {ATP_OP_ALLOC, 0, 0},    {ATP_OP_RUN, 0, 1024},  {ATP_OP_EVICT, 0, 256},
        {ATP_OP_EVICTED, 0, 0},  {ATP_OP_FREE, 1, 0},    {ATP_OP_RESTORE, 0, 2048},
        {ATP_OP_RESTORED, 0, 0}, {ATP_OP_RERUN, 0, 768}, {ATP_OP_RUN, 1, 0}};
    ck_assert_uint_eq(plan->instruction_count, 9);
    for (uint32_t i = 0; i < 9; i++) {
        ck_assert_int_eq(plan->program[i].op, want[i].op);
        ck_assert_uint_eq(plan->program[i].id, want[i].id);
        ck_assert_uint_eq(plan->program[i].offset, want[i].offset);
        ck_assert_uint_eq(file->instruction_lines[i], i < 8 ? 19 + i : 28);
    }
    atp_plan_file_destroy(file);
}
END_TEST

START_TEST(keeps_a_certificate_as_text)
{
    static const char text[] = PROGRAM("") "certificate: |\n  rows 1\n  0*2 -5\n";
    struct atp_plan_file *file;
    struct atp_error err = {0};
    ck_assert_int_eq(atp_plan_parse(text, sizeof(text) - 1, &file, &err), ATP_OK);
    ck_assert_str_eq(file->plan.certificate, "rows 1\n0*2 -5\n");
    atp_plan_file_destroy(file);
    ck_assert_int_eq(atp_plan_parse(PROGRAM(""), strlen(PROGRAM("")), &file, &err), ATP_OK);
    ck_assert_ptr_null(file->plan.certificate);
    atp_plan_file_destroy(file);
}
END_TEST

static const struct bad_text REFUSED[] = {
    {"", ATP_ERR_SYNTAX, 1, 1, "the document is empty"},
    {"atp_profile: 1\n", ATP_ERR_SYNTAX, 1, 1, "the key \"atp_plan\" is missing"},
    {"atp_plan: 2\nnew: 1\n", ATP_ERR_VERSION, 1, 11, "atp_plan: this is version 2"},
    {TOP, ATP_ERR_SYNTAX, 1, 1, "top level: the key \"program\" is missing"},
    {PROGRAM("") "time_limited: maybe\n", ATP_ERR_SYNTAX, 18, 15, "expected false or true"},
    {PROGRAM("") "certificate: [a]\n", ATP_ERR_SYNTAX, 18, 14,
     "certificate: this is no certificate"},
    {PROGRAM("") "certificate: ''\n", ATP_ERR_SYNTAX, 18, 14, "this is no certificate"},
    {PROGRAM("") "certificate: \"a\\tb\"\n", ATP_ERR_SYNTAX, 18, 14,
     "expected lines of printable ASCII"},
    {PROGRAM("") "extra: 1\n", ATP_ERR_SYNTAX, 18, 1, "extra: unknown key"},
    {PROGRAM("[jump, x]"), ATP_ERR_SYNTAX, 17, 12, "program[0][0]: \"jump\" is unknown"},
    {PROGRAM("[alloc]"), ATP_ERR_SYNTAX, 17, 11, "program[0]: the instruction has 1 entries"},
    {PROGRAM("[]"), ATP_ERR_SYNTAX, 17, 11, "program[0]: the instruction has 0 entries"},
    {PROGRAM("x"), ATP_ERR_SYNTAX, 17, 11, "program[0]: this is a single value"},
    {PROGRAM("[alloc, z, 0]"), ATP_ERR_INVALID, 17, 19, "program[0][1]: no tensor is named \"z\""},
    {PROGRAM("[alloc, x]"), ATP_ERR_SYNTAX, 17, 11,
     "program[0]: the instruction \"alloc\" lacks its offset"},
    {PROGRAM("[alloc, x, 0, 0]"), ATP_ERR_SYNTAX, 17, 25, "\"alloc\" ends before this"},
    {PROGRAM("[alloc, x, -1]"), ATP_ERR_INVALID, 17, 22, "program[0][2]: -1 is negative"},
    {PROGRAM("[evict, x]"), ATP_ERR_SYNTAX, 17, 11, "lacks its offset"},
    {PROGRAM("[restore, x]"), ATP_ERR_SYNTAX, 17, 11, "lacks its offset"},
    {PROGRAM("[evicted, x, 0]"), ATP_ERR_SYNTAX, 17, 24, "\"evicted\" ends before this"},
    {PROGRAM("[restored, x, 0]"), ATP_ERR_SYNTAX, 17, 25, "ends before this"},
    {PROGRAM("[free, x, 0]"), ATP_ERR_SYNTAX, 17, 21, "ends before this"},
    {PROGRAM("[run, f]"), ATP_ERR_SYNTAX, 17, 11, "lacks its phase"},
    {PROGRAM("[run, f, forward]"), ATP_ERR_SYNTAX, 17, 11, "\"run\" lacks its offset"},
    {PROGRAM("[run, f, backward, 0]"), ATP_ERR_SYNTAX, 17, 30, "\"run\" ends before this"},
    {PROGRAM("[run, f, update]"), ATP_ERR_INVALID, 17, 17,
     "program[0][1]: no update step is named \"f\""},
    {PROGRAM("[rerun, f]"), ATP_ERR_SYNTAX, 17, 11, "\"rerun\" lacks its offset"},
    {PROGRAM("[rerun, g, 0]"), ATP_ERR_INVALID, 17, 19, "no forward step is named \"g\""},
    {HEAD TENSORS "steps: [{name: f, phase: forward, reads: [z]}]\nprogram: []\n", ATP_ERR_INVALID,
     14, 43, "steps[0].reads[0]: no tensor is named \"z\""},
    {HEAD TENSORS "steps: [{name: f}]\nprogram: []\n", ATP_ERR_SYNTAX, 14, 9,
     "steps[0]: the key \"phase\" is missing"},
    {HEAD "tensors: [{name: x, bytes: 1}]\nsteps: []\nprogram: []\n", ATP_ERR_SYNTAX, 11, 11,
     "tensors[0]: the key \"decision\" is missing"},
    {"atp_plan: 1\nmodel: m\nfingerprint: \"md5:00\"\n" SIZES PREDICTED TENSORS STEPS
     "program: []\n",
     ATP_ERR_SYNTAX, 3, 14, "fingerprint: \"md5:00\" is no fingerprint"},
    {"atp_plan: 1\nmodel: m\n" PRINT
     "batch_size: 8\nalignment_bytes: 24\nbudget_bytes: 1\nresident_bytes: 1\narena_bytes: 1\n"
     "host_arena_bytes: 0\n" PREDICTED TENSORS STEPS "program: []\n",
     ATP_ERR_INVALID, 5, 18, "alignment_bytes: 24 is not a power of two"},
    {"atp_plan: 1\nmodel: m\n" PRINT SIZES
     "predicted: {iteration_us: 12.5, bound_us: 10.000, gap: 0.250001, compute_us: 10, "
     "recompute_us: 2, stall_us: 0.5, peak_bytes: 1, evicted_bytes: 0, restored_bytes: 0, "
     "recomputed_bytes: 0}\n" TENSORS STEPS "program: []\n",
     ATP_ERR_INVALID, 10, 56, "predicted.gap: the gap is 0.250001, expected 0.250000"},
    {"atp_plan: 1\nmodel: m\n" PRINT SIZES "predicted: {iteration_us: 12.5001}\n" TENSORS STEPS
     "program: []\n",
     ATP_ERR_SYNTAX, 10, 12, "predicted: the key \"bound_us\" is missing"},
};

START_TEST(refuses_with_line_column_and_path)
{
    const struct bad_text *bad = &REFUSED[_i];
    struct atp_plan_file *file;
    struct atp_error err = {0};
    enum atp_status status = atp_plan_parse(bad->text, strlen(bad->text), &file, &err);
    ck_assert_ptr_null(file);
    expect_error(&err, status, bad);
    ck_assert_int_eq(atp_plan_parse(bad->text, strlen(bad->text), &file, NULL), bad->status);
}
END_TEST

START_TEST(survives_every_cut_of_a_good_text)
{
    static const char text[] = PROGRAM("[alloc, x, 0], [run, f, forward, 64], [free, x]");
    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        struct atp_plan_file *file;
        struct atp_error err = {0};
        char *copy = malloc(size + 1);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, size);
        enum atp_status status = atp_plan_parse(copy, size, &file, &err);
        ck_assert_msg(status != ATP_OK || size == sizeof(text) - 2, "accepted at %zu", size);
        ck_assert(status == ATP_OK || err.line > 0);
        atp_plan_file_destroy(file);
        free(copy);
    }
}
END_TEST

START_TEST(reads_a_file_by_its_name)
{
    char path[] = "/tmp/atp-plan-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    static const char text[] = PROGRAM("[alloc, x, 0]");
    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    (void)close(fd);
    struct atp_plan_file *file;
    struct atp_error err = {0};
    enum atp_status status = atp_plan_read(path, &file, &err);
    (void)unlink(path);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    ck_assert_uint_eq(file->plan.instruction_count, 1);
    atp_plan_file_destroy(file);
    atp_plan_file_destroy(NULL);
    ck_assert_int_eq(atp_plan_read("/nonexistent.yaml", &file, &err), ATP_ERR_IO);
    ck_assert_ptr_null(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_yaml");
    TCase *cases = tcase_create("plan_yaml");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, reads_what_the_file_says);
    tcase_add_test(cases, keeps_a_certificate_as_text);
    tcase_add_loop_test(cases, refuses_with_line_column_and_path, 0,
                        (int)(sizeof(REFUSED) / sizeof(REFUSED[0])));
    tcase_add_test(cases, survives_every_cut_of_a_good_text);
    tcase_add_test(cases, reads_a_file_by_its_name);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
