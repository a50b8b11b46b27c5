/*
 * gemm_tile.h - the micro-kernel of products.
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

#include "op/cpu/lanes.h"
#include "op/cpu/simd.h"
#include "op/gemm.h"
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
    bool is_cut;     // and will go on in the next run; with either the run is of one lane
    int64_t ld_slot; // row stride of slots 0 to n_out - 1 is ld_out, of the others this
    int64_t ld_out;
    int n_out;
    real *slot[TTI_LANE_DEPTH];
    real *last; // where the last lane's sum goes, rows ld_out apart; NULL: its slot
    // To be brought near meanwhile: the next tile of C, and by GEMM_BY_K of B the lines at ahead
    // and ahead + ahead_two, going on by ahead_step for every 4 of k.
    const real *next_c;
    const char *ahead;
    int64_t ahead_two, ahead_step;
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

#define GEMM_GROUPS ((GEMM_MR + 2) / 3)

// Where a tile reads. By rows, row i of A is a[i / 3] + (i % 3) as; else a[0] goes from k to k.
typedef struct gemm_at {
    const char *a[GEMM_GROUPS];
    const real *b;
    const char *ahead;
    int64_t k;
} gemm_at;

// Step s of k after at.
GEMM_INLINE void gemm_step(const int h, const int nv, const int way, v16 (*acc)[GEMM_NV],
                           gemm_at *at, const int s, int64_t as, int64_t bs)
{
    v16 b[GEMM_NV];
    GEMM_UNROLL for (int j = 0; j < nv; j++) b[j] = v16_load(at->b + j * 16);
    GEMM_UNROLL for (int i = 0; i < h; i++)
    {
        const real *a = way == GEMM_BY_ROW ? (const real *)(at->a[i / 3] + (i % 3) * as) + s
                                           : (const real *)at->a[0] + i;
        v16 av = v16_set1(*a);
        GEMM_UNROLL for (int j = 0; j < nv; j++)
        {
            GEMM_FMA(acc[i][j], av, b[j]);
        }
    }
    at->b += bs;
    if (way != GEMM_BY_ROW)
        at->a[0] += as;
}

// The chains go on up to k = end.
GEMM_INLINE void gemm_chain(const int h, const int nv, const int way, v16 (*acc)[GEMM_NV],
                            gemm_at *at, int64_t end, int64_t as, int64_t bs, const gemm_run *g)
{
    for (; at->k + 4 <= end; at->k += 4) {
        if (way == GEMM_BY_K) {
            __builtin_prefetch(at->ahead);
            __builtin_prefetch(at->ahead + g->ahead_two);
            at->ahead += g->ahead_step;
        }
        GEMM_UNROLL for (int s = 0; s < 4; s++) gemm_step(h, nv, way, acc, at, s, as, bs);
        if (way == GEMM_BY_ROW)
            GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) at->a[i] += 4 * sizeof(real);
    }
    for (; at->k < end; at->k++) {
        gemm_step(h, nv, way, acc, at, 0, as, bs);
        if (way == GEMM_BY_ROW)
            GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) at->a[i] += sizeof(real);
    }
}

// expr for every vector [i][j] of the tile.
#define GEMM_EACH(expr) \
    GEMM_UNROLL for (int i = 0; i < h; i++) GEMM_UNROLL for (int j = 0; j < nv; j++) expr

GEMM_INLINE int64_t gemm_ld(const gemm_run *g, int slot)
{
    return slot < g->n_out ? g->ld_out : g->ld_slot;
}

// Lane `lane` of the run, alone: a chain from zero.
GEMM_INLINE void gemm_lane(const int h, const int nv, const int way, v16 (*acc)[GEMM_NV],
                           gemm_at *at, int lane, int64_t as, int64_t bs, const gemm_run *g)
{
    GEMM_EACH(acc[i][j] = v16_zero());
    gemm_chain(h, nv, way, acc, at, g->bound[lane + 1] * g->per, as, bs, g);
}

/*
 * Lanes lane to lane + 3, whose merges are 0, 1, 0 and at least 2, combined in registers: three
 * sets of accumulators, so for tiles of few rows.
 */
GEMM_INLINE void gemm_four(const int h, const int nv, const int way, v16 (*acc)[GEMM_NV],
                           gemm_at *at, int lane, int64_t as, int64_t bs, const gemm_run *g)
{
    v16 p[GEMM_MR][GEMM_NV], q[GEMM_MR][GEMM_NV];
    gemm_lane(h, nv, way, acc, at, lane, as, bs, g);
    gemm_lane(h, nv, way, p, at, lane + 1, as, bs, g);
    GEMM_EACH(acc[i][j] = v16_add(acc[i][j], p[i][j]));
    gemm_lane(h, nv, way, p, at, lane + 2, as, bs, g);
    gemm_lane(h, nv, way, q, at, lane + 3, as, bs, g);
    GEMM_EACH(acc[i][j] = v16_add(acc[i][j], v16_add(p[i][j], q[i][j])));
}

/*
 * The tile of h rows by nv vectors, read in a way; all constants. as and bs are strides in
 * elements, bs of B's k.
 */
GEMM_INLINE void gemm_tile(const int h, const int nv, const int way, const gemm_run *g,
                           const real *a, int64_t as, const real *b, int64_t bs)
{
    v16 acc[GEMM_MR][GEMM_NV];
    gemm_at at = {.b = b, .ahead = g->ahead, .k = g->k0};
    as *= (int64_t)sizeof(real);
    GEMM_UNROLL for (int i = 0; i < (h + 2) / 3; i++) at.a[i] = (const char *)a + 3 * i * as;
    if (g->next_c != NULL)
        GEMM_EACH(__builtin_prefetch(g->next_c + i * g->ld_out + j * 16, 1));

    int depth = g->depth;
    int end = g->lane + g->n_lanes;
    for (int lane = g->lane; lane < end; lane++) {
        const uint8_t *m = g->merges + lane;
        int merges = m[0];
        if (way == GEMM_BY_FOUR && lane + 4 <= end && m[0] == 0 && m[1] == 1 && m[2] == 0 &&
            m[3] >= 2) {
            gemm_four(h, nv, way, acc, &at, lane, as, bs, g);
            merges = m[3] - 2;
            lane += 3;
        } else if (!g->has_begun && !g->is_cut) {
            gemm_lane(h, nv, way, acc, &at, lane, as, bs, g);
        } else { // a piece of the one lane of the run
            GEMM_EACH(acc[i][j] = v16_zero());
            if (g->has_begun) {
                const real *c = g->slot[depth];
                int64_t ld = gemm_ld(g, depth);
                GEMM_EACH(acc[i][j] = v16_load(c + i * ld + j * 16));
            }
            gemm_chain(h, nv, way, acc, &at, g->k1, as, bs, g);
            merges = g->is_cut ? 0 : merges;
        }
        for (; merges > 0; merges--) { // lower lanes + this
            depth--;
            const real *c = g->slot[depth];
            int64_t ld = gemm_ld(g, depth);
            GEMM_EACH(acc[i][j] = v16_add(v16_load(c + i * ld + j * 16), acc[i][j]));
        }
        bool is_last = lane + 1 == end && g->last != NULL;
        real *c = is_last ? g->last : g->slot[depth];
        int64_t ld = is_last ? g->ld_out : gemm_ld(g, depth);
        GEMM_EACH(v16_store(c + i * ld + j * 16, v16_end(acc[i][j])));
        depth++;
    }
}

typedef void (*gemm_tile_fn)(const gemm_run *g, const real *a, int64_t as, const real *b,
                             int64_t bs);

// One function per height, width and way.
#define GEMM_ONE(h, nv, way)                                                               \
    static void gemm_tile_##h##_##nv##_##way(const gemm_run *g, const real *a, int64_t as, \
                                             const real *b, int64_t bs)                    \
    {                                                                                      \
        gemm_tile(h, nv, way, g, a, as, b, bs);                                            \
    }
#define GEMM_NAME(h, nv, way)      gemm_tile_##h##_##nv##_##way,
#define GEMM_HEIGHTS_4(X, nv, way) X(1, nv, way) X(2, nv, way) X(3, nv, way) X(4, nv, way)
#define GEMM_HEIGHTS_6(X, nv, way) GEMM_HEIGHTS_4(X, nv, way) X(5, nv, way) X(6, nv, way)
#define GEMM_HEIGHTS_14(X, nv, way) \
    GEMM_HEIGHTS_6(X, nv, way)      \
    X(7, nv, way)                   \
    X(8, nv, way)                   \
    X(9, nv, way) X(10, nv, way) X(11, nv, way) X(12, nv, way) X(13, nv, way) X(14, nv, way)
#if GEMM_MR == 14
#define GEMM_HEIGHTS GEMM_HEIGHTS_14
#elif GEMM_MR == 6
#define GEMM_HEIGHTS GEMM_HEIGHTS_6
#else
#define GEMM_HEIGHTS GEMM_HEIGHTS_4
#endif

// gemm_tile_of[vectors - 1][way][height - 1]
GEMM_HEIGHTS(GEMM_ONE, 1, 0)
GEMM_HEIGHTS(GEMM_ONE, 1, 1)
#if GEMM_NV == 2
GEMM_HEIGHTS(GEMM_ONE, 2, 0)
GEMM_HEIGHTS(GEMM_ONE, 2, 1)
GEMM_HEIGHTS_4(GEMM_ONE, 1, 2)
GEMM_HEIGHTS_4(GEMM_ONE, 2, 2)
#endif
static const gemm_tile_fn gemm_tile_of[GEMM_NV][3][GEMM_MR] = {
#if GEMM_NV == 1
    {{GEMM_HEIGHTS(GEMM_NAME, 1, 0)}, {GEMM_HEIGHTS(GEMM_NAME, 1, 1)}},
#else
    {{GEMM_HEIGHTS(GEMM_NAME, 1, 0)},
     {GEMM_HEIGHTS(GEMM_NAME, 1, 1)},
     {GEMM_HEIGHTS_4(GEMM_NAME, 1, 2)}},
    {{GEMM_HEIGHTS(GEMM_NAME, 2, 0)},
     {GEMM_HEIGHTS(GEMM_NAME, 2, 1)},
     {GEMM_HEIGHTS_4(GEMM_NAME, 2, 2)}},
#endif
};

#endif
