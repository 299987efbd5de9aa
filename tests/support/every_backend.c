/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <check.h>
#include <stdio.h>

#include "backends.h"

static enum atp_status create_eager(struct atp_backend **out, struct atp_error *err)
{
    return atp_backend_host_create(NULL, out, err);
}

static enum atp_status create_late(struct atp_backend **out, struct atp_error *err)
{
    struct atp_host_options options = {.copies = ATP_HOST_LATE};
    return atp_backend_host_create(&options, out, err);
}

static enum atp_status create_threads(struct atp_backend **out, struct atp_error *err)
{
    struct atp_host_options options = {
        .copies = ATP_HOST_THREADS, .seed = 20240229, .delay_max_us = 200};
    return atp_backend_host_create(&options, out, err);
}

static void expect_no_rest(void)
{
}

static enum atp_status create_cuda(struct atp_backend **out, struct atp_error *err)
{
    return atp_backend_cuda_create(0, out, err);
}

const struct test_backend test_backends[] = {
    {"host, eager", create_eager, expect_no_rest},
    {"host, late", create_late, expect_no_rest},
    {"host, threads", create_threads, expect_no_rest},
    {"cuda on the fake driver", test_fake_cuda_create, test_fake_cuda_settle},
    {"cuda", create_cuda, expect_no_rest},
};
const int test_backend_count = (int)(sizeof(test_backends) / sizeof(test_backends[0]));

struct atp_backend *test_backend_create(int index)
{
    struct atp_backend *backend;
    struct atp_error err;
    enum atp_status status = test_backends[index].create(&backend, &err);
    if (status == ATP_ERR_UNSUPPORTED) {
        ck_assert_ptr_null(backend);
        (void)printf("skipped on %s: %s\n", test_backends[index].name, err.text);
        return NULL;
    }
    ck_assert_msg(status == ATP_OK, "%s: %s", test_backends[index].name, err.text);
    return backend;
}
