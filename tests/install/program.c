/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Somebody else's program: a plan that is compiled in, and the same from its file.
 */
#include <stdio.h>
#include <string.h>

#include <atp/plan_yaml.h>
#include <atp/replay.h>

extern const struct atp_plan tiny_plan;

int main(int argc, char **argv)
{
    struct atp_error err = {.text = ""};
    struct atp_plan_file *file = NULL;
    if (argc != 2 || atp_plan_read(argv[1], &file, &err) != ATP_OK ||
        atp_plan_check(&tiny_plan, &err) != ATP_OK) {
        (void)fprintf(stderr, "program: %s\n", err.text);
        return 1;
    }
    int differ = memcmp(file->plan.fingerprint, tiny_plan.fingerprint, 32) != 0;
    (void)printf("%s: %s\n", tiny_plan.model.name, differ ? "two plans" : "one plan");
    atp_plan_file_destroy(file);
    return differ;
}
