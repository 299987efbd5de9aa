/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backends.h"

#include <check.h>

struct atp_backend *test_host_create(enum atp_host_copies copies, uint64_t seed,
                                     uint32_t delay_max_us)
{
    struct atp_host_options options = {
        .copies = copies, .seed = seed, .delay_max_us = delay_max_us};
    struct atp_backend *backend;
    struct atp_error err;
    ck_assert_msg(atp_backend_host_create(&options, &backend, &err) == ATP_OK, "%s", err.text);
    return backend;
}
