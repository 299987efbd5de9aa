/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy takes latency + bytes / rate: two sizes give both. The least of several times is taken,
 * because everything that disturbs a copy makes it slower. The first copy of each kind warms up.
 *
 * Both directions at once: the other direction gets copies that keep it busy for longer than the
 * two copies of this one take, of which the second is timed. Here a time can also be too short,
 * where the host was late to queue one of them, so the median is taken. The directions have memory
 * of their own.
 */
#include "link_probe.h"

#include <inttypes.h>
#include <stddef.h>

#include "checked.h"
#include "fail.h"

#define REPEATS       7
#define SMALL_DIVISOR 16
#define COVER_MAX     64

struct probe {
    struct atp_backend *backend;
    const struct atp_backend_ops *ops;
    /* device, host: `bytes` for copies to the host, then as much for those to the device */
    uint8_t *arena, *host;
    uint64_t bytes;
    void *stream, *other, *start, *end;
};

static enum atp_status queue(const struct probe *p, void *stream, uint64_t bytes,
                             enum atp_copy direction, struct atp_error *err)
{
    bool is_out = direction == ATP_COPY_TO_HOST;
    uint8_t *arena = p->arena + (is_out ? 0 : p->bytes), *host = p->host + (is_out ? 0 : p->bytes);
    return p->ops->copy(p->backend, stream, is_out ? host : arena, is_out ? arena : host, bytes,
                        direction, err);
}

static enum atp_status time_copy(const struct probe *p, uint64_t bytes, enum atp_copy direction,
                                 int64_t *out_ns, struct atp_error *err)
{
    *out_ns = INT64_MAX;
    for (int i = 0; i <= REPEATS; i++) {
        int64_t ns;
        ATP_TRY(p->ops->event_record(p->backend, p->start, p->stream, err));
        ATP_TRY(queue(p, p->stream, bytes, direction, err));
        ATP_TRY(p->ops->event_record(p->backend, p->end, p->stream, err));
        ATP_TRY(p->ops->stream_sync(p->backend, p->stream, err));
        ATP_TRY(p->ops->event_elapsed(p->backend, p->start, p->end, &ns, err));
        if (i > 0 && ns < *out_ns) {
            *out_ns = ns;
        }
    }
    return ATP_OK;
}

/* How long a copy takes while `cover` copies run the other way. */
static enum atp_status time_covered(const struct probe *p, enum atp_copy direction, int cover,
                                    int64_t *out_ns, struct atp_error *err)
{
    enum atp_copy against = direction == ATP_COPY_TO_HOST ? ATP_COPY_TO_DEVICE : ATP_COPY_TO_HOST;
    int64_t sorted_ns[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        int64_t ns;
        for (int c = 0; c < cover; c++) {
            ATP_TRY(queue(p, p->other, p->bytes, against, err));
        }
        ATP_TRY(queue(p, p->stream, p->bytes, direction, err));
        ATP_TRY(p->ops->event_record(p->backend, p->start, p->stream, err));
        ATP_TRY(queue(p, p->stream, p->bytes, direction, err));
        ATP_TRY(p->ops->event_record(p->backend, p->end, p->stream, err));
        ATP_TRY(p->ops->stream_sync(p->backend, p->stream, err));
        ATP_TRY(p->ops->stream_sync(p->backend, p->other, err));
        ATP_TRY(p->ops->event_elapsed(p->backend, p->start, p->end, &ns, err));
        int at = i;
        for (; at > 0 && sorted_ns[at - 1] > ns; at--) {
            sorted_ns[at] = sorted_ns[at - 1];
        }
        sorted_ns[at] = ns;
    }
    *out_ns = sorted_ns[REPEATS / 2];
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

static enum atp_status measure_both(const struct probe *p, const int64_t *alone_ns,
                                    struct link_rates *out, struct atp_error *err)
{
    uint64_t alone[] = {out->d2h_bytes_per_second, out->h2d_bytes_per_second};
    uint64_t *rates[] = {&out->d2h_duplex_bytes_per_second, &out->h2d_duplex_bytes_per_second};
    for (int d = 0; d < 2; d++) {
        int64_t ns, other_ns = alone_ns[1 - d] > 0 ? alone_ns[1 - d] : 1;
        int64_t cover = 3 + 3 * (alone_ns[d] / other_ns);
        enum atp_copy direction = d == 0 ? ATP_COPY_TO_HOST : ATP_COPY_TO_DEVICE;
        ATP_TRY(time_covered(p, direction, cover < COVER_MAX ? (int)cover : COVER_MAX, &ns, err));
        ns -= out->copy_latency_ns < ns ? out->copy_latency_ns : 0;
        *rates[d] = rate(p->bytes, ns);
        if (*rates[d] > alone[d]) { /* by chance: nothing is faster in company */
            *rates[d] = alone[d];
        }
    }
    return ATP_OK;
}

static enum atp_status measure(const struct probe *p, struct link_rates *out, struct atp_error *err)
{
    uint64_t bytes = p->bytes;
    int64_t alone_ns[2];
    uint64_t small_bytes = bytes < SMALL_DIVISOR ? bytes : bytes / SMALL_DIVISOR;
    uint64_t *rates[] = {&out->d2h_bytes_per_second, &out->h2d_bytes_per_second};
    enum atp_copy directions[] = {ATP_COPY_TO_HOST, ATP_COPY_TO_DEVICE};
    out->copy_latency_ns = 0;
    /* Both memories get contents: pages that were never written would be copied too fast. */
    ATP_TRY(p->ops->fill(p->backend, p->stream, p->arena, 0, 2 * bytes, err));
    ATP_TRY(queue(p, p->stream, bytes, ATP_COPY_TO_HOST, err));
    ATP_TRY(p->ops->copy(p->backend, p->stream, p->host + bytes, p->arena + bytes, bytes,
                         ATP_COPY_TO_HOST, err));
    ATP_TRY(p->ops->stream_sync(p->backend, p->stream, err));
    for (int d = 0; d < 2; d++) {
        int64_t small_ns, big_ns, latency_ns;
        ATP_TRY(time_copy(p, bytes, directions[d], &big_ns, err));
        ATP_TRY(time_copy(p, small_bytes, directions[d], &small_ns, err));
        link_solve(small_bytes, small_ns, bytes, big_ns, rates[d], &latency_ns);
        if (latency_ns > out->copy_latency_ns) {
            out->copy_latency_ns = latency_ns;
        }
        alone_ns[d] = big_ns;
    }
    return measure_both(p, alone_ns, out, err);
}

static enum atp_status make_probe(struct probe *p, struct atp_error *err)
{
    void *memory;
    uint64_t bytes;
    if (!checked_mul(p->bytes, 2, &bytes)) {
        return atp_fail(err, ATP_ERR_NO_MEMORY, "no memory to copy %" PRIu64 " bytes each way",
                        p->bytes);
    }
    ATP_TRY(p->ops->arena_alloc(p->backend, bytes, &memory, err));
    p->arena = (uint8_t *)memory;
    ATP_TRY(p->ops->host_alloc(p->backend, bytes, &memory, err));
    p->host = (uint8_t *)memory;
    ATP_TRY(p->ops->stream_create(p->backend, ATP_STREAM_COPY, &p->stream, err));
    ATP_TRY(p->ops->stream_create(p->backend, ATP_STREAM_COPY, &p->other, err));
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
    if (p->other != NULL) {
        p->ops->stream_destroy(p->backend, p->other);
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
    struct probe probe = {.backend = backend, .ops = backend->ops, .bytes = bytes};
    enum atp_status status = make_probe(&probe, err);
    if (status == ATP_OK) {
        status = measure(&probe, out_rates, err);
    }
    void *const streams[] = {probe.stream, probe.other};
    for (int i = 0; i < 2; i++) {
        /* A copy may still be in flight when a later call failed, which may have been this one. */
        if (streams[i] != NULL && probe.ops->stream_sync(backend, streams[i], NULL) != ATP_OK) {
            enum atp_status ignored = probe.ops->stream_sync(backend, streams[i], NULL);
            (void)ignored;
        }
    }
    drop_probe(&probe);
    return status;
}
