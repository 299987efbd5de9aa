/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include <mpi.h>

#include "ranks.h"

#define PART_VALUES ((uint64_t)1 << 24) /* MPI counts in int */

bool ranks_begin(uint32_t expected, uint32_t *out_rank)
{
    int rank, count;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &count) != MPI_SUCCESS) {
        (void)fputs("gpt: MPI does not start\n", stderr);
        return false;
    }
    if ((uint32_t)count != expected) {
        if (rank == 0) {
            (void)fprintf(stderr,
                          "gpt: --ranks %" PRIu32 ", but %d processes: start it with mpirun -n "
                          "%" PRIu32 "\n",
                          expected, count, expected);
        }
        (void)MPI_Finalize();
        return false;
    }
    *out_rank = (uint32_t)rank;
    return true;
}

bool ranks_sum(float *values, uint64_t count)
{
    for (uint64_t begin = 0; begin < count; begin += PART_VALUES) {
        uint64_t part = count - begin < PART_VALUES ? count - begin : PART_VALUES;
        if (MPI_Allreduce(MPI_IN_PLACE, values + begin, (int)part, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD) != MPI_SUCCESS) {
            return false;
        }
    }
    return true;
}

void ranks_end(bool has_failed)
{
    if (has_failed) {
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    (void)MPI_Finalize();
}
