/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stddef.h>

#include "bench_fake.h"

enum atp_status bench_fake_create(struct atp_backend **out, struct atp_error *err)
{
    (void)err;
    *out = NULL;
    return ATP_OK;
}

uint64_t bench_fake_calls(void)
{
    return 0;
}

void bench_fake_destroy(struct atp_backend *backend)
{
    (void)backend;
}
