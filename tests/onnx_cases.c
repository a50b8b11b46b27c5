/*
 * onnx_cases.c - models for the tests of ONNX files: every kind of layer and ready-made model.
 */
#include "onnx_cases.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/layers.h>

// A layer for each kind, most behind a dense layer of 6 units; joins also read what that one gives.
const onnx_case onnx_cases[] = {
    {"dense units=4 act=gelu", {5}, 0},
    {"dense units=4 act=mish", {5}, 0},
    {"dense units=4 act=softmax", {5}, 0},
    {"dense units=3 act=elu no_bias=true", {4, 5}, 0},
    {"activation act=relu", {5}, 0},
    {"activation act=gelu_erf", {5}, 0},
    {"activation act=sigmoid", {5}, 0},
    {"activation act=tanh", {5}, 0},
    {"activation act=silu", {5}, 0},
    {"activation act=leaky_relu", {5}, 0},
    {"activation act=softplus", {5}, 0},
    {"activation act=selu", {5}, 0},
    {"activation act=relu6", {5}, 0},
    {"activation act=hard_sigmoid", {5}, 0},
    {"activation act=hard_swish", {5}, 0},
    {"activation act=softsign", {5}, 0},
    {"glu act=silu", {9, 5}, 0},
    {"swiglu hidden=9", {5}, 0},
    {"geglu hidden=9 units=3 no_bias=true", {9, 5}, 0},
    {"prelu", {6, 7, 5}, 0},
    {"prelu shared=true", {5}, 0},
    {"dropout rate=0.5", {5}, 0},
    {"spatial_dropout rate=0.5", {6, 7, 5}, 0},
    {"gaussian_dropout rate=0.5", {5}, 0},
    {"gaussian_noise deviation=0.5", {5}, 0},
    {"repeat times=3", {5}, 0},
    {"flatten", {4, 5}, 0},
    {"reshape shape=[3,4,2]", {4, 5}, 0},
    {"permute order=[2,0,1]", {6, 7, 5}, 0},
    {"zero_pad pad=[1,2,3,0]", {6, 7, 5}, 0},
    {"crop pad=[1,0,0,2]", {6, 7, 5}, 0},
    {"upsample2d factor=[2,3]", {6, 7, 5}, 0},
    {"upsample2d factor=[2,3] mode=bilinear", {6, 7, 5}, 0},
    {"upsample1d factor=3", {9, 5}, 0},
    {"pixel_shuffle factor=1", {6, 8, 5}, 0},
    {"pixel_unshuffle factor=2", {6, 8, 5}, 0},
    {"conv2d filters=4 kernel=[3,2] stride=[1,2] pad=[1,2] act=relu", {6, 7, 5}, 0},
    {"conv2d filters=4 dilation=2 pad=2", {6, 7, 5}, 0},
    {"conv2d filters=4 dilation=2 stride=2 pad=1", {6, 7, 5}, 0},
    {"conv2d filters=9 groups=3", {6, 7, 5}, 0},
    {"conv2d filters=12 groups=6 stride=2 pad=1", {6, 7, 5}, 0},
    {"depthwise_conv2d filters=2 padding=same", {6, 7, 5}, 0},
    {"separable_conv2d filters=4 multiplier=2 pad=1", {6, 7, 5}, 0},
    {"conv2d_transpose filters=4 stride=2 pad=1 extra=1", {6, 7, 5}, 0},
    {"conv2d_transpose filters=4 kernel=[2,3] stride=[3,1]", {6, 7, 5}, 0},
    {"conv2d_transpose filters=4 kernel=4 stride=2 padding=same", {6, 7, 5}, 0},
    {"conv1d filters=4 stride=2 pad=1", {9, 5}, 0},
    {"conv1d filters=4 dilation=2 causal=true", {9, 5}, 0},
    {"conv1d_transpose filters=4 stride=2 pad=1 extra=1", {9, 5}, 0},
    {"max_pool2d size=3 stride=2 pad=1", {6, 7, 5}, 0},
    {"avg_pool2d size=3 stride=2 pad=1", {6, 7, 5}, 0},
    {"global_avg_pool2d", {6, 7, 5}, 0},
    {"global_max_pool2d", {6, 7, 5}, 0},
    {"adaptive_avg_pool2d size=[4,3]", {6, 7, 5}, 0},
    {"adaptive_max_pool2d size=[4,3]", {6, 7, 5}, 0},
    {"max_pool1d size=3 stride=2 pad=1", {9, 5}, 0},
    {"avg_pool1d size=3", {9, 5}, 0},
    {"global_avg_pool1d", {9, 5}, 0},
    {"global_max_pool1d", {9, 5}, 0},
    {"batch_norm", {5}, 0},
    {"batch_norm act=relu", {6, 7, 5}, 0},
    {"batch_norm", {9, 5}, 0},
    {"layer_norm", {9, 5}, 0},
    {"rms_norm", {9, 5}, 0},
    {"group_norm groups=3", {6, 7, 5}, 0},
    {"instance_norm", {9, 5}, 0},
    {"lstm units=7", {9, 5}, 0},
    {"lstm units=5 layers=2 bidirectional=true last=true", {9, 5}, 0},
    {"gru units=17 bidirectional=true", {9, 5}, 0},
    {"gru units=4 layers=3 last=true no_bias=true", {9, 5}, 0},
    {"rnn units=6 layers=2", {9, 5}, 0},
    {"positional", {9, 5}, 0},
    {"positional fixed=true", {9, 5}, 0},
    {"attention heads=2", {9, 5}, 0},
    {"attention heads=6 kv_heads=2 causal=true", {9, 5}, 0},
    {"multi_head_attention heads=2 causal=true window=3", {9, 5}, 0},
    {"multi_head_attention heads=3 kv_heads=1 alibi=true window=2", {9, 5}, 0},
    {"multi_head_attention heads=3 causal=true rotary=true no_bias=true units=4", {9, 5}, 0},
    {"lambda expr=x*sigmoid(1.7*x)", {9, 5}, 0},
    {"transformer_block heads=2 hidden=12 rms=true no_causal=true", {9, 5}, 0},
    {"transformer_block heads=3", {9, 5}, 0},
    {"add", {5}, ONNX_JOINS},
    {"concat", {4, 5}, ONNX_JOINS},
    {"multiply", {5}, ONNX_JOINS},
    {"subtract", {5}, ONNX_JOINS},
    {"average", {5}, ONNX_JOINS},
    {"maximum", {5}, ONNX_JOINS},
    {"minimum", {5}, ONNX_JOINS},
    {"dot", {9, 5}, ONNX_JOINS},
    {"dot normalise=true", {5}, ONNX_JOINS},
    {"embedding vocab=11 width=3", {7}, ONNX_TOKENS},
    {"mlp units=[8,3] act=tanh", {5}, 0},
    {"lenet classes=4", {28, 28, 1}, ONNX_ALONE},
    {"resnet depth=18 classes=4 width=4 small=true", {16, 16, 3}, ONNX_ALONE},
    {"resnet depth=50 classes=4 width=4", {32, 32, 3}, ONNX_ALONE},
    {"gpt layers=2 heads=2 width=8 vocab=11", {6}, ONNX_TOKENS},
    {"gpt layers=1 heads=2 width=8 vocab=11 untied=true no_bias=true", {6}, ONNX_TOKENS},
    {"llama layers=2 heads=2 kv_heads=1 width=8 hidden=12 vocab=11", {6}, ONNX_TOKENS},
    {"bert layers=1 heads=2 width=8 vocab=11", {6}, ONNX_TOKENS},
    {"lstm_lm layers=1 units=6 width=6 vocab=11", {6}, ONNX_TOKENS},
    {"vit layers=1 heads=2 width=8 patch=4 classes=3", {8, 8, 3}, ONNX_ALONE},
    {"mobilenet_v2 classes=3 width=0.1", {32, 32, 3}, ONNX_ALONE},
    {"unet classes=3 width=2 depth=2", {8, 8, 3}, ONNX_ALONE},
    {"tabular categories=[3] units=[4] classes=2", {3}, ONNX_ALONE},
    {"autoencoder units=[4,2]", {6}, ONNX_ALONE},
};
const int onnx_n_cases = sizeof(onnx_cases) / sizeof(onnx_cases[0]);

static tt_tensor *append(tt_model *m, const char *text, tt_tensor *const *from)
{
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    const char *kind = strtok_r(copy, " ", &rest);
    const tti_layer_def *def = tti_layer_find(kind);
    ck_assert_msg(def != NULL, "there is no layer '%s'", kind);
    char *opts = test_zeros(1, def->size);
    CHECK_OK(tti_options_default(m->ctx, def->options, opts));
    for (char *pair; (pair = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *value = strchr(pair, '=');
        *value++ = '\0';
        ck_assert_msg(tti_option_set(m->ctx, def->options, opts, kind, pair, value) == TT_OK,
                      "%s: %s", text, tt_last_error(m->ctx).message);
    }
    if (from != NULL)
        memcpy(((tti_layer_common *)(void *)(opts + def->common))->from, from, 2 * sizeof(*from));
    return tti_layer_add(m, def, opts);
}

void onnx_fill(tt_model *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tti_weight *w = &m->weights[i];
        tt_shape s = tt_tensor_shape(w->var);
        int64_t n = tt_shape_count(&s);
        double wide = s.rank > 1 ? 1 / sqrt((double)(n / s.dim[s.rank - 1])) : 0.2;
        float *x = test_zeros((size_t)n, sizeof(*x));
        test_fill(x, n, seed + (uint64_t)i, s.rank > 1 ? -wide : 0.9, s.rank > 1 ? wide : 1.1);
        CHECK_OK(tt_set_variable(tti_model_session(m), w->var, x, (size_t)n * sizeof(*x)));
    }
}

tt_model *onnx_case_build(tt_ctx *ctx, const onnx_case *c)
{
    tt_sequential_opts o = {.opts_size = sizeof(o)};
    memcpy(o.input, c->input, sizeof(c->input));
    o.dtype = c->flags & ONNX_TOKENS ? TT_I32 : TT_F32;
    tt_model *m = tt_sequential_with(ctx, &o);
    tt_tensor *from[2] = {NULL, NULL}, *y;
    if ((c->flags & (ONNX_TOKENS | ONNX_ALONE)) == 0)
        from[0] = tt_layer_dense(m, .units = 6);
    if (c->flags & ONNX_JOINS)
        from[1] = tt_layer_activation(m, .act = TT_SIGMOID);
    y = append(m, c->text, c->flags & ONNX_JOINS ? from : NULL);
    ck_assert_msg(y != NULL, "%s: %s", c->text, tt_last_error(ctx).message);
    onnx_fill(m, 7);
    return m;
}

void *onnx_case_input(tt_model *m, int64_t rows, size_t *bytes)
{
    tt_port p;
    CHECK_OK(tt_model_input(m, 0, &p));
    int64_t n = rows * tt_shape_count(&p.shape);
    float *x = test_zeros((size_t)n, sizeof(*x));
    *bytes = (size_t)n * sizeof(*x);
    test_fill(x, n, 3, -1, 1);
    for (int64_t i = 0; p.dtype == TT_I32 && i < n; i++)
        ((int32_t *)(void *)x)[i] = (int32_t)(i * 7 % 11);
    return x;
}

float *onnx_case_run(tt_model *m, const void *x, int64_t rows, int64_t *n)
{
    tt_port p;
    CHECK_OK(tt_model_output(m, 0, &p));
    *n = rows * tt_shape_count(&p.shape);
    float *y = test_zeros((size_t)*n, sizeof(*y));
    CHECK_OK(tt_predict(m, x, rows, y));
    return y;
}
