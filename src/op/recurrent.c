/*
 * recurrent.c - rnn, gru and lstm over all steps of a sequence, one node each way. Kernels:
 * recurrent_cpu.c, recurrent.cu.
 *
 *   q    = h w + bias       h the output of the step before, zeros at first; one chain over k
 *   rnn    y = tanh(z + q)
 *   gru    r, u = sigmoid(z + q);  n = tanh(fma(r, q_n, z_n));  y = fma(u, h - n, n)
 *   lstm   i, f, o = sigmoid(z + q), g = tanh(z + q);  c = fma(f, c, i g);  y = o tanh(c)
 *
 * The gradient walks the steps the other way and gives dz, what z gets, and dq, what q gets (of
 * gru; else it is dz); the gradients of w and bias are a product and a sum of those over all rows
 * and steps, as lane sums. A row of the batch depends on that row only.
 */
#include "op/recurrent.h"
#include "op/op.h"
#include "op/shape.h"
#include <string.h>

extern const tt_op tti_op_recurrent, tti_op_recurrent_grad;

static const char *const kind_words[] = {"rnn", "gru", "lstm", NULL};
static const tt_option recurrent_attrs[] = {
    {"kind", TT_OPT_ENUM, NULL, "the recurrence", offsetof(tti_recurrent_attr, kind), 0, 0,
     kind_words},
    {"reverse", TT_OPT_BOOL, "false", "from the last step to the first",
     offsetof(tti_recurrent_attr, reverse), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_status check(tt_infer *q, const tt_tensor *z, const tt_tensor *w)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    const tti_recurrent_attr *t = q->attr;
    if (t->kind < TT_RNN || t->kind > TT_LSTM)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: there is no kind %d", q->name, t->kind);
    int64_t gates = tti_recurrent_gates(t->kind);
    if (!tti_is_float(z->dtype) || w->dtype != z->dtype)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: z is %s and w is %s; both must be one float type",
                       q->name, tt_dtype_name(z->dtype), tt_dtype_name(w->dtype));
    if (z->shape.rank != 3 || z->shape.dim[1] < 1 || w->shape.rank != 2 || w->shape.dim[0] < 1 ||
        w->shape.dim[1] != gates * w->shape.dim[0] || z->shape.dim[2] != w->shape.dim[1])
        return TT_FAIL(q->ctx, TT_ESHAPE,
                       "%s: z is %s and w is %s; for %s they must be [batch, time, %lld h] and [h, "
                       "%lld h]",
                       q->name, tt_shape_text(&z->shape, a), tt_shape_text(&w->shape, b),
                       kind_words[t->kind], (long long)gates, (long long)gates);
    return TT_OK;
}

static tt_status infer(tt_infer *q)
{
    const tt_tensor *z = q->in[0], *w = q->in[1];
    char text[TT_SHAPE_TEXT];
    TT_TRY(check(q, z, w));
    int64_t h = w->shape.dim[0],
            kept = tti_recurrent_kept(((const tti_recurrent_attr *)q->attr)->kind);
    if (q->n_in > 2 && (q->in[2]->shape.rank != 1 || q->in[2]->shape.dim[0] != w->shape.dim[1] ||
                        q->in[2]->dtype != z->dtype))
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: the bias is %s %s, not %s [%lld]", q->name,
                       tt_dtype_name(q->in[2]->dtype), tt_shape_text(&q->in[2]->shape, text),
                       tt_dtype_name(z->dtype), (long long)w->shape.dim[1]);
    q->n_out = kept > 0 ? 2 : 1;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = TT_SHAPE(z->shape.dim[0], z->shape.dim[1], i == 0 ? h : kept * h);
        q->dtype[i] = z->dtype;
    }
    return TT_OK;
}

// Inputs: dy, y, w, what was kept. Outputs: dz, dq of gru.
static tt_status infer_grad(tt_infer *q)
{
    const tti_recurrent_attr *t = q->attr;
    const tt_tensor *dy = q->in[0], *y = q->in[1], *w = q->in[2];
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    int64_t kept = tti_recurrent_kept(t->kind);
    bool fits = y->shape.rank == 3 && w->shape.rank == 2 &&
                tti_shape_equal(&dy->shape, &y->shape) && q->n_in == (kept > 0 ? 4 : 3) &&
                y->shape.dim[2] == w->shape.dim[0] &&
                w->shape.dim[1] == w->shape.dim[0] * tti_recurrent_gates(t->kind);
    if (fits && kept > 0)
        fits = q->in[3]->shape.rank == 3 && q->in[3]->shape.dim[2] == kept * y->shape.dim[2] &&
               q->in[3]->shape.dim[1] == y->shape.dim[1];
    if (!fits)
        return TT_FAIL(q->ctx, TT_ESHAPE, "%s: dy is %s and y is %s, with %d inputs", q->name,
                       tt_shape_text(&dy->shape, a), tt_shape_text(&y->shape, b), q->n_in);
    for (int i = 0; i < q->n_in; i++)
        if (q->in[i]->dtype != dy->dtype || !tti_is_float(dy->dtype))
            return TT_FAIL(q->ctx, TT_EDTYPE, "%s: dy is %s but input %d is %s", q->name,
                           tt_dtype_name(dy->dtype), i, tt_dtype_name(q->in[i]->dtype));
    q->n_out = t->kind == TT_GRU ? 2 : 1;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = TT_SHAPE(y->shape.dim[0], y->shape.dim[1], w->shape.dim[1]);
        q->dtype[i] = dy->dtype;
    }
    return TT_OK;
}

// The state before each step: y one step later, zeros first.
static tt_tensor *before(tt_graph *g, tt_tensor *y, bool reverse)
{
    int64_t t = y->shape.dim[1];
    if (t == 1)
        return NULL;
    tt_tensor *cut = tt_slice(g, y, 1, reverse ? 1 : 0, reverse ? t : t - 1);
    return tt_pad(g, cut, 1, reverse ? 0 : 1, reverse ? 1 : 0);
}

static tt_tensor *flat(tt_graph *g, tt_tensor *x)
{
    if (x == NULL)
        return NULL;
    const int64_t *d = x->shape.dim;
    return tt_reshape(g, x, TT_SHAPE(d[0] * d[1], d[2]));
}

static void grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_recurrent_attr *t = n->attr;
    if (dy[0] == NULL)
        return;
    tt_tensor *in[] = {dy[0], n->outs[0], n->in[1], n->n_out > 1 ? n->outs[1] : NULL};
    tt_node *d = tt_node_new(g, &tti_op_recurrent_grad, n->n_out > 1 ? 4 : 3, in, t, NULL);
    if (d == NULL)
        return;
    tt_tensor *dq = d->outs[d->n_out - 1], *h = before(g, n->outs[0], t->reverse);
    dx[0] = d->outs[0];
    dx[1] = h == NULL ? tti_zeros_like(g, n->in[1])
                      : tt_matmul(g, flat(g, h), flat(g, dq), .transpose_a = true);
    if (n->n_in > 2)
        dx[2] = tt_sum(g, dq, .axes = TT_AXES(0, 1));
}

// Phase 0 packs w into panels of 32 columns, phase 1 does rows of the batch.
static tt_status prepare_for(tt_prep *p, int64_t columns, int64_t depth, const tt_shape *y)
{
    tti_recurrent_dims d = tti_recurrent_dims_of(((const tti_recurrent_attr *)p->attr)->kind, y);
    int64_t real = p->isa == TT_ISA_F64 ? 8 : 4, panels = (columns + 31) / 32;
    p->n_phases = 2;
    p->units[0] = d.b > 0 ? panels : 0;
    p->units[1] = d.b;
    p->grain[1] = TTI_MAX(1, TTI_MIN(14, (d.b + p->n_threads - 1) / TTI_MAX(p->n_threads, 1)));
    p->scratch_bytes = (size_t)(panels * 32 * depth * real);
    p->local_bytes = (size_t)(14 * (d.gates + 3) * d.h * real + 4096);
    p->ns = (double)(d.b * d.t) * (double)(d.gates * d.h) * ((double)d.h / 16 + 2);
    return TT_OK;
}

static tt_status prepare(tt_prep *p)
{
    const tt_shape *w = &p->in[1].shape;
    return prepare_for(p, w->dim[1], w->dim[0], &p->out_args[0].shape);
}

static tt_status prepare_grad(tt_prep *p)
{
    const tt_shape *w = &p->in[2].shape;
    return prepare_for(p, w->dim[0], w->dim[1], &p->in[1].shape);
}

const tt_op tti_op_recurrent = {
    .name = "recurrent",
    .help = "rnn, gru or lstm over all steps of z [batch, time, gates h] with w [h, gates h]",
    .inputs = 2,
    .max_inputs = 3,
    .outputs = 2,
    .flags = TT_OP_ROW_FREE,
    .attrs = recurrent_attrs,
    .attr_size = sizeof(tti_recurrent_attr),
    .infer = infer,
    .split = tti_split_first,
    .grad = grad,
    .kernel = {[TT_CPU] = TTI_CPU(tti_recurrent, prepare)},
};

const tt_op tti_op_recurrent_grad = {
    .name = "recurrent_grad",
    .help = "gradient of recurrent with respect to z, from dy, y, w and the gates",
    .inputs = 3,
    .max_inputs = 4,
    .outputs = 2,
    .flags = TT_OP_ROW_FREE,
    .attrs = recurrent_attrs,
    .attr_size = sizeof(tti_recurrent_attr),
    .infer = infer_grad,
    .split = tti_split_first,
    .kernel = {[TT_CPU] = TTI_CPU(tti_recurrent_grad, prepare_grad)},
};

tt_tensor *tt_recurrent_with(tt_graph *g, tt_tensor *z, tt_tensor *w, const tt_recurrent_opts *opts)
{
    tt_recurrent_opts o = {0};
    if (!tti_given(g, "recurrent", z) || !tti_given(g, "recurrent", w))
        return NULL;
    if (opts != NULL && TTI_OPTS_COPY(tt_graph_get_ctx(g), "recurrent", opts, &o) != TT_OK)
        return NULL;
    tti_recurrent_attr a = {(int)o.kind, o.reverse};
    return tt_node_out(g, &tti_op_recurrent, o.bias != NULL ? 3 : 2, (tt_tensor *[]){z, w, o.bias},
                       &a);
}
