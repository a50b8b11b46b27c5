/*
 * attention_product.h - the product of blocks that attention's kernels on CPUs are made of. All six
 * are one routine, chains():
 *
 *   out[r][*] = chain over k of a(r, k) * b[k][*]     r      k      a      b          out
 *     scores (and dp)                                 key    D      k, v   q', dy     transposed
 *     o, dq                                           D      key    v, k   p, ds      transposed
 *     dk, dv                                          key    query  ds, p  q', dy     as they lie
 */
#ifndef TUTTI_OP_ATTENTION_PRODUCT_H
#define TUTTI_OP_ATTENTION_PRODUCT_H

#include "op/cpu/simd.h"
#include "op/rows.h"

#define UNROLL _Pragma("GCC unroll 8")

// A tile is TILE_R rows by TILE_V vectors. acc += a b is written so that acc stays in its register.
#if defined(TTI_SET_AVX512)
#define TILE_R           6
#define TILE_V           4
#define CHAIN(acc, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"((acc).v) : "v"((a).v), "v"((b).v))
#elif defined(TTI_SET_AVX2)
#define TILE_R 6
#define TILE_V 1
#define CHAIN(acc, a, b)                                                           \
    __asm__("vfmadd231ps %2, %1, %0" : "+x"((acc).lo) : "x"((a).lo), "x"((b).lo)); \
    __asm__("vfmadd231ps %2, %1, %0" : "+x"((acc).hi) : "x"((a).hi), "x"((b).hi))
#else
#define TILE_R           2
#define TILE_V           1
#define CHAIN(acc, a, b) ((acc) = v16_fma((a), (b), (acc)))
#endif

// The product's operands: a(r, k) is a[r * a_row + k * a_k], rows of b and out have 16 nv columns.
typedef struct product {
    const real *a;
    int64_t a_row, a_k;
    const real *b;
    int64_t b_row;
    real *out;
    int64_t out_row;
    int64_t k;
    int go_on; // out holds the first part of the chains
} product;

TTI_INLINE void tile(const product *p, int64_t r, int64_t v, const int rows, const int nv)
{
    v16 acc[TILE_R][TILE_V];
    const real *a = p->a + r * p->a_row, *b = p->b + 16 * v;
    real *out = p->out + r * p->out_row + 16 * v;
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < nv; j++) acc[i][j] =
        p->go_on ? v16_load(out + i * p->out_row + 16 * j) : v16_zero();
    for (int64_t k = 0; k < p->k; k++, a += p->a_k, b += p->b_row) {
        v16 bv[TILE_V];
        UNROLL for (int j = 0; j < nv; j++) bv[j] = v16_load(b + 16 * j);
        UNROLL for (int i = 0; i < rows; i++)
        {
            v16 av = v16_set1(a[i * p->a_row]);
            UNROLL for (int j = 0; j < nv; j++)
            {
                CHAIN(acc[i][j], av, bv[j]);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < nv; j++)
        v16_store(out + i * p->out_row + 16 * j, v16_end(acc[i][j]));
}

TTI_INLINE void strip(const product *p, int64_t rows, int64_t v, const int nv)
{
    int64_t r = 0;
    for (; r + TILE_R <= rows; r += TILE_R)
        tile(p, r, v, TILE_R, nv);
    for (; TILE_R > 2 && r + 2 <= rows; r += 2)
        tile(p, r, v, 2, nv);
    for (; r < rows; r++)
        tile(p, r, v, 1, nv);
}

static void chains(const product *p, int64_t rows, int64_t nv)
{
    int64_t v = 0;
    for (; v + TILE_V <= nv; v += TILE_V)
        strip(p, rows, v, TILE_V);
    for (; TILE_V > 2 && v + 2 <= nv; v += 2)
        strip(p, rows, v, 2);
    for (; TILE_V > 1 && v < nv; v++)
        strip(p, rows, v, 1);
}

#endif
