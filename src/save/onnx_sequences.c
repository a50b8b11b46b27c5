/*
 * onnx_sequences.c - attention and recurrences as ONNX nodes.
 *
 * Attention is written out: scores, mask, softmax, product. A recurrence takes z, the product of
 * its inputs with their weights; ONNX's LSTM, GRU and RNN make that product themselves, so the node
 * before goes into them where it is one. Where it is not, their weights are an identity.
 */
#include "base/ctx.h"
#include "op/attention.h"
#include "op/gemm.h"
#include "op/recurrent.h"
#include "save/onnx.h"
#include <math.h>
#include <string.h>

// ---- attention -------------------------------------------------------------------------------

// [batch, time, heads d] -> [batch, heads, time, d], or with the last two the other way.
static const char *heads_of(tti_onnx *o, const char *x, int64_t time, int64_t heads, int64_t d,
                            int64_t repeat, bool keys)
{
    static const int64_t plain[4] = {0, 2, 1, 3}, turned[4] = {0, 2, 3, 1};
    if (repeat > 1) { // each head of k and v serves several of q
        tt_shape five = TT_SHAPE(-1, time, heads, 1, d),
                 four = TT_SHAPE(-1, time, heads * repeat, d);
        int64_t times[5] = {1, 1, 1, repeat, 1};
        x = tti_onnx_2(o, "Tile", tti_onnx_reshape(o, x, &five), tti_onnx_ints(o, times, 5));
        return tti_onnx_transpose(o, tti_onnx_reshape(o, x, &four), keys ? turned : plain, 4);
    }
    tt_shape four = TT_SHAPE(-1, time, heads, d);
    return tti_onnx_transpose(o, tti_onnx_reshape(o, x, &four), keys ? turned : plain, 4);
}

// Which keys a query sees by their places: [queries, keys].
static const char *place_mask(tti_onnx *o, const tti_attention_attr *a, int64_t tq, int64_t tk)
{
    char *see = tti_calloc(o->ctx, (size_t)tq, (size_t)tk + 1);
    if (see == NULL) {
        o->failed = true;
        return "";
    }
    for (int64_t i = 0; i < tq; i++)
        for (int64_t k = 0; k < tk; k++)
            see[i * tk + k] = (!a->causal || k <= i) &&
                              (a->window == 0 || (k > i - a->window && k < i + a->window));
    const char *name = tti_onnx_const(o, TT_BOOL, TT_SHAPE(tq, tk), see);
    tti_free(o->ctx, see);
    return name;
}

// ALiBi's part of the scores: [heads, queries, keys].
static const char *distance_bias(tti_onnx *o, int64_t heads, int64_t tq, int64_t tk, tt_dtype type)
{
    float *bias = tti_calloc(o->ctx, (size_t)(heads * tq), (size_t)tk * sizeof(*bias) + 1);
    if (bias == NULL) {
        o->failed = true;
        return "";
    }
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < tq; i++)
            for (int64_t k = 0; k < tk; k++)
                bias[(h * tq + i) * tk + k] =
                    (float)(-tti_attention_slope(heads, h) * (double)(i < k ? k - i : i - k));
    const char *name = tti_onnx_const(o, TT_F32, TT_SHAPE(heads, tq, tk), bias);
    tti_free(o->ctx, bias);
    return type == TT_F32 ? name : tti_onnx_cast(o, name, type);
}

// The mask of a call: by places, given, both; NULL: none.
static const char *mask_of(tti_onnx *o, const tt_node *n, int64_t tq, int64_t tk)
{
    const tti_attention_attr *a = n->attr;
    const char *mask = a->causal || a->window > 0 ? place_mask(o, a, tq, tk) : NULL;
    if (!a->has_mask)
        return mask;
    const tt_tensor *t = n->in[n->n_in - 1];
    const char *given = tti_onnx_value(o, t);
    int64_t heads = 1;
    if (t->shape.rank == 3)
        given = tti_onnx_2(o, "Unsqueeze", given, tti_onnx_ints(o, &heads, 1));
    return mask == NULL ? given : tti_onnx_2(o, "And", given, mask);
}

static tt_status write_attention(tti_onnx *o, const tt_node *n)
{
    const tti_attention_attr *a = n->attr;
    const tt_shape *s = &n->in[0]->shape;
    tt_dtype type = n->out->dtype;
    int64_t h = a->heads, g = a->kv_heads, tq = s->dim[1],
            tk = a->packed ? tq : n->in[1]->shape.dim[1],
            d = s->dim[2] / (a->packed ? h + 2 * g : h);
    const char *x[3];
    x[0] = tti_onnx_value(o, n->in[0]);
    if (a->packed) {
        int64_t sizes[3] = {h * d, g * d, g * d};
        const char *all = tti_onnx_ints(o, sizes, 3);
        tti_onnx_begin(o, "Split");
        tti_onnx_in(o, x[0]);
        tti_onnx_in(o, all);
        tti_onnx_attr_int(o, "axis", 2);
        tti_onnx_end_many(o, x, 3);
    } else {
        x[1] = tti_onnx_value(o, n->in[1]);
        x[2] = tti_onnx_value(o, n->in[2]);
    }
    double scale = a->scale != 0 ? a->scale : 1 / sqrt((double)d);
    const char *q = heads_of(o, x[0], tq, h, d, 1, false);
    const char *k = heads_of(o, x[1], tk, g, d, h / g, true);
    const char *v = heads_of(o, x[2], tk, g, d, h / g, false);
    q = tti_onnx_2(o, "Mul", q, tti_onnx_scalar(o, type, scale));
    const char *score = tti_onnx_2(o, "MatMul", q, k), *mask = mask_of(o, n, tq, tk);
    if (a->alibi)
        score = tti_onnx_2(o, "Add", score, distance_bias(o, h, tq, tk, type));
    if (mask != NULL)
        score = tti_onnx_3(o, "Where", mask, score, tti_onnx_scalar(o, type, -1e30));
    tti_onnx_begin(o, "Softmax");
    tti_onnx_in(o, score);
    tti_onnx_attr_int(o, "axis", -1);
    const char *p = tti_onnx_end(o);
    if (a->has_mask || a->window > 0) // a query that sees no key gives zeros
        p = tti_onnx_3(o, "Where", mask, p, tti_onnx_scalar(o, type, 0));
    static const int64_t back[4] = {0, 2, 1, 3};
    const char *y = tti_onnx_transpose(o, tti_onnx_2(o, "MatMul", p, v), back, 4);
    tti_onnx_set(o, n->out, tti_onnx_reshape(o, y, &n->out->shape));
    return TT_OK;
}

// ---- recurrences -----------------------------------------------------------------------------

const tt_node *tti_onnx_recurrent_product(const tti_onnx *o, const tt_node *n)
{
    if (strcmp(n->op->name, "recurrent") != 0)
        return NULL;
    const tt_node *p = n->in[0]->node;
    if (strcmp(p->op->name, "matmul") != 0)
        return NULL;
    const tti_matmul_attr *a = p->attr;
    bool fits = !a->transpose_a && !a->transpose_b && a->act == TT_LINEAR && !a->wide &&
                p->in[0]->shape.rank == 3 && p->in[1]->shape.rank == 2 &&
                tti_onnx_data(o, p->in[1]) != NULL &&
                (p->n_in < 3 || tti_onnx_data(o, p->in[2]) != NULL);
    return fits ? p : NULL;
}

// Our gates: rnn; gru r, u, n; lstm i, f, g, o. ONNX's: gru u, r, n; lstm i, o, f, g.
static const int gate_order[3][4] = {{0}, {1, 0, 2}, {0, 3, 1, 2}};

// [rows, gates h] -> [1, gates h, rows], gates in ONNX's order.
static const char *gate_matrix(tti_onnx *o, const tt_node *n, const char *what, const tt_tensor *w,
                               int64_t rows)
{
    const tti_recurrent_attr *a = n->attr;
    int64_t gates = tti_recurrent_gates(a->kind), wide = n->in[1]->shape.dim[1], h = wide / gates;
    size_t size = tt_dtype_bytes(n->out->dtype);
    const char *from = w != NULL ? tti_onnx_data(o, w) : NULL;
    char *to = tti_calloc(o->ctx, (size_t)(wide * rows) + 1, size);
    for (int64_t i = 0; to != NULL && i < wide; i++) {
        int64_t source = gate_order[a->kind][i / h] * h + i % h;
        for (int64_t k = 0; k < rows; k++) {
            if (from != NULL)
                memcpy(to + (size_t)(i * rows + k) * size,
                       from + (size_t)(k * wide + source) * size, size);
            else
                tti_put_number(n->out->dtype, to, i * rows + k, k == source);
        }
    }
    return tti_onnx_store(o, tti_onnx_text(o, "%s:%s", n->name, what), n->out->dtype,
                          TT_SHAPE(1, wide, rows), to);
}

// Both biases, one behind the other: [1, 2 gates h].
static const char *gate_bias(tti_onnx *o, const tt_node *n, const tt_tensor *bi,
                             const tt_tensor *bh)
{
    const tti_recurrent_attr *a = n->attr;
    int64_t gates = tti_recurrent_gates(a->kind), wide = n->in[1]->shape.dim[1], h = wide / gates;
    size_t size = tt_dtype_bytes(n->out->dtype);
    char *to = tti_calloc(o->ctx, (size_t)(2 * wide) + 1, size);
    for (int side = 0; to != NULL && side < 2; side++) {
        const tt_tensor *b = side == 0 ? bi : bh;
        const char *from = b != NULL ? tti_onnx_data(o, b) : NULL;
        for (int64_t i = 0; from != NULL && i < wide; i++)
            memcpy(to + (size_t)(side * wide + i) * size,
                   from + (size_t)(gate_order[a->kind][i / h] * h + i % h) * size, size);
    }
    return tti_onnx_store(o, tti_onnx_text(o, "%s:bias", n->name), n->out->dtype,
                          TT_SHAPE(1, 2 * wide), to);
}

static tt_status write_recurrent(tti_onnx *o, const tt_node *n)
{
    const tti_recurrent_attr *a = n->attr;
    const tt_node *p = tti_onnx_recurrent_product(o, n);
    const tt_tensor *x = p != NULL ? p->in[0] : n->in[0], *bh = n->n_in > 2 ? n->in[2] : NULL;
    static const char *const ops[] = {[TT_RNN] = "RNN", [TT_GRU] = "GRU", [TT_LSTM] = "LSTM"};
    static const int64_t swap[3] = {1, 0, 2}, one = 1;
    int64_t h = n->in[1]->shape.dim[0];
    if (tti_onnx_data(o, n->in[1]) == NULL || (bh != NULL && tti_onnx_data(o, bh) == NULL))
        return TT_FAIL(o->ctx, TT_EUNSUPPORTED,
                       "onnx: the weights of %s (%s) are computed; ONNX takes stored ones",
                       ops[a->kind], n->name);
    const char *steps = tti_onnx_transpose(o, tti_onnx_value(o, x), swap, 3);
    const char *w = gate_matrix(o, n, "input", p != NULL ? p->in[1] : NULL, x->shape.dim[2]);
    const char *r = gate_matrix(o, n, "state", n->in[1], h);
    const char *b = gate_bias(o, n, p != NULL && p->n_in > 2 ? p->in[2] : NULL, bh);
    tti_onnx_begin(o, ops[a->kind]);
    tti_onnx_in(o, steps);
    tti_onnx_in(o, w);
    tti_onnx_in(o, r);
    tti_onnx_in(o, b);
    tti_onnx_attr_int(o, "hidden_size", h);
    tti_onnx_attr_text(o, "direction", a->reverse ? "reverse" : "forward");
    if (a->kind == TT_GRU)
        tti_onnx_attr_int(o, "linear_before_reset", 1);
    const char *y = tti_onnx_end(o); // [time, 1, batch, h]
    y = tti_onnx_2(o, "Squeeze", y, tti_onnx_ints(o, &one, 1));
    tti_onnx_set(o, n->out, tti_onnx_transpose(o, y, swap, 3));
    return TT_OK;
}

const tti_onnx_op tti_onnx_sequences[] = {
    {"attention", write_attention},
    {"recurrent", write_recurrent},
    {NULL, NULL},
};
