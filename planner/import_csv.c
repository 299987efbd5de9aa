/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A chain: tensor ids are given out layer by layer, and each layer's three or fewer are known from
 * the row alone. Names of steps are those of the layers, names of tensors add what they are.
 */
#include "import.h"

#include "csv.h"
#include "fail.h"

#include <stdio.h>
#include <string.h>

#define BYTES_MAX ((uint64_t)1 << 62)
/* So that `.saved` fits behind it. */
#define LAYER_NAME_MAX 190U

enum { NAME, FORWARD, BACKWARD, OUTPUT, SAVED, WORKSPACE, RERUN, KEY_COUNT };
static const struct doc_key KEYS[KEY_COUNT] = {
    [NAME] = {"name", true},
    [FORWARD] = {"forward_us", true},
    [BACKWARD] = {"backward_us", true},
    [OUTPUT] = {"output_bytes", true},
    [SAVED] = {"saved_bytes", true},
    [WORKSPACE] = {"workspace_bytes", false},
    [RERUN] = {"rerun", false},
};

static const struct doc_number BYTES = {.what = "a whole number of bytes", .max = BYTES_MAX};
static const struct doc_number TIME = {
    .what = "microseconds", .decimals = 3, .rounds = true, .max = UINT64_C(1000000000000000)};

struct layer_row {
    const struct doc_node *node; /* of the name */
    const char *name;
    uint64_t forward_ns, backward_ns, output_bytes, saved_bytes, workspace_bytes;
    bool rerun_never;
    uint32_t input, output, saved, grad; /* tensors; ATP_NONE: there is none */
};

struct chain {
    struct region *region;
    struct layer_row *rows;
    uint32_t row_count;
    struct atp_tensor *tensors;
    struct atp_step *steps;
    int64_t *step_ns;
    uint32_t tensor_count, step_count;
};

static enum atp_status read_layer(const struct doc_node *node, struct layer_row *out,
                                  struct atp_error *err)
{
    static const char *const reruns[] = {"allowed", "never"};
    const struct doc_node *values[KEY_COUNT];
    uint32_t rerun = 0;
    ATP_TRY(doc_map(node, KEYS, KEY_COUNT, values, err));
    ATP_TRY(doc_name(values[NAME], &out->name, err));
    if (strlen(out->name) > LAYER_NAME_MAX) {
        return doc_fail(values[NAME], err, ATP_ERR_INVALID,
                        "the name has %zu bytes, expected 1 to %u", strlen(out->name),
                        LAYER_NAME_MAX);
    }
    out->node = values[NAME];
    ATP_TRY(doc_number(values[FORWARD], &TIME, &out->forward_ns, err));
    ATP_TRY(doc_number(values[BACKWARD], &TIME, &out->backward_ns, err));
    ATP_TRY(doc_number(values[OUTPUT], &BYTES, &out->output_bytes, err));
    ATP_TRY(doc_number(values[SAVED], &BYTES, &out->saved_bytes, err));
    if (values[WORKSPACE] != NULL) {
        ATP_TRY(doc_number(values[WORKSPACE], &BYTES, &out->workspace_bytes, err));
    }
    if (values[RERUN] != NULL) {
        ATP_TRY(doc_choice(values[RERUN], reruns, 2, &rerun, err));
        out->rerun_never = rerun == 1;
    }
    return ATP_OK;
}

static enum atp_status check_names(const struct chain *chain, struct atp_error *err)
{
    struct doc_index *index = REGION_NEW(chain->region, struct doc_index, chain->row_count);
    for (uint32_t i = 0; i < chain->row_count; i++) {
        index[i] = (struct doc_index){.name = chain->rows[i].name, .id = i};
    }
    doc_index_sort(index, chain->row_count);
    for (uint32_t i = 0; i < chain->row_count; i++) {
        uint32_t first = doc_index_find(index, chain->row_count, chain->rows[i].name, 0);
        if (first != i) {
            return doc_fail(chain->rows[i].node, err, ATP_ERR_INVALID,
                            "\"%s\" is the name of the layer in line %u too, expected another",
                            doc_shorten(chain->rows[i].name).text, chain->rows[first].node->line);
        }
    }
    return ATP_OK;
}

static uint32_t add_tensor(struct chain *chain, const char *layer, const char *what, uint64_t bytes)
{
    size_t size = strlen(layer) + strlen(what) + 1;
    char *name = REGION_NEW(chain->region, char, size);
    (void)snprintf(name, size, "%s%s", layer, what);
    chain->tensors[chain->tensor_count] = (struct atp_tensor){.name = name, .bytes = bytes};
    return chain->tensor_count++;
}

/* `reads` and `writes` leave out ATP_NONE. */
static uint32_t keep_ids(struct chain *chain, const uint32_t *ids, uint32_t count,
                         const uint32_t **out_ids)
{
    uint32_t *kept = REGION_NEW(chain->region, uint32_t, count), kept_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] != ATP_NONE) {
            kept[kept_count++] = ids[i];
        }
    }
    *out_ids = kept;
    return kept_count;
}

static struct atp_step *add_step(struct chain *chain, const char *name, enum atp_phase phase,
                                 uint64_t ns)
{
    struct atp_step *step = &chain->steps[chain->step_count];
    *step = (struct atp_step){.name = name, .phase = phase};
    chain->step_ns[chain->step_count++] = (int64_t)ns;
    return step;
}

static void add_forward(struct chain *chain, uint64_t input_bytes)
{
    uint32_t before = input_bytes > 0 ? add_tensor(chain, "input", "", input_bytes) : ATP_NONE;
    for (uint32_t i = 0; i < chain->row_count; i++) {
        struct layer_row *row = &chain->rows[i];
        row->input = before;
        row->output = add_tensor(chain, row->name, ".out", row->output_bytes);
        row->saved = ATP_NONE;
        if (row->saved_bytes > 0) {
            row->saved = add_tensor(chain, row->name, ".saved", row->saved_bytes);
        }
        struct atp_step *step = add_step(chain, row->name, ATP_PHASE_FORWARD, row->forward_ns);
        step->read_count = keep_ids(chain, &row->input, 1, &step->reads);
        step->write_count =
            keep_ids(chain, (uint32_t[]){row->output, row->saved}, 2, &step->writes);
        step->workspace_bytes = row->workspace_bytes;
        step->rerun_never = row->rerun_never;
        before = row->output;
    }
}

/* The gradient of the last layer's output lives within its backward step. That of the first layer's
 * input is nobody's. */
static void add_backward(struct chain *chain)
{
    for (uint32_t i = chain->row_count; i-- > 0;) {
        struct layer_row *row = &chain->rows[i];
        bool is_last = i + 1 == chain->row_count;
        uint32_t grad_out = is_last ? ATP_NONE : row->grad, grad_in = ATP_NONE;
        if (i > 0) {
            struct layer_row *below = &chain->rows[i - 1];
            below->grad = add_tensor(chain, below->name, ".grad", below->output_bytes);
            grad_in = below->grad;
        }
        struct atp_step *step = add_step(chain, row->name, ATP_PHASE_BACKWARD, row->backward_ns);
        step->read_count = keep_ids(
            chain, (uint32_t[]){row->input, row->output, row->saved, grad_out}, 4, &step->reads);
        step->write_count = keep_ids(chain, &grad_in, 1, &step->writes);
        step->workspace_bytes = row->workspace_bytes + (is_last ? row->output_bytes : 0);
    }
}

enum atp_status import_csv(const char *text, size_t size, const char *model_name,
                           const struct import_numbers *numbers, struct region *region,
                           struct profile *out_profile, struct atp_error *err)
{
    const struct doc_node *list = NULL;
    ATP_TRY(csv_parse(text, size, region, &list, err));
    if (list->count == 0) {
        return doc_fail(list, err, ATP_ERR_SYNTAX,
                        "there is no layer, expected a line of names, then one line a layer");
    }
    struct chain chain = {.region = region,
                          .rows = REGION_NEW(region, struct layer_row, list->count)};
    for (const struct doc_node *node = list->first; node != NULL; node = node->next) {
        ATP_TRY(read_layer(node, &chain.rows[chain.row_count++], err));
    }
    ATP_TRY(check_names(&chain, err));
    chain.tensors = REGION_NEW(region, struct atp_tensor, 3 * (size_t)chain.row_count + 1);
    chain.steps = REGION_NEW(region, struct atp_step, 2 * (size_t)chain.row_count + 1);
    chain.step_ns = REGION_NEW(region, int64_t, 2 * (size_t)chain.row_count + 1);
    add_forward(&chain, numbers->input_bytes);
    add_backward(&chain);
    if (numbers->update_us > 0) {
        (void)add_step(&chain, "update", ATP_PHASE_UPDATE, numbers->update_us * 1000);
    }
    *out_profile = import_base(model_name, numbers);
    out_profile->model.tensor_count = chain.tensor_count;
    out_profile->model.step_count = chain.step_count;
    out_profile->model.tensors = chain.tensors;
    out_profile->model.steps = chain.steps;
    out_profile->clock.step_ns = chain.step_ns;
    out_profile->origin =
        "layers measured by hand, atp-plan import --csv; a chain is assumed: each layer reads the "
        "one before it, and its backward step reads its input, its output and what it saved";
    return ATP_OK;
}
