/*
 * conv_tf32.cu - convolutions of f32 on the matrix units: products whose rows are gathered from
 * images, by chunks of 32 terms (tf32_chunk.cuh).
 *
 * Forward and dx (conv_gather.cuh): a row of A has what an output pixel gathers, in the order of
 * taps and channels; that row of terms is cut into chunks, from its first. dw: terms are the output
 * pixels of a slice, rows of A the entries of x under a tap. A thread copies the same terms of
 * every chunk, or the same columns, so it walks taps or pixels by additions. Tiles and ways of
 * copying change no bit.
 */
#include "cuda/blas.h"
#include "op/gpu/conv_tf32.h"
#include "op/gpu/gemm_tf32.cuh"

#define THREADS GEMM_THREADS
static_assert(TTI_MMA_STEP == TF32_K, "a slice's steps are chunks");

bool tti_conv_tf32_takes(const tti_cuda_device *dev, const tti_conv_dims *d, tt_dtype type)
{
    const bool is_product = d->kh == 1 && d->kw == 1 && d->sh == 1 && d->sw == 1 && d->h == d->oh &&
                            d->w == d->ow; // the library's
    return type == TT_F32 && dev->major >= 8 && !tti_blas_tf32() && !is_product &&
           tti_mma_fits(d) && tti_conv_tf32_fits(d);
}

// ---- forward and dx --------------------------------------------------------------------------

// The terms that a thread copies: tap (u, v) of the phase, channel c; on by a chunk at a time.
struct terms {
    int u, v, c;
    int step_u, step_v, step_c;

    __device__ void begin(int term, int channels, int across)
    {
        u = term / channels / across;
        v = term / channels % across;
        c = term % channels;
        step_u = TF32_K / channels / across;
        step_v = TF32_K / channels % across;
        step_c = TF32_K % channels;
    }
    __device__ void next(int channels, int across)
    {
        c += step_c;
        v += step_v;
        u += step_u;
        if (c >= channels) {
            c -= channels;
            v++;
        }
        if (v >= across) {
            v -= across;
            u++;
        }
    }
};

// Where the source of an output pixel lies at tap 0 of its phase.
struct gathered {
    int64_t at; // number of the first channel
    int row, col;
};

// A tile of M pixels by N channels; copies of A take VA numbers, those of B VB.
template <int M, int N, int MI, int NI, bool IS_DX, int VA, int VB>
static __global__ void __launch_bounds__(THREADS, 2) gather_tf32(tti_conv_gather q)
{
    typedef tf32_tile<M, true> A;
    typedef tf32_tile<N, IS_DX> B;
    const int stage = A::floats + B::floats, inner = TF32_K / VA;
    const int each = M * inner / THREADS, apart = THREADS / inner;
    TTI_SHARED(float, room);
    const int64_t a = (q.phase + blockIdx.z) / q.phase_w, b = (q.phase + blockIdx.z) % q.phase_w;
    const tti_conv_axis ph = tti_conv_axis_of(IS_DX, a, q.out_h, q.d.kh, q.d.sh, q.d.pt);
    const tti_conv_axis pw = tti_conv_axis_of(IS_DX, b, q.out_w, q.d.kw, q.d.sw, q.d.pl);
    const int64_t m0 = (int64_t)blockIdx.x * M, n0 = (int64_t)blockIdx.y * N;
    const int64_t per = ph.n * pw.n, total = q.d.batch * per;
    if (m0 >= total) // of the whole block
        return;
    const int t = (int)threadIdx.x, term = t % inner * VA, c = (int)q.c, across = (int)pw.taps;
    const int down = (int)(across > 0 ? ph.taps : 0), k_all = down * across * c;
    const float *src = (const float *)q.src, *w = (const float *)q.w;
    const int src_h = (int)q.src_h, src_w = (int)q.src_w;
    gathered from[each];
#pragma unroll
    for (int i = 0; i < each; i++) {
        int64_t m = m0 + t / inner + i * apart, in = m % per;
        from[i].row = (int)(in / pw.n * ph.src_step + ph.src);
        from[i].col = (int)(in % pw.n * pw.src_step + pw.src);
        from[i].at = ((m / per * src_h + from[i].row) * src_w + from[i].col) * c;
        if (m >= total)
            from[i].row = INT32_MIN / 2;
    }
    tf32_copier<N, false, VB, THREADS> weights = {};
    if (!IS_DX)
        weights.begin(w, n0, q.n, q.n);
    terms walk = {};
    if (k_all > 0)
        walk.begin(term, c, across);

    auto fill = [&](int into, int k0) {
        float *to_a = room + into * stage, *to_b = to_a + A::floats;
        const int u = IS_DX ? -walk.u : walk.u, v = IS_DX ? -walk.v : walk.v;
        const int64_t off = ((int64_t)u * src_w + v) * c + walk.c;
        const bool is_tap = walk.u < down;
#pragma unroll
        for (int i = 0; i < each; i++) {
            bool in = is_tap && (unsigned)(from[i].row + u) < (unsigned)src_h &&
                      (unsigned)(from[i].col + v) < (unsigned)src_w;
            tf32_copy<VA>(to_a + (t / inner + i * apart) * A::step + term,
                          in ? src + from[i].at + off : src, in ? VA : 0);
        }
        if (IS_DX) { // rows of w are channels of the output: a tap's terms lie in a row
            const int64_t tap = (ph.tap + walk.u * ph.step) * q.d.kw + pw.tap + walk.v * pw.step;
            const float *row = w + tap * q.d.c_in * q.d.c_out + walk.c;
#pragma unroll
            for (int i = 0; i < N * inner / THREADS; i++) {
                int64_t n = n0 + t / inner + i * apart;
                bool in = is_tap && n < q.n;
                tf32_copy<VA>(to_b + (t / inner + i * apart) * B::step + term, in ? row + n * c : w,
                              in ? VA : 0);
            }
        } else {
            weights.copy(to_b, k0, k_all);
        }
        walk.next(c, across);
    };

    const int warp = t / 32, wide = N / (8 * NI), m = warp / wide * 16 * MI,
              n = warp % wide * 8 * NI;
    float all[MI][NI][4] = {};
#pragma unroll
    for (int i = 0; i < TF32_STAGES - 1; i++) {
        if (i * TF32_K < k_all)
            fill(i, i * TF32_K);
        tti_async_group();
    }
    for (int k = 0, used = 0; k < k_all; k += TF32_K) {
        const int next = k + (TF32_STAGES - 1) * TF32_K;
        tti_async_wait<TF32_STAGES - 2>();
        __syncthreads();
        if (next < k_all)
            fill(used == 0 ? TF32_STAGES - 1 : used - 1, next);
        tti_async_group();
        tf32_chunk<A, B, MI, NI>(room + used * stage, room + used * stage + A::floats, m, n, all);
        used = used + 1 < TF32_STAGES ? used + 1 : 0;
    }
    __syncthreads();                             // its tiles are done with
    int64_t *places = (int64_t *)(room + M * N); // where a pixel's outputs begin; -1: there is none
    if (t < M) {
        int64_t o = m0 + t, at = o % per, y = a + at / pw.n * ph.step, x = b + at % pw.n * pw.step;
        places[t] = o < total ? ((o / per * q.out_h + y) * q.out_w + x) * q.n : -1;
    }
    tf32_keep<N, MI, NI>(room, m, n, all);
    __syncthreads();
    const float *bias = (const float *)q.bias;
    for (int e = 4 * t; q.is_plain && e < M * N; e += 4 * THREADS) {
        const int64_t col = n0 + e % N, at = places[e / N] + col;
        if (at < col || col >= q.n)
            continue;
        *(float4 *)((float *)q.y + at) =
            tf32_plain(room + e, true, bias != NULL ? bias + col : NULL, q.act);
    }
    for (int e = t; !q.is_plain && e < M * N; e += THREADS) {
        const int64_t col = n0 + e % N, at = places[e / N] + col;
        if (at < col || col >= q.n)
            continue;
        float z = room[e] + 0.0f;
        if (bias != NULL)
            z = z + bias[col];
        if (q.z != NULL)
            ((float *)q.z)[at] = z;
        ((float *)q.y)[at] = tti_act(q.act, z);
    }
}

template <int M, int N, int MI, int NI, bool IS_DX, int VA, int VB>
static void launch_gather(const tt_launch *l, tti_conv_gather q)
{
    auto kernel = gather_tf32<M, N, MI, NI, IS_DX, VA, VB>;
    const int floats = TF32_STAGES * (tf32_tile<M, true>::floats + tf32_tile<N, IS_DX>::floats);
    const int bytes = 4 * (floats > M * N + 2 * M ? floats : M * N + 2 * M);
    const int64_t m = (q.d.batch * tti_conv_phase_pixels(&q) + M - 1) / M;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    for (; q.phase < q.phase_h * q.phase_w; q.phase += TTI_CONV_PHASES) {
        int64_t left = q.phase_h * q.phase_w - q.phase;
        dim3 grid((unsigned)m, (unsigned)((q.n + N - 1) / N),
                  (unsigned)(left < TTI_CONV_PHASES ? left : TTI_CONV_PHASES));
        TTI_LAUNCH(l, grid, THREADS, bytes, kernel, q);
    }
}

template <bool IS_DX> static void run_even(const tt_launch *l, const tti_conv_gather &q)
{
    const int64_t pixels = q.d.batch * q.out_h * q.out_w;
    if (q.n <= 32)
        launch_gather<128, 32, 1, 4, IS_DX, 4, 4>(l, q);
    else if (pixels * q.n < 64 * 64 * 1024) // few tiles: smaller ones
        launch_gather<64, 64, 1, 4, IS_DX, 4, 4>(l, q);
    else
        launch_gather<128, 64, 2, 4, IS_DX, 4, 4>(l, q);
}

tt_status tti_conv_tf32_run(const tt_launch *l, tti_conv_gather q)
{
    const bool even_c = q.c % 4 == 0 && tti_is_aligned(q.src),
               even_w = (q.is_dx ? q.c : q.n) % 4 == 0 && tti_is_aligned(q.w);
    q.is_plain = q.n % 4 == 0 && q.z == NULL && tti_is_aligned(q.y) &&
                 (q.act == TT_LINEAR || q.act == TT_RELU);
    if (q.d.batch * q.out_h * q.out_w == 0)
        return TT_OK;
    if (even_c && even_w)
        q.is_dx ? run_even<true>(l, q) : run_even<false>(l, q);
    else if (q.is_dx)
        launch_gather<64, 64, 1, 4, true, 1, 1>(l, q);
    else if (even_w)
        launch_gather<64, 64, 1, 4, false, 1, 4>(l, q);
    else
        launch_gather<64, 64, 1, 4, false, 1, 1>(l, q);
    return tti_cuda_launched(l);
}

// ---- dw --------------------------------------------------------------------------------------

// 128 blocks for a lane, but not so short that adding slices takes longer than making them.
tti_dw_rule tti_conv_tf32_rule(const tti_conv_dims *d)
{
    tti_dw_rule r = tti_dw_pixels(d->oh * d->ow, 4 * tti_mma_tiles(d, 64, 64));
    r.least = 256;
    return r;
}

template <int M, int N, int MI, int NI, int VA, int VB>
static __global__ void __launch_bounds__(THREADS, 2) dw_tf32(tti_dw_images g, tti_mma_in q)
{
    typedef tf32_tile<M, false> A;
    typedef tf32_tile<N, false> B;
    const int stage = A::floats + B::floats, inner = M / VA, apart = THREADS / inner,
              each = TF32_K / apart;
    TTI_SHARED(float, room);
    tti_mma_share s;
    if (!tti_mma_share_of<M, N>(g, q, &s)) // of the whole block
        return;
    const int t = (int)threadIdx.x, column = t % inner * VA, first = t / inner;
    tti_mma_walk walk[each];
    tti_mma_tap tap;
#pragma unroll
    for (int i = 0; i < each; i++)
        walk[i].begin(q, s.begin + first + i * apart, TF32_K);
    tap.set(q, s.m0 + column);
    const float *x = (const float *)q.x;
    tf32_copier<N, false, VB, THREADS> dy;
    dy.begin((const float *)q.dy, s.n0, q.c_out, q.c_out);

    auto fill = [&](int into, int step) {
        float *to = room + into * stage;
#pragma unroll
        for (int i = 0; i < each; i++) {
            const int k = first + i * apart;
            bool in = step * TF32_K + k < s.len && tap.is_inside(q, walk[i].row, walk[i].col);
            int64_t at = walk[i].image + (walk[i].row * q.w + walk[i].col) * q.c_in + tap.at;
            tf32_copy<VA>(to + k * A::step + column, in ? x + at : x, in ? VA : 0);
            walk[i].leap(q);
        }
        dy.copy(to + A::floats, s.begin + step * TF32_K, s.begin + s.len);
    };

    const int warp = t / 32, wide = N / (8 * NI), m = warp / wide * 16 * MI,
              n = warp % wide * 8 * NI;
    float all[MI][NI][4] = {};
#pragma unroll
    for (int i = 0; i < TF32_STAGES - 1; i++) {
        if (i < s.steps)
            fill(i, i);
        tti_async_group();
    }
    for (int i = 0, used = 0; i < s.steps; i++) {
        tti_async_wait<TF32_STAGES - 2>();
        __syncthreads();
        if (i + TF32_STAGES - 1 < s.steps)
            fill(used == 0 ? TF32_STAGES - 1 : used - 1, i + TF32_STAGES - 1);
        tti_async_group();
        tf32_chunk<A, B, MI, NI>(room + used * stage, room + used * stage + A::floats, m, n, all);
        used = used + 1 < TF32_STAGES ? used + 1 : 0;
    }
    tti_mma_put<MI, NI, false>(q, s, m, n, all);
}

template <int M, int N, int MI, int NI, int VA, int VB>
static void launch_dw(const tt_launch *l, const tti_conv_dims *d, const tti_dw_images &g,
                      const tti_mma_in &q)
{
    auto kernel = dw_tf32<M, N, MI, NI, VA, VB>;
    const int bytes = 4 * TF32_STAGES * (tf32_tile<M, false>::floats + tf32_tile<N, false>::floats);
    dim3 grid((unsigned)tti_mma_tiles(d, M, N), (unsigned)q.slices, (unsigned)g.n);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    TTI_LAUNCH(l, grid, THREADS, bytes, kernel, g, q);
}

tt_status tti_conv_tf32_dw(const tt_launch *l, const tti_conv_dims *d, const tti_dw_images &g,
                           const tti_mma_in &q)
{
    const bool even_x = d->c_in % 4 == 0 && tti_is_aligned(q.x),
               even_dy = d->c_out % 4 == 0 && tti_is_aligned(q.dy);
    if (even_x && even_dy && tti_mma_tiles(d, 128, 64) * 2 <= tti_mma_tiles(d, 64, 64))
        launch_dw<128, 64, 2, 4, 4, 4>(l, d, g, q);
    else if (even_x && even_dy)
        launch_dw<64, 64, 1, 4, 4, 4>(l, d, g, q);
    else if (even_dy && q.rows <= 32)
        launch_dw<32, 64, 1, 2, 1, 4>(l, d, g, q);
    else if (even_dy)
        launch_dw<64, 64, 1, 4, 1, 4>(l, d, g, q);
    else
        launch_dw<64, 64, 1, 4, 1, 1>(l, d, g, q);
    return tti_cuda_launched(l);
}
