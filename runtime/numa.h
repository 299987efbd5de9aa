/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory near a device: copies between a device and memory of another processor's node cross the
 * link between processors too, and are slower. All of this is advice: where the system does not
 * tell, or forbids, memory comes from wherever it would have.
 */
#ifndef ATP_NUMA_H
#define ATP_NUMA_H

#include <stdbool.h>

#define NUMA_NONE (-1)

/* What is asked of the system; a test has one of its own. */
struct numa_system {
    const char *pci_devices; /* folder with a folder for each PCI device */
    /* The calling thread's memory policy. Both give 0 or -1, as get_mempolicy and set_mempolicy do.
     */
    long (*get_policy)(int *out_mode);
    long (*set_policy)(int mode, const unsigned long *nodes, unsigned long node_limit);
};

extern const struct numa_system numa_linux;

/* The node that a PCI device ("0000:C1:00.0", in either case) is attached to; NUMA_NONE where the
 * system does not know the device or has one node only. */
int numa_node_of(const struct numa_system *system, const char *pci_address);

/* From here on the calling thread's new memory comes from `node` while that has room, until
 * numa_leave. False, and nothing has changed, for NUMA_NONE, where the system forbids it, and where
 * the thread has a policy already: whoever chose it (numactl) knows better. */
bool numa_enter(const struct numa_system *system, int node);
void numa_leave(const struct numa_system *system);

#endif
