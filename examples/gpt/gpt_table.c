/* SPDX-License-Identifier: Apache-2.0
 *
 * The network, written down once: which tensors a block has, and which steps read and write them.
 * Everything below the tables only expands them, block by block.
 *
 *     embed -> blocks of [norm, qkv, scores, drop, mix, project, add; norm, fc1, gelu, fc2, add]
 *           -> norm -> head -> loss, and all of it backwards
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* ---- tables ---- */

enum slot {
    NONE,
    /* of the network; GPT_TOKENS and GPT_TARGETS name the first two */
    TOKENS,
    TARGETS,
    EMBEDDED,
    NORMED,
    STATS,
    LOGITS,
    D_LOGITS,
    D_NORMED,
    D_STREAM,
    /* of a block; IN is the OUT of the one before */
    IN,
    NORMED1,
    STATS1,
    QKV,
    P,
    DROPPED,
    MIXED,
    PROJECTED,
    MIDDLE,
    NORMED2,
    STATS2,
    WIDE,
    ACTIVE,
    NARROW,
    OUT,
    D_NARROW,
    D_WIDE,
    D_NORMED2,
    D_PROJECTED,
    D_MIXED,
    D_P,
    D_QKV,
    D_NORMED1,
    SLOTS
};
#define NETWORK_TENSORS (IN - TOKENS)
#define BLOCK_TENSORS   (SLOTS - NORMED1)

/* Of all tensors four bytes a value. */
enum shape { ONE, TWO, WIDTH, WIDTH_3, WIDTH_4, VOCABULARY, PER_HEAD }; /* values per token */

static const struct {
    const char *name;
    enum shape shape;
} slots[SLOTS] = {
    [TOKENS] = {"tokens", ONE},
    [TARGETS] = {"targets", ONE},
    [EMBEDDED] = {"embedded", WIDTH},
    [NORMED] = {"normed", WIDTH},
    [STATS] = {"stats", TWO},
    [LOGITS] = {"logits", VOCABULARY},
    [D_LOGITS] = {"d_logits", VOCABULARY},
    [D_NORMED] = {"d_normed", WIDTH},
    [D_STREAM] = {"d_stream", WIDTH},
    [NORMED1] = {"normed1", WIDTH},
    [STATS1] = {"stats1", TWO},
    [QKV] = {"qkv", WIDTH_3},
    [P] = {"p", PER_HEAD},
    [DROPPED] = {"dropped", PER_HEAD},
    [MIXED] = {"mixed", WIDTH},
    [PROJECTED] = {"projected", WIDTH},
    [MIDDLE] = {"middle", WIDTH},
    [NORMED2] = {"normed2", WIDTH},
    [STATS2] = {"stats2", TWO},
    [WIDE] = {"wide", WIDTH_4},
    [ACTIVE] = {"active", WIDTH_4},
    [NARROW] = {"narrow", WIDTH},
    [OUT] = {"out", WIDTH},
    [D_NARROW] = {"d_narrow", WIDTH},
    [D_WIDE] = {"d_wide", WIDTH_4},
    [D_NORMED2] = {"d_normed2", WIDTH},
    [D_PROJECTED] = {"d_projected", WIDTH},
    [D_MIXED] = {"d_mixed", WIDTH},
    [D_P] = {"d_p", PER_HEAD},
    [D_QKV] = {"d_qkv", WIDTH_3},
    [D_NORMED1] = {"d_normed1", WIDTH},
};

#define DROPS_PER_BLOCK 3

/* A row of the step tables; unused entries are NONE. `drop` counts from 1, 0 is none. */
struct row {
    const char *name;
    enum gpt_kind kind;
    enum slot reads[USES_MAX], writes[2];
    enum shape in, out; /* of its parameters */
    uint32_t drop;
};

static const struct row before_blocks[] = {
    {"embed", EMBED, {TOKENS}, {EMBEDDED}, VOCABULARY, WIDTH, 0},
};
static const struct row block_forward[] = {
    {"norm1", NORM, {IN}, {NORMED1, STATS1}, ONE, WIDTH, 0},
    {"qkv", LINEAR, {NORMED1}, {QKV}, WIDTH, WIDTH_3, 0},
    {"scores", SCORES, {QKV}, {P}, ONE, ONE, 0},
    {"drop", DROPOUT, {P}, {DROPPED}, ONE, ONE, 1},
    {"mix", MIX, {DROPPED, QKV}, {MIXED}, ONE, ONE, 0},
    {"project", LINEAR, {MIXED}, {PROJECTED}, WIDTH, WIDTH, 0},
    {"add1", RESIDUAL, {IN, PROJECTED}, {MIDDLE}, ONE, ONE, 2},
    {"norm2", NORM, {MIDDLE}, {NORMED2, STATS2}, ONE, WIDTH, 0},
    {"fc1", LINEAR, {NORMED2}, {WIDE}, WIDTH, WIDTH_4, 0},
    {"gelu", GELU, {WIDE}, {ACTIVE}, ONE, ONE, 0},
    {"fc2", LINEAR, {ACTIVE}, {NARROW}, WIDTH_4, WIDTH, 0},
    {"add2", RESIDUAL, {MIDDLE, NARROW}, {OUT}, ONE, ONE, 3},
};
/* IN is here the OUT of the last block. */
static const struct row head_forward[] = {
    {"norm", NORM, {IN}, {NORMED, STATS}, ONE, WIDTH, 0},
    {"head", LINEAR, {NORMED}, {LOGITS}, WIDTH, VOCABULARY, 0},
    {"loss", LOSS, {LOGITS, TARGETS}, {LOGITS}, ONE, ONE, 0},
};
static const struct row head_backward[] = {
    {"loss", LOSS_BACKWARD, {LOGITS, TARGETS}, {D_LOGITS}, ONE, ONE, 0},
    {"head", LINEAR_BACKWARD, {D_LOGITS, NORMED}, {D_NORMED}, WIDTH, VOCABULARY, 0},
    {"norm", NORM_BACKWARD, {D_NORMED, IN, STATS}, {D_STREAM}, ONE, WIDTH, 0},
};
static const struct row block_backward[] = {
    {"add2", DROPOUT_BACKWARD, {D_STREAM}, {D_NARROW}, ONE, ONE, 3},
    {"fc2", LINEAR_BACKWARD, {D_NARROW, ACTIVE}, {D_WIDE}, WIDTH_4, WIDTH, 0},
    {"gelu", GELU_BACKWARD, {D_WIDE, WIDE}, {D_WIDE}, ONE, ONE, 0},
    {"fc1", LINEAR_BACKWARD, {D_WIDE, NORMED2}, {D_NORMED2}, WIDTH, WIDTH_4, 0},
    {"norm2", NORM_BACKWARD, {D_NORMED2, MIDDLE, STATS2, D_STREAM}, {D_STREAM}, ONE, WIDTH, 0},
    {"add1", DROPOUT_BACKWARD, {D_STREAM}, {D_PROJECTED}, ONE, ONE, 2},
    {"project", LINEAR_BACKWARD, {D_PROJECTED, MIXED}, {D_MIXED}, WIDTH, WIDTH, 0},
    {"mix", MIX_BACKWARD, {D_MIXED, DROPPED, QKV}, {D_P, D_QKV}, ONE, ONE, 0},
    {"drop", DROPOUT_BACKWARD, {D_P}, {D_P}, ONE, ONE, 1},
    {"scores", SCORES_BACKWARD, {D_P, P, QKV, D_QKV}, {D_QKV, D_P}, ONE, ONE, 0},
    {"qkv", LINEAR_BACKWARD, {D_QKV, NORMED1}, {D_NORMED1}, WIDTH, WIDTH_3, 0},
    {"norm1", NORM_BACKWARD, {D_NORMED1, IN, STATS1, D_STREAM}, {D_STREAM}, ONE, WIDTH, 0},
};
static const struct row after_blocks[] = {
    {"embed", EMBED_BACKWARD, {D_STREAM, TOKENS}, {NONE}, VOCABULARY, WIDTH, 0},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* ---- tensors ---- */

static uint64_t values_per_token(const struct gpt_config *c, enum shape shape)
{
    const uint64_t values[] = {[ONE] = 1,
                               [TWO] = 2,
                               [WIDTH] = c->width,
                               [WIDTH_3] = 3 * (uint64_t)c->width,
                               [WIDTH_4] = 4 * (uint64_t)c->width,
                               [VOCABULARY] = GPT_VOCABULARY,
                               [PER_HEAD] = (uint64_t)c->heads * c->context};
    return values[shape];
}

static void add_tensor(struct gpt *gpt, enum slot slot, const char *prefix)
{
    const struct gpt_config *c = &gpt->config;
    uint32_t id = gpt->model.tensor_count++;
    uint64_t tokens = (uint64_t)c->batch * c->context;
    (void)snprintf(gpt->tensor_names[id], GPT_NAME_SIZE, "%s%s", prefix, slots[slot].name);
    gpt->tensors[id] =
        (struct atp_tensor){.name = gpt->tensor_names[id],
                            .bytes = tokens * values_per_token(c, slots[slot].shape) * 4};
}

static void add_tensors(struct gpt *gpt)
{
    for (uint32_t slot = TOKENS; slot < IN; slot++) {
        add_tensor(gpt, (enum slot)slot, "");
    }
    for (uint32_t block = 0; block < gpt->config.layers; block++) {
        char prefix[GPT_NAME_SIZE];
        (void)snprintf(prefix, sizeof(prefix), "b%u.", block);
        for (uint32_t slot = NORMED1; slot < SLOTS; slot++) {
            add_tensor(gpt, (enum slot)slot, prefix);
        }
    }
}

static uint32_t tensor_of(enum slot slot, uint32_t block)
{
    if (slot == IN) {
        return block == 0 ? tensor_of(EMBEDDED, 0) : tensor_of(OUT, block - 1);
    }
    return slot < IN ? slot - TOKENS : NETWORK_TENSORS + block * BLOCK_TENSORS + slot - NORMED1;
}

/* ---- steps ---- */

static struct gpt_op *add_op(struct gpt *gpt, enum gpt_kind kind, enum atp_phase phase,
                             const char *prefix, const char *name)
{
    uint32_t s = gpt->model.step_count++;
    struct gpt_op *op = &gpt->ops[s];
    *op = (struct gpt_op){.kind = kind, .weight = 0, .bias = NO_BIAS};
    (void)snprintf(op->name, sizeof(op->name), "%s%s", prefix, name);
    gpt->steps[s] = (struct atp_step){
        .name = op->name, .phase = phase, .reads = op->reads, .writes = op->writes};
    return op;
}

/* Forward steps get parameters, but the head, whose weights are the embedding's; backward steps
 * take those of the forward step of their name. */
static void set_parameters(struct gpt *gpt, struct gpt_op *op, enum atp_phase phase)
{
    const struct gpt_op *same = gpt->ops;
    if (phase == ATP_PHASE_BACKWARD) {
        while (strcmp(same->name, op->name) != 0) {
            same++;
        }
    } else if (strcmp(op->name, "head") != 0) {
        op->weight = gpt->parameter_count;
        op->bias = op->weight + (uint64_t)op->in_width * op->out_width;
        uint64_t biases =
            op->kind == EMBED ? (uint64_t)gpt->config.context * op->out_width : op->out_width;
        gpt->parameter_count = op->bias + biases;
        return;
    }
    op->weight = same->weight;
    op->bias = strcmp(op->name, "head") == 0 ? NO_BIAS : same->bias;
}

static void add_rows(struct gpt *gpt, const struct row *rows, size_t count, enum atp_phase phase,
                     uint32_t block)
{
    bool is_block = rows == block_forward || rows == block_backward;
    char prefix[GPT_NAME_SIZE] = "";
    if (is_block) {
        (void)snprintf(prefix, sizeof(prefix), "b%u.", block);
    }
    for (const struct row *row = rows; row < rows + count; row++) {
        struct gpt_op *op = add_op(gpt, row->kind, phase, prefix, row->name);
        struct atp_step *step = &gpt->steps[op - gpt->ops];
        for (int i = 0; i < USES_MAX && row->reads[i] != NONE; i++) {
            op->reads[step->read_count++] = tensor_of(row->reads[i], block);
        }
        for (int i = 0; i < 2 && row->writes[i] != NONE; i++) {
            op->writes[step->write_count++] = tensor_of(row->writes[i], block);
        }
        op->count = step->write_count > 0 ? gpt->tensors[op->writes[0]].bytes / 4 : 0;
        op->drop = row->drop == 0 ? 0 : block * DROPS_PER_BLOCK + row->drop;
        if (row->out != ONE) {
            op->in_width = (uint32_t)values_per_token(&gpt->config, row->in);
            op->out_width = (uint32_t)values_per_token(&gpt->config, row->out);
            set_parameters(gpt, op, phase);
        }
        if (row->kind == LOSS) {
            step->workspace_bytes = (uint64_t)gpt->config.batch * gpt->config.context * 4;
        }
    }
}

static void add_steps(struct gpt *gpt)
{
    uint32_t layers = gpt->config.layers;
    add_rows(gpt, before_blocks, ROWS(before_blocks), ATP_PHASE_FORWARD, 0);
    for (uint32_t block = 0; block < layers; block++) {
        add_rows(gpt, block_forward, ROWS(block_forward), ATP_PHASE_FORWARD, block);
    }
    add_rows(gpt, head_forward, ROWS(head_forward), ATP_PHASE_FORWARD, layers);
    add_rows(gpt, head_backward, ROWS(head_backward), ATP_PHASE_BACKWARD, layers);
    for (uint32_t block = layers; block > 0; block--) {
        add_rows(gpt, block_backward, ROWS(block_backward), ATP_PHASE_BACKWARD, block - 1);
    }
    add_rows(gpt, after_blocks, ROWS(after_blocks), ATP_PHASE_BACKWARD, 0);
    if (gpt->config.ranks > 1) {
        (void)add_op(gpt, ALL_REDUCE, ATP_PHASE_UPDATE, "", "all_reduce");
        gpt->steps[gpt->model.step_count - 1].rerun_never = true;
    }
    (void)add_op(gpt, ADAMW, ATP_PHASE_UPDATE, "", "adamw");
}

bool gpt_make_table(struct gpt *gpt)
{
    size_t layers = gpt->config.layers;
    size_t tensors = NETWORK_TENSORS + layers * BLOCK_TENSORS;
    size_t steps = ROWS(before_blocks) + ROWS(head_forward) + ROWS(head_backward) +
                   ROWS(after_blocks) + 2 + layers * (ROWS(block_forward) + ROWS(block_backward));
    gpt->tensors = (struct atp_tensor *)calloc(tensors, sizeof(*gpt->tensors));
    gpt->tensor_names = (char(*)[GPT_NAME_SIZE])calloc(tensors, sizeof(*gpt->tensor_names));
    gpt->steps = (struct atp_step *)calloc(steps, sizeof(*gpt->steps));
    gpt->ops = (struct gpt_op *)calloc(steps, sizeof(*gpt->ops));
    if (gpt->tensors == NULL || gpt->tensor_names == NULL || gpt->steps == NULL ||
        gpt->ops == NULL) {
        return false;
    }
    gpt->model = (struct atp_model){.name = "gpt",
                                    .batch_size = gpt->config.batch,
                                    .tensors = gpt->tensors,
                                    .steps = gpt->steps};
    add_tensors(gpt);
    add_steps(gpt);
    return true;
}
