/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The fake driver as a libcuda.so.1 for any program: a session from load to exit, with random
 * delays of up to ATP_FAKE_DELAY_US microseconds from ATP_FAKE_SEED. The wait numbered
 * ATP_FAKE_LOST_WAIT does nothing. Faults are printed at the end, and make the program fail. Waits
 * for events that were never recorded are legal CUDA, so they are none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_cuda.h"

static uint64_t setting(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

__attribute__((constructor)) static void begin(void)
{
    struct fake_options options = {.seed = setting("ATP_FAKE_SEED"),
                                   .delay_max_us = (uint32_t)setting("ATP_FAKE_DELAY_US"),
                                   .lost_wait = setting("ATP_FAKE_LOST_WAIT")};
    fake_cuda_start(&options);
}

__attribute__((destructor)) static void end(void)
{
    struct fake_report report;
    if (!fake_cuda_is_running()) {
        return;
    }
    fake_cuda_finish(&report);
    if (report.total > report.counts[FAKE_UNRECORDED_WAIT]) {
        (void)fprintf(stderr, "fake CUDA: %u faults\n%s", report.total, report.text);
        (void)fflush(NULL);
        _exit(EXIT_FAILURE);
    }
}
