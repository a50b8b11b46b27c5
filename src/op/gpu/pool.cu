/*
 * pool.cu - pooling on a GPU: the ops of pool.c. Kernels are in pool.cuh, those of usual windows in
 * pool_square.cuh.
 */
#include "op/gpu/pool_square.cuh"

#define MOST   (1 << 30) // entries of an axis of an image
#define NARROW 255       // windows with more entries than this note places in 4 bytes

static pool_dims dims_of(const tti_pool_attr *a, const tt_shape *x, const tt_shape *y)
{
    pool_dims t;
    t.h = (int)x->dim[1];
    t.w = (int)x->dim[2];
    t.c = (int)x->dim[3];
    t.oh = (int)y->dim[1];
    t.ow = (int)y->dim[2];
    t.kh = (int)a->size.v[0];
    t.kw = (int)a->size.v[1];
    t.sh = (int)a->stride.v[0];
    t.sw = (int)a->stride.v[1];
    t.pt = (int)a->pad.v[0];
    t.pl = (int)a->pad.v[2];
    return t;
}

// kernel<T, V> over so many numbers, in packs or one by one.
#define POOL_LAUNCH(l, dtype, total, packs, q, kernel, ...)                                      \
    TTI_FLOATS(dtype, T, {                                                                       \
        const int wide = tti_pack<T>::n;                                                         \
        int64_t items = (packs) ? (total) / wide : (total);                                      \
        unsigned blocks = tti_blocks(l, items, TTI_POOL_THREADS);                                \
        if (packs)                                                                               \
            TTI_LAUNCH(l, blocks, TTI_POOL_THREADS, 0, (kernel<T, wide __VA_ARGS__>), q, items); \
        else                                                                                     \
            TTI_LAUNCH(l, blocks, TTI_POOL_THREADS, 0, (kernel<T, 1 __VA_ARGS__>), q, items);    \
    })

// What kernels find: images of x and dx by x, those of y and dy by y; data may be NULL.
static pool_in pool_of(const tt_launch *l, const tt_arg *x, const tt_arg *y)
{
    pool_in q = {};
    q.t = dims_of((const tti_pool_attr *)l->attr, &x->shape, &y->shape);
    q.wide = (int64_t)q.t.kh * q.t.kw > NARROW;
    q.place = l->scratch;
    return q;
}
// Packs of channels can be moved at once.
static bool in_packs(const pool_in &q, tt_dtype dtype)
{
    return q.t.c % (dtype == TT_F32 ? 4 : 8) == 0 && tti_is_aligned(q.x) && tti_is_aligned(q.dy) &&
           tti_is_aligned(q.y);
}

template <bool MAX> static tt_status run_pool(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *y = &l->out[0];
    pool_in q = pool_of(l, x, y);
    q.x = x->data;
    q.y = y->data;
    bool packs = in_packs(q, y->dtype);
    if (y->count == 0)
        return TT_OK;
    if (!MAX || !packs || !tti_pool_squares<false>(l, y->dtype, y->shape.dim[0], q))
        POOL_LAUNCH(l, y->dtype, y->count, packs, q, pool, , MAX)
    return tti_cuda_launched(l);
}

template <bool MAX> static tt_status run_grad(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *dy = &l->in[MAX ? 1 : 0], *dx = &l->out[0];
    pool_in q = pool_of(l, dx, dy);
    q.x = MAX ? x->data : NULL;
    q.dy = dy->data;
    q.y = dx->data;
    bool packs = in_packs(q, dx->dtype);
    if (dx->count == 0)
        return TT_OK;
    if (MAX && (!packs || !tti_pool_squares<true>(l, dx->dtype, dx->shape.dim[0], q)))
        POOL_LAUNCH(l, dx->dtype, dy->count, packs, q, find_max)
    if (!MAX || !packs || !tti_pool_squares_grad(l, dx->dtype, dx->shape.dim[0], q))
        POOL_LAUNCH(l, dx->dtype, dx->count, packs, q, pool_grad, , MAX)
    return tti_cuda_launched(l);
}

static tt_status prepare(tt_prep *p)
{
    p->scratch_bytes = 0;
    for (int i = 1; i < 4; i++)
        if (p->in[0].shape.dim[i] > MOST || p->out_args[0].shape.dim[i] > MOST)
            return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                           "%s '%s': an axis of more than %d entries, not for GPUs",
                           p->node->op->name, p->node->name, MOST);
    return TT_OK;
}

static tt_status prepare_max_grad(tt_prep *p)
{
    const tti_pool_attr *a = (const tti_pool_attr *)p->attr;
    size_t bytes = a->size.v[0] * a->size.v[1] > NARROW ? sizeof(uint32_t) : sizeof(uint8_t);
    TT_TRY(prepare(p));
    p->scratch_bytes = bytes * (size_t)p->in[1].count;
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_pool[] = {
    TTI_ROW("max_pool2d", prepare, run_pool<true>),
    TTI_ROW("max_pool2d_grad", prepare_max_grad, run_grad<true>),
    TTI_ROW("avg_pool2d", prepare, run_pool<false>),
    TTI_ROW("avg_pool2d_grad", prepare, run_grad<false>),
    TTI_ROWS_END,
};
