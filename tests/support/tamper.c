/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tamper.h"

#include <float.h>
#include <math.h>
#include <string.h>

void tamper_text(struct random *random, const char *text, char *out)
{
    size_t length = strlen(text), at = random_below(random, (uint32_t)length);
    memcpy(out, text, length + 1);
    switch (random_below(random, 4)) {
    case 0:
    case 1:
        for (; at > 0 && (out[at] < '0' || out[at] > '9'); at--) {
        }
        out[at] = (char)('0' + random_below(random, 10));
        break;
    case 2: /* blanks vanish, numbers grow, marks and signs come and go */
        out[at] = "-*mc 0159"[random_below(random, 9)];
        break;
    default:
        memmove(out + at, out + at + 1, length - at);
        break;
    }
}

static double odd_multiplier(struct random *random)
{
    static const double odd[] = {0,        -0.0, NAN,    INFINITY, -INFINITY, DBL_MAX,
                                 -DBL_MAX, 1e9,  -1e300, DBL_MIN,  0x1p-1074, -0x1p-1074};
    return odd[random_below(random, sizeof(odd) / sizeof(odd[0]))];
}

void tamper_numbers(struct random *random, const struct certificate *certificate,
                    struct region *region, struct certificate *out)
{
    *out = *certificate;
    out->multipliers = REGION_NEW(region, double, out->row_count);
    out->grid.points = REGION_NEW(region, struct relax_checkpoint, out->grid.count);
    memcpy(out->multipliers, certificate->multipliers, out->row_count * sizeof(double));
    memcpy(out->grid.points, certificate->grid.points, out->grid.count * sizeof(*out->grid.points));
    uint32_t count = 1 + random_below(random, out->row_count), odd = random_chance(random, 30);
    for (uint32_t i = 0; i < count; i++) {
        double factor = (double)random_below(random, 8000) / 2000 - 1;
        uint32_t row = random_below(random, out->row_count);
        out->multipliers[row] *= factor;
        if (random_chance(random, 10)) {
            out->multipliers[row] = odd ? odd_multiplier(random) : factor;
        }
    }
    if (random_chance(random, 30)) {
        struct relax_checkpoint *point = &out->grid.points[random_below(random, out->grid.count)];
        point->memory ^= random_chance(random, 70);
        point->cut ^= random_chance(random, 50);
    }
}

void tamper_grid(struct random *random, uint32_t step_count, struct region *region,
                 struct relax_grid *out)
{
    uint32_t chance = 20 + random_below(random, 81), cuts = random_below(random, 101);
    *out = (struct relax_grid){.points = REGION_NEW(region, struct relax_checkpoint, step_count)};
    for (uint32_t s = 0; s < step_count; s++) {
        if (random_chance(random, chance)) {
            out->points[out->count++] = (struct relax_checkpoint){s, random_chance(random, 70),
                                                                  random_chance(random, cuts)};
        }
    }
}

enum atp_status tamper_identity(const struct problem *problem, struct region *region,
                                struct certificate *certificate)
{
    struct relax_model model;
    struct relax_rows rows;
    const struct relax_grid *grid = &certificate->grid;
    for (uint32_t k = 0; k < grid->count; k++) {
        if ((k > 0 && grid->points[k].step <= grid->points[k - 1].step) ||
            grid->points[k].step >= problem->model->step_count) {
            return ATP_ERR_INVALID;
        }
    }
    relax_model_build(problem, grid, region, &model);
    relax_rows_build(&model, region, &rows);
    certificate->identity = certificate_identity(&rows.lp);
    return ATP_OK;
}
