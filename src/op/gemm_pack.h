/*
 * gemm_pack.h - copies of A and B in the order in which the micro-kernel reads them.
 */
#ifndef TUTTI_OP_GEMM_PACK_H
#define TUTTI_OP_GEMM_PACK_H

#include "op/simd.h"
#include <stdbool.h>

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
