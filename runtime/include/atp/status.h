/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors are values with a place. Every function of ATP that can fail returns an `enum atp_status`
 * and takes a caller-owned `struct atp_error *` last (NULL allowed). Nothing is kept in globals and
 * nothing is allocated, so a status may cross threads and outlive whatever produced it.
 */
#ifndef ATP_STATUS_H
#define ATP_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATP_MUST_USE __attribute__((warn_unused_result))
#define ATP_API      __attribute__((visibility("default")))
#else
#define ATP_MUST_USE
#define ATP_API
#endif

/* No index, no id. */
#define ATP_NONE UINT32_MAX

/* Numbers never change; gaps are left on purpose. */
enum atp_status {
    ATP_OK = 0,
    ATP_ERR_NO_MEMORY = 1,
    ATP_ERR_IO = 2,
    ATP_ERR_SYNTAX = 10,     /* not YAML, or not this schema */
    ATP_ERR_VERSION = 11,    /* a format version that this library does not know */
    ATP_ERR_INVALID = 12,    /* well-formed, but breaks a rule */
    ATP_ERR_MISMATCH = 13,   /* a plan and a model, profile or device that do not belong together */
    ATP_ERR_INFEASIBLE = 20, /* proven impossible */
    ATP_ERR_LIMIT = 21,      /* gave up at a limit */
    ATP_ERR_UNSUPPORTED = 30, /* no driver, no such backend in this build */
    ATP_ERR_DEVICE = 31,      /* the driver said no */
    ATP_ERR_STATE = 40,       /* calls in the wrong order */
    ATP_ERR_CALLBACK = 41,    /* the caller's step function failed */
    ATP_ERR_INTERNAL = 50
};

struct atp_error {
    enum atp_status status;
    uint32_t line, column; /* 1-based place in a file that was read; 0 when there is none */
    uint32_t instruction;  /* index in a plan's program; ATP_NONE when the error is not about one */
    char text[400];        /* "PATH: what is wrong, what was expected"; always terminated */
};

/* The name of a status as written in the enum, "ATP_ERR_IO"; "unknown status" for any other number.
 * Static storage. */
ATP_API const char *atp_status_name(enum atp_status status);

#ifdef __cplusplus
}
#endif
#endif
