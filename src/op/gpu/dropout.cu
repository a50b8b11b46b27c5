/*
 * dropout.cu - dropout. A counter gives the words of four elements 16 apart (philox.h), so a thread
 * takes E neighbouring places of a group of 64: four packs of E elements, and E counters.
 */
#include "op/dropout.h"
#include "op/gpu/philox.cuh"

#define THREADS 256

// x is [outer, rows, run]; groups is how many groups of a row's stream a run can touch.
struct drop_plan : tti_random_runs {
    uint64_t name;
    uint32_t limit;
    float scale;
};

template <class T, int E>
static __global__ void __launch_bounds__(THREADS)
    drop(drop_plan p, const tt_step *step, const T *x, T *y)
{
    struct alignas(sizeof(T) * E) pack {
        T v[E];
    };
    const int places = 16 / E;
    uint64_t key = tti_random_key(step->seed, p.name);
    uint32_t number = (uint32_t)step->step;
    int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t u = (int64_t)blockIdx.x * THREADS + threadIdx.x; u < p.units; u += stride) {
        int64_t unit = u / places, run, outer;
        int place = (int)(u % places) * E;
        if (p.units < INT32_MAX) {
            run = (uint32_t)unit / (uint32_t)p.groups;
            outer = (uint32_t)run / (uint32_t)p.rows;
        } else {
            run = unit / p.groups;
            outer = run / p.rows;
        }
        int64_t row = run - outer * p.rows;
        int64_t from = outer * p.run, to = from + p.run; // in the row's stream
        int64_t group = from / 64 + (unit - run * p.groups);
        int64_t at = run * p.run - from; // of the stream's first element
        uint32_t global = p.is_open ? (uint32_t)(p.first_row + row) : 0;
        if (group * 64 >= to)
            continue;
        pack v[4];
#pragma unroll
        for (int w = 0; w < 4; w++) {
            int64_t e = group * 64 + 16 * w + place;
            if (e >= from && e < to)
                v[w] = *(const pack *)(x + at + e);
        }
#pragma unroll
        for (int k = 0; k < E; k++) {
            tti_random_words r = tti_random_place(key, group, place + k, global, number);
#pragma unroll
            for (int w = 0; w < 4; w++)
                tti_put(v[w].v[k], r.w[w] >= p.limit ? tti_get(v[w].v[k]) * p.scale : 0.0f);
        }
#pragma unroll
        for (int w = 0; w < 4; w++) {
            int64_t e = group * 64 + 16 * w + place;
            if (e >= from && e < to)
                *(pack *)(y + at + e) = v[w];
        }
    }
}

template <class T, int E> static void enqueue(const tt_launch *l, drop_plan p)
{
    p.units *= 16 / E;
    TTI_LAUNCH(l, tti_blocks(l, p.units, THREADS), THREADS, 0, (drop<T, E>), p, l->step,
               (const T *)l->in[0].data, (T *)l->out[0].data);
}

static tt_status dropout(const tt_launch *l)
{
    const tti_dropout_attr *a = (const tti_dropout_attr *)l->attr;
    const tt_arg *x = &l->in[0];
    drop_plan p = {};
    if (x->count == 0)
        return TT_OK;
    tti_random_runs_of(l, &p);
    p.name = a->key != 0 ? (uint64_t)a->key : l->node->key;
    p.limit = (uint32_t)(a->rate * 4294967296.0);
    p.scale = (float)(1 / (1 - a->rate));
    bool is_aligned = tti_is_aligned(x->data) && tti_is_aligned(l->out[0].data);
    TTI_FLOATS(x->dtype, T, {
        if (is_aligned && p.run % tti_pack<T>::n == 0)
            enqueue<T, tti_pack<T>::n>(l, p);
        else
            enqueue<T, 1>(l, p);
    })
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_dropout[] = {
    TTI_ROW("dropout", NULL, dropout),
    TTI_ROWS_END,
};
