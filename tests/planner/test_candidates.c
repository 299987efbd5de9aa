/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the reductions cost: on profiles so small that every vector of choices can be tried, the
 * best with a reduction is held against the best without.
 */
#include "candidates.h"

#include "profile_builder.h"
#include "random_profile.h"
#include "run_tests.h"
#include "sanitized.h"
#include "schedule.h"

#include <inttypes.h>
#include <stdio.h>

#define PROFILE_COUNT (SANITIZED ? 30U : 150U)
#define VECTORS_MAX   2187U /* three ways for seven gaps */
#define GAPS_MAX      12U
/* Cases of PROFILE_COUNT x 3 in which the best needs a gap over steps that fit anyway. */
#define PRESSED_WORSE_MAX 7U

static struct region *region;

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

struct gaps {
    uint32_t count, vector_count; /* above VECTORS_MAX: too many to try */
    uint32_t access[GAPS_MAX], ways[GAPS_MAX];
};

static void list_gaps(const struct problem *problem, const struct candidates_reductions *reductions,
                      struct gaps *gaps)
{
    uint32_t *accesses = NULL;
    uint32_t count = candidates_find_with(problem, reductions, region, &accesses);
    gaps->count = 0;
    gaps->vector_count = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct access *access = &problem->accesses[accesses[i]];
        uint32_t first = access->step == ATP_NONE ? 0 : access->step + 1;
        bool is_idle = !access->has_next || problem->accesses[accesses[i] + 1].step > first;
        uint32_t ways = problem->recomputable[accesses[i]] ? 3 : 2;
        if (!is_idle) {
            continue;
        }
        if (gaps->count == GAPS_MAX || gaps->vector_count * ways > VECTORS_MAX) {
            gaps->vector_count = VECTORS_MAX + 1;
            return;
        }
        gaps->access[gaps->count] = accesses[i];
        gaps->ways[gaps->count++] = ways;
        gaps->vector_count *= ways;
    }
}

/* The time of the best vector that fits; INT64_MAX: none does. */
static int64_t best_of(const struct problem *problem, const struct gaps *gaps)
{
    struct schedule *schedule = schedule_create(problem, region);
    struct selection selection = selection_create(problem, region);
    int64_t best_ns = INT64_MAX;
    selection.weights = NULL;
    candidates_default(problem, selection.choices);
    for (uint32_t v = 0; v < gaps->vector_count; v++) {
        uint32_t rest = v;
        for (uint32_t i = 0; i < gaps->count; i++) {
            selection.choices[gaps->access[i]] = (uint8_t)(rest % gaps->ways[i]);
            rest /= gaps->ways[i];
        }
        const struct sequence *sequence = schedule_sequence(schedule, &selection);
        if (sequence->missing_tensor != ATP_NONE || sequence->too_long ||
            sequence->excess_bytes > 0) {
            continue;
        }
        const struct timeline *timeline = schedule_timeline(schedule, false);
        if (timeline->iteration_ns < best_ns) {
            best_ns = timeline->iteration_ns;
        }
    }
    return best_ns;
}

static void build(const struct profile *profile, uint64_t budget_bytes, struct problem *problem)
{
    ck_assert_int_eq(problem_build(profile, budget_bytes, 1, region, problem, NULL), ATP_OK);
}

static bool is_useful(const struct problem *roomy, struct gaps *gaps)
{
    static const struct candidates_reductions none = {false, false};
    list_gaps(roomy, &none, gaps);
    return gaps->count >= 3 && gaps->vector_count <= VECTORS_MAX &&
           roomy->peak_bytes > roomy->least_arena_bytes;
}

START_TEST(gaps_that_are_not_pressed_hardly_ever_matter)
{
    static const struct candidates_reductions pressed = {.pressed = true};
    uint32_t profiles = 0, cases = 0, left_out = 0, worse = 0;
    double excess = 0;
    for (uint64_t seed = 1; profiles < PROFILE_COUNT; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem;
        struct gaps all, some;
        region_destroy(region);
        region = region_create();
        random_profile_build(&random, 2 + random_below(&random, 3), region, &profile);
        build(&profile, UINT64_MAX / 4, &problem);
        if (!is_useful(&problem, &all)) {
            continue;
        }
        profiles++;
        uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
        for (uint32_t tenths = 1; tenths <= 9; tenths += 4) {
            build(&profile, least + room * tenths / 10, &problem);
            list_gaps(&problem, &pressed, &some);
            int64_t with = best_of(&problem, &some), without = best_of(&problem, &all);
            ck_assert_msg(without <= with, "seed %" PRIu64 ": fewer choices are better", seed);
            cases++;
            left_out += some.count < all.count;
            worse += without < with;
            if (with != INT64_MAX && (double)with / (double)without - 1 > excess) {
                excess = (double)with / (double)without - 1;
            }
            ck_assert_msg(with != INT64_MAX || without == INT64_MAX,
                          "seed %" PRIu64 ": only gaps left out have a plan", seed);
        }
    }
    (void)printf("%" PRIu32 " cases, gaps left out in %" PRIu32 ", slower for it in %" PRIu32
                 ", by %.1f %% at most\n",
                 cases, left_out, worse, 100 * excess);
    ck_assert_uint_ge(left_out, cases / 4);
    ck_assert_uint_le(worse, PRESSED_WORSE_MAX);
}
END_TEST

/* The tiny tensors of the problem, together. */
static uint64_t sum_tiny(const struct problem *problem)
{
    uint64_t sum = 0, tiny = candidates_tiny_bytes(problem);
    for (uint32_t t = 0; t < problem->model->tensor_count; t++) {
        sum += problem->tensor_bytes[t] <= tiny ? problem->tensor_bytes[t] : 0;
    }
    return sum;
}

START_TEST(keeping_tiny_tensors_costs_no_more_than_their_bytes)
{
    static const struct candidates_reductions none = {false, false}, tiny = {.tiny = true};
    uint32_t cases = 0;
    for (uint64_t seed = 1; cases < PROFILE_COUNT; seed++) {
        struct random random = {seed};
        struct profile profile;
        struct problem problem, smaller;
        struct gaps all, some;
        region_destroy(region);
        region = region_create();
        random_profile_build(&random, 2 + random_below(&random, 3), region, &profile);
        build(&profile, UINT64_MAX / 4, &problem);
        if (!is_useful(&problem, &all)) {
            continue;
        }
        uint64_t least = problem.least_arena_bytes, room = problem.peak_bytes - least;
        build(&profile, least + room * (1 + random_below(&random, 9)) / 10, &problem);
        list_gaps(&problem, &tiny, &some);
        if (some.count == all.count) {
            continue;
        }
        cases++;
        build(&profile, problem.arena_limit - sum_tiny(&problem), &smaller);
        list_gaps(&smaller, &none, &all);
        int64_t kept = best_of(&problem, &some), free = best_of(&smaller, &all);
        ck_assert_msg(kept <= free,
                      "seed %" PRIu64 ": %" PRId64 " ns with tiny tensors kept, %" PRId64
                      " ns without them in a smaller arena",
                      seed, kept, free);
    }
}
END_TEST

START_TEST(tiny_tensors_take_a_thousandth_of_the_arena_at_most)
{
    struct profile_builder *b = profile_builder_create(region);
    struct problem problem;
    uint32_t x = profile_builder_tensor(b, 4000), y = profile_builder_tensor(b, 4000);
    uint32_t small = profile_builder_tensor(b, 3), z = profile_builder_tensor(b, 4000);
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 10, IDS(x), IDS(y, small));
    (void)profile_builder_step(b, ATP_PHASE_FORWARD, 10, IDS(y), IDS(z));
    (void)profile_builder_step(b, ATP_PHASE_BACKWARD, 10, IDS(x, small, z), NO_IDS);
    build(&b->profile, 9000, &problem);
    ck_assert_uint_eq(candidates_tiny_bytes(&problem), 2048);
    ck_assert_uint_eq(sum_tiny(&problem), 3);
    /* Nothing is tiny where the largest working set leaves no room. */
    build(&b->profile, problem.least_arena_bytes, &problem);
    ck_assert_uint_eq(sum_tiny(&problem), 0);
}
END_TEST

START_TEST(a_gap_is_left_out_where_everything_live_fits)
{
    static const struct candidates_reductions pressed = {.pressed = true};
    struct problem problem;
    uint32_t *accesses = NULL;
    struct profile_builder *b = profile_builder_chain(4, 100, 100, region);
    build(&b->profile, UINT64_MAX / 4, &problem);
    build(&b->profile, problem.peak_bytes, &problem);
    ck_assert_uint_eq(candidates_find_with(&problem, &pressed, region, &accesses), 0);
    build(&b->profile, problem.peak_bytes - 1, &problem);
    ck_assert_uint_gt(candidates_find_with(&problem, &pressed, region, &accesses), 0);
    /* Small problems go without. */
    struct candidates_reductions none = {false, false};
    uint32_t *found = NULL;
    ck_assert_uint_eq(candidates_find(&problem, region, &found),
                      candidates_find_with(&problem, &none, region, &accesses));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {gaps_that_are_not_pressed_hardly_ever_matter,
                                  keeping_tiny_tensors_costs_no_more_than_their_bytes,
                                  tiny_tensors_take_a_thousandth_of_the_arena_at_most,
                                  a_gap_is_left_out_where_everything_live_fits};
    return RUN_TESTS("candidates", tests, set_up, tear_down);
}
