/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "slopes.h"

#include <check.h>
#include <math.h>

/* The loss with parameter `at` moved by `delta`. */
static double loss_at(const struct slopes *s, uint64_t at, float delta)
{
    float kept = s->values[at];
    s->values[at] += delta;
    double value = s->loss(s->ctx);
    s->values[at] = kept;
    return value;
}

void slopes_assert(const struct slopes *s, const float *gradients, uint64_t begin, uint64_t count,
                   const char *name)
{
    uint64_t at = begin;
    for (uint64_t i = begin; i < begin + count; i++) {
        at = fabsf(gradients[i]) > fabsf(gradients[at]) ? i : at;
    }
    double slope = (loss_at(s, at, s->delta) - loss_at(s, at, -s->delta)) / (2 * (double)s->delta);
    double gradient = (double)gradients[at];
    ck_assert_msg(fabs(slope) > s->least_slope, "%s: parameter %d does not matter", name, (int)at);
    ck_assert_msg(fabs(slope - gradient) < s->absolute + s->relative * fabs(slope),
                  "%s: parameter %d: slope %g, gradient %g", name, (int)at, slope, gradient);
}
