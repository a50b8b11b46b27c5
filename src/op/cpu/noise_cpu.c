/*
 * noise_cpu.c - gaussian_noise. Compiled once per instruction set; see noise.c.
 */
#include "op/cpu/philox.h"
#include "op/cpu/vmath.h"
#include "op/noise.h"

// Two normal numbers from two words; the radius is at most 5.77.
static inline void normal_pair(u16x r, u16x t, v16 *first, v16 *second)
{
    v16 u = v16_mul(v16_add(u16x_to_24(r), v16_set1(1)), v16_set1((real)0x1p-24)); // (0, 1]
    v16 angle = v16_mul(u16x_to_24(t), v16_set1((real)(6.2831853f * 0x1p-24f)));
    v16 radius = v16_sqrt(v16_mul(v16_set1(-2), v16_log(u)));
    *first = v16_mul(radius, v16_cos(angle));
    *second = v16_mul(radius, v16_sin(angle));
}

// Elements [from, to) of sixteen.
static inline void add(real *y, const real *x, v16 z, v16 deviation, int from, int to)
{
    if (from == 0 && to == 16) {
        v16_store(y, v16_fma(z, deviation, v16_load(x)));
        return;
    }
    real t[16] = {0};
    for (int i = from; i < to; i++)
        t[i] = x[i];
    v16_store(t, v16_fma(z, deviation, v16_load(t)));
    for (int i = from; i < to; i++)
        y[i] = t[i];
}

tt_status TTI_ISA(gaussian_noise)(const tt_launch *l)
{
    const tti_noise_attr *a = l->attr;
    const tti_dropout_plan *t = l->tune;
    uint64_t key = tti_random_key(l->step->seed, l->node->key), step = (uint64_t)l->step->step;
    v16 deviation = v16_set1((real)a->deviation);
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t run = u / t->groups, outer = run / t->rows, row = run % t->rows;
        int64_t from = outer * t->run, to = from + t->run; // in the row's stream
        int64_t group = from / 64 + u % t->groups;
        const real *x = (const real *)l->in[0].data + run * t->run - from; // x[e]: element e
        real *y = (real *)l->out[0].data + run * t->run - from;
        if (group * 64 >= to)
            continue;
        uint64_t global = l->in[0].open >= 0 ? (uint64_t)(l->lanes->first_row + row) : 0;
        tti_random_words words = tti_random_group(key, group, global, step);
        v16 z[4];
        normal_pair(words.w[0], words.w[1], &z[0], &z[1]);
        normal_pair(words.w[2], words.w[3], &z[2], &z[3]);
        for (int w = 0; w < 4; w++) {
            int64_t e = group * 64 + 16 * w;
            int lo = e < from ? (int)(from - e < 16 ? from - e : 16) : 0;
            int hi = to - e < 16 ? (int)(to - e > 0 ? to - e : 0) : 16;
            if (lo < hi)
                add(y + e, x + e, z[w], deviation, lo, hi);
        }
    }
    return TT_OK;
}
