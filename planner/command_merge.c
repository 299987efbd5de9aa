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

static void say(const struct profile_file *merged, const struct profile_merge_report *report,
                const char *path, struct region *region)
{
    struct profile_fit fit;
    profile_fit_build(merged, region, &fit);
    profile_fit_print(merged, &fit, stderr);
    if (report->links_differ) {
        (void)fprintf(
            stderr,
            "%s: warning: the links differ by more than a tenth: the lowest rates and the "
            "largest latency are taken\n",
            path);
    }
    if (report->pinned_differ) {
        (void)fprintf(
            stderr, "%s: warning: the limits on pinned memory differ: the least is taken\n", path);
    }
    profile_fit_warn(merged, &fit, path, stderr);
}

enum exit_code command_merge(const struct options *options, struct region *region)
{
    struct profile_merge_input inputs[OPTIONS_INPUTS_MAX];
    struct profile_merge_report report;
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
    if (profile_emit_to(merged, options->output, &err) != ATP_OK) {
        return command_fail(NULL, &err);
    }
    if (!options->quiet) {
        say(merged, &report, options->output != NULL ? options->output : "merged", region);
    }
    return EXIT_CODE_DONE;
}
