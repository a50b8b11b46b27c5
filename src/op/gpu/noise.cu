/*
 * noise.cu - gaussian_noise: a thread makes the four numbers of a counter, for elements 16 apart.
 */
#include "op/gpu/philox.cuh"
#include "op/gpu/vmath.cuh"
#include "op/noise.h"

#define THREADS 256

// x is [outer, rows, run]; groups is how many groups of a row's stream a run can touch.
struct noise_plan : tti_random_runs {
    uint64_t name;
    float deviation;
};

__device__ static inline void normal_pair(uint32_t r, uint32_t t, float *first, float *second)
{
    float u = ((float)(int32_t)(r >> 8) + 1.0f) * 0x1p-24f; // (0, 1]
    float angle = (float)(int32_t)(t >> 8) * (6.2831853f * 0x1p-24f);
    float radius = sqrtf(-2.0f * tti_log(u));
    *first = radius * tti_cos(angle);
    *second = radius * tti_sin(angle);
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    add_noise(noise_plan p, const tt_step *step, const T *x, T *y)
{
    uint64_t key = tti_random_key(step->seed, p.name);
    int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t u = (int64_t)blockIdx.x * THREADS + threadIdx.x; u < p.units; u += stride) {
        int64_t unit = u / 16, run = unit / p.groups, outer = run / p.rows;
        int place = (int)(u % 16);
        int64_t row = run - outer * p.rows;
        int64_t from = outer * p.run, to = from + p.run; // in the row's stream
        int64_t group = from / 64 + (unit - run * p.groups);
        int64_t at = run * p.run - from; // of the stream's first element
        uint32_t global = p.is_open ? (uint32_t)(p.first_row + row) : 0;
        if (group * 64 >= to)
            continue;
        tti_random_words r = tti_random_place(key, group, place, global, (uint32_t)step->step);
        float z[4];
        normal_pair(r.w[0], r.w[1], &z[0], &z[1]);
        normal_pair(r.w[2], r.w[3], &z[2], &z[3]);
        for (int w = 0; w < 4; w++) {
            int64_t e = group * 64 + 16 * w + place;
            if (e >= from && e < to)
                tti_put(y[at + e], fmaf(z[w], p.deviation, tti_get(x[at + e])));
        }
    }
}

static tt_status gaussian_noise(const tt_launch *l)
{
    const tt_arg *x = &l->in[0];
    noise_plan p = {};
    if (x->count == 0)
        return TT_OK;
    tti_random_runs_of(l, &p);
    p.units *= 16;
    p.name = l->node->key;
    p.deviation = (float)((const tti_noise_attr *)l->attr)->deviation;
    TTI_FLOATS(x->dtype, T, {
        TTI_LAUNCH(l, tti_blocks(l, p.units, THREADS), THREADS, 0, (add_noise<T>), p, l->step,
                   (const T *)x->data, (T *)l->out[0].data);
    })
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_noise[] = {
    TTI_ROW("gaussian_noise", NULL, gaussian_noise),
    TTI_ROWS_END,
};
