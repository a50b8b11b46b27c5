/*
 * fold.h - the arithmetic of reductions, compiled once per instruction set (fold_cpu.c). All sets
 * give the same bits: every element is on its own.
 */
#ifndef TUTTI_COMM_FOLD_H
#define TUTTI_COMM_FOLD_H

#include <tutti/comm.h>

// out[i] = low[i] and high[i] combined; out may be one of them.
typedef void (*tti_fold_fn)(void *out, const void *low, const void *high, int64_t n);

typedef struct tti_fold_set {
    tti_fold_fn fold[3][TT_N_DTYPES]; // by tt_combine; NULL where a type is not added in itself
    // The end of a sum: + 0, then times the factor; of two that are still to be added, in one go.
    void (*end_f32)(float *out, const float *sum, double factor, int64_t n);
    void (*end_f64)(double *out, const double *sum, double factor, int64_t n);
    void (*sum_end_f32)(float *out, const float *low, const float *high, double factor, int64_t n);
    void (*sum_end_f64)(double *out, const double *low, const double *high, double factor,
                        int64_t n);
} tti_fold_set;

extern const tti_fold_set tti_fold_plain, tti_fold_fma, tti_fold_avx2, tti_fold_avx512;

#endif
