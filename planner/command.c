/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command.h"

#include <stdio.h>

static enum exit_code code_of(enum atp_status status)
{
    switch (status) {
    case ATP_OK:
        return EXIT_CODE_DONE;
    case ATP_ERR_INFEASIBLE:
    case ATP_ERR_LIMIT:
    case ATP_ERR_MISMATCH:
        return EXIT_CODE_NO;
    case ATP_ERR_IO:
    case ATP_ERR_SYNTAX:
    case ATP_ERR_VERSION:
    case ATP_ERR_INVALID:
        return EXIT_CODE_FILE;
    case ATP_ERR_NO_MEMORY:
    case ATP_ERR_UNSUPPORTED:
    case ATP_ERR_DEVICE:
    case ATP_ERR_STATE:
    case ATP_ERR_CALLBACK:
    case ATP_ERR_INTERNAL:
        break;
    }
    return EXIT_CODE_INTERNAL;
}

enum exit_code command_fail(const char *path, const struct atp_error *err)
{
    bool is_form = err->status == ATP_ERR_SYNTAX || err->status == ATP_ERR_VERSION ||
                   err->status == ATP_ERR_INVALID;
    if (path != NULL && err->line > 0) {
        (void)fprintf(stderr, "%s:%u:%u: %s\n", path, err->line, err->column, err->text);
    } else if (path != NULL && is_form) {
        (void)fprintf(stderr, "%s: %s\n", path, err->text);
    } else {
        (void)fprintf(stderr, "atp-plan: %s\n", err->text);
    }
    return code_of(err->status);
}
