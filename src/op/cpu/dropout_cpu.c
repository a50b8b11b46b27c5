/*
 * dropout_cpu.c - dropout. Compiled once per instruction set; see dropout.c.
 */
#include "op/cpu/philox.h"
#include "op/dropout.h"

// Elements [from, to) of sixteen; the words belong to all of them.
static inline void drop(real *y, const real *x, u16x word, uint32_t limit, v16 scale, int from,
                        int to)
{
    m16 keep = u16x_ge(word, limit);
    if (from == 0 && to == 16) {
        v16_store(y, v16_if(keep, v16_mul(v16_load(x), scale), v16_zero()));
        return;
    }
    real t[16] = {0};
    for (int i = from; i < to; i++)
        t[i] = x[i];
    v16_store(t, v16_if(keep, v16_mul(v16_load(t), scale), v16_zero()));
    for (int i = from; i < to; i++)
        y[i] = t[i];
}

tt_status TTI_ISA(dropout)(const tt_launch *l)
{
    const tti_dropout_attr *a = l->attr;
    const tti_dropout_plan *t = l->tune;
    uint64_t name = a->key != 0 ? (uint64_t)a->key : l->node->key;
    uint64_t key = tti_random_key(l->step->seed, name), step = (uint64_t)l->step->step;
    uint32_t limit = (uint32_t)(a->rate * 4294967296.0);
    v16 scale = v16_set1((real)(1 / (1 - a->rate)));
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
        for (int w = 0; w < 4; w++) {
            int64_t e = group * 64 + 16 * w;
            int lo = e < from ? (int)(from - e < 16 ? from - e : 16) : 0;
            int hi = to - e < 16 ? (int)(to - e > 0 ? to - e : 0) : 16;
            if (lo < hi)
                drop(y + e, x + e, words.w[w], limit, scale, lo, hi);
        }
    }
    return TT_OK;
}
