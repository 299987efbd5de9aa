/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command.h"

#include "emit_c.h"
#include "fail.h"
#include "out_file.h"

#include <atp/plan_yaml.h>

static enum atp_status write_source(const struct options *options, const struct atp_plan *plan,
                                    struct atp_error *err)
{
    struct out_file file;
    ATP_TRY(out_file_open(options->output, &file, err));
    return out_file_end(&file, emit_c(plan, options->name, file.stream, err), err);
}

enum exit_code command_emit(const struct options *options)
{
    struct atp_error err;
    struct atp_plan_file *file = NULL;
    enum exit_code code = EXIT_CODE_DONE;
    if (options->output != NULL && out_file_is_same(options->input, options->output)) {
        (void)fputs("atp-plan: -o: the source would replace its plan\n", stderr);
        return EXIT_CODE_USAGE;
    }
    if (atp_plan_read(options->input, &file, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    enum atp_status proved = atp_plan_check(&file->plan, &err);
    if (proved != ATP_OK) {
        code = command_fail(options->input, &err);
        code = proved == ATP_ERR_INVALID ? EXIT_CODE_NO : code;
    } else if (write_source(options, &file->plan, &err) != ATP_OK) {
        code = command_fail(NULL, &err);
    }
    atp_plan_file_destroy(file);
    return code;
}
