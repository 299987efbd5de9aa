/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where pinned memory comes from, on a system whose devices and policies are the test's own. That a
 * real driver takes its pages by the policy of the thread has not been seen yet.
 */
#include "numa.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "assert_error.h"
#include "fake_cuda.h"
#include "run_tests.h"

#define ADDRESS "0000:c1:00.0" /* as the system writes it */

/* A folder of PCI devices with one in it. */
static char the_folder[64];

static void put(const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/" ADDRESS "/numa_node", the_folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(void)
{
    char path[128];
    (void)snprintf(the_folder, sizeof(the_folder), "/tmp/atp-numa-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(the_folder));
    (void)snprintf(path, sizeof(path), "%s/" ADDRESS, the_folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    put("3\n");
}

static void drop_folder(void)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/" ADDRESS "/numa_node", the_folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/" ADDRESS, the_folder);
    (void)rmdir(path);
    (void)rmdir(the_folder);
}

/* What the system was asked, and what it says. */
static struct {
    int mode;                 /* the thread's policy */
    unsigned long first_word; /* of its nodes */
    uint32_t enter_count, leave_count;
    uint64_t pinned_before, pinned_after; /* cuMemHostAllocs so far, at the last of each */
    bool forbids_get, forbids_set;
} kernel;

static long get_policy(int *out_mode)
{
    *out_mode = kernel.mode;
    return kernel.forbids_get ? -1 : 0;
}

static long set_policy(int mode, const unsigned long *nodes, unsigned long node_limit)
{
    bool is_enter = mode != 0;
    if (kernel.forbids_set) {
        return -1;
    }
    ck_assert(is_enter ? node_limit == 1025 : nodes == NULL && node_limit == 0);
    kernel.mode = mode;
    kernel.first_word = is_enter ? nodes[0] : 0;
    kernel.enter_count += is_enter;
    kernel.leave_count += !is_enter;
    if (fake_cuda_is_running()) {
        uint64_t count = fake_cuda_calls("cuMemHostAlloc");
        *(is_enter ? &kernel.pinned_before : &kernel.pinned_after) = count;
    }
    return 0;
}

static struct numa_system start_system(void)
{
    memset(&kernel, 0, sizeof(kernel));
    return (struct numa_system){
        .pci_devices = the_folder, .get_policy = get_policy, .set_policy = set_policy};
}

/* ---- the node of a device ---- */

START_TEST(reads_the_node_of_a_device_in_either_case)
{
    struct numa_system system = start_system();
    ck_assert_int_eq(numa_node_of(&system, "0000:C1:00.0"), 3);
    ck_assert_int_eq(numa_node_of(&system, ADDRESS), 3);
    put("0\n");
    ck_assert_int_eq(numa_node_of(&system, ADDRESS), 0);
    put("1023\n");
    ck_assert_int_eq(numa_node_of(&system, ADDRESS), 1023);
}
END_TEST

START_TEST(knows_no_node_where_the_system_does_not_tell)
{
    static const char *const texts[] = {"-1\n", "", "none\n", "1024\n", "-7\n"};
    struct numa_system system = start_system();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put(texts[i]);
        ck_assert_msg(numa_node_of(&system, ADDRESS) == NUMA_NONE, "\"%s\"", texts[i]);
    }
    put("3\n");
    ck_assert_int_eq(numa_node_of(&system, "0000:c2:00.0"), NUMA_NONE);
    ck_assert_int_eq(numa_node_of(&system, ""), NUMA_NONE);
    ck_assert_int_eq(numa_node_of(&system, "0000:c1:00.0 and much more than any address has"),
                     NUMA_NONE);
}
END_TEST

/* ---- the policy ---- */

START_TEST(sets_the_bit_of_the_node_and_takes_the_policy_back)
{
    struct numa_system system = start_system();
    ck_assert(numa_enter(&system, 3));
    ck_assert_int_eq(kernel.mode, 1); /* preferred: where it is full, memory comes from elsewhere */
    ck_assert_uint_eq(kernel.first_word, 8);
    numa_leave(&system);
    ck_assert_int_eq(kernel.mode, 0);
}
END_TEST

START_TEST(leaves_a_policy_that_somebody_chose)
{
    struct numa_system system = start_system();
    kernel.mode = 2; /* bind */
    ck_assert(!numa_enter(&system, 3));
    ck_assert_int_eq(kernel.mode, 2);
    ck_assert_uint_eq(kernel.enter_count, 0);
}
END_TEST

START_TEST(does_nothing_where_the_system_forbids_it_or_there_is_no_node)
{
    struct numa_system system = start_system();
    ck_assert(!numa_enter(&system, NUMA_NONE));
    ck_assert(!numa_enter(&system, 1024));
    kernel.forbids_get = true;
    ck_assert(!numa_enter(&system, 3));
    kernel.forbids_get = false;
    kernel.forbids_set = true;
    ck_assert(!numa_enter(&system, 3));
    ck_assert_uint_eq(kernel.enter_count, 0);
}
END_TEST

/* Whatever this machine and its container allow, the thread's policy afterwards is the one before.
 */
START_TEST(leaves_the_real_thread_as_it_was)
{
    int before = -1, after = -1;
    long told = numa_linux.get_policy(&before);
    if (numa_enter(&numa_linux, 0)) {
        int within = -1;
        ck_assert_int_eq(numa_linux.get_policy(&within), 0);
        ck_assert_int_eq(within, 1);
        numa_leave(&numa_linux);
    } else {
        (void)printf("this machine lets no thread choose a node\n");
    }
    ck_assert_int_eq(numa_linux.get_policy(&after), told);
    ck_assert_int_eq(after, before);
}
END_TEST

/* ---- the backend ---- */

/* A backend takes pinned memory, and gives it back. */
static enum atp_status take_pinned(const struct numa_system *system,
                                   const struct fake_options *options, struct atp_error *err)
{
    struct fake_report report;
    struct atp_backend *backend;
    void *pinned;
    fake_cuda_start(options);
    assert_ok(cuda_backend_create_on(fake_cuda_api(), system, 0, &backend, err), *err);
    enum atp_status status = backend->ops->host_alloc(backend, 4096, &pinned, err);
    if (status == ATP_OK) {
        backend->ops->host_free(backend, pinned);
    }
    atp_backend_destroy(backend);
    fake_cuda_finish(&report);
    ck_assert_msg(report.total == 0, "%s", report.text);
    return status;
}

START_TEST(takes_pinned_memory_near_the_device)
{
    struct numa_system system = start_system();
    struct atp_error err;
    assert_ok(take_pinned(&system, NULL, &err), err);
    ck_assert_uint_eq(kernel.enter_count, 1);
    ck_assert_uint_eq(kernel.leave_count, 1);
    ck_assert_uint_eq(kernel.pinned_before, 0);
    ck_assert_uint_eq(kernel.pinned_after, 1);
    ck_assert_int_eq(kernel.mode, 0);
}
END_TEST

START_TEST(takes_the_policy_back_when_there_is_no_pinned_memory)
{
    struct fake_options options = {.failing_allocation = 1};
    struct numa_system system = start_system();
    struct atp_error err;
    enum atp_status status = take_pinned(&system, &options, &err);
    assert_error(status, err, ATP_ERR_NO_MEMORY, ATP_NONE,
                 "CUDA: cuMemHostAlloc of 4096 bytes of pinned memory, this machine has ");
    ck_assert_uint_eq(kernel.enter_count, 1);
    ck_assert_uint_eq(kernel.leave_count, 1);
}
END_TEST

START_TEST(takes_pinned_memory_from_anywhere_when_it_cannot_choose)
{
    struct fake_options silent = {.failing_call = 5}; /* cuDeviceGetPCIBusId */
    struct fake_options unknown = {.pci_address = "0000:C2:00.0"};
    struct numa_system system = start_system();
    struct atp_error err;
    assert_ok(take_pinned(&system, &silent, &err), err);
    assert_ok(take_pinned(&system, &unknown, &err), err);
    put("-1\n");
    assert_ok(take_pinned(&system, NULL, &err), err);
    put("3\n");
    kernel.forbids_set = true;
    assert_ok(take_pinned(&system, NULL, &err), err);
    ck_assert_uint_eq(kernel.enter_count, 0);
    ck_assert_uint_eq(kernel.leave_count, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        reads_the_node_of_a_device_in_either_case,
        knows_no_node_where_the_system_does_not_tell,
        sets_the_bit_of_the_node_and_takes_the_policy_back,
        leaves_a_policy_that_somebody_chose,
        does_nothing_where_the_system_forbids_it_or_there_is_no_node,
        leaves_the_real_thread_as_it_was,
        takes_pinned_memory_near_the_device,
        takes_the_policy_back_when_there_is_no_pinned_memory,
        takes_pinned_memory_from_anywhere_when_it_cannot_choose,
    };
    return RUN_TESTS("numa", tests, make_folder, drop_folder);
}
