/* SPDX-License-Identifier: Apache-2.0
 *
 * Linked in place of the CUDA backend by builds without one.
 */
#include <stddef.h>

#include <atp/backend.h>

#include "fail.h"

enum atp_status atp_backend_cuda_create(int device, struct atp_backend **out, struct atp_error *err)
{
    *out = NULL;
    return atp_fail(err, ATP_ERR_UNSUPPORTED,
                    "CUDA device %d: this build of libatp has no CUDA backend", device);
}
