/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text -> profile: nothing crashes, every refusal has a place or says why it has none, and what is
 * accepted is a model that passes atp_model_check and a problem, at measured batch sizes always, at
 * others or with an error.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "problem.h"
#include "profile.h"

static void insist(bool is_true, const char *what, const struct atp_error *err)
{
    if (!is_true) {
        (void)fprintf(stderr, "fuzz_profile: %s: %u:%u: %s\n", what, err->line, err->column,
                      err->text);
        abort();
    }
}

static void use(const struct profile_file *file, uint64_t batch, bool is_measured,
                struct region *region)
{
    struct profile profile;
    struct problem problem;
    struct atp_error err = {0};
    if (profile_at_batch(file, batch, region, &profile, &err) != ATP_OK) {
        insist(!is_measured && err.text[0] != '\0', "a measured batch size fails", &err);
        return;
    }
    insist(profile.scaled == !is_measured, "scaled is wrong", &err);
    insist(atp_model_check(&profile.model, NULL, &err) == ATP_OK, "the model is refused", &err);
    uint64_t alignment = problem_alignment(&profile, region);
    insist(problem_build(&profile, UINT64_MAX / 2, alignment, region, &problem, &err) == ATP_OK,
           "no problem is built", &err);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
    struct region *region = region_create();
    const struct profile_file *file;
    struct atp_error err = {0};
    if (profile_parse((const char *)data, size, region, &file, &err) != ATP_OK) {
        insist(file == NULL && err.text[0] != '\0', "a refusal without words", &err);
        region_destroy(region);
        return false;
    }
    uint32_t count;
    const uint64_t *sizes = profile_batch_sizes(file, &count);
    for (uint32_t b = 0; b < count; b++) {
        use(file, sizes[b], true, region);
    }
    use(file, sizes[0] > 1 ? sizes[0] - 1 : sizes[count - 1] + 1, false, region);
    use(file, sizes[count - 1] + 1 + sizes[count - 1] / 3, false, region);
    region_destroy(region);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_one(data, size);
    return 0;
}
