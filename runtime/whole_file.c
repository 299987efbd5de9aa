/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"

enum atp_status whole_file_open(struct whole_file *whole, const char *path, struct atp_error *err)
{
    size_t room = sizeof(whole->temporary);
    int length = snprintf(whole->temporary, room, "%s.%ld.tmp", path, (long)getpid());
    whole->path = path;
    if (length < 0 || (size_t)length >= room) {
        return atp_fail(err, ATP_ERR_IO, "%s: the path is too long", path);
    }
    whole->file = fopen(whole->temporary, "w");
    if (whole->file == NULL) {
        return atp_fail(err, ATP_ERR_IO, "%s: cannot create it: %s", whole->temporary,
                        strerror(errno));
    }
    return ATP_OK;
}

enum atp_status whole_file_finish(struct whole_file *whole, struct atp_error *err)
{
    bool is_whole = fflush(whole->file) == 0 && ferror(whole->file) == 0;
    int cause = errno;
    if (fclose(whole->file) != 0 && is_whole) {
        is_whole = false;
        cause = errno;
    }
    if (is_whole && rename(whole->temporary, whole->path) != 0) {
        is_whole = false;
        cause = errno;
    }
    if (!is_whole) {
        (void)remove(whole->temporary);
        return atp_fail(err, ATP_ERR_IO, "%s: cannot write it: %s", whole->path, strerror(cause));
    }
    return ATP_OK;
}

void whole_file_discard(struct whole_file *whole)
{
    (void)fclose(whole->file);
    (void)remove(whole->temporary);
}
