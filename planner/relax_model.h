/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the relaxed selection decides about, found from the problem and a choice of checkpoints.
 *
 * A *position* is a place in step order: 0 is the beginning, step s is s + 1. A *value* is a tensor
 * at one version; it is named by the access that made it (the writer's, or an input's first). A
 * *stretch* is a time in which a value may be away: an idle gap between two accesses that need it
 * (live), the time after its last access (tail), or the time after its storage went on to the next
 * version (stale). Tails and stale stretches matter only as inputs of reruns. Stretches are cut at
 * common steps into *segments*. An *interval* is a time in which a step may rerun; it never crosses
 * a segment's border of any tensor that the step writes.
 *
 * A *checkpoint* is a step at which memory or the copy engines are looked at. Leaving checkpoints
 * or cuts out makes the program smaller and the bound weaker, never wrong.
 */
#ifndef RELAX_MODEL_H
#define RELAX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "region.h"

struct relax_checkpoint {
    uint32_t step;
    bool memory; /* has a memory row; false: copy engines only */
    bool cut;    /* stretches are cut here */
};

/* All steps ascending, none twice. */
struct relax_grid {
    uint32_t count;
    struct relax_checkpoint *points;
};

enum relax_stretch_kind { RELAX_LIVE, RELAX_TAIL, RELAX_STALE };

struct relax_segment {
    uint32_t first, end;    /* positions; the value can be away strictly between */
    bool begins_absent;     /* stale: nothing of the value is there at `first` */
    uint32_t keep, restore; /* columns of the program; ATP_NONE: none */
    uint32_t pass, drop, free, leave;
};

struct relax_stretch {
    uint32_t access; /* whose gap it is */
    uint32_t value;
    enum relax_stretch_kind kind;
    uint32_t first_segment, segment_count;
    uint32_t copied; /* column, stale: copied out before the next version, in a gap that is no
                        stretch; ATP_NONE: there is no such gap */
};

struct relax_interval {
    uint32_t first, end; /* positions; the step reruns strictly between */
    uint32_t column;
    uint32_t later; /* column: reruns in this interval or a later one; `column` for the last */
};

struct relax_model {
    const struct problem *problem;
    const struct relax_grid *grid;
    uint64_t tiny_bytes; /* tensors up to this size take no bytes and are always at hand */
    uint32_t *value_of;  /* per access: the value in the gap behind it */
    uint32_t *value_first_stretch; /* per access that names a value, its stretches are
                                      [value_first_stretch[a], value_first_stretch[a + 1]) */
    uint32_t stretch_count, segment_count, interval_count;
    struct relax_stretch *stretches; /* by value, in time order */
    struct relax_segment *segments;
    uint32_t *step_first_interval; /* per step, step_count + 1 entries */
    struct relax_interval *intervals;
};

/* The checkpoints to begin with: local peaks of what is live, where that does not fit, thinned to
 * `memory_count`; then a few until the end for the copy engines. No cuts. */
void relax_grid_build(const struct problem *problem, uint32_t memory_count, struct region *region,
                      struct relax_grid *out_grid);

/* The same with one more cut, behind checkpoint `point` (not the last), where least is live before
 * the next checkpoint. */
void relax_grid_cut(const struct problem *problem, const struct relax_grid *grid, uint32_t point,
                    struct region *region, struct relax_grid *out_grid);

/* `grid` is borrowed. */
void relax_model_build(const struct problem *problem, const struct relax_grid *grid,
                       struct region *region, struct relax_model *out_model);

static inline uint32_t relax_position(const struct problem *problem, uint32_t access)
{
    uint32_t step = problem->accesses[access].step;
    return step == ATP_NONE ? 0 : step + 1;
}

/* The access writes a version that needs none before it. */
static inline bool relax_needs_version(const struct access *access)
{
    return !(access->writes && access->read_version == access->version);
}

static inline bool relax_may_rerun(const struct problem *problem, uint32_t step)
{
    const struct atp_step *model_step = &problem->model->steps[step];
    return model_step->phase == ATP_PHASE_FORWARD && !model_step->rerun_never;
}

/* The value that an access needs before its step runs. */
uint32_t relax_needed_value(const struct relax_model *model, uint32_t access);

#endif
