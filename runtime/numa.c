/* SPDX-License-Identifier: Apache-2.0 */
/* syscall() is no part of POSIX. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "numa.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of Linux's interface, which libc has no functions for. */
#define POLICY_DEFAULT   0
#define POLICY_PREFERRED 1

#define WORD_BITS   (8 * sizeof(unsigned long))
#define NODES_MAX   1024
#define ADDRESS_MAX 32 /* with the terminator */

static long linux_get_policy(int *out_mode)
{
#ifdef SYS_get_mempolicy
    return syscall(SYS_get_mempolicy, out_mode, NULL, 0UL, NULL, 0UL);
#else
    (void)out_mode;
    return -1;
#endif
}

static long linux_set_policy(int mode, const unsigned long *nodes, unsigned long node_limit)
{
#ifdef SYS_set_mempolicy
    return syscall(SYS_set_mempolicy, mode, nodes, node_limit);
#else
    (void)mode, (void)nodes, (void)node_limit;
    return -1;
#endif
}

const struct numa_system numa_linux = {.pci_devices = "/sys/bus/pci/devices",
                                       .get_policy = linux_get_policy,
                                       .set_policy = linux_set_policy};

int numa_node_of(const struct numa_system *system, const char *pci_address)
{
    char address[ADDRESS_MAX], path[256];
    int node = NUMA_NONE;
    size_t length = strlen(pci_address);
    if (length == 0 || length >= sizeof(address)) {
        return NUMA_NONE;
    }
    for (size_t i = 0; i <= length; i++) { /* the system writes small letters */
        const char *capital = strchr("AaBbCcDdEeFf", pci_address[i]);
        address[i] = pci_address[i];
        if (capital != NULL && *capital >= 'A' && *capital <= 'F') {
            address[i] = capital[1];
        }
    }
    int path_length = snprintf(path, sizeof(path), "%s/%s/numa_node", system->pci_devices, address);
    if (path_length < 0 || (size_t)path_length >= sizeof(path)) {
        return NUMA_NONE;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return NUMA_NONE;
    }
    /* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it; what is no node is caught below */
    if (fscanf(file, "%d", &node) != 1 || node < 0 || node >= NODES_MAX) {
        node = NUMA_NONE;
    }
    (void)fclose(file);
    return node;
}

bool numa_enter(const struct numa_system *system, int node)
{
    unsigned long nodes[NODES_MAX / WORD_BITS] = {0};
    int mode;
    if (node < 0 || node >= NODES_MAX || system->get_policy(&mode) != 0 || mode != POLICY_DEFAULT) {
        return false;
    }
    nodes[(unsigned)node / WORD_BITS] = 1UL << (unsigned)node % WORD_BITS;
    /* The kernel looks at one bit less than it is told. */
    return system->set_policy(POLICY_PREFERRED, nodes, NODES_MAX + 1) == 0;
}

void numa_leave(const struct numa_system *system)
{
    (void)system->set_policy(POLICY_DEFAULT, NULL, 0);
}
