/*
 * upto.h - loads and stores of up to sixteen numbers in kernels where nearly all vectors are whole:
 * a masked load or store costs more than a branch that is always predicted.
 */
#ifndef TUTTI_OP_UPTO_H
#define TUTTI_OP_UPTO_H

#include "op/cpu/simd.h"

static inline v16 v16_load_upto(const real *p, int n)
{
    return n == 16 ? v16_load(p) : v16_load_n(p, n);
}

static inline void v16_store_upto(real *p, v16 a, int n)
{
    if (n == 16)
        v16_store(p, a);
    else
        v16_store_n(p, a, n);
}

#endif
