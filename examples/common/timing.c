/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

bool timing_init(struct timing *timing, uint64_t iterations)
{
    *timing = (struct timing){.capacity = iterations};
    timing->iteration_ns = (int64_t *)calloc(iterations, sizeof(int64_t));
    timing->stall_ns = (int64_t *)calloc(iterations, sizeof(int64_t));
    return timing->iteration_ns != NULL && timing->stall_ns != NULL;
}

void timing_finish(struct timing *timing)
{
    free(timing->stall_ns);
    free(timing->iteration_ns);
    *timing = (struct timing){0};
}

void timing_add(struct timing *timing, const struct atp_iteration_report *report)
{
    if (timing->count < timing->capacity) {
        timing->iteration_ns[timing->count] = report->iteration_ns;
        timing->stall_ns[timing->count] = report->stall_ns;
        timing->count++;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In milliseconds. The first iteration warms up and does not count when there are more. Sorts. */
static double median_ms(int64_t *ns, uint64_t count)
{
    uint64_t skipped = count > 1 ? 1 : 0;
    qsort(ns + skipped, count - skipped, sizeof(*ns), compare);
    uint64_t middle = skipped + (count - skipped) / 2;
    return (double)ns[middle] / 1e6;
}

void timing_print(const struct timing *timing, const struct atp_plan *plan, bool is_planned)
{
    const struct atp_predicted *predicted = &plan->predicted;
    struct rusage usage = {0};
    if (timing->count == 0) {
        return;
    }
    double iteration_ms = median_ms(timing->iteration_ns, timing->count);
    double stall_ms = median_ms(timing->stall_ns, timing->count);
    double megabytes = (double)plan->arena_bytes / 1e6;
    (void)getrusage(RUSAGE_SELF, &usage);
    if (is_planned) {
        double promised_ms = (double)predicted->iteration_ns / 1e6;
        (void)fprintf(stderr,
                      "                predicted    measured\n"
                      "iteration  %11.2f ms %8.2f ms  (median; %+.1f %%)\n"
                      "stall      %11.2f ms %8.2f ms\n"
                      "peak       %11.2f MB %8.2f MB  (live bytes; arena)\n",
                      promised_ms, iteration_ms, 100 * (iteration_ms / promised_ms - 1),
                      (double)predicted->stall_ns / 1e6, stall_ms,
                      (double)predicted->peak_bytes / 1e6, megabytes);
    } else {
        (void)fprintf(stderr, "iteration %.2f ms (median), arena %.2f MB\n", iteration_ms,
                      megabytes);
    }
    (void)fprintf(stderr, "the process held %.1f MB at most\n", (double)usage.ru_maxrss / 1e3);
}
