/*
 * gemm_tile.h - the micro-kernel of products, and packing.
 *
 * A tile of C, h rows by nv vectors of 16 columns, stays in registers while k runs: per k one load
 * of nv vectors of B and h broadcasts of A feed h * nv fused multiply-adds. Every element is one
 * chain over k ascending from zero. A chain may be cut: the tile is then kept in memory and loaded
 * again, which changes no bit (+ 0 at the store only turns -0 into 0, and so does the end).
 *
 * k may run over several lanes. Each lane is a chain of its own; at its end the merges of
 * tt_lanes happen in registers against the slots, the stack of pending sums.
 */
#ifndef TUTTI_OP_GEMM_TILE_H
#define TUTTI_OP_GEMM_TILE_H

#include "op/gemm.h"
#include "op/lanes.h"
#include "op/simd.h"
#include <stdbool.h>

#if defined(TTI_SET_AVX512)
#define GEMM_MR TTI_GEMM_MR_AVX512
#define GEMM_NV TTI_GEMM_NV_AVX512
#elif defined(TTI_SET_AVX2)
#define GEMM_MR TTI_GEMM_MR_AVX2
#define GEMM_NV TTI_GEMM_NV_AVX2
#else
#define GEMM_MR TTI_GEMM_MR_PLAIN
#define GEMM_NV TTI_GEMM_NV_PLAIN
#endif
#define GEMM_NR (16 * GEMM_NV) // columns of a panel

// A run of k over whole lanes, or over a piece of one, and where its tile of C lives.
typedef struct gemm_run {
    const int64_t *bound; // lane i ends before k = bound[i + 1] * per
    const uint8_t *merges;
    int64_t per;
    int lane, n_lanes; // lanes of the run
    int64_t k0, k1;
    int depth;       // pending sums before the run
    bool has_begun;  // the first lane's chain goes on from slot[depth]
    bool is_cut;     // the last lane's chain will go on in the next run
    int64_t ld_slot; // row stride of slots 0 to n_out - 1 is ld_out, of the others this
    int64_t ld_out;
    int n_out;
    real *slot[TTI_LANE_DEPTH];
} gemm_run;

#define GEMM_INLINE static inline __attribute__((always_inline))
#define GEMM_UNROLL _Pragma("GCC unroll 16")

/*
 * acc += a b, in place: left to itself the compiler lets accumulators change registers from step to
 * step of an unrolled loop and ends up spilling some of them.
 */
#if defined(TTI_SET_AVX512)
#define GEMM_FMA(acc, a, b) \
    __asm__("vfmadd231ps %2, %1, %0" : "+v"((acc).v) : "v"((a).v), "v"((b).v))
#elif defined(TTI_SET_AVX2)
#define GEMM_FMA(acc, a, b)                                                        \
    __asm__("vfmadd231ps %2, %1, %0" : "+x"((acc).lo) : "x"((a).lo), "x"((b).lo)); \
    __asm__("vfmadd231ps %2, %1, %0" : "+x"((acc).hi) : "x"((a).hi), "x"((b).hi))
#else
#define GEMM_FMA(acc, a, b) ((acc) = v16_fma((a), (b), (acc)))
#endif

// One step of k. With rows, A is read along its rows: row i is a[i / 3] + (i % 3) as.
#define GEMM_STEP(kk)                                                                           \
    do {                                                                                        \
        v16 bv[GEMM_NV];                                                                        \
        GEMM_UNROLL for (int j = 0; j < nv; j++) bv[j] = v16_load(b + j * 16);                  \
        GEMM_UNROLL for (int i = 0; i < h; i++)                                                 \
        {                                                                                       \
            v16 av = v16_set1(                                                                  \
                rows ? *(const real *)(pa[i / 3] + (i % 3) * as + (kk) * (int64_t)sizeof(real)) \
                     : ((const real *)pa[0])[i]);                                               \
            GEMM_UNROLL for (int j = 0; j < nv; j++)                                            \
            {                                                                                   \
                GEMM_FMA(acc[i][j], av, bv[j]);                                                 \
            }                                                                                   \
        }                                                                                       \
        b += bs;                                                                                \
        if (!rows)                                                                              \
            pa[0] += as;                                                                        \
    } while (0)

/*
 * The tile of h rows (constant) by nv vectors (constant). as and bs are strides in elements: with
 * rows of A's rows, without of A's k; bs of B's k.
 */
GEMM_INLINE void gemm_tile(const int h, const int nv, const bool rows, const gemm_run *g,
                           const real *a, int64_t as, const real *b, int64_t bs)
{
    v16 acc[GEMM_MR][GEMM_NV];
    const char *pa[(GEMM_MR + 2) / 3];
    as *= (int64_t)sizeof(real);
    GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) pa[i] = (const char *)a + 3 * i * as;

    int depth = g->depth;
    int64_t k = g->k0;
    for (int lane = 0; lane < g->n_lanes; lane++) {
        int64_t end = g->bound[g->lane + lane + 1] * g->per;
        bool last = lane == g->n_lanes - 1;
        if (last && g->is_cut)
            end = g->k1;
        if (lane == 0 && g->has_begun) {
            const real *c = g->slot[depth];
            int64_t ld = depth < g->n_out ? g->ld_out : g->ld_slot;
            GEMM_UNROLL for (int i = 0; i < h; i++, c += ld)
                GEMM_UNROLL for (int j = 0; j < nv; j++) acc[i][j] = v16_load(c + j * 16);
        } else {
            GEMM_UNROLL for (int i = 0; i < h; i++) GEMM_UNROLL for (int j = 0; j < nv; j++)
                acc[i][j] = v16_zero();
        }
        for (; k + 4 <= end; k += 4) {
            GEMM_STEP(0);
            GEMM_STEP(1);
            GEMM_STEP(2);
            GEMM_STEP(3);
            if (rows)
                GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) pa[i] += 4 * sizeof(real);
        }
        for (; k < end; k++) {
            GEMM_STEP(0);
            if (rows)
                GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) pa[i] += sizeof(real);
        }
        int merges = last && g->is_cut ? 0 : g->merges[g->lane + lane];
        for (; merges > 0; merges--) { // lower lanes + this
            depth--;
            const real *c = g->slot[depth];
            int64_t ld = depth < g->n_out ? g->ld_out : g->ld_slot;
            GEMM_UNROLL for (int i = 0; i < h; i++, c += ld)
                GEMM_UNROLL for (int j = 0; j < nv; j++) acc[i][j] =
                    v16_add(v16_load(c + j * 16), acc[i][j]);
        }
        real *c = g->slot[depth];
        int64_t ld = depth < g->n_out ? g->ld_out : g->ld_slot;
        GEMM_UNROLL for (int i = 0; i < h; i++, c += ld) GEMM_UNROLL for (int j = 0; j < nv; j++)
            v16_store(c + j * 16, v16_end(acc[i][j]));
        depth++;
    }
}

typedef void (*gemm_tile_fn)(const gemm_run *g, const real *a, int64_t as, const real *b,
                             int64_t bs);

// One function per height, width and way to read A.
#define GEMM_ONE(h, nv, rows)                                                               \
    static void gemm_tile_##h##_##nv##_##rows(const gemm_run *g, const real *a, int64_t as, \
                                              const real *b, int64_t bs)                    \
    {                                                                                       \
        gemm_tile(h, nv, rows, g, a, as, b, bs);                                            \
    }
#define GEMM_HEIGHTS_4(X, nv, r) X(1, nv, r) X(2, nv, r) X(3, nv, r) X(4, nv, r)
#define GEMM_HEIGHTS_6(X, nv, r) GEMM_HEIGHTS_4(X, nv, r) X(5, nv, r) X(6, nv, r)
#define GEMM_HEIGHTS_14(X, nv, r) \
    GEMM_HEIGHTS_6(X, nv, r)      \
    X(7, nv, r)                   \
    X(8, nv, r) X(9, nv, r) X(10, nv, r) X(11, nv, r) X(12, nv, r) X(13, nv, r) X(14, nv, r)
#define GEMM_NAME(h, nv, rows) gemm_tile_##h##_##nv##_##rows,
#if GEMM_MR == 14
#define GEMM_HEIGHTS GEMM_HEIGHTS_14
#elif GEMM_MR == 6
#define GEMM_HEIGHTS GEMM_HEIGHTS_6
#else
#define GEMM_HEIGHTS GEMM_HEIGHTS_4
#endif
GEMM_HEIGHTS(GEMM_ONE, 1, 0)
GEMM_HEIGHTS(GEMM_ONE, 1, 1)
#if GEMM_NV == 2
GEMM_HEIGHTS(GEMM_ONE, 2, 0)
GEMM_HEIGHTS(GEMM_ONE, 2, 1)
#endif

// gemm_tile_of[vectors - 1][A by rows][height - 1]
static const gemm_tile_fn gemm_tile_of[GEMM_NV][2][GEMM_MR] = {
    {{GEMM_HEIGHTS(GEMM_NAME, 1, 0)}, {GEMM_HEIGHTS(GEMM_NAME, 1, 1)}},
#if GEMM_NV == 2
    {{GEMM_HEIGHTS(GEMM_NAME, 2, 0)}, {GEMM_HEIGHTS(GEMM_NAME, 2, 1)}},
#endif
};

// ---- packing ---------------------------------------------------------------------------------

/*
 * Transposes 16 rows of 16 numbers: row i of x (stride ld) becomes column i of y (stride ldy, whole
 * vectors stored in order, so a ldy below 16 keeps the first ldy columns). Rows from nr and columns
 * from nc of x on are not read and count as zeros; only nc rows of y are written.
 */
static inline void gemm_transpose(const real *x, int64_t ld, int nr, int nc, real *y, int64_t ldy)
{
#if defined(TTI_SET_AVX512)
    __m512 r[16], t[16];
    __mmask16 m = v16_tail(nc);
    for (int i = 0; i < 16; i++)
        r[i] = i < nr ? _mm512_maskz_loadu_ps(m, x + i * ld) : _mm512_setzero_ps();
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            __m512d p = _mm512_castps_pd(t[i + j]), q = _mm512_castps_pd(t[i + j + 2]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(p, q));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p, q));
        }
    for (int i = 0; i < 4; i++) { // columns i, i + 4, i + 8, i + 12 of all rows
        t[0] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[1] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[2] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[3] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
        r[i] = _mm512_shuffle_f32x4(t[0], t[2], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[0], t[2], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[1], t[3], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[1], t[3], 0xdd);
    }
    for (int k = 0; k < nc; k++)
        _mm512_storeu_ps(y + k * ldy, r[k]);
#elif defined(TTI_SET_AVX2)
    __m256i m[2] = {v16_tail8(nc), v16_tail8(nc - 8)};
    __m256 c[2][16]; // half the rows, transposed: column k of x
    for (int half = 0; half < 2; half++)
        for (int side = 0; side < 2; side++) {
            __m256 r[8], t[8];
            for (int i = 0; i < 8; i++)
                r[i] = half * 8 + i < nr && side * 8 < nc
                           ? _mm256_maskload_ps(x + (half * 8 + i) * ld + side * 8, m[side])
                           : _mm256_setzero_ps();
            for (int i = 0; i < 8; i += 2) {
                t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
                t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
            }
            for (int i = 0; i < 8; i += 4)
                for (int j = 0; j < 2; j++) {
                    r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
                    r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
                }
            for (int i = 0; i < 4; i++) {
                c[half][side * 8 + i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
                c[half][side * 8 + i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
            }
        }
    for (int k = 0; k < nc; k++) {
        _mm256_storeu_ps(y + k * ldy, c[0][k]);
        _mm256_storeu_ps(y + k * ldy + 8, c[1][k]);
    }
#else
    for (int k = 0; k < nc; k++)
        for (int i = 0; i < 16; i++)
            y[k * ldy + i] = i < nr ? x[i * ld + k] : 0;
#endif
}

/*
 * h rows of A for k of them, as the tile reads them: y[k * h + i]. trans: x is A's column k at
 * x + k * ld, else its row i at x + i * ld. Writes up to 16 elements past the end of y.
 */
static inline void gemm_pack_a(const real *x, int64_t ld, bool trans, int h, int64_t k, real *y)
{
    if (trans) {
        for (int64_t i = 0; i < k; i++)
            v16_store(y + i * h, v16_load_n(x + i * ld, h));
        return;
    }
    int64_t i = 0;
    for (; i + 16 <= k; i += 16)
        gemm_transpose(x + i, ld, h, 16, y + i * h, h);
    if (i < k)
        gemm_transpose(x + i, ld, h, (int)(k - i), y + i * h, h);
}

/*
 * A panel of n columns of B (up to nv vectors), zeros after them: y[k * 16 nv + j]. trans: x is B's
 * column j at x + j * ld, else its row k at x + k * ld.
 */
static inline void gemm_pack_b(const real *x, int64_t ld, bool trans, int n, int nv, int64_t k,
                               real *y)
{
    int64_t w = 16 * nv;
    if (!trans) {
        for (int64_t i = 0; i < k; i++)
            for (int j = 0; j < nv; j++) {
                int left = n - j * 16;
                const real *p = x + i * ld + j * 16;
                v16_store(y + i * w + j * 16, left >= 16 ? v16_load(p) : v16_load_n(p, left));
            }
        return;
    }
    for (int j = 0; j < nv; j++) {
        int left = n - j * 16 < 16 ? n - j * 16 : 16;
        for (int64_t i = 0; i < k; i += 16)
            gemm_transpose(x + j * 16 * ld + i, ld, left, k - i < 16 ? (int)(k - i) : 16,
                           y + i * w + j * 16, w);
    }
}

#endif
