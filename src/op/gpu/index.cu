/*
 * index.cu - CUDA: gather, scatter_add, one_hot; see index.c. The kernels of scatter_add are in
 * index_scatter.cuh.
 */
#include "cuda/move.cuh"
#include "op/gpu/index_scatter.cuh"
#include "op/gpu/index_sort.cuh"
#include "op/index.h"

// ---- gather and embedding --------------------------------------------------------------------

// Rows are [outer, ids]; a bad id gives zeros.
template <class T>
__global__ static void gather_rows(T *__restrict__ y, const T *__restrict__ x, ids_of ids,
                                   int64_t rows, int64_t width, int64_t n)
{
    int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; r < rows; r += (int64_t)gridDim.y * blockDim.y) {
        int64_t outer = 0, at = r;
        if (rows != ids.n) {
            outer = rows <= UINT32_MAX ? (uint32_t)r / (uint32_t)ids.n : r / ids.n;
            at = r - outer * ids.n;
        }
        int64_t id = id_at(ids, at, n, first == 0 && outer == 0);
        const T *from = x + (outer * n + id) * width;
#pragma unroll 4
        for (int64_t c = first; c < width; c += (int64_t)gridDim.x * blockDim.x)
            y[r * width + c] = id < n ? from[c] : T();
    }
}

static tt_status gather_cuda(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *y = &l->out[0];
    int axis = (int)((const tti_gather_attr *)l->attr)->axis;
    int64_t bytes = tti_item(x->dtype);
    for (int i = axis + 1; i < x->shape.rank; i++)
        bytes *= x->shape.dim[i];
    if (y->count == 0)
        return TT_OK;
    int64_t rows = y->count * tti_item(y->dtype) / bytes;
    int unit = tti_move_unit((uint64_t)(uintptr_t)x->data | (uint64_t)(uintptr_t)y->data |
                             (uint64_t)bytes);
    tti_grid g = tti_grid_for(l, rows, bytes / unit);
    TTI_UNITS(unit, T, {
        TTI_LAUNCH(l, g.grid, g.block, 0, (gather_rows<T>), (T *)y->data, (const T *)x->data,
                   ids_by_value(l, &l->in[1]), rows, bytes / unit, x->shape.dim[axis]);
    })
    return tti_cuda_launched(l);
}

// ---- scatter_add -----------------------------------------------------------------------------

template <class T, int V> static void launch_sums(const tt_launch *l, sums q)
{
    int64_t units = q.inner / V;
    q.team = 1;
    while (q.team < 32 && q.team < units)
        q.team *= 2;
    q.blocks = (int)((units + q.team - 1) / q.team);
    int64_t per = 256 / q.team, y = q.outer * q.blocks, most = q.count / MANY + 1;
    unsigned gy = (unsigned)(y < 65535 ? y : 65535);
    TTI_LAUNCH(l, dim3((unsigned)((q.n + per - 1) / per), gy, 1), 256, 0, (scatter_few<T, V>), q);
    if (q.count > MANY)
        TTI_LAUNCH(l, tti_blocks(l, (most < q.n ? most : q.n) * y, 1), 256, 0, (scatter_many<T, V>),
                   q);
}

// Where the positions of ids lie: returns the lanes by which they are summed.
static tt_lanes scatter_layout(const tt_launch *l, const tti_scatter_plan *t, layout *y,
                               int64_t one[2])
{
    static const uint8_t no_merge[1] = {0};
    const tt_arg *ids = &l->in[1];
    if (t->lanes) {
        *y = {1, ids->per};
        for (int i = ids->open; i < ids->shape.rank; i++)
            y->whole *= ids->shape.dim[i];
        for (int i = ids->open + 1; i < ids->shape.rank; i++)
            y->row *= ids->shape.dim[i];
        return *l->lanes;
    }
    *y = {ids->count, 1};
    one[0] = 0;
    one[1] = ids->count;
    tt_lanes ln = {};
    ln.n = ln.n_parts = 1;
    ln.bound = one;
    ln.merges = no_merge;
    return ln;
}

static tt_status scatter_cuda(const tt_launch *l)
{
    const tti_scatter_plan *t = (const tti_scatter_plan *)l->tune;
    const tt_arg *x = &l->in[0], *out = &l->out[0];
    int64_t count = l->in[1].count, one[2], chunk = sort_chunk(count);
    if (out->count == 0 || count == 0)
        return tti_cuda_zero(l, out->data, (size_t)(out->count * tti_item(out->dtype)));
    layout y;
    tt_lanes lanes = scatter_layout(l, t, &y, one);
    scratch s;
    scratch_fill(&s, l->scratch, count, t->n, lanes.n);
    TTI_LANES(&lanes, N, {
        TTI_LAUNCH(l, tti_blocks(l, count, 256), 256, 0, (scatter_start<N>),
                   ids_by_value(l, &l->in[1]), y, t->n, tti_lanes_by_value<N>(&lanes), s);
    });
    int passes = sort_passes(t->n), chunks = (int)sort_chunks(count);
    for (int p = 0; p < passes; p++) {
        int from = p % 2, to = 1 - from;
        TTI_LAUNCH(l, chunks, SORT_THREADS, 0, sort_count, s.keys[from], count, chunk, 8 * p,
                   s.table);
        TTI_LAUNCH(l, 1, 1024, 0, sort_scan, s.table, SORT_BINS * chunks);
        TTI_LAUNCH(l, chunks, SORT_THREADS, 0, sort_place, s.keys[from], s.at[from], count, chunk,
                   8 * p, s.table, s.keys[to], s.at[to]);
    }
    TTI_LAUNCH(l, tti_blocks(l, t->n + 1, 256), 256, 0, scatter_bounds, s.keys[passes % 2],
               (int32_t)count, (int32_t)t->n, s);

    sums q = {x->data, out->data, out->dtype,    t->outer, t->n, t->inner,         count,
              y.whole, lanes.n,   lanes.n_parts, 0,        0,    s.at[passes % 2], s};
    bool is_wide = t->inner % 4 == 0 && tti_is_aligned(x->data) && tti_is_aligned(out->data);
    TTI_FLOATS(x->dtype, T, {
        if (is_wide)
            launch_sums<T, 4>(l, q);
        else
            launch_sums<T, 1>(l, q);
    })
    return tti_cuda_launched(l);
}

static tt_status scatter_prepare(tt_prep *p)
{
    tti_scatter_plan t;
    scratch s;
    TT_TRY(tti_scatter_start(p, &t));
    p->scratch_bytes = scratch_fill(&s, NULL, p->in[1].count, t.n, t.lanes ? p->lanes->n : 1);
    return TT_OK;
}

// ---- one_hot ---------------------------------------------------------------------------------

template <class T>
__global__ static void one_hot_ones(T *y, ids_of ids, int64_t depth, uint64_t one)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < ids.n; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t id = id_at(ids, i, depth, true);
        if (id < depth)
            y[i * depth + id] = (T)one;
    }
}

static tt_status one_hot_cuda(const tt_launch *l)
{
    const tt_arg *y = &l->out[0];
    int64_t depth = ((const tti_one_hot_attr *)l->attr)->depth;
    uint64_t one = y->dtype == TT_F32    ? 0x3f800000
                   : y->dtype == TT_BF16 ? 0x3f80
                   : y->dtype == TT_F16  ? 0x3c00
                                         : 1;
    int item = tti_item(y->dtype);
    if (y->count == 0)
        return TT_OK;
    TT_TRY(tti_cuda_zero(l, y->data, (size_t)(y->count * item)));
    unsigned grid = tti_blocks(l, l->in[0].count, 256);
    ids_of ids = ids_by_value(l, &l->in[0]);
    if (item == 1)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint8_t>), (uint8_t *)y->data, ids, depth, one);
    else if (item == 2)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint16_t>), (uint16_t *)y->data, ids, depth, one);
    else if (item == 4)
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint32_t>), (uint32_t *)y->data, ids, depth, one);
    else
        TTI_LAUNCH(l, grid, 256, 0, (one_hot_ones<uint64_t>), (uint64_t *)y->data, ids, depth, one);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_index[] = {
    TTI_ROW("embedding", NULL, gather_cuda),
    TTI_ROW("gather", NULL, gather_cuda),
    TTI_ROW("embedding_grad", scatter_prepare, scatter_cuda),
    TTI_ROW("scatter_add", scatter_prepare, scatter_cuda),
    TTI_ROW("one_hot", NULL, one_hot_cuda),
    TTI_ROWS_END,
};
