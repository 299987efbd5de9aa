/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A plan for people. What goes into a pipe or a file is plain ASCII of a fixed width, whatever the
 * environment; a terminal gets its own width, colours and bars.
 */
#include "command.h"

#include "picture.h"
#include "summary.h"

#include <atp/plan_yaml.h>

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80U
#define WIDTH_LEAST   40U
#define WIDTH_MOST    400U

/* What COLUMNS says goes before what the terminal says: a person has set it. */
static uint32_t terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    unsigned long said = columns != NULL ? strtoul(columns, NULL, 10) : 0;
    if (said >= WIDTH_LEAST && said <= WIDTH_MOST) {
        return (uint32_t)said;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return WIDTH_DEFAULT;
    }
    return size.ws_col < WIDTH_LEAST  ? WIDTH_LEAST
           : size.ws_col > WIDTH_MOST ? WIDTH_MOST
                                      : size.ws_col;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

static struct picture_style choose_style(const struct options *options)
{
    struct picture_style style = {.width = options->width};
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const char *terminal = getenv("TERM");
    if (style.width == 0) {
        style.width = is_terminal ? terminal_width() : WIDTH_DEFAULT;
    }
    if (is_terminal) {
        (void)setlocale(LC_CTYPE, "");
        style.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        style.color = !options->no_color && !is_set("NO_COLOR") && terminal != NULL &&
                      strcmp(terminal, "dumb") != 0;
    }
    return style;
}

static void show_plan(const struct atp_plan *plan, const struct options *options,
                      struct region *region)
{
    struct picture_style style = choose_style(options);
    summary_print(plan, stdout);
    (void)fputc('\n', stdout);
    if (summary_print_layers(plan, style.width, region, stdout)) {
        (void)fputc('\n', stdout);
    }
    picture_memory(plan, &style, region, stdout);
    (void)fputc('\n', stdout);
    picture_arena(plan, &style, region, stdout);
}

enum exit_code command_show(const struct options *options, struct region *region)
{
    struct atp_error err;
    struct atp_plan_file *file = NULL;
    if (atp_plan_read(options->input, &file, &err) != ATP_OK) {
        return command_fail(options->input, &err);
    }
    if (options->json) {
        summary_print_json(&file->plan, region, stdout);
    } else {
        show_plan(&file->plan, options, region);
    }
    /* Damaged plans are worth looking at, but not worth believing. */
    if (atp_plan_check(&file->plan, &err) != ATP_OK) {
        (void)fprintf(stderr, "%s: warning: this plan does not pass its check: %s\n",
                      options->input, err.text);
    }
    atp_plan_file_destroy(file);
    return EXIT_CODE_DONE;
}
