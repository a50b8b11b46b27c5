/*
 * layer_rows.c - layers as job files say them: by rows and texts.
 */
#include "layer.h"

TEST(every_kind_has_sound_rows)
{
    tt_ctx *ctx = test_ctx();
    int n = 0;
    for (const tti_layer_def *def; (def = tti_layer_at(n)) != NULL; n++) {
        char opts[1024];
        CHECK(tti_layer_find(def->name) == def);
        CHECK(def->help != NULL && def->size <= sizeof(opts));
        CHECK_INT(def->common + sizeof(tti_layer_common), def->size);
        CHECK((def->build == NULL) != (def->expand == NULL));
        CHECK_OK(tti_options_default(ctx, def->options, opts));
        bool has_main = def->main == NULL;
        for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
            CHECK(row->offset >= sizeof(size_t) && row->offset < def->common);
            has_main |= def->main != NULL && strcmp(row->name, def->main) == 0;
        }
        CHECK(has_main);
    }
    CHECK(n >= 25);
    CHECK(tti_layer_at(-1) == NULL && tti_layer_find("densely") == NULL);
    CHECK(tti_layer_find(NULL) == NULL);
    CHECK_OK(tt_close(ctx));
}

// One layer by texts "name=value", as a job file appends it.
static tt_tensor *by_text(tt_model *m, const char *kind, int n, const char *const *pairs)
{
    const tti_layer_def *def = tti_layer_find(kind);
    char opts[1024] = {0};
    CHECK_OK(tti_options_default(m->ctx, def->options, opts));
    for (int i = 0; i < n; i += 2)
        CHECK_OK(tti_option_set(m->ctx, def->options, opts, kind, pairs[i], pairs[i + 1]));
    return tti_layer_add(m, def, opts);
}
#define BY_TEXT(m, kind, ...)                                                       \
    by_text(m, kind, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), \
            (const char *const[]){__VA_ARGS__})

TEST(texts_give_the_same_model)
{
    tt_ctx *ctx = test_ctx();
    tt_model *a = tt_sequential(ctx, .input = {12, 12, 2});
    tt_layer_conv2d(a, .filters = 4, .kernel = {3, 5}, .stride = {2}, .padding = TT_SAME,
                    .act = TT_SILU, .init = {TT_INIT_HE_NORMAL, 0, 0});
    tt_layer_batch_norm(a, .momentum = 0.5, .act = TT_RELU);
    tt_layer_max_pool2d(a, .size = {2}, .stride = {1});
    tt_layer_permute(a, .order = {3, {2, 0, 1}});
    tt_layer_flatten(a);
    tt_layer_dense(a, .units = 6, .no_bias = true, .init = {TT_INIT_UNIFORM, -0.5, 0.25});
    tt_layer_dense(a, .units = 5, .init = {TT_INIT_CONSTANT, 0, 0});
    tt_layer_activation(a, .act = TT_GELU_ERF);
    tt_layer_reshape(a, .shape = TT_SHAPE(1, 5));
    CHECK(tt_layer_attention(a, .heads = 5, .causal = true) != NULL);

    tt_model *b = tt_sequential(ctx, .input = {12, 12, 2});
    BY_TEXT(b, "conv2d", "filters", "4", "kernel", "[3, 5]", "stride", "2", "padding", "same",
            "act", "silu", "init", "he_normal");
    BY_TEXT(b, "batch_norm", "momentum", "0.5", "act", "relu");
    BY_TEXT(b, "max_pool2d", "size", "2", "stride", "1");
    BY_TEXT(b, "permute", "order", "[2, 0, 1]");
    by_text(b, "flatten", 0, NULL);
    BY_TEXT(b, "dense", "units", "6", "no_bias", "true", "init", "uniform", "init_a", "-0.5",
            "init_b", "0.25");
    BY_TEXT(b, "dense", "units", "5", "init", "constant");
    BY_TEXT(b, "activation", "act", "gelu_erf");
    BY_TEXT(b, "reshape", "shape", "[1, 5]");
    CHECK(BY_TEXT(b, "attention", "heads", "5", "causal", "yes") != NULL);
    char *ta = tt_graph_print(a->graph), *tb = tt_graph_print(b->graph);
    CHECK_STR(ta, tb);
    tt_string_free(ctx, ta);
    tt_string_free(ctx, tb);

    // What a program cannot say with a zero, a text can.
    CHECK(BY_TEXT(b, "activation", "act", "linear") != NULL);
    by_text(b, "flatten", 0, NULL);
    CHECK(BY_TEXT(b, "dense", "units", "2", "init", "zeros") != NULL);
    CHECK_INT(
        ((const tti_variable_attr *)test_weight_find(b, "dense_3.weight")->var->node->attr)->init,
        TT_INIT_ZEROS);
    CHECK(BY_TEXT(b, "dense", "act", "relu") == NULL);
    CHECK_MESSAGE(ctx, "dense_4: units must be given");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
