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

// Memory is the same element for element, or apart.
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

#define FOLD(type, name, result)                                              \
    static void name(void *out, const void *low, const void *high, int64_t n) \
    {                                                                         \
        EACH for (int64_t i = 0; i < n; i++)                                  \
        {                                                                     \
            type a = ((const type *)low)[i], b = ((const type *)high)[i];     \
            ((type *)out)[i] = (result);                                      \
        }                                                                     \
    }
FOLD(float, sum_f32, a + b)
FOLD(double, sum_f64, a + b)
FOLD(uint32_t, sum_i32, a + b) // wraps
FOLD(uint64_t, sum_i64, a + b)
FOLD(uint8_t, sum_u8, (uint8_t)(a + b)) // of plans alone
FOLD(float, max_f32, a > b || a != a ? a : b)
FOLD(double, max_f64, a > b || a != a ? a : b)
FOLD(int32_t, max_i32, a > b ? a : b)
FOLD(int64_t, max_i64, a > b ? a : b)
FOLD(float, min_f32, a < b || a != a ? a : b)
FOLD(double, min_f64, a < b || a != a ? a : b)
FOLD(int32_t, min_i32, a < b ? a : b)
FOLD(int64_t, min_i64, a < b ? a : b)

#define END(type, name, params, sum)                                                        \
    static void name(type *out, params)                                                     \
    {                                                                                       \
        if (factor == 1)                                                                    \
            EACH for (int64_t i = 0; i < n; i++) out[i] = (sum) + (type)0;                  \
        else                                                                                \
            EACH for (int64_t i = 0; i < n; i++) out[i] = ((sum) + (type)0) * (type)factor; \
    }
#define ONE(type) const type *x, double factor, int64_t n
#define TWO(type) const type *low, const type *high, double factor, int64_t n
END(float, end_f32, ONE(float), x[i])
END(double, end_f64, ONE(double), x[i])
END(float, sum_end_f32, TWO(float), low[i] + high[i])
END(double, sum_end_f64, TWO(double), low[i] + high[i])

const tti_fold_set SET = {
    .fold =
        {
            [TT_COMBINE_SUM] = {[TT_F32] = sum_f32,
                                [TT_F64] = sum_f64,
                                [TT_I32] = sum_i32,
                                [TT_I64] = sum_i64,
                                [TT_U8] = sum_u8,
                                [TT_BOOL] = sum_u8},
            [TT_COMBINE_MAX] =
                {[TT_F32] = max_f32, [TT_F64] = max_f64, [TT_I32] = max_i32, [TT_I64] = max_i64},
            [TT_COMBINE_MIN] =
                {[TT_F32] = min_f32, [TT_F64] = min_f64, [TT_I32] = min_i32, [TT_I64] = min_i64},
        },
    .end_f32 = end_f32,
    .end_f64 = end_f64,
    .sum_end_f32 = sum_end_f32,
    .sum_end_f64 = sum_end_f64,
};

#else
typedef int tti_fold_has_no_f64_set; // a source is not empty
#endif
