/* SPDX-License-Identifier: Apache-2.0 */
#include <atp/plan.h>

const char *atp_op_name(enum atp_op op)
{
    switch (op) {
    case ATP_OP_ALLOC:
        return "alloc";
    case ATP_OP_RUN:
        return "run";
    case ATP_OP_RERUN:
        return "rerun";
    case ATP_OP_EVICT:
        return "evict";
    case ATP_OP_EVICTED:
        return "evicted";
    case ATP_OP_RESTORE:
        return "restore";
    case ATP_OP_RESTORED:
        return "restored";
    case ATP_OP_FREE:
        return "free";
    }
    return "unknown operation";
}

const char *atp_decision_name(enum atp_decision decision)
{
    switch (decision) {
    case ATP_DECISION_KEEP:
        return "keep";
    case ATP_DECISION_SWAP:
        return "swap";
    case ATP_DECISION_RECOMPUTE:
        return "recompute";
    }
    return "unknown decision";
}

const char *atp_phase_name(enum atp_phase phase)
{
    switch (phase) {
    case ATP_PHASE_FORWARD:
        return "forward";
    case ATP_PHASE_BACKWARD:
        return "backward";
    case ATP_PHASE_UPDATE:
        return "update";
    }
    return "unknown phase";
}
