/*
 * random_cpu.c - first values of variables. Compiled once per instruction set; see random.h.
 *
 * Values are made in f32, in groups of 64 (philox.h), and rounded or widened to the variable's
 * type.
 *   uniform           fma(u, b - a, a), u the top 24 bits of a word
 *   normal            Box-Muller: words 0 and 1 of a counter give radius and angle of a pair, words
 *                     2 and 3 of another; the first of a pair takes the cosine, the second the sine
 *   truncated normal  drawn again (another counter) while beyond two deviations
 *   glorot, he        uniform in +-sqrt(6 / fan) or normal of deviation sqrt(2 / fan); fan: in +
 *                     out, or in, where a shape [..., in, out] has the product of the leading
 *                     dimensions (a convolution's window) as a factor of both
 */
#include "op/cpu/half.h"
#include "op/cpu/philox.h"
#include "op/cpu/vmath.h"
#include "op/init.h"
#include "op/random.h"

#if !defined(TTI_SET_F64) // values are f32 whatever the type

// Two normal numbers of mean 0 and deviation 1 from two words; the radius is at most 5.77.
static inline void normal_pair(u16x r, u16x t, v16 *first, v16 *second)
{
    v16 u = v16_mul(v16_add(u16x_to_24(r), v16_set1(1)), v16_set1(0x1p-24f)); // (0, 1]
    v16 angle = v16_mul(u16x_to_24(t), v16_set1(6.2831853f * 0x1p-24f));
    v16 radius = v16_sqrt(v16_mul(v16_set1(-2), v16_log_normal(u)));
    v16 sin, cos;
    v16_sin_cos_near(angle, &sin, &cos);
    *first = v16_mul(radius, cos);
    *second = v16_mul(radius, sin);
}

static void normal_group(uint64_t key, int64_t group, uint64_t number, v16 z[4])
{
    tti_random_words w = tti_random_group(key, group, 0, number);
    normal_pair(w.w[0], w.w[1], &z[0], &z[1]);
    normal_pair(w.w[2], w.w[3], &z[2], &z[3]);
}

// Where z is beyond two deviations, the first later draw that is not.
static void truncate_group(uint64_t key, int64_t group, v16 z[4])
{
    v16 two = v16_set1(2);
    for (uint64_t number = 1; number < TTI_INIT_DRAWS; number++) {
        m16 far[4];
        int any = 0;
        for (int w = 0; w < 4; w++) {
            far[w] = v16_gt(v16_abs(z[w]), two);
            any |= m16_any(far[w]);
        }
        if (!any)
            return;
        v16 next[4];
        normal_group(key, group, number, next);
        for (int w = 0; w < 4; w++)
            z[w] = v16_if(far[w], next[w], z[w]);
    }
}

static void make_group(const tti_draw *d, uint64_t key, int64_t group, float *y)
{
    v16 z[4], a = v16_set1(d->a), b = v16_set1(d->b);
    if (d->kind == TT_INIT_UNIFORM) {
        tti_random_words w = tti_random_group(key, group, 0, 0);
        for (int i = 0; i < 4; i++)
            z[i] = v16_mul(u16x_to_24(w.w[i]), v16_set1(0x1p-24f));
        b = v16_set1(d->b - d->a);
    } else {
        normal_group(key, group, 0, z);
        if (d->kind == TT_INIT_TRUNCATED_NORMAL)
            truncate_group(key, group, z);
    }
    for (int i = 0; i < 4; i++)
        v16_store(y + 16 * i, v16_fma(z[i], b, a));
}

static __attribute__((noinline)) void put(tt_dtype dtype, void *out, int64_t at, const float *y,
                                          int64_t n)
{
    if (dtype == TT_F32)
        memcpy((float *)out + at, y, sizeof(*y) * (size_t)n);
    else if (dtype == TT_BF16)
        tti_round_bf16(y, (uint16_t *)out + at, n);
    else if (dtype == TT_F16)
        tti_round_f16(y, (uint16_t *)out + at, n);
    for (int64_t i = 0; dtype == TT_F64 && i < n; i++)
        ((double *)out)[at + i] = y[i];
}

#define FILL(type, value)           \
    for (int64_t i = 0; i < n; i++) \
        ((type *)out)[i] = (type)(value);

// A constant keeps its own precision: 0.1 in f64 is not 0.1f, and integers are whole.
static void fill_constant(tt_dtype dtype, double a, int64_t n, void *out)
{
    float f = (float)a;
    uint16_t half = 0;
    if (dtype == TT_BF16)
        tti_round_bf16(&f, &half, 1);
    else if (dtype == TT_F16)
        tti_round_f16(&f, &half, 1);
    switch (dtype) {
    case TT_F32:
        FILL(float, f)
        break;
    case TT_F64:
        FILL(double, a)
        break;
    case TT_BF16:
    case TT_F16:
        FILL(uint16_t, half)
        break;
    case TT_I32:
        FILL(int32_t, a)
        break;
    case TT_I64:
        FILL(int64_t, a)
        break;
    default:
        FILL(uint8_t, dtype == TT_BOOL ? a != 0 : a)
    }
}
#undef FILL

void TTI_ISA(tti_init_fill)(const tt_init *init, const tt_shape *shape, tt_dtype dtype,
                            uint64_t seed, uint64_t name, int64_t begin, int64_t end, void *out)
{
    tti_draw d = tti_draw_of(init, shape);
    if (d.kind == TT_INIT_CONSTANT) {
        fill_constant(dtype, init->kind == TT_INIT_ZEROS ? 0 : init->a, end - begin, out);
        return;
    }
    uint64_t key = tti_random_key(seed, name);
    for (int64_t e = begin; e < end;) {
        int64_t first = e % 64, n = end - e < 64 - first ? end - e : 64 - first;
        float room[TTI_RANDOM_GROUP];
        bool direct = dtype == TT_F32 && n == 64;
        make_group(&d, key, e / 64, direct ? (float *)out + (e - begin) : room);
        if (!direct)
            put(dtype, out, e - begin, room + first, n);
        e += n;
    }
}

#endif
