/*
 * layers.c - all kinds of layers by name (layers.def), and what several of them share.
 */
#include "model/attend.h"
#include "op/init.h"
#include <stdio.h>
#include <string.h>

#define X(name) extern const tti_layer_def tti_kind_##name;
#include "model/layers.def"
#undef X

static const tti_layer_def *const kinds[] = {
#define X(name) &tti_kind_##name,
#include "model/layers.def"
#undef X
};

const tti_layer_def *tti_layer_at(int i)
{
    return i >= 0 && i < TTI_COUNT(kinds) ? kinds[i] : NULL;
}

const tti_layer_def *tti_layer_find(const char *name)
{
    for (int i = 0; name != NULL && i < TTI_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const tti_layer_def *tti_layer_find_built(const char *kind)
{
    static const tti_layer_def *const inner[] = {
        &tti_kind_tied_dense, &tti_kind_llama_block,      &tti_kind_bert_block,
        &tti_kind_bert_types, &tti_kind_vit_block,        &tti_kind_vit_tokens,
        &tti_kind_add_bias,   &tti_kind_column_embedding,
    };
    const tti_layer_def *def = tti_layer_find(kind);
    for (int i = 0; i < TTI_COUNT(inner); i++)
        if (strcmp(kind, inner[i]->name) == 0)
            return inner[i];
    return def != NULL && def->expand == NULL ? def : NULL;
}

const char *const tti_act_words[] = {
    "linear", "relu", "gelu",         "gelu_erf",   "sigmoid",  "tanh",
    "silu",   "elu",  "leaky_relu",   "softplus",   "softmax",  "selu",
    "relu6",  "mish", "hard_sigmoid", "hard_swish", "softsign", NULL};
const char *const tti_padding_words[] = {"valid", "same", NULL};
const char *const tti_init_words[] = {"zeros",         "constant",         "uniform",
                                      "normal",        "truncated_normal", "glorot_uniform",
                                      "glorot_normal", "he_uniform",       "he_normal",
                                      "lecun_uniform", "lecun_normal",     NULL};

tt_init tti_init_with_fans(tt_init init, double in, double out)
{
    if (init.kind < TT_INIT_GLOROT_UNIFORM || init.a != 0 || init.b != 0)
        return init;
    tti_draw d = tti_draw_fans(&init, in, out);
    return (tt_init){d.kind, (double)d.a, (double)d.b};
}

tt_tensor *tti_weight_for(tt_build *b, tt_tensor *x, const char *name, tt_shape shape, tt_init init)
{
    return tt_cast(b->graph, tti_layer_weight(b, name, shape, init), x->dtype);
}

void tti_weight_names(const char *name, char weight[TTI_NAME_MAX], char bias[TTI_NAME_MAX])
{
    const char *point = name[0] == 0 ? "" : ".";
    snprintf(weight, TTI_NAME_MAX, "%s%sweight", name, point);
    snprintf(bias, TTI_NAME_MAX, "%s%sbias", name, point);
}

tt_act tti_act_inside(tt_act act)
{
    return act == TT_SOFTMAX ? TT_LINEAR : act;
}

tt_tensor *tti_act_after(tt_graph *g, tt_tensor *y, tt_act act)
{
    return act == TT_SOFTMAX ? tt_softmax(g, y) : y;
}

bool tti_rate_check(tt_build *b, const char *what, double rate)
{
    if (rate >= 0 && rate < 1)
        return true;
    (void)TT_FAIL(b->model->ctx, TT_EINVAL, "%s is %g; it must be at least 0 and below 1", what,
                  rate);
    return false;
}

tt_tensor *tti_dropout_in(tt_build *b, tt_tensor *x, double rate)
{
    return b->training ? tt_dropout(b->graph, x, rate) : x;
}

bool tti_x_check(tt_build *b, const tt_tensor *x, int rank, const char *wanted)
{
    tt_ctx *ctx = b->model->ctx;
    char text[TT_SHAPE_TEXT];
    bool is_float = x->dtype <= TT_F16;
    if (x->shape.rank < rank || x->shape.dim[x->shape.rank - 1] < 1)
        (void)TT_FAIL(ctx, TT_ESHAPE, "x is %s; it must be %s", tt_shape_text(&x->shape, text),
                      wanted);
    else if (!is_float)
        (void)TT_FAIL(ctx, TT_EDTYPE, "x is %s %s; it must be a float", tt_dtype_name(x->dtype),
                      tt_shape_text(&x->shape, text));
    else
        return true;
    return false;
}
