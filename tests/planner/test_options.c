/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "options.h"

#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

/* Parses the words of one line, split at blanks; `err` gets what was wrong. */
static enum atp_status parse(const char *line, struct options *out, struct atp_error *err)
{
    static char words[256];
    char *argv[24] = {words};
    int argc = 1;
    ck_assert_uint_lt(strlen(line) + 10, sizeof(words));
    (void)snprintf(words, sizeof(words), "atp-plan %s", line);
    for (char *blank = strchr(words, ' '); blank != NULL; blank = strchr(blank + 1, ' ')) {
        *blank = '\0';
        if (blank[1] != '\0') {
            argv[argc++] = blank + 1;
        }
    }
    return options_parse(argc, argv, out, err);
}

static struct options parse_good(const char *line)
{
    struct options options;
    struct atp_error err;
    ck_assert_msg(parse(line, &options, &err) == ATP_OK, "%s: %s", line, err.text);
    return options;
}

START_TEST(solves_when_no_command_is_named)
{
    struct options o = parse_good("p.yaml --budget 1GB");
    ck_assert_int_eq(o.command, COMMAND_SOLVE);
    ck_assert_str_eq(o.input, "p.yaml");
    ck_assert(o.has_budget && o.budget.amount == 1000000000);
    ck_assert_uint_eq(o.effort, 1);
    ck_assert_ptr_null(o.output);
    ck_assert(!o.quiet && !o.verbose && !o.help && !o.version);
}
END_TEST

START_TEST(takes_flags_before_and_behind_the_command_and_the_file)
{
    struct options o = parse_good("--budget 50% solve -v p.yaml -o plan.yaml --effort=3");
    ck_assert_int_eq(o.command, COMMAND_SOLVE);
    ck_assert_str_eq(o.input, "p.yaml");
    ck_assert_str_eq(o.output, "plan.yaml");
    ck_assert(o.budget.is_share && o.verbose);
    ck_assert_uint_eq(o.effort, 3);
}
END_TEST

START_TEST(reads_every_flag_of_every_command)
{
    struct options o = parse_good("solve p --budget 8e9 --batch 16 --effort 2 --time-limit 0.5 "
                                  "--alignment 512 -q -oplan");
    ck_assert_uint_eq(o.batch_size, 16);
    ck_assert_uint_eq(o.time_limit_ms, 500);
    ck_assert_uint_eq(o.alignment_bytes, 512);
    ck_assert_str_eq(o.output, "plan");
    ck_assert(o.quiet);
    o = parse_good("p --budget 1GB --d2h 25GB/s --h2d 50e9 --memory 16GiB");
    ck_assert_uint_eq(o.d2h_bytes_per_second, 25000000000);
    ck_assert_uint_eq(o.h2d_bytes_per_second, 50000000000);
    ck_assert_uint_eq(o.memory_bytes, 17179869184);
    o = parse_good("check plan --profile p --batch 4 --max-gap 1%");
    ck_assert_int_eq(o.command, COMMAND_CHECK);
    ck_assert_str_eq(o.profile, "p");
    ck_assert(o.has_max_gap && o.max_gap == SIZE_PERCENT);
    o = parse_good("show plan --width 120 --no-color");
    ck_assert_int_eq(o.command, COMMAND_SHOW);
    ck_assert_uint_eq(o.width, 120);
    ck_assert(o.no_color);
    o = parse_good("report plan --profile p -o page.html --no-policies");
    ck_assert_int_eq(o.command, COMMAND_REPORT);
    ck_assert_str_eq(o.input, "plan");
    ck_assert_str_eq(o.profile, "p");
    ck_assert_str_eq(o.output, "page.html");
    ck_assert(o.no_policies);
    o = parse_good("compare p --budget 60% --csv");
    ck_assert_int_eq(o.command, COMMAND_COMPARE);
    ck_assert(o.csv && o.budget.is_share);
    o = parse_good("sweep p --points 5");
    ck_assert_int_eq(o.command, COMMAND_SWEEP);
    ck_assert_uint_eq(o.points, 5);
    ck_assert_uint_eq(parse_good("sweep p").points, 10);
    o = parse_good("peak p --budget 8GB --gap 0.5% --range 8..64 --multiple 8 --global-batch 256 "
                   "--plans 3 --points 4");
    ck_assert_int_eq(o.command, COMMAND_PEAK);
    ck_assert_uint_eq(o.gap, SIZE_PERCENT / 2);
    ck_assert_uint_eq(o.first_batch, 8);
    ck_assert_uint_eq(o.last_batch, 64);
    ck_assert_uint_eq(o.multiple, 8);
    ck_assert_uint_eq(o.global_batch, 256);
    ck_assert_uint_eq(o.plans, 3);
    ck_assert_uint_eq(o.points, 4);
    o = parse_good("peak p --budget 8GB");
    ck_assert_uint_eq(o.gap, SIZE_PERCENT);
    ck_assert_uint_eq(o.points, 4);
    ck_assert_uint_eq(o.plans, 8);
    ck_assert_uint_eq(o.multiple, 1);
    o = parse_good("peak p --budget 8GB --d2h 25GB/s --h2d 50e9 --memory 16GiB");
    ck_assert_uint_eq(o.d2h_bytes_per_second, 25000000000);
    ck_assert_uint_eq(o.memory_bytes, 17179869184);
    ck_assert_str_eq(parse_good("p --budget 1 --report r.json").report, "r.json");
    o = parse_good("merge a b c -o all -q");
    ck_assert_int_eq(o.command, COMMAND_MERGE);
    ck_assert_uint_eq(o.input_count, 3);
    ck_assert_str_eq(o.input, "a");
    ck_assert_str_eq(o.inputs[2], "c");
    ck_assert_str_eq(o.output, "all");
    ck_assert(o.quiet);
}
END_TEST

START_TEST(reads_what_trace_diff_and_emit_take)
{
    struct atp_error err;
    struct options o = parse_good("trace plan --profile p -o t.json");
    ck_assert_int_eq(o.command, COMMAND_TRACE);
    ck_assert_str_eq(o.output, "t.json");
    o = parse_good("diff a --json b --force");
    ck_assert_int_eq(o.command, COMMAND_DIFF);
    ck_assert_str_eq(o.input, "a");
    ck_assert_str_eq(o.second, "b");
    ck_assert(o.json && o.force);
    o = parse_good("emit --c plan --name _gpt2");
    ck_assert_int_eq(o.command, COMMAND_EMIT);
    ck_assert(o.c);
    ck_assert_str_eq(o.name, "_gpt2");
    ck_assert_str_eq(parse_good("emit --c plan").name, "plan");
    static const struct {
        const char *line, *text;
    } bad[] = {
        {"trace plan", "trace needs --profile PROFILE"},
        {"diff a", "diff needs two plans"},
        {"diff a b c", "one file too many, behind \"b\""},
        {"show a b", "one file too many, behind \"a\""},
        {"emit plan", "emit needs a language: --c"},
        {"emit --c plan --name 2x", "expected a C identifier"},
        {"emit --c plan --name a-b", "expected a C identifier"},
        {"emit --c plan --name=", "expected a C identifier"},
        {"check plan --json", "check has no option --json"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(parse(bad[i].line, &o, &err), ATP_ERR_INVALID);
        ck_assert_msg(strstr(err.text, bad[i].text) != NULL, "%s: %s", bad[i].line, err.text);
    }
}
END_TEST

START_TEST(knows_long_names_of_short_flags)
{
    struct options o = parse_good("p --budget 1 --output=plan --quiet");
    ck_assert_str_eq(o.output, "plan");
    ck_assert(o.quiet);
}
END_TEST

START_TEST(reads_a_command_name_as_a_file_behind_two_dashes)
{
    struct options o = parse_good("--budget 1 -- check");
    ck_assert_int_eq(o.command, COMMAND_SOLVE);
    ck_assert_str_eq(o.input, "check");
    o = parse_good("check -- --profile");
    ck_assert_str_eq(o.input, "--profile");
}
END_TEST

START_TEST(takes_a_dash_as_standard_output)
{
    struct options o = parse_good("p --budget 1 -o -");
    ck_assert_ptr_null(o.output);
}
END_TEST

START_TEST(helps_whatever_else_is_missing)
{
    ck_assert(parse_good("--help").help);
    ck_assert(parse_good("check -h").help);
    ck_assert_int_eq(parse_good("check -h").command, COMMAND_CHECK);
    ck_assert(parse_good("--version").version);
}
END_TEST

START_TEST(refuses_with_words_that_help)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"p --budget", "--budget needs a value: --budget SIZE"},
        {"p -o", "-o needs a value"},
        {"p --budget --batch 1", "--budget needs a value"},
        {"p --budgte 1", "no option --budgte, did you mean --budget?"},
        {"p --buget=1", "no option --buget, did you mean --budget?"},
        {"p --bud 1", "did you mean --budget?"},
        {"p --maxgap 1", "did you mean --max-gap?"},
        {"p --zzzzzz", "there is no option --zzzzzz"},
        {"p -z", "there is no option -z"},
        {"p -vq --budget 1", "there is no option -vq"},
        {"p --quiet=yes", "takes no value"},
        {"p --budget 1 --budget 1", "--budget is given twice"},
        {"p --budget 1x", "--budget: \"1x\""},
        {"p --alignment 3 --budget 1", "--alignment: \"3\", expected a power of two"},
        {"p --batch 0 --budget 1", "--batch: \"0\""},
        {"p --effort 0 --budget 1", "--effort: \"0\""},
        {"show p --width 3", "--width: \"3\""},
        {"p --profile x --budget 1", "solve, which is meant when no command is given, has no"},
        {"check p --budget 1", "--budget needs --profile"},
        {"check p --points 2", "check has no option --points"},
        {"show p -v", "show has no option -v"},
        {"chck p --profile x", "there is no command chck, did you mean check?"},
        {"solve p q", "\"q\" is one file too many"},
        {"merge", "merge needs a profile"},
        {"merge p", "merge needs two profiles or more"},
        {"merge p q --budget 1", "merge has no option --budget"},
        {"solve --budget 1", "solve needs a profile"},
        {"check --profile p", "check needs a plan"},
        {"check p --max-gap 1", "--max-gap needs --profile"},
        {"check p --d2h 1", "--d2h needs --profile"},
        {"p --budget 1GB --d2h 5%", "--d2h: \"5%\" is no rate"},
        {"p --budget 1GB --memory 5%", "--memory: \"5%\", expected bytes"},
        {"check p --batch 1", "--batch needs --profile"},
        {"p --budget 1 -q -v", "exclude each other"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct options options;
        struct atp_error err = {0};
        ck_assert_msg(parse(cases[i].line, &options, &err) == ATP_ERR_INVALID, "%s", cases[i].line);
        ck_assert_msg(strstr(err.text, cases[i].message) != NULL, "%s: \"%s\" does not say \"%s\"",
                      cases[i].line, err.text, cases[i].message);
    }
}
END_TEST

START_TEST(bears_very_long_words)
{
    char line[200];
    struct options options;
    struct atp_error err = {0};
    (void)snprintf(line, sizeof(line), "p --%0150d", 0);
    ck_assert_int_eq(parse(line, &options, &err), ATP_ERR_INVALID);
    (void)snprintf(line, sizeof(line), "%0150d q", 0);
    ck_assert_int_eq(parse(line, &options, &err), ATP_ERR_INVALID);
}
END_TEST

/* Every flag of a command, in its help: the help is made from the table, so this holds the table.
 */
START_TEST(names_every_flag_in_the_help_of_its_commands)
{
    static const struct {
        enum command command;
        const char *flags[9];
    } cases[] = {
        {COMMAND_SOLVE,
         {"--alignment BYTES", "--batch NUMBER", "--budget SIZE", "--effort NUMBER", "-o PLAN",
          "-q", "--time-limit SECONDS", "-v"}},
        {COMMAND_CHECK, {"--profile PROFILE", "--batch NUMBER", "--max-gap PERCENT", "-q"}},
        {COMMAND_SHOW, {"--width NUMBER", "--no-color"}},
        {COMMAND_REPORT, {"--profile PROFILE", "-o FILE", "--no-policies"}},
        {COMMAND_COMPARE, {"--budget SIZE", "--batch NUMBER", "--csv"}},
        {COMMAND_SWEEP, {"--points NUMBER", "--effort NUMBER", "--csv"}},
        {COMMAND_NONE, {"--help", "--version"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(out);
        options_help(cases[i].command, out);
        (void)fclose(out);
        for (size_t f = 0; cases[i].flags[f] != NULL; f++) {
            ck_assert_msg(strstr(text, cases[i].flags[f]) != NULL, "%s: no %s",
                          options_command_name(cases[i].command), cases[i].flags[f]);
        }
        free(text);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        solves_when_no_command_is_named,
        takes_flags_before_and_behind_the_command_and_the_file,
        reads_every_flag_of_every_command,
        reads_what_trace_diff_and_emit_take,
        knows_long_names_of_short_flags,
        reads_a_command_name_as_a_file_behind_two_dashes,
        takes_a_dash_as_standard_output,
        helps_whatever_else_is_missing,
        refuses_with_words_that_help,
        bears_very_long_words,
        names_every_flag_in_the_help_of_its_commands,
    };
    return RUN_TESTS("options", tests, NULL, NULL);
}
