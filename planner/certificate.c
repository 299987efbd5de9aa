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

#include <float.h>
#include <math.h>
#include <string.h>

#define ERROR_UNIT 0x1p-52

/* Of the largest multiplier: tried in steps. A double has no more than the last. */
#define BITS_FIRST 12
#define BITS_STEP  4
#define BITS_LAST  52
/* Larger ones are left out: what they prove is lost, not what is true. */
#define MULTIPLIER_MAX 0x1p256

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

/* FNV-1a, a word at a time. */
static void mix(uint64_t *hash, uint64_t word)
{
    for (int i = 0; i < 8; i++) {
        *hash = (*hash ^ (word & 0xff)) * UINT64_C(0x100000001b3);
        word >>= 8;
    }
}

static void mix_number(uint64_t *hash, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof(word));
    mix(hash, word);
}

uint64_t certificate_identity(const struct lp *lp)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    mix(&hash, lp->row_count);
    mix(&hash, lp->column_count);
    for (uint32_t j = 0; j < lp->column_count; j++) {
        mix_number(&hash, lp->columns[j].lower);
        mix_number(&hash, lp->columns[j].upper);
        mix_number(&hash, lp->columns[j].cost);
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        mix(&hash, lp->rows[i].equal);
        mix_number(&hash, lp->rows[i].rhs);
        mix(&hash, lp->rows[i + 1].first);
        for (size_t k = lp->rows[i].first; k < lp->rows[i + 1].first; k++) {
            mix(&hash, lp->term_columns[k]);
            mix_number(&hash, lp->term_values[k]);
        }
    }
    return hash;
}

static bool counts(const struct lp *lp, uint32_t row, double multiplier)
{
    return fabs(multiplier) < MULTIPLIER_MAX && (lp->rows[row].equal || multiplier > 0);
}

/* What counts of each multiplier, as whole multiples of the unit. */
static void round_multipliers(const struct lp *lp, const double *multipliers, int exponent,
                              double *out)
{
    for (uint32_t i = 0; i < lp->row_count; i++) {
        double whole = counts(lp, i, multipliers[i]) ? rint(ldexp(multipliers[i], -exponent)) : 0;
        out[i] = ldexp(whole == 0 ? 0 : whole, exponent); /* no negative zero */
    }
}

int64_t certificate_make(const struct problem *problem, const struct relax_grid *grid,
                         const struct relax_rows *rows, const double *multipliers, int64_t goal_ns,
                         struct region *region, struct certificate *out)
{
    const struct lp *lp = &rows->lp;
    int64_t bound_ns = INT64_MIN;
    double largest = 0;
    int above = 0; /* all are below 2^above */
    for (uint32_t i = 0; i < lp->row_count; i++) {
        double size = counts(lp, i, multipliers[i]) ? fabs(multipliers[i]) : 0;
        largest = size > largest ? size : largest;
    }
    (void)frexp(largest, &above);
    *out = (struct certificate){
        .grid = *grid,
        .row_count = lp->row_count,
        .identity = certificate_identity(lp),
        .multipliers = REGION_NEW(region, double, lp->row_count),
    };
    for (int bits = BITS_FIRST; bits <= BITS_LAST && bound_ns < goal_ns; bits += BITS_STEP) {
        out->exponent =
            above - bits < -CERTIFICATE_EXPONENT_MAX ? -CERTIFICATE_EXPONENT_MAX : above - bits;
        round_multipliers(lp, multipliers, out->exponent, out->multipliers);
        bound_ns = relax_bound_ns(rows, problem, certificate_value(lp, out->multipliers, region));
    }
    return bound_ns;
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
    if (certificate->identity != certificate_identity(&rows.lp)) {
        return atp_fail(err, ATP_ERR_INVALID,
                        "certificate: it belongs to another profile, budget, alignment or version "
                        "of atp-plan");
    }
    *out_bound_ns = relax_bound_ns(&rows, problem,
                                   certificate_value(&rows.lp, certificate->multipliers, region));
    return ATP_OK;
}
