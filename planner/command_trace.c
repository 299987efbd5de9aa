/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command.h"

#include "command_input.h"
#include "fail.h"
#include "out_file.h"
#include "profile.h"
#include "trace.h"

#include <atp/plan_yaml.h>

/* Into a file that appears when it is complete, or to standard output. */
static enum atp_status write_trace(const struct options *options, const struct atp_plan *plan,
                                   const struct atp_clock *clock, struct region *region,
                                   struct atp_error *err)
{
    struct out_file file;
    ATP_TRY(out_file_open(options->output, &file, err));
    return out_file_end(&file, trace_write(plan, clock, region, file.stream, err), err);
}

static enum exit_code trace_plan(const struct options *options, const struct atp_plan *plan,
                                 struct region *region)
{
    const struct profile_file *file = NULL;
    struct profile profile;
    struct atp_error err;
    if (command_read_profile(options, options->profile, region, &file, NULL, &err) != ATP_OK ||
        profile_at_batch(file, plan->model.batch_size, region, &profile, &err) != ATP_OK) {
        return command_fail(options->profile, &err);
    }
    if (atp_plan_check(plan, &err) != ATP_OK) {
        (void)command_fail(options->input, &err);
        return err.status == ATP_ERR_INVALID ? EXIT_CODE_NO : EXIT_CODE_INTERNAL;
    }
    if (atp_model_compare(&plan->model, "the plan", &profile.model, "the profile", &err) !=
            ATP_OK ||
        write_trace(options, plan, &profile.clock, region, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    return EXIT_CODE_DONE;
}

enum exit_code command_trace(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct atp_plan_file *file = NULL;
    if (options->output != NULL && (out_file_is_same(options->input, options->output) ||
                                    out_file_is_same(options->profile, options->output))) {
        (void)fputs("atp-plan: -o: the timeline would replace its plan or profile\n", stderr);
        return EXIT_CODE_USAGE;
    }
    if (atp_plan_read(options->input, &file, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    enum exit_code code = trace_plan(options, &file->plan, region);
    atp_plan_file_destroy(file);
    return code;
}
