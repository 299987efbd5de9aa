/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <atp/simulate.h>

#include "assert_error.h"
#include "plan_builder.h"
#include "run_tests.h"

/* One step f makes y from x, u only takes time, b reads y. y goes to the host and back under u. */
static struct plan_builder *swap;
static int64_t step_ns[] = {100, 1000, 50};
static struct atp_clock clock_1b_per_ns;

static void set_up(void)
{
    swap = plan_builder_create("swap");
    uint32_t x = plan_builder_tensor(swap, "x", 10), y = plan_builder_tensor(swap, "y", 200);
    uint32_t f = plan_builder_step(swap, ATP_PHASE_FORWARD, "f", IDS(x), IDS(y));
    uint32_t u = plan_builder_step(swap, ATP_PHASE_FORWARD, "u", NO_IDS, NO_IDS);
    uint32_t b = plan_builder_step(swap, ATP_PHASE_BACKWARD, "f", IDS(x, y), NO_IDS);
    swap->steps[u].workspace_bytes = 300;
    plan_builder_add(swap, ATP_OP_ALLOC, x, 0);
    plan_builder_add(swap, ATP_OP_ALLOC, y, 10);
    plan_builder_add(swap, ATP_OP_RUN, f, 0);
    plan_builder_add(swap, ATP_OP_EVICT, y, 0);
    plan_builder_add(swap, ATP_OP_EVICTED, y, 0);
    plan_builder_add(swap, ATP_OP_RUN, u, 10);
    plan_builder_add(swap, ATP_OP_RESTORE, y, 10);
    plan_builder_add(swap, ATP_OP_RESTORED, y, 0);
    plan_builder_add(swap, ATP_OP_RUN, b, 0);
    plan_builder_add(swap, ATP_OP_FREE, y, 0);
    plan_builder_add(swap, ATP_OP_FREE, x, 0);
    plan_builder_seal(swap);
    step_ns[0] = 100;
    step_ns[1] = 1000;
    step_ns[2] = 50;
    clock_1b_per_ns = (struct atp_clock){step_ns, 1000000000, 1000000000, 7};
}

static void tear_down(void)
{
    plan_builder_destroy(swap);
}

static struct atp_predicted simulate(struct plan_builder *builder, const struct atp_clock *clock)
{
    struct atp_error err = {0};
    struct atp_predicted out;
    plan_builder_seal(builder);
    assert_ok(atp_plan_check(&builder->plan, &err), err);
    assert_ok(atp_simulate(&builder->plan, clock, NULL, NULL, &out, &err), err);
    ck_assert_int_eq(out.iteration_ns, out.compute_ns + out.recompute_ns + out.stall_ns);
    ck_assert_uint_eq(out.peak_bytes, builder->plan.predicted.peak_bytes);
    ck_assert_int_eq(out.bound_ns, 0);
    return out;
}

START_TEST(copies_take_latency_plus_bytes_over_rate_rounded_up)
{
    ck_assert_int_eq(atp_copy_ns(0, 1000, 0), 0);
    ck_assert_int_eq(atp_copy_ns(0, 1000, 5), 5);
    ck_assert_int_eq(atp_copy_ns(1, 1000000000, 0), 1);
    ck_assert_int_eq(atp_copy_ns(1, 3000000000, 0), 1);
    ck_assert_int_eq(atp_copy_ns(3, 3000000000, 0), 1);
    ck_assert_int_eq(atp_copy_ns(4, 3000000000, 0), 2);
    ck_assert_int_eq(atp_copy_ns(25165824, UINT64_C(50000000000), 10000), 10000 + 503317);
    ck_assert_int_eq(atp_copy_ns(UINT64_C(49999999999), UINT64_C(50000000000), 0), 1000000000);
    ck_assert_int_eq(atp_copy_ns(UINT64_C(40000000000), UINT64_C(50000000000), 0), 800000000);
    ck_assert_int_eq(atp_copy_ns(UINT64_C(40000000001), UINT64_C(50000000000), 0), 800000001);
}
END_TEST

START_TEST(copies_are_exact_where_products_leave_64_bits)
{
    /* A third, two thirds and all but one of the largest odd rate. */
    uint64_t rate = UINT64_MAX;
    ck_assert_int_eq(atp_copy_ns(rate / 3, rate, 0), 333333334);
    ck_assert_int_eq(atp_copy_ns(rate / 3 * 2, rate, 0), 666666667);
    ck_assert_int_eq(atp_copy_ns(rate - 1, rate, 0), 1000000000);
    ck_assert_int_eq(atp_copy_ns(rate, rate, 0), 1000000000);
    ck_assert_int_eq(atp_copy_ns(rate / 2, rate / 2 + 1, 1), 1000000001);
    /* 2^62 / 2^63 seconds, and one byte more. */
    ck_assert_int_eq(atp_copy_ns(UINT64_C(1) << 62, UINT64_C(1) << 63, 0), 500000000);
    ck_assert_int_eq(atp_copy_ns((UINT64_C(1) << 62) + 1, UINT64_C(1) << 63, 0), 500000001);
}
END_TEST

START_TEST(copies_saturate)
{
    ck_assert_int_eq(atp_copy_ns(UINT64_MAX, 1, 0), INT64_MAX);
    ck_assert_int_eq(atp_copy_ns(9223372036, 1, 0), INT64_C(9223372036000000000));
    ck_assert_int_eq(atp_copy_ns(9223372037, 1, 0), INT64_MAX);
    ck_assert_int_eq(atp_copy_ns(1, 1, INT64_MAX - 5), INT64_MAX);
    ck_assert_int_eq(atp_copy_ns(1, 0, 0), INT64_MAX);
}
END_TEST

START_TEST(a_wait_at_once_stalls_for_the_whole_copy)
{
    struct atp_predicted out = simulate(swap, &clock_1b_per_ns);
    ck_assert_int_eq(out.stall_ns, 207 + 207);
    ck_assert_int_eq(out.compute_ns, 1150);
    ck_assert_int_eq(out.recompute_ns, 0);
    ck_assert_uint_eq(out.peak_bytes, 310);
    ck_assert_uint_eq(out.evicted_bytes, 200);
    ck_assert_uint_eq(out.restored_bytes, 200);
    ck_assert_uint_eq(out.recomputed_bytes, 0);
}
END_TEST

START_TEST(a_copy_hides_behind_a_step_between_issue_and_wait)
{
    uint32_t u = plan_builder_find(swap, ATP_OP_RUN, 1, 0);
    swap->program[u].offset = 210;
    plan_builder_move(swap, u, u - 1);
    struct atp_predicted out = simulate(swap, &clock_1b_per_ns);
    ck_assert_int_eq(out.stall_ns, 207);
    ck_assert_uint_eq(out.peak_bytes, 510);
    step_ns[1] = 200;
    ck_assert_int_eq(simulate(swap, &clock_1b_per_ns).stall_ns, 7 + 207);
}
END_TEST

START_TEST(both_directions_have_their_own_rate)
{
    clock_1b_per_ns.h2d_bytes_per_second = 4000000000;
    ck_assert_int_eq(simulate(swap, &clock_1b_per_ns).stall_ns, 207 + 57);
    clock_1b_per_ns.d2h_bytes_per_second = 2000000000;
    ck_assert_int_eq(simulate(swap, &clock_1b_per_ns).stall_ns, 107 + 57);
}
END_TEST

START_TEST(counts_reruns_apart_from_runs)
{
    struct plan_builder *rich = plan_builder_rich();
    int64_t ns[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};
    struct atp_clock fast = {ns, UINT64_MAX, UINT64_MAX, 0};
    struct atp_predicted out = simulate(rich, &fast);
    ck_assert_int_eq(out.compute_ns, 450);
    ck_assert_int_eq(out.recompute_ns, 20);
    ck_assert_uint_eq(out.recomputed_bytes, 64 + 32);
    ck_assert_uint_eq(out.evicted_bytes, 64 * 3 + 32);
    ck_assert_uint_eq(out.restored_bytes, 64 * 4 + 32);
    plan_builder_destroy(rich);
}
END_TEST

/* Two evictions issued together, their waits in the other order. */
START_TEST(an_engine_runs_its_copies_in_the_order_of_issue)
{
    struct plan_builder *b = plan_builder_create("engine");
    uint32_t first = plan_builder_tensor(b, "first", 100),
             second = plan_builder_tensor(b, "second", 30);
    plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(first, second), NO_IDS);
    plan_builder_add(b, ATP_OP_ALLOC, first, 0);
    plan_builder_add(b, ATP_OP_ALLOC, second, 100);
    plan_builder_add(b, ATP_OP_RUN, 0, 0);
    plan_builder_add(b, ATP_OP_EVICT, first, 0);
    plan_builder_add(b, ATP_OP_EVICT, second, 100);
    plan_builder_add(b, ATP_OP_EVICTED, second, 0);
    plan_builder_add(b, ATP_OP_EVICTED, first, 0);
    clock_1b_per_ns.copy_latency_ns = 0;
    struct atp_predicted out = simulate(b, &clock_1b_per_ns);
    ck_assert_int_eq(out.iteration_ns, 100 + 130);
    ck_assert_int_eq(out.stall_ns, 130);
    plan_builder_destroy(b);
}
END_TEST

struct seen {
    uint32_t count;
    struct atp_simulated events[16];
};

static void see(void *ctx, const struct atp_simulated *event)
{
    struct seen *seen = ctx;
    ck_assert_uint_lt(seen->count, 16);
    seen->events[seen->count++] = *event;
}

START_TEST(shows_every_instruction_with_its_times)
{
    static const int64_t want[][2] = {{0, 0},       {0, 0},       {0, 100},     {100, 307},
                                      {100, 307},   {307, 1307},  {1307, 1514}, {1307, 1514},
                                      {1514, 1564}, {1564, 1564}, {1564, 1564}};
    struct atp_error err = {0};
    struct atp_predicted out;
    struct seen seen = {0};
    assert_ok(atp_simulate(&swap->plan, &clock_1b_per_ns, see, &seen, &out, &err), err);
    ck_assert_uint_eq(seen.count, sizeof(want) / sizeof(want[0]));
    for (uint32_t i = 0; i < seen.count; i++) {
        ck_assert_uint_eq(seen.events[i].instruction, i);
        ck_assert_int_eq(seen.events[i].start_ns, want[i][0]);
        ck_assert_int_eq(seen.events[i].end_ns, want[i][1]);
    }
    ck_assert_int_eq(out.iteration_ns, 1564);
}
END_TEST

static void assert_not_simulated(const char *text)
{
    struct atp_error err = {0};
    struct atp_predicted out;
    enum atp_status status = atp_simulate(&swap->plan, &clock_1b_per_ns, NULL, NULL, &out, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE, text);
}

START_TEST(rejects_times_that_leave_64_bits)
{
    step_ns[0] = INT64_MAX - 100;
    assert_not_simulated("the simulated time leaves 64 bits");
    step_ns[0] = 100;
    clock_1b_per_ns.copy_latency_ns = INT64_MAX;
    assert_not_simulated("the simulated time leaves 64 bits");
}
END_TEST

START_TEST(rejects_bytes_that_leave_64_bits)
{
    /* y leaves the device five times with 2^62 bytes each. */
    swap->tensors[1].bytes = UINT64_C(1) << 62;
    clock_1b_per_ns.d2h_bytes_per_second = clock_1b_per_ns.h2d_bytes_per_second = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint32_t at = plan_builder_find(swap, ATP_OP_EVICTED, 1, 0) + 1;
        plan_builder_insert(swap, at, ATP_OP_RESTORE, 1, 10);
        plan_builder_insert(swap, at + 1, ATP_OP_RESTORED, 1, 0);
        plan_builder_insert(swap, at + 2, ATP_OP_EVICT, 1, 0);
        plan_builder_insert(swap, at + 3, ATP_OP_EVICTED, 1, 0);
    }
    assert_not_simulated("the bytes copied or recomputed leave 64 bits");
}
END_TEST

START_TEST(rejects_negative_times)
{
    step_ns[1] = -1;
    assert_not_simulated("steps[1] \"u\": its time is negative");
    step_ns[1] = 0;
    clock_1b_per_ns.copy_latency_ns = -1;
    assert_not_simulated("copy_latency_ns: it is negative");
}
END_TEST

static void assert_prediction(enum atp_status want, const char *text)
{
    struct atp_error err = {0};
    enum atp_status status = atp_plan_check_predicted(&swap->plan, &clock_1b_per_ns, &err);
    if (want == ATP_OK) {
        assert_ok(status, err);
    } else {
        assert_error(status, err, want, ATP_NONE, text);
    }
}

static void predict(void)
{
    swap->plan.predicted = simulate(swap, &clock_1b_per_ns);
    swap->plan.predicted.bound_ns = swap->plan.predicted.compute_ns;
    assert_prediction(ATP_OK, "");
}

START_TEST(accepts_a_bound_from_the_step_times_to_the_iteration_time)
{
    predict();
    swap->plan.predicted.bound_ns = swap->plan.predicted.iteration_ns;
    assert_prediction(ATP_OK, "");
    swap->plan.predicted.bound_ns++;
    assert_prediction(ATP_ERR_INVALID, "predicted.bound_ns: 1565, expected at least the step times "
                                       "of 1150 and at most the iteration time of 1564");
    swap->plan.predicted.bound_ns = swap->plan.predicted.compute_ns - 1;
    assert_prediction(ATP_ERR_INVALID, "predicted.bound_ns: 1149");
}
END_TEST

START_TEST(rejects_every_false_time)
{
    struct atp_predicted *said = &swap->plan.predicted;
    struct {
        int64_t *field;
        const char *text;
    } fields[] = {
        {&said->iteration_ns, "predicted.iteration_ns: 1563, but the simulation finds 1564"},
        {&said->compute_ns, "predicted.compute_ns: 1149, but the simulation finds 1150"},
        {&said->recompute_ns, "predicted.recompute_ns: -1, but the simulation finds 0"},
        {&said->stall_ns, "predicted.stall_ns: 413, but the simulation finds 414"},
    };
    predict();
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        --*fields[i].field;
        assert_prediction(ATP_ERR_INVALID, fields[i].text);
        ++*fields[i].field;
    }
    assert_prediction(ATP_OK, "");
}
END_TEST

START_TEST(rejects_every_false_number_of_bytes)
{
    struct atp_predicted *said = &swap->plan.predicted;
    struct {
        uint64_t *field;
        const char *text;
    } fields[] = {
        {&said->peak_bytes, "predicted.peak_bytes: 311, but the simulation finds 310"},
        {&said->evicted_bytes, "predicted.evicted_bytes: 201, but the simulation finds 200"},
        {&said->restored_bytes, "predicted.restored_bytes: 201, but the simulation finds 200"},
        {&said->recomputed_bytes, "predicted.recomputed_bytes: 1, but the simulation finds 0"},
    };
    predict();
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        ++*fields[i].field;
        assert_prediction(ATP_ERR_INVALID, fields[i].text);
        --*fields[i].field;
    }
    assert_prediction(ATP_OK, "");
}
END_TEST

START_TEST(a_prediction_is_good_for_its_clock_only)
{
    predict();
    clock_1b_per_ns.copy_latency_ns++;
    assert_prediction(ATP_ERR_INVALID, "predicted.iteration_ns: 1564, but the simulation finds "
                                       "1566");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        copies_take_latency_plus_bytes_over_rate_rounded_up,
        copies_are_exact_where_products_leave_64_bits,
        copies_saturate,
        a_wait_at_once_stalls_for_the_whole_copy,
        a_copy_hides_behind_a_step_between_issue_and_wait,
        both_directions_have_their_own_rate,
        counts_reruns_apart_from_runs,
        an_engine_runs_its_copies_in_the_order_of_issue,
        shows_every_instruction_with_its_times,
        rejects_times_that_leave_64_bits,
        rejects_bytes_that_leave_64_bits,
        rejects_negative_times,
        accepts_a_bound_from_the_step_times_to_the_iteration_time,
        rejects_every_false_time,
        rejects_every_false_number_of_bytes,
        a_prediction_is_good_for_its_clock_only,
    };
    return RUN_TESTS("simulate", tests, set_up, tear_down);
}
