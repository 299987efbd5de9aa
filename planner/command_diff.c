/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Exit codes as those of diff(1): plans that differ are a no, plans that cannot be compared are bad
 * input.
 */
#include "command.h"

#include "plan_diff.h"

#include <atp/plan_yaml.h>

#include <stdio.h>

static enum exit_code diff_plans(const struct options *options, const struct atp_plan *a,
                                 const struct atp_plan *b, struct region *region)
{
    struct atp_error err;
    struct plan_diff diff;
    if (atp_model_check(&a->model, NULL, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (atp_model_check(&b->model, NULL, &err) != ATP_OK) {
        return command_fail(options->second, &err);
    }
    enum atp_status same =
        atp_model_compare(&a->model, options->input, &b->model, options->second, &err);
    if (same == ATP_ERR_NO_MEMORY) {
        return command_fail(NULL, &err);
    }
    if (same != ATP_OK && !options->force) {
        (void)fprintf(stderr,
                      "atp-plan: the plans are for different models (--force compares): "
                      "%s\n",
                      err.text);
        return EXIT_CODE_FILE;
    }
    plan_diff_build(a, b, region, &diff);
    (options->json ? plan_diff_print_json : plan_diff_print)(&diff, stdout);
    return diff.is_same ? EXIT_CODE_DONE : EXIT_CODE_NO;
}

enum exit_code command_diff(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct atp_plan_file *a = NULL, *b = NULL;
    enum exit_code code;
    if (atp_plan_read(options->input, &a, &err) != ATP_OK) {
        code = command_fail(options->input, &err);
    } else if (atp_plan_read(options->second, &b, &err) != ATP_OK) {
        code = command_fail(options->second, &err);
    } else {
        code = diff_plans(options, &a->plan, &b->plan, region);
    }
    atp_plan_file_destroy(b);
    atp_plan_file_destroy(a);
    return code;
}
