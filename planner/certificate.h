/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why a bound is true: a grid and one multiplier per row of the relaxed selection. Whoever has them
 * and the problem can prove the bound again without a solver. Any numbers prove something true;
 * good ones, the solver's, prove something useful.
 */
#ifndef CERTIFICATE_H
#define CERTIFICATE_H

#include "lp.h"
#include "relax_rows.h"

/* The multipliers are whole multiples of 2^exponent, which is this far from zero at most. */
#define CERTIFICATE_EXPONENT_MAX 256

struct certificate {
    struct relax_grid grid;
    uint32_t row_count;
    uint64_t identity; /* certificate_identity of the rows */
    int exponent;
    double *multipliers; /* one per row, in the order of relax_rows_build */
};

/* A hash of the whole linear program. Rows of another profile, budget or alignment, or of a version
 * that makes others, are told apart by it, so that a certificate that does not belong says so
 * instead of proving little. No proof rests on it. */
uint64_t certificate_identity(const struct lp *lp);

/* The certificate with the shortest multipliers, rounded from the given ones, that prove `goal_ns`;
 * with the longest where none do. Returns the bound that it proves. Borrows the grid. */
int64_t certificate_make(const struct problem *problem, const struct relax_grid *grid,
                         const struct relax_rows *rows, const double *multipliers, int64_t goal_ns,
                         struct region *region, struct certificate *out);

/* The bound that the multipliers prove for the linear program: never above its optimum, however
 * the arithmetic rounds. -INFINITY when a multiplier is not a finite number. */
double certificate_value(const struct lp *lp, const double *multipliers, struct region *region);

/* Rebuilds the rows and proves the bound, compute_ns at least. ATP_ERR_INVALID when the certificate
 * does not fit the problem: steps out of range or order, another number of rows, other rows. */
ATP_MUST_USE enum atp_status certificate_bound(const struct problem *problem,
                                               const struct certificate *certificate,
                                               struct region *region, int64_t *out_bound_ns,
                                               struct atp_error *err);

#endif
