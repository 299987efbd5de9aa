/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Arguments -> a command -> an exit code.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum exit_code run_command(const struct options *options)
{
    struct region *region = region_create();
    enum exit_code code = EXIT_CODE_INTERNAL;
    switch (options->command) {
    case COMMAND_SOLVE:
        code = command_solve(options, region);
        break;
    case COMMAND_CHECK:
        code = command_check(options, region);
        break;
    case COMMAND_SHOW:
        code = command_show(options, region);
        break;
    case COMMAND_COMPARE:
        code = command_compare(options, region);
        break;
    case COMMAND_SWEEP:
        code = command_sweep(options, region);
        break;
    case COMMAND_TRACE:
        code = command_trace(options, region);
        break;
    case COMMAND_DIFF:
        code = command_diff(options, region);
        break;
    case COMMAND_EMIT:
        code = command_emit(options);
        break;
    case COMMAND_PEAK:
        code = command_peak(options, region);
        break;
    case COMMAND_REPORT:
        code = command_report(options, region);
        break;
    case COMMAND_MERGE:
        code = command_merge(options, region);
        break;
    case COMMAND_IMPORT:
        code = command_import(options, region);
        break;
    case COMMAND_NONE:
        break;
    }
    region_destroy(region);
    return code;
}

/* What stood in a buffer until now may still not fit the disk. */
static enum exit_code close_stdout(enum exit_code code)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return code;
    }
    if (code != EXIT_CODE_FILE) {
        (void)fprintf(stderr, "atp-plan: cannot write standard output: %s\n", strerror(errno));
    }
    return code == EXIT_CODE_DONE ? EXIT_CODE_FILE : code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct atp_error err;
    enum exit_code code = EXIT_CODE_DONE;
    if (argc < 2) {
        options_help(COMMAND_NONE, stderr);
        return EXIT_CODE_USAGE;
    }
    if (options_parse(argc, argv, &options, &err) != ATP_OK) {
        (void)fprintf(stderr, "atp-plan: %s\nTry atp-plan%s%s --help.\n", err.text,
                      options.command != COMMAND_NONE ? " " : "",
                      options.command != COMMAND_NONE ? options_command_name(options.command) : "");
        return err.status == ATP_ERR_INTERNAL ? (int)EXIT_CODE_INTERNAL : (int)EXIT_CODE_USAGE;
    }
    if (options.help) {
        options_help(options.command, stdout);
    } else if (options.version) {
        (void)puts("atp-plan " ATP_VERSION);
    } else {
        code = run_command(&options);
    }
    return (int)close_stdout(code);
}
