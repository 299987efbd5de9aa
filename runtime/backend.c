/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include <atp/backend.h>

void atp_backend_destroy(struct atp_backend *backend)
{
    if (backend != NULL) {
        backend->ops->destroy(backend);
    }
}
