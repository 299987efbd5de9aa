/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gradients of a network's parameters against differences of its loss.
 */
#ifndef SLOPES_H
#define SLOPES_H

#include <stdint.h>

struct slopes {
    double (*loss)(void *ctx); /* with the values as they are */
    void *ctx;
    float *values;             /* the parameters: moved and put back */
    float delta;               /* by which one moves, either way */
    double least_slope;        /* of a parameter that matters */
    double absolute, relative; /* how far off a gradient may be, of both together */
};

/* Of `count` parameters from `begin` on, the one with the steepest gradient: there a wrong one
 * shows best. Fails the test. */
void slopes_assert(const struct slopes *slopes, const float *gradients, uint64_t begin,
                   uint64_t count, const char *name);

#endif
