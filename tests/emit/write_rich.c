/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writes the rich plan as C to standard output, for the test that compiles it in. A number as the
 * argument: that many instructions more, to time compilers.
 */
#include "emit_c.h"
#include "rich_plan.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct atp_error err;
    struct plan_builder *builder = rich_plan_create();
    builder->plan.certificate = "rows 0 0000000000000000\n"; /* which the source leaves out */
    unsigned long more = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    for (unsigned long i = 0; i < more; i++) {
        (void)plan_builder_add(builder, ATP_OP_ALLOC, RICH_X, i * 256);
    }
    enum atp_status status = emit_c(&builder->plan, "rich", stdout, &err);
    plan_builder_destroy(builder);
    return status == ATP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
