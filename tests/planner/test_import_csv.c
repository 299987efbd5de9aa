/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "import.h"

#include "modeline.h"
#include "profile_emit.h"
#include "run_tests.h"

#include <string.h>

#define HEADER "name,forward_us,backward_us,output_bytes,saved_bytes\n"

static struct region *region;
static struct profile profile;
static struct atp_error err;
static const struct import_numbers numbers = {.device_memory_bytes = 1000,
                                              .d2h_bytes_per_second = 10,
                                              .h2d_bytes_per_second = 20,
                                              .batch_size = 4,
                                              .resident_bytes = 7,
                                              .input_bytes = 5,
                                              .update_us = 3};

static void set_up(void)
{
    region = region_create();
}

static void tear_down(void)
{
    region_destroy(region);
}

static enum atp_status import(const char *text, const struct import_numbers *with)
{
    return import_csv(text, strlen(text), "net", with, region, &profile, &err);
}

static const char *tensor_name(uint32_t id)
{
    return profile.model.tensors[id].name;
}

START_TEST(makes_a_chain_of_layers)
{
    ck_assert_int_eq(import(HEADER "a,1,2,100,0\nb,0.5,1.25,200,30\n", &numbers), ATP_OK);
    const struct atp_model *model = &profile.model;
    ck_assert_uint_eq(model->step_count, 5);
    ck_assert_uint_eq(model->tensor_count, 5);
    const struct atp_step *forward = &model->steps[1], *backward = &model->steps[2];
    ck_assert_str_eq(forward->name, "b");
    ck_assert_int_eq(forward->phase, ATP_PHASE_FORWARD);
    ck_assert_str_eq(tensor_name(forward->reads[0]), "a.out");
    ck_assert_str_eq(tensor_name(forward->writes[1]), "b.saved");
    ck_assert_str_eq(backward->name, "b");
    ck_assert_int_eq(backward->phase, ATP_PHASE_BACKWARD);
    ck_assert_uint_eq(backward->read_count, 3);
    ck_assert_str_eq(tensor_name(backward->writes[0]), "a.grad");
    ck_assert_uint_eq(backward->workspace_bytes, 200);
    ck_assert_int_eq(profile.clock.step_ns[2], 1250);
    const struct atp_step *last = &model->steps[3];
    ck_assert_uint_eq(last->write_count, 0);
    ck_assert_str_eq(tensor_name(last->reads[0]), "input");
    ck_assert_str_eq(tensor_name(last->reads[2]), "a.grad");
    ck_assert_int_eq(model->steps[4].phase, ATP_PHASE_UPDATE);
    ck_assert_int_eq(profile.clock.step_ns[4], 3000);
}
END_TEST

START_TEST(takes_columns_in_any_order_and_optional_ones)
{
    ck_assert_int_eq(import("rerun,saved_bytes,workspace_bytes,output_bytes,name,backward_us,"
                            "forward_us\nnever,1,2,3,dropout,5,6\n",
                            &numbers),
                     ATP_OK);
    const struct atp_step *step = &profile.model.steps[0];
    ck_assert(step->rerun_never);
    ck_assert(!profile.model.steps[1].rerun_never);
    ck_assert_uint_eq(step->workspace_bytes, 2);
    ck_assert_int_eq(profile.clock.step_ns[0], 6000);
}
END_TEST

START_TEST(makes_what_the_reader_of_profiles_takes)
{
    struct profile again;
    const struct profile_file *file = NULL;
    char *text = NULL;
    size_t size = 0;
    ck_assert_int_eq(
        import(HEADER "\"odd \"\"\\ \xc3\xa9: [x]\",1,2,100,3\nno,1,2,3,4\n", &numbers), ATP_OK);
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(profile_emit(profile_file_of(&profile, region), out, &err) == ATP_OK, "%s",
                  err.text);
    (void)fclose(out);
    ck_assert_int_eq(strncmp(text, atp_profile_modeline, strlen(atp_profile_modeline)), 0);
    ck_assert_int_eq(profile_parse(text, size, region, &file, &err), ATP_OK);
    ck_assert_int_eq(profile_at_batch(file, 0, region, &again, &err), ATP_OK);
    ck_assert_int_eq(atp_model_compare(&profile.model, "a", &again.model, "b", &err), ATP_OK);
    ck_assert_str_eq(again.origin, profile.origin);
    ck_assert_uint_eq(again.model.batch_size, 4);
    ck_assert_uint_eq(again.resident_bytes, 7);
    ck_assert_uint_eq(again.pinned_bytes, UINT64_MAX);
    ck_assert_uint_eq(again.clock.h2d_bytes_per_second, 20);
    for (uint32_t s = 0; s < again.model.step_count; s++) {
        ck_assert_int_eq(again.clock.step_ns[s], profile.clock.step_ns[s]);
    }
    free(text);
}
END_TEST

START_TEST(names_line_and_column_of_what_is_wrong)
{
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *what;
    } bad[] = {
        {"", 1, 1, "there is no layer"},
        {HEADER, 1, 1, "there is no layer"},
        {"name,forward_us,backward_us,output_bytes\na,1,2,3\n", 2, 1, "\"saved_bytes\" is missing"},
        {"name,forward_ms,backward_us,output_bytes,saved_bytes\na,1,2,3,4\n", 1, 6, "forward_ms"},
        {HEADER "a,1,2,3,4\nb,x,2,3,4\n", 3, 3, "rows[1].forward_us: "},
        {HEADER "a,1,-2,3,4\n", 2, 5, "rows[0].backward_us: "},
        {HEADER "a,1,2,3.5,4\n", 2, 7, "a whole number of bytes"},
        {HEADER "a,1,2,3,9e18\n", 2, 9, "rows[0].saved_bytes: "},
        {HEADER "a,1,2,3,\n", 2, 9, "rows[0].saved_bytes: "},
        {HEADER ",1,2,3,4\n", 2, 1, "rows[0].name: "},
        {HEADER "a,1,2,3,4\nb,1,2,3,4\na,1,2,3,4\n", 4, 1, "in line 2 too"},
        {HEADER "a;1;2;3;4\n", 2, 10, "fewer values"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_ne(import(bad[i].text, &numbers), ATP_OK);
        ck_assert_msg(strstr(err.text, bad[i].what) != NULL && err.line == bad[i].line &&
                          err.column == bad[i].column,
                      "case %zu: %u:%u: %s", i, err.line, err.column, err.text);
    }
}
END_TEST

START_TEST(lets_no_profile_out_that_its_reader_refuses)
{
    struct import_numbers none = numbers;
    none.batch_size = 0;
    ck_assert_int_eq(import(HEADER "a,1,2,3,4\n", &none), ATP_OK);
    ck_assert_int_eq(profile_emit(profile_file_of(&profile, region), stdout, &err),
                     ATP_ERR_INVALID);
    ck_assert_msg(strstr(err.text, "batch_size") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        makes_a_chain_of_layers,
        takes_columns_in_any_order_and_optional_ones,
        makes_what_the_reader_of_profiles_takes,
        names_line_and_column_of_what_is_wrong,
        lets_no_profile_out_that_its_reader_refuses,
    };
    return RUN_TESTS("import_csv", tests, set_up, tear_down);
}
