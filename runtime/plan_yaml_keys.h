/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of each map in a plan file, for the test that holds the schema against them.
 */
#ifndef ATP_PLAN_YAML_KEYS_H
#define ATP_PLAN_YAML_KEYS_H

#include "yaml_reader.h"

enum plan_map { PLAN_MAP_TOP, PLAN_MAP_PREDICTED, PLAN_MAP_TENSOR, PLAN_MAP_STEP };

const struct doc_key *plan_keys(enum plan_map map, uint32_t *out_count);

#endif
