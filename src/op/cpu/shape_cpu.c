/*
 * shape_cpu.c - reshape and transpose. Compiled once per instruction set; see shape.c.
 *
 * A transpose works on tiles that fit the first cache. Within a tile, blocks of V x V elements, V
 * elements being 16 bytes, are turned in registers: interleaving row i with row i + V / 2 is one
 * step of a perfect shuffle, and log2(V) of them transpose the block.
 */
#include "op/cpu/simd.h"
#include "op/shape.h"

tt_status TTI_ISA(reshape)(const tt_launch *l)
{
    size_t bytes = tt_dtype_bytes(l->in[0].dtype), at = (size_t)l->begin * bytes;
    if (l->out[0].data != l->in[0].data && l->begin < l->end)
        memcpy((char *)l->out[0].data + at, (const char *)l->in[0].data + at,
               (size_t)(l->end - l->begin) * bytes);
    return TT_OK;
}

typedef uint8_t x8 __attribute__((vector_size(16)));
typedef uint16_t x16 __attribute__((vector_size(16)));
typedef uint32_t x32 __attribute__((vector_size(16)));
typedef uint64_t x64 __attribute__((vector_size(16)));
#define LOW_x8(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_x8(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_x16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_x16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_x32(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_x32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_x64(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define HIGH_x64(a, b) __builtin_shufflevector(a, b, 1, 3)

/*
 * y[j * ys + i] = x[i * xs + j] for i < n, j < m: whole blocks by registers, the rest one by one.
 */
#define DEFINE_TILE(vec, type, V)                                                                \
    static void tile_##vec(type *y, int64_t ys, const type *x, int64_t xs, int64_t n, int64_t m) \
    {                                                                                            \
        int64_t nv = n - n % V, mv = m - m % V;                                                  \
        for (int64_t i = 0; i < nv; i += V) {                                                    \
            for (int64_t j = 0; j < mv; j += V) {                                                \
                vec r[V], t[V];                                                                  \
                for (int k = 0; k < V; k++)                                                      \
                    memcpy(&r[k], x + (i + k) * xs + j, 16);                                     \
                for (int s = 1; s < V; s *= 2) {                                                 \
                    for (int k = 0; k < V / 2; k++) {                                            \
                        t[2 * k] = LOW_##vec(r[k], r[k + V / 2]);                                \
                        t[2 * k + 1] = HIGH_##vec(r[k], r[k + V / 2]);                           \
                    }                                                                            \
                    for (int k = 0; k < V; k++)                                                  \
                        r[k] = t[k];                                                             \
                }                                                                                \
                for (int k = 0; k < V; k++)                                                      \
                    memcpy(y + (j + k) * ys + i, &r[k], 16);                                     \
            }                                                                                    \
        }                                                                                        \
        for (int64_t j = 0; j < m; j++)                                                          \
            for (int64_t i = j < mv ? nv : 0; i < n; i++)                                        \
                y[j * ys + i] = x[i * xs + j];                                                   \
    }
DEFINE_TILE(x8, uint8_t, 16)
DEFINE_TILE(x16, uint16_t, 8)
DEFINE_TILE(x32, uint32_t, 4)
DEFINE_TILE(x64, uint64_t, 2)

// Runs that lie together in x and y: unit u is run u of y.
static void copy_runs(const tt_launch *l, const tti_transpose_plan *t, size_t bytes)
{
    int64_t run = t->d[t->rank - 1];
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t rest = u, from = 0;
        for (int i = t->rank - 2; i >= 0; rest /= t->d[i--])
            from += rest % t->d[i] * t->s[i];
        tti_move((char *)l->out[0].data + (size_t)(u * run) * bytes,
                 (const char *)l->in[0].data + (size_t)from * bytes, (size_t)run * bytes);
    }
}

tt_status TTI_ISA(transpose)(const tt_launch *l)
{
    const tti_transpose_plan *t = l->tune;
    size_t bytes = tt_dtype_bytes(l->in[0].dtype);
    int last = t->rank - 1;
    if (t->j == last) {
        copy_runs(l, t, bytes);
        return TT_OK;
    }

    int64_t ys = 1, y_stride[TT_MAX_RANK];
    for (int i = last; i >= 0; ys *= t->d[i--])
        y_stride[i] = ys;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t lt = u % t->l_tiles * t->tile, jt = u / t->l_tiles % t->j_tiles * t->tile;
        int64_t rest = u / t->l_tiles / t->j_tiles;
        int64_t from = lt * t->s[last] + jt, to = jt * y_stride[t->j] + lt;
        for (int i = last - 1; i >= 0; i--) {
            if (i == t->j)
                continue;
            from += rest % t->d[i] * t->s[i];
            to += rest % t->d[i] * y_stride[i];
            rest /= t->d[i];
        }
        int64_t n = t->d[last] - lt < t->tile ? t->d[last] - lt : t->tile;
        int64_t m = t->d[t->j] - jt < t->tile ? t->d[t->j] - jt : t->tile;
        char *y = (char *)l->out[0].data + (size_t)to * bytes;
        const char *x = (const char *)l->in[0].data + (size_t)from * bytes;
        if (bytes == 4)
            tile_x32((uint32_t *)y, y_stride[t->j], (const uint32_t *)x, t->s[last], n, m);
        else if (bytes == 2)
            tile_x16((uint16_t *)y, y_stride[t->j], (const uint16_t *)x, t->s[last], n, m);
        else if (bytes == 8)
            tile_x64((uint64_t *)y, y_stride[t->j], (const uint64_t *)x, t->s[last], n, m);
        else
            tile_x8((uint8_t *)y, y_stride[t->j], (const uint8_t *)x, t->s[last], n, m);
    }
    return TT_OK;
}
