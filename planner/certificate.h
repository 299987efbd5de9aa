/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why a bound is true: a grid and one multiplier per row of the relaxed selection. Whoever has them
 * and the problem can prove the bound again without a solver. Any numbers prove something true;
 * good ones, the solver's, prove something useful.
 */
#ifndef CERTIFICATE_H
#define CERTIFICATE_H

#include "lp.h"
#include "relax_model.h"

struct certificate {
    struct relax_grid grid;
    uint32_t row_count;
    double *multipliers; /* one per row, in the order of relax_rows_build */
};

/* The bound that the multipliers prove for the linear program: never above its optimum, however
 * the arithmetic rounds. -INFINITY when a multiplier is not a finite number. */
double certificate_value(const struct lp *lp, const double *multipliers, struct region *region);

/* Rebuilds the rows and proves the bound, compute_ns at least. ATP_ERR_INVALID when the certificate
 * does not fit the problem: steps out of range or order, another number of rows. */
ATP_MUST_USE enum atp_status certificate_bound(const struct problem *problem,
                                               const struct certificate *certificate,
                                               struct region *region, int64_t *out_bound_ns,
                                               struct atp_error *err);

#endif
