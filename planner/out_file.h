/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A file that appears under its name only when it is complete: it is written beside it, flushed to
 * the disk and renamed. A path that exists and is no regular file (a pipe, /dev/stdout) is written
 * as it is; a symbolic link stays one.
 */
#ifndef OUT_FILE_H
#define OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include <atp/status.h>

struct out_file {
    FILE *stream;           /* to write to */
    char *path, *temporary; /* NULL: standard output */
};

/* `path` NULL is standard output, which stays open, and whose errors are left to main. ATP_ERR_IO,
 * ATP_ERR_NO_MEMORY; then there is nothing to close. */
ATP_MUST_USE enum atp_status out_file_open(const char *path, struct out_file *out_file,
                                           struct atp_error *err);

/* Completes the file. On failure (ATP_ERR_IO) what was under its name is as it was. Releases
 * everything in both cases. */
ATP_MUST_USE enum atp_status out_file_close(struct out_file *file, struct atp_error *err);

/* Removes what was written and releases everything. */
void out_file_drop(struct out_file *file);

/* Closes the file of a writer that ended with ATP_OK, drops that of another. The status of both. */
ATP_MUST_USE enum atp_status out_file_end(struct out_file *file, enum atp_status written,
                                          struct atp_error *err);

/* Would out_file_open succeed? A long search for what cannot be written then is avoided. Pipes and
 * devices are left alone: opening them may already mean something to who reads them. */
ATP_MUST_USE enum atp_status out_file_probe(const char *path, struct atp_error *err);

/* Do both paths name one file that exists? */
bool out_file_is_same(const char *a, const char *b);

#endif
