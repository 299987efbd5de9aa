/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "words.h"

#include "plan_gap.h"

#include <inttypes.h>
#include <stdio.h>

/* Two decimals must not round up to the next unit: 999.999 MB is 1.00 GB. */
struct words words_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    struct words out;
    double value = (double)bytes / 1e3;
    size_t unit = 0;
    if (bytes < 1000) {
        (void)snprintf(out.text, sizeof(out.text), "%" PRIu64 " B", bytes);
        return out;
    }
    while (value >= 999.995 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1e3;
        unit++;
    }
    (void)snprintf(out.text, sizeof(out.text), "%.2f %s", value, units[unit]);
    return out;
}

struct words words_time(int64_t ns)
{
    struct words out;
    double value = (double)ns / 1e3;
    const char *unit = "us";
    if (value >= 999.9995) {
        value /= 1e3;
        unit = "ms";
    }
    if (value >= 999.9995) {
        value /= 1e3;
        unit = "s";
    }
    (void)snprintf(out.text, sizeof(out.text), "%.3f %s", value, unit);
    return out;
}

struct words words_percent(double share)
{
    struct words out;
    (void)snprintf(out.text, sizeof(out.text), "%.2f %%", share * 100);
    return out;
}

struct words words_gap(int64_t iteration_ns, int64_t bound_ns)
{
    return words_percent((double)plan_gap_millionths(iteration_ns, bound_ns) / 1e6);
}
