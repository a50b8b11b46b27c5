/*
 * model.c - models: names, weights, inputs and outputs, sharing, the two graphs, failing calls.
 */
#include "model/model.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Both graphs of a model: the second is freed by the caller.
static tt_graph *train_graph(tt_model *m, int *n_updates)
{
    tt_tensor **updates;
    tt_graph *g = tt_graph_new(m->ctx);
    ck_assert_msg(tti_model_build_training(m, g, &updates, n_updates) == TT_OK, "%s",
                  tt_last_error(m->ctx).message);
    return g;
}

static const char *out_name(tt_model *m)
{
    tti_output out[TTI_MAX_INPUTS];
    CHECK_INT(tti_model_outputs(m, out), 1);
    return out[0].name;
}

TEST(first_example)
{
    tt_ctx *ctx = test_ctx();
    tt_model *model = tt_sequential(ctx, .input = {28, 28});
    tt_layer_flatten(model);
    tt_layer_dense(model, .units = 128, .act = TT_RELU);
    tt_layer_dropout(model, .rate = 0.2f);
    tt_tensor *y = tt_layer_dense(model, .units = 10, .act = TT_SOFTMAX);
    CHECK(y != NULL);
    CHECK_INT(tt_tensor_shape(y).rank, 2);
    CHECK_INT(tt_tensor_shape(y).dim[0], TT_BATCH);
    CHECK_INT(tt_tensor_shape(y).dim[1], 10);
    CHECK_INT(tt_model_parameters(model), 784 * 128 + 128 + 1280 + 10);
    CHECK_STR(out_name(model), "dense_2");

    static float x[3 * 784];
    float p[3 * 10];
    test_fill(x, 3 * 784, 1, 0, 1);
    tt_feed_value in = {model->inputs[0]->out, x, TT_SHAPE(3, 28, 28), TT_F32};
    CHECK_OK(tt_run(tti_model_session(model), .feeds = &in, .n_feeds = 1, .n_fetches = 1,
                    .fetches = &(tt_fetch){y, p, sizeof(p)}));
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < 10; k++)
            sum += (double)p[10 * i + k];
        CHECK_NEAR(sum, 1, 1e-5);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(names_count_per_kind)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4}, .name = "pixels");
    tt_layer_dense(m, .units = 4);
    tt_layer_dropout(m, .rate = 0.5);
    tt_layer_dense(m, .units = 4, .name = "middle");
    tt_layer_dense(m, .units = 4);
    tt_layer_dense(m, .units = 4, .name = "dense_3");
    CHECK(tt_layer_dense(m, .units = 4) != NULL);
    const char *want[] = {"pixels",  "dense_1", "dropout_1", "middle",
                          "dense_2", "dense_3", "dense_4"};
    CHECK_INT(m->n_layers, 7);
    for (int i = 0; i < 7; i++)
        CHECK_STR(m->layers[i]->name, want[i]);
    CHECK_STR(m->weights[2].name, "middle.weight");
    CHECK_STR(m->weights[3].name, "middle.bias");
    CHECK_STR(tt_tensor_name(m->weights[3].var), "middle.bias");
    CHECK_STR(tt_tensor_name(m->layers[3]->out), "middle/matmul");

    CHECK(tt_layer_dense(m, .units = 4, .name = "middle") == NULL);
    CHECK_MESSAGE(ctx, "dense: the model already has a layer 'middle'");
    tt_clear_error(ctx);
    CHECK(tt_layer_dense(m, .units = 4, .name = "a/b") == NULL);
    CHECK_MESSAGE(ctx, "'a/b' is not a valid name");
    tt_clear_error(ctx);
    char big[200];
    memset(big, 'a', sizeof(big));
    big[101] = 0;
    CHECK(tt_layer_dense(m, .units = 4, .name = big) == NULL);
    CHECK_MESSAGE(ctx, "longer than 100");
    tt_clear_error(ctx);
    CHECK_INT(m->n_layers, 7);
    CHECK_OK(tt_close(ctx));
}

// A name scope that is open in the graph is no part of a layer's names: both graphs are alike.
TEST(scopes_of_the_graph_are_left_alone)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_graph *g = tt_model_get_graph(m);
    CHECK_OK(tt_name_push(g, "mine"));
    tt_tensor *y = tt_layer_dense(m, .units = 2);
    CHECK_STR(tt_tensor_name(y), "dense_1/matmul");
    CHECK_STR(tt_tensor_name(tt_relu(g, y)), "mine/relu");
    CHECK_OK(tt_name_pop(g));
    CHECK_OK(tt_close(ctx));
}

TEST(both_graphs_have_the_same_names_and_weights)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {8, 8, 2});
    tt_layer_conv2d(m, .filters = 3, .kernel = {3}, .act = TT_RELU);
    tt_layer_max_pool2d(m);
    tt_layer_flatten(m);
    tt_layer_dropout(m, .rate = 0.5);
    CHECK(tt_layer_dense(m, .units = 5) != NULL);
    int n_updates;
    tt_graph *g = train_graph(m, &n_updates);
    CHECK_INT(n_updates, 0);
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tti_weight *w = &m->weights[i];
        CHECK_STR(tt_tensor_name(w->train_var), w->name);
        CHECK(w->train_var->graph == g);
        CHECK(memcmp(w->train_var->node->attr, w->var->node->attr, w->var->node->op->attr_size) ==
              0);
    }
    for (int64_t i = 0; i < m->n_layers; i++) {
        CHECK(m->layers[i]->train_out->graph == g);
        if (i != 4) // the dropout layer has no dropout in inference
            CHECK_STR(tt_tensor_name(m->layers[i]->train_out), tt_tensor_name(m->layers[i]->out));
    }
    CHECK_STR(m->layers[4]->out->node->op->name, "identity");
    CHECK_STR(m->layers[4]->train_out->node->op->name, "dropout");
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

// ---- functional models -----------------------------------------------------------------------

// Two inputs, a layer used for both, a residual, two outputs.
static tt_model *two_headed(tt_ctx *ctx, bool shared)
{
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {6}, .name = "left");
    tt_tensor *b = tt_input(m, .shape = {6}, .name = "right");
    tt_tensor *ha = tt_layer_dense(m, .units = 4, .act = TT_TANH, .from = {a}, .name = "encode");
    tt_tensor *hb = tt_layer_dense(m, .units = 4, .act = TT_TANH, .from = {b}, .name = "again",
                                   .share = shared ? ha : NULL);
    tt_tensor *h = tt_layer_concat(m, .from = {ha, hb});
    tt_layer_dense(m, .units = 8, .act = TT_RELU);
    h = tt_layer_add(m, .from = {h});
    tt_output(m, tt_layer_dense(m, .units = 3, .from = {h}, .name = "class"), NULL);
    tt_output(m, tt_layer_dense(m, .units = 1, .from = {h}), "size");
    return m;
}

static void run_two(tt_model *m, const float *a, const float *b, float classes[6], float sizes[2])
{
    tti_output out[TTI_MAX_INPUTS];
    CHECK_INT(tti_model_outputs(m, out), 2);
    tt_feed_value in[] = {{m->inputs[0]->out, a, TT_SHAPE(2, 6), TT_F32},
                          {m->inputs[1]->out, b, TT_SHAPE(2, 6), TT_F32}};
    tt_fetch fetches[] = {{out[0].tensor, classes, 6 * sizeof(float)},
                          {out[1].tensor, sizes, 2 * sizeof(float)}};
    ck_assert_msg(tt_run(tti_model_session(m), .feeds = in, .n_feeds = 2, .fetches = fetches,
                         .n_fetches = 2) == TT_OK,
                  "%s", tt_last_error(m->ctx).message);
}

// The same by hand, from the values of the weights.
static void by_hand(tt_model *m, const float *x[2], double classes[3])
{
    float v[5][64];
    static const char *const names[] = {"encode.weight", "dense_1.weight", "dense_1.bias",
                                        "class.weight", "class.bias"};
    for (int i = 0; i < 5; i++)
        for (int64_t k = 0; k < m->n_weights; k++)
            if (strcmp(m->weights[k].name, names[i]) == 0)
                CHECK_OK(tt_get_variable(tti_model_session(m), m->weights[k].var, v[i],
                                         sizeof(float) *
                                             (size_t)tt_shape_count(&m->weights[k].var->shape)));
    double h[8], r[8];
    for (int i = 0; i < 8; i++) { // biases are zero at first
        double sum = 0;
        for (int k = 0; k < 6; k++)
            sum += (double)x[i / 4][k] * (double)v[0][k * 4 + i % 4];
        h[i] = tanh(sum);
    }
    for (int i = 0; i < 8; i++) {
        double sum = (double)v[2][i];
        for (int k = 0; k < 8; k++)
            sum += h[k] * (double)v[1][k * 8 + i];
        r[i] = fmax(sum, 0) + h[i];
    }
    for (int i = 0; i < 3; i++) {
        classes[i] = (double)v[4][i];
        for (int k = 0; k < 8; k++)
            classes[i] += r[k] * (double)v[3][k * 3 + i];
    }
}

TEST(branches_sharing_and_two_outputs)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = two_headed(ctx, true);
    tti_output out[TTI_MAX_INPUTS];
    CHECK_INT(tti_model_outputs(m, out), 2);
    CHECK_STR(out[0].name, "class");
    CHECK_STR(out[1].name, "size");
    CHECK_INT(tt_model_parameters(m), 28 + 72 + 27 + 9);
    CHECK_INT(m->n_weights, 8);
    CHECK(m->layers[3]->share == m->layers[2]);

    float a[12], b[12], classes[6], sizes[2];
    test_fill(a, 12, 1, -1, 1);
    test_fill(b, 12, 2, -1, 1);
    run_two(m, a, b, classes, sizes);
    for (int r = 0; r < 2; r++) {
        const float *x[] = {a + 6 * r, b + 6 * r};
        double want[3];
        by_hand(m, x, want);
        for (int i = 0; i < 3; i++)
            CHECK_NEAR((double)classes[3 * r + i], want[i], 1e-5);
    }
    CHECK(sizes[0] != sizes[1]);
    CHECK_INT(tt_model_parameters(two_headed(ctx, false)), 28 + 28 + 72 + 27 + 9);
    CHECK_OK(tt_close(ctx));
}

// Any session on a model's graph sees its weights; another model with the same names does not.
TEST(each_model_has_weights_of_its_own)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m[2];
    float set[] = {1, 2, 3, 4}, got[4];
    for (int i = 0; i < 2; i++) {
        m[i] = tt_sequential(ctx, .input = {2});
        CHECK(tt_layer_dense(m[i], .units = 2) != NULL);
    }
    tt_tensor *w = m[0]->weights[0].var;
    CHECK_OK(tt_set_variable(tti_model_session(m[0]), w, set, sizeof(set)));
    CHECK_OK(tt_get_variable(tt_session_new(m[0]->graph), w, got, sizeof(got)));
    CHECK(memcmp(got, set, sizeof(set)) == 0);
    CHECK_OK(tt_eval(m[0]->graph, w, got, 4));
    CHECK(memcmp(got, set, sizeof(set)) == 0);
    int n_updates;
    tt_graph *g = train_graph(m[0], &n_updates);
    CHECK_OK(tt_get_variable(tt_session_new(g), m[0]->weights[0].train_var, got, sizeof(got)));
    CHECK(memcmp(got, set, sizeof(set)) == 0);
    CHECK_OK(tt_get_variable(tt_session_new(m[1]->graph), m[1]->weights[0].var, got, sizeof(got)));
    CHECK(memcmp(got, set, sizeof(set)) != 0);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(sharing_through_a_shared_layer)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_tensor *a = tt_layer_dense(m, .units = 4, .name = "a");
    tt_tensor *b = tt_layer_dense(m, .units = 4, .share = a);
    CHECK(tt_layer_dense(m, .units = 4, .share = b) != NULL);
    CHECK_INT(m->n_weights, 2);
    CHECK(m->layers[3]->share == m->layers[1]);

    CHECK(tt_layer_dense(m, .units = 5, .share = b) == NULL);
    CHECK_MESSAGE(ctx, "dense_3: weight 'a.weight' is f32 [4, 4] in layer 'a' but f32 [4, 5] here");
    tt_clear_error(ctx);
    tt_tensor *bare = tt_layer_dense(m, .units = 4, .no_bias = true, .name = "bare");
    CHECK(tt_layer_dense(m, .units = 4, .share = bare) == NULL);
    CHECK_MESSAGE(ctx, "layer 'bare' has no weight 'bare.bias' to share");
    tt_clear_error(ctx);
    CHECK(tt_layer_dense(m, .units = 4, .share = m->inputs[0]->out) == NULL);
    CHECK_MESSAGE(ctx, "input 'x': it has no weights");
    tt_clear_error(ctx);
    tt_tensor *norm = tt_layer_batch_norm(m);
    CHECK(tt_layer_batch_norm(m, .share = norm) == NULL);
    CHECK_MESSAGE(ctx, "batch_norm_2: cannot share weights with 'batch_norm_1'");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// A layer that only passes its input on still has an output of its own, in both graphs.
TEST(layers_that_do_nothing)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_tensor *d = tt_layer_dropout(m, .rate = 0.5), *y = tt_layer_dense(m, .units = 4);
    CHECK(d != m->inputs[0]->out);
    CHECK(tt_layer_add(m, .from = {d, y}) != NULL);
    int n_updates;
    tt_graph *g = train_graph(m, &n_updates);
    tt_tensor *sum = m->layers[3]->train_out;
    CHECK(sum->node->in[0] == m->layers[1]->train_out);
    CHECK_STR(sum->node->in[0]->node->op->name, "dropout");
    CHECK_STR(sum->node->in[0]->node->name, "dropout_1/dropout");
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(device_scopes_reach_both_graphs)
{
    tt_ctx *ctx = test_ctx_on("cpu:0*2", NULL, 2);
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 4);
    CHECK_OK(tt_device_push(tt_model_get_graph(m), "cpu:1"));
    tt_layer_dense(m, .units = 4);
    CHECK_OK(tt_device_pop(tt_model_get_graph(m)));
    CHECK(tt_layer_dense(m, .units = 4) != NULL);
    int n_updates;
    tt_graph *g = train_graph(m, &n_updates);
    for (int i = 1; i <= 3; i++) {
        const tt_node *a = m->layers[i]->out->node, *b = m->layers[i]->train_out->node;
        CHECK_INT(a->has_pin, i == 2);
        CHECK_INT(b->has_pin, i == 2);
        CHECK(i != 2 || memcmp(&a->pin, &b->pin, sizeof(a->pin)) == 0);
        CHECK_INT(m->weights[2 * (i - 1)].train_var->node->has_pin, i == 2);
    }
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

// ---- summary ---------------------------------------------------------------------------------

TEST(summary_as_text)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {28, 28});
    tt_layer_flatten(m);
    tt_tensor *h = tt_layer_dense(m, .units = 784);
    tt_layer_dense(m, .units = 784, .share = h);
    tt_layer_batch_norm(m);
    char *text = tt_summary(m, false);
    CHECK_STR(text, "layer         kind        output       parameters\n"
                    "x             input       [b, 28, 28]           0\n"
                    "flatten_1     flatten     [b, 784]              0\n"
                    "dense_1       dense       [b, 784]        615,440\n"
                    "dense_2       dense       [b, 784]     of dense_1\n"
                    "batch_norm_1  batch_norm  [b, 784]          3,136\n"
                    "parameters 618,576, trainable 617,008, weights 2.3 MiB\n");
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(summary_as_json)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = two_headed(ctx, true);
    char *text = tt_summary(m, true);
    CHECK(strstr(text, "{\"name\":\"left\",\"kind\":\"input\",\"from\":[],\"dtype\":\"f32\","
                       "\"shape\":[-1,6],\"parameters\":0}") != NULL);
    CHECK(strstr(text, "{\"name\":\"again\",\"kind\":\"dense\",\"from\":[\"right\"],\"dtype\":"
                       "\"f32\",\"shape\":[-1,4],\"parameters\":0,\"shares\":\"encode\"}") != NULL);
    CHECK(strstr(text, "\"from\":[\"encode\",\"again\"]") != NULL);
    CHECK(strstr(text, "\"outputs\":[{\"name\":\"class\",\"layer\":\"class\"},{\"name\":\"size\","
                       "\"layer\":\"dense_2\"}]") != NULL);
    CHECK(strstr(text, "\"parameters\":136,\"trainable\":136,\"bytes\":544}") != NULL);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(weights_listed)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5});
    tt_layer_dense(m, .units = 3);
    tt_layer_batch_norm(m);
    tt_weight_info info[4];
    CHECK_INT(tt_model_weights(m, info, 4), 6);
    CHECK_STR(info[0].name, "dense_1.weight");
    CHECK_INT(info[0].shape.dim[0], 5);
    CHECK_INT(info[0].shape.dim[1], 3);
    CHECK_STR(info[3].name, "batch_norm_1.bias");
    CHECK(info[3].trains && info[3].dtype == TT_F32);
    tt_weight_info all[6];
    CHECK_INT(tt_model_weights(m, all, 6), 6);
    CHECK_STR(all[5].name, "batch_norm_1.var");
    CHECK(!all[5].trains);
    CHECK_INT(tt_model_weights(m, NULL, 0), 6);
    CHECK_OK(tt_close(ctx));
}

TEST(patterns)
{
    CHECK(tti_match("*.bias, norm*", "a.b.bias"));
    CHECK(tti_match("*.bias, norm*", "norm1.weight"));
    CHECK(!tti_match("*.bias, norm*", "a.biases"));
    CHECK(tti_match("block.?.*", "block.3.attn.qkv.weight"));
    CHECK(!tti_match("block.?.*", "block.13.attn.qkv.weight"));
    CHECK(tti_match("a*b*c", "aXbXbYc") && !tti_match("a*b*c", "aXcXb"));
    CHECK(tti_match("*", "") && tti_match("x,*", "y") && tti_match("**", "z"));
    CHECK(!tti_match("", "x") && !tti_match(NULL, "x") && !tti_match(" , ,", "x"));
    CHECK(!tti_match("x", "") && !tti_match("?", "") && !tti_match("x", "xx"));
}
