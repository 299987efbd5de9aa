/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the link between host and device through a backend: each direction alone, by copies of
 * two sizes, and both at once.
 */
#ifndef ATP_LINK_PROBE_H
#define ATP_LINK_PROBE_H

#include <atp/backend.h>

struct link_rates {
    uint64_t d2h_bytes_per_second, h2d_bytes_per_second; /* > 0, alone */
    /* While the other direction is busy too; > 0, not above those alone. */
    uint64_t d2h_duplex_bytes_per_second, h2d_duplex_bytes_per_second;
    int64_t copy_latency_ns; /* of the slower direction, >= 0 */
};

/* `bytes` > 0 is the size of the larger copy. Takes memory for two of them, streams and events from
 * the backend and gives them back; the host waits. Meant for times when nothing else uses the link.
 */
ATP_MUST_USE enum atp_status link_probe(struct atp_backend *backend, uint64_t bytes,
                                        struct link_rates *out_rates, struct atp_error *err);

/* Rate and latency from the times of two copies; the small one is not larger than the big one. */
void link_solve(uint64_t small_bytes, int64_t small_ns, uint64_t big_bytes, int64_t big_ns,
                uint64_t *out_bytes_per_second, int64_t *out_latency_ns);

#endif
