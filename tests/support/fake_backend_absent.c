/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands in for fake_backend_cuda.c where there is no cuda.h to build a fake driver with.
 */
#include <stddef.h>

#include "backends.h"

#include "fail.h"

enum atp_status test_fake_cuda_create(struct atp_backend **out, struct atp_error *err)
{
    *out = NULL;
    return atp_fail(err, ATP_ERR_UNSUPPORTED, "built without cuda.h");
}

void test_fake_cuda_settle(void)
{
}
