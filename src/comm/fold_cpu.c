/*
 * fold_cpu.c - kernels of fold.h: plain loops that the compiler makes wide.
 */
#include "comm/fold.h"

#if !defined(TTI_SET_F64) // f64 is a type like others here

#if defined(TTI_SET_AVX512)
#define SET tti_fold_avx512
#elif defined(TTI_SET_AVX2)
#define SET tti_fold_avx2
#elif defined(TTI_SET_FMA)
#define SET tti_fold_fma
#else
#define SET tti_fold_plain
#endif

#define FOLD(type, name, result)                                               \
    static void name(void *restrict low, const void *restrict high, int64_t n) \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            type a = ((const type *)low)[i], b = ((const type *)high)[i];      \
            ((type *)low)[i] = (result);                                       \
        }                                                                      \
    }
FOLD(float, sum_f32, a + b)
FOLD(double, sum_f64, a + b)
FOLD(uint32_t, sum_i32, a + b) // wraps
FOLD(uint64_t, sum_i64, a + b)
FOLD(float, max_f32, a > b || a != a ? a : b)
FOLD(double, max_f64, a > b || a != a ? a : b)
FOLD(int32_t, max_i32, a > b ? a : b)
FOLD(int64_t, max_i64, a > b ? a : b)
FOLD(float, min_f32, a < b || a != a ? a : b)
FOLD(double, min_f64, a < b || a != a ? a : b)
FOLD(int32_t, min_i32, a < b ? a : b)
FOLD(int64_t, min_i64, a < b ? a : b)

#define FINISH(type, name)                                \
    static void name(type *sum, double factor, int64_t n) \
    {                                                     \
        for (int64_t i = 0; i < n; i++)                   \
            sum[i] = sum[i] + (type)0;                    \
        for (int64_t i = 0; factor != 1 && i < n; i++)    \
            sum[i] = sum[i] * (type)factor;               \
    }
FINISH(float, finish_f32)
FINISH(double, finish_f64)

const tti_fold_set SET = {
    .fold =
        {
            [TT_COMBINE_SUM] =
                {[TT_F32] = sum_f32, [TT_F64] = sum_f64, [TT_I32] = sum_i32, [TT_I64] = sum_i64},
            [TT_COMBINE_MAX] =
                {[TT_F32] = max_f32, [TT_F64] = max_f64, [TT_I32] = max_i32, [TT_I64] = max_i64},
            [TT_COMBINE_MIN] =
                {[TT_F32] = min_f32, [TT_F64] = min_f64, [TT_I32] = min_i32, [TT_I64] = min_i64},
        },
    .finish_f32 = finish_f32,
    .finish_f64 = finish_f64,
};

#else
typedef int tti_fold_has_no_f64_set; // a source is not empty
#endif
