/*
 * model.c - models: names, weights, inputs and outputs, sharing, the two graphs, failing calls.
 */
#include "test.h"
#include "train/train.h"
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
    tt_flatten(model);
    tt_dense(model, .units = 128, .act = TT_RELU);
    tt_dropout(model, .rate = 0.2f);
    tt_tensor *y = tt_dense(model, .units = 10, .act = TT_SOFTMAX);
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
    tt_dense(m, .units = 4);
    tt_dropout(m, .rate = 0.5);
    tt_dense(m, .units = 4, .name = "middle");
    tt_dense(m, .units = 4);
    tt_dense(m, .units = 4, .name = "dense_3");
    CHECK(tt_dense(m, .units = 4) != NULL);
    const char *want[] = {"pixels",  "dense_1", "dropout_1", "middle",
                          "dense_2", "dense_3", "dense_4"};
    CHECK_INT(m->n_layers, 7);
    for (int i = 0; i < 7; i++)
        CHECK_STR(m->layers[i]->name, want[i]);
    CHECK_STR(m->weights[2].name, "middle.weight");
    CHECK_STR(m->weights[3].name, "middle.bias");
    CHECK_STR(tt_tensor_name(m->weights[3].var), "middle.bias");
    CHECK_STR(tt_tensor_name(m->layers[3]->out), "middle/matmul");

    CHECK(tt_dense(m, .units = 4, .name = "middle") == NULL);
    CHECK_MESSAGE(ctx, "dense: the model has a layer 'middle' already");
    tt_clear_error(ctx);
    CHECK(tt_dense(m, .units = 4, .name = "a/b") == NULL);
    CHECK_MESSAGE(ctx, "'a/b' is no name");
    tt_clear_error(ctx);
    char big[200];
    memset(big, 'a', sizeof(big));
    big[101] = 0;
    CHECK(tt_dense(m, .units = 4, .name = big) == NULL);
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
    tt_tensor *y = tt_dense(m, .units = 2);
    CHECK_STR(tt_tensor_name(y), "dense_1/matmul");
    CHECK_STR(tt_tensor_name(tt_relu(g, y)), "mine/relu");
    CHECK_OK(tt_name_pop(g));
    CHECK_OK(tt_close(ctx));
}

TEST(both_graphs_have_the_same_names_and_weights)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {8, 8, 2});
    tt_conv2d(m, .filters = 3, .kernel = {3}, .act = TT_RELU);
    tt_max_pool2d(m);
    tt_flatten(m);
    tt_dropout(m, .rate = 0.5);
    CHECK(tt_dense(m, .units = 5) != NULL);
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
