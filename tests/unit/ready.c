/*
 * ready.c - whole models: parameters as published, names, and what is special in each.
 */
#include "model/model.h"
#include "test.h"
#include <math.h>

// Both graphs of a model: the second is freed by the caller.
static tt_graph *train_graph(tt_model *m, int *n_updates)
{
    tt_tensor **updates;
    tt_graph *g = tt_graph_new(m->ctx);
    ck_assert_msg(tti_model_build_training(m, g, &updates, n_updates) == TT_OK, "%s",
                  tt_last_error(m->ctx).message);
    return g;
}

static int64_t trainable(const tt_model *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        n += m->weights[i].trains ? tt_shape_count(&m->weights[i].var->shape) : 0;
    return n;
}

TEST(resnets_have_the_parameters_of_torchvision)
{
    static const struct {
        int depth;
        int64_t parameters;
    } want[] = {{18, 11689512}, {34, 21797672}, {50, 25557032}};
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 3; i++) {
        tt_model *m = tt_sequential(ctx, .input = {224, 224, 3});
        tt_tensor *y = tt_layer_resnet(m, .depth = want[i].depth, .classes = 1000);
        CHECK(y != NULL && tt_tensor_shape(y).dim[1] == 1000);
        CHECK_INT(trainable(m), want[i].parameters);
        CHECK_STR(m->weights[0].name, "conv1.weight");
        int64_t pooled = m->n_layers - 3; // the last block's output
        CHECK_INT(m->layers[pooled]->out->shape.dim[1], 7);
        tt_model_free(m);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(a_small_resnet_runs_and_begins_as_its_shortcuts)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {32, 32, 3});
    tt_tensor *y = tt_layer_resnet(m, .width = 4, .small = true, .classes = 7, .name = "net");
    CHECK(y != NULL);
    CHECK_STR(m->layers[1]->name, "net.conv1");
    CHECK_STR(m->layers[2]->name, "net.bn1");
    CHECK_INT(m->layers[2]->out->shape.dim[1], 32); // no pooling in the stem
    tti_layer *first = NULL, *end = NULL;
    for (int64_t i = 0; i < m->n_layers; i++) {
        if (strcmp(m->layers[i]->name, "net.bn1") == 0)
            first = m->layers[i];
        if (strcmp(m->layers[i]->name, "net.layer1.1.bn2") == 0)
            end = m->layers[i];
    }
    static float x[2 * 32 * 32 * 3], a[2 * 32 * 32 * 4], b[2 * 32 * 32 * 4];
    float out[14];
    test_fill(x, 2 * 32 * 32 * 3, 1, -1, 1);
    tt_feed_value in = {m->inputs[0]->out, x, TT_SHAPE(2, 32, 32, 3), TT_F32};
    tt_fetch fetches[] = {
        {first->out, a, sizeof(a)}, {end->out, b, sizeof(b)}, {y, out, sizeof(out)}};
    CHECK_OK(tt_run(tti_model_session(m), .feeds = &in, .n_feeds = 1, .fetches = fetches,
                    .n_fetches = 3));
    CHECK(memcmp(a, b, sizeof(a)) == 0); // two blocks of scale zero pass it on
    int n_updates;
    tt_graph *g = train_graph(m, &n_updates);
    CHECK_INT(n_updates, 2 * 20);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(gpt2_small_has_its_parameters)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {1024}, .dtype = TT_I32);
    tt_tensor *y = tt_layer_gpt(m, .vocab = 50257, .layers = 12, .heads = 12, .width = 768);
    CHECK(y != NULL && tt_tensor_shape(y).dim[2] == 50257);
    CHECK_INT(trainable(m), 124439808);
    CHECK_INT(tt_model_parameters(m), 124439808);
    const char *want[] = {"embed.weight", "pos.weight", "block.0.norm1.weight",
                          "block.0.norm1.bias", "block.0.attn.qkv.weight"};
    for (int i = 0; i < 5; i++)
        CHECK_STR(m->weights[i].name, want[i]);
    const tti_variable_attr *proj = NULL;
    for (int64_t i = 0; i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, "block.11.mlp.proj.weight") == 0)
            proj = m->weights[i].var->node->attr;
    CHECK(proj != NULL && proj->init == TT_INIT_NORMAL);
    CHECK_NEAR(proj->b, 0.02 / sqrt(24), 1e-15);
    m = tt_sequential(ctx, .input = {1024}, .dtype = TT_I32);
    CHECK(tt_layer_gpt(m, .vocab = 50257, .layers = 12, .heads = 12, .width = 768, .untied = true));
    CHECK_INT(trainable(m), 124439808 + 50257 * 768);
    CHECK_OK(tt_close(ctx));
}

// Tokens after a place do not change its logits, and the head is the embedding.
TEST(gpt_looks_back_only)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {6}, .dtype = TT_I32);
    tt_tensor *y =
        tt_layer_gpt(m, .vocab = 11, .layers = 2, .heads = 2, .width = 8, .dropout = 0.1);
    CHECK(y != NULL);
    const int32_t x[] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 9, 10, 0};
    float out[2][6][11];
    tt_feed_value in = {m->inputs[0]->out, x, TT_SHAPE(2, 6), TT_I32};
    CHECK_OK(tt_run(tti_model_session(m), .feeds = &in, .n_feeds = 1, .n_fetches = 1,
                    .fetches = &(tt_fetch){y, out, sizeof(out)}));
    CHECK(memcmp(out[0][0], out[1][0], 3 * 11 * sizeof(float)) == 0);
    CHECK(memcmp(out[0][3], out[1][3], 11 * sizeof(float)) != 0);
    CHECK(y->node->in[1] == m->weights[0].var);
    int n_updates, drops = 0;
    tt_graph *g = train_graph(m, &n_updates);
    for (int64_t i = 0; i < g->n_nodes; i++)
        drops += strcmp(g->nodes[i]->op->name, "dropout") == 0;
    CHECK_INT(drops, 1 + 2 * 2);
    tt_graph_free(g);
    CHECK_OK(tt_close(ctx));
}

TEST(lenet_and_mlp)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    CHECK(tt_layer_lenet(m) != NULL);
    CHECK_INT(tt_model_parameters(m), 61706);
    m = tt_sequential(ctx, .input = {20});
    tt_tensor *y = tt_layer_mlp(m, .units = {3, {16, 8, 5}}, .dropout = 0.5);
    CHECK(y != NULL);
    CHECK_INT(tt_model_parameters(m), 20 * 16 + 16 + 16 * 8 + 8 + 8 * 5 + 5);
    const char *want[] = {"x", "dense_1", "dropout_1", "dense_2", "dropout_2", "dense_3"};
    CHECK_INT(m->n_layers, 6);
    for (int i = 0; i < 6; i++)
        CHECK_STR(m->layers[i]->name, want[i]);
    CHECK(tt_layer_mlp(m, .units = {1, {5}}, .name = "tail") != NULL);
    CHECK_STR(m->layers[6]->name, "tail.dense_1");
    CHECK(tt_layer_mlp(m, .units = {1, {5}}, .name = "tail.dense_1") == NULL);
    CHECK_MESSAGE(ctx, "the model already has a layer 'tail.dense_1'");
    tt_clear_error(ctx);
    CHECK(tt_layer_mlp(m, .units = {1, {5}}, .share = y) == NULL);
    CHECK_MESSAGE(ctx, "mlp: consists of several layers");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Loss of the first and of the last epoch on a few records.
static void learns(tt_model *m, tt_data *d)
{
    tt_fit_report r = {0};
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 3e-3)));
    CHECK_OK(tt_fit(m, d, .epochs = 1));
    CHECK_OK(tt_fit_report_get(m, &r));
    double first = r.last->loss; // the next fit writes there
    ck_assert_msg(tt_fit(m, d, .epochs = 12) == TT_OK, "%s", tt_last_error(m->ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    ck_assert_msg(r.last->loss < 0.5 * first, "loss %g, then %g", first, r.last->loss);
}

TEST(ready_models_learn)
{
    tt_ctx *ctx = test_ctx();
    static float x[32][16 * 16];
    static int32_t classes[32], tokens[32][8], next[32][8];
    for (int i = 0; i < 32; i++) {
        classes[i] = i % 2;
        test_fill(x[i], 256, (uint64_t)i, i % 2 == 0 ? -1 : 0, 1);
        for (int k = 0; k < 8; k++) {
            tokens[i][k] = (i + k) % 5;
            next[i][k] = (i + k + 1) % 5;
        }
    }
    tt_data *images = tt_memory(ctx, .x = x, .y = classes, .y_dtype = TT_I32,
                                .x_shape = TT_SHAPE(16, 16, 1), .count = 32, .batch = 8);
    tt_model *m = tt_sequential(ctx, .input = {16, 16, 1});
    tt_layer_resnet(m, .width = 2, .small = true, .classes = 2);
    learns(m, images);
    m = tt_sequential(ctx, .input = {16, 16, 1});
    tt_layer_lenet(m, .classes = 2);
    learns(m, images);
    tt_data *text =
        tt_memory(ctx, .x = tokens, .y = next, .x_dtype = TT_I32, .y_dtype = TT_I32,
                  .x_shape = TT_SHAPE(8), .y_shape = TT_SHAPE(8), .count = 32, .batch = 8);
    m = tt_sequential(ctx, .input = {8}, .dtype = TT_I32);
    tt_layer_gpt(m, .vocab = 5, .layers = 2, .heads = 2, .width = 16, .dropout = 0.1);
    learns(m, text);
    CHECK_OK(tt_close(ctx));
}
