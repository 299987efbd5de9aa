/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Ends a search from outside: a timer, SIGINT or SIGTERM raises a flag that the search looks at.
 * Signal handlers reach nothing but file-scope data; this is the only such data of the planner.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <stdint.h>

/* From here on the first SIGINT or SIGTERM raises the flag and the second one ends the program. So
 * does the clock after `time_limit_ms` (0: never). Signals that are ignored stay ignored. Returns
 * the flag: 0, or the number of the signal, SIGALRM for the clock. */
const volatile int *interrupt_watch(uint32_t time_limit_ms);

/* Between the two no signal ends the program: what is being written is completed. The second also
 * ends the watch. */
void interrupt_hold(void);
void interrupt_release(void);

#endif
