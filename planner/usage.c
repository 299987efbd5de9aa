/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "usage.h"

static const char *const TEXTS[] = {
    [COMMAND_NONE] = "usage: atp-plan [solve] PROFILE --budget SIZE [-o PLAN] [OPTION...]\n"
                     "       atp-plan check PLAN [--profile PROFILE] [OPTION...]\n"
                     "       atp-plan show PLAN [OPTION...]\n"
                     "       atp-plan compare PROFILE --budget SIZE [OPTION...]\n"
                     "       atp-plan sweep PROFILE [OPTION...]\n"
                     "       atp-plan trace PLAN --profile PROFILE [-o FILE]\n"
                     "       atp-plan diff PLAN PLAN [OPTION...]\n"
                     "       atp-plan emit --c PLAN [-o FILE] [--name SYMBOL]\n"
                     "       atp-plan peak PROFILE --budget SIZE [OPTION...]\n"
                     "       atp-plan report PLAN --profile PROFILE [-o PAGE] [OPTION...]\n"
                     "       atp-plan import (--csv | --pytorch) FILE [-o PROFILE] [OPTION...]\n"
                     "       atp-plan merge PROFILE PROFILE... [-o PROFILE]\n\n"
                     "Plans which activations of a training iteration to keep, recompute or "
                     "swap.\n\n"
                     "  solve   write a plan for a profile and a budget\n"
                     "  check   prove a plan, compare it with a profile\n"
                     "  show    print a summary of a plan and pictures of its memory\n"
                     "  compare a plan with simple policies at the same budget\n"
                     "  sweep   print what each budget costs, down to the least one\n"
                     "  trace   write the plan's timeline for Perfetto and chrome://tracing\n"
                     "  diff    print what changed between two plans, and what it costs\n"
                     "  emit    write the plan as C source, to be compiled in\n"
                     "  peak    find the batch size with most throughput within a budget\n"
                     "  report  write a plan as a page for the browser\n"
                     "  import  make a profile of layers measured by hand, or of a PyTorch trace\n"
                     "  merge   make one profile of recordings at several batch sizes\n\n"
                     "atp-plan COMMAND --help says more about one.\n",
    [COMMAND_SOLVE] = "usage: atp-plan [solve] PROFILE --budget SIZE [-o PLAN] [OPTION...]\n\n"
                      "Writes the plan with which the iteration of the profile fits the budget "
                      "and takes\nas little time as can be found.\n",
    [COMMAND_CHECK] = "usage: atp-plan check PLAN [--profile PROFILE] [OPTION...]\n\n"
                      "Proves that the plan fits, reads the right bytes and cannot race. With a "
                      "profile:\nthat it is for this profile and that its numbers are true.\n",
    [COMMAND_SHOW] = "usage: atp-plan show PLAN [OPTION...]\n\n"
                     "Prints a summary of the plan, its decisions by layer, its memory over "
                     "the program\nand a picture of its arena.\n",
    [COMMAND_COMPARE] = "usage: atp-plan compare PROFILE --budget SIZE [OPTION...]\n\n"
                        "Plans the profile for the budget, and prints beside the plan what "
                        "simple policies\nwould need and take.\n",
    [COMMAND_SWEEP] = "usage: atp-plan sweep PROFILE [OPTION...]\n\n"
                      "Plans the profile for budgets from the one that holds everything down "
                      "to the least,\nand prints what each of them costs.\n",
    [COMMAND_TRACE] = "usage: atp-plan trace PLAN --profile PROFILE [-o FILE]\n\n"
                      "Writes what the plan does on the profile's clock in the Trace Event "
                      "Format, which\nPerfetto and chrome://tracing open.\n",
    [COMMAND_DIFF] = "usage: atp-plan diff PLAN PLAN [OPTION...]\n\n"
                     "Prints what changed from the first plan to the second. Exits with 0 when "
                     "nothing\ndid, 1 when something did, 3 when the plans are for different "
                     "models.\n",
    [COMMAND_EMIT] = "usage: atp-plan emit --c PLAN [-o FILE] [--name SYMBOL]\n\n"
                     "Writes the plan as a source file for C and C++ with one const struct "
                     "atp_plan, so\nthat a training program needs neither file nor YAML.\n",
    [COMMAND_PEAK] = "usage: atp-plan peak PROFILE --budget SIZE [-o PLAN] [OPTION...]\n\n"
                     "Finds the batch size at which the profile trains fastest within the "
                     "budget, proves\nit, and prints the throughput over batch sizes beside "
                     "that of simple policies.\n",
    [COMMAND_REPORT] =
        "usage: atp-plan report PLAN --profile PROFILE [-o PAGE] [OPTION...]\n\n"
        "Writes one HTML page with the plan's numbers, its memory, engines and arena as\n"
        "pictures, and what it does with each tensor. It needs no network and no other "
        "file.\n",
    [COMMAND_IMPORT] =
        "usage: atp-plan import (--csv | --pytorch) FILE --batch NUMBER --device-memory SIZE\n"
        "           --copy-rate SIZE --resident SIZE [-o PROFILE] [OPTION...]\n\n"
        "Writes a profile for a chain of layers, one a line below this one:\n"
        "name,forward_us,backward_us,output_bytes,saved_bytes\n"
        "or for an iteration in a trace of torch.profiler, which must have been recorded with\n"
        "record_shapes and profile_memory.\n",
    [COMMAND_MERGE] = "usage: atp-plan merge PROFILE PROFILE... [-o PROFILE]\n\n"
                      "Makes one profile of recordings of one model at several batch sizes, and "
                      "says what\nof its time and memory is fixed and what grows with the batch.\n",
};

const char *usage_text(enum command command)
{
    return TEXTS[command];
}
