/*
 * layout.c - weights that other programs wrote: [out, in] or [in, out] is known or refused, never
 * guessed.
 */
#include "../test.h"
#include "model/model.h"
#include "save/safetensors.h"
#include <stdio.h>

static char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    return path;
}

static const char *const from_torch[] = {"format", "pt", NULL};
static const char *const from_tutti[] = {"format", "tutti", NULL};

typedef struct file {
    tti_named tensors[8];
    int n;
    float data[8][512];
} file;

// A tensor that counts up.
static void add(file *f, const char *name, tt_shape shape)
{
    int64_t n = tt_shape_count(&shape);
    CHECK(f->n < 8 && n <= 512);
    for (int64_t i = 0; i < n; i++)
        f->data[f->n][i] = (float)i;
    f->tensors[f->n] = (tti_named){name, TT_F32, shape, f->data[f->n], (size_t)n * sizeof(float)};
    f->n++;
}

static void write_file(tt_ctx *ctx, const char *name, const file *f, const char *const *metadata)
{
    tt_hash hash;
    CHECK_OK(tti_safetensors_write(ctx, path_of(name), f->tensors, f->n, metadata, &hash));
}

static tt_model *dense_of(tt_ctx *ctx, int in, int units)
{
    tt_model *m = tt_sequential(ctx, .input = {in});
    tt_layer_dense(m, .units = units, .no_bias = true, .name = "fc");
    return m;
}

// y = x W of the first row of a unit matrix: what the model's W has in row k.
static void row_of(tt_model *m, int in, int k, float *y)
{
    float x[64] = {0};
    CHECK(in <= 64);
    x[k] = 1;
    CHECK_OK(tt_predict(m, x, 1, y));
}

static void refused(tt_ctx *ctx, tt_model *m, const char *name, tt_weight_layout layout,
                    const char *words)
{
    tt_load_opts o = {.opts_size = sizeof(o), .layout = layout};
    CHECK(tt_load_with(m, path_of(name), &o) != TT_OK);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
}

TEST(square_matrices_of_unknown_layout_are_refused)
{
    static file f;
    tt_ctx *ctx = test_ctx();
    tt_model *m = dense_of(ctx, 3, 3);
    float y[3];
    add(&f, "fc.weight", TT_SHAPE(3, 3));
    write_file(ctx, "plain", &f, NULL);
    write_file(ctx, "torch", &f, from_torch);
    write_file(ctx, "tutti", &f, from_tutti);
    refused(ctx, m, "plain", TT_WEIGHTS_AUTO,
            "'fc.weight' is [3, 3]: the file does not say whether it is [in, out] (Tutti) or [out, "
            "in] (PyTorch); set layout: torch or layout: tutti");
    CHECK_OK(tt_load(m, path_of("plain"), .layout = TT_WEIGHTS_TUTTI));
    row_of(m, 3, 1, y);
    CHECK(y[0] == 3 && y[1] == 4 && y[2] == 5);
    CHECK_OK(tt_load(m, path_of("plain"), .layout = TT_WEIGHTS_TORCH));
    row_of(m, 3, 1, y);
    CHECK(y[0] == 1 && y[1] == 4 && y[2] == 7);
    CHECK_OK(tt_load(m, path_of("tutti"))); // the files say it themselves
    row_of(m, 3, 1, y);
    CHECK(y[0] == 3);
    CHECK_OK(tt_load(m, path_of("torch")));
    row_of(m, 3, 1, y);
    CHECK(y[0] == 1);
    CHECK_OK(tt_close(ctx));
}

TEST(shapes_say_the_layout_of_the_file)
{
    static file f, mixed, square;
    tt_ctx *ctx = test_ctx();
    tt_model *m = dense_of(ctx, 3, 2);
    float y[4];
    add(&f, "fc.weight", TT_SHAPE(2, 3));
    write_file(ctx, "out_in", &f, NULL);
    CHECK_OK(tt_load(m, path_of("out_in")));
    row_of(m, 3, 1, y);
    CHECK(y[0] == 1 && y[1] == 4);
    refused(ctx, m, "out_in", TT_WEIGHTS_TUTTI,
            "'fc.weight' is f32 [2, 3] but the model's is [3, 2]");
    tt_model *two = dense_of(ctx, 3, 2);
    tt_layer_dense(two, .units = 2, .no_bias = true, .name = "square");
    add(&square, "fc.weight", TT_SHAPE(2, 3));
    add(&square, "square.weight", TT_SHAPE(2, 2)); // of the same file, so as the other
    write_file(ctx, "square", &square, NULL);
    CHECK_OK(tt_load(two, path_of("square")));
    tt_model *three = dense_of(ctx, 3, 2);
    tt_layer_dense(three, .units = 4, .no_bias = true, .name = "last");
    add(&mixed, "fc.weight", TT_SHAPE(2, 3));
    add(&mixed, "last.weight", TT_SHAPE(2, 4));
    write_file(ctx, "mixed", &mixed, NULL);
    refused(ctx, three, "mixed", TT_WEIGHTS_AUTO,
            "'last.weight' is [2, 4], Tutti's layout, but 'fc.weight' is [2, 3], PyTorch's layout");
    write_file(ctx, "straight",
               &(file){.tensors = {{"fc.weight", TT_F32, TT_SHAPE(3, 2), f.data[0], 24}}, .n = 1},
               from_torch);
    refused(ctx, m, "straight", TT_WEIGHTS_AUTO,
            "'fc.weight' is f32 [3, 2] but PyTorch's layout of the model's [3, 2] is [2, 3]");
    CHECK_OK(tt_close(ctx));
}

// Convolutions, and a dense layer whose inputs PyTorch flattens channels first.
TEST(torch_layout_of_pictures)
{
    static file f;
    float x[2 * 3 * 2], y[2], want[2] = {0, 0};
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2, 3, 2});
    tt_layer_conv2d(m, .filters = 2, .kernel = {1}, .no_bias = true, .name = "conv");
    tt_layer_flatten(m);
    tt_layer_dropout(m, .rate = 0.5);
    tt_layer_dense(m, .units = 2, .no_bias = true, .name = "fc");
    add(&f, "conv.weight", TT_SHAPE(2, 2, 1, 1));
    add(&f, "fc.weight", TT_SHAPE(2, 12));
    write_file(ctx, "torch", &f, NULL); // [2, 12] can only be PyTorch's
    CHECK_OK(tt_load(m, path_of("torch")));
    for (int i = 0; i < 12; i++)
        x[i] = (float)(i * i % 7);
    CHECK_OK(tt_predict(m, x, 1, y));
    for (int o = 0; o < 2; o++)
        for (int c = 0; c < 2; c++)
            for (int p = 0; p < 6; p++) {
                float v = x[p * 2] * f.data[0][c * 2] + x[p * 2 + 1] * f.data[0][c * 2 + 1];
                want[o] += v * f.data[1][o * 12 + c * 6 + p];
            }
    CHECK_NEAR(y[0], want[0], 1e-3);
    CHECK_NEAR(y[1], want[1], 1e-3);
    CHECK_OK(tt_close(ctx));
}

TEST(names_of_torch_batch_norms)
{
    static file f;
    float x[2] = {3, 5}, y[2];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_batch_norm(m, .name = "bn");
    add(&f, "bn.weight", TT_SHAPE(2));
    add(&f, "bn.bias", TT_SHAPE(2));
    add(&f, "bn.running_mean", TT_SHAPE(2));
    add(&f, "bn.running_var", TT_SHAPE(2));
    add(&f, "bn.num_batches_tracked", (tt_shape){0});
    f.data[3][0] = 1;
    f.data[3][1] = 4;
    write_file(ctx, "bn", &f, NULL);
    CHECK_OK(tt_load(m, path_of("bn")));
    CHECK_OK(tt_predict(m, x, 1, y));
    CHECK_NEAR(y[0], 0, 1e-6); // weight 0
    CHECK_NEAR(y[1], 1 + (5 - 1) / 2.0, 1e-4);
    CHECK_OK(tt_close(ctx));
}

// Names of Hugging Face's GPT-2: its Conv1D matrices are [in, out], its head is [out, in].
TEST(names_of_gpt2)
{
    static tti_named t[20];
    static float data[20][1024];
    static const struct {
        const char *name;
        tt_shape shape;
    } tensors[] = {{"wte.weight", {2, {5, 4}}},
                   {"wpe.weight", {2, {3, 4}}},
                   {"h.0.ln_1.weight", {1, {4}}},
                   {"h.0.ln_1.bias", {1, {4}}},
                   {"h.0.attn.bias", {4, {1, 1, 3, 3}}},
                   {"h.0.attn.c_attn.weight", {2, {4, 12}}},
                   {"h.0.attn.c_attn.bias", {1, {12}}},
                   {"h.0.attn.c_proj.weight", {2, {4, 4}}},
                   {"h.0.attn.c_proj.bias", {1, {4}}},
                   {"h.0.ln_2.weight", {1, {4}}},
                   {"h.0.ln_2.bias", {1, {4}}},
                   {"h.0.mlp.c_fc.weight", {2, {4, 16}}},
                   {"h.0.mlp.c_fc.bias", {1, {16}}},
                   {"h.0.mlp.c_proj.weight", {2, {16, 4}}},
                   {"h.0.mlp.c_proj.bias", {1, {4}}},
                   {"ln_f.weight", {1, {4}}},
                   {"ln_f.bias", {1, {4}}},
                   {"lm_head.weight", {2, {5, 4}}}};
    int n = (int)(sizeof(tensors) / sizeof(tensors[0]));
    tt_hash hash;
    float got[20];
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < n; i++) {
        int64_t count = tt_shape_count(&tensors[i].shape);
        for (int64_t k = 0; k < count; k++)
            data[i][k] = (float)k;
        t[i] = (tti_named){tensors[i].name, TT_F32, tensors[i].shape, data[i],
                           (size_t)count * sizeof(float)};
    }
    CHECK_OK(tti_safetensors_write(ctx, path_of("gpt2"), t, n, from_torch, &hash));
    for (int untied = 0; untied < 2; untied++) {
        tt_model *m = tt_sequential(ctx, .input = {3}, .dtype = TT_I32);
        tt_layer_gpt(m, .layers = 1, .heads = 2, .width = 4, .vocab = 5, .untied = untied == 1);
        tt_status st = tt_load(m, path_of("gpt2"));
        ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
        tt_session *s = tti_model_session(m);
        for (int64_t i = 0; i < m->n_weights; i++) {
            if (strcmp(m->weights[i].name, "block.0.attn.proj.weight") == 0) { // as it is
                CHECK_OK(tt_get_variable(s, m->weights[i].var, got, 16 * sizeof(float)));
                CHECK(got[1] == 1 && got[4] == 4);
            }
            if (strcmp(m->weights[i].name, "head.weight") == 0) { // [4, 5] of [5, 4]
                CHECK_OK(tt_get_variable(s, m->weights[i].var, got, 20 * sizeof(float)));
                CHECK(got[1] == 4 && got[5] == 1);
            }
        }
    }
    CHECK_OK(tt_close(ctx));
}

// conv1d [out, in, k], transposed [in, out, k], lstm [gates units, in] as PyTorch has them.
TEST(torch_layout_of_sequences)
{
    static file f;
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4, 2});
    tt_layer_conv1d(m, .filters = 5, .kernel = 3, .name = "c", .no_bias = true);
    tt_layer_conv1d_transpose(m, .filters = 3, .kernel = 2, .name = "t", .no_bias = true);
    tt_layer_lstm(m, .units = 2, .name = "r", .no_bias = true);
    add(&f, "c.weight", TT_SHAPE(5, 2, 3));
    add(&f, "t.weight", TT_SHAPE(5, 3, 2));
    add(&f, "r.weight_ih_l0", TT_SHAPE(8, 3));
    add(&f, "r.weight_hh_l0", TT_SHAPE(8, 2));
    write_file(ctx, "sequences", &f, from_torch);
    CHECK_OK(tt_load(m, path_of("sequences")));
    float c[30], t[30], r[24];
    tt_session *s = tti_model_session(m);
    CHECK_OK(tt_get_variable(s, tt_graph_find(m->graph, "c.weight"), c, sizeof(c)));
    CHECK_OK(tt_get_variable(s, tt_graph_find(m->graph, "t.weight"), t, sizeof(t)));
    CHECK_OK(tt_get_variable(s, tt_graph_find(m->graph, "r.weight_ih_l0"), r, sizeof(r)));
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++)
            for (int o = 0; o < 5; o++)
                CHECK(c[(k * 2 + i) * 5 + o] == (float)((o * 2 + i) * 3 + k));
    for (int k = 0; k < 2; k++)
        for (int o = 0; o < 3; o++)
            for (int i = 0; i < 5; i++)
                CHECK(t[(k * 3 + o) * 5 + i] == (float)((i * 3 + o) * 2 + k));
    for (int i = 0; i < 3; i++)
        for (int o = 0; o < 8; o++)
            CHECK(r[i * 8 + o] == (float)(o * 3 + i));
    CHECK_OK(tt_close(ctx));
}
