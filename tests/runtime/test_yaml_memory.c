/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every allocation of a reader fails once: each time it says so and leaves nothing behind (the
 * address sanitizer counts). The linker puts the functions below in place of malloc and its kin.
 */
#include <atp/plan_yaml.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__real_malloc(size_t size);                /* NOLINT(bugprone-reserved-identifier) */
void *__real_calloc(size_t count, size_t size);  /* NOLINT(bugprone-reserved-identifier) */
void *__real_realloc(void *memory, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_malloc(size_t size);                /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_calloc(size_t count, size_t size);  /* NOLINT(bugprone-reserved-identifier) */
void *__wrap_realloc(void *memory, size_t size); /* NOLINT(bugprone-reserved-identifier) */

/* Allocations before the one that fails; negative: none does. */
static long allowed = -1;

static bool fails(void)
{
    return allowed >= 0 && allowed-- == 0;
}

void *__wrap_malloc(size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) /* NOLINT(bugprone-reserved-identifier) */
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* Long enough for several blocks of nodes and for the file's buffer to grow. */
static void write_plan(int fd)
{
    FILE *out = fdopen(fd, "w");
    ck_assert_ptr_nonnull(out);
    (void)fputs("atp_plan: 1\nmodel: m\nfingerprint: \"sha256:"
                "0000000000000000000000000000000000000000000000000000000000000000\"\n"
                "batch_size: 1\nalignment_bytes: 1\nbudget_bytes: 1\nresident_bytes: 0\n"
                "arena_bytes: 1\nhost_arena_bytes: 0\n"
                "predicted: {iteration_us: 0, bound_us: 0, gap: 0, compute_us: 0, recompute_us: 0, "
                "stall_us: 0, peak_bytes: 0, evicted_bytes: 0, restored_bytes: 0, "
                "recomputed_bytes: 0}\n"
                "tensors:\n",
                out);
    for (int i = 0; i < 100; i++) {
        (void)fprintf(out, "  - {name: t%d, bytes: 1, decision: keep}\n", i);
    }
    (void)fputs("steps:\n  - {name: f, phase: forward, reads: [t1], writes: [t2, t3]}\nprogram:\n",
                out);
    for (int i = 0; i < 6000; i++) {
        (void)fputs("  - [free, t1]\n", out);
    }
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(says_that_memory_ran_out_and_leaves_nothing)
{
    char path[] = "/tmp/atp-memory-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    write_plan(fd);
    enum atp_status status = ATP_ERR_NO_MEMORY;
    long count = 0;
    for (; status == ATP_ERR_NO_MEMORY && count < 1000; count++) {
        struct atp_plan_file *file;
        struct atp_error err = {0};
        allowed = count;
        status = atp_plan_read(path, &file, &err);
        allowed = -1;
        ck_assert((status == ATP_OK) == (file != NULL));
        ck_assert(status == ATP_OK || strstr(err.text, "no memory") != NULL);
        atp_plan_file_destroy(file);
    }
    (void)unlink(path);
    ck_assert_int_eq(status, ATP_OK);
    ck_assert_int_gt(count, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("yaml_memory");
    TCase *cases = tcase_create("yaml_memory");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, says_that_memory_ran_out_and_leaves_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
