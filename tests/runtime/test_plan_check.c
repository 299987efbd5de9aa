/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "assert_error.h"
#include "plan_builder.h"

#include <stdlib.h>

static struct plan_builder *rich;

static void set_up(void)
{
    rich = plan_builder_rich();
}

static void tear_down(void)
{
    plan_builder_destroy(rich);
}

START_TEST(accepts_a_plan_with_every_instruction)
{
    struct atp_error err = {0};
    assert_ok(atp_plan_check(&rich->plan, &err), err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_check");
    TCase *tests = tcase_create("plan_check");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, accepts_a_plan_with_every_instruction);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
