/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes that train one network: ranks_mpi.c where MPI was found, ranks_absent.c
 * elsewhere.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* Called when more than one rank is wanted. False, with the reason on standard error, when there
 * are not `expected` processes. */
bool ranks_begin(uint32_t expected, uint32_t *out_rank);
/* Adds up over all ranks, in every rank the same bits; all ranks call it. */
bool ranks_sum(float *values, uint64_t count);
/* Ends the other ranks too when this one has failed. */
void ranks_end(bool has_failed);

#endif
