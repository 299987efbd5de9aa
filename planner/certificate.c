/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * For rows a_i x >= b_i with multipliers y_i >= 0 (any sign where the row is an equation) and every
 * x in its box, cost x >= y b + sum over columns of min over the box of (cost - y a) x.
 *
 * Rounding: a sum of n products, each with one rounding and added one by one in double arithmetic,
 * is off by at most n 2^-53 / (1 - n 2^-53) times the sum of their absolute values, and that sum
 * itself is computed with the same relative error. ERROR_UNIT = 2^-52 per term and two more terms
 * cover both, for any n below 2^40. Underflow adds at most 2^-1074 per term, covered by the
 * smallest normal number.
 */
#include "certificate.h"

#include "fail.h"
#include "relax_rows.h"

#include <float.h>
#include <math.h>

#define ERROR_UNIT 0x1p-52

/* A sum with a bound on how far off it is. */
struct careful_sum {
    double sum, absolute, terms;
};

static void add_product(struct careful_sum *sum, double a, double b)
{
    double product = a * b;
    sum->sum += product;
    sum->absolute += fabs(product);
    sum->terms += 1;
}

static double off_by(const struct careful_sum *sum)
{
    return (sum->terms + 2) * ERROR_UNIT * sum->absolute + DBL_MIN;
}

/* Least value of slope x over [lower, upper] for any slope in [low, high]: at a corner. */
static double least_product(double low, double high, double lower, double upper)
{
    double a = fmin(low * lower, low * upper), b = fmin(high * lower, high * upper);
    return fmin(a, b);
}

double certificate_value(const struct lp *lp, const double *multipliers, struct region *region)
{
    struct region_mark mark = region_mark(region);
    struct careful_sum *slopes = REGION_NEW(region, struct careful_sum, lp->column_count);
    struct careful_sum total = {0, 0, 0};
    for (uint32_t j = 0; j < lp->column_count; j++) {
        add_product(&slopes[j], lp->columns[j].cost, 1);
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        double y = multipliers[i];
        if (!isfinite(y)) {
            region_reset(region, mark);
            return -INFINITY;
        }
        if (!lp->rows[i].equal && y < 0) {
            continue;
        }
        add_product(&total, y, lp->rows[i].rhs);
        for (size_t k = lp->rows[i].first; k < lp->rows[i + 1].first; k++) {
            add_product(&slopes[lp->term_columns[k]], -y, lp->term_values[k]);
        }
    }
    for (uint32_t j = 0; j < lp->column_count; j++) {
        double off = off_by(&slopes[j]);
        /* The corner products round once more each; the sum's own bound counts that. */
        add_product(&total, 1,
                    least_product(nextafter(slopes[j].sum - off, -INFINITY),
                                  nextafter(slopes[j].sum + off, INFINITY), lp->columns[j].lower,
                                  lp->columns[j].upper));
    }
    region_reset(region, mark);
    double value = nextafter(total.sum - 2 * off_by(&total), -INFINITY);
    return isfinite(value) ? value : -INFINITY;
}

static enum atp_status check_grid(const struct problem *problem, const struct relax_grid *grid,
                                  struct atp_error *err)
{
    for (uint32_t k = 0; k < grid->count; k++) {
        if (grid->points[k].step >= problem->model->step_count ||
            (k > 0 && grid->points[k].step <= grid->points[k - 1].step)) {
            return atp_fail(err, ATP_ERR_INVALID,
                            "certificate: checkpoint %u is step %u, expected ascending steps below "
                            "%u",
                            k, grid->points[k].step, problem->model->step_count);
        }
    }
    return ATP_OK;
}

enum atp_status certificate_bound(const struct problem *problem,
                                  const struct certificate *certificate, struct region *region,
                                  int64_t *out_bound_ns, struct atp_error *err)
{
    struct relax_model model;
    struct relax_rows rows;
    *out_bound_ns = problem->compute_ns;
    ATP_TRY(check_grid(problem, &certificate->grid, err));
    if (certificate->grid.count == 0) {
        return ATP_OK;
    }
    relax_model_build(problem, &certificate->grid, region, &model);
    relax_rows_build(&model, region, &rows);
    if (rows.lp.row_count != certificate->row_count) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "certificate: %u multipliers, expected %u, one per row",
                        certificate->row_count, rows.lp.row_count);
    }
    *out_bound_ns = relax_bound_ns(&rows, problem,
                                   certificate_value(&rows.lp, certificate->multipliers, region));
    return ATP_OK;
}
