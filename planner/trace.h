/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a plan does on a profile's clock, in the Trace Event Format that Perfetto and
 * chrome://tracing read: a track for the compute stream and one for each copy engine, arrows from
 * copies to where compute needs them, a counter of the device's bytes. Times are microseconds with
 * three decimals.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdio.h>

#include <atp/plan.h>
#include <atp/simulate.h>
#include <atp/status.h>

#include "region.h"

/* For a plan that atp_plan_check accepts. The same plan and clock give the same bytes. As
 * atp_simulate; ATP_ERR_IO when `out` cannot be written. */
ATP_MUST_USE enum atp_status trace_write(const struct atp_plan *plan, const struct atp_clock *clock,
                                         struct region *region, FILE *out, struct atp_error *err);

#endif
