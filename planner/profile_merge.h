/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Recordings of one model at different batch sizes -> one profile file with all of them.
 */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"
#include "region.h"

struct profile_merge_input {
    const char *path; /* for messages */
    const struct profile_file *file;
};

/* What the recordings do not agree on and need not: the merged file has the careful value. */
struct profile_merge_report {
    bool links_differ;  /* some rate or latency by more than a tenth: links are measured anew */
    bool pinned_differ; /* the limits on pinned memory */
};

/* The inputs come in any order and may have several batch sizes each. Model, device, tensors and
 * steps must be the same, in the same order; sizes and times are each batch size's own. Rates are
 * the lowest of all inputs, the latency is the largest, the pinned memory the least. On
 * ATP_ERR_INVALID, *out_at is the input in which the first difference is; `err` has its line and
 * column, and names the other file. The result borrows from the inputs. */
ATP_MUST_USE enum atp_status profile_merge(const struct profile_merge_input *inputs, uint32_t count,
                                           struct region *region,
                                           const struct profile_file **out_file,
                                           struct profile_merge_report *out_report,
                                           uint32_t *out_at, struct atp_error *err);

#endif
