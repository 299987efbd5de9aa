/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole training program on libatp: 16 layers a = x / (1 + |x|), x = weight * a' + bias, that
 * learn to give back their input. See planner/guide.md.
 *
 *     train                  trains
 *     train --record FILE    and writes a profile
 *     train --plan FILE      trains under a plan
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <atp/plan_yaml.h>
#include <atp/replay.h>

enum { LAYERS = 16, ITEMS = 1 << 18, BYTES = ITEMS * 4, ITERATIONS = 10 };
/* Tensors: the input, what each layer makes, and one gradient, which goes down in place. */
enum { X, A, GRADIENT = A + LAYERS, TENSORS };
/* Steps: layers up, the loss, layers down, the update. */
enum { FORWARD, LOSS = FORWARD + LAYERS, BACKWARD, UPDATE = BACKWARD + LAYERS, STEPS };

/* Resident: they stay where they are. */
struct net {
    float weight[LAYERS], bias[LAYERS], weight_gradient[LAYERS], bias_gradient[LAYERS];
    double loss;
};

static struct atp_tensor tensors[TENSORS];
static struct atp_step steps[STEPS];
static uint32_t reads[STEPS][3], writes[STEPS];
static char names[TENSORS + LAYERS][16];
static const struct atp_model model = {.name = "first",
                                       .batch_size = 64,
                                       .tensor_count = TENSORS,
                                       .step_count = STEPS,
                                       .tensors = tensors,
                                       .steps = steps};

/* A step that writes at most one tensor. */
static void declare(uint32_t step, const char *name, enum atp_phase phase, uint32_t read_count,
                    uint32_t write)
{
    writes[step] = write;
    steps[step] = (struct atp_step){.name = name,
                                    .phase = phase,
                                    .read_count = read_count,
                                    .write_count = write != ATP_NONE,
                                    .reads = reads[step],
                                    .writes = &writes[step]};
}

/* The same every iteration: what each step reads and writes, and how large it is. */
static void declare_model(void)
{
    for (uint32_t t = 0; t < TENSORS; t++) {
        (void)snprintf(names[t], sizeof(names[t]), t == GRADIENT ? "gradient" : "a%u", t);
        tensors[t] = (struct atp_tensor){.name = names[t], .bytes = BYTES};
    }
    for (uint32_t l = 0; l < LAYERS; l++) {
        char *name = names[TENSORS + l];
        uint32_t down = BACKWARD + (LAYERS - 1 - l), up = FORWARD + l;
        (void)snprintf(name, sizeof(names[0]), "layer%u", l);
        reads[up][0] = X + l;
        declare(up, name, ATP_PHASE_FORWARD, 1, A + l);
        memcpy(reads[down], (uint32_t[]){X + l, A + l, GRADIENT}, sizeof(reads[down]));
        declare(down, name, ATP_PHASE_BACKWARD, 3, GRADIENT);
    }
    memcpy(reads[LOSS], (uint32_t[]){X, GRADIENT - 1}, 2 * sizeof(uint32_t));
    declare(LOSS, "loss", ATP_PHASE_BACKWARD, 2, GRADIENT);
    declare(UPDATE, "update", ATP_PHASE_UPDATE, 0, ATP_NONE);
}

static void layer_forward(const struct net *net, uint32_t l, const float *x, float *y)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        float sum = net->weight[l] * x[i] + net->bias[l];
        y[i] = sum / (1 + fabsf(sum));
    }
}

static void loss_backward(struct net *net, const float *x, const float *y, float *g)
{
    net->loss = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        g[i] = 2 * (y[i] - x[i]) / ITEMS;
        net->loss += (double)((y[i] - x[i]) * (y[i] - x[i]) / ITEMS);
    }
}

static void layer_backward(struct net *net, uint32_t l, const float *x, const float *y, float *g)
{
    double weight_gradient = 0, bias_gradient = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        float slope = (1 - fabsf(y[i])) * (1 - fabsf(y[i])) * g[i];
        weight_gradient += (double)(slope * x[i]);
        bias_gradient += (double)slope;
        g[i] = slope * net->weight[l];
    }
    net->weight_gradient[l] = (float)weight_gradient;
    net->bias_gradient[l] = (float)bias_gradient;
}

static void update(struct net *net)
{
    for (uint32_t l = 0; l < LAYERS; l++) {
        net->weight[l] -= 0.5f * net->weight_gradient[l];
        net->bias[l] -= 0.5f * net->bias_gradient[l];
    }
}

/* Good for this call only: a plan moves tensors about. */
static float *data(const struct atp_step_call *call, uint32_t tensor)
{
    return atp_replay_tensor_data(call->replay, tensor);
}

/* The work of any step. */
static enum atp_status run_step(void *ctx, const struct atp_step_call *call, struct atp_error *err)
{
    struct net *net = ctx;
    const uint32_t *in = reads[call->step], out = writes[call->step];
    (void)err;
    if (call->step < LOSS) {
        layer_forward(net, call->step, data(call, in[0]), data(call, out));
    } else if (call->step == LOSS) {
        loss_backward(net, data(call, in[0]), data(call, in[1]), data(call, out));
    } else if (call->step < UPDATE) {
        uint32_t l = LAYERS - 1 - (call->step - BACKWARD);
        layer_backward(net, l, data(call, in[0]), data(call, in[1]), data(call, out));
    } else {
        update(net);
    }
    return ATP_OK;
}

/* Fills the inputs at the beginning of each iteration. */
static enum atp_status load_batch(void *ctx, const struct atp_step_call *call,
                                  struct atp_error *err)
{
    float *x = data(call, X);
    (void)ctx;
    (void)err;
    for (uint32_t i = 0; i < ITEMS; i++) {
        x[i] = (float)((i * 37U + (uint32_t)call->iteration) % 101U) / 101;
    }
    return ATP_OK;
}

static enum atp_status train(struct net *net, const struct atp_plan *plan, const char *record,
                             struct atp_error *err)
{
    struct atp_backend *backend = NULL;
    struct atp_replay *replay = NULL;
    struct atp_replay_options options = {
        .step = run_step, .step_ctx = net, .record = record != NULL};
    enum atp_status status = atp_backend_host_create(NULL, &backend, err);
    if (status == ATP_OK) { /* proves the plan, refuses it for another model, allocates all */
        status = atp_replay_open(plan, &model, backend, &options, &replay, err);
    }
    if (status == ATP_OK) {
        (void)fprintf(stderr, "activations take %llu bytes\n",
                      (unsigned long long)atp_replay_plan(replay)->arena_bytes);
    }
    for (int i = 0; status == ATP_OK && i < ITERATIONS; i++) {
        status = atp_replay_run_iteration(replay, load_batch, err);
        if (status == ATP_OK) {
            (void)printf("%d %.17g\n", i, net->loss);
        }
    }
    if (status == ATP_OK && record != NULL) {
        struct atp_profile_facts facts = {.device_name = "host",
                                          .device_memory_bytes = UINT64_C(1) << 32,
                                          .resident_bytes = sizeof(*net)};
        status = atp_replay_write_profile(replay, record, &facts, err);
    }
    atp_replay_close(replay); /* NULL is fine */
    atp_backend_destroy(backend);
    return status;
}

int main(int argc, char **argv)
{
    const char *option = argc == 3 ? argv[1] : "";
    struct atp_plan_file *file = NULL;
    struct atp_error err;
    struct net net = {.loss = 0};
    enum atp_status status = ATP_OK;
    declare_model();
    for (uint32_t l = 0; l < LAYERS; l++) {
        net.weight[l] = 1.5f;
    }
    if (strcmp(option, "--plan") == 0) {
        status = atp_plan_read(argv[2], &file, &err);
    } else if (argc > 1 && strcmp(option, "--record") != 0) {
        (void)fputs("usage: train [--record FILE | --plan FILE]\n", stderr);
        return 2;
    }
    if (status == ATP_OK) {
        status = train(&net, file != NULL ? &file->plan : NULL,
                       strcmp(option, "--record") == 0 ? argv[2] : NULL, &err);
    }
    if (status != ATP_OK) {
        (void)fprintf(stderr, "train: %s\n", err.text);
    }
    atp_plan_file_destroy(file);
    return status == ATP_OK ? 0 : 1;
}
