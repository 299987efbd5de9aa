/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What of a profile grows with the batch size and what does not: a line through the measurements
 * of each step and tensor. For people and for warnings; planning draws its values from the
 * measurements themselves (profile.h).
 */
#ifndef PROFILE_FIT_H
#define PROFILE_FIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profile.h"
#include "region.h"

#define PROFILE_FIT_WORST 3U

/* The line of least squares, each measurement weighed as one sample of it: 1 / batch^2. */
struct profile_line {
    double fixed, per_sample;
    double off;      /* the farthest measurement is off by this share of it; 0 for two of them */
    double off_by;   /* the same, not as a share */
    uint32_t off_at; /* which batch size that is */
};

struct profile_phase_time {
    double fixed_ns, sample_ns; /* sums of the steps' lines */
};

struct profile_fit {
    uint32_t batch_count;            /* 1: there are no lines, and all below is zero */
    const struct profile_line *time; /* of each step, in ns */
    struct profile_phase_time phase[3];
    struct profile_phase_time all;
    double launch_ns; /* the median of the fixed time of a forward or backward step */
    double fixed_bytes, sample_bytes; /* of the tensors together */

    /* What is worth a warning. */
    uint32_t zero_count; /* steps that take no time at some batch size */
    uint32_t poor_count; /* steps off their line by more than a tenth */
    double poor_share;   /* the time that they take, as a share of all, at most */
    uint32_t poor_step;  /* the one of these that is off by most time; ATP_NONE: none */
    uint32_t
        worst_count; /* steps off their line by a hundredth at least, by time, the most first */
    uint32_t worst[PROFILE_FIT_WORST];
    uint32_t falling_count;     /* steps whose line falls by more than a tenth */
    uint32_t falling_step;      /* the first of them; ATP_NONE: none */
    uint32_t poor_tensor_count; /* tensors off their line by more than a hundredth */
    uint32_t poor_tensor;       /* the first of them; ATP_NONE: none */
};

/* Linear in the size of the profile, but for a sort of the steps. */
void profile_fit_build(const struct profile_file *file, struct region *region,
                       struct profile_fit *out_fit);

/* What is fixed and what grows with the batch, for people, and the steps farthest from their lines.
 * Nothing for one batch size. */
void profile_fit_print(const struct profile_file *file, const struct profile_fit *fit, FILE *out);

/* One line for each thing that is worth a warning, with `path` before it. */
void profile_fit_warn(const struct profile_file *file, const struct profile_fit *fit,
                      const char *path, FILE *out);

#endif
