/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy takes latency + bytes / rate: two sizes give both. The least of several times is taken,
 * because everything that disturbs a copy makes it slower. The first copy of each kind warms up.
 */
#include "link_probe.h"

#include <stddef.h>

#include "fail.h"

#define REPEATS       7
#define SMALL_DIVISOR 16

struct probe {
    struct atp_backend *backend;
    const struct atp_backend_ops *ops;
    void *arena, *host, *stream, *start, *end;
};

static enum atp_status time_copy(const struct probe *p, uint64_t bytes, enum atp_copy direction,
                                 int64_t *out_ns, struct atp_error *err)
{
    bool is_out = direction == ATP_COPY_TO_HOST;
    *out_ns = INT64_MAX;
    for (int i = 0; i <= REPEATS; i++) {
        int64_t ns;
        ATP_TRY(p->ops->event_record(p->backend, p->start, p->stream, err));
        ATP_TRY(p->ops->copy(p->backend, p->stream, is_out ? p->host : p->arena,
                             is_out ? p->arena : p->host, bytes, direction, err));
        ATP_TRY(p->ops->event_record(p->backend, p->end, p->stream, err));
        ATP_TRY(p->ops->stream_sync(p->backend, p->stream, err));
        ATP_TRY(p->ops->event_elapsed(p->backend, p->start, p->end, &ns, err));
        if (i > 0 && ns < *out_ns) {
            *out_ns = ns;
        }
    }
    return ATP_OK;
}

static uint64_t rate(uint64_t bytes, int64_t ns)
{
    double per_second = (double)bytes * 1e9 / (double)(ns > 0 ? ns : 1);
    /* Profiles hold whole numbers, and a rate of 0 would mean "never". */
    return per_second < 1 ? 1 : per_second > 1e18 ? 1000000000000000000u : (uint64_t)per_second;
}

void link_solve(uint64_t small_bytes, int64_t small_ns, uint64_t big_bytes, int64_t big_ns,
                uint64_t *out_bytes_per_second, int64_t *out_latency_ns)
{
    *out_latency_ns = 0;
    if (big_bytes == small_bytes || big_ns <= small_ns) {
        *out_bytes_per_second = rate(big_bytes, big_ns); /* too noisy to tell them apart */
        return;
    }
    *out_bytes_per_second = rate(big_bytes - small_bytes, big_ns - small_ns);
    double copying_ns = (double)big_bytes * 1e9 / (double)*out_bytes_per_second;
    double latency_ns = (double)big_ns - copying_ns;
    if (latency_ns < 0) {
        *out_bytes_per_second = rate(big_bytes, big_ns);
    } else {
        *out_latency_ns = (int64_t)latency_ns;
    }
}

static enum atp_status measure(const struct probe *p, uint64_t bytes, struct link_rates *out,
                               struct atp_error *err)
{
    uint64_t small_bytes = bytes < SMALL_DIVISOR ? bytes : bytes / SMALL_DIVISOR;
    uint64_t *rates[] = {&out->d2h_bytes_per_second, &out->h2d_bytes_per_second};
    enum atp_copy directions[] = {ATP_COPY_TO_HOST, ATP_COPY_TO_DEVICE};
    out->copy_latency_ns = 0;
    /* Both memories get contents: pages that were never written would be copied too fast. */
    ATP_TRY(p->ops->fill(p->backend, p->stream, p->arena, 0, bytes, err));
    for (int d = 0; d < 2; d++) {
        int64_t small_ns, big_ns, latency_ns;
        ATP_TRY(time_copy(p, bytes, directions[d], &big_ns, err));
        ATP_TRY(time_copy(p, small_bytes, directions[d], &small_ns, err));
        link_solve(small_bytes, small_ns, bytes, big_ns, rates[d], &latency_ns);
        if (latency_ns > out->copy_latency_ns) {
            out->copy_latency_ns = latency_ns;
        }
    }
    return ATP_OK;
}

static enum atp_status make_probe(struct probe *p, uint64_t bytes, struct atp_error *err)
{
    ATP_TRY(p->ops->arena_alloc(p->backend, bytes, &p->arena, err));
    ATP_TRY(p->ops->host_alloc(p->backend, bytes, &p->host, err));
    ATP_TRY(p->ops->stream_create(p->backend, ATP_STREAM_COPY, &p->stream, err));
    ATP_TRY(p->ops->event_create(p->backend, true, &p->start, err));
    return p->ops->event_create(p->backend, true, &p->end, err);
}

static void drop_probe(const struct probe *p)
{
    if (p->end != NULL) {
        p->ops->event_destroy(p->backend, p->end);
    }
    if (p->start != NULL) {
        p->ops->event_destroy(p->backend, p->start);
    }
    if (p->stream != NULL) {
        p->ops->stream_destroy(p->backend, p->stream);
    }
    if (p->host != NULL) {
        p->ops->host_free(p->backend, p->host);
    }
    if (p->arena != NULL) {
        p->ops->arena_free(p->backend, p->arena);
    }
}

enum atp_status link_probe(struct atp_backend *backend, uint64_t bytes,
                           struct link_rates *out_rates, struct atp_error *err)
{
    struct probe probe = {.backend = backend, .ops = backend->ops};
    enum atp_status status = make_probe(&probe, bytes, err);
    if (status == ATP_OK) {
        status = measure(&probe, bytes, out_rates, err);
    }
    if (probe.stream != NULL) {
        /* A copy may still be in flight when a later call failed. */
        enum atp_status ignored = probe.ops->stream_sync(backend, probe.stream, NULL);
        (void)ignored;
    }
    drop_probe(&probe);
    return status;
}
