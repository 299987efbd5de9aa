/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan that is compiled in, in a program that links libatp and nothing else of ATP: its check,
 * and a replay on the host whose steps read what they would have read without it.
 */
#include "backends.h"
#include "run_tests.h"
#include "toy_work.h"

extern const struct atp_plan tiny_plan;

static uint64_t digest_of(const struct atp_plan *plan)
{
    struct atp_host_options late = {.copies = ATP_HOST_LATE};
    struct atp_backend *backend = NULL;
    struct atp_replay *replay = NULL;
    struct atp_error err;
    struct toy toy;
    toy_init(&toy, &tiny_plan.model, 7);
    struct atp_replay_options options = {.step = toy_work, .step_ctx = &toy, .poison = true};
    ck_assert_msg(atp_backend_host_create(&late, &backend, &err) == ATP_OK, "%s", err.text);
    ck_assert_msg(atp_replay_open(plan, &tiny_plan.model, backend, &options, &replay, &err) ==
                      ATP_OK,
                  "%s", err.text);
    ck_assert_msg(atp_replay_run_iteration(replay, toy_work, &err) == ATP_OK, "%s", err.text);
    uint64_t digest = toy_digest(&toy);
    ck_assert(plan == NULL || toy.rerun_count > 0);
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    toy_finish(&toy);
    return digest;
}

START_TEST(passes_its_check)
{
    struct atp_error err;
    ck_assert_msg(atp_plan_check(&tiny_plan, &err) == ATP_OK, "%s", err.text);
}
END_TEST

START_TEST(replays_to_the_bytes_of_the_iteration_without_a_plan)
{
    ck_assert_uint_eq(digest_of(&tiny_plan), digest_of(NULL));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        passes_its_check,
        replays_to_the_bytes_of_the_iteration_without_a_plan,
    };
    return RUN_TESTS("emitted_replay", tests, NULL, NULL);
}
