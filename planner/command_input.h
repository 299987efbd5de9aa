/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the commands that plan begin with: the profile at its batch size, and the budget in bytes.
 */
#ifndef COMMAND_INPUT_H
#define COMMAND_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "profile.h"

/* Reads options->input and resolves the budget (`out_budget_bytes` NULL: the command takes none),
 * with warnings on standard error unless -q. EXIT_CODE_DONE, or what failed has been said. A share
 * is of what the activations reach at the alignment that the plan will have, so that 100 % is what
 * keeping everything needs. */
enum exit_code command_input(const struct options *options, struct region *region,
                             struct profile *out_profile, uint64_t *out_budget_bytes);

/* The budget alone, for a profile that has been read. */
ATP_MUST_USE enum atp_status command_budget(const struct options *options,
                                            const struct profile *profile, struct region *region,
                                            uint64_t *out_bytes, struct atp_error *err);

/* Reads a profile, and puts the device that the options name (--d2h, --h2d, --memory) in place of
 * its own. `out_differs`, NULL when not asked, is set when that is another: a plan does not tell,
 * so that it is to be said. */
ATP_MUST_USE enum atp_status command_read_profile(const struct options *options, const char *path,
                                                  struct region *region,
                                                  const struct profile_file **out_file,
                                                  bool *out_differs, struct atp_error *err);

/* Warns of a device that is not the profile's, and of a budget above the device's memory. */
void command_warn_device(const struct options *options, const struct profile *profile,
                         bool is_overridden, uint64_t budget);

#endif
