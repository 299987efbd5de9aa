/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Traces in the form that torch.profiler writes, one iteration of a few operators each.
 */
#include "import.h"

#include "profile_emit.h"
#include "run_tests.h"

#include <string.h>

#define OPEN  "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [\n"
#define CLOSE "{\"ph\": \"M\", \"name\": \"process_name\", \"ts\": 0, \"pid\": 1, \"tid\": 0}\n]}\n"

/* START and DURATION in microseconds, SHAPES and TYPES lists of JSON. */
#define OP(name, start, duration, number, shapes, types)                                           \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name "\", \"pid\": 1, \"tid\": 7, "        \
    "\"ts\": " start ", \"dur\": " duration ", \"args\": {\"Sequence number\": " number            \
    ", \"External id\": " start ", \"Input Dims\": " shapes ", \"Input type\": " types "}},\n"
#define RANGE(name, start, duration)                                                               \
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"" name                              \
    "\", \"pid\": 1, \"tid\": 7, \"ts\": " start ", \"dur\": " duration ", \"args\": {}},\n"
#define MEMORY_ON(time, address, bytes, type, device)                                              \
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", "       \
    "\"pid\": 1, \"tid\": 7, \"ts\": " time                                                        \
    ", \"args\": {\"Total Allocated\": 0, \"Bytes\": " bytes ", \"Addr\": " address                \
    ", \"Device Type\": " type ", \"Device Id\": " device "}},\n"
#define MEMORY(time, address, bytes) MEMORY_ON(time, address, bytes, "0", "-1")
#define GRAD(name)                   "autograd::engine::evaluate_function: " name

/* linear, relu in place, dropout, their backward steps and the optimizer. In linear's backward step
 * 16 bytes of gradient stay for the update. */
#define FORWARD                                                                                    \
    OP("aten::linear", "100", "50.5", "4", "[[4, 8], [16, 8]]", "[\"float\", \"float\"]")          \
    OP("aten::addmm", "110", "30", "5", "[[4, 8]]", "[\"float\"]")                                 \
    MEMORY("120", "1000", "256")                                                                   \
    OP("aten::relu_", "200", "10", "6", "[[4, 16]]", "[\"float\"]")                                \
    OP("aten::dropout", "300", "20", "7", "[[4, 16], []]", "[\"float\", \"Scalar\"]")              \
    OP("aten::bernoulli_", "305", "2", "7", "[[4, 16]]", "[\"float\"]")                            \
    MEMORY("301", "2000", "64")                                                                    \
    MEMORY("306", "3000", "40")                                                                    \
    MEMORY("307", "3000", "-40")                                                                   \
    MEMORY("310", "4000", "256")
#define BACKWARD                                                                                   \
    OP(GRAD("MulBackward0"), "400", "30", "7", "[]", "[]")                                         \
    OP("MulBackward0", "401", "20", "7", "[[4, 16]]", "[\"float\"]")                               \
    MEMORY("405", "5000", "256")                                                                   \
    MEMORY("425", "2000", "-64")                                                                   \
    MEMORY("426", "4000", "-256")                                                                  \
    OP(GRAD("ReluBackward0"), "500", "30", "6", "[]", "[]")                                        \
    MEMORY("505", "6000", "256")                                                                   \
    MEMORY("525", "5000", "-256")                                                                  \
    MEMORY("526", "1000", "-256")                                                                  \
    OP(GRAD("AddmmBackward0"), "600", "30", "5", "[]", "[]")                                       \
    MEMORY("605", "7000", "16")                                                                    \
    MEMORY("625", "6000", "-256")
#define UPDATE                                                                                     \
    RANGE("Optimizer.step#SGD.step", "700", "100")                                                 \
    OP("aten::mul_", "710", "20", "-1", "[[4]]", "[\"float\"]")                                    \
    OP("aten::add_", "740", "30", "-1", "[[4]]", "[\"float\"]")                                    \
    MEMORY("745", "8000", "24")                                                                    \
    MEMORY("746", "8000", "-24")                                                                   \
    MEMORY("790", "7000", "-16")

static struct region *region;
static struct profile profile;
static struct atp_error err;
static const struct import_numbers numbers = {.device_memory_bytes = 1000,
                                              .d2h_bytes_per_second = 10,
                                              .h2d_bytes_per_second = 20,
                                              .batch_size = 4,
                                              .resident_bytes = 7};

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

/* Texts one behind the other, NULL at the end: a literal of all of them is too long for C. */
static enum atp_status import(const char *const *parts)
{
    static char text[16384];
    size_t size = 0;
    for (; *parts != NULL; parts++) {
        size_t length = strlen(*parts);
        ck_assert_uint_lt(size + length, sizeof(text));
        memcpy(text + size, *parts, length);
        size += length;
    }
    return import_pytorch(text, size, "net", &numbers, region, &profile, &err);
}

static void expect_good(const char *const *parts)
{
    enum atp_status status = import(parts);
    ck_assert_msg(status == ATP_OK, "%u:%u: %s", err.line, err.column, err.text);
}
#define import_good(...) expect_good((const char *const[]){__VA_ARGS__, NULL})

static const struct atp_step *step_named(const char *name, enum atp_phase phase)
{
    for (uint32_t s = 0; s < profile.model.step_count; s++) {
        const struct atp_step *step = &profile.model.steps[s];
        if (step->phase == phase && strcmp(step->name, name) == 0) {
            return step;
        }
    }
    ck_abort_msg("there is no step %s", name);
    return NULL;
}

/* Names of tensors, separated by blanks. */
static void expect_uses(const uint32_t *ids, uint32_t count, const char *wanted)
{
    char got[400] = "";
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i > 0 ? " " : "",
                       profile.model.tensors[ids[i]].name);
    }
    ck_assert_str_eq(got, wanted);
}

static void expect_step(const char *name, enum atp_phase phase, const char *reads,
                        const char *writes)
{
    const struct atp_step *step = step_named(name, phase);
    expect_uses(step->reads, step->read_count, reads);
    expect_uses(step->writes, step->write_count, writes);
}

START_TEST(makes_steps_of_outermost_operators_and_tensors_of_what_outlives_them)
{
    import_good(OPEN, FORWARD, BACKWARD, UPDATE, CLOSE);
    const struct atp_model *model = &profile.model;
    ck_assert_uint_eq(model->step_count, 7);
    ck_assert_uint_eq(model->tensor_count, 5);
    expect_step("aten::linear", ATP_PHASE_FORWARD, "", "aten::linear.out");
    expect_step("aten::relu_", ATP_PHASE_FORWARD, "aten::linear.out", "aten::linear.out");
    expect_step("aten::dropout", ATP_PHASE_FORWARD, "aten::linear.out",
                "aten::dropout.out aten::dropout.out.1");
    ck_assert_uint_eq(model->tensors[0].bytes, 256);
    ck_assert_int_eq(profile.clock.step_ns[0], 50500);
    ck_assert_str_eq(profile.device_name, "as given to atp-plan import");
    ck_assert_uint_eq(profile.resident_bytes, 7);
    ck_assert_uint_eq(profile.clock.h2d_bytes_per_second, 20);
}
END_TEST

START_TEST(takes_what_goes_within_a_step_of_autograd_for_read_by_it)
{
    import_good(OPEN, FORWARD, BACKWARD, UPDATE, CLOSE);
    expect_step("ReluBackward0", ATP_PHASE_BACKWARD, "aten::linear.out MulBackward0.grad",
                "ReluBackward0.grad");
    /* The gradient of the weight is resident. */
    expect_step("AddmmBackward0", ATP_PHASE_BACKWARD, "ReluBackward0.grad", "");
    ck_assert_msg(strstr(profile.origin, "gradients of weights, 16 bytes") != NULL, "%s",
                  profile.origin);
}
END_TEST

START_TEST(takes_what_comes_and_goes_within_a_step_for_workspace)
{
    import_good(OPEN, FORWARD, BACKWARD, UPDATE, CLOSE);
    /* At once 64 + 256, or 64 + 40: the 40 bytes need no room of their own. */
    ck_assert_uint_eq(step_named("aten::dropout", ATP_PHASE_FORWARD)->workspace_bytes, 0);
    ck_assert_uint_eq(step_named("update", ATP_PHASE_UPDATE)->workspace_bytes, 24);
    import_good(OPEN, FORWARD, MEMORY("315", "9000", "100") MEMORY("316", "9000", "-100"), BACKWARD,
                UPDATE, CLOSE);
    ck_assert_uint_eq(step_named("aten::dropout", ATP_PHASE_FORWARD)->workspace_bytes, 100);
}
END_TEST

START_TEST(lets_random_operators_not_run_twice)
{
    import_good(OPEN, FORWARD, BACKWARD, UPDATE, CLOSE);
    ck_assert(step_named("aten::dropout", ATP_PHASE_FORWARD)->rerun_never);
    ck_assert(!step_named("aten::relu_", ATP_PHASE_FORWARD)->rerun_never);
    ck_assert(!step_named("aten::linear", ATP_PHASE_FORWARD)->rerun_never);
}
END_TEST

START_TEST(makes_one_step_of_the_optimizer_wherever_it_runs)
{
    import_good(OPEN,
                RANGE("Optimizer.zero_grad#SGD.zero_grad", "10", "50")
                    OP("aten::zero_", "20", "5", "-1", "[[4]]", "[\"float\"]"),
                FORWARD, BACKWARD, UPDATE, CLOSE);
    ck_assert_uint_eq(profile.model.step_count, 7);
    const struct atp_step *last = &profile.model.steps[6];
    ck_assert_str_eq(last->name, "update");
    ck_assert_int_eq(last->phase, ATP_PHASE_UPDATE);
    ck_assert_int_eq(profile.clock.step_ns[6], 5000 + 20000 + 30000);
}
END_TEST

START_TEST(takes_the_last_iteration_that_the_profiler_knows)
{
    import_good(OPEN,
                RANGE("ProfilerStep#3", "1", "3")
                    OP("aten::other", "2", "1", "1", "[[4]]", "[\"float\"]")
                        RANGE("ProfilerStep#4", "50", "900"),
                FORWARD, BACKWARD, UPDATE, CLOSE);
    ck_assert_str_eq(profile.model.steps[0].name, "aten::linear");
    ck_assert_uint_eq(profile.model.step_count, 7);
}
END_TEST

START_TEST(numbers_names_that_repeat)
{
    import_good(OPEN, FORWARD, OP("aten::linear", "330", "5", "8", "[[4, 16]]", "[\"float\"]"),
                BACKWARD, UPDATE, CLOSE);
    expect_step("aten::linear#2", ATP_PHASE_FORWARD, "aten::dropout.out.1", "");
}
END_TEST

START_TEST(takes_times_and_memory_of_the_gpu_where_there_is_one)
{
    import_good(
        "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}], "
        "\"traceEvents\": [\n",
        FORWARD, BACKWARD,
        UPDATE
            /* 10 floats are 40 bytes, which CUDA's allocator makes 512. */
            OP("aten::gelu", "340", "5", "9", "[[10]]",
               "[\"float\"]") OP("aten::tanh", "360", "5", "10", "[[10]]", "[\"float\"]")
                MEMORY_ON("341", "100", "512", "1", "0") MEMORY_ON("361", "200", "512", "1", "0")
                    MEMORY_ON("428", "100", "-512", "1", "0") MEMORY_ON(
                        "342", "100", "16", "1",
                        "1") "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, "
                             "\"tid\": 7, "
                             "\"ts\": 900, \"dur\": 3.25, \"args\": {\"External id\": 340}},\n",
        CLOSE);
    ck_assert_str_eq(profile.device_name, "NVIDIA H200");
    ck_assert_uint_eq(profile.model.tensor_count, 2);
    expect_step("aten::tanh", ATP_PHASE_FORWARD, "aten::gelu.out", "aten::tanh.out");
    /* Its input is 256 bytes, in 512 too. */
    expect_step("MulBackward0", ATP_PHASE_BACKWARD, "aten::tanh.out aten::gelu.out", "");
    int64_t sum = 0;
    for (uint32_t s = 0; s < profile.model.step_count; s++) {
        sum += profile.clock.step_ns[s];
    }
    ck_assert_int_eq(sum, 3250);
}
END_TEST

START_TEST(makes_what_the_reader_of_profiles_takes)
{
    struct profile again;
    const struct profile_file *file = NULL;
    char *text = NULL;
    size_t size = 0;
    import_good(OPEN, FORWARD, OP("a \\\"b\\u0007\\u00e9: [x]", "330", "5", "-1", "[]", "[]"),
                BACKWARD, UPDATE, CLOSE);
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(profile_emit(profile_file_of(&profile, region), out, &err) == ATP_OK, "%s",
                  err.text);
    (void)fclose(out);
    ck_assert_int_eq(profile_parse(text, size, region, &file, &err), ATP_OK);
    ck_assert_int_eq(profile_at_batch(file, 0, region, &again, &err), ATP_OK);
    ck_assert_int_eq(atp_model_compare(&profile.model, "a", &again.model, "b", &err), ATP_OK);
    ck_assert_uint_eq(again.pinned_bytes, UINT64_MAX);
    free(text);
}
END_TEST

START_TEST(names_line_and_column_of_what_is_wrong)
{
    static const struct {
        const char *parts[6]; /* NULL at the end */
        uint32_t line, column;
        const char *what;
    } bad[] = {
        {{""}, 1, 1, "this is no JSON"},
        {{"{\"traceEvents\": [\n {]}"}, 2, 3, "this is no JSON"},
        {{"\x1f\x8b\x08"}, 1, 1, "gunzip"},
        {{"[]"}, 1, 1, "no list traceEvents"},
        {{"{\"traceEvents\": {}}"}, 1, 1, "no list traceEvents"},
        {{"{\"a\": \"[{\\\"\", \"traceEvents\": [{},\n  7]}"},
         2,
         3,
         "traceEvents[1]: this is no map"},
        {{OPEN, "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"dur\": 1},\n", CLOSE},
         2,
         3,
         "traceEvents[0]: ts is missing"},
        {{OPEN, OP("a", "1", "-1", "1", "[]", "[]"), CLOSE}, 2, 1, "dur is no time"},
        {{OPEN, "{\"ph\": \"X\", \"cat\": \"cpu_op\"},\n", CLOSE}, 2, 1, "name is missing"},
        {{OPEN, MEMORY("1", "5", "\"x\""), CLOSE}, 2, 1, "args.Bytes"},
        {{OPEN, MEMORY("1", "0.5", "8"), CLOSE}, 2, 1, "args.Addr"},
        {{OPEN, FORWARD, CLOSE}, 2, 1, "no backward pass"},
        {{OPEN, OP(GRAD("A"), "1", "2", "1", "[[4]]", "[\"float\"]"), CLOSE},
         2,
         1,
         "profile_memory"},
        {{OPEN, OP(GRAD("A"), "1", "2", "1", "[]", "[]") MEMORY("2", "1", "8"), CLOSE},
         2,
         1,
         "record_shapes"},
        {{OPEN, FORWARD, BACKWARD, OP("aten::linear", "900", "5", "20", "[[4]]", "[\"float\"]"),
          CLOSE},
         24,
         1,
         "traceEvents[22]: \"aten::linear\" runs forward behind"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(import(bad[i].parts), ATP_ERR_SYNTAX);
        ck_assert_msg(strstr(err.text, bad[i].what) != NULL && err.line == bad[i].line &&
                          err.column == bad[i].column,
                      "case %zu: %u:%u: %s", i, err.line, err.column, err.text);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        makes_steps_of_outermost_operators_and_tensors_of_what_outlives_them,
        takes_what_goes_within_a_step_of_autograd_for_read_by_it,
        takes_what_comes_and_goes_within_a_step_for_workspace,
        lets_random_operators_not_run_twice,
        makes_one_step_of_the_optimizer_wherever_it_runs,
        takes_the_last_iteration_that_the_profiler_knows,
        numbers_names_that_repeat,
        takes_times_and_memory_of_the_gpu_where_there_is_one,
        makes_what_the_reader_of_profiles_takes,
        names_line_and_column_of_what_is_wrong,
    };
    return RUN_TESTS("import_pytorch", tests, set_up, tear_down);
}
