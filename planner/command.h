/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The commands of atp-plan. Each does all of its work and its talking, and returns the exit code.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <atp/status.h>

#include "options.h"
#include "region.h"

/* Numbers never change. */
enum exit_code {
    EXIT_CODE_DONE = 0,
    /* No plan within the budget or the time; the check failed; the plans differ. */
    EXIT_CODE_NO = 1,
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_FILE = 3, /* cannot be read or written, or is not what it should be */
    EXIT_CODE_INTERNAL = 4
};

enum exit_code command_solve(const struct options *options, struct region *region);
enum exit_code command_check(const struct options *options, struct region *region);
enum exit_code command_show(const struct options *options, struct region *region);
enum exit_code command_compare(const struct options *options, struct region *region);
enum exit_code command_merge(const struct options *options, struct region *region);
enum exit_code command_report(const struct options *options, struct region *region);
enum exit_code command_sweep(const struct options *options, struct region *region);
enum exit_code command_trace(const struct options *options, struct region *region);
enum exit_code command_diff(const struct options *options, struct region *region);
enum exit_code command_emit(const struct options *options);
enum exit_code command_peak(const struct options *options, struct region *region);
enum exit_code command_import(const struct options *options, struct region *region);

/* Writes what failed to standard error, as `FILE:LINE:COLUMN: ...` where the error has a place in
 * `path` (NULL: it has none), and gives the exit code that it means. */
enum exit_code command_fail(const char *path, const struct atp_error *err);

#endif
