/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bench_fake.h"

#include "fake_cuda.h"

enum atp_status bench_fake_create(struct atp_backend **out, struct atp_error *err)
{
    fake_cuda_start(NULL);
    return cuda_backend_create(fake_cuda_api(), 0, out, err);
}

uint64_t bench_fake_calls(void)
{
    struct fake_report report;
    fake_cuda_look(&report);
    return report.call_count;
}

void bench_fake_destroy(struct atp_backend *backend)
{
    struct fake_report report;
    if (backend != NULL) {
        atp_backend_destroy(backend);
        fake_cuda_finish(&report);
    }
}
