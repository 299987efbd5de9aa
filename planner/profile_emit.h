/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A profile file as text (version 1). The same file gives the same bytes; reading them gives the
 * same file.
 */
#ifndef PROFILE_EMIT_H
#define PROFILE_EMIT_H

#include <stdio.h>

#include "profile.h"

/* Nothing is written unless the reader takes it: ATP_ERR_INVALID and others of profile_parse.
 * ATP_ERR_IO when `out` cannot be written. */
ATP_MUST_USE enum atp_status profile_emit(const struct profile_file *file, FILE *out,
                                          struct atp_error *err);

/* The same to a file, which appears under `path` only when it is complete. NULL: standard output.
 */
ATP_MUST_USE enum atp_status profile_emit_to(const struct profile_file *file, const char *path,
                                             struct atp_error *err);

#endif
