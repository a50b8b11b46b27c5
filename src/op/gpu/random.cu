/*
 * random.cu - TTI_KERNEL_INIT: the first values of a variable, made where it lives. To the bit
 * those of random_cpu.c, which says how they are drawn.
 */
#include "op/gpu/philox.cuh"
#include "op/gpu/vmath.cuh"
#include "op/init.h"

#define THREADS 256

// Four normal numbers of mean 0 and deviation 1 from a counter's words: two pairs.
__device__ static inline void normal_pair(uint32_t r, uint32_t t, float *first, float *second)
{
    float u = ((float)(int32_t)(r >> 8) + 1.0f) * 0x1p-24f; // (0, 1]
    float angle = (float)(int32_t)(t >> 8) * (6.2831853f * 0x1p-24f);
    float radius = sqrtf(-2.0f * tti_log(u));
    *first = radius * tti_cos(angle);
    *second = radius * tti_sin(angle);
}
__device__ static inline void normal_place(uint64_t key, int64_t group, int place, uint32_t number,
                                           float z[4])
{
    tti_random_words r = tti_random_place(key, group, place, 0, number);
    normal_pair(r.w[0], r.w[1], &z[0], &z[1]);
    normal_pair(r.w[2], r.w[3], &z[2], &z[3]);
}

// Where z is beyond two deviations, the first later draw that is not.
__device__ static inline void truncate_place(uint64_t key, int64_t group, int place, float z[4])
{
    for (uint32_t number = 1; number < TTI_INIT_DRAWS; number++) {
        bool far[4], any = false;
        for (int w = 0; w < 4; w++) {
            far[w] = fabsf(z[w]) > 2.0f;
            any |= far[w];
        }
        if (!any)
            return;
        float next[4];
        normal_place(key, group, place, number, next);
        for (int w = 0; w < 4; w++)
            z[w] = far[w] ? next[w] : z[w];
    }
}

// Elements [first, first + count) of the variable. A thread makes the four of one counter.
template <class T>
static __global__ void __launch_bounds__(THREADS)
    draw_all(tti_draw d, uint64_t seed, uint64_t name, int64_t first, int64_t count, T *y)
{
    uint64_t key = tti_random_key(seed, name);
    int64_t base = first / 64, n = ((first + count + 63) / 64 - base) * 16;
    int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t u = (int64_t)blockIdx.x * THREADS + threadIdx.x; u < n; u += stride) {
        int64_t group = base + u / 16;
        int place = (int)(u % 16);
        float z[4] = {0, 0, 0, 0}, b = d.b;
        bool is_drawn = d.kind != TT_INIT_CONSTANT;
        if (d.kind == TT_INIT_UNIFORM) {
            tti_random_words r = tti_random_place(key, group, place, 0, 0);
            for (int w = 0; w < 4; w++)
                z[w] = (float)(int32_t)(r.w[w] >> 8) * 0x1p-24f;
            b = d.b - d.a;
        } else if (is_drawn) {
            normal_place(key, group, place, 0, z);
            if (d.kind == TT_INIT_TRUNCATED_NORMAL)
                truncate_place(key, group, place, z);
        }
        for (int w = 0; w < 4; w++) {
            int64_t at = group * 64 + 16 * w + place - first;
            if (at >= 0 && at < count)
                tti_put(y[at], is_drawn ? fmaf(z[w], b, d.a) : d.a);
        }
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS) fill_all(T value, int64_t count, T *y)
{
    int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride)
        y[i] = value;
}
template <class T> static void fill(const tt_launch *l, T value)
{
    const tt_arg *y = &l->out[0];
    TTI_LAUNCH(l, tti_blocks(l, y->count, THREADS), THREADS, 0, (fill_all<T>), value, y->count,
               (T *)y->data);
}

static tt_status init(const tt_launch *l)
{
    const tti_init_attr *t = (const tti_init_attr *)l->attr;
    const tt_arg *y = &l->out[0];
    tti_draw d = tti_draw_of(&t->init, &t->shape);
    double a = t->init.kind == TT_INIT_ZEROS ? 0 : t->init.a;
    bool is_float = y->dtype == TT_F32 || y->dtype == TT_BF16 || y->dtype == TT_F16;
    if (!is_float && d.kind != TT_INIT_CONSTANT)
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED,
                       "variable: random initial values on GPUs must be f32, bf16 or f16");
    if (y->count == 0)
        return TT_OK;
    TTI_FLOATS(y->dtype, T, {
        int64_t threads = (y->count / 64 + 2) * 16;
        TTI_LAUNCH(l, tti_blocks(l, threads, THREADS), THREADS, 0, (draw_all<T>), d, t->seed,
                   t->key, t->first, y->count, (T *)y->data);
    })
    if (y->dtype == TT_F64)
        fill<double>(l, a);
    else if (y->dtype == TT_I32)
        fill<int32_t>(l, (int32_t)a);
    else if (y->dtype == TT_I64)
        fill<int64_t>(l, (int64_t)a);
    else if (!is_float)
        fill<uint8_t>(l, y->dtype == TT_BOOL ? a != 0 : (uint8_t)a);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_random[] = {
    TTI_ROW_FORM_TYPES(TTI_KERNEL_INIT, init, TT_TYPES_FLOAT & ~(1u << TT_F64)),
    TTI_ROWS_END,
};
