/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GLPK's fatal errors call a hook that may leave by longjmp, after which only glp_free_env is
 * legal. All calls of one solve therefore happen below one setjmp, in a function without state of
 * its own.
 */
#include "solver_glpk.h"

#include "fail.h"

#include <glpk.h>
#include <setjmp.h>
#include <string.h>

/* Between looks at the stop flag. */
#define CHUNK_ITERATIONS 1000

struct solve {
    jmp_buf escape;
    glp_prob *problem;
    const struct lp *lp;
    const struct solver_options *options;
    struct solver_result *result;
    int *indices; /* scratch, one row's terms, 1-based */
    double *coefficients;
    double *sums;     /* per column */
    uint32_t *filled; /* per column: 1 + the row that filled `sums` last */
};

static int drop_output(void *info, const char *text)
{
    (void)info;
    (void)text;
    return 1;
}

static void leave(void *info)
{
    struct solve *solve = info;
    longjmp(solve->escape, 1);
}

/* Adds up repeated columns, as GLPK refuses them. Returns the number of terms. */
static int gather_row(struct solve *solve, uint32_t row)
{
    const struct lp *lp = solve->lp;
    int count = 0;
    for (size_t k = lp->rows[row].first; k < lp->rows[row + 1].first; k++) {
        uint32_t column = lp->term_columns[k];
        if (solve->filled[column] != row + 1) {
            solve->filled[column] = row + 1;
            solve->sums[column] = 0;
            solve->indices[++count] = (int)column + 1;
        }
        solve->sums[column] += lp->term_values[k];
    }
    int kept = 0;
    for (int k = 1; k <= count; k++) {
        double sum = solve->sums[solve->indices[k] - 1];
        if (sum < 0 || sum > 0) {
            solve->indices[++kept] = solve->indices[k];
            solve->coefficients[kept] = sum;
        }
    }
    return kept;
}

static void load(struct solve *solve)
{
    const struct lp *lp = solve->lp;
    glp_prob *problem = solve->problem;
    glp_set_obj_dir(problem, GLP_MIN);
    glp_add_rows(problem, (int)lp->row_count);
    glp_add_cols(problem, (int)lp->column_count);
    for (uint32_t j = 0; j < lp->column_count; j++) {
        const struct lp_column *column = &lp->columns[j];
        int type = column->upper > column->lower ? GLP_DB : GLP_FX;
        glp_set_col_bnds(problem, (int)j + 1, type, column->lower, column->upper);
        glp_set_obj_coef(problem, (int)j + 1, column->cost);
    }
    for (uint32_t i = 0; i < lp->row_count; i++) {
        const struct lp_row *row = &lp->rows[i];
        int count = gather_row(solve, i);
        glp_set_row_bnds(problem, (int)i + 1, row->equal ? GLP_FX : GLP_LO, row->rhs, row->rhs);
        glp_set_mat_row(problem, (int)i + 1, count, solve->indices, solve->coefficients);
    }
}

static void iterate(struct solve *solve)
{
    glp_prob *problem = solve->problem;
    glp_smcp control;
    glp_init_smcp(&control);
    control.msg_lev = GLP_MSG_OFF;
    control.meth = GLP_DUAL;
    while (solve->result->iterations < solve->options->iteration_limit) {
        uint64_t left = solve->options->iteration_limit - solve->result->iterations;
        control.it_lim = left < CHUNK_ITERATIONS ? (int)left : CHUNK_ITERATIONS;
        int before = glp_get_it_cnt(problem);
        int code = glp_simplex(problem, &control);
        int spent = glp_get_it_cnt(problem) - before;
        solve->result->iterations += (uint64_t)spent;
        if (code != GLP_EITLIM || spent == 0) {
            solve->result->optimal = code == 0 && glp_get_status(problem) == GLP_OPT;
            break;
        }
        if (solve->options->stop != NULL && *solve->options->stop != 0) {
            break;
        }
    }
}

static void watch(glp_tree *tree, void *info)
{
    struct solve *solve = info;
    const struct solver_options *options = solve->options;
    int total;
    glp_ios_tree_size(tree, NULL, NULL, &total);
    solve->result->nodes = (uint64_t)total;
    if ((uint64_t)total >= options->node_limit || (options->stop != NULL && *options->stop != 0)) {
        glp_ios_terminate(tree);
    }
}

static void branch(struct solve *solve)
{
    glp_prob *problem = solve->problem;
    struct solver_result *result = solve->result;
    glp_iocp control;
    for (uint32_t j = 0; j < solve->lp->column_count; j++) {
        if (solve->lp->columns[j].integer) {
            glp_set_col_kind(problem, (int)j + 1, GLP_IV);
        }
    }
    glp_init_iocp(&control);
    control.msg_lev = GLP_MSG_OFF;
    control.br_tech = GLP_BR_DTH;
    control.bt_tech = GLP_BT_BLB;
    control.mir_cuts = GLP_ON;
    control.fp_heur = GLP_ON;
    control.cb_func = watch;
    control.cb_info = solve;
    int code = glp_intopt(problem, &control);
    int status = glp_mip_status(problem);
    result->whole = (code == 0 || code == GLP_ESTOP) && (status == GLP_OPT || status == GLP_FEAS);
    result->whole_optimal = result->whole && code == 0 && status == GLP_OPT;
    for (uint32_t j = 0; j < solve->lp->column_count && result->whole; j++) {
        result->whole_values[j] = glp_mip_col_val(problem, (int)j + 1);
    }
}

static void run(struct solve *solve)
{
    solve->problem = glp_create_prob();
    load(solve);
    glp_scale_prob(solve->problem, GLP_SF_AUTO);
    iterate(solve);
    for (uint32_t j = 0; j < solve->lp->column_count; j++) {
        solve->result->values[j] = glp_get_col_prim(solve->problem, (int)j + 1);
    }
    for (uint32_t i = 0; i < solve->lp->row_count; i++) {
        solve->result->multipliers[i] = glp_get_row_dual(solve->problem, (int)i + 1);
    }
    if (solve->result->whole_values != NULL && solve->result->optimal) {
        branch(solve);
    }
    glp_delete_prob(solve->problem);
}

static enum atp_status solve_program(const struct lp *lp, const struct solver_options *options,
                                     struct region *region, struct solver_result *out_result,
                                     struct atp_error *err)
{
    if (lp->row_count == 0 || lp->column_count == 0) {
        out_result->optimal = true;
        return ATP_OK;
    }
    struct solve *solve = REGION_NEW(region, struct solve, 1);
    solve->lp = lp;
    solve->options = options;
    solve->result = out_result;
    solve->indices = REGION_NEW(region, int, (size_t)lp->column_count + 1);
    solve->coefficients = REGION_NEW(region, double, (size_t)lp->column_count + 1);
    solve->sums = REGION_NEW(region, double, lp->column_count);
    solve->filled = REGION_NEW(region, uint32_t, lp->column_count);
    glp_term_hook(drop_output, NULL);
    if (setjmp(solve->escape) != 0) {
        glp_free_env();
        return atp_fail(err, ATP_ERR_INTERNAL, "GLPK gave up on a program of %u rows, %u columns",
                        lp->row_count, lp->column_count);
    }
    glp_error_hook(leave, solve);
    run(solve);
    glp_error_hook(NULL, NULL);
    glp_term_hook(NULL, NULL);
    glp_free_env();
    return ATP_OK;
}

enum atp_status solver_solve(const struct lp *lp, const struct solver_options *options,
                             struct region *region, struct solver_result *out_result,
                             struct atp_error *err)
{
    *out_result = (struct solver_result){
        .values = REGION_NEW(region, double, lp->column_count),
        .multipliers = REGION_NEW(region, double, lp->row_count),
    };
    return solve_program(lp, options, region, out_result, err);
}

enum atp_status solver_solve_whole(const struct lp *lp, const struct solver_options *options,
                                   struct region *region, struct solver_result *out_result,
                                   struct atp_error *err)
{
    *out_result = (struct solver_result){
        .values = REGION_NEW(region, double, lp->column_count),
        .whole_values = REGION_NEW(region, double, lp->column_count),
        .multipliers = REGION_NEW(region, double, lp->row_count),
    };
    return solve_program(lp, options, region, out_result, err);
}
