/* SPDX-License-Identifier: Apache-2.0
 *
 * A text file that appears under its name only when all of it is there: it is written beside it,
 * under a temporary name, and renamed.
 */
#ifndef ATP_WHOLE_FILE_H
#define ATP_WHOLE_FILE_H

#include <limits.h>
#include <stdio.h>

#include <atp/status.h>

struct whole_file {
    const char *path; /* the caller's */
    FILE *file;
    char temporary[PATH_MAX];
};

/* ATP_ERR_IO, and then nothing is open. */
ATP_MUST_USE enum atp_status whole_file_open(struct whole_file *whole, const char *path,
                                             struct atp_error *err);
/* Either ends it. ATP_ERR_IO when something could not be written; there is no file then. */
ATP_MUST_USE enum atp_status whole_file_finish(struct whole_file *whole, struct atp_error *err);
void whole_file_discard(struct whole_file *whole);

#endif
