/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "peak_print.h"

#include "run_tests.h"

#include <string.h>

#define COUNT 4U

static struct peak_batch batches[COUNT];
static struct peak_policy policy;
static struct peak_policies policies;
static struct peak peak;
static bool shown[COUNT];
static char *text;

/* Batch sizes 1 to 4 within 100 bytes: one fits, one is planned, one could not be, one has no plan.
 */
static void set_up(void)
{
    memset(batches, 0, sizeof(batches));
    for (uint32_t i = 0; i < COUNT; i++) {
        batches[i] = (struct peak_batch){
            .batch_size = i + 1,
            .repeats = 1,
            .model = {.compute_ns = 1000000000,
                      .bound_ns = 1000000000 + 10000000 * (int64_t)i,
                      .limit = i == 0 ? THROUGHPUT_COMPUTE : THROUGHPUT_H2D,
                      .keep_all_bytes = UINT64_C(80) * (i + 1)},
            .bound_ns = 1000000000 + 20000000 * (int64_t)i,
            .planned = i < 3,
            .has_plan = i < 2,
            .predicted = {.iteration_ns = 1000000000 + 25000000 * (int64_t)i,
                          .evicted_bytes = UINT64_C(4000) * i},
        };
        shown[i] = true;
    }
    batches[3].model.limit = THROUGHPUT_MEMORY;
    batches[3].model.bound_ns = batches[3].bound_ns = INT64_MAX;
    policy = (struct peak_policy){.name = "greedy-size", .index = 0, .iteration_ns = 1100000000};
    policies = (struct peak_policies){.count = 1, .items = &policy, .tried_count = 3};
    peak = (struct peak){.options = {.budget_bytes = 100, .multiple = 1, .gap = 0.01},
                         .count = COUNT,
                         .batches = batches,
                         .best = 1,
                         .rival = 2,
                         .proven_gap = 0.5};
}

static void tear_down(void)
{
    free(text);
    text = NULL;
}

static const char *print(void (*how)(const struct peak_findings *, FILE *))
{
    const struct peak_findings findings = {"net", &peak, &policies, shown};
    size_t size = 0;
    free(text);
    FILE *stream = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(stream);
    how(&findings, stream);
    ck_assert_int_eq(fclose(stream), 0);
    return text;
}

#define assert_says(said, wanted)                                                                  \
    ck_assert_msg(strstr((said), (wanted)) != NULL, "\"%s\" is missing in:\n%s", (wanted), (said))

START_TEST(a_line_says_what_is_known_of_a_batch_size)
{
    const char *said = print(peak_print_text);
    assert_says(said, "\n     1   0.80x       1.00       1.00       1.00  compute    ########");
    assert_says(said, "\n     2   1.60x       1.98       1.96       1.95  H2D        ########");
    assert_says(said, "  peak\n     3   2.40x       2.94       2.88       none  H2D        ......");
    assert_says(said, "\n     4   3.20x          -          -          -  memory\n");
    shown[2] = false;
    ck_assert_ptr_null(strstr(print(peak_print_text), "none"));
}
END_TEST

START_TEST(an_incomplete_proof_names_the_rival)
{
    assert_says(print(peak_print_text),
                "incomplete: batch size 3 could be faster by more than 1.00 %\n"
                "             (by its bound, by 50.00 % at most)\n");
    peak.proven_gap = 0.004;
    assert_says(print(peak_print_text), "no other batch size can be faster by more than 0.40 %\n");
    peak.rival = ATP_NONE;
    assert_says(print(peak_print_text), "there is no other batch size");
}
END_TEST

START_TEST(the_peak_is_compared_with_what_needs_no_plan)
{
    const char *said = print(peak_print_text);
    assert_says(said, "batch size 1 is the largest, 1.00 samples/s: the peak has 1.951 times that");
    assert_says(said, "greedy-size           1       0.91         2.146x\n");
    assert_says(said, "1.60 times the budget with everything kept at the peak");
    policy.index = ATP_NONE;
    assert_says(print(peak_print_text), "greedy-size           -          -   fits at none\n");
    batches[0].model.keep_all_bytes = 101;
    assert_says(print(peak_print_text), "no batch size fits with everything kept");
}
END_TEST

START_TEST(a_global_batch_is_explained)
{
    peak.options.global_batch = 12;
    assert_says(print(peak_print_text), "12 samples between two updates");
}
END_TEST

START_TEST(csv_leaves_empty_what_is_not_known)
{
    const char *said = print(peak_print_csv);
    assert_says(said, "\nplan,1,largest-unplanned,compute,0.800000,1000000000,1.0000,1000000000,"
                      "1.0000,1000000000,1.0000,0,0,0,0\n");
    assert_says(said, "\nplan,2,peak+largest-planned,H2D,1.600000,1010000000,1.9802,1020000000,"
                      "1.9608,1025000000,1.9512,0,0,0,4000\n");
    assert_says(said, "\nplan,3,rival,H2D,2.400000,1020000000,2.9412,1040000000,2.8846,,,,,,\n");
    assert_says(said, "\nplan,4,,memory,3.200000,,,,,,,,,,\n");
    assert_says(said, "\ngreedy-size,1,best,,0.800000,,,,,1100000000,0.9091,,,,\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_line_says_what_is_known_of_a_batch_size,    an_incomplete_proof_names_the_rival,
        the_peak_is_compared_with_what_needs_no_plan, a_global_batch_is_explained,
        csv_leaves_empty_what_is_not_known,
    };
    return RUN_TESTS("peak_print", tests, set_up, tear_down);
}
