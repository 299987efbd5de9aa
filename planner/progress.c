/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "progress.h"

#include "words.h"

#include <stdio.h>
#include <time.h>

#define EVERY_MS 100

int64_t progress_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct progress_line progress_begin(const char *label)
{
    return (struct progress_line){.label = label, .start_ms = progress_now_ms()};
}

void progress_draw(void *ctx, const struct solve_progress *progress)
{
    struct progress_line *line = ctx;
    int64_t now = progress_now_ms();
    if (line->is_drawn && now - line->drawn_ms < EVERY_MS) {
        return;
    }
    bool has_plan = progress->iteration_ns > 0, has_bound = progress->bound_ns > 0;
    (void)fprintf(stderr, "\r%s%6.1f s %3.0f %%", line->label, (double)(now - line->start_ms) / 1e3,
                  progress->share_done * 100);
    (void)fprintf(stderr, "  best %s", has_plan ? words_time(progress->iteration_ns).text : "none");
    (void)fprintf(stderr, "  bound %s", has_bound ? words_time(progress->bound_ns).text : "none");
    (void)fprintf(stderr, "  gap %-10s",
                  has_plan && has_bound ? words_gap(progress->iteration_ns, progress->bound_ns).text
                                        : "-");
    line->drawn_ms = now;
    line->is_drawn = true;
}

void progress_wipe(const struct progress_line *line)
{
    if (line->is_drawn) {
        (void)fprintf(stderr, "\r%78s\r", "");
    }
}
