/*
 * usage.c - what a plan's memory is for, in numbers that can be counted by hand.
 */
#include "../command.h"

#define IN   11
#define WIDE 7
#define ROWS 13

static tt_session *model_of(tt_ctx *ctx, const tt_optimizer *optimizer)
{
    static float x[ROWS * IN], y[ROWS];
    tt_model *m = tt_sequential(ctx, .input = {IN});
    tt_layer_dense(m, .units = WIDE, .act = TT_RELU);
    tt_layer_batch_norm(m);
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MSE, .optimizer = optimizer);
    tt_batch_data b = {.rows = ROWS, .fields = {x, y}};
    ck_assert_msg(tt_train_step(m, &b, NULL) == TT_OK, "%s", tt_last_error(ctx).message);
    return tt_model_get_session(m);
}

TEST(weights_and_optimizer_are_told_apart)
{
    // Two dense layers with their biases; batch norm's scale, shift and two running statistics.
    size_t trained = sizeof(float) * (IN * WIDE + WIDE + WIDE + 1 + 2 * WIDE);
    size_t weights = trained + sizeof(float) * 2 * WIDE;
    tt_ctx *ctx = test_ctx();
    tt_plan_memory m;
    CHECK_OK(tt_plan_memory_get(model_of(ctx, tt_sgd(.lr = 0.1)), 0, &m));
    CHECK_INT(m.weights, weights);
    CHECK_INT(m.optimizer, 0);
    CHECK_OK(tt_plan_memory_get(model_of(ctx, tt_sgd(.lr = 0.1, .momentum = 0.9)), 0, &m));
    CHECK_INT(m.weights, weights);
    CHECK_INT(m.optimizer, trained);
    CHECK_OK(tt_plan_memory_get(model_of(ctx, tt_adam(.lr = 0.1, .ema = 0.9)), 0, &m));
    CHECK_INT(m.weights, weights);
    CHECK_INT(m.optimizer, 3 * trained); // two moments, and the moving average
    CHECK_INT(m.weights + m.optimizer, m.variables);
    CHECK_INT(m.gradients + m.kept + m.workspace, m.activations);
    CHECK_INT(m.variables + m.activations, m.total);
    CHECK(m.kept > 0);
    CHECK_INT(m.limit, 0);
    CHECK_OK(tt_close(ctx));
}

// At the peak of a step with few rows and a large weight there is its gradient, and little else.
TEST(a_large_gradient_counts_as_one)
{
    static float x[2 * 1000], y[2 * 1000];
    tt_ctx *ctx = test_ctx_on("cpu:0@64MiB", NULL, 1);
    tt_model *m = tt_sequential(ctx, .input = {1000});
    tt_layer_dense(m, .units = 1000, .no_bias = true);
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1));
    tt_batch_data b = {.rows = 2, .fields = {x, y}};
    tt_plan_memory mem;
    CHECK_OK(tt_train_step(m, &b, NULL));
    CHECK_OK(tt_plan_memory_get(tt_model_get_session(m), 0, &mem));
    CHECK(mem.gradients >= 4000000 && mem.gradients < 4001000);
    CHECK(mem.kept < 100000);
    CHECK_INT(mem.weights, 4000000);
    CHECK_INT(mem.limit, 64 << 20);
    CHECK_OK(tt_close(ctx));
}

static json_int_t number(const json_t *o, const char *key)
{
    CHECK(json_is_integer(json_object_get(o, key)));
    return json_integer_value(json_object_get(o, key));
}

TEST(the_command_prints_what_memory_is_for)
{
    static const char job[] = "data: {train: {digits: {count: 64}}}\n"
                              "model: [flatten, dense: {units: 50, act: relu}, dense: 10]\n"
                              "train: {batch: 16, loss: cross_entropy, optimizer: adam}\n"
                              "distribute: {strategy: mirrored}\n";
    test_need_yaml();
    command_write("mem.yaml", job);
    command_ok("plan mem.yaml --devices cpu:0*4@8MiB --set train.recompute=all");
    CHECK_HAS(command_out, "memory        weights    gradients    optimizer  activations    "
                           "workspace        total        limit");
    CHECK_HAS(command_out, "of the forward work");
    CHECK_HAS(command_out, "8.0 MiB\n");
    command_ok("plan mem.yaml --devices cpu:0*4@8MiB --set train.recompute=all --json");
    json_t *o = json_loads(command_out, 0, NULL);
    CHECK(o != NULL);
    const json_t *devices = json_object_get(o, "devices");
    CHECK_INT(json_array_size(devices), 4);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *d = json_array_get(devices, i), *m = json_object_get(d, "memory");
        CHECK_INT(number(m, "weights") + number(m, "gradients") + number(m, "optimizer") +
                      number(m, "activations") + number(m, "workspace"),
                  number(m, "total"));
        CHECK_INT(number(d, "limit"), 8 << 20);
    }
    CHECK(number(json_object_get(o, "recompute"), "nodes") >= 0);
    json_decref(o);
}

// A plan that is only looked at takes no memory for variables; a run of it later does.
TEST(plans_to_look_at_hold_nothing)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY));
    for (int i = 0; i < 2; i++) {
        tt_device_info d;
        char *text = tt_plan_print(tt_model_get_session(m), .rows = 8);
        CHECK(text != NULL && strstr(text, "dense_1.weight") != NULL);
        tt_string_free(ctx, text);
        CHECK_OK(tt_device_get(ctx, 0, &d));
        CHECK_INT(d.variables, i == 0 ? 0 : 7850 * 4);
        CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 8), .batch = 8));
    }
    CHECK_OK(tt_close(ctx));
}
