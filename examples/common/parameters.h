/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of a whole network, with what training keeps beside them.
 */
#ifndef PARAMETERS_H
#define PARAMETERS_H

#include "layers.h"

/* Zeroes, in one piece of the device's memory, which begins with the values and goes back by
 * device_give. False: there is no such piece, and nothing to give. */
bool parameters_take(struct parameters *parameters, struct device *device, uint64_t count);
uint64_t parameters_bytes(uint64_t count); /* of that piece */

struct parameters parameters_part(const struct parameters *whole, uint64_t begin, uint64_t count);

#endif
