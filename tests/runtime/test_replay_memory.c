/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every allocation in the life of a replay fails once, from the backend's own to the trace's: each
 * time the status says so, nothing is left behind, and the next life has the right bytes. The
 * linker puts the functions below in place of malloc and its kin.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atp/replay.h>

#include "assert_error.h"
#include "plan_builder.h"
#include "toy_work.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);

/* Counted while a function of libatp runs, but for the steps' own work: Check allocates too. */
static struct {
    bool counts;
    uint64_t count;   /* so far */
    uint64_t failing; /* from 1; 0: none */
    int64_t live_count;
} memory;

/* What a real allocation gave, or NULL. */
static void *hand_out(void *block)
{
    if (memory.counts && ++memory.count == memory.failing) {
        __real_free(block);
        return NULL;
    }
    memory.live_count += memory.counts && block != NULL;
    return block;
}

void *__wrap_malloc(size_t size)
{
    return hand_out(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return hand_out(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return hand_out(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block)
{
    memory.live_count -= memory.counts && block != NULL;
    __real_free(block);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static enum atp_status work(void *toy, const struct atp_step_call *call, struct atp_error *err)
{
    memory.counts = false;
    enum atp_status status = toy_work(toy, call, err);
    memory.counts = true;
    return status;
}

static void name_file(char *path, size_t bytes, const char *what)
{
    (void)snprintf(path, bytes, "test_replay_memory.%ld.%s", (long)getpid(), what);
}

/* Unless something has failed before. */
#define NEXT(call)                                                                                 \
    do {                                                                                           \
        if (status == ATP_OK) {                                                                    \
            memory.counts = true;                                                                  \
            status = (call);                                                                       \
            memory.counts = false;                                                                 \
        }                                                                                          \
    } while (0)

/* Two iterations and all that can be had of them; the first failure ends it. */
static enum atp_status use(struct atp_replay *replay, const struct atp_plan *plan,
                           struct atp_error *err)
{
    static const int64_t step_ns[16] = {0};
    struct atp_clock clock = {
        .step_ns = step_ns, .d2h_bytes_per_second = 1, .h2d_bytes_per_second = 1};
    struct atp_profile_facts facts = {.device_memory_bytes = 1, .copy_probe_bytes = 4096};
    struct atp_iteration_report report;
    char profile[64], trace[64];
    ck_assert_uint_le(plan->model.step_count, 16);
    name_file(profile, sizeof(profile), "yaml");
    name_file(trace, sizeof(trace), "json");
    enum atp_status status = ATP_OK;
    NEXT(atp_replay_run_iteration(replay, work, err));
    NEXT(atp_replay_run_iteration(replay, work, err));
    NEXT(atp_replay_report(replay, &report, err));
    NEXT(atp_replay_write_profile(replay, profile, &facts, err));
    NEXT(atp_replay_write_trace(replay, trace, &clock, err));
    ck_assert(status == ATP_OK || access(trace, F_OK) != 0);
    (void)remove(profile);
    (void)remove(trace);
    return status;
}

static enum atp_status live(enum atp_host_copies copies, const struct atp_plan *plan,
                            struct toy *toy, struct atp_error *err)
{
    struct atp_host_options host = {.copies = copies, .seed = 7};
    struct atp_replay_options options = {
        .step = work, .step_ctx = toy, .record = true, .report = true, .poison = true};
    struct atp_backend *backend;
    struct atp_replay *replay = NULL;
    enum atp_status status = ATP_OK;
    NEXT(atp_backend_host_create(&host, &backend, err));
    NEXT(atp_replay_open(plan, toy->model, backend, &options, &replay, err));
    ck_assert_int_eq(replay != NULL, status == ATP_OK);
    if (status == ATP_OK) {
        status = use(replay, plan, err);
    }
    memory.counts = true;
    atp_replay_close(replay);
    atp_backend_destroy(backend);
    memory.counts = false;
    return status;
}

/* A life in which that allocation fails; false: there were fewer. */
static bool live_and_fail(enum atp_host_copies copies, uint64_t failing)
{
    struct plan_builder *b = plan_builder_rich();
    struct atp_error err = {0};
    struct toy toy;
    toy_init(&toy, &b->plan.model, 5);
    memset(&memory, 0, sizeof(memory));
    memory.failing = failing;
    enum atp_status status = live(copies, &b->plan, &toy, &err);
    bool has_failed = failing > 0 && memory.count >= failing;
    ck_assert_int_eq(memory.live_count, 0);
    memory.failing = 0;
    if (has_failed) {
        assert_error(status, err, ATP_ERR_NO_MEMORY, ATP_NONE, "");
        ck_assert_uint_gt(strlen(err.text), 0);
        status = live(copies, &b->plan, &toy, &err);
        ck_assert_int_eq(memory.live_count, 0);
    }
    assert_ok(status, err);
    uint64_t digest = toy_digest(&toy);
    toy_finish(&toy);
    toy_init(&toy, &b->plan.model, 5);
    assert_ok(live(ATP_HOST_EAGER, &b->plan, &toy, &err), err);
    ck_assert_uint_eq(toy_digest(&toy), digest);
    toy_finish(&toy);
    plan_builder_destroy(b);
    return has_failed;
}

/* In each way to copy. */
START_TEST(survives_the_failure_of_every_allocation)
{
    uint64_t failing = 1;
    while (live_and_fail((enum atp_host_copies)_i, failing)) {
        failing++;
    }
    (void)printf("%llu allocations, each failed once\n", (unsigned long long)failing - 1);
    ck_assert_uint_gt(failing, 50); /* backend, checks, arenas, streams, events, the probe's */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay_memory");
    TCase *cases = tcase_create("replay_memory");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, survives_the_failure_of_every_allocation, ATP_HOST_EAGER,
                        ATP_HOST_THREADS + 1);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
