/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Plans that were written as C by the planner, compiled and linked with this program, against what
 * they were written from: the rich plan in memory, and the plan file of the shipped tiny profile,
 * whose path is the argument.
 */
#include "plan_equal.h"
#include "rich_plan.h"
#include "run_tests.h"

#include <atp/plan_yaml.h>

extern const struct atp_plan rich, tiny_plan;

static const char *tiny_path;

START_TEST(says_the_same_as_the_plan_in_memory)
{
    struct plan_builder *builder = rich_plan_create();
    const char *difference = plan_difference(&rich, &builder->plan);
    ck_assert_msg(difference == NULL, "%s differs", difference);
    ck_assert_ptr_null(rich.certificate);
    plan_builder_destroy(builder);
}
END_TEST

START_TEST(says_the_same_as_the_plan_file)
{
    struct atp_plan_file *file = NULL;
    struct atp_error err;
    ck_assert_msg(atp_plan_read(tiny_path, &file, &err) == ATP_OK, "%s", err.text);
    const char *difference = plan_difference(&tiny_plan, &file->plan);
    ck_assert_msg(difference == NULL, "%s differs", difference);
    atp_plan_file_destroy(file);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        says_the_same_as_the_plan_in_memory,
        says_the_same_as_the_plan_file,
    };
    tiny_path = argc > 1 ? argv[1] : "";
    return RUN_TESTS("emit_c", tests, NULL, NULL);
}
