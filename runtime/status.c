/* SPDX-License-Identifier: Apache-2.0 */
#include <atp/status.h>

const char *atp_status_name(enum atp_status status)
{
    switch (status) {
    case ATP_OK:
        return "ATP_OK";
    case ATP_ERR_NO_MEMORY:
        return "ATP_ERR_NO_MEMORY";
    case ATP_ERR_IO:
        return "ATP_ERR_IO";
    case ATP_ERR_SYNTAX:
        return "ATP_ERR_SYNTAX";
    case ATP_ERR_VERSION:
        return "ATP_ERR_VERSION";
    case ATP_ERR_INVALID:
        return "ATP_ERR_INVALID";
    case ATP_ERR_MISMATCH:
        return "ATP_ERR_MISMATCH";
    case ATP_ERR_INFEASIBLE:
        return "ATP_ERR_INFEASIBLE";
    case ATP_ERR_LIMIT:
        return "ATP_ERR_LIMIT";
    case ATP_ERR_UNSUPPORTED:
        return "ATP_ERR_UNSUPPORTED";
    case ATP_ERR_DEVICE:
        return "ATP_ERR_DEVICE";
    case ATP_ERR_STATE:
        return "ATP_ERR_STATE";
    case ATP_ERR_CALLBACK:
        return "ATP_ERR_CALLBACK";
    case ATP_ERR_INTERNAL:
        return "ATP_ERR_INTERNAL";
    }
    return "unknown status";
}
