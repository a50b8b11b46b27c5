/*
 * add_cpu.c - kernel of add.h.
 */
#include "op/add.h"
#include "op/cpu/simd.h"

#if !defined(TTI_SET_F64)
void TTI_ISA(tti_add)(float *to, const float *a, const float *b, int64_t n);
void TTI_ISA(tti_add)(float *to, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    v16 zero = v16_set1(0);
    for (; i + 16 <= n; i += 16)
        v16_store(to + i, v16_add(v16_add(v16_load(a + i), v16_load(b + i)), zero));
    for (; i < n; i++)
        to[i] = a[i] + b[i] + 0.0f;
}
#endif
