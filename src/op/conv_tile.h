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

#endif
