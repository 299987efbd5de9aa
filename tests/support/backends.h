/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every backend that a test can run on. A maker that answers ATP_ERR_UNSUPPORTED means "skip";
 * any other failure is one.
 */
#ifndef TEST_BACKENDS_H
#define TEST_BACKENDS_H

#include <atp/backend.h>

struct test_backend {
    const char *name;
    enum atp_status (*create)(struct atp_backend **out, struct atp_error *err);
    void (*settle)(void); /* after destroy: ends the test when the backend saw misuse */
};

/* every_backend.c */
extern const struct test_backend test_backends[];
extern const int test_backend_count;

/* The backend of that index, or NULL where this machine has none. Any other failure ends the test.
 */
struct atp_backend *test_backend_create(int index);

/* fake_backend_cuda.c, or fake_backend_absent.c in builds without cuda.h. */
enum atp_status test_fake_cuda_create(struct atp_backend **out, struct atp_error *err);
void test_fake_cuda_settle(void);

/* A host backend; ends the test when it cannot be had. */
struct atp_backend *test_host_create(enum atp_host_copies copies, uint64_t seed,
                                     uint32_t delay_max_us);

#endif
