/*
 * attention.cu - attention on GPUs: by cuDNN where it has a plan, else by the kernels of
 * attention.cuh. Both keep the same statistic of a query, the log of its sum of exp, so either can
 * work on what the other left.
 */
#include "op/gpu/attention.cuh"
#include "op/gpu/attention_dnn.cuh"
#include <math.h>

#define MOST_WORKSPACE ((int64_t)1 << 30) // of the gradient; larger batches go in parts

typedef struct tune {
    struct att_plan *plan, *last; // for all parts but the last, and for the last; NULL: our kernels
    int64_t part;                 // rows of the batch
    int64_t delta_bytes;
} tune;

static float scale_of(const tti_attention_attr *a, int64_t d)
{
    return a->scale != 0 ? (float)a->scale : 1.0f / sqrtf((float)d);
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

#if TTI_HAS_CUDNN

// A single query or key is for our kernels: cuDNN 9.26 crashes where all sizes are one.
static bool fits_dnn(const tti_attention_attr *a, const tt_arg *q, const tti_attention_size *s)
{
    return (q->dtype == TT_BF16 || q->dtype == TT_F16) && !a->has_mask && a->window == 0 &&
           !a->alibi && s->d % 8 == 0 && s->d <= 128 && s->batch > 0 && s->tq > 1 && s->tk > 1 &&
           tti_dnn_version(NULL) != 0;
}

// Rows of the batch that go through the gradient at once, when it has so many.
static int64_t part_of(const tti_attention_size *s, int64_t batch, bool backward)
{
    int64_t row = s->heads * up(s->tq, 64) * up(s->tk, 128) * 2;
    int64_t most = MOST_WORKSPACE / row > 0 ? MOST_WORKSPACE / row : 1;
    if (!backward || batch <= most)
        return batch;
    int64_t n = (batch + most - 1) / most;
    return (batch + n - 1) / n;
}

/*
 * The engine is chosen for the parts of the whole batch, and taken for whatever part of it is here:
 * so that it cannot differ between devices with more rows and with fewer.
 */
static void find_plans(tt_prep *p, const tti_attention_size *s, bool backward, tune *t)
{
    tti_cuda_device *d = (tti_cuda_device *)p->device;
    const tti_attention_attr *a = (const tti_attention_attr *)p->attr;
    att_key key;
    if (!fits_dnn(a, &p->in[0], s) || cudaSetDevice(d->physical) != cudaSuccess)
        return;
    memset(&key, 0, sizeof(key));
    memcpy(key.tag, "attention", 9);
    key.heads = s->heads;
    key.kv_heads = s->kv_heads;
    key.tq = s->tq;
    key.tk = s->tk;
    key.d = s->d;
    key.q_row = s->q_row;
    key.kv_row = s->kv_row;
    key.scale = scale_of(a, s->d);
    key.type = p->in[0].dtype;
    key.causal = a->causal;
    key.backward = backward;
    bool has_rows = p->in[0].open == 0 && p->lanes->global_rows > s->batch;
    int64_t whole = has_rows ? p->lanes->global_rows * p->in[0].per : s->batch;
    key.batch = part_of(s, whole, backward);
    att_plan *first = att_plan_find(d, &key, NULL);
    if (first == NULL)
        return;
    t->part = part_of(s, s->batch, backward);
    key.pinned = 1;
    const tti_dnn_choice *choice = tti_dnn_chosen(first->graph);
    t->plan = t->last = first;
    if (key.batch != t->part) {
        key.batch = t->part;
        t->plan = t->last = att_plan_find(d, &key, choice);
    }
    if (s->batch % t->part != 0) {
        key.batch = s->batch % t->part;
        t->last = att_plan_find(d, &key, choice);
    }
    if (t->last == NULL)
        t->plan = NULL;
}

static size_t workspace_of(const tune *t)
{
    size_t a = tti_dnn_workspace(t->plan->graph), b = tti_dnn_workspace(t->last->graph);
    return a > b ? a : b;
}

// Row i of x, whose rows are of shape [t, row].
static char *at_row(const void *x, int64_t i, int64_t t, int64_t row)
{
    return (char *)x + i * t * row * 2;
}

// Both passes; tensors that a pass has not are 0.
static tt_status run_dnn(const tt_launch *l, const att_args *a, const void *y)
{
    const tune *t = (const tune *)l->tune;
    char *delta = l->scratch, *workspace = l->scratch + t->delta_bytes;
    int64_t y_row = a->heads * a->d;
    for (int64_t i = 0; i < a->batch; i += t->part) {
        const att_plan *p = a->batch - i < t->part ? t->last : t->plan;
        int tensor[] = {p->q, p->k, p->v, p->y, p->lse, p->dy, p->delta, p->dq, p->dk, p->dv};
        void *data[] = {at_row(a->q, i, a->tq, a->q_row),
                        at_row(a->k, i, a->tk, a->kv_row),
                        at_row(a->v, i, a->tk, a->kv_row),
                        at_row(y, i, a->tq, y_row),
                        a->lse + i * a->heads * a->tq,
                        at_row(a->dy, i, a->tq, y_row),
                        delta,
                        at_row(a->dq, i, a->tq, a->q_row),
                        at_row(a->dk, i, a->tk, a->kv_row),
                        at_row(a->dv, i, a->tk, a->kv_row)};
        TT_TRY(tti_dnn_run(p->graph, l, p->dy == 0 ? 5 : 10, tensor, data, workspace));
    }
    return TT_OK;
}

/*
 * The first query of a causal attention sees one key, so its dq is 0; the library, whose dp and
 * delta are sums in two orders, gives their rounding.
 */
static __global__ void clear_first_kernel(att_args a)
{
    int64_t row = a.heads * a.d, n = a.batch * row, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        ((uint16_t *)a.dq)[i / row * a.tq * a.q_row + i % row] = 0;
}

static tt_status run_dnn_grad(const tt_launch *l, const att_args *a, const void *y)
{
    TT_TRY(run_dnn(l, a, y));
    if (!a->causal)
        return TT_OK;
    TTI_LAUNCH(l, tti_blocks(l, a->batch * a->heads * a->d, 256), 256, 0, clear_first_kernel, *a);
    return tti_cuda_launched(l);
}

#else

static void find_plans(tt_prep *, const tti_attention_size *, bool, tune *)
{
}

static size_t workspace_of(const tune *)
{
    return 0;
}

static tt_status run_dnn(const tt_launch *, const att_args *, const void *)
{
    return TT_OK;
}

static tt_status run_dnn_grad(const tt_launch *, const att_args *, const void *)
{
    return TT_OK;
}

#endif

static tt_status prepare(tt_prep *p, bool backward)
{
    const tti_attention_attr *a = (const tti_attention_attr *)p->attr;
    tti_attention_size s = tti_attention_sizes(a, p->in);
    tune t = {};
    find_plans(p, &s, backward, &t);
    if (backward)
        t.delta_bytes = up(s.batch * s.heads * s.tq * (int64_t)sizeof(float), 256);
    memcpy(p->tune, &t, sizeof(t));
    p->units[0] = 1;
    p->scratch_bytes = (size_t)t.delta_bytes + (t.plan != NULL ? workspace_of(&t) : 0);
    p->ns = 1e-5 * (double)(s.batch * s.heads) * (double)s.tq * (double)s.tk * (double)s.d;
    return TT_OK;
}

static tt_status attention_prepare(tt_prep *p)
{
    return prepare(p, false);
}

static tt_status attention_grad_prepare(tt_prep *p)
{
    return prepare(p, true);
}

static att_args args_of(const tt_launch *l)
{
    const tti_attention_attr *at = (const tti_attention_attr *)l->attr;
    tti_attention_size s = tti_attention_sizes(at, l->in);
    int64_t bytes = l->in[0].dtype == TT_F32 ? 4 : 2;
    att_args a = {};
    a.q = l->in[0].data;
    a.k = at->packed ? (const char *)a.q + s.heads * s.d * bytes : l->in[1].data;
    a.v = at->packed ? (const char *)a.k + s.kv_heads * s.d * bytes : l->in[2].data;
    if (at->has_mask) {
        const tt_arg *m = &l->in[at->packed ? 1 : 3];
        a.mask = (const uint8_t *)m->data;
        a.mask_batch = m->shape.rank == 3 ? s.tq * s.tk : 0;
    }
    a.batch = s.batch;
    a.heads = s.heads;
    a.kv_heads = s.kv_heads;
    a.tq = s.tq;
    a.tk = s.tk;
    a.d = s.d;
    a.q_row = s.q_row;
    a.kv_row = s.kv_row;
    a.q_blocks = s.q_blocks;
    a.k_blocks = s.k_blocks;
    a.scale = scale_of(at, s.d);
    a.type = l->in[0].dtype;
    a.causal = at->causal;
    a.near = at->window > 0 ? at->window : s.tq + s.tk;
    a.alibi = at->alibi;
    return a;
}

static tt_status attention(const tt_launch *l)
{
    att_args a = args_of(l);
    a.y = l->out[0].data;
    a.lse = (float *)l->out[1].data;
    if (((const tune *)l->tune)->plan != NULL)
        return run_dnn(l, &a, a.y);
    att_forward(l, a);
    return tti_cuda_launched(l);
}

static tt_status attention_grad(const tt_launch *l)
{
    const tti_attention_attr *at = (const tti_attention_attr *)l->attr;
    att_args a = args_of(l);
    int n = l->n_in - 3;
    int64_t bytes = a.type == TT_F32 ? 4 : 2;
    const void *y = l->in[n].data;
    a.lse = (float *)l->in[n + 1].data;
    a.dy = l->in[n + 2].data;
    a.dq = l->out[0].data;
    a.dk = at->packed ? (char *)a.dq + a.heads * a.d * bytes : l->out[1].data;
    a.dv = at->packed ? (char *)a.dk + a.kv_heads * a.d * bytes : l->out[2].data;
    if (((const tune *)l->tune)->plan != NULL)
        return run_dnn_grad(l, &a, y);
    att_backward(l, a, y, (float *)l->scratch);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_attention[] = {
    TTI_ROW_BY("attention", attention_prepare, attention, TTI_BY_DNN),
    TTI_ROW_BY("attention_grad", attention_grad_prepare, attention_grad, TTI_BY_DNN),
    TTI_ROWS_END,
};
