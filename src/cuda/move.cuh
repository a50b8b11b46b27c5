/*
 * move.cuh - kernels that copy elements without looking at them: rows of bytes, in the largest
 * units that all addresses and distances are multiples of.
 *
 * Threads of a block are dealt out as columns x rows, so that no element needs a division to find
 * its place. A mover collects up to TTI_PIECES pieces for one launch.
 */
#ifndef TUTTI_CUDA_MOVE_CUH
#define TUTTI_CUDA_MOVE_CUH

#include "cuda/kernel.cuh"

// Bytes of an element.
static inline int tti_item(tt_dtype t)
{
    static const uint8_t bytes[TT_N_DTYPES] = {4, 8, 2, 2, 4, 8, 1, 1};
    return bytes[t];
}

typedef tti_pack<uint32_t> tti_unit16;
// Calls body with T being an unsigned type of so many bytes: 1, 2, 4, 8 or 16.
#define TTI_UNITS(bytes, T, ...) \
    switch (bytes) {             \
    case 16: {                   \
        typedef tti_unit16 T;    \
        __VA_ARGS__              \
    } break;                     \
    case 8: {                    \
        typedef uint64_t T;      \
        __VA_ARGS__              \
    } break;                     \
    case 4: {                    \
        typedef uint32_t T;      \
        __VA_ARGS__              \
    } break;                     \
    case 2: {                    \
        typedef uint16_t T;      \
        __VA_ARGS__              \
    } break;                     \
    default: {                   \
        typedef uint8_t T;       \
        __VA_ARGS__              \
    } break;                     \
    }

// The largest unit that all of what was or'ed into bits (addresses, distances) is a multiple of.
static inline int tti_move_unit(uint64_t bits)
{
    return (bits & 15) == 0 ? 16 : (bits & 7) == 0 ? 8 : (bits & 3) == 0 ? 4 : (bits & 1) ? 1 : 2;
}

// How a grid goes over rows of width items: blocks of 256 threads, columns along x, rows along y.
struct tti_grid {
    dim3 grid, block;
};
static inline tti_grid tti_grid_for(const tt_launch *l, int64_t rows, int64_t width)
{
    int64_t tx = 256;
    while (tx > 32 && (width + tx - 1) / tx * tx - width > width / 8)
        tx /= 2;
    while (tx > 1 && tx / 2 >= width)
        tx /= 2;
    int64_t ty = 256 / tx, most = (int64_t)tti_device_of(l)->sms * 16;
    int64_t gx = (width + 4 * tx - 1) / (4 * tx), gy = (rows + ty - 1) / ty;
    gx = gx < 1 ? 1 : gx < most ? gx : most;
    most = most / gx < 1 ? 1 : most / gx < 65535 ? most / gx : 65535;
    gy = gy < 1 ? 1 : gy < most ? gy : most;
    return {dim3((unsigned)gx, (unsigned)gy, 1), dim3((unsigned)tx, (unsigned)ty, 1)};
}

// Rows of width bytes. from NULL: zeros. A row of the source is used repeat times in turn.
struct tti_piece {
    char *to;
    const char *from;
    int64_t to_pitch, from_pitch, width, rows, repeat;
};
#define TTI_PIECES 16
struct tti_pieces {
    tti_piece p[TTI_PIECES];
};

template <class T> __global__ static void tti_move_pieces(tti_pieces m)
{
    const tti_piece &p = m.p[blockIdx.z];
    int64_t width = p.width / (int64_t)sizeof(T), step = (int64_t)gridDim.x * blockDim.x;
    int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; r < p.rows; r += (int64_t)gridDim.y * blockDim.y) {
        T *__restrict__ to = (T *)(p.to + r * p.to_pitch);
        if (p.from == NULL) {
            for (int64_t c = first; c < width; c += step)
                to[c] = T();
            continue;
        }
        int64_t row = r;
        if (p.repeat > 1)
            row = p.rows <= UINT32_MAX ? (uint32_t)r / (uint32_t)p.repeat : r / p.repeat;
        const T *__restrict__ from = (const T *)(p.from + row * p.from_pitch);
#pragma unroll 4
        for (int64_t c = first; c < width; c += step)
            to[c] = from[c];
    }
}

// Pieces of one unit, to be launched together.
struct tti_mover {
    const tt_launch *l;
    int n, unit;
    int64_t rows, width; // most of a piece
    tti_pieces m;
};

static inline void tti_mover_flush(tti_mover *v)
{
    if (v->n > 0) {
        tti_grid g = tti_grid_for(v->l, v->rows, v->width / v->unit);
        g.grid.z = (unsigned)v->n;
        TTI_UNITS(v->unit, T, { TTI_LAUNCH(v->l, g.grid, g.block, 0, (tti_move_pieces<T>), v->m); })
    }
    v->n = 0;
    v->rows = v->width = 0;
}

static inline void tti_mover_add(tti_mover *v, tti_piece p)
{
    if (p.rows == 0 || p.width == 0)
        return;
    if (p.to_pitch == p.width && (p.from_pitch == p.width || p.from == NULL) && p.repeat == 1) {
        p.width *= p.rows;
        p.rows = 1;
    }
    uint64_t at = (uint64_t)(uintptr_t)p.to | (uint64_t)(uintptr_t)p.from, bits = at;
    if (p.rows > 1)
        bits |= (uint64_t)p.to_pitch | (uint64_t)(p.from == NULL ? 0 : p.from_pitch);
    if (p.rows == 1 && (at & 15) == 0 && p.width > 16 && p.width % 16 != 0) { // the rest apart
        tti_piece rest = p;
        int64_t body = p.width & ~(int64_t)15;
        rest.to += body;
        rest.from = p.from == NULL ? NULL : p.from + body;
        rest.width -= body;
        p.width = body;
        tti_mover_add(v, rest);
    }
    int unit = tti_move_unit(bits | (uint64_t)p.width);
    if (v->n == TTI_PIECES || (v->n > 0 && unit != v->unit))
        tti_mover_flush(v);
    v->unit = unit;
    v->rows = p.rows > v->rows ? p.rows : v->rows;
    v->width = p.width > v->width ? p.width : v->width;
    v->m.p[v->n++] = p;
}

#endif
