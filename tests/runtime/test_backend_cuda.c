/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the contract suite does not see of the CUDA backend: contexts, messages, and what is left
 * after a failure. On the fake driver.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assert_error.h"
#include "fake_scene.h"
#include "link_probe.h"
#include "run_tests.h"

static void finish_clean(struct fake_scene *s)
{
    fake_scene_finish(s);
    ck_assert_msg(s->report.total == 0, "%s", s->report.text);
}

/* ---- finding a driver and a device ---- */

START_TEST(says_that_there_is_no_driver)
{
    struct cuda_api api;
    struct atp_error err;
    enum atp_status status = cuda_api_load("libatp-has-no-such.so.1", &api, &err);
    assert_error(status, err, ATP_ERR_UNSUPPORTED, ATP_NONE,
                 "CUDA: no driver: libatp-has-no-such.so.1: ");
}
END_TEST

START_TEST(says_which_function_a_driver_lacks)
{
    struct cuda_api api;
    struct atp_error err;
    enum atp_status status = cuda_api_load("libc.so.6", &api, &err);
    assert_error(status, err, ATP_ERR_UNSUPPORTED, ATP_NONE,
                 "CUDA: the driver libc.so.6 is too old: it has no function cuGetErrorName");
    ck_assert(api.cuInit == NULL);
}
END_TEST

/* The fake driver as a library of its own; the build says where it is. */
START_TEST(loads_a_driver_with_the_names_of_its_functions)
{
    const char *library = getenv("ATP_FAKE_LIBCUDA");
    struct cuda_api api;
    struct atp_error err;
    if (library == NULL) {
        (void)puts("skipped: ATP_FAKE_LIBCUDA does not say where a fake libcuda is");
        return;
    }
    assert_ok(cuda_api_load(library, &api, &err), err);
    void *const *functions = (void *const *)(const void *)&api;
    for (size_t f = 0; f < sizeof(api) / sizeof(functions[0]); f++) {
        ck_assert_ptr_nonnull(functions[f]);
    }
    ck_assert(api.cuInit != fake_cuda_api()->cuInit);
}
END_TEST

START_TEST(has_no_backend_where_there_is_no_device)
{
    struct fake_options options = {.has_no_device = true};
    struct atp_backend *backend;
    struct fake_report report;
    struct atp_error err;
    fake_cuda_start(&options);
    enum atp_status status = cuda_backend_create(fake_cuda_api(), 0, &backend, &err);
    assert_error(status, err, ATP_ERR_UNSUPPORTED, ATP_NONE,
                 "CUDA: cuInit: CUDA_ERROR_NO_DEVICE 100 (no CUDA-capable device is detected)");
    ck_assert_ptr_null(backend);
    fake_cuda_finish(&report);
    ck_assert_uint_eq(report.total, 0);
}
END_TEST

START_TEST(refuses_a_device_that_is_not_there)
{
    struct atp_backend *backend;
    struct fake_report report;
    struct atp_error err;
    fake_cuda_start(NULL);
    enum atp_status status = cuda_backend_create(fake_cuda_api(), 1, &backend, &err);
    assert_error(status, err, ATP_ERR_INVALID, ATP_NONE,
                 "CUDA: there is no device 1; devices are 0 to 0");
    status = cuda_backend_create(fake_cuda_api(), -1, &backend, NULL);
    ck_assert_int_eq(status, ATP_ERR_INVALID);
    ck_assert_ptr_null(backend);
    fake_cuda_finish(&report);
    ck_assert_uint_eq(report.total, 0);
}
END_TEST

START_TEST(holds_the_primary_context_as_long_as_it_lives)
{
    struct fake_report report;
    struct atp_backend *first, *second;
    struct atp_error err;
    fake_cuda_start(NULL);
    assert_ok(cuda_backend_create(fake_cuda_api(), 0, &first, &err), err);
    assert_ok(cuda_backend_create(fake_cuda_api(), 0, &second, &err), err);
    fake_cuda_look(&report);
    ck_assert_uint_eq(report.owner_count, 2);
    atp_backend_destroy(first);
    fake_cuda_look(&report);
    ck_assert_uint_eq(report.owner_count, 1);
    atp_backend_destroy(second);
    fake_cuda_finish(&report);
    ck_assert_uint_eq(report.owner_count, 0);
    ck_assert_uint_eq(report.total, 0);
}
END_TEST

/* ---- every operation ---- */

/* Makes, uses and releases one thing of each kind, as far as it gets. The status of the first
 * operation that failed. */
static enum atp_status do_everything(struct fake_scene *s, struct atp_error *err)
{
    const struct atp_backend_ops *ops = s->ops;
    struct atp_backend *b = s->backend;
    void *arena = NULL, *pinned = NULL, *stream = NULL, *copies = NULL, *start = NULL, *end = NULL;
    int64_t ns;
    enum atp_status status = ops->arena_alloc(b, 64, &arena, err);
#define NEXT(call) status = status == ATP_OK ? (call) : status
    NEXT(ops->host_alloc(b, 64, &pinned, err));
    NEXT(ops->stream_create(b, ATP_STREAM_COMPUTE, &stream, err));
    NEXT(ops->stream_create(b, ATP_STREAM_COPY, &copies, err));
    NEXT(ops->event_create(b, true, &start, err));
    NEXT(ops->event_create(b, true, &end, err));
    NEXT(ops->fill(b, stream, arena, 7, 64, err));
    NEXT(ops->event_record(b, start, stream, err));
    NEXT(ops->stream_wait(b, copies, start, err));
    NEXT(ops->copy(b, copies, pinned, arena, 64, ATP_COPY_TO_HOST, err));
    NEXT(ops->copy(b, copies, arena, pinned, 64, ATP_COPY_TO_DEVICE, err));
    NEXT(ops->event_record(b, end, copies, err));
    NEXT(ops->stream_sync(b, copies, err));
    NEXT(ops->event_elapsed(b, start, end, &ns, err));
#undef NEXT
    void *const streams[] = {stream, copies}, *const events[] = {start, end};
    for (int i = 0; i < 2; i++) {
        if (streams[i] != NULL) {
            /* Twice: once it may be the call that is made to fail. */
            if (ops->stream_sync(b, streams[i], NULL) != ATP_OK) {
                ck_assert_int_eq(ops->stream_sync(b, streams[i], NULL), ATP_OK);
            }
            ops->stream_destroy(b, streams[i]);
        }
        if (events[i] != NULL) {
            ops->event_destroy(b, events[i]);
        }
    }
    if (pinned != NULL) {
        ops->host_free(b, pinned);
    }
    if (arena != NULL) {
        ops->arena_free(b, arena);
    }
    return status;
}

START_TEST(leaves_the_context_of_the_caller_current)
{
    const struct cuda_api *api = fake_cuda_api();
    struct fake_scene s;
    CUcontext popped;
    fake_scene_init(&s, NULL);
    ck_assert_ptr_null(fake_cuda_current());
    ck_assert_int_eq(api->cuCtxPushCurrent(fake_cuda_other_context()), CUDA_SUCCESS);
    assert_ok(do_everything(&s, &s.err), s.err);
    ck_assert_ptr_eq(fake_cuda_current(), fake_cuda_other_context());
    ck_assert_int_eq(api->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    ck_assert_ptr_null(fake_cuda_current());
    ck_assert_uint_eq(fake_cuda_calls("cuCtxPushCurrent"), fake_cuda_calls("cuCtxPopCurrent"));
    finish_clean(&s);
}
END_TEST

/* A call that fails in an operation is the status of that operation; one that fails in a release
 * is nobody's. Either way all is released and the caller's context is current again. */
START_TEST(releases_everything_whichever_call_fails)
{
    struct fake_report before, after;
    struct fake_scene s;
    uint64_t failed_count = 0;
    fake_scene_init(&s, NULL);
    fake_cuda_look(&before);
    assert_ok(do_everything(&s, &s.err), s.err);
    fake_cuda_look(&after);
    finish_clean(&s);
    for (uint64_t call = before.call_count + 1; call <= after.call_count; call++) {
        struct fake_options options = {.failing_call = call};
        struct atp_error err = {.status = ATP_OK};
        fake_scene_init(&s, &options);
        enum atp_status status = do_everything(&s, &err);
        ck_assert_int_eq(status, err.status);
        if (status != ATP_OK) {
            failed_count++;
            assert_error(status, err, ATP_ERR_DEVICE, ATP_NONE,
                         ": CUDA_ERROR_LAUNCH_FAILED 719 (unspecified launch failure)");
        }
        ck_assert_ptr_null(fake_cuda_current());
        finish_clean(&s);
    }
    ck_assert_uint_eq(failed_count, 42); /* push, call and pop of 14 operations */
}
END_TEST

START_TEST(gives_nothing_back_when_it_fails)
{
    for (uint64_t call = 1; call <= 3; call++) {
        struct fake_report report;
        struct fake_scene s;
        fake_scene_init(&s, NULL);
        fake_cuda_look(&report);
        finish_clean(&s);
        struct fake_options options = {.failing_call = report.call_count + call};
        for (int kind = 0; kind < 4; kind++) {
            void *out = &out;
            fake_scene_init(&s, &options);
            enum atp_status status =
                kind == 0   ? s.ops->arena_alloc(s.backend, 64, &out, NULL)
                : kind == 1 ? s.ops->host_alloc(s.backend, 64, &out, NULL)
                : kind == 2 ? s.ops->stream_create(s.backend, ATP_STREAM_COPY, &out, NULL)
                            : s.ops->event_create(s.backend, false, &out, NULL);
            ck_assert_int_eq(status, ATP_ERR_DEVICE);
            ck_assert_ptr_null(out);
            finish_clean(&s);
        }
    }
}
END_TEST

START_TEST(fails_to_be_made_whichever_call_fails)
{
    static const char *const calls[] = {
        "cuInit: ", "cuDeviceGetCount: ", "cuDeviceGet of device 0: ",
        "cuDevicePrimaryCtxRetain of device 0: "};
    for (uint64_t call = 1; call <= 4; call++) {
        struct fake_options options = {.failing_call = call};
        struct atp_backend *backend;
        struct fake_report report;
        struct atp_error err;
        fake_cuda_start(&options);
        enum atp_status status = cuda_backend_create(fake_cuda_api(), 0, &backend, &err);
        assert_error(status, err, ATP_ERR_DEVICE, ATP_NONE, calls[call - 1]);
        ck_assert_ptr_null(backend);
        fake_cuda_finish(&report);
        ck_assert_msg(report.total == 0, "%s", report.text);
    }
}
END_TEST

START_TEST(names_the_call_and_the_error_it_gave)
{
    struct fake_scene s;
    struct fake_report report;
    fake_scene_init(&s, NULL);
    fake_cuda_look(&report);
    finish_clean(&s);
    struct fake_options options = {.failing_call = report.call_count + 2,
                                   .failure = (CUresult)12345};
    fake_scene_init(&s, &options);
    enum atp_status status = s.ops->event_record(s.backend, s.events[0], s.compute, &s.err);
    assert_error(status, s.err, ATP_ERR_DEVICE, ATP_NONE,
                 "CUDA: cuEventRecord: unknown error 12345 (the driver has no text for it)");
    finish_clean(&s);
}
END_TEST

/* ---- memory ---- */

START_TEST(says_how_many_bytes_could_not_be_had)
{
    struct fake_options options = {.device_bytes = 4096};
    struct fake_scene s;
    void *memory;
    fake_scene_init(&s, &options);
    enum atp_status status = s.ops->arena_alloc(s.backend, 3073, &memory, &s.err);
    assert_error(status, s.err, ATP_ERR_NO_MEMORY, ATP_NONE,
                 "CUDA: cuMemAlloc of 3073 bytes of device memory, 3072 of 4096 free: "
                 "CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
    status = s.ops->host_alloc(s.backend, 5000, &memory, &s.err);
    assert_error(status, s.err, ATP_ERR_NO_MEMORY, ATP_NONE,
                 "CUDA: cuMemHostAlloc of 5000 bytes of pinned memory, this machine has ");
    ck_assert_ptr_nonnull(strstr(s.err.text, ": CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)"));
    finish_clean(&s);
}
END_TEST

START_TEST(measures_a_link_and_survives_every_failure_of_it)
{
    struct fake_report before, after;
    struct link_rates rates;
    struct fake_scene s;
    fake_scene_init(&s, NULL);
    fake_cuda_look(&before);
    assert_ok(link_probe(s.backend, 1 << 16, &rates, &s.err), s.err);
    ck_assert_uint_gt(rates.d2h_bytes_per_second, 0);
    ck_assert_uint_gt(rates.h2d_bytes_per_second, 0);
    fake_cuda_look(&after);
    ck_assert_uint_eq(after.live_count, before.live_count);
    finish_clean(&s);
    for (uint64_t call = before.call_count + 1; call <= after.call_count; call++) {
        struct fake_options options = {.failing_call = call};
        fake_scene_init(&s, &options);
        enum atp_status status = link_probe(s.backend, 1 << 16, &rates, &s.err);
        ck_assert(status == ATP_OK || status == ATP_ERR_DEVICE);
        fake_cuda_heal(); /* the number of calls follows the times measured: this one may be to come
                           */
        finish_clean(&s);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        says_that_there_is_no_driver,
        says_which_function_a_driver_lacks,
        loads_a_driver_with_the_names_of_its_functions,
        has_no_backend_where_there_is_no_device,
        refuses_a_device_that_is_not_there,
        holds_the_primary_context_as_long_as_it_lives,
        leaves_the_context_of_the_caller_current,
        releases_everything_whichever_call_fails,
        gives_nothing_back_when_it_fails,
        fails_to_be_made_whichever_call_fails,
        names_the_call_and_the_error_it_gave,
        says_how_many_bytes_could_not_be_had,
        measures_a_link_and_survives_every_failure_of_it,
    };
    return RUN_TESTS("backend_cuda", tests, NULL, NULL);
}
