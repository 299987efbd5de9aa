/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text -> plan: nothing crashes, every refusal has a place, and what is accepted is written and
 * read back as the same plan. The checker may refuse it, but must survive it.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atp/plan_yaml.h>

#include "plan_emit.h"
#include "plan_equal.h"

static void insist(bool is_true, const char *what, const struct atp_error *err)
{
    if (!is_true) {
        (void)fprintf(stderr, "fuzz_plan: %s: %u:%u: %s\n", what, err->line, err->column,
                      err->text);
        abort();
    }
}

bool fuzz_one(const uint8_t *data, size_t size)
{
    struct atp_plan_file *file, *again;
    struct atp_error err = {0};
    char *text = NULL;
    size_t text_size = 0;
    if (atp_plan_parse((const char *)data, size, &file, &err) != ATP_OK) {
        insist(file == NULL && err.line > 0 && err.column > 0 && err.text[0] != '\0',
               "a refusal without a place", &err);
        return false;
    }
    enum atp_status ignored = atp_plan_check(&file->plan, &err);
    (void)ignored;
    FILE *out = open_memstream(&text, &text_size);
    insist(out != NULL, "no memory", &err);
    insist(plan_emit(&file->plan, out, &err) == ATP_OK, "not written", &err);
    (void)fclose(out);
    insist(atp_plan_parse(text, text_size, &again, &err) == ATP_OK, "not read again", &err);
    const char *difference = plan_difference(&file->plan, &again->plan);
    insist(difference == NULL, difference != NULL ? difference : "", &err);
    atp_plan_file_destroy(again);
    atp_plan_file_destroy(file);
    free(text);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_one(data, size);
    return 0;
}
