/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "import.h"

struct profile import_base(const char *model_name, const struct import_numbers *numbers)
{
    return (struct profile){
        .model = {.name = model_name, .batch_size = numbers->batch_size},
        .device_name = "as given to atp-plan import",
        .device_memory_bytes = numbers->device_memory_bytes,
        .pinned_bytes = UINT64_MAX,
        .resident_bytes = numbers->resident_bytes,
        .clock = {.d2h_bytes_per_second = numbers->d2h_bytes_per_second,
                  .h2d_bytes_per_second = numbers->h2d_bytes_per_second},
    };
}
