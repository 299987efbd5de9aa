/* SPDX-License-Identifier: Apache-2.0
 *
 * The network, written down once: which tensors a block has, and which steps read and write them.
 * Everything below the tables only expands them, block by block.
 *
 *     stem -> blocks of [conv, norm, relu, conv, norm, add] -> pool -> head -> loss,
 *     and all of it backwards
 *
 * Around most blocks goes what comes in. The first block of the second and third stage halves the
 * size and doubles the channels; around it goes a convolution of one pixel and a norm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resnet_table.h"

/* ---- tables ---- */

enum slot {
    NONE,
    /* of the network; RESNET_IMAGES and RESNET_LABELS name the first two */
    IMAGES,
    LABELS,
    STEM,
    STEM_STATS,
    STREAM,
    POOLED,
    LOGITS,
    D_LOGITS,
    D_POOLED,
    /* of a stage: the gradient of what its blocks give */
    D_OUT,
    /* of a block */
    CONV1,
    STATS1,
    ACTIVE,
    CONV2,
    STATS2,
    PROJECTED,
    STATS3,
    AROUND,
    OUT,
    D_CONV2,
    D_ACTIVE,
    SLOTS,
    /* other names of the above: the OUT and D_OUT of the block before */
    IN,
    D_IN
};

enum shape { IMAGE, LABEL, MAP, STATS, CHANNELS, CLASSES };

static const struct {
    const char *name;
    enum shape shape;
} slots[SLOTS] = {
    [IMAGES] = {"images", IMAGE},
    [LABELS] = {"labels", LABEL},
    [STEM] = {"stem", MAP},
    [STEM_STATS] = {"stem_stats", STATS},
    [STREAM] = {"stream", MAP},
    [POOLED] = {"pooled", CHANNELS},
    [LOGITS] = {"logits", CLASSES},
    [D_LOGITS] = {"d_logits", CLASSES},
    [D_POOLED] = {"d_pooled", CHANNELS},
    [D_OUT] = {"d_out", MAP},
    [CONV1] = {"conv1", MAP},
    [STATS1] = {"stats1", STATS},
    [ACTIVE] = {"active", MAP},
    [CONV2] = {"conv2", MAP},
    [STATS2] = {"stats2", STATS},
    [PROJECTED] = {"projected", MAP},
    [STATS3] = {"stats3", STATS},
    [AROUND] = {"around", MAP},
    [OUT] = {"out", MAP},
    [D_CONV2] = {"d_conv2", MAP},
    [D_ACTIVE] = {"d_active", MAP},
};

enum blocks { ALL, STRAIGHT, HALVING };

/* A row of the step tables; unused entries are NONE. */
struct row {
    const char *name;
    enum resnet_kind kind;
    enum slot reads[USES_MAX], writes[2];
    uint32_t kernel;
    enum blocks in; /* which blocks have this step */
};

static const struct row stem_forward[] = {
    {"stem", CONV, {IMAGES}, {STEM}, 3, ALL},
    {"stem_norm", NORM, {STEM}, {STREAM, STEM_STATS}, 0, ALL},
    {"stem_relu", RELU, {STREAM}, {STREAM}, 0, ALL},
};
static const struct row block_forward[] = {
    {"conv1", CONV, {IN}, {CONV1}, 3, ALL},
    {"norm1", NORM, {CONV1}, {ACTIVE, STATS1}, 0, ALL},
    {"relu1", RELU, {ACTIVE}, {ACTIVE}, 0, ALL},
    {"conv2", CONV, {ACTIVE}, {CONV2}, 3, ALL},
    {"norm2", NORM, {CONV2}, {OUT, STATS2}, 0, ALL},
    {"add", ADD, {OUT, IN}, {OUT}, 0, STRAIGHT},
    {"project", CONV, {IN}, {PROJECTED}, 1, HALVING},
    {"norm3", NORM, {PROJECTED}, {AROUND, STATS3}, 0, HALVING},
    {"add", ADD, {OUT, AROUND}, {OUT}, 0, HALVING},
};
/* OUT is here that of the last block. */
static const struct row head_forward[] = {
    {"pool", POOL, {OUT}, {POOLED}, 0, ALL},
    {"head", LINEAR, {POOLED}, {LOGITS}, 0, ALL},
    {"loss", LOSS, {LOGITS, LABELS}, {LOGITS}, 0, ALL},
};
static const struct row head_backward[] = {
    {"loss", LOSS_BACKWARD, {LOGITS, LABELS}, {D_LOGITS}, 0, ALL},
    {"head", LINEAR_BACKWARD, {D_LOGITS, POOLED}, {D_POOLED}, 0, ALL},
    {"pool", POOL_BACKWARD, {D_POOLED}, {D_OUT}, 0, ALL},
};
static const struct row block_backward[] = {
    {"add", RELU_BACKWARD, {D_OUT, OUT}, {D_OUT}, 0, ALL},
    {"norm2", NORM_BACKWARD, {D_OUT, CONV2, STATS2}, {D_CONV2}, 0, ALL},
    {"conv2", CONV_BACKWARD, {D_CONV2, ACTIVE}, {D_ACTIVE}, 3, ALL},
    {"relu1", RELU_BACKWARD, {D_ACTIVE, ACTIVE}, {D_ACTIVE}, 0, ALL},
    {"norm1", NORM_BACKWARD, {D_ACTIVE, CONV1, STATS1}, {D_ACTIVE}, 0, ALL},
    {"conv1", CONV_BACKWARD, {D_ACTIVE, IN, D_OUT}, {D_OUT}, 3, STRAIGHT},
    {"conv1", CONV_BACKWARD, {D_ACTIVE, IN}, {D_IN}, 3, HALVING},
    {"norm3", NORM_BACKWARD, {D_OUT, PROJECTED, STATS3}, {D_OUT}, 0, HALVING},
    {"project", CONV_BACKWARD, {D_OUT, IN, D_IN}, {D_IN}, 1, HALVING},
};
static const struct row stem_backward[] = {
    {"stem_relu", RELU_BACKWARD, {D_OUT, STREAM}, {D_OUT}, 0, ALL},
    {"stem_norm", NORM_BACKWARD, {D_OUT, STEM, STEM_STATS}, {D_OUT}, 0, ALL},
    {"stem", CONV_BACKWARD, {D_OUT, IMAGES}, {NONE}, 3, ALL},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* While the table is made: which tensor a slot of a block is, counted from 1; 0: none yet. */
struct maker {
    struct resnet *net;
    uint32_t (*ids)[SLOTS];
};

static uint32_t stage_of(const struct resnet_config *c, uint32_t block)
{
    return block / c->blocks;
}

static bool is_halving(const struct resnet_config *c, uint32_t block)
{
    return block > 0 && block % c->blocks == 0;
}

static uint32_t channels_of(const struct resnet_config *c, uint32_t block)
{
    return c->width << stage_of(c, block);
}

static uint32_t size_of(const struct resnet_config *c, uint32_t block)
{
    return c->image >> stage_of(c, block);
}

/* ---- tensors ---- */

static uint64_t values_of(const struct resnet_config *c, enum shape shape, uint32_t block)
{
    uint64_t channels = channels_of(c, block), size = size_of(c, block);
    const uint64_t values[] = {[IMAGE] = (uint64_t)c->batch * c->image * c->image * 3,
                               [LABEL] = c->batch,
                               [MAP] = c->batch * size * size * channels,
                               [STATS] = 2 * channels,
                               [CHANNELS] = c->batch * channels,
                               [CLASSES] = (uint64_t)c->batch * RESNET_CLASSES};
    return values[shape];
}

/* All tensors have four bytes a value. */
static uint32_t add_tensor(struct resnet *net, enum slot slot, uint32_t block)
{
    uint32_t id = net->model.tensor_count++;
    char *name = net->tensor_names[id];
    if (slot < D_OUT) {
        (void)snprintf(name, RESNET_NAME_SIZE, "%s", slots[slot].name);
    } else {
        (void)snprintf(name, RESNET_NAME_SIZE, "%c%u.%s", slot == D_OUT ? 's' : 'b',
                       slot == D_OUT ? stage_of(&net->config, block) : block, slots[slot].name);
    }
    net->tensors[id] = (struct atp_tensor){
        .name = name, .bytes = values_of(&net->config, slots[slot].shape, block) * 4};
    return id;
}

static uint32_t tensor_of(struct maker *m, enum slot slot, uint32_t block)
{
    const struct resnet_config *c = &m->net->config;
    if (slot == IN) {
        return block == 0 ? tensor_of(m, STREAM, 0) : tensor_of(m, OUT, block - 1);
    }
    if (slot == D_IN) {
        return tensor_of(m, D_OUT, block - 1);
    }
    uint32_t owner = slot > D_OUT ? block : slot == D_OUT ? block - block % c->blocks : 0;
    uint32_t *id = &m->ids[owner][slot];
    if (*id == 0) {
        *id = add_tensor(m->net, slot, block) + 1;
    }
    return *id - 1;
}

/* ---- steps ---- */

/* What the layer takes: more than its block gives when it halves. */
static void set_shape(struct resnet *net, struct resnet_op *op, const struct row *row,
                      uint32_t block)
{
    const struct resnet_config *c = &net->config;
    bool halves = is_halving(c, block) && (row->reads[0] == IN || row->reads[1] == IN);
    bool is_image = row->reads[0] == IMAGES || row->reads[1] == IMAGES;
    op->kernel = row->kernel;
    op->stride = halves ? 2 : 1;
    op->channels = channels_of(c, block);
    op->size = size_of(c, block) * op->stride;
    op->in_channels = is_image ? 3 : op->channels / op->stride;
}

/* Forward steps get parameters, backward steps take those of the forward step of their name. */
static void set_place(struct resnet *net, struct resnet_op *op, enum atp_phase phase)
{
    const struct resnet_op *same = net->ops;
    struct resnet_place *place = &op->place;
    if (phase == ATP_PHASE_BACKWARD) {
        while (strcmp(same->name, op->name) != 0) {
            same++;
        }
        *place = same->place;
        return;
    }
    if (op->kind == CONV) {
        struct conv conv = resnet_conv(net, op);
        place->weights = conv_weights(&conv);
    } else if (op->kind == NORM) {
        place->weights = op->channels;
        place->biases = op->channels;
        place->runnings = 2 * (uint64_t)op->channels;
    } else if (op->kind == LINEAR) {
        place->weights = (uint64_t)op->channels * RESNET_CLASSES;
        place->biases = RESNET_CLASSES;
    }
    place->weight = net->parameter_count;
    place->bias = place->weight + place->weights;
    place->running = net->running_count;
    net->parameter_count = place->bias + place->biases;
    net->running_count += place->runnings;
}

static uint64_t workspace_of(const struct resnet *net, const struct resnet_op *op)
{
    struct conv conv = resnet_conv(net, op);
    struct batch_norm norm = resnet_norm(net, op);
    if (op->kind == CONV) {
        return conv_forward_scratch(&conv);
    }
    if (op->kind == CONV_BACKWARD) {
        return conv_backward_scratch(&conv);
    }
    if (op->kind == NORM || op->kind == NORM_BACKWARD) {
        return batch_norm_scratch(&norm);
    }
    return op->kind == LOSS ? (uint64_t)net->config.batch * sizeof(float) : 0;
}

static struct resnet_op *add_op(struct resnet *net, enum resnet_kind kind, enum atp_phase phase,
                                const char *prefix, const char *name)
{
    uint32_t s = net->model.step_count++;
    struct resnet_op *op = &net->ops[s];
    *op = (struct resnet_op){.kind = kind};
    (void)snprintf(op->name, sizeof(op->name), "%s%s", prefix, name);
    net->steps[s] = (struct atp_step){
        .name = op->name, .phase = phase, .reads = op->reads, .writes = op->writes};
    return op;
}

static void add_row(struct maker *m, const struct row *row, enum atp_phase phase, uint32_t block,
                    bool is_block)
{
    struct resnet *net = m->net;
    char prefix[RESNET_NAME_SIZE] = "";
    if (is_block) {
        (void)snprintf(prefix, sizeof(prefix), "b%u.", block);
    }
    struct resnet_op *op = add_op(net, row->kind, phase, prefix, row->name);
    struct atp_step *step = &net->steps[op - net->ops];
    for (int i = 0; i < USES_MAX && row->reads[i] != NONE; i++) {
        op->reads[step->read_count++] = tensor_of(m, row->reads[i], block);
    }
    for (int i = 0; i < 2 && row->writes[i] != NONE; i++) {
        op->writes[step->write_count++] = tensor_of(m, row->writes[i], block);
    }
    op->count = step->write_count > 0 ? net->tensors[op->writes[0]].bytes / 4 : 0;
    set_shape(net, op, row, block);
    set_place(net, op, phase);
    step->workspace_bytes = workspace_of(net, op);
}

static void add_rows(struct maker *m, const struct row *rows, size_t count, enum atp_phase phase,
                     uint32_t block)
{
    enum blocks kind = is_halving(&m->net->config, block) ? HALVING : STRAIGHT;
    for (const struct row *row = rows; row < rows + count; row++) {
        if (row->in == ALL || row->in == kind) {
            add_row(m, row, phase, block, rows == block_forward || rows == block_backward);
        }
    }
}

static void add_steps(struct maker *m)
{
    uint32_t blocks = RESNET_STAGES * m->net->config.blocks, last = blocks - 1;
    (void)tensor_of(m, IMAGES, 0);
    (void)tensor_of(m, LABELS, 0);
    add_rows(m, stem_forward, ROWS(stem_forward), ATP_PHASE_FORWARD, 0);
    for (uint32_t block = 0; block < blocks; block++) {
        add_rows(m, block_forward, ROWS(block_forward), ATP_PHASE_FORWARD, block);
    }
    add_rows(m, head_forward, ROWS(head_forward), ATP_PHASE_FORWARD, last);
    add_rows(m, head_backward, ROWS(head_backward), ATP_PHASE_BACKWARD, last);
    for (uint32_t block = blocks; block > 0; block--) {
        add_rows(m, block_backward, ROWS(block_backward), ATP_PHASE_BACKWARD, block - 1);
    }
    add_rows(m, stem_backward, ROWS(stem_backward), ATP_PHASE_BACKWARD, 0);
    (void)add_op(m->net, ADAMW, ATP_PHASE_UPDATE, "", "adamw");
}

bool resnet_make_table(struct resnet *net)
{
    size_t blocks = (size_t)RESNET_STAGES * net->config.blocks;
    size_t tensors = D_OUT + RESNET_STAGES + blocks * (SLOTS - CONV1);
    size_t steps = 2 * ROWS(stem_forward) + 2 * ROWS(head_forward) + 1 +
                   blocks * (ROWS(block_forward) + ROWS(block_backward));
    struct maker maker = {.net = net};
    maker.ids = (uint32_t(*)[SLOTS])calloc(blocks, sizeof(*maker.ids));
    net->tensors = (struct atp_tensor *)calloc(tensors, sizeof(*net->tensors));
    net->tensor_names = (char(*)[RESNET_NAME_SIZE])calloc(tensors, sizeof(*net->tensor_names));
    net->steps = (struct atp_step *)calloc(steps, sizeof(*net->steps));
    net->ops = (struct resnet_op *)calloc(steps, sizeof(*net->ops));
    bool has_memory = maker.ids != NULL && net->tensors != NULL && net->tensor_names != NULL &&
                      net->steps != NULL && net->ops != NULL;
    if (has_memory) {
        net->model = (struct atp_model){.name = "resnet",
                                        .batch_size = net->config.batch,
                                        .tensors = net->tensors,
                                        .steps = net->steps};
        add_steps(&maker);
    }
    free(maker.ids);
    return has_memory;
}
