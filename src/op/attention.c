/*
 * attention.c - scaled dot-product attention; the scores are never held as a whole. Kernels:
 * attention_cpu.c.
 *
 * B batch, T queries, S keys, H heads of q, G heads of k and v, D width of a head; head h of q
 * reads head h / (H / G) of k and v. Per batch row and head, query i, with keys in blocks of 64:
 *
 *   q' = q scale;  s_j = chain over D of k_j q'          a masked key takes no part
 *   per block, ascending: m' = max(m, s of the block);  w = exp(m - m');  p_j = exp(s_j - m')
 *     l = fma(l, w, p summed over j ascending);  o = o w, then a chain over j of p_j v_j;  m = m'
 *   y = o / l;  lse = m + log l                          no key at all: y = 0, lse = 0
 *
 *   p_j = exp(s_j - lse);  dp_j = chain over D of v_j dy;  delta = sum of dy y (sixteen partials)
 *   ds_j = p_j (dp_j - delta);  dq = scale times the chain over j of ds_j k_j
 *   dk_j, dv_j = chains over the heads that read k_j, then i, of ds_j q' and p_j dy
 *
 * Causal: query i sees keys 0 to i, as in PyTorch and Keras, also where T and S differ. With a
 * window it sees those with |i - j| < window. A block or key that is masked adds exactly nothing,
 * so it does not matter whether it is skipped. ALiBi: s_j less slope(h) |i - j|, a rounded product.
 */
#include "op/attention.h"
#include "op/op.h"
#include <string.h>

extern const tt_op tti_op_attention, tti_op_attention_grad;

static const tt_option attention_attrs[] = {
    {"heads", TT_OPT_INT, NULL, "number of heads of q", offsetof(tti_attention_attr, heads), 1, 1e6,
     NULL},
    {"kv_heads", TT_OPT_INT, NULL, "number of heads of k and v",
     offsetof(tti_attention_attr, kv_heads), 1, 1e6, NULL},
    {"causal", TT_OPT_BOOL, "false", "causal mask: query i attends to keys 0 to i",
     offsetof(tti_attention_attr, causal), 0, 0, NULL},
    {"scale", TT_OPT_FLOAT, "0", "factor on the scores; 0: 1 / sqrt(d)",
     offsetof(tti_attention_attr, scale), 0, 0, NULL},
    {"packed", TT_OPT_BOOL, "false", "q, k and v are one input",
     offsetof(tti_attention_attr, packed), 0, 0, NULL},
    {"mask", TT_OPT_BOOL, "false", "the last input is a mask",
     offsetof(tti_attention_attr, has_mask), 0, 0, NULL},
    {"window", TT_OPT_INT, "0", "a query attends to keys less than this far from it; 0: to all",
     offsetof(tti_attention_attr, window), 0, 1e15, NULL},
    {"alibi", TT_OPT_BOOL, "false", "subtract a slope of the head times the distance from scores",
     offsetof(tti_attention_attr, alibi), 0, 0, NULL},
    TT_OPTION_END,
};

// ---- shape and split rules -------------------------------------------------------------------

static tt_status check_heads(tt_infer *q)
{
    const tti_attention_attr *a = q->attr;
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: %lld heads of q cannot share %lld heads of k",
                       q->name, (long long)a->heads, (long long)a->kv_heads);
    if (a->window < 0)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: window is %lld; it must be at least 1, or 0 for all",
                       q->name, (long long)a->window);
    return TT_OK;
}

static tt_status check_one(tt_infer *q, const char *what, const tt_tensor *t, int64_t heads)
{
    char text[TT_SHAPE_TEXT];
    if (!tti_is_float(t->dtype) || t->dtype != q->in[0]->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: %s is %s, q is %s", q->name, what,
                       tt_dtype_name(t->dtype), tt_dtype_name(q->in[0]->dtype));
    if (t->shape.rank != 3 || t->shape.dim[1] < 0 || t->shape.dim[2] < 1)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: %s is %s; it must be [batch, time, heads d]",
                       q->name, what, tt_shape_text(&t->shape, text));
    if (t->shape.dim[2] % heads != 0)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: %s is %s; its last axis does not divide into %lld",
                       q->name, what, tt_shape_text(&t->shape, text), (long long)heads);
    return TT_OK;
}

static tt_status check_mask(tt_infer *q, const tt_tensor *m, int64_t batch, int64_t tq, int64_t tk)
{
    tt_shape flat = TT_SHAPE(tq, tk), full = TT_SHAPE(batch, tq, tk);
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (m->dtype != TT_BOOL)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: the mask is %s, not bool", q->name,
                       tt_dtype_name(m->dtype));
    if (!tti_shape_equal(&m->shape, &flat) && !tti_shape_equal(&m->shape, &full))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: the mask is %s, not [%lld, %lld] or %s", q->name,
                       tt_shape_text(&m->shape, a), (long long)tq, (long long)tk,
                       tt_shape_text(&full, b));
    return TT_OK;
}

// Checks the forward's inputs; *y is the shape of its result, *n how many inputs there are.
static tt_status check_inputs(tt_infer *q, tt_shape *y, int *n)
{
    const tti_attention_attr *a = q->attr;
    char s[TT_SHAPE_TEXT], t[TT_SHAPE_TEXT];
    *n = (a->packed ? 1 : 3) + a->has_mask;
    if (q->n_in < *n)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in, *n);
    TT_TRY(check_heads(q));
    const tt_tensor *x = q->in[0], *k = q->in[a->packed ? 0 : 1];
    int64_t per_q = a->packed ? a->heads + 2 * a->kv_heads : a->heads;
    TT_TRY(check_one(q, "q", x, per_q));
    *y = x->shape;
    y->dim[2] = x->shape.dim[2] / per_q * a->heads;
    for (int i = 1; !a->packed && i < 3; i++) {
        const tt_tensor *v = q->in[i];
        TT_TRY(check_one(q, i == 1 ? "k" : "v", v, a->kv_heads));
        if (v->shape.dim[0] != x->shape.dim[0] || v->shape.dim[1] != k->shape.dim[1] ||
            v->shape.dim[2] / a->kv_heads != x->shape.dim[2] / a->heads)
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: q is %s with %lld heads but %s is %s with %lld",
                           q->name, tt_shape_text(&x->shape, s), (long long)a->heads,
                           i == 1 ? "k" : "v", tt_shape_text(&v->shape, t), (long long)a->kv_heads);
    }
    if (a->has_mask)
        TT_TRY(check_mask(q, q->in[*n - 1], x->shape.dim[0], x->shape.dim[1], k->shape.dim[1]));
    return TT_OK;
}

static tt_status infer_attention(tt_infer *q)
{
    const tti_attention_attr *a = q->attr;
    int n;
    TT_TRY(check_inputs(q, &q->shape[0], &n));
    if (q->n_in != n)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in, n);
    q->dtype[0] = q->in[0]->dtype;
    q->shape[1] = TT_SHAPE(q->shape[0].dim[0], a->heads, q->shape[0].dim[1]);
    q->dtype[1] = q->dtype[0] == TT_F64 ? TT_F64 : TT_F32;
    return TT_OK;
}

// The forward's inputs, y, lse, dy.
static tt_status infer_attention_grad(tt_infer *q)
{
    const tti_attention_attr *a = q->attr;
    char s[TT_SHAPE_TEXT], t[TT_SHAPE_TEXT];
    tt_shape y;
    int n;
    TT_TRY(check_inputs(q, &y, &n));
    if (q->n_in != n + 3)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: has %d inputs, not %d", q->name, q->n_in, n + 3);
    tt_shape lse = TT_SHAPE(y.dim[0], a->heads, y.dim[1]);
    for (int i = n; i < n + 3; i++) {
        const tt_shape *want = i == n + 1 ? &lse : &y;
        if (!tti_shape_equal(&q->in[i]->shape, want) || !tti_is_float(q->in[i]->dtype))
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: input %d is %s, not %s", q->name, i,
                           tt_shape_text(&q->in[i]->shape, s), tt_shape_text(want, t));
    }
    q->n_out = a->packed ? 1 : 3;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = q->in[i]->shape;
        q->dtype[i] = q->in[i]->dtype;
    }
    return TT_OK;
}

// Rows of the batch are free; an open axis can only be the first (check_one, check_mask).
static tt_status split_attention(const tt_split_query *q)
{
    bool rows = true; // of q, k, v, and of what else has rows
    for (int i = 0; i < q->node->n_in; i++)
        rows &= q->axis[i] == 0 || (i >= 3 && q->axis[i] < 0);
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = (tt_split){rows ? TT_SPLIT_AXIS : TT_SPLIT_MIXES, 0};
    return TT_OK;
}

// ---- work ------------------------------------------------------------------------------------

static double pairs(const tti_attention_attr *a, const tti_attention_size *s)
{
    double all = (double)(s->batch * s->heads) * (double)s->tq * (double)s->tk * (double)s->d;
    if (a->window > 0 && 2 * a->window < s->tk)
        all *= 2 * (double)a->window / (double)s->tk;
    return a->causal ? all / 2 : all;
}

static size_t real_bytes(const tt_arg *x)
{
    return x->dtype == TT_F64 ? sizeof(double) : sizeof(float);
}

static tt_status prep_attention(tt_prep *p)
{
    tti_attention_size s = tti_attention_sizes(p->attr, p->in);
    p->units[0] = s.batch * s.heads * s.q_blocks;
    p->grain[0] = 1;
    p->local_bytes = real_bytes(&p->in[0]) * (size_t)tti_attention_local(s.d, false);
    p->ns = 0.06 * pairs(p->attr, &s) + 500;
    return TT_OK;
}

static tt_status prep_attention_grad(tt_prep *p)
{
    tti_attention_size s = tti_attention_sizes(p->attr, p->in);
    tti_attention_tune tune = {.by_head =
                                   s.batch * s.kv_heads >= 2 * p->n_threads || p->n_threads == 1};
    memcpy(p->tune, &tune, sizeof(tune));
    p->n_phases = tune.by_head ? 1 : 2;
    p->units[0] = tune.by_head ? s.batch * s.kv_heads : s.batch * s.heads * s.q_blocks;
    p->units[1] = s.batch * s.kv_heads * s.k_blocks;
    p->grain[0] = p->grain[1] = 1;
    p->local_bytes = real_bytes(&p->in[0]) * (size_t)tti_attention_local(s.d, true);
    p->ns = 0.15 * pairs(p->attr, &s) + 500;
    return TT_OK;
}

// ---- gradient, records, builder --------------------------------------------------------------

static void attention_backward(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_attention_attr *a = n->attr;
    tt_tensor *in[7];
    if (dy[0] == NULL)
        return;
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i];
    in[n->n_in] = n->outs[0];
    in[n->n_in + 1] = n->outs[1];
    in[n->n_in + 2] = dy[0];
    tt_node *made = tt_node_new(g, &tti_op_attention_grad, n->n_in + 3, in, a, NULL);
    for (int i = 0; made != NULL && i < made->n_out; i++)
        dx[i] = made->outs[i];
}

const tt_op tti_op_attention = {
    .name = "attention",
    .help =
        "attention per head, softmax(q k^T scale) v; also outputs the log-sum-exp of each query",
    .inputs = 1,
    .max_inputs = 4,
    .outputs = 2,
    .flags = TT_OP_ROW_FREE,
    TTI_ATTRS(attention_attrs, tti_attention_attr),
    .infer = infer_attention,
    .split = split_attention,
    .grad = attention_backward,
    .kernel = {[TT_CPU] = TTI_CPU(attention, prep_attention)},
};

const tt_op tti_op_attention_grad = {
    .name = "attention_grad",
    .help = "gradients with respect to q, k and v",
    .inputs = 4,
    .max_inputs = 7,
    .outputs = 3,
    .flags = TT_OP_ROW_FREE,
    TTI_ATTRS(attention_attrs, tti_attention_attr),
    .infer = infer_attention_grad,
    .split = split_attention,
    .kernel = {[TT_CPU] = TTI_CPU(attention_grad, prep_attention_grad)},
};

tt_tensor *tt_attention_with(tt_graph *g, tt_tensor *q, tt_tensor *k, tt_tensor *v,
                             const tt_attention_opts *opts)
{
    if (!tti_has_graph(g, q, "attention"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "attention", tt_attention_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_attention_attr a = {.heads = opts->heads,
                            .kv_heads = opts->kv_heads == 0 ? opts->heads : opts->kv_heads,
                            .causal = opts->causal,
                            .scale = opts->scale,
                            .packed = k == NULL && v == NULL,
                            .has_mask = opts->mask != NULL,
                            .window = opts->window,
                            .alibi = opts->alibi};
    tt_tensor *in[4] = {q};
    int n = 1;
    if (!a.packed) {
        in[n++] = k;
        in[n++] = v;
    }
    if (a.has_mask)
        in[n++] = opts->mask;
    return tt_node_out(g, &tti_op_attention, n, in, &a);
}
