/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _XOPEN_SOURCE 700 /* realpath; NOLINT(bugprone-reserved-identifier) */

#include "out_file.h"

#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES_MAX 100

static enum atp_status fail_file(struct atp_error *err, const char *what, const char *path)
{
    return atp_fail(err, ATP_ERR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

static void release(struct out_file *file)
{
    free(file->path);
    free(file->temporary);
    *file = (struct out_file){0};
}

/* Not mkstemp: its files are readable by their owner only, and the umask cannot be asked for
 * without changing it. */
static int create_beside(struct out_file *file)
{
    size_t size = strlen(file->path) + 48;
    file->temporary = malloc(size);
    for (int i = 0; file->temporary != NULL && i < TRIES_MAX; i++) {
        (void)snprintf(file->temporary, size, "%s.%ld-%d.tmp", file->path, (long)getpid(), i);
        int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

enum atp_status out_file_open(const char *path, struct out_file *out_file, struct atp_error *err)
{
    struct stat info;
    if (path == NULL) {
        *out_file = (struct out_file){.stream = stdout};
        return ATP_OK;
    }
    bool exists = stat(path, &info) == 0;
    bool in_place = exists && !S_ISREG(info.st_mode);
    *out_file = (struct out_file){.path = exists ? realpath(path, NULL) : strdup(path)};
    if (out_file->path == NULL) {
        return fail_file(err, "write", path);
    }
    int fd = in_place ? open(out_file->path, O_WRONLY | O_CLOEXEC) : create_beside(out_file);
    if (fd >= 0) {
        out_file->stream = fdopen(fd, "wb");
    }
    if (out_file->stream == NULL) {
        (void)fail_file(err, "write", path);
        if (fd >= 0) {
            (void)close(fd);
        }
        if (fd >= 0 && out_file->temporary != NULL) {
            (void)unlink(out_file->temporary);
        }
        release(out_file);
        return ATP_ERR_IO;
    }
    return ATP_OK;
}

/* The rename is on the disk once the directory is; not every file system can be asked for that. */
static void flush_directory(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        slash[slash == path] = '\0';
    }
    int fd = open(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

enum atp_status out_file_close(struct out_file *file, struct atp_error *err)
{
    if (file->path == NULL) {
        return ATP_OK;
    }
    bool is_whole = fflush(file->stream) == 0 && !ferror(file->stream);
    if (file->temporary != NULL) {
        is_whole = is_whole && fsync(fileno(file->stream)) == 0;
    }
    is_whole = fclose(file->stream) == 0 && is_whole;
    if (file->temporary != NULL) {
        is_whole = is_whole && rename(file->temporary, file->path) == 0;
    }
    enum atp_status status = is_whole ? ATP_OK : fail_file(err, "write", file->path);
    if (file->temporary != NULL && !is_whole) {
        (void)unlink(file->temporary);
    } else if (file->temporary != NULL) {
        flush_directory(file->path);
    }
    release(file);
    return status;
}

void out_file_drop(struct out_file *file)
{
    if (file->path == NULL) {
        return;
    }
    (void)fclose(file->stream);
    if (file->temporary != NULL) {
        (void)unlink(file->temporary);
    }
    release(file);
}

enum atp_status out_file_end(struct out_file *file, enum atp_status written, struct atp_error *err)
{
    if (written != ATP_OK) {
        out_file_drop(file);
        return written;
    }
    return out_file_close(file, err);
}

enum atp_status out_file_probe(const char *path, struct atp_error *err)
{
    struct stat info;
    struct out_file file;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return ATP_OK;
    }
    ATP_TRY(out_file_open(path, &file, err));
    out_file_drop(&file);
    return ATP_OK;
}

bool out_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
