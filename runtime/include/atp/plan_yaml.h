/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads plan files (YAML, plan version 1, schemas/plan.v1.schema.json) into struct atp_plan. Part
 * of libatp_yaml, which needs libyaml; programs with a compiled-in plan do not need it.
 */
#ifndef ATP_PLAN_YAML_H
#define ATP_PLAN_YAML_H

#include <stddef.h>
#include <stdint.h>

#include <atp/plan.h>
#include <atp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct atp_plan_file {
    struct atp_plan plan;
    const uint32_t *instruction_lines; /* 1-based line of each instruction of plan.program */
};

/* Reads and checks the form of a plan: keys, types, ranges, names that resolve. It does not prove
 * the plan: call atp_plan_check, as atp_replay_open does. On success *out_file owns everything that
 * it points to, until atp_plan_file_destroy. On failure *out_file is NULL and `err` has line,
 * column and "PATH: what, expected": ATP_ERR_IO, ATP_ERR_SYNTAX, ATP_ERR_VERSION, ATP_ERR_INVALID,
 * ATP_ERR_NO_MEMORY. */
ATP_API ATP_MUST_USE enum atp_status
atp_plan_read(const char *path, struct atp_plan_file **out_file, struct atp_error *err);

/* The same from memory; `text` need not be terminated and is not kept. */
ATP_API ATP_MUST_USE enum atp_status atp_plan_parse(const char *text, size_t size,
                                                    struct atp_plan_file **out_file,
                                                    struct atp_error *err);

/* Releases the file and all that it owns. NULL is allowed. */
ATP_API void atp_plan_file_destroy(struct atp_plan_file *file);

#ifdef __cplusplus
}
#endif
#endif
