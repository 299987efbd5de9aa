/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Models and plans for tests, written as code:
 *
 *     struct plan_builder *b = plan_builder_create("toy");
 *     uint32_t x = plan_builder_tensor(b, "x", 64), y = plan_builder_tensor(b, "y", 64);
 *     uint32_t f = plan_builder_step(b, ATP_PHASE_FORWARD, "f", IDS(x), IDS(y));
 *     plan_builder_add(b, ATP_OP_ALLOC, x, 0);
 *     ...
 *     plan_builder_seal(b);
 *     atp_plan_check(&b->plan, &err);
 *     plan_builder_destroy(b);
 *
 * Everything in `plan` may be damaged through the pointers beside it. Running out of memory or of
 * room aborts the test.
 */
#ifndef PLAN_BUILDER_H
#define PLAN_BUILDER_H

#include <stdint.h>

#include <atp/plan.h>

#define IDS_MAX 16

struct ids {
    uint32_t count;
    uint32_t items[IDS_MAX];
};
#define IDS(...) ((struct ids){sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {__VA_ARGS__}})
#define NO_IDS   ((struct ids){0, {0}})

struct plan_builder {
    struct atp_plan plan; /* points at the arrays below */
    struct atp_tensor *tensors;
    struct atp_step *steps;
    struct atp_instruction *program;
    enum atp_decision *decisions;
    uint32_t tensor_room, step_room, program_room;
};

/* An empty plan with an alignment of 1. `name` is copied, like all names. */
struct plan_builder *plan_builder_create(const char *name);
void plan_builder_destroy(struct plan_builder *builder); /* NULL is allowed */

/* Each returns the new id. */
uint32_t plan_builder_tensor(struct plan_builder *builder, const char *name, uint64_t bytes);
uint32_t plan_builder_step(struct plan_builder *builder, enum atp_phase phase, const char *name,
                           struct ids reads, struct ids writes);

/* Appends an instruction; returns its index. */
uint32_t plan_builder_add(struct plan_builder *builder, enum atp_op op, uint32_t id,
                          uint64_t offset);
/* Puts one in at `index`, or takes one out. */
void plan_builder_insert(struct plan_builder *builder, uint32_t index, enum atp_op op, uint32_t id,
                         uint64_t offset);
void plan_builder_remove(struct plan_builder *builder, uint32_t index);
/* Moves the instruction at `from` to just before the one at `to`. */
void plan_builder_move(struct plan_builder *builder, uint32_t from, uint32_t to);
/* The index of the `nth` (from 0) instruction `op` of `id`; aborts when there is none. */
uint32_t plan_builder_find(const struct plan_builder *builder, enum atp_op op, uint32_t id,
                           uint32_t nth);

/* Fills everything in the header that follows from model and program: fingerprint, sizes of both
 * arenas, a budget that just holds them and resident_bytes, decisions and peak_bytes. Never fails,
 * whatever the program. */
void plan_builder_seal(struct plan_builder *builder);

/* A sealed good plan with every instruction and every way to treat a tensor: `x` and `a` are
 * swapped (`a` comes back twice from one host copy), `acc` is updated in place and swapped, `b` is
 * recomputed by a step with a second output `m`, `m` takes over host bytes of `acc`, the others
 * are kept. Alignment 16. */
enum rich_tensor { RICH_X, RICH_A, RICH_ACC, RICH_B, RICH_M, RICH_C, RICH_D, RICH_G, RICH_W };
enum rich_step {
    RICH_F0, /* x -> a, acc */
    RICH_F1, /* a -> b, m; workspace */
    RICH_F2, /* b, acc -> acc, c */
    RICH_F3, /* c -> d; must never run twice */
    RICH_B3, /* d, c -> g */
    RICH_B2, /* g, b, acc -> g */
    RICH_B1, /* g, a, m -> g; workspace */
    RICH_B0, /* g, x, a -> w */
    RICH_UP  /* w */
};
struct plan_builder *plan_builder_rich(void);

#endif
