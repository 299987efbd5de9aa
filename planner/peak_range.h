/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside peak: which batch sizes there are, and their profiles.
 */
#ifndef PEAK_RANGE_H
#define PEAK_RANGE_H

#include "peak.h"

/* With a global batch the micro-profile, and what its update steps take (`out_update_ns` NULL: not
 * asked). */
ATP_MUST_USE enum atp_status peak_profile_at(const struct peak *peak, uint64_t batch_size,
                                             struct region *region, struct profile *out_profile,
                                             int64_t *out_update_ns, struct atp_error *err);

#endif
