/*
 * batch_norm.cuh - what both batch norms of a GPU share, over the batch (batch_norm.cu) and over a
 * lane (batch_norm_lane.cu): where rows and channels lie, and factors of channels. Sums over rows
 * are in batch_norm_sums.cuh, what is done row by row in batch_norm_map.cuh.
 */
#ifndef TUTTI_OP_BATCH_NORM_CUH
#define TUTTI_OP_BATCH_NORM_CUH

#include "cuda/strands.cuh"
#include "op/batch_norm.h"
#include "op/gpu/act.cuh"
#include "op/gpu/pack.cuh"

#define TTI_BN_THREADS 256
#define TTI_BN_LANES   64 // of a launch; more lanes take more launches
#define TTI_BN_ROWS    32 // of the batch, of a strand: a constant of the arithmetic

// ---- rows and channels -----------------------------------------------------------------------

// The rows of some lanes: each has runs runs, step rows apart, of per (bound[i + 1] - bound[i]).
struct tti_bn_rows {
    int n;
    int64_t runs, step, per;
    int64_t bound[TTI_BN_LANES + 1];
    int slice[TTI_BN_LANES]; // rows of a slice
};

__device__ static inline int64_t tti_bn_entries(const tti_bn_rows &g, int lane)
{
    return g.runs * (g.bound[lane + 1] - g.bound[lane]) * g.per;
}
// The tensor's row of entry i of a lane. Kernels of packs are for one run alone.
template <int V>
__device__ static inline int64_t tti_bn_row(const tti_bn_rows &g, int lane, int64_t i)
{
    int64_t first = g.bound[lane] * g.per, len = (g.bound[lane + 1] - g.bound[lane]) * g.per;
    return V > 1 || g.runs == 1 ? first + i : first + i / len * g.step + i % len;
}

// Channels: packs of v, walked by wx threads side by side. By the shape alone: they decide bits.
struct tti_bn_cols {
    int64_t c;
    int wx, shift; // wx = 1 << shift
};
static inline tti_bn_cols tti_bn_cols_of(int64_t c, int v, int most)
{
    tti_bn_cols g = {c, 1, 0};
    for (; g.wx < most && (int64_t)g.wx * v < c; g.wx *= 2)
        g.shift++;
    return g;
}
static inline bool tti_bn_in_packs(const tt_arg *x)
{
    return x->cols % (x->dtype == TT_F32 ? 4 : 8) == 0;
}

// ---- lanes and slices ------------------------------------------------------------------------

// Channels of a walk over slices; v: of a thread, where addresses allow.
static inline tti_bn_cols tti_bn_cols_of_walk(const tt_arg *x, int *v)
{
    *v = !tti_bn_in_packs(x) ? 1 : x->dtype == TT_F32 ? 4 : 8;
    return tti_bn_cols_of(x->cols, *v, *v > 1 ? 8 : 32);
}
// Slices of a lane so that its blocks keep a card busy; more would only have to be merged.
static inline int tti_bn_want(const tt_arg *x)
{
    int v;
    tti_bn_cols g = tti_bn_cols_of_walk(x, &v);
    int64_t groups = (x->cols + g.wx * v - 1) / (g.wx * v);
    return groups < 1 ? 256 : groups > 256 ? 1 : (int)(256 / groups);
}

// The lanes of a tensor: those of the call, or one with all rows where no axis is open.
struct tti_bn_lanes {
    tt_lanes ln;
    bool is_open, is_part;
    int want; // slices of a lane that is long enough, by the channels
    int64_t runs, step, per;
    int64_t whole[2];
    tti_strands strands;
};
// Not to be copied: ln points into it.
static inline void tti_bn_lanes_of(const tt_arg *x, const tt_lanes *ln, tti_bn_lanes *out)
{
    int64_t inner = 1;
    out->want = tti_bn_want(x);
    out->is_open = x->open >= 0;
    out->is_part = out->is_open && ln->n != ln->total;
    out->runs = out->per = 1;
    out->step = 0;
    out->ln = out->is_open ? *ln : tti_one_lane(x->rows, out->whole);
    if (!out->is_open)
        return;
    for (int i = 0; i < x->open; i++)
        out->runs *= x->shape.dim[i];
    for (int i = x->open + 1; i < x->shape.rank - 1; i++)
        inner *= x->shape.dim[i];
    out->per = x->per * inner;
    out->step = x->shape.dim[x->open] * inner;
}
// The same with strands for lanes, where it does not matter which rows are a lane's.
static inline void tti_bn_strands_of(const tt_arg *x, const tt_lanes *ln, tti_bn_lanes *out)
{
    tti_bn_lanes_of(x, ln, out);
    tt_lanes lanes = out->ln;
    tti_strands_cut(&out->strands, &lanes, 1, {out->runs * out->per, TTI_BN_ROWS, x->cols});
    out->ln = out->strands.ln;
}
static inline int64_t tti_bn_lane_rows(const tti_bn_lanes *b, int lane)
{
    return b->runs * (b->ln.bound[lane + 1] - b->ln.bound[lane]) * b->per;
}

// Rows in a slice of a lane of n.
static inline int tti_bn_slice(int64_t n, int want)
{
    int64_t len = (n + want - 1) / want, least = (n + 1023) / 1024;
    len = len < 256 ? 256 : len < 2048 ? len : 2048;
    return (int)(((len > least ? len : least) + 31) / 32 * 32);
}
static inline int tti_bn_slices(int64_t n, int want)
{
    int64_t slice = tti_bn_slice(n, want);
    return (int)((n + slice - 1) / slice);
}
// The most slices any lane has.
static inline int tti_bn_most_slices(const tti_bn_lanes *b)
{
    int most = 1;
    for (int i = 0; i < b->ln.n; i++) {
        int n = tti_bn_slices(tti_bn_lane_rows(b, i), b->want);
        most = n > most ? n : most;
    }
    return most;
}

// Lanes from first on, as many as one launch takes; 0 of them past the end.
static inline tti_bn_rows tti_bn_rows_of(const tti_bn_lanes *b, int first)
{
    tti_bn_rows g = {};
    g.runs = b->runs;
    g.step = b->step;
    g.per = b->per;
    g.n = b->ln.n - first < TTI_BN_LANES ? b->ln.n - first : TTI_BN_LANES;
    if (g.n > 0)
        memcpy(g.bound, b->ln.bound + first, sizeof(int64_t) * (size_t)(g.n + 1));
    for (int i = 0; i < g.n; i++)
        g.slice[i] = tti_bn_slice(tti_bn_lane_rows(b, first + i), b->want);
    return g;
}
// All rows as one lane, for what is the same for every lane.
static inline tti_bn_rows tti_bn_all_rows(const tt_arg *x)
{
    tti_bn_rows g = {};
    g.n = 1;
    g.runs = g.per = 1;
    g.bound[1] = x->rows;
    return g;
}

// ---- factors ---------------------------------------------------------------------------------

// A vector of channels, of either type that is allowed.
struct tti_bn_vec {
    const void *p;
    int dtype;
};
static inline tti_bn_vec tti_bn_vec_of(const tt_arg *a)
{
    tti_bn_vec v = {a->data, (int)a->dtype};
    return v;
}
__device__ static inline float tti_bn_at(const tti_bn_vec &v, int64_t i)
{
    return tti_at(v.p, v.dtype, i);
}

/*
 * Up to F factors of a block's channels, worked out once by a thread for each channel. A thread
 * then takes those of its V channels into registers.
 */
template <int V, int F> struct tti_bn_factors {
    float f[F][V];

    // one(channel, to): the factors of a channel. room: F times as many as the block has channels.
    template <class G>
    __device__ void make(float *room, const tti_bn_cols &g, int64_t first, int tx, G one)
    {
        const int n = g.wx * V;
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < n; i += TTI_BN_THREADS) {
            float to[F] = {};
            if (first + i < g.c)
                one(first + i, to);
#pragma unroll
            for (int k = 0; k < F; k++)
                room[k * n + i] = to[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < F; k++)
            get(room + k * n + tx * V, f[k]);
    }

  private:
    __device__ static void get(const float *p, float *to)
    {
        if constexpr (V == 1) {
            *to = *p;
        } else {
#pragma unroll
            for (int i = 0; i < V; i += 4) {
                tti_regs<float, 4> v = *(const tti_regs<float, 4> *)(p + i);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    to[i + k] = v.get(k);
            }
        }
    }
};

#endif
