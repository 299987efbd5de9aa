/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Weights of 1 / batch^2 make an error count by its share of a value that grows with the batch
 * size: without them the largest batch size alone would draw the line. Sums only, in the order of
 * the file: the same on any machine.
 */
#include "profile_fit.h"

#include "profile_file.h"
#include "words.h"
#include "yaml_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define POOR_TIME    0.10 /* shares of the measured value */
#define POOR_BYTES   0.01
#define WORTH_NAMING 0.01
#define FALLING      0.90 /* of its value at the smallest batch size */
#define SHARE_SEEN   0.01 /* of the iteration: what is below is noise of tiny steps */

static struct profile_line line_of(const struct profile_file *file, const uint64_t *series)
{
    double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
    struct profile_line line = {0};
    for (uint32_t b = 0; b < file->batch_count; b++) {
        double batch = (double)file->batch_sizes[b], value = (double)series[b];
        double w = 1 / (batch * batch);
        weight += w;
        x += w * batch;
        y += w * value;
        xx += w * batch * batch;
        xy += w * batch * value;
    }
    double spread = weight * xx - x * x;
    line.per_sample = spread > 0 ? (weight * xy - x * y) / spread : 0;
    line.fixed = (y - line.per_sample * x) / weight;
    for (uint32_t b = 0; b < file->batch_count && file->batch_count > 2; b++) {
        double at = line.fixed + line.per_sample * (double)file->batch_sizes[b];
        double value = (double)series[b], off = fabs(at - value);
        /* Less than a unit is rounding. */
        double share = off < 1 ? 0 : value > 0 ? off / value : 1;
        if (share > line.off) {
            line.off = share;
            line.off_by = off;
            line.off_at = b;
        }
    }
    return line;
}

static bool has_zero(const struct profile_file *file, const uint64_t *series)
{
    for (uint32_t b = 0; b < file->batch_count; b++) {
        if (series[b] == 0) {
            return true;
        }
    }
    return false;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(values[0]), compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Keeps the worst in order; the first of two equals stays ahead. */
static void rank_step(uint32_t s, struct profile_fit *fit)
{
    uint32_t at = fit->worst_count;
    while (at > 0 && fit->time[fit->worst[at - 1]].off_by < fit->time[s].off_by) {
        at--;
    }
    if (at == PROFILE_FIT_WORST) {
        return;
    }
    fit->worst_count += fit->worst_count < PROFILE_FIT_WORST;
    for (uint32_t i = fit->worst_count - 1; i > at; i--) {
        fit->worst[i] = fit->worst[i - 1];
    }
    fit->worst[at] = s;
}

static void judge_step(const struct profile_file *file, uint32_t s, struct profile_fit *fit)
{
    const struct profile_line *line = &fit->time[s];
    uint32_t last = file->batch_count - 1;
    double begin = line->fixed + line->per_sample * (double)file->batch_sizes[0];
    double end = line->fixed + line->per_sample * (double)file->batch_sizes[last];
    if (line->off >= WORTH_NAMING) {
        rank_step(s, fit);
    }
    if (line->off > POOR_TIME) {
        bool is_worst =
            fit->poor_step == ATP_NONE || fit->time[s].off_by > fit->time[fit->poor_step].off_by;
        fit->poor_step = is_worst ? s : fit->poor_step;
        fit->poor_count++;
    }
    if (end < FALLING * begin) {
        fit->falling_step = fit->falling_count == 0 ? s : fit->falling_step;
        fit->falling_count++;
    }
}

/* The largest share of an iteration that the steps off their lines take, over the batch sizes. */
static double share_of_poor(const struct profile_file *file, const struct profile_fit *fit)
{
    double most = 0;
    for (uint32_t b = 0; b < file->batch_count; b++) {
        double all = 0, poor = 0;
        for (uint32_t s = 0; s < file->step_count; s++) {
            double ns = (double)file->steps[s].time_ns[b];
            all += ns;
            poor += fit->time[s].off > POOR_TIME ? ns : 0;
        }
        most = all > 0 && poor / all > most ? poor / all : most;
    }
    return most;
}

static void fit_tensors(const struct profile_file *file, struct profile_fit *fit)
{
    for (uint32_t t = 0; t < file->tensor_count; t++) {
        struct profile_line line = line_of(file, file->tensors[t].bytes);
        fit->fixed_bytes += line.fixed;
        fit->sample_bytes += line.per_sample;
        if (line.off > POOR_BYTES) {
            fit->poor_tensor = fit->poor_tensor_count == 0 ? t : fit->poor_tensor;
            fit->poor_tensor_count++;
        }
    }
}

void profile_fit_build(const struct profile_file *file, struct region *region,
                       struct profile_fit *out_fit)
{
    struct profile_line *lines = REGION_NEW(region, struct profile_line, file->step_count);
    double *launches = REGION_NEW(region, double, file->step_count);
    uint32_t launch_count = 0;
    struct profile_fit fit = {.batch_count = file->batch_count,
                              .time = lines,
                              .poor_step = ATP_NONE,
                              .falling_step = ATP_NONE,
                              .poor_tensor = ATP_NONE};
    for (uint32_t s = 0; s < file->step_count; s++) {
        const struct profile_step *step = &file->steps[s];
        fit.zero_count += has_zero(file, step->time_ns);
        if (file->batch_count == 1) {
            continue;
        }
        lines[s] = line_of(file, step->time_ns);
        fit.phase[step->step.phase].fixed_ns += lines[s].fixed;
        fit.phase[step->step.phase].sample_ns += lines[s].per_sample;
        if (step->step.phase != ATP_PHASE_UPDATE) {
            launches[launch_count++] = lines[s].fixed;
        }
        judge_step(file, s, &fit);
    }
    for (unsigned p = 0; p < sizeof(fit.phase) / sizeof(fit.phase[0]); p++) {
        fit.all.fixed_ns += fit.phase[p].fixed_ns;
        fit.all.sample_ns += fit.phase[p].sample_ns;
    }
    fit.launch_ns = median(launches, launch_count);
    if (file->batch_count > 1) {
        fit.poor_share = share_of_poor(file, &fit);
        fit_tensors(file, &fit);
    }
    *out_fit = fit;
}

/* A line may begin below zero. What rounds to nothing has no sign. */
static struct words signed_words(double value, struct words (*of)(double))
{
    struct words size = of(fabs(value)), all;
    (void)snprintf(all.text, sizeof(all.text), "%s%.30s", value <= -0.5 ? "-" : "", size.text);
    return all;
}

static struct words time_of(double ns)
{
    return words_time((int64_t)(ns + 0.5));
}

static struct words bytes_of(double bytes)
{
    return words_bytes((uint64_t)(bytes + 0.5));
}

static void print_line(const char *what, double fixed, double per_sample,
                       struct words (*of)(double), FILE *out)
{
    (void)fprintf(out, "  %-12s %12s + %s a sample\n", what, signed_words(fixed, of).text,
                  signed_words(per_sample, of).text);
}

void profile_fit_print(const struct profile_file *file, const struct profile_fit *fit, FILE *out)
{
    if (fit->batch_count == 1) {
        return;
    }
    (void)fprintf(out,
                  "%s: %" PRIu32 " batch sizes from %" PRIu64 " to %" PRIu64 ", %" PRIu32
                  " steps, %" PRIu32 " tensors; fixed, and in proportion to the batch:\n",
                  file->model_name, file->batch_count, file->batch_sizes[0],
                  file->batch_sizes[file->batch_count - 1], file->step_count, file->tensor_count);
    for (uint32_t p = 0; p < sizeof(fit->phase) / sizeof(fit->phase[0]); p++) {
        print_line(atp_phase_name((enum atp_phase)p), fit->phase[p].fixed_ns,
                   fit->phase[p].sample_ns, time_of, out);
    }
    print_line("iteration", fit->all.fixed_ns, fit->all.sample_ns, time_of, out);
    print_line("tensors", fit->fixed_bytes, fit->sample_bytes, bytes_of, out);
    (void)fprintf(out, "  %-12s %12s fixed, in the median of forward and backward\n", "a step",
                  signed_words(fit->launch_ns, time_of).text);
    for (uint32_t i = 0; i < fit->worst_count; i++) {
        const struct profile_line *line = &fit->time[fit->worst[i]];
        const struct atp_step *step = &file->steps[fit->worst[i]].step;
        (void)fprintf(out, "  %-12s %12s at %" PRIu64 ": %s %s\n", i == 0 ? "off the line" : "",
                      words_percent(line->off).text, file->batch_sizes[line->off_at],
                      atp_phase_name(step->phase), doc_shorten(step->name).text);
    }
}

void profile_fit_warn(const struct profile_file *file, const struct profile_fit *fit,
                      const char *path, FILE *out)
{
    if (fit->zero_count > 0) {
        (void)fprintf(
            out, "%s: warning: %" PRIu32 " of %" PRIu32 " steps take no time at some batch size\n",
            path, fit->zero_count, file->step_count);
    }
    if (fit->poor_share > SHARE_SEEN) {
        const struct profile_line *line = &fit->time[fit->poor_step];
        const struct atp_step *step = &file->steps[fit->poor_step].step;
        (void)fprintf(out,
                      "%s: warning: %" PRIu32 " steps, up to %s of the time, are not on a line "
                      "through the batch sizes: %s %s is off by %s at %" PRIu64 "\n",
                      path, fit->poor_count, words_percent(fit->poor_share).text,
                      atp_phase_name(step->phase), doc_shorten(step->name).text,
                      words_percent(line->off).text, file->batch_sizes[line->off_at]);
    }
    if (fit->falling_count > 0) {
        (void)fprintf(
            out, "%s: warning: %" PRIu32 " steps take less time the larger the batch: %s %s\n",
            path, fit->falling_count, atp_phase_name(file->steps[fit->falling_step].step.phase),
            doc_shorten(file->steps[fit->falling_step].step.name).text);
    }
    if (fit->poor_tensor_count > 0) {
        (void)fprintf(out,
                      "%s: warning: the sizes of %" PRIu32
                      " tensors are not on a line through the batch sizes: %s\n",
                      path, fit->poor_tensor_count,
                      doc_shorten(file->tensors[fit->poor_tensor].name).text);
    }
}
