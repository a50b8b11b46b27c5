/*
 * layer_attention.c - multi_head_attention: separate queries and keys, masks, grouped heads, rotary
 * positions, ALiBi, sliding window; and what whole models take of it.
 *
 * Rotary: of each head, numbers d and d + D / 2 of position t turn by the angle t theta^(-2 d / D),
 * as in LLaMA's files.
 */
#include "base/ctx.h"
#include "model/attend.h"
#include <tutti/models.h>

#define OPTS tt_layer_multi_head_attention_opts
static const tt_option options[] = {
    {"heads", TT_OPT_INT32, NULL, "number of attention heads", offsetof(OPTS, heads), 1, 65536,
     NULL},
    {"kv_heads", TT_OPT_INT32, "0",
     "number of heads of keys and values, which must divide heads; 1: multi-query attention; 0: "
     "same as heads",
     offsetof(OPTS, kv_heads), 0, 65536, NULL},
    {"size", TT_OPT_INT32, "0", "width of a head; 0: channels / heads", offsetof(OPTS, size), 0,
     TTI_MAX_WIDTH, NULL},
    {"units", TT_OPT_INT32, "0", "width of the output; 0: that of the queries",
     offsetof(OPTS, units), 0, TTI_MAX_WIDTH, NULL},
    {"causal", TT_OPT_BOOL, "false",
     "causal mask: a position attends only to itself and to earlier positions",
     offsetof(OPTS, causal), 0, 0, NULL},
    {"window", TT_OPT_INT32, "0", "attend only to positions less than this far away; 0: to all",
     offsetof(OPTS, window), 0, TTI_MAX_WIDTH, NULL},
    {"alibi", TT_OPT_BOOL, "false", "ALiBi: scores fall with the distance, by a slope of each head",
     offsetof(OPTS, alibi), 0, 0, NULL},
    {"rotary", TT_OPT_BOOL, "false", "rotate queries and keys by their position",
     offsetof(OPTS, rotary), 0, 0, NULL},
    {"theta", TT_OPT_FLOAT, "10000", "base of the rotary frequencies", offsetof(OPTS, theta), 1,
     1e12, NULL},
    TTI_NO_BIAS_ROW(OPTS),
    TTI_RATE_ROW(OPTS, dropout, "dropout rate of the output"),
    TTI_INIT_ROWS(OPTS, "glorot_uniform"),
    TT_OPTION_END,
};

// ---- products --------------------------------------------------------------------------------

tt_tensor *tti_linear_in(tt_build *b, tt_tensor *x, const tti_linear *l)
{
    char weight[TTI_NAME_MAX], bias[TTI_NAME_MAX];
    if (x == NULL)
        return NULL;
    tti_weight_names(l->name, weight, bias);
    tt_shape shape = TT_SHAPE(x->shape.dim[x->shape.rank - 1], l->units);
    tt_tensor *w = tti_weight_for(b, x, weight, shape, l->init), *add = NULL;
    if (w != NULL && !l->no_bias)
        add = tti_weight_for(b, x, bias, TT_SHAPE(l->units), (tt_init){0});
    if (w == NULL || (add == NULL && !l->no_bias))
        return NULL;
    tt_tensor *y = tt_matmul(b->graph, x, w, .bias = add, .act = tti_act_inside(l->act));
    return tti_act_after(b->graph, y, l->act);
}

// ---- rotary positions ------------------------------------------------------------------------

static double power(double x, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, x *= x)
        y *= n % 2 != 0 ? x : 1;
    return y;
}

// x^(1/n), x >= 1, by bisection: products only, so the same everywhere.
static double root(double x, int64_t n)
{
    double low = 1, high = x;
    for (int i = 0; i < 200; i++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (power(middle, n) > x)
            high = middle;
        else
            low = middle;
    }
    return low;
}

typedef struct turn {
    tt_tensor *cos, *sin; // [time, 1, D / 2]
} turn;

static bool turn_make(tt_build *b, tt_dtype type, int64_t time, int64_t d, double theta, turn *out)
{
    tt_graph *g = b->graph;
    int64_t half = d / 2;
    float *values = tti_calloc(b->model->ctx, (size_t)(time + half), sizeof(*values));
    if (values == NULL)
        return false;
    double r = root(theta, half);
    for (int64_t i = 0; i < time; i++)
        values[i] = (float)i;
    for (int64_t i = 0; i < half; i++)
        values[time + i] = (float)(1 / power(r, i));
    tt_tensor *at = tt_const(g, TT_F32, TT_SHAPE(time, 1, 1), values);
    tt_tensor *angle = tt_mul(g, at, tt_const(g, TT_F32, TT_SHAPE(1, 1, half), values + time));
    tti_free(b->model->ctx, values);
    out->cos = tt_cast(g, tt_cos(g, angle), type);
    out->sin = tt_cast(g, tt_sin(g, angle), type);
    return out->cos != NULL && out->sin != NULL;
}

// x [batch, time, heads D], each head turned.
static tt_tensor *rotate(tt_build *b, tt_tensor *x, int64_t d, const turn *t)
{
    tt_graph *g = b->graph;
    if (x == NULL)
        return NULL;
    int64_t time = x->shape.dim[1], wide = x->shape.dim[2];
    tt_tensor *four = tt_reshape(g, x, TT_SHAPE(0, time, wide / d, d)), *half[2];
    if (four == NULL || tt_split_at(g, four, 3, 2, half) != TT_OK)
        return NULL;
    tt_tensor *both[2] = {
        tt_sub(g, tt_mul(g, half[0], t->cos), tt_mul(g, half[1], t->sin)),
        tt_add(g, tt_mul(g, half[1], t->cos), tt_mul(g, half[0], t->sin)),
    };
    if (both[0] == NULL || both[1] == NULL)
        return NULL;
    return tt_reshape(g, tt_concat(g, both, 2, 3), TT_SHAPE(0, time, wide));
}

// ---- masks -----------------------------------------------------------------------------------

static bool is_integer(tt_dtype t)
{
    return t == TT_I32 || t == TT_I64;
}

static tt_tensor *bad_mask(tt_build *b, const tt_tensor *m, int64_t tq, int64_t tk)
{
    char text[TT_SHAPE_TEXT];
    (void)TT_FAIL(
        b->model->ctx, TT_ESHAPE,
        "the mask is %s %s; it must be lengths (i32 [batch]), keys [batch, %lld] or pairs "
        "[batch, %lld, %lld]",
        tt_dtype_name(m->dtype), tt_shape_text(&m->shape, text), (long long)tk, (long long)tq,
        (long long)tk);
    return NULL;
}

// [batch, 1, tk] or [batch, tq, tk], true where m has a number that is not 0.
static tt_tensor *as_bool(tt_graph *g, tt_tensor *m)
{
    float zero = 0;
    if (m == NULL || m->dtype == TT_BOOL)
        return m;
    return tt_not_equal(g, tt_cast(g, m, TT_F32), tt_const(g, TT_F32, TT_SHAPE(1), &zero));
}

// Keys before each record's length.
static tt_tensor *by_length(tt_build *b, tt_tensor *length, int64_t tk)
{
    tt_graph *g = b->graph;
    int32_t *at = tti_calloc(b->model->ctx, (size_t)tk, sizeof(*at));
    if (at == NULL)
        return NULL;
    for (int64_t i = 0; i < tk; i++)
        at[i] = (int32_t)i;
    tt_tensor *place = tt_const(g, TT_I32, TT_SHAPE(1, 1, tk), at);
    tti_free(b->model->ctx, at);
    length = tt_reshape(g, tt_cast(g, length, TT_I32), TT_SHAPE(0, 1, 1));
    return tt_less(g, place, length);
}

tt_tensor *tti_attend_mask(tt_build *b, tt_tensor *m, int64_t tq, int64_t tk)
{
    tt_graph *g = b->graph;
    const tt_shape *s = &m->shape;
    tt_tensor *keys = NULL;
    if (s->rank == 1 || (s->rank == 2 && s->dim[1] == 1 && tk != 1))
        keys = is_integer(m->dtype) ? by_length(b, m, tk) : bad_mask(b, m, tq, tk);
    else if (s->rank == 2 && s->dim[1] == tk)
        keys = as_bool(g, tt_reshape(g, m, TT_SHAPE(0, 1, tk)));
    else if (s->rank == 3 && s->dim[1] == tq && s->dim[2] == tk)
        return as_bool(g, m);
    else
        return bad_mask(b, m, tq, tk);
    if (keys == NULL)
        return NULL;
    uint8_t *all = tti_alloc(b->model->ctx, (size_t)(tq * tk));
    if (all == NULL)
        return NULL;
    for (int64_t i = 0; i < tq * tk; i++)
        all[i] = 1;
    tt_tensor *every = tt_const(g, TT_BOOL, TT_SHAPE(tq, tk), all);
    tti_free(b->model->ctx, all);
    return tt_logical_and(g, keys, every);
}

// ---- attention -------------------------------------------------------------------------------

static bool attend_check(tt_build *b, const tti_attend *a, const tt_tensor *x, int64_t d)
{
    tt_ctx *ctx = b->model->ctx;
    long long channels = (long long)x->shape.dim[2];
    if (a->size == 0 && channels % a->heads != 0)
        (void)TT_FAIL(ctx, TT_ESHAPE, "%lld channels do not divide into %d heads; set size",
                      channels, a->heads);
    else if (a->heads % a->kv_heads != 0)
        (void)TT_FAIL(ctx, TT_EINVAL, "%d heads cannot share %d kv_heads", a->heads, a->kv_heads);
    else if (a->rotary && d % 2 != 0)
        (void)TT_FAIL(ctx, TT_EINVAL, "heads are %lld wide; rotary needs an even width",
                      (long long)d);
    else
        return true;
    return false;
}

tt_tensor *tti_attend_in(tt_build *b, tt_tensor *x, tt_tensor *keys, tt_tensor *mask,
                         const tti_attend *a)
{
    if (x == NULL || keys == NULL)
        return NULL;
    int64_t d = a->size != 0 ? a->size : x->shape.dim[2] / a->heads;
    int64_t tq = x->shape.dim[1], tk = keys->shape.dim[1];
    if (!attend_check(b, a, x, d))
        return NULL;
    tti_linear l = {
        .name = a->names[0], .units = a->heads * d, .no_bias = a->no_bias, .init = a->init};
    tt_tensor *q = tti_linear_in(b, x, &l);
    l.units = a->kv_heads * d;
    l.name = a->names[1];
    tt_tensor *k = tti_linear_in(b, keys, &l);
    l.name = a->names[2];
    tt_tensor *v = tti_linear_in(b, keys, &l);
    if (q == NULL || k == NULL || v == NULL)
        return NULL;
    if (a->rotary) {
        turn t;
        if (!turn_make(b, q->dtype, tq > tk ? tq : tk, d, a->theta, &t))
            return NULL;
        turn at_q = t, at_k = t;
        if (tq < tk)
            at_q = (turn){tt_slice(b->graph, t.cos, 0, 0, tq), tt_slice(b->graph, t.sin, 0, 0, tq)};
        if (tk < tq)
            at_k = (turn){tt_slice(b->graph, t.cos, 0, 0, tk), tt_slice(b->graph, t.sin, 0, 0, tk)};
        q = rotate(b, q, d, &at_q);
        k = rotate(b, k, d, &at_k);
    }
    if (mask != NULL && (mask = tti_attend_mask(b, mask, tq, tk)) == NULL)
        return NULL;
    if (q == NULL || k == NULL)
        return NULL;
    tt_tensor *y =
        tt_attention(b->graph, q, k, v, .heads = a->heads, .kv_heads = a->kv_heads,
                     .causal = a->causal, .mask = mask, .window = a->window, .alibi = a->alibi);
    l = (tti_linear){.name = a->names[3],
                     .units = a->units != 0 ? a->units : x->shape.dim[2],
                     .no_bias = a->no_bias,
                     .init = a->last};
    return tti_linear_in(b, y, &l);
}

static tt_tensor *build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    const OPTS *o = opts;
    tt_tensor *keys = n_in > 1 ? in[1] : in[0];
    char text[TT_SHAPE_TEXT];
    if (!tti_layer_sequence_check(b, in[0]) || !tti_layer_sequence_check(b, keys) ||
        !tti_rate_check(b, "dropout", o->dropout))
        return NULL;
    if (keys->dtype != in[0]->dtype) {
        (void)TT_FAIL(b->model->ctx, TT_EDTYPE, "the queries are %s but the keys %s are %s",
                      tt_dtype_name(in[0]->dtype), tt_shape_text(&keys->shape, text),
                      tt_dtype_name(keys->dtype));
        return NULL;
    }
    tti_attend a = {.names = names,
                    .heads = o->heads,
                    .kv_heads = o->kv_heads == 0 ? o->heads : o->kv_heads,
                    .size = o->size,
                    .units = o->units,
                    .window = o->window,
                    .theta = o->theta,
                    .causal = o->causal,
                    .alibi = o->alibi,
                    .rotary = o->rotary,
                    .no_bias = o->no_bias,
                    .init = o->init,
                    .last = o->init};
    tt_tensor *y = tti_attend_in(b, in[0], keys, n_in > 2 ? in[2] : NULL, &a);
    return y == NULL ? NULL : tti_dropout_in(b, y, o->dropout);
}

const tti_layer_def tti_kind_multi_head_attention = {
    .name = "multi_head_attention",
    .help = "multi-head attention of x, of queries to keys, or to the keys that a mask allows",
    .options = options,
    .size = sizeof(OPTS),
    .common = offsetof(OPTS, name),
    .main = "heads",
    .min_in = 1,
    .max_in = 3,
    .build = build,
    .torch = TTI_TORCH_MATRIX,
};

tt_tensor *tt_layer_multi_head_attention_with(tt_model *m, const OPTS *opts)
{
    return tti_layer_call(m, &tti_kind_multi_head_attention, opts);
}
