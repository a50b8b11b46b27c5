/*
 * gemm_tf32.cuh - products of f32 on the matrix units, with the accuracy of f32 (tf32_chunk.cuh).
 *
 * An element's bits depend on its row, its column and where its chunks begin, not on tiles. A long
 * k may be cut into strands of whole chunks (tf32_strands), which the shape of the weights
 * decides: their sums go to scratch and are added from the first to the last.
 */
#ifndef TUTTI_OP_GEMM_TF32_CUH
#define TUTTI_OP_GEMM_TF32_CUH

#include "op/gpu/gemm.cuh"
#include "op/gpu/tf32_chunk.cuh"

#define TF32_LANES 8 // that one kernel sums

// The product is g's; entry i of its batch has k terms, the last one fewer. In a sum of lanes they
// are ln's, with bounds in terms, and part p of the result is at y + p part.
struct tf32_args {
    gemm_args g;
    int64_t last;
    tti_lanes_of<TF32_LANES> ln;
    int64_t part;
    int is_balanced; // the tree over eight lanes
    int is_plain;    // f32, no second result, four columns at a time; tf32_put()
};

// ---- kernels ---------------------------------------------------------------------------------

// Where the next chunk is: chunks of a range of terms, or of all lanes one after the other.
struct tf32_walk {
    int lane;
    int64_t k, end;

    __device__ void begin(int64_t from, int64_t to)
    {
        lane = 0;
        k = from;
        end = to;
    }

    // On to the first lane from here on that has terms left; false: there is none.
    __device__ bool settle(const tti_lanes_of<TF32_LANES> &ln)
    {
        while (k >= end && lane + 1 < ln.n) {
            lane++;
            k = ln.bound[lane];
            end = ln.bound[lane + 1];
        }
        return k < end;
    }
};

typedef enum tf32_kind {
    TF32_ENTRY = 0, // an entry of the batch
    TF32_KEPT = 1,  // lanes, each one's sum kept in shared memory, then the tree
    TF32_EIGHT = 2, // eight lanes and their balanced tree in registers
} tf32_kind;

// Which warp has what of the tile, where the tile is, and where its chunks come from.
template <int M, int N, bool A_BY_K, bool B_BY_K, int V> struct tf32_source {
    typedef tf32_tile<M, A_BY_K> A;
    typedef tf32_tile<N, B_BY_K> B;
    static const int stage = A::floats + B::floats;
    tf32_copier<M, A_BY_K, V, GEMM_THREADS> a;
    tf32_copier<N, B_BY_K, V, GEMM_THREADS> b;
    tf32_walk walk;
    int filled;

    __device__ void fill(float *room, const tti_lanes_of<TF32_LANES> &ln)
    {
        if (walk.settle(ln)) {
            float *to = room + filled * stage;
            a.copy(to, walk.k, walk.end);
            b.copy(to + A::floats, walk.k, walk.end);
            walk.k += TF32_K;
        }
        tti_async_group();
        filled = filled + 1 < TF32_STAGES ? filled + 1 : 0;
    }
};

template <int MI, int NI>
__device__ static inline void tf32_join(float left[MI][NI][4], float all[MI][NI][4])
{
#pragma unroll
    for (int e = 0; e < MI * NI * 4; e++)
        all[e / 4 / NI][e / 4 % NI][e % 4] =
            left[e / 4 / NI][e / 4 % NI][e % 4] + all[e / 4 / NI][e / 4 % NI][e % 4];
}

template <int MI, int NI>
__device__ static inline void tf32_move(float to[MI][NI][4], float all[MI][NI][4])
{
#pragma unroll
    for (int e = 0; e < MI * NI * 4; e++) {
        to[e / 4 / NI][e / 4 % NI][e % 4] = all[e / 4 / NI][e / 4 % NI][e % 4];
        all[e / 4 / NI][e / 4 % NI][e % 4] = 0.0f;
    }
}

// A warp's sums to a tile in shared memory, N wide.
template <int N, int MI, int NI>
__device__ static inline void tf32_keep(float *to, int m, int n, float all[MI][NI][4])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < MI * NI * 4; e++)
        to[(m + tf32_row(lane, e / 4 / NI, e)) * N + n + tf32_col(lane, e / 4 % NI, e)] =
            all[e / 4 / NI][e / 4 % NI][e % 4];
}

// What most results are: a bias or none, relu or nothing. From zero: a sum of -0 is 0.
__device__ static inline float4 tf32_plain(const float *sum, bool from_zero, const float *bias,
                                           int act)
{
    float4 v = *(const float4 *)sum;
    if (from_zero)
        v = make_float4(v.x + 0.0f, v.y + 0.0f, v.z + 0.0f, v.w + 0.0f);
    if (bias != NULL)
        v = make_float4(v.x + bias[0], v.y + bias[1], v.z + bias[2], v.w + bias[3]);
    if (act == TT_RELU)
        v = make_float4(tti_relu(v.x), tti_relu(v.y), tti_relu(v.z), tti_relu(v.w));
    return v;
}

// Ends a tile of sums, M by N.
template <int M, int N>
__device__ static inline void tf32_put(const tf32_args &t, const float *sums, int64_t at,
                                       int64_t row, int64_t col, bool from_zero)
{
    const gemm_args &g = t.g;
    for (int e = 4 * (int)threadIdx.x; t.is_plain && e < M * N; e += 4 * GEMM_THREADS) {
        int64_t r = row + e / N, c = col + e % N;
        if (r >= g.m || c >= g.n)
            continue;
        const float *bias = g.bias != NULL ? (const float *)g.bias + c : NULL;
        *(float4 *)((float *)g.y + at * g.step_c + r * g.ldc + c) =
            tf32_plain(sums + e, from_zero, bias, g.act);
    }
    for (int e = (int)threadIdx.x; !t.is_plain && e < M * N; e += GEMM_THREADS) {
        int64_t r = row + e / N, c = col + e % N;
        if (r >= g.m || c >= g.n)
            continue;
        if (from_zero)
            gemm_store(g.out, g.y, r * g.ldc + c, sums[e] + 0.0f);
        else
            gemm_end<float>(g, at, r, c, sums[e]);
    }
}

// A tile of M by N by 256 threads, whose warps have MI x NI tiles of 16 x 8 each.
template <int M, int N, int MI, int NI, bool A_BY_K, bool B_BY_K, int V, tf32_kind KIND>
__global__ void __launch_bounds__(GEMM_THREADS) tf32_kernel(tf32_args t)
{
    typedef tf32_source<M, N, A_BY_K, B_BY_K, V> source;
    TTI_SHARED(float, room);
    const gemm_args &g = t.g;
    const int warp = (int)threadIdx.x / 32, across = N / (8 * NI);
    const int m = warp / across * 16 * MI, n = warp % across * 8 * NI;
    int64_t tiles_m = (g.m + M - 1) / M, at = blockIdx.y;
    float all[MI][NI][4] = {}, one[MI][NI][4], two[MI][NI][4], four[MI][NI][4];
    const int64_t row = (int64_t)blockIdx.x % tiles_m * M, col = (int64_t)blockIdx.x / tiles_m * N;
    source s = {};
    s.a.begin((const float *)g.a + at * g.step_a, row, g.m, A_BY_K ? g.a_row : g.a_k);
    s.b.begin((const float *)g.b + at * g.step_b, col, g.n, B_BY_K ? g.b_col : g.b_k);
    if (KIND == TF32_ENTRY)
        s.walk.begin(0, at + 1 < (int64_t)gridDim.y ? g.k : t.last);
    else
        s.walk.begin(t.ln.bound[0], t.ln.bound[1]);
    int64_t k = s.walk.k, end = s.walk.end;
    for (int i = 0; i < TF32_STAGES - 1; i++)
        s.fill(room, t.ln);
    const int lanes = KIND == TF32_ENTRY ? 1 : t.ln.n;
    for (int i = 0, used = 0; i < lanes; i++) {
        for (; k < end; k += TF32_K) {
            tti_async_wait<TF32_STAGES - 2>();
            __syncthreads();
            s.fill(room, t.ln);
            const float *at_a = room + used * source::stage;
            tf32_chunk<typename source::A, typename source::B, MI, NI>(
                at_a, at_a + source::A::floats, m, n, all);
            used = used + 1 < TF32_STAGES ? used + 1 : 0;
        }
        if (KIND == TF32_KEPT) {
            tf32_keep<N, MI, NI>(room + TF32_STAGES * source::stage + i * M * N, m, n, all);
            tf32_move<MI, NI>(one, all);
        } else if (KIND == TF32_EIGHT && i % 2 == 0) {
            tf32_move<MI, NI>(one, all);
        } else if (KIND == TF32_EIGHT) {
            tf32_join<MI, NI>(one, all);
            if (i % 4 == 1)
                tf32_move<MI, NI>(two, all);
            else
                tf32_join<MI, NI>(two, all);
            if (i == 3)
                tf32_move<MI, NI>(four, all);
            else if (i == 7)
                tf32_join<MI, NI>(four, all);
        }
        if (i + 1 < lanes) {
            k = t.ln.bound[i + 1];
            end = t.ln.bound[i + 2];
        }
    }
    __syncthreads(); // its tiles are done with
    if (KIND != TF32_KEPT)
        tf32_keep<N, MI, NI>(room, m, n, all);
    __syncthreads();
    if (KIND != TF32_KEPT)
        tf32_put<M, N>(t, room, at, row, col, KIND == TF32_EIGHT);
    for (int e = (int)threadIdx.x; KIND == TF32_KEPT && e < M * N; e += GEMM_THREADS) {
        int64_t r = row + e / N, c = col + e % N;
        if (r < g.m && c < g.n)
            tti_lane_tree<TF32_LANES>(
                t.ln, [&](int i) { return room[TF32_STAGES * source::stage + i * M * N + e]; },
                [&](int p, float x) { gemm_store(g.out, g.y, p * t.part + r * g.ldc + c, x); });
    }
}

// ---- strands of a long k ---------------------------------------------------------------------

/*
 * Into how many strands the k terms of a product by weights [k, n] are cut, so that few rows keep a
 * card busy. Constants of the arithmetic.
 */
#define TF32_STRAND 256 // terms of a strand at least
#define TF32_BUSY   64  // tiles of 128 columns, over all strands

static inline int64_t tf32_strand(int64_t k, int64_t n)
{
    int64_t most = TF32_BUSY / ((n + 127) / 128), s = k / TF32_STRAND;
    s = s < most ? s : most;
    if (s <= 1)
        return k;
    int64_t len = (k + s - 1) / s;
    return (len + TF32_K - 1) / TF32_K * TF32_K;
}

static inline int64_t tf32_strands(int64_t k, int64_t n)
{
    int64_t len = tf32_strand(k, n);
    return k == 0 ? 1 : (k + len - 1) / len;
}

// ---- launches --------------------------------------------------------------------------------

template <int M, int N, int MI, int NI, bool A_BY_K, bool B_BY_K, int V, tf32_kind KIND>
static inline void tf32_run(const tt_launch *l, const tf32_args *of)
{
    tf32_args args = *of, *t = &args;
    const gemm_args *g = &t->g;
    t->is_plain = g->out == TT_F32 && g->z == NULL && (g->act == TT_LINEAR || g->act == TT_RELU) &&
                  g->n % 4 == 0 && g->ldc % 4 == 0 && g->step_c % 4 == 0 && tti_is_aligned(g->y);
    auto kernel = tf32_kernel<M, N, MI, NI, A_BY_K, B_BY_K, V, KIND>;
    int bytes = 4 * TF32_STAGES * tf32_source<M, N, A_BY_K, B_BY_K, V>::stage;
    if (KIND == TF32_KEPT)
        bytes += 4 * TF32_LANES * M * N;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    int64_t tiles = (t->g.m + M - 1) / M * ((t->g.n + N - 1) / N);
    dim3 grid((unsigned)tiles, KIND == TF32_ENTRY ? (unsigned)t->g.batch : 1);
    TTI_LAUNCH(l, grid, GEMM_THREADS, bytes, kernel, *t);
}

static inline bool tf32_is_even(const gemm_args *g)
{
    int64_t lda = g->a_k == 1 ? g->a_row : g->a_k, ldb = g->b_col == 1 ? g->b_k : g->b_col;
    bool whole = (g->a_k == 1 || g->m % 4 == 0) && (g->b_col != 1 || g->n % 4 == 0);
    return whole && tti_is_aligned(g->a) && tti_is_aligned(g->b) && lda % 4 == 0 && ldb % 4 == 0 &&
           g->step_a % 4 == 0 && g->step_b % 4 == 0;
}

// Large tiles for rows that lie well; which kernel runs changes no bit.
template <bool A_BY_K, bool B_BY_K>
static inline void tf32_entries(const tt_launch *l, const tf32_args *t)
{
    if (!tf32_is_even(&t->g))
        tf32_run<64, 64, 1, 4, A_BY_K, B_BY_K, 1, TF32_ENTRY>(l, t);
    else if (t->g.m <= 64)
        tf32_run<64, 64, 1, 4, A_BY_K, B_BY_K, 4, TF32_ENTRY>(l, t);
    else
        tf32_run<128, 128, 4, 4, A_BY_K, B_BY_K, 4, TF32_ENTRY>(l, t);
}

// Rows by weights, as they lie or turned: entries of g's batch are its strands.
static inline void tf32_rows_launch(const tt_launch *l, const tf32_args *t)
{
    if (t->g.b_col != 1)
        tf32_entries<true, true>(l, t);
    else
        tf32_entries<true, false>(l, t);
}

// A weight's gradient: lanes as entries of a batch.
static inline void tf32_lanes_launch(const tt_launch *l, const tf32_args *t)
{
    tf32_entries<false, false>(l, t);
}

// The same with the tree over up to eight lanes.
static inline void tf32_tree_launch(const tt_launch *l, const tf32_args *t)
{
    if (!tf32_is_even(&t->g))
        tf32_run<64, 64, 1, 4, false, false, 1, TF32_KEPT>(l, t);
    else if (t->is_balanced)
        tf32_run<128, 64, 2, 4, false, false, 4, TF32_EIGHT>(l, t);
    else
        tf32_run<64, 64, 1, 4, false, false, 4, TF32_KEPT>(l, t);
}

#endif
