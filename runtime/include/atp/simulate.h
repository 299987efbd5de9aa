/* SPDX-License-Identifier: Apache-2.0
 *
 * The second interpreter of a plan: its program on a profile's clock. Three in-order resources:
 * compute (run, rerun, waits), the device-to-host engine and the host-to-device engine. Integer
 * nanoseconds; nothing depends on the machine.
 */
#ifndef ATP_SIMULATE_H
#define ATP_SIMULATE_H

#include <stdint.h>

#include <atp/plan.h>
#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct atp_clock {
    const int64_t *step_ns; /* one per step of the plan's model, >= 0 */
    uint64_t d2h_bytes_per_second, h2d_bytes_per_second; /* > 0 */
    int64_t copy_latency_ns;                             /* >= 0, added to every copy */
};

/* Time of one copy: latency + bytes / rate, rounded up to a nanosecond. Saturates at INT64_MAX. */
ATP_API int64_t atp_copy_ns(uint64_t bytes, uint64_t bytes_per_second, int64_t latency_ns);

/* One instruction as it happened. For copies start/end are the engine's; for all others the compute
 * stream's, and a wait's length is its stall. */
struct atp_simulated {
    uint32_t instruction;
    int64_t start_ns, end_ns;
};

/* Called for every instruction in program order, in the caller's thread; `evict` and `restore`
 * report their copy. */
typedef void (*atp_simulate_fn)(void *ctx, const struct atp_simulated *event);

/* Runs a plan that atp_plan_check accepts and fills all of `out` but bound_ns, which it sets to 0.
 * `observe` may be NULL. ATP_ERR_INVALID when the total time leaves int64_t; ATP_ERR_NO_MEMORY. */
ATP_API ATP_MUST_USE enum atp_status atp_simulate(const struct atp_plan *plan,
                                                  const struct atp_clock *clock,
                                                  atp_simulate_fn observe, void *ctx,
                                                  struct atp_predicted *out, struct atp_error *err);

/* G4: ATP_OK when plan->predicted is what atp_simulate finds, and its bound is at least the sum of
 * all step times and at most the iteration time; else ATP_ERR_INVALID naming the field with both
 * values. */
ATP_API ATP_MUST_USE enum atp_status atp_plan_check_predicted(const struct atp_plan *plan,
                                                              const struct atp_clock *clock,
                                                              struct atp_error *err);

#ifdef __cplusplus
}
#endif
#endif
