/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * struct profile -> a profile file (version 1), for importers: the same profile gives the same
 * bytes.
 */
#ifndef PROFILE_EMIT_H
#define PROFILE_EMIT_H

#include <stdio.h>

#include "profile.h"

/* Pins and scaling are not written: importers have none. What was written is read again, so that no
 * file is left that the reader refuses: ATP_ERR_INVALID. ATP_ERR_IO when `out` cannot be written.
 */
ATP_MUST_USE enum atp_status profile_emit(const struct profile *profile, struct region *region,
                                          FILE *out, struct atp_error *err);

#endif
