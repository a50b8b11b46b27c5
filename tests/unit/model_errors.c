/*
 * model_errors.c - what models refuse, by which message, and that they go on afterwards; NULL;
 * memory that is not there.
 */
#include "model/model.h"
#include "test.h"

// ---- refusals --------------------------------------------------------------------------------

typedef tt_tensor *(*bad_fn)(tt_model *m);
static tt_tensor *bad_units(tt_model *m)
{
    return tt_layer_dense(m, .units = -3);
}
static tt_tensor *no_units(tt_model *m)
{
    return tt_layer_dense(m);
}
static tt_tensor *bad_act(tt_model *m)
{
    return tt_layer_dense(m, .units = 2, .act = (tt_act)77);
}
static tt_tensor *conv_on_vectors(tt_model *m)
{
    return tt_layer_conv2d(m, .filters = 2);
}
static tt_tensor *conv_without_channels(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4));
    return tt_layer_conv2d(m, .filters = 2);
}
static tt_tensor *conv_both_paddings(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4, 1));
    return tt_layer_conv2d(m, .filters = 2, .padding = TT_SAME, .pad = {1});
}
static tt_tensor *conv_too_large(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4, 1));
    return tt_layer_conv2d(m, .filters = 2, .kernel = {4});
}
static tt_tensor *bad_reshape(tt_model *m)
{
    return tt_layer_reshape(m, .shape = TT_SHAPE(5, -1));
}
static tt_tensor *no_reshape(tt_model *m)
{
    return tt_layer_reshape(m);
}
static tt_tensor *bad_permute(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4));
    return tt_layer_permute(m, .order = {2, {1, 1}});
}
static tt_tensor *bad_rate(tt_model *m)
{
    return tt_layer_dropout(m, .rate = 1);
}
static tt_tensor *no_act(tt_model *m)
{
    return tt_layer_activation(m);
}
static tt_tensor *embed_floats(tt_model *m)
{
    return tt_layer_embedding(m, .vocab = 3, .width = 2);
}
static tt_tensor *bad_heads(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4));
    return tt_layer_attention(m, .heads = 3);
}
static tt_tensor *bad_kv_heads(tt_model *m)
{
    tt_layer_reshape(m, .shape = TT_SHAPE(3, 4));
    return tt_layer_transformer_block(m, .heads = 4, .kv_heads = 3);
}
static tt_tensor *block_on_vectors(tt_model *m)
{
    return tt_layer_transformer_block(m, .heads = 4);
}
static tt_tensor *bad_depth(tt_model *m)
{
    return tt_layer_resnet(m, .depth = 20);
}
static tt_tensor *gpt_on_floats(tt_model *m)
{
    return tt_layer_gpt(m, .vocab = 9, .name = "g");
}
static tt_tensor *no_mlp(tt_model *m)
{
    return tt_layer_mlp(m);
}
static tt_tensor *bad_mlp(tt_model *m)
{
    return tt_layer_mlp(m, .units = {2, {3, 0}});
}
static tt_tensor *no_fn(tt_model *m)
{
    return tt_layer_custom(m);
}
static tt_tensor *foreign(tt_model *m)
{
    tt_model *other = tt_sequential(m->ctx, .input = {12});
    return tt_layer_dense(m, .units = 2, .from = {other->inputs[0]->out});
}
static tt_tensor *inner(tt_model *m)
{
    return tt_layer_dense(m, .units = 2, .from = {tt_relu(m->graph, m->inputs[0]->out)});
}
static tt_tensor *gap(tt_model *m)
{
    return tt_layer_add(m, .from = {NULL, m->inputs[0]->out});
}
static tt_tensor *two_for_one(tt_model *m)
{
    return tt_layer_flatten(m, .from = {m->inputs[0]->out, m->inputs[0]->out});
}
static tt_tensor *one_for_two(tt_model *m)
{
    return tt_layer_concat(m);
}
static tt_tensor *batch_axis(tt_model *m)
{
    return tt_layer_concat(m, .from = {m->inputs[0]->out}, .axis = -2);
}
static tt_tensor *unequal_add(tt_model *m)
{
    tt_tensor *x = m->inputs[0]->out;
    tt_layer_dense(m, .units = 5);
    return tt_layer_add(m, .from = {x});
}
static tt_tensor *bad_opts(tt_model *m)
{
    return tt_layer_dense_with(m, NULL);
}
static tt_tensor *twice(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user, (void)n_in;
    tt_layer_weight(b, "w", TT_SHAPE(2), (tt_init){0});
    tt_layer_weight(b, "w", TT_SHAPE(3), (tt_init){0});
    return in[0];
}
static tt_tensor *weight_twice(tt_model *m)
{
    return tt_layer_custom(m, .fn = twice);
}
static tt_tensor *slash(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user, (void)n_in;
    return tt_layer_weight(b, "a/b", TT_SHAPE(2), (tt_init){0}) == NULL ? NULL : in[0];
}
static tt_tensor *weight_slash(tt_model *m)
{
    return tt_layer_custom(m, .fn = slash);
}
static tt_tensor *nothing(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user, (void)b, (void)in, (void)n_in;
    return NULL;
}
static tt_tensor *no_output(tt_model *m)
{
    return tt_layer_custom(m, .fn = nothing);
}

static const struct {
    bad_fn fn;
    tt_status status;
    const char *message;
} refusals[] = {
    {bad_units, TT_EINVAL, "dense_1: units -3 is below 1"},
    {no_units, TT_EINVAL, "dense_1: units must be given"},
    {bad_act, TT_EINVAL, "dense_1: act 77 is not one of its values"},
    {conv_on_vectors, TT_ESHAPE,
     "conv2d_1: x is [b, 12]; it must be [batch, height, width, channels]"},
    {conv_without_channels, TT_ESHAPE,
     "conv2d_1: x is [b, 3, 4], which has no channels; make the input {3, 4, 1}"},
    {conv_both_paddings, TT_EINVAL, "conv2d_1: pad is [1, 1] and padding is same"},
    {conv_too_large, TT_ESHAPE, "conv2d_1: conv2d: "},
    {bad_reshape, TT_ESHAPE, "reshape_1: x is [b, 12]; its records cannot have the shape"},
    {no_reshape, TT_EINVAL, "reshape_1: shape must be given"},
    {bad_permute, TT_EINVAL, "permute_1: x is [b, 3, 4]; order must name each axis"},
    {bad_rate, TT_EINVAL, "dropout_1: rate is 1; it must be at least 0 and below 1"},
    {no_act, TT_EINVAL, "activation_1: act must be given"},
    {embed_floats, TT_EDTYPE, "embedding_1: x is f32; an embedding takes ids"},
    {bad_heads, TT_ESHAPE, "attention_1: 4 channels do not divide into 3 heads"},
    {bad_kv_heads, TT_EINVAL, "transformer_block_1: 4 heads cannot share 3 kv_heads"},
    {block_on_vectors, TT_ESHAPE, "transformer_block_1: x is [b, 12]"},
    {bad_depth, TT_EINVAL, "resnet: depth 20 is not 18, 34 or 50"},
    {gpt_on_floats, TT_EDTYPE, "g.embed: x is f32"},
    {no_mlp, TT_EINVAL, "mlp_1: units must be given"},
    {bad_mlp, TT_EINVAL, "mlp_1: units 0 is below 1"},
    {no_fn, TT_EINVAL, "custom_1: fn must be given"},
    {foreign, TT_EINVAL, "dense_1: tensor 'x' is not the output of a layer of this model"},
    {inner, TT_EINVAL, "dense_1: tensor 'relu' is not the output of a layer of this model"},
    {gap, TT_EINVAL, "add_1: from[0] is NULL but from[1] is not"},
    {two_for_one, TT_EINVAL, "flatten_1: takes 1 input, got 2"},
    {one_for_two, TT_EINVAL, "concat_1: takes at least 2 inputs, got 0"},
    {batch_axis, TT_EINVAL, "concat_1: axis -2 does not exist in a record of [b, 12]"},
    {unequal_add, TT_ESHAPE, "add_1: add: "},
    {bad_opts, TT_EINVAL, "dense: the options are NULL"},
    {weight_twice, TT_ESHAPE, "custom_1: weight 'custom_1.w' is f32 [2] in layer 'custom_1' but "},
    {weight_slash, TT_EINVAL, "custom_1: 'a/b' is not a valid name of a weight"},
    {no_output, TT_EINVAL, "custom_1: it returned no output"},
};

// Each names the layer; the model then goes on, and its names are those of a model without it.
TEST(layers_refuse)
{
    for (int i = 0; i < TTI_COUNT(refusals); i++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {12});
        tt_tensor *y = refusals[i].fn(m);
        ck_assert_msg(y == NULL, "case %d: no failure; '%s' was expected", i, refusals[i].message);
        CHECK_MESSAGE(ctx, refusals[i].message);
        ck_assert_int_eq(tt_status_of(ctx), refusals[i].status);
        CHECK(tt_layer_dense(m, .units = 3) == NULL); // the context is sticky
        tt_clear_error(ctx);
        y = tt_layer_dense(m, .units = 3, .name = "next", .from = {m->inputs[0]->out});
        ck_assert_msg(y != NULL, "case %d: then %s", i, tt_last_error(ctx).message);
        CHECK_STR(tt_tensor_name(y), "next/matmul");
        CHECK_STR(m->weights[m->n_weights - 1].name, "next.bias");
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(a_composite_that_fails_leaves_nothing)
{
    tt_ctx *ctx = test_ctx();
    CHECK(tt_layer_lenet(tt_sequential(ctx, .input = {16, 16, 3})) != NULL);
    tt_model *small = tt_sequential(ctx, .input = {8, 8, 3}, .name = "x");
    int64_t nodes = small->graph->n_nodes;
    CHECK(tt_layer_lenet(small) == NULL); // conv2 does not fit
    CHECK_MESSAGE(ctx, "conv2: conv2d: ");
    tt_clear_error(ctx);
    CHECK_INT(small->n_layers, 1);
    CHECK_INT(small->n_weights, 0);
    CHECK_INT(small->graph->n_nodes, nodes);
    CHECK_STR(small->prefix, "");
    CHECK(tt_layer_conv2d(small, .filters = 2, .name = "conv1") != NULL);
    CHECK_STR(tt_tensor_name(small->layers[1]->out), "conv1/conv2d");
    CHECK_OK(tt_close(ctx));
}

TEST(inputs_refuse)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    CHECK(tt_layer_dense(m, .units = 2) == NULL);
    CHECK_MESSAGE(ctx, "dense_1: the model has no input");
    tt_clear_error(ctx);
    CHECK(tt_input(m, .shape = {3, -2}) == NULL);
    CHECK_MESSAGE(ctx, "x: dimension 1 of a record is -2");
    tt_clear_error(ctx);
    CHECK(tt_input(m, .shape = {3, 0, 2}) == NULL);
    CHECK_MESSAGE(ctx, "x: dimension 2 of a record is 2, but it follows 0");
    tt_clear_error(ctx);
    CHECK(tt_input(m, .shape = {1, 1, 1, 1, 1, 1, 1, 1}) == NULL);
    CHECK_MESSAGE(ctx, "at most 7 dimensions");
    tt_clear_error(ctx);
    CHECK(tt_input(m, .shape = {3}, .dtype = (tt_dtype)99) == NULL);
    tt_clear_error(ctx);
    for (int i = 0; i < 8; i++)
        CHECK(tt_input(m, .shape = {2}) != NULL);
    CHECK_STR(m->inputs[7]->name, "x_7");
    CHECK(tt_input(m, .shape = {2}) == NULL);
    CHECK_MESSAGE(ctx, "input 'x_8': a model has at most 8 inputs");
    tt_clear_error(ctx);
    CHECK(tt_input(m, .name = "x") == NULL);
    CHECK_MESSAGE(ctx, "input: the model already has a layer 'x'");
    tt_clear_error(ctx);
    CHECK(tt_sequential(ctx, .input = {2, -1}) == NULL);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(outputs_refuse)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_tensor *y = tt_layer_dense(m, .units = 2);
    CHECK(tt_output(m, NULL, "a") == TT_EINVAL);
    CHECK_MESSAGE(ctx, "the output of a layer is NULL");
    tt_clear_error(ctx);
    CHECK(tt_output(m, tt_relu(m->graph, y), "a") == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_output(m, y, NULL));
    CHECK(tt_output(m, y, "dense_1") == TT_EINVAL);
    CHECK_MESSAGE(ctx, "there already is an output 'dense_1'");
    tt_clear_error(ctx);
    CHECK(tt_output(m, y, "a b") == TT_EINVAL);
    tt_clear_error(ctx);
    char name[2] = "a";
    for (int i = 0; i < 7; i++, name[0]++)
        CHECK_OK(tt_output(m, y, name));
    CHECK(tt_output(m, y, name) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "at most 8 outputs");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// The training graph has the layers of its time; more of them would be left out of it.
TEST(a_compiled_model_takes_no_more)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_tensor *y = tt_layer_dense(m, .units = 2);
    CHECK_OK(tt_compile(m, .loss = TT_MSE));
    CHECK(tt_layer_dense(m, .units = 2) == NULL);
    CHECK_MESSAGE(ctx, "dense: the model is compiled; add layers before tt_compile()");
    tt_clear_error(ctx);
    CHECK(tt_layer_mlp(m, .units = {1, {2}}) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_input(m, .shape = {2}) == NULL);
    CHECK_MESSAGE(ctx, "input: the model is compiled");
    tt_clear_error(ctx);
    CHECK(tt_output(m, y, "y") == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(null_models)
{
    tt_ctx *ctx = test_ctx();
    CHECK(tt_sequential(NULL) == NULL);
    CHECK(tt_model_new(NULL) == NULL);
    CHECK(tt_sequential_with(ctx, NULL) == NULL);
    CHECK_MESSAGE(ctx, "the options are NULL");
    tt_clear_error(ctx);
    CHECK(tt_input_with(tt_model_new(ctx), NULL) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_input(NULL) == NULL && tt_layer_dense(NULL, .units = 3) == NULL);
    CHECK(tt_layer_gpt(NULL, .vocab = 3) == NULL && tt_layer_custom(NULL) == NULL);
    CHECK(tt_output(NULL, NULL, NULL) == TT_EINVAL);
    CHECK(tt_summary(NULL, false) == NULL && tt_model_get_graph(NULL) == NULL);
    CHECK_INT(tt_model_parameters(NULL), 0);
    CHECK_INT(tt_model_weights(NULL, NULL, 0), 0);
    CHECK(tt_layer_weight(NULL, "w", TT_SCALAR, (tt_init){0}) == NULL);
    CHECK(tt_build_graph(NULL) == NULL && !tt_build_is_training(NULL));
    tt_model_free(NULL);
    tt_model *empty = tt_model_new(ctx);
    tti_output out[TTI_MAX_INPUTS];
    CHECK_INT(tti_model_outputs(empty, out), 0);
    CHECK_OK(tt_close(ctx));
}

// ---- memory ----------------------------------------------------------------------------------

static bool build_much(tt_ctx *ctx)
{
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {6}), *b = tt_input(m, .shape = {6});
    tt_tensor *ha = tt_layer_dense(m, .units = 4, .from = {a});
    tt_layer_add(m, .from = {ha, tt_layer_dense(m, .units = 4, .from = {b}, .share = ha)});
    tt_output(m, ha, "first");
    tt_model *n = tt_sequential(ctx, .input = {4}, .dtype = TT_I32);
    tt_layer_gpt(n, .vocab = 5, .layers = 1, .heads = 2, .width = 4, .dropout = 0.1, .name = "g");
    tt_model *c = tt_sequential(ctx, .input = {8, 8, 1});
    tt_layer_conv2d(c, .filters = 2);
    tt_layer_batch_norm(c);
    tt_layer_positional(tt_sequential(ctx, .input = {3, 3}), .fixed = true);
    char *text = tt_summary(m, true);
    tt_string_free(ctx, text);
    text = tt_summary(n, false);
    tt_string_free(ctx, text);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor **updates;
    int n_updates;
    bool ok =
        g != NULL && c != NULL && tti_model_build_training(c, g, &updates, &n_updates) == TT_OK;
    if (g != NULL && c != NULL) // on failure too it is no longer the context's
        tt_graph_free(g);
    return ok && tt_status_of(ctx) == TT_OK;
}

TEST(building_models_without_memory)
{
    int k = 1;
    for (; k < 5000; k++) {
        tt_ctx *ctx = test_ctx();
        tti_fail_alloc_at(ctx, k);
        bool ok = build_much(ctx);
        ck_assert_msg(ok || tt_status_of(ctx) == TT_ENOMEM, "allocation %d: %s", k,
                      tt_last_error(ctx).message);
        tti_fail_alloc_at(ctx, 0);
        tt_clear_error(ctx);
        if (!ok)
            CHECK(build_much(ctx));
        CHECK_OK(tt_close(ctx));
        if (ok)
            break;
    }
    CHECK(k > 100 && k < 5000);
}

// A layer that ran out of memory can be appended again, and the graph is that of a first success.
TEST(a_layer_again_after_no_memory)
{
    tt_ctx *whole = test_ctx();
    tt_model *w = tt_sequential(whole, .input = {4, 4});
    CHECK(tt_layer_transformer_block(w, .heads = 2) != NULL);
    char *want = tt_graph_print(w->graph);
    tt_tensor *y = NULL;
    for (int k = 1; y == NULL; k++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {4, 4});
        tti_fail_alloc_at(ctx, k);
        y = tt_layer_transformer_block(m, .heads = 2);
        tti_fail_alloc_at(ctx, 0);
        if (y == NULL) {
            CHECK_INT(tt_status_of(ctx), TT_ENOMEM);
            tt_clear_error(ctx);
            CHECK_INT(m->n_weights, 0);
            CHECK_INT(m->n_layers, 1);
            CHECK(tt_layer_transformer_block(m, .heads = 2) != NULL);
        }
        char *text = tt_graph_print(m->graph);
        CHECK_STR(text, want);
        tt_string_free(ctx, text);
        CHECK_OK(tt_close(ctx));
    }
    tt_string_free(whole, want);
    CHECK_OK(tt_close(whole));
}

TEST(a_label_is_not_fed_as_an_input)
{
    static const float x[4] = {1, 2, 3, 4}, y[4] = {2, 4, 6, 8};
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {1}, .name = "a");
    tt_tensor *b = tt_input(m, .shape = {1}, .name = "b");
    tt_layer_add(m, .from = {a, b});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .losses = {tt_loss(.kind = TT_MSE, .target = "y")}));
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                           .count = 4, .batch = 2);
    CHECK(tt_fit(m, d) == TT_EINVAL);
    CHECK_MESSAGE(ctx,
                  "the model's input 'b' is not a field of the data, and the field at its "
                  "position, 'y', has another use; name the inputs after the fields: 'x', 'y'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
