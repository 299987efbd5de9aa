/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Neighbours are mostly of one layer, so that the one before is tried first; else all are, which is
 * tensors x layers at worst.
 */
#include "layers.h"

#include <string.h>

size_t layers_prefix(const char *name)
{
    const char *last = strrchr(name, '.');
    size_t first = strcspn(name, ".");
    if (last == NULL) {
        return 0;
    }
    for (const char *part = name; part < last;) {
        size_t length = strcspn(part, ".");
        if (strcspn(part, "0123456789") < length) {
            return (size_t)(part - name) + length;
        }
        part += length + 1;
    }
    return first;
}

void layers_build(const struct atp_plan *plan, struct region *region, struct layers *out_layers)
{
    uint32_t tensor_count = plan->model.tensor_count, count = 0, at = 0;
    struct layer *items = REGION_NEW(region, struct layer, tensor_count);
    uint32_t *of_tensor = REGION_NEW(region, uint32_t, tensor_count);
    for (uint32_t t = 0; t < tensor_count; t++) {
        const char *name = plan->model.tensors[t].name;
        size_t length = layers_prefix(name);
        char *layer = REGION_NEW(region, char, length + 1);
        memcpy(layer, name, length);
        if (count == 0 || strcmp(items[at].name, layer) != 0) {
            for (at = 0; at < count && strcmp(items[at].name, layer) != 0;) {
                at++;
            }
        }
        if (at == count) {
            items[count++].name = layer;
        }
        of_tensor[t] = at;
        items[at].tensors[plan->decisions[t]]++;
        items[at].bytes[plan->decisions[t]] += plan->model.tensors[t].bytes;
    }
    *out_layers = (struct layers){.count = count, .items = items, .of_tensor = of_tensor};
}
