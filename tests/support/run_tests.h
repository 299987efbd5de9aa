/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The `main` of a test program:
 *
 *     int main(void)
 *     {
 *         const TTest *const tests[] = {says_one_thing, says_another};
 *         return RUN_TESTS("noun", tests, set_up, tear_down);
 *     }
 */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/* Set-up and tear-down may be NULL. Each test may take five minutes: sanitizers are slow. */
#define RUN_TESTS(name, tests, set_up, tear_down)                                                  \
    run_tests((name), (tests), sizeof(tests) / sizeof((tests)[0]), (set_up), (tear_down))

static inline int run_tests(const char *name, const TTest *const *tests, size_t count,
                            void (*set_up)(void), void (*tear_down)(void))
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    for (size_t i = 0; i < count; i++) {
        tcase_add_test(cases, tests[i]);
    }
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
