/*
 * tf32_chunk.cuh - sums of 32 products of f32 on the matrix units, with the accuracy of f32: what
 * products (gemm_tf32.cuh) and convolutions (conv_tf32.cu) are made of.
 *
 * A number is cut into two of TF32: big, its upper 11 bits, and small, the next 11. A product is
 * small big + big small + big big; what is left out is 2^-22 of it. The matrix units add with less
 * care than IEEE, so they sum 32 terms at most: a chunk, from zero. Chunks are added in f32 from
 * the first to the last. Where a chunk's sum is not finite, it is computed again as a chain of fma,
 * so that infinities mean what they mean elsewhere.
 */
#ifndef TUTTI_OP_TF32_CHUNK_CUH
#define TUTTI_OP_TF32_CHUNK_CUH

#include "cuda/async.cuh"
#include "op/gpu/act.cuh"
#include "op/gpu/tf32_fits.h"

#define TF32_K      32 // terms of a chunk: a constant of the arithmetic
#define TF32_STAGES 3

// ---- numbers ---------------------------------------------------------------------------------

__device__ static inline float tf32_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

__device__ static inline uint32_t tf32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

// Both parts, as the matrix units take them: they leave out the lower 13 bits, which matter in big
// alone, as small is what it lacks; of the 12 bits that small may have they leave out the last.
__device__ static inline void tf32_cut(float x, uint32_t *big, uint32_t *small_)
{
    *big = (tf32_bits(x) + 0x1000u) & 0xffffe000u;
    *small_ = tf32_bits(x - tf32_float(*big));
}

#ifdef __CUDA_ARCH__
__device__ static inline void tf32_mma(float *c, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// ---- tiles in shared memory ------------------------------------------------------------------

// A tile of x(r, k), R by 32: as [r][k] where k is contiguous in memory, else as [k][r]. Either way
// the threads of a warp that read a fragment hit different banks.
template <int R, bool BY_K> struct tf32_tile {
    static const int step = BY_K ? TF32_K + 4 : R + 8;
    static const int floats = BY_K ? R * (TF32_K + 4) : TF32_K * (R + 8);

    __device__ static inline float get(const float *t, int r, int k)
    {
        return BY_K ? t[r * step + k] : t[k * step + r];
    }
};

// n of V floats, the others 0; done once the copies of its group are waited for.
template <int V> __device__ static inline void tf32_copy(float *to, const float *from, int n)
{
    tti_async_bytes<4 * V, V == 4>(to, from, 4 * n);
}

__device__ static inline int tf32_clip(int64_t n, int most)
{
    return n < 0 ? 0 : n < most ? (int)n : most;
}

/*
 * Copies tiles of R rows from row on, of rows, by 32 terms. ld: from one row, or one k, to the
 * next; below TTI_TF32_LD, so that places within a tile, of 128 rows at most, fit 32 bits. What a
 * thread copies lies at the same places of every tile, which begin() finds. Rows past the last are
 * copies of it: nobody reads their sums.
 */
template <int R, bool BY_K, int V, int THREADS> struct tf32_copier {
    static const int inner = (BY_K ? TF32_K : R) / V, apart = THREADS / inner,
                     each = R * TF32_K / V / THREADS;
    static_assert(THREADS % inner == 0, "a thread has the same columns of all its rows");
    static_assert(TTI_TF32_LD * (BY_K ? R : TF32_K) <= (int64_t)1 << 31, "places fit 32 bits");
    const float *x;
    int64_t step; // from one term to the next
    int at[each]; // floats from the tile's first term

    __device__ inline void begin(const float *from, int64_t row, int64_t rows, int64_t ld)
    {
        const int o = (int)threadIdx.x / inner, v = (int)threadIdx.x % inner * V;
        x = from + (BY_K ? row * ld : row);
        step = BY_K ? 1 : ld;
#pragma unroll
        for (int i = 0; i < each; i++) {
            int r = BY_K ? o + i * apart : v;
            r = row + r < rows ? r : (int)(rows - row) - (BY_K ? 1 : V);
            at[i] = BY_K ? r * (int)ld + v : (o + i * apart) * (int)ld + r;
        }
    }

    // Terms from k0 on; those from k1 on are zero.
    __device__ inline void copy(float *to, int64_t k0, int64_t k1) const
    {
        const int o = (int)threadIdx.x / inner, v = (int)threadIdx.x % inner * V;
        const int left = (int)(k1 - k0 < TF32_K ? k1 - k0 : TF32_K);
        const float *from = x + k0 * step;
        float *at_to = to + o * tf32_tile<R, BY_K>::step + v;
#pragma unroll
        for (int i = 0; i < each; i++) {
            const int n = BY_K ? tf32_clip(left - v, V) : o + i * apart < left ? V : 0;
            tf32_copy<V>(at_to + i * apart * tf32_tile<R, BY_K>::step, n > 0 ? from + at[i] : x, n);
        }
    }
};

// ---- a chunk ---------------------------------------------------------------------------------

// Where number e of a thread's four in tile i, or j, of a warp is.
__device__ static inline int tf32_row(int lane, int i, int e)
{
    return 16 * i + lane / 4 + e % 4 / 2 * 8;
}

__device__ static inline int tf32_col(int lane, int j, int e)
{
    return 8 * j + lane % 4 * 2 + e % 2;
}

// One element's chunk as a chain of fma.
template <class A, class B>
__device__ static inline float tf32_chain(const float *as, const float *bs, int row, int col)
{
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < TF32_K; k++)
        sum = fmaf(A::get(as, row, k), B::get(bs, col, k), sum);
    return sum;
}

// Adds a chunk to a warp's sums at (m, n), MI x NI tiles of 16 x 8.
template <class A, class B, int MI, int NI>
__device__ static inline void tf32_chunk(const float *as, const float *bs, int m, int n,
                                         float all[MI][NI][4])
{
    const int lane = (int)threadIdx.x % 32;
    float c[MI][NI][4] = {};
#ifdef __CUDA_ARCH__
    const int r = lane / 4, q = lane % 4;
#pragma unroll
    for (int k = 0; k < TF32_K; k += 8) {
        uint32_t ab[MI][4], as_[MI][4], bb[NI][2], bs_[NI][2];
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                tf32_cut(A::get(as, m + 16 * i + r + e % 2 * 8, k + q + e / 2 * 4), &ab[i][e],
                         &as_[i][e]);
#pragma unroll
        for (int j = 0; j < NI; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                tf32_cut(B::get(bs, n + 8 * j + r, k + q + e * 4), &bb[j][e], &bs_[j][e]);
#pragma unroll
        for (int e = 0; e < 3 * MI * NI; e++) { // those that wait for each other far apart
            int of = e / (MI * NI), i = e / NI % MI, j = e % NI;
            tf32_mma(c[i][j], of == 0 ? as_[i] : ab[i], of == 1 ? bs_[j] : bb[j]);
        }
    }
#endif
    float poison = 0.0f; // NaN if a sum is not finite
#pragma unroll
    for (int e = 0; e < MI * NI * 4; e++) {
        float *sum = &c[e / 4 / NI][e / 4 % NI][e % 4];
#ifndef __CUDA_ARCH__
        int row = m + tf32_row(lane, e / 4 / NI, e), col = n + tf32_col(lane, e / 4 % NI, e);
        *sum = tf32_chain<A, B>(as, bs, row, col); // the emulation's units
#endif
        poison = fmaf(*sum, 0.0f, poison);
    }
    if (poison != 0.0f) {
#pragma unroll
        for (int e = 0; e < MI * NI * 4; e++) {
            float *sum = &c[e / 4 / NI][e / 4 % NI][e % 4];
            if (!(fabsf(*sum) <= 3.402823466e38f))
                *sum = tf32_chain<A, B>(as, bs, m + tf32_row(lane, e / 4 / NI, e),
                                        n + tf32_col(lane, e / 4 % NI, e));
        }
    }
#pragma unroll
    for (int e = 0; e < MI * NI * 4; e++)
        all[e / 4 / NI][e / 4 % NI][e % 4] =
            all[e / 4 / NI][e / 4 % NI][e % 4] + c[e / 4 / NI][e / 4 % NI][e % 4];
}

#endif
