/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Recordings of one model at several batch sizes -> one profile.
 */
#include "command.h"

#include "out_file.h"
#include "profile_emit.h"
#include "profile_fit.h"
#include "profile_merge.h"

#include <stdio.h>

enum exit_code command_merge(const struct options *options, struct region *region)
{
    struct profile_merge_input inputs[OPTIONS_INPUTS_MAX];
    struct profile_merge_report report;
    struct profile_fit fit;
    const struct profile_file *merged;
    struct atp_error err = {0};
    uint32_t at = 0;
    for (uint32_t i = 0; i < options->input_count; i++) {
        inputs[i].path = options->inputs[i];
        if (options->output != NULL && out_file_is_same(inputs[i].path, options->output)) {
            (void)fprintf(stderr, "atp-plan: -o: the profile would replace %s\n", inputs[i].path);
            return EXIT_CODE_USAGE;
        }
        if (profile_read(inputs[i].path, region, &inputs[i].file, &err) != ATP_OK) {
            return command_fail(inputs[i].path, &err);
        }
    }
    if (profile_merge(inputs, options->input_count, region, &merged, &report, &at, &err) !=
        ATP_OK) {
        return command_fail(inputs[at].path, &err);
    }
    profile_fit_build(merged, region, &fit);
    if (!options->quiet) {
        profile_fit_warn(merged, &fit, options->output != NULL ? options->output : "merged");
    }
    enum atp_status status = profile_emit_to(merged, options->output, &err);
    return status == ATP_OK ? EXIT_CODE_DONE : command_fail(NULL, &err);
}
