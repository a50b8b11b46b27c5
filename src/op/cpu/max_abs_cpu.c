/*
 * max_abs_cpu.c - kernel of max_abs.c. Magnitudes without their sign bit are compared as integers:
 * their order is that of the numbers, and every NaN comes after infinity.
 */
#include "op/cpu/simd.h"
#include "op/max_abs.h"

typedef int32_t __attribute__((may_alias)) bits32;
typedef int64_t __attribute__((may_alias)) bits64;

static int32_t most_of_f32(const void *data, int64_t n, int32_t most)
{
    const bits32 *x = data;
    int32_t m[64] = {0};
    for (; n >= 64; n -= 64, x += 64)
        for (int i = 0; i < 64; i++) {
            int32_t b = x[i] & 0x7fffffff;
            m[i] = b > m[i] ? b : m[i];
        }
    for (int i = 0; i < n; i++) {
        int32_t b = x[i] & 0x7fffffff;
        m[i] = b > m[i] ? b : m[i];
    }
    for (int i = 0; i < 64; i++)
        most = m[i] > most ? m[i] : most;
    return most;
}

// What is finite stays so.
static int32_t most_of_f64(const void *data, int64_t n, int32_t most)
{
    const bits64 *x = data;
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t b = x[i] & INT64_MAX;
        m = b > m ? b : m;
    }
    double d;
    memcpy(&d, &m, sizeof(d));
    float f = d > FLT_MAX && d <= DBL_MAX ? FLT_MAX : (float)d;
    int32_t b;
    memcpy(&b, &f, sizeof(b));
    b &= 0x7fffffff;
    return b > most ? b : most;
}

static int32_t most_of(const tt_arg *x, int64_t begin, int64_t end, int32_t most)
{
    const char *at = (const char *)x->data + (size_t)begin * tt_dtype_bytes(x->dtype);
    if (begin >= end)
        return most;
    return x->dtype == TT_F64 ? most_of_f64(at, end - begin, most)
                              : most_of_f32(at, end - begin, most);
}

static void put(float *y, int32_t most)
{
    if (most > 0x7f800000)
        most = 0x7fc00000;
    memcpy(y, &most, sizeof(most));
}

tt_status TTI_ISA(max_abs)(const tt_launch *l)
{
    float *y = l->out[0].data;
    if (l->n_in > 1) {
        int32_t most = 0;
        for (int i = 0; l->begin < l->end && i < l->n_in; i++)
            most = most_of(&l->in[i], 0, l->in[i].count, most);
        if (l->begin < l->end)
            put(y, most);
        return TT_OK;
    }
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t begin = u * TTI_MAX_ABS_BLOCK, end = begin + TTI_MAX_ABS_BLOCK;
        put(y + u, most_of(&l->in[0], begin, end < l->in[0].count ? end : l->in[0].count, 0));
    }
    return TT_OK;
}
