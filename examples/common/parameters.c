/* SPDX-License-Identifier: Apache-2.0 */
#include "parameters.h"

#include <stddef.h>

uint64_t parameters_bytes(uint64_t count)
{
    return 4 * count * sizeof(float);
}

bool parameters_take(struct parameters *p, struct device *device, uint64_t count)
{
    float *values = (float *)device_take(device, parameters_bytes(count));
    if (values == NULL) {
        return false;
    }
    *p = (struct parameters){.count = count,
                             .values = values,
                             .gradients = values + count,
                             .first = values + 2 * count,
                             .second = values + 3 * count};
    return true;
}

struct parameters parameters_part(const struct parameters *whole, uint64_t begin, uint64_t count)
{
    return (struct parameters){.count = count,
                               .values = whole->values + begin,
                               .gradients = whole->gradients + begin,
                               .first = whole->first + begin,
                               .second = whole->second + begin};
}
