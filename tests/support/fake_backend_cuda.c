/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The CUDA backend's real code on the fake driver, as one of the backends of the contract suite.
 */
#include <check.h>

#include "backends.h"
#include "fake_cuda.h"

enum atp_status test_fake_cuda_create(struct atp_backend **out, struct atp_error *err)
{
    struct fake_options options = {.seed = 20240229, .delay_max_us = 200};
    if (!fake_cuda_is_running()) {
        fake_cuda_start(&options);
    }
    return cuda_backend_create(fake_cuda_api(), 0, out, err);
}

void test_fake_cuda_settle(void)
{
    struct fake_report report;
    fake_cuda_look(&report);
    if (report.owner_count == 0) {
        fake_cuda_finish(&report);
    }
    /* The contract allows waits for events that were never recorded. */
    ck_assert_msg(report.total == report.counts[FAKE_UNRECORDED_WAIT], "%s", report.text);
}
