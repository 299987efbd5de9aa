/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The readers as a program: `read_file (profile | plan) FILE`. Prints what is wrong; exit status 0:
 * accepted, 3: refused.
 */
#include <stdio.h>
#include <string.h>

#include <atp/plan_yaml.h>

#include "profile.h"

int main(int argc, char **argv)
{
    struct atp_error err = {0};
    enum atp_status status;
    if (argc != 3) {
        (void)fputs("usage: read_file (profile | plan) FILE\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "plan") == 0) {
        struct atp_plan_file *file;
        status = atp_plan_read(argv[2], &file, &err);
        atp_plan_file_destroy(file);
    } else {
        struct region *region = region_create();
        const struct profile_file *file;
        status = profile_read(argv[2], region, &file, &err);
        region_destroy(region);
    }
    if (status != ATP_OK) {
        (void)printf("%s:%u:%u: %s\n", argv[2], err.line, err.column, err.text);
        return 3;
    }
    return 0;
}
