/*
 * gemm_pack.h - copies of A and B in the order in which the micro-kernel reads them.
 */
#ifndef TUTTI_OP_GEMM_PACK_H
#define TUTTI_OP_GEMM_PACK_H

#include "op/cpu/gemm_tile.h"
#include "op/cpu/half.h"

/*
 * Transposes up to 16 rows of 16 numbers: row i of x (stride ld) becomes column i of y (stride
 * ldy). Whole vectors are stored in order, so a ldy below 16 keeps the first ldy columns. Columns
 * of y from nr on hold copies of another.
 */
static inline void gemm_turn(const real *x, int64_t ld, int nr, real *y, int64_t ldy)
{
#define GEMM_ROW(i) (x + ((i) < nr ? (i) : nr - 1) * ld)
#if defined(TTI_SET_AVX512)
    __m512 r[16], t[16];
    GEMM_UNROLL for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(GEMM_ROW(i));
    GEMM_UNROLL for (int i = 0; i < 16; i += 2)
    {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    GEMM_UNROLL for (int i = 0; i < 16; i += 4) GEMM_UNROLL for (int j = 0; j < 2; j++)
    {
        __m512d p = _mm512_castps_pd(t[i + j]), q = _mm512_castps_pd(t[i + j + 2]);
        r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(p, q));
        r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p, q));
    }
    GEMM_UNROLL for (int i = 0; i < 4; i++) // columns i, i + 4, i + 8, i + 12 of all rows
    {
        t[0] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[1] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[2] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[3] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
        r[i] = _mm512_shuffle_f32x4(t[0], t[2], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[0], t[2], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[1], t[3], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[1], t[3], 0xdd);
    }
    GEMM_UNROLL for (int k = 0; k < 16; k++) _mm512_storeu_ps(y + k * ldy, r[k]);
#elif defined(TTI_SET_AVX2)
    __m256 r[8], t[8];
    GEMM_UNROLL for (int k = 0; k < 16; k += 8) GEMM_UNROLL for (int row = 0; row < 16; row += 8)
    { // by quarters; the right half of a row of y is stored after the left
        GEMM_UNROLL for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(GEMM_ROW(row + i) + k);
        GEMM_UNROLL for (int i = 0; i < 8; i += 2)
        {
            t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        GEMM_UNROLL for (int i = 0; i < 8; i += 4) GEMM_UNROLL for (int j = 0; j < 2; j++)
        {
            r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
            r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
        }
        GEMM_UNROLL for (int i = 0; i < 4; i++)
        {
            t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
            t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
        }
        if (row < ldy)
            GEMM_UNROLL for (int i = 0; i < 8; i++) _mm256_storeu_ps(y + (k + i) * ldy + row, t[i]);
    }
#else
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 16 && i < ldy; i++)
            y[k * ldy + i] = GEMM_ROW(i)[k];
#endif
#undef GEMM_ROW
}

// The same for nc columns of x, any number: nc rows of y.
static inline void gemm_turn_all(const real *x, int64_t ld, int nr, int64_t nc, real *y,
                                 int64_t ldy)
{
    int64_t k = 0;
    for (; k + 16 <= nc; k += 16)
        gemm_turn(x + k, ld, nr, y + k * ldy, ldy);
    for (; k < nc; k++)
        for (int i = 0; i < 16 && i < ldy; i++)
            y[k * ldy + i] = x[(i < nr ? i : nr - 1) * ld + k];
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
    gemm_turn_all(x, ld, h, k, y, h);
}

/*
 * A panel of n columns of B (up to nv vectors; what follows them is not used): y[k * 16 nv + j].
 * trans: x is B's column j at x + j * ld, else its row k at x + k * ld.
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
        gemm_turn_all(x + j * 16 * ld, ld, left, k, y + j * 16, w);
    }
}

// ---- the same from bf16 and f16 ---------------------------------------------------------------

static inline void gemm_widen(const uint16_t *x, tt_dtype type, real *y, int64_t n)
{
    if (type == TT_BF16)
        tti_widen_bf16(x, y, n);
    else
        tti_widen_f16(x, y, n);
}

// gemm_turn_all() by pieces that stay near.
#define GEMM_PIECE 64
static inline void gemm_turn_half(const uint16_t *x, tt_dtype type, int64_t ld, int nr, int64_t nc,
                                  real *y, int64_t ldy)
{
    real wide[16 * GEMM_PIECE];
    for (int64_t k = 0; k < nc; k += GEMM_PIECE) {
        int64_t n = nc - k < GEMM_PIECE ? nc - k : GEMM_PIECE;
        for (int i = 0; i < nr; i++)
            gemm_widen(x + i * ld + k, type, wide + i * GEMM_PIECE, n);
        gemm_turn_all(wide, GEMM_PIECE, nr, n, y + k * ldy, ldy);
    }
}

static inline void gemm_pack_half_a(const uint16_t *x, tt_dtype type, int64_t ld, bool trans, int h,
                                    int64_t k, real *y)
{
    if (!trans) {
        gemm_turn_half(x, type, ld, h, k, y, h);
        return;
    }
    for (int64_t i = 0; i < k; i++)
        gemm_widen(x + i * ld, type, y + i * h, h);
}

static inline void gemm_pack_half_b(const uint16_t *x, tt_dtype type, int64_t ld, bool trans, int n,
                                    int nv, int64_t k, real *y)
{
    int64_t w = 16 * nv;
    for (int64_t i = 0; !trans && i < k; i++) {
        gemm_widen(x + i * ld, type, y + i * w, n);
        for (int64_t j = n; j < w; j++)
            y[i * w + j] = 0;
    }
    for (int j = 0; trans && j < nv; j++) {
        int left = n - j * 16 < 16 ? n - j * 16 : 16;
        gemm_turn_half(x + j * 16 * ld, type, ld, left, k, y + j * 16, w);
    }
}

#endif
