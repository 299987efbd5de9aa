/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ranks.h"

bool ranks_begin(uint32_t expected, uint32_t *out_rank)
{
    (void)expected;
    *out_rank = 0;
    (void)fputs("gpt: --ranks needs MPI, which was not there when this was built\n", stderr);
    return false;
}

bool ranks_sum(float *values, uint64_t count)
{
    (void)values;
    (void)count;
    return false;
}

void ranks_end(bool has_failed)
{
    (void)has_failed;
}
