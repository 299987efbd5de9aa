/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plan_emit.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atp/plan_yaml.h>

#include "plan_builder.h"
#include "plan_equal.h"
#include "plan_gap.h"

/* The caller frees. */
static char *emit_text(const struct atp_plan *plan, size_t *out_size)
{
    char *text = NULL;
    struct atp_error err = {0};
    FILE *out = open_memstream(&text, out_size);
    ck_assert_ptr_nonnull(out);
    enum atp_status status = plan_emit(plan, out, &err);
    (void)fclose(out);
    ck_assert_msg(status == ATP_OK, "%s", err.text);
    return text;
}

static enum atp_status emit_status(const struct atp_plan *plan, struct atp_error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    enum atp_status status = plan_emit(plan, out, err);
    (void)fclose(out);
    free(text);
    return status;
}

static void expect_round_trip(const struct atp_plan *plan)
{
    size_t size, again_size;
    char *text = emit_text(plan, &size);
    struct atp_plan_file *file;
    struct atp_error err = {0};
    enum atp_status status = atp_plan_parse(text, size, &file, &err);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s\n%s", err.line, err.column, err.text, text);
    const char *difference = plan_difference(plan, &file->plan);
    ck_assert_msg(difference == NULL, "%s differ after reading\n%s", difference, text);
    char *again = emit_text(&file->plan, &again_size);
    ck_assert_uint_eq(size, again_size);
    ck_assert_int_eq(memcmp(text, again, size), 0);
    atp_plan_file_destroy(file);
    free(again);
    free(text);
}

static struct plan_builder *tiny(const char *tensor, const char *step)
{
    struct plan_builder *b = plan_builder_create("toy");
    uint32_t x = plan_builder_tensor(b, tensor, 64);
    uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, step, NO_IDS, IDS(x));
    plan_builder_add(b, ATP_OP_ALLOC, x, 0);
    plan_builder_add(b, ATP_OP_RUN, f, 0);
    plan_builder_add(b, ATP_OP_FREE, x, 0);
    plan_builder_seal(b);
    return b;
}

START_TEST(writes_these_bytes_for_this_plan)
{
    static const char want[] = "atp_plan: 1\n"
                               "model: toy\n"
                               "fingerprint: "
                               "\"sha256:"
                               "01010101010101010101010101010101"
                               "010101010101010101010101010101ff\"\n"
                               "batch_size: 1\n"
                               "alignment_bytes: 1\n"
                               "budget_bytes: 100\n"
                               "resident_bytes: 0\n"
                               "arena_bytes: 96\n"
                               "host_arena_bytes: 0\n"
                               "time_limited: true\n"
                               "predicted:\n"
                               "  iteration_us: 1.005\n"
                               "  bound_us: 1.000\n"
                               "  gap: 0.005000\n"
                               "  compute_us: 1.005\n"
                               "  recompute_us: 0.000\n"
                               "  stall_us: 0.000\n"
                               "  peak_bytes: 96\n"
                               "  evicted_bytes: 0\n"
                               "  restored_bytes: 0\n"
                               "  recomputed_bytes: 0\n"
                               "tensors:\n"
                               "  - {name: x, bytes: 64, decision: keep}\n"
                               "steps:\n"
                               "  - {name: f.1, phase: forward, writes: [x], rerun: never, "
                               "workspace_bytes: 32}\n"
                               "program:\n"
                               "  - [alloc, x, 0]\n"
                               "  - [run, f.1, forward, 64]\n"
                               "  - [free, x]\n"
                               "certificate: |\n"
                               "  rows 1 0\n"
                               "  multipliers\n";
    struct plan_builder *b = tiny("x", "f.1");
    b->plan.certificate = "rows 1 0\nmultipliers\n";
    b->steps[0].rerun_never = true;
    b->steps[0].workspace_bytes = 32;
    b->program[1].offset = 64;
    memset(b->plan.fingerprint, 1, sizeof(b->plan.fingerprint));
    b->plan.fingerprint[31] = 0xff;
    b->plan.budget_bytes = 100;
    b->plan.arena_bytes = 96;
    b->plan.time_limited = true;
    b->plan.predicted = (struct atp_predicted){
        .iteration_ns = 1005, .bound_ns = 1000, .compute_ns = 1005, .peak_bytes = 96};
    size_t size;
    char *text = emit_text(&b->plan, &size);
    ck_assert_str_eq(text, want);
    free(text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(reads_back_a_plan_with_every_instruction)
{
    struct plan_builder *b = plan_builder_rich();
    expect_round_trip(&b->plan);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(reads_back_a_certificate)
{
    static const char *const texts[] = {"a", "a b\n", "a\nb\n", "rows: {1, #x}\n'\"\n", "|\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct plan_builder *b = plan_builder_rich();
        b->plan.certificate = texts[i];
        size_t size;
        char *text = emit_text(&b->plan, &size);
        struct atp_plan_file *file;
        struct atp_error err = {0};
        ck_assert_msg(atp_plan_parse(text, size, &file, &err) == ATP_OK, "%s", err.text);
        ck_assert_str_eq(file->plan.certificate, texts[i]);
        atp_plan_file_destroy(file);
        free(text);
        plan_builder_destroy(b);
    }
}
END_TEST

START_TEST(refuses_a_certificate_that_no_file_can_carry)
{
    static const char *const texts[] = {"", " a", "\n", "a\n\nb", "a\n b", "a\tb", "\xC3\xA9"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct plan_builder *b = plan_builder_rich();
        struct atp_error err = {0};
        b->plan.certificate = texts[i];
        ck_assert_int_eq(plan_emit(&b->plan, stdout, &err), ATP_ERR_INVALID);
        ck_assert_msg(strstr(err.text, "certificate: expected lines") != NULL, "%s", err.text);
        plan_builder_destroy(b);
    }
}
END_TEST

static const char *const ODD_NAMES[] = {
    "yes",
    "No",
    "null",
    "~",
    "true",
    "12",
    "1e3",
    "0x10",
    "1_000",
    "-",
    "-a",
    "--- a",
    "...",
    ".5",
    "a b",
    " a",
    "a ",
    "  ",
    "a: b",
    "a:",
    ":",
    "a #b",
    "#",
    "a,b",
    "[a]",
    "{a}",
    "]",
    "*a",
    "&a",
    "!a",
    "!!str a",
    "|",
    ">",
    "%a",
    "@a",
    "`a`",
    "'",
    "''",
    "\"",
    "\"a\"",
    "\\",
    "\\n",
    "a\\",
    "?",
    "? a",
    "=",
    "<<",
    "2026-01-01",
    "12:30:45",
    "h0.ln1",
    "decoder/layer_1(x)",
    "a+b",
    "\xC3\xA9t\xC3\xA9",
    "\xE5\xB1\x82",
    "\xF0\x9F\x98\x80",
    "\xC2\x85",
    "\xE2\x80\xA8",
    "a\xC2\xA0",
    "\xEF\xBB\xBF!",
    "\xEF\xBF\xBF",
    "\xC2\x80",
    "\xE2\x80\xA9",
};

START_TEST(reads_back_odd_names_exactly)
{
    struct plan_builder *b = tiny(ODD_NAMES[_i], ODD_NAMES[_i]);
    expect_round_trip(&b->plan);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(quotes_names_only_where_yaml_could_take_them_for_more)
{
    static const struct {
        const char *name, *line;
    } cases[] = {
        {"h0.ln1", "\nmodel: h0.ln1\n"},
        {"decoder/layer_1(x)", "\nmodel: decoder/layer_1(x)\n"},
        {"_a-b+c=d", "\nmodel: _a-b+c=d\n"},
        {"yesterday", "\nmodel: yesterday\n"},
        {"No", "\nmodel: \"No\"\n"},
        {"NULL", "\nmodel: \"NULL\"\n"},
        {"1x", "\nmodel: \"1x\"\n"},
        {"-a", "\nmodel: \"-a\"\n"},
        {"a b", "\nmodel: \"a b\"\n"},
        {"a:", "\nmodel: \"a:\"\n"},
        {"a\"\\", "\nmodel: \"a\\\"\\\\\"\n"},
        {"\xE5\xB1\x82", "\nmodel: \"\xE5\xB1\x82\"\n"},
        {"\xE2\x80\xA8", "\nmodel: \"\\u2028\"\n"},
        {"\xC2\x85\xC2\xA0", "\nmodel: \"\\u0085\\u00A0\"\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size;
        struct plan_builder *b = tiny("x", "f");
        const char *kept = b->plan.model.name;
        b->plan.model.name = cases[i].name;
        char *text = emit_text(&b->plan, &size);
        ck_assert_msg(strstr(text, cases[i].line) != NULL, "%s:\n%s", cases[i].line, text);
        free(text);
        b->plan.model.name = kept;
        plan_builder_destroy(b);
    }
}
END_TEST

/* Any characters but controls, from the whole range of UTF-8. */
static void random_name(char *out, uint32_t id)
{
    static const char signs[] = "abyYnN019 .:-#,[]{}&*!|>'\"%@`\\?=<~_/";
    int length = 1 + rand() % 12, used = 0;
    for (int i = 0; i < length; i++) {
        int kind = rand() % 10;
        if (kind < 7) {
            out[used++] = signs[(size_t)rand() % (sizeof(signs) - 1)];
        } else if (kind < 8) {
            out[used++] = (char)(0xC2 + rand() % 30);
            out[used++] = (char)(0x80 + rand() % 64);
        } else {
            out[used++] = (char)0xE2;
            out[used++] = (char)(0x80 + rand() % 64);
            out[used++] = (char)(0x80 + rand() % 64);
        }
    }
    (void)snprintf(out + used, 16, "%u", id);
}

static uint32_t random_below(uint32_t count)
{
    return count > 0 ? (uint32_t)rand() % count : 0;
}

static struct ids random_ids(uint32_t below)
{
    struct ids ids = {.count = (uint32_t)rand() % 4};
    for (uint32_t i = 0; i < ids.count; i++) {
        ids.items[i] = random_below(below);
    }
    return ids;
}

static uint64_t random_bytes(void)
{
    return ((uint64_t)rand() << 31 | (uint64_t)rand()) >> (rand() % 62);
}

static int64_t random_ns(void)
{
    int64_t ns = (int64_t)(random_bytes() >> 3);
    return ns <= PLAN_NS_MAX ? ns : PLAN_NS_MAX;
}

static struct plan_builder *random_plan(void)
{
    char name[64];
    uint32_t tensors = 1 + (uint32_t)rand() % 8, steps = 1 + (uint32_t)rand() % 8;
    random_name(name, 0);
    struct plan_builder *b = plan_builder_create(name);
    for (uint32_t t = 0; t < tensors; t++) {
        random_name(name, t);
        plan_builder_tensor(b, name, random_bytes());
    }
    for (uint32_t s = 0; s < steps; s++) {
        random_name(name, s);
        plan_builder_step(b, (enum atp_phase)(s * 3 / steps), name, random_ids(tensors),
                          random_ids(tensors));
        b->steps[s].rerun_never = rand() % 2 == 0;
        b->steps[s].workspace_bytes = rand() % 2 == 0 ? random_bytes() : 0;
    }
    for (int i = rand() % 30; i > 0; i--) {
        enum atp_op op = (enum atp_op)(rand() % ATP_OP_COUNT);
        bool is_step = op == ATP_OP_RUN || op == ATP_OP_RERUN;
        uint32_t id = random_below(is_step ? steps : tensors);
        bool has_offset = op == ATP_OP_ALLOC || op == ATP_OP_EVICT || op == ATP_OP_RESTORE ||
                          (is_step && b->steps[id].workspace_bytes > 0);
        if (op == ATP_OP_RERUN && b->steps[id].phase != ATP_PHASE_FORWARD) {
            op = ATP_OP_RUN;
        }
        plan_builder_add(b, op, id, has_offset ? random_bytes() : 0);
    }
    plan_builder_seal(b);
    b->plan.alignment_bytes = UINT64_C(1) << (rand() % 12);
    b->plan.budget_bytes = random_bytes();
    b->plan.arena_bytes = random_bytes();
    b->plan.host_arena_bytes = random_bytes();
    b->plan.time_limited = rand() % 2 == 0;
    b->plan.predicted = (struct atp_predicted){.iteration_ns = random_ns(),
                                               .bound_ns = random_ns(),
                                               .compute_ns = random_ns(),
                                               .recompute_ns = random_ns(),
                                               .stall_ns = random_ns(),
                                               .peak_bytes = random_bytes(),
                                               .evicted_bytes = random_bytes(),
                                               .restored_bytes = random_bytes(),
                                               .recomputed_bytes = random_bytes()};
    return b;
}

START_TEST(reads_back_random_plans_exactly)
{
    srand(20261201);
    for (int i = 0; i < 2000; i++) {
        struct plan_builder *b = random_plan();
        expect_round_trip(&b->plan);
        plan_builder_destroy(b);
    }
}
END_TEST

START_TEST(refuses_names_that_no_file_can_carry)
{
    static const struct {
        const char *name, *message;
    } cases[] = {
        {"", "tensors[0]: the name has 0 bytes"},
        {"a\nb", "control character"},
        {"\x7F", "control character"},
        {"a\xFF", "not UTF-8"},
        {"\xC3", "not UTF-8"},
        {"\xC0\x80", "not UTF-8"},
        {"\xED\xA0\x80", "not UTF-8"},
        {"\xF4\x90\x80\x80", "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_builder *b = tiny(cases[i].name, "f");
        struct atp_error err = {0};
        ck_assert_int_eq(emit_status(&b->plan, &err), ATP_ERR_INVALID);
        ck_assert_msg(strstr(err.text, cases[i].message) != NULL, "%s", err.text);
        plan_builder_destroy(b);
    }
}
END_TEST

START_TEST(refuses_numbers_that_no_file_can_carry)
{
    struct plan_builder *b = tiny("x", "f");
    struct atp_error err = {0};
    b->plan.predicted.stall_ns = -1;
    ck_assert_int_eq(emit_status(&b->plan, &err), ATP_ERR_INVALID);
    b->plan.predicted.stall_ns = PLAN_NS_MAX + 1;
    ck_assert_int_eq(emit_status(&b->plan, &err), ATP_ERR_INVALID);
    b->plan.predicted.stall_ns = 0;
    b->plan.arena_bytes = UINT64_MAX;
    ck_assert_int_eq(emit_status(&b->plan, &err), ATP_ERR_INVALID);
    b->plan.arena_bytes = 64;
    b->program[0].id = 7;
    ck_assert_int_eq(emit_status(&b->plan, &err), ATP_ERR_INVALID);
    ck_assert_msg(strstr(err.text, "program[0]: no tensor has id 7") != NULL, "%s", err.text);
    plan_builder_destroy(b);
}
END_TEST

START_TEST(rounds_the_gap_to_the_nearest_millionth)
{
    static const struct {
        int64_t iteration, bound;
        uint64_t gap;
    } cases[] = {
        {100, 100, 0},
        {99, 100, 0},
        {0, 0, 0},
        {1, 0, PLAN_GAP_MAX},
        {3, 2, 500000},
        {4, 3, 333333},
        {5, 3, 666667},
        {2000001, 2000000, 1},
        {2000001, 2000001, 0},
        {4000001, 4000000, 0},
        {PLAN_NS_MAX, PLAN_NS_MAX - 1, 0},
        {PLAN_NS_MAX, PLAN_NS_MAX / 2, 1000000},
        {PLAN_NS_MAX, 1, PLAN_GAP_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(plan_gap_millionths(cases[i].iteration, cases[i].bound), cases[i].gap);
    }
}
END_TEST

static int count_files(const char *directory)
{
    int count = 0;
    DIR *dir = opendir(directory);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

struct scratch {
    char directory[64], path[96], link[96];
};

static struct scratch make_scratch(void)
{
    struct scratch s = {.directory = "/tmp/atp-emit-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(s.directory));
    (void)snprintf(s.path, sizeof(s.path), "%s/plan.yaml", s.directory);
    (void)snprintf(s.link, sizeof(s.link), "%s/link.yaml", s.directory);
    return s;
}

static void remove_scratch(const struct scratch *s)
{
    (void)unlink(s->path);
    (void)unlink(s->link);
    ck_assert_int_eq(rmdir(s->directory), 0);
}

START_TEST(replaces_a_file_at_once_and_leaves_no_other)
{
    struct scratch s = make_scratch();
    struct plan_builder *b = tiny("x", "f");
    struct atp_error err = {0};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(plan_emit_file(&b->plan, s.path, &err) == ATP_OK, "%s", err.text);
        ck_assert_int_eq(count_files(s.directory), 1);
    }
    struct atp_plan_file *file;
    ck_assert_msg(atp_plan_read(s.path, &file, &err) == ATP_OK, "%s", err.text);
    ck_assert_ptr_null(plan_difference(&b->plan, &file->plan));
    atp_plan_file_destroy(file);
    plan_builder_destroy(b);
    remove_scratch(&s);
}
END_TEST

START_TEST(leaves_the_old_file_alone_when_the_plan_cannot_be_written)
{
    struct scratch s = make_scratch();
    struct plan_builder *b = tiny("x", "f");
    struct atp_error err = {0};
    struct stat before, after;
    ck_assert_int_eq(plan_emit_file(&b->plan, s.path, &err), ATP_OK);
    ck_assert_int_eq(stat(s.path, &before), 0);
    b->plan.predicted.stall_ns = -1;
    ck_assert_int_eq(plan_emit_file(&b->plan, s.path, &err), ATP_ERR_INVALID);
    ck_assert_int_eq(count_files(s.directory), 1);
    ck_assert_int_eq(stat(s.path, &after), 0);
    ck_assert(before.st_ino == after.st_ino && before.st_size == after.st_size);
    plan_builder_destroy(b);
    remove_scratch(&s);
}
END_TEST

START_TEST(writes_through_a_symbolic_link)
{
    struct scratch s = make_scratch();
    struct plan_builder *b = tiny("x", "f");
    struct atp_error err = {0};
    struct stat info;
    ck_assert_int_eq(plan_emit_file(&b->plan, s.path, &err), ATP_OK);
    ck_assert_int_eq(symlink("plan.yaml", s.link), 0);
    ck_assert_int_eq(plan_emit_file(&b->plan, s.link, &err), ATP_OK);
    ck_assert_int_eq(lstat(s.link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    plan_builder_destroy(b);
    remove_scratch(&s);
}
END_TEST

START_TEST(reports_what_the_file_system_refuses)
{
    struct plan_builder *b = tiny("x", "f");
    struct atp_error err = {0};
    ck_assert_int_eq(plan_emit_file(&b->plan, "/nonexistent/plan.yaml", &err), ATP_ERR_IO);
    ck_assert_msg(strstr(err.text, "/nonexistent/plan.yaml") != NULL, "%s", err.text);
    ck_assert_int_eq(plan_emit_file(&b->plan, "/tmp", &err), ATP_ERR_IO);
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(plan_emit_file(&b->plan, "/dev/full", &err), ATP_ERR_IO);
    }
    plan_builder_destroy(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_emit");
    TCase *cases = tcase_create("plan_emit");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, writes_these_bytes_for_this_plan);
    tcase_add_test(cases, reads_back_a_plan_with_every_instruction);
    tcase_add_test(cases, reads_back_a_certificate);
    tcase_add_test(cases, refuses_a_certificate_that_no_file_can_carry);
    tcase_add_loop_test(cases, reads_back_odd_names_exactly, 0,
                        (int)(sizeof(ODD_NAMES) / sizeof(ODD_NAMES[0])));
    tcase_add_test(cases, quotes_names_only_where_yaml_could_take_them_for_more);
    tcase_add_test(cases, reads_back_random_plans_exactly);
    tcase_add_test(cases, refuses_names_that_no_file_can_carry);
    tcase_add_test(cases, refuses_numbers_that_no_file_can_carry);
    tcase_add_test(cases, rounds_the_gap_to_the_nearest_millionth);
    tcase_add_test(cases, replaces_a_file_at_once_and_leaves_no_other);
    tcase_add_test(cases, leaves_the_old_file_alone_when_the_plan_cannot_be_written);
    tcase_add_test(cases, writes_through_a_symbolic_link);
    tcase_add_test(cases, reports_what_the_file_system_refuses);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
