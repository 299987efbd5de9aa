/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "layers.h"

#include "plan_builder.h"
#include "run_tests.h"

START_TEST(finds_the_layer_in_a_name)
{
    static const struct {
        const char *name;
        size_t length;
    } cases[] = {
        {"x1", 0},
        {"h0.out", 2},
        {"h0.attention.out", 2},
        {"head.out", 4},
        {"head.a.b", 4},
        {"model.layers.3.norm.weight", 14},
        {"model.layers.3", 5},
        {"a.b1", 1},
        {".x", 0},
        {"a..b", 1},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(layers_prefix(cases[i].name) == cases[i].length, "%s: %zu", cases[i].name,
                      layers_prefix(cases[i].name));
    }
}
END_TEST

START_TEST(adds_up_tensors_of_a_layer_wherever_they_stand)
{
    struct region *region = region_create();
    struct plan_builder *b = plan_builder_create("layers");
    struct layers layers;
    (void)plan_builder_tensor(b, "h0.x", 1);
    (void)plan_builder_tensor(b, "h1.x", 10);
    (void)plan_builder_tensor(b, "loose", 100);
    (void)plan_builder_tensor(b, "h0.y", 1000);
    (void)plan_builder_step(b, ATP_PHASE_FORWARD, "f", NO_IDS, IDS(0, 1, 2, 3));
    plan_builder_seal(b);
    b->decisions[3] = ATP_DECISION_SWAP;
    layers_build(&b->plan, region, &layers);
    ck_assert_uint_eq(layers.count, 3);
    ck_assert_str_eq(layers.items[0].name, "h0");
    ck_assert_str_eq(layers.items[1].name, "h1");
    ck_assert_str_eq(layers.items[2].name, "");
    ck_assert_uint_eq(layers.of_tensor[3], 0);
    ck_assert_uint_eq(layers.items[0].bytes[ATP_DECISION_KEEP], 1);
    ck_assert_uint_eq(layers.items[0].bytes[ATP_DECISION_SWAP], 1000);
    ck_assert_uint_eq(layers.items[0].tensors[ATP_DECISION_SWAP], 1);
    ck_assert_uint_eq(layers.items[2].bytes[ATP_DECISION_KEEP], 100);
    plan_builder_destroy(b);
    region_destroy(region);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        finds_the_layer_in_a_name,
        adds_up_tensors_of_a_layer_wherever_they_stand,
    };
    return RUN_TESTS("layers", tests, NULL, NULL);
}
