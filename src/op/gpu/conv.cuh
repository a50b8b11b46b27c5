/*
 * conv.cuh - what the convolutions of a GPU share: sizes, and sums of dw over the rows of lanes.
 *
 * dw sums over the output pixels of a lane, or of a strand of it, which is all that lanes are here
 * (strands.cuh). They are cut into slices, by a rule that knows their number and the shape alone,
 * so that small weights fill the card too; a slice's sum is one chain, slices are added in
 * order, lanes by the tree. Where the partial sums of all lanes would take too much memory, lanes
 * run one by one on a stack.
 */
#ifndef TUTTI_OP_CONV_CUH
#define TUTTI_OP_CONV_CUH

#include "cuda/strands.cuh"
#include "op/conv.h"

static inline tti_conv_dims tti_conv_dims_on(const tti_conv_attr *a, const tt_shape *x, int64_t kh,
                                             int64_t kw, const tt_shape *y)
{
    tti_conv_dims d;
    d.batch = x->dim[0];
    d.h = x->dim[1];
    d.w = x->dim[2];
    d.c_in = x->dim[3];
    d.oh = y->dim[1];
    d.ow = y->dim[2];
    d.c_out = y->dim[3];
    d.kh = kh;
    d.kw = kw;
    d.sh = a->stride.v[0];
    d.sw = a->stride.v[1];
    d.pt = a->pad.v[0];
    d.pl = a->pad.v[2];
    return d;
}

// ---- tiles of f32 ----------------------------------------------------------------------------

#define TTI_CONV_TILE    64 // outputs of a block along either axis
#define TTI_CONV_DEPTH   16 // terms of the sum at once
#define TTI_CONV_EACH    4  // a thread's outputs are EACH x EACH
#define TTI_CONV_THREADS 256

struct tti_conv_tiles {
    float a[TTI_CONV_DEPTH][TTI_CONV_TILE + TTI_CONV_EACH], b[TTI_CONV_DEPTH][TTI_CONV_TILE];
};
__device__ static inline void tti_conv_multiply(const tti_conv_tiles &s, int terms,
                                                float acc[TTI_CONV_EACH][TTI_CONV_EACH])
{
    const int tx = (int)threadIdx.x % (TTI_CONV_TILE / TTI_CONV_EACH),
              ty = (int)threadIdx.x / (TTI_CONV_TILE / TTI_CONV_EACH);
    for (int k = 0; k < terms; k++) {
        float a[TTI_CONV_EACH], b[TTI_CONV_EACH];
#pragma unroll
        for (int i = 0; i < TTI_CONV_EACH; i++) {
            a[i] = s.a[k][ty * TTI_CONV_EACH + i];
            b[i] = s.b[k][tx * TTI_CONV_EACH + i];
        }
#pragma unroll
        for (int i = 0; i < TTI_CONV_EACH; i++)
#pragma unroll
            for (int j = 0; j < TTI_CONV_EACH; j++)
                acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
    }
}

// ---- dw: lanes and slices --------------------------------------------------------------------

#define TTI_DW_LANES   64                // of a launch
#define TTI_DW_IMAGES  32                // of a strand: a constant of the arithmetic
#define TTI_DW_PARTIAL ((size_t)1 << 29) // bytes of all lanes' partial sums; beyond it one by one

// The images of some lanes, the first of which has the number first.
struct tti_dw_images {
    int n, first;
    int64_t bound[TTI_DW_LANES + 1];
};

// How lanes are cut into slices of terms, which are output pixels or tiles of them.
struct tti_dw_rule {
    int64_t terms;        // of an image
    int64_t want;         // slices of a lane, if it is long enough
    int64_t least, whole; // terms of a slice: so many, and a multiple of whole
};
// Slices of pixels, of which one keeps so many blocks busy.
static inline tti_dw_rule tti_dw_pixels(int64_t pixels, int64_t blocks)
{
    return {pixels, blocks >= 512 ? 1 : 512 / blocks > 64 ? 64 : 512 / blocks, 1024, 32};
}
__host__ __device__ static inline int64_t tti_dw_slice(int64_t terms, const tti_dw_rule &r)
{
    int64_t n = (terms + r.want - 1) / r.want;
    n = n < r.least ? r.least : (n + r.whole - 1) / r.whole * r.whole;
    return n > 1 << 30 ? 1 << 30 : n;
}

// How the sum over rows of one node goes.
struct tti_dw_sum {
    tti_strands strands; // of images: of the call's lanes, or of all where no axis is open
    int64_t count;       // numbers in dw
    tti_dw_rule rule;
    int64_t slices; // the most any lane has
    bool by_lane;   // one by one
};

static inline int64_t tti_dw_slices_of(const tti_dw_sum *q, int lane)
{
    const int64_t *bound = q->strands.ln.bound;
    int64_t terms = (bound[lane + 1] - bound[lane]) * q->rule.terms;
    int64_t n = tti_dw_slice(terms, q->rule);
    return (terms + n - 1) / n;
}

// The strands of x. Not to be copied: they point into it.
static inline void tti_dw_cut(const tt_arg *x, const tt_lanes *ln, int64_t pixels, int64_t count,
                              tti_dw_sum *q)
{
    int64_t bound[2];
    tt_lanes one = tti_one_lane(x->shape.dim[0], bound);
    q->count = count;
    tti_strands_cut(&q->strands, x->open >= 0 ? ln : &one, x->open >= 0 ? x->per : 1,
                    {pixels, TTI_DW_IMAGES, count});
}
// Their slices.
static inline void tti_dw_slice_up(tti_dw_sum *q, const tti_dw_rule &rule)
{
    const int n = q->strands.ln.n;
    q->rule = rule;
    q->slices = 1;
    for (int i = 0; i < n; i++) {
        int64_t slices = tti_dw_slices_of(q, i);
        q->slices = slices > q->slices ? slices : q->slices;
    }
    size_t lane = sizeof(float) * (size_t)q->count * (size_t)q->slices;
    q->by_lane = n > 1 && lane * (size_t)n > TTI_DW_PARTIAL;
}
// Partial sums [lanes, slices, count], or one lane's and the stack [depth, count].
static inline size_t tti_dw_scratch(const tti_dw_sum *q)
{
    int64_t n = q->by_lane ? q->slices + TTI_CUDA_DEPTH : q->slices * q->strands.ln.n;
    return sizeof(float) * (size_t)q->count * (size_t)n;
}
static inline tti_dw_images tti_dw_images_of(const tti_dw_sum *q, int first, int most)
{
    tti_dw_images g = {};
    g.first = first;
    g.n = q->strands.ln.n - first < most ? q->strands.ln.n - first : most;
    memcpy(g.bound, q->strands.bound + first, sizeof(int64_t) * (size_t)(g.n + 1));
    return g;
}

// ---- dw: from slices to the result -----------------------------------------------------------

#define TTI_DW_AT_ONCE 4 // lanes whose sums are read side by side
#define TTI_DW_AHEAD   6 // slices of each

struct tti_dw_slices_in {
    const float *part;
    int64_t slices, count;
};

// Sums of the lanes first to first + TTI_DW_AT_ONCE; lane k has bound[k + 1] - bound[k] slices.
__device__ static inline void tti_dw_lane_sums(const tti_dw_slices_in &q, int n,
                                               const int64_t *bound, int first, int64_t at,
                                               float *sum)
{
    int have[TTI_DW_AT_ONCE], most = 0;
#pragma unroll
    for (int u = 0; u < TTI_DW_AT_ONCE; u++) {
        have[u] = first + u < n ? (int)(bound[first + u + 1] - bound[first + u]) : 0;
        most = have[u] > most ? have[u] : most;
        sum[u] = 0.0f;
    }
    const float *p = q.part + first * q.slices * q.count + at;
    for (int s = 0; s < most; s += TTI_DW_AHEAD) {
        float part[TTI_DW_AHEAD][TTI_DW_AT_ONCE]; // all on their way before the first is added
#pragma unroll
        for (int e = 0; e < TTI_DW_AHEAD * TTI_DW_AT_ONCE; e++) {
            const int i = e / TTI_DW_AT_ONCE, u = e % TTI_DW_AT_ONCE;
            if (s + i < have[u])
                part[i][u] = p[(u * q.slices + s + i) * q.count];
        }
#pragma unroll
        for (int e = 0; e < TTI_DW_AHEAD * TTI_DW_AT_ONCE; e++) {
            const int i = e / TTI_DW_AT_ONCE, u = e % TTI_DW_AT_ONCE;
            if (s + i < have[u])
                sum[u] = sum[u] + part[i][u];
        }
    }
}

// ln has numbers of slices for numbers of rows.
template <class T, int N>
static __global__ void tti_dw_tree(tti_lanes_of<N> ln, tti_dw_slices_in q, T *out)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < q.count; i += step) {
        float sum[TTI_DW_AT_ONCE];
        tti_lane_tree<N>(
            ln,
            [&](int k) {
                if (k % TTI_DW_AT_ONCE == 0)
                    tti_dw_lane_sums(q, ln.n, ln.bound, k, i, sum);
                return k & 2 ? (k & 1 ? sum[3] : sum[2]) : (k & 1 ? sum[1] : sum[0]);
            },
            [&](int p, float x) { tti_put(out[p * q.count + i], x); });
    }
}

/*
 * Pushes a lane's sum, of have slices, on the stack of which depth are taken, then merges the
 * topmost merges times.
 */
static __global__ void tti_dw_push(tti_dw_slices_in q, int have, float *stack, int depth,
                                   int merges)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < q.count; i += step) {
        float v = 0.0f;
#pragma unroll 4
        for (int s = 0; s < have; s++)
            v = v + q.part[s * q.count + i];
        for (int m = 1; m <= merges; m++)
            v = stack[(depth - m) * q.count + i] + v;
        stack[(depth - merges) * q.count + i] = v;
    }
}
template <class T> static __global__ void tti_dw_put(const float *stack, int64_t n, T *out)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        tti_put(out[i], stack[i] + 0.0f);
}

template <int N> static inline tti_lanes_of<N> tti_dw_lanes(const tti_dw_sum *q)
{
    tti_lanes_of<N> v = tti_lanes_by_value<N>(&q->strands.ln);
    v.bound[0] = 0;
    for (int i = 0; i < v.n; i++)
        v.bound[i + 1] = v.bound[i] + tti_dw_slices_of(q, i);
    return v;
}

/*
 * dw of all lanes: add(images, part) enqueues the partial sums of some lanes; scratch is what
 * tti_dw_scratch() asked for.
 */
template <class F>
static inline tt_status tti_dw_run(const tt_launch *l, const tti_dw_sum *q, F add)
{
    const tt_arg *y = &l->out[0];
    const tt_lanes *ln = &q->strands.ln;
    float *part = (float *)l->scratch;
    tti_dw_slices_in in = {part, q->slices, q->count};
    const unsigned grid = tti_blocks(l, q->count, 256);
    if (!q->by_lane) {
        for (int first = 0; first < ln->n; first += TTI_DW_LANES)
            TT_TRY(add(tti_dw_images_of(q, first, TTI_DW_LANES), part));
        TTI_FLOATS(y->dtype, T, {
            TTI_LANES(ln, N, {
                TTI_LAUNCH(l, grid, 256, 0, (tti_dw_tree<T, N>), tti_dw_lanes<N>(q), in,
                           (T *)y->data);
            });
        })
        return tti_cuda_launched(l);
    }
    float *stack = part + q->slices * q->count;
    int depth = 0;
    for (int i = 0; i < ln->n; i++) {
        tti_dw_images g = tti_dw_images_of(q, i, 1);
        g.first = 0;
        TT_TRY(add(g, part));
        TTI_LAUNCH(l, grid, 256, 0, tti_dw_push, in, (int)tti_dw_slices_of(q, i), stack, depth,
                   (int)ln->merges[i]);
        depth += 1 - ln->merges[i];
    }
    TTI_FLOATS(y->dtype, T, {
        TTI_LAUNCH(l, grid, 256, 0, (tti_dw_put<T>), stack, depth * q->count, (T *)y->data);
    })
    return tti_cuda_launched(l);
}

#endif
