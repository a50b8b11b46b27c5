/*
 * conv_tile.h - the tile that the CPU kernels of convolutions hold in registers: MR pixels (dw:
 * rows) by NR channels, as tti_conv_tile() and tti_conv_panel() have them. For kernels only.
 */
#ifndef TUTTI_OP_CONV_TILE_H
#define TUTTI_OP_CONV_TILE_H

#if defined(TTI_SET_AVX512)
#define MR 14
#define NV 2
#elif defined(TTI_SET_AVX2)
#define MR 6
#define NV 1
#else
#define MR 4
#define NV 1
#endif
#define NR (16 * NV)

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// EACH_TILE(X) is X(m, nv) for tiles of every size, m pixels by nv vectors. TILE_TABLE(X) is the
// same as an array [NV][MR], where X ends with a comma.
// clang-format off
#if MR == 14
#define TILE_ROW(X, nv) \
    X(1, nv) X(2, nv) X(3, nv) X(4, nv) X(5, nv) X(6, nv) X(7, nv) \
    X(8, nv) X(9, nv) X(10, nv) X(11, nv) X(12, nv) X(13, nv) X(14, nv)
#elif MR == 6
#define TILE_ROW(X, nv) X(1, nv) X(2, nv) X(3, nv) X(4, nv) X(5, nv) X(6, nv)
#else
#define TILE_ROW(X, nv) X(1, nv) X(2, nv) X(3, nv) X(4, nv)
#endif
#if NV == 2
#define EACH_TILE(X)  TILE_ROW(X, 1) TILE_ROW(X, 2)
#define TILE_TABLE(X) {{TILE_ROW(X, 1)}, {TILE_ROW(X, 2)}}
#else
#define EACH_TILE(X)  TILE_ROW(X, 1)
#define TILE_TABLE(X) {{TILE_ROW(X, 1)}}
#endif
// clang-format on

#endif
