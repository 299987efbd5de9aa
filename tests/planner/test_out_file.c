/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "out_file.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/atp-out-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/file", folder);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static int count_files(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

static void open_it(struct out_file *file)
{
    struct atp_error err = {0};
    ck_assert_msg(out_file_open(path, file, &err) == ATP_OK, "%s", err.text);
}

START_TEST(appears_under_its_name_when_it_is_closed)
{
    struct out_file file;
    struct atp_error err = {0};
    struct stat info;
    mode_t mask = umask(022);
    open_it(&file);
    (void)fputs("hello", file.stream);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_msg(out_file_close(&file, &err) == ATP_OK, "%s", err.text);
    (void)umask(mask);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, 5);
    ck_assert_int_eq(info.st_mode & 0777, 0644);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(leaves_nothing_when_it_is_dropped)
{
    struct out_file file;
    open_it(&file);
    (void)fputs("hello", file.stream);
    out_file_drop(&file);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(leaves_nothing_when_it_cannot_be_renamed)
{
    struct out_file file;
    struct atp_error err = {0};
    open_it(&file);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(out_file_close(&file, &err), ATP_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(leaves_nothing_when_the_disk_is_full)
{
    struct out_file file;
    struct atp_error err = {0};
    const struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};
    (void)signal(SIGXFSZ, SIG_IGN);
    open_it(&file);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 50; i++) {
        (void)fputs("hello", file.stream);
    }
    ck_assert_int_eq(out_file_close(&file, &err), ATP_ERR_IO);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(two_writers_do_not_meet)
{
    struct out_file first, second;
    struct atp_error err = {0};
    open_it(&first);
    open_it(&second);
    (void)fputs("first", first.stream);
    (void)fputs("second", second.stream);
    ck_assert_int_eq(out_file_close(&first, &err), ATP_OK);
    ck_assert_int_eq(out_file_close(&second, &err), ATP_OK);
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, 6);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_probe_leaves_nothing)
{
    struct atp_error err = {0};
    ck_assert_int_eq(out_file_probe(path, &err), ATP_OK);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(out_file_probe("/nonexistent/file", &err), ATP_ERR_IO);
    ck_assert_int_eq(out_file_probe("/dev/null", &err), ATP_OK);
}
END_TEST

START_TEST(ends_as_its_writer_did)
{
    struct out_file file;
    struct atp_error err = {0};
    open_it(&file);
    ck_assert_int_eq(out_file_end(&file, ATP_ERR_INVALID, &err), ATP_ERR_INVALID);
    ck_assert_int_eq(count_files(), 0);
    open_it(&file);
    ck_assert_int_eq(out_file_end(&file, ATP_OK, &err), ATP_OK);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(leaves_standard_output_open)
{
    struct out_file file;
    struct atp_error err = {0};
    ck_assert_int_eq(out_file_open(NULL, &file, &err), ATP_OK);
    ck_assert_ptr_eq(file.stream, stdout);
    ck_assert_int_eq(out_file_end(&file, ATP_ERR_INVALID, &err), ATP_ERR_INVALID);
    ck_assert_int_eq(out_file_open(NULL, &file, &err), ATP_OK);
    ck_assert_int_eq(out_file_close(&file, &err), ATP_OK);
    ck_assert_int_ge(fprintf(stdout, "#\n"), 0);
    ck_assert_int_eq(fflush(stdout), 0);
}
END_TEST

START_TEST(knows_a_file_by_two_names)
{
    struct out_file file;
    char other[128];
    (void)snprintf(other, sizeof(other), "%s/./file", folder);
    ck_assert(!out_file_is_same(path, other));
    open_it(&file);
    ck_assert_int_eq(out_file_close(&file, NULL), ATP_OK);
    ck_assert(out_file_is_same(path, other));
    ck_assert(!out_file_is_same(path, "/dev/null"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("out_file");
    TCase *cases = tcase_create("out_file");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, appears_under_its_name_when_it_is_closed);
    tcase_add_test(cases, leaves_nothing_when_it_is_dropped);
    tcase_add_test(cases, leaves_nothing_when_it_cannot_be_renamed);
    tcase_add_test(cases, leaves_nothing_when_the_disk_is_full);
    tcase_add_test(cases, two_writers_do_not_meet);
    tcase_add_test(cases, a_probe_leaves_nothing);
    tcase_add_test(cases, ends_as_its_writer_did);
    tcase_add_test(cases, leaves_standard_output_open);
    tcase_add_test(cases, knows_a_file_by_two_names);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
