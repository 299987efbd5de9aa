/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan and its profile as one HTML page. Only a plan that passes its check is drawn: a page that
 * people pass on must be true.
 */
#include "command.h"

#include "baseline.h"
#include "command_input.h"
#include "out_file.h"
#include "profile.h"
#include "report_curve.h"
#include "report_write.h"

#include <atp/plan_yaml.h>

#include <stdio.h>

/* EXIT_CODE_NO with the first finding; `atp-plan check` has all of them, with their lines. */
static enum exit_code check_plan(const struct options *options, const struct atp_plan *plan,
                                 const struct profile *profile)
{
    struct atp_error err;
    enum atp_status status = atp_plan_check(plan, &err);
    if (status == ATP_OK) {
        status = atp_model_compare(&plan->model, "the plan", &profile->model, "the profile", &err);
    }
    if (status == ATP_OK && plan->resident_bytes != profile->resident_bytes) {
        status = ATP_ERR_MISMATCH;
        (void)snprintf(err.text, sizeof(err.text),
                       "resident_bytes: the plan and the profile differ");
    }
    if (status == ATP_OK) {
        status = atp_plan_check_predicted(plan, &profile->clock, &err);
    }
    if (status == ATP_OK) {
        return EXIT_CODE_DONE;
    }
    if (status != ATP_ERR_INVALID && status != ATP_ERR_MISMATCH) {
        return command_fail(NULL, &err);
    }
    (void)fprintf(stderr, "%s: error: %s\n", options->input, err.text);
    return EXIT_CODE_NO;
}

static enum exit_code write_page(const struct options *options, const struct report *report,
                                 struct region *region)
{
    struct out_file file;
    struct atp_error err;
    if (out_file_open(options->output, &file, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    report_write(report, region, file.stream);
    if (out_file_close(&file, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    return EXIT_CODE_DONE;
}

static enum exit_code run_report(const struct options *options, const struct atp_plan *plan,
                                 struct region *region)
{
    const struct profile_file *file = NULL;
    struct profile profile;
    struct report report;
    struct baseline_list baselines;
    struct atp_error err;
    if (command_read_profile(options, options->profile, region, &file, NULL, &err) != ATP_OK ||
        profile_at_batch(file, plan->model.batch_size, region, &profile, &err) != ATP_OK) {
        return command_fail(options->profile, &err);
    }
    enum exit_code code = check_plan(options, plan, &profile);
    if (code != EXIT_CODE_DONE) {
        return code;
    }
    if (report_build(plan, &profile, region, &report, &err) != ATP_OK ||
        report_curve_build(plan, file, region, &report.curve, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (!options->no_policies) {
        baseline_list_build(&report.problem, region, &baselines);
        report.baselines = &baselines;
    }
    return write_page(options, &report, region);
}

enum exit_code command_report(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct atp_plan_file *file = NULL;
    if (options->output != NULL && (out_file_is_same(options->input, options->output) ||
                                    out_file_is_same(options->profile, options->output))) {
        (void)fputs("atp-plan: -o: the page would replace its plan or profile\n", stderr);
        return EXIT_CODE_USAGE;
    }
    if (atp_plan_read(options->input, &file, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    enum exit_code code = run_report(options, &file->plan, region);
    atp_plan_file_destroy(file);
    return code;
}
