/*
 * shape.cu - CUDA: reshape and transpose; see shape.c.
 *
 * After axes are merged (tti_transpose_merge) a transpose is one of two: rows of y that lie in x at
 * a fixed distance between neighbours, most often 1, or tiles of two axes turned in shared memory.
 */
#include "cuda/move.cuh"
#include "op/shape.h"

static tt_status reshape_cuda(const tt_launch *l)
{
    size_t bytes = (size_t)l->in[0].count * (size_t)tti_item(l->in[0].dtype);
    if (l->out[0].data == l->in[0].data || bytes == 0)
        return TT_OK;
    TTI_CUDA(tti_device_of(l), l->node,
             cudaMemcpyAsync(l->out[0].data, l->in[0].data, bytes, cudaMemcpyDeviceToDevice,
                             (cudaStream_t)l->stream));
    return TT_OK;
}

// Division of numbers below 2^31 by d, as a product with its reciprocal.
struct divisor {
    uint32_t d, mul, shift;
};
static divisor divisor_of(int64_t d)
{
    divisor v = {(uint32_t)d, 0, 0};
    while (((int64_t)1 << v.shift) < d)
        v.shift++;
    v.mul =
        (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << v.shift) - (uint64_t)d)) / (uint64_t)d +
                   1);
    return v;
}

// The axes of y but those a block works along, innermost first; distances in units.
struct axes {
    int n, is_wide; // is_wide: there are 2^31 indices or more
    int64_t d[TT_MAX_RANK], x[TT_MAX_RANK], y[TT_MAX_RANK];
    divisor by[TT_MAX_RANK];
};

// What is left of i after axis k, whose index goes to *at.
__device__ static inline int64_t take(const axes &a, int k, int64_t i, int64_t *at)
{
    if (a.is_wide) {
        *at = i % a.d[k];
        return i / a.d[k];
    }
    uint32_t n = (uint32_t)i, q = (uint32_t)((uint64_t)n * a.by[k].mul >> 32);
    q = (q + n) >> a.by[k].shift;
    *at = n - q * a.by[k].d;
    return q;
}

static void add_axis(axes *a, int64_t d, int64_t x, int64_t y)
{
    a->d[a->n] = d;
    a->x[a->n] = x;
    a->y[a->n] = y;
    a->by[a->n++] = divisor_of(d <= INT32_MAX ? d : 1);
}

// ---- rows ------------------------------------------------------------------------------------

template <class T>
__global__ static void turn_rows(T *__restrict__ y, const T *__restrict__ x, axes a, int64_t rows,
                                 int64_t width, int64_t step)
{
    int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; r < rows; r += (int64_t)gridDim.y * blockDim.y) {
        int64_t rest = r, from = 0, at;
        for (int k = 0; k < a.n; k++) {
            rest = take(a, k, rest, &at);
            from += at * a.x[k];
        }
#pragma unroll 4
        for (int64_t c = first; c < width; c += (int64_t)gridDim.x * blockDim.x)
            y[r * width + c] = x[from + c * step];
    }
}

static void launch_rows(const tt_launch *l, const tti_transpose_plan *t)
{
    int last = t->rank - 1, item = tti_item(l->in[0].dtype), unit = item;
    if (t->s[last] == 1) { // units may be larger than elements
        uint64_t bits = (uint64_t)(uintptr_t)l->in[0].data | (uint64_t)(uintptr_t)l->out[0].data |
                        (uint64_t)(t->d[last] * item);
        for (int i = 0; i < last; i++)
            bits |= (uint64_t)(t->s[i] * item);
        unit = tti_move_unit(bits);
    }
    int64_t width = t->d[last] * item / unit, rows = 1;
    axes a = {};
    for (int i = last - 1; i >= 0; rows *= t->d[i--])
        add_axis(&a, t->d[i], t->s[i] * item / unit, 0);
    a.is_wide = rows > INT32_MAX;
    tti_grid g = tti_grid_for(l, rows, width);
    TTI_UNITS(unit, T, {
        TTI_LAUNCH(l, g.grid, g.block, 0, (turn_rows<T>), (T *)l->out[0].data,
                   (const T *)l->in[0].data, a, rows, width, t->s[last]);
    })
}

// ---- tiles -----------------------------------------------------------------------------------

/*
 * A tile is EDGE x EDGE elements of axis j of y, which is contiguous in x, and the last. Threads
 * are 32 x 8; each moves V elements at once, which all distances and addresses must allow.
 */
struct tiles {
    int64_t j, last;   // sizes of the two axes
    int64_t xs, ys;    // distance in x along the last, in y along j
    int64_t n, nj, nl; // tiles; along each
};

template <class T, int V> struct alignas(sizeof(T) * V) some {
    T v[V];
};

template <class T, int V>
__global__ static void turn_tiles(T *__restrict__ y, const T *__restrict__ x, axes a, tiles t)
{
    const int edge = 32 * V;
    __shared__ some<T, V> tile[edge][32 + 1];
    int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    for (int64_t u = blockIdx.x; u < t.n; u += gridDim.x) {
        int64_t lt, jt, at, rest = take(a, 1, take(a, 0, u, &lt), &jt), from = 0, to = 0;
        lt *= edge;
        jt *= edge;
        for (int k = 2; k < a.n; k++) {
            rest = take(a, k, rest, &at);
            from += at * a.x[k];
            to += at * a.y[k];
        }
        from += lt * t.xs + jt;
        to += jt * t.ys + lt;
#pragma unroll
        for (int i = 0; i < edge; i += 8)
            if (lt + i + ty < t.last && jt + tx * V < t.j)
                tile[i + ty][tx] = *(const some<T, V> *)(x + from + (i + ty) * t.xs + tx * V);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < edge; i += 8) {
            some<T, V> out;
            for (int v = 0; v < V; v++)
                out.v[v] = ((const T *)tile[tx * V + v])[i + ty];
            if (jt + i + ty < t.j && lt + tx * V < t.last)
                *(some<T, V> *)(y + to + (i + ty) * t.ys + tx * V) = out;
        }
        __syncthreads();
    }
}

// Whether pairs of elements can be moved at once.
static bool is_even(const tt_launch *l, const tti_transpose_plan *t, int item)
{
    int64_t odd = t->d[t->j] | t->d[t->rank - 1];
    for (int i = 0; i < t->rank; i++)
        odd |= i == t->j ? 0 : t->s[i];
    uintptr_t at = (uintptr_t)l->in[0].data | (uintptr_t)l->out[0].data;
    return (odd & 1) == 0 && (at & (uintptr_t)(2 * item - 1)) == 0;
}

static void launch_tiles(const tt_launch *l, const tti_transpose_plan *t)
{
    int last = t->rank - 1, item = tti_item(l->in[0].dtype);
    bool pairs = item == 2 && is_even(l, t, item);
    int64_t edge = pairs ? 64 : 32, stride[TT_MAX_RANK], n = 1;
    for (int i = last; i >= 0; n *= t->d[i--])
        stride[i] = n;
    tiles v = {t->d[t->j], t->d[last], t->s[last], stride[t->j], 1, 0, 0};
    v.nl = (v.last + edge - 1) / edge;
    v.nj = (v.j + edge - 1) / edge;
    axes a = {};
    add_axis(&a, v.nl, 0, 0);
    add_axis(&a, v.nj, 0, 0);
    for (int i = last - 1; i >= 0; i--)
        if (i != t->j)
            add_axis(&a, t->d[i], t->s[i], stride[i]);
    for (int k = 0; k < a.n; k++)
        v.n *= a.d[k];
    a.is_wide = v.n > INT32_MAX;
    dim3 block(32, 8, 1);
    unsigned grid = tti_blocks(l, v.n, 1);
    void *y = l->out[0].data;
    const void *x = l->in[0].data;
    if (pairs)
        TTI_LAUNCH(l, grid, block, 0, (turn_tiles<uint16_t, 2>), (uint16_t *)y, (const uint16_t *)x,
                   a, v);
    else if (item == 2)
        TTI_LAUNCH(l, grid, block, 0, (turn_tiles<uint16_t, 1>), (uint16_t *)y, (const uint16_t *)x,
                   a, v);
    else if (item == 4)
        TTI_LAUNCH(l, grid, block, 0, (turn_tiles<uint32_t, 1>), (uint32_t *)y, (const uint32_t *)x,
                   a, v);
    else if (item == 8)
        TTI_LAUNCH(l, grid, block, 0, (turn_tiles<uint64_t, 1>), (uint64_t *)y, (const uint64_t *)x,
                   a, v);
    else
        TTI_LAUNCH(l, grid, block, 0, (turn_tiles<uint8_t, 1>), (uint8_t *)y, (const uint8_t *)x, a,
                   v);
}

static tt_status transpose_cuda(const tt_launch *l)
{
    tti_transpose_plan t;
    if (tti_transpose_merge(&t, &l->in[0].shape, &((const tti_transpose_attr *)l->attr)->order) ==
        0)
        return TT_OK;
    while (t.s[t.j] != 1)
        t.j++;
    int last = t.rank - 1;
    if (t.j != last && t.d[t.j] >= 16 && t.d[last] >= 16)
        launch_tiles(l, &t);
    else // short axes would leave most of a tile empty
        launch_rows(l, &t);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_shape[] = {
    TTI_ROW("reshape", NULL, reshape_cuda),
    TTI_ROW("transpose", NULL, transpose_cuda),
    TTI_ROWS_END,
};
