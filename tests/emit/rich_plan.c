/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rich_plan.h"

#include <stdlib.h>
#include <string.h>

static void rename_to(const char **name, const char *text)
{
    free((void *)*name);
    *name = strdup(text);
}

struct plan_builder *rich_plan_create(void)
{
    struct plan_builder *builder = plan_builder_rich();
    rename_to(&builder->plan.model.name, "odd \"\\?\?/ \xc3\xa9\x32 %s");
    rename_to(&builder->tensors[RICH_M].name, "\xe2\x82\xac"
                                              "7*/");
    rename_to(&builder->steps[RICH_F1].name, "f1 \"?\?(\" \\n");
    builder->plan.time_limited = true;
    builder->plan.predicted.bound_ns = INT64_MAX;
    builder->plan.budget_bytes = UINT64_MAX;
    atp_model_fingerprint(&builder->plan.model, builder->plan.fingerprint);
    return builder;
}
