/*
 * cuda_tf32.c - products of f32 by large weights and convolutions of f32 on the matrix units
 * (src/op/gpu/gemm_tf32.cuh, conv_tf32.cu): how far they are from sums in double, infinities and
 * NaN, and rows alone against rows together.
 */
#include "base/base.h"
#include "cuda_floats.h"
#include "op/conv.h"
#include "op/gemm.h"
#include "op/gpu/tf32_fits.h"
#include <math.h>
#include <stdlib.h>
#include <tutti/ops.h>

// Of the sum of |a b|: cutting both factors leaves out half of it at most, rounding the rest.
#define BOUND (8.0 / (1 << 24))

typedef struct shape_of {
    int64_t rows, k, n;
    bool trans_b;
} shape_of;

// Strands, odd widths, turned, one strand; each weight has 2^19 numbers or more.
static const shape_of shapes[] = {
    {3, 2100, 256, false}, {2, 1031, 509, false}, {2, 256, 2052, true}, {3, 1111, 477, true}};

static float *multiply(float *a, float *b, const shape_of *s, int64_t rows)
{
    tti_matmul_attr attr = {false, s->trans_b, TT_LINEAR, false};
    tt_shape sb = {2, {s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n}};
    tt_arg in[2] = {test_floats_put(TT_F32, (tt_shape){2, {rows, s->k}}, a, 0),
                    test_floats_put(TT_F32, sb, b, 0)};
    tt_arg out = test_floats_put(TT_F32, (tt_shape){2, {rows, s->n}}, NULL, 0);
    test_floats_run("matmul", &attr, in, 2, &out, 1, NULL);
    return test_floats_get(&out);
}

static float at_b(const shape_of *s, const float *b, int64_t k, int64_t j)
{
    return b[s->trans_b ? j * s->k + k : k * s->n + j];
}

static float *numbers(int64_t n, uint64_t seed)
{
    float *x = malloc(sizeof(float) * (size_t)n);
    CHECK(x != NULL);
    test_fill(x, n, seed, -1, 1);
    return x;
}

TEST(cuda_f32_products_are_as_accurate_as_f32)
{
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(shapes); i++) {
        if (i > 1 && test_gpu_is_emulated()) // it is slow
            break;
        const shape_of *s = &shapes[i];
        float *a = numbers(s->rows * s->k, 1), *b = numbers(s->k * s->n, 2);
        float *y = multiply(a, b, s, s->rows);
        double worst = 0;
        for (int64_t e = 0; e < s->rows * s->n; e++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < s->k; k++) {
                double x = (double)a[e / s->n * s->k + k] * (double)at_b(s, b, k, e % s->n);
                sum += x;
                size += fabs(x);
            }
            worst = fmax(worst, fabs((double)y[e] - sum) / size);
        }
        ck_assert_msg(worst <= BOUND, "[%lld, %lld]: off by %g of the sum of |a b|; bound %g",
                      (long long)s->k, (long long)s->n, worst, BOUND);
        float *one = multiply(a + s->k, b, s, 1); // a row alone
        CHECK(memcmp(one, y + s->n, sizeof(float) * (size_t)s->n) == 0);
        test_floats_clear();
        free(a);
        free(b);
    }
    test_device_close();
}

// Huge numbers, an infinity, a NaN and both infinities mean what they mean in f32.
TEST(cuda_f32_products_keep_infinities)
{
    const shape_of *s = &shapes[0];
    test_device_open();
    float *a = numbers(4 * s->k, 1), *b = numbers(s->k * s->n, 2);
    for (int64_t j = 0; j < s->n; j++) {
        b[70 * s->n + j] = 0.5f;
        b[71 * s->n + j] = 0.5f;
    }
    float *plain = multiply(a, b, s, 4);
    a[70] = INFINITY;
    a[s->k + 70] = INFINITY;
    a[s->k + 71] = -INFINITY;
    a[2 * s->k + 70] = NAN;
    a[3 * s->k + 70] = 3.4e38f;
    float *y = multiply(a, b, s, 4);
    for (int64_t j = 0; j < s->n; j++) {
        CHECK(y[j] == INFINITY);
        CHECK(isnan(y[s->n + j]));
        CHECK(isnan(y[2 * s->n + j]));
        CHECK(fabsf(y[3 * s->n + j] - 1.7e38f) < 1e32f);
        CHECK(isfinite(plain[j]));
    }
    test_floats_clear();
    free(a);
    free(b);
    test_device_close();
}

// ---- convolutions ----------------------------------------------------------------------------

typedef struct images_of {
    int64_t batch, side, c, n, k, stride;
} images_of;

// Tiles of every size, channels that no copy of 16 bytes fits, strides whose phases have no tap.
static const images_of images[] = {{2, 9, 12, 36, 3, 1}, {2, 7, 3, 20, 5, 1},
                                   {1, 9, 40, 68, 3, 2}, {2, 8, 6, 5, 2, 3},
                                   {3, 6, 1, 32, 3, 1},  {9, 26, 132, 260, 3, 1}};

static int64_t out_side(const images_of *s)
{
    return (s->side + 2 - s->k) / s->stride + 1;
}

static float *convolve(const char *op, const images_of *s, int64_t size, tt_shape first,
                       tt_shape second, tt_shape to, float *a, float *b)
{
    tti_conv_attr attr = {.stride = {2, {s->stride, s->stride}},
                          .pad = {4, {1, 1, 1, 1}},
                          .size = {size > 0 ? 2 : 0, {size, size}}};
    tt_arg in[2] = {test_floats_put(TT_F32, first, a, 0), test_floats_put(TT_F32, second, b, 0)};
    tt_arg out = test_floats_put(TT_F32, to, NULL, 0);
    test_floats_run(op, &attr, in, 2, &out, 1, NULL);
    return test_floats_get(&out);
}

// Adds a[i] b[j] to entry t, and its magnitude.
static void add_to(double *sum, double *size, int64_t t, float a, float b)
{
    sum[t] += (double)a * (double)b;
    size[t] += fabs((double)a * (double)b);
}

// Every product x w of a convolution: which 0 adds x w to y, 1 dy w to dx, 2 x dy to dw.
static void add_all(const images_of *s, int which, const float *x, const float *w, const float *dy,
                    double *sum, double *size)
{
    const int64_t o = out_side(s), taps = s->k * s->k;
    for (int64_t p = 0; p < s->batch * o * o; p++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t row = p / o % o * s->stride + t / s->k - 1,
                    col = p % o * s->stride + t % s->k - 1;
            if (row < 0 || row >= s->side || col < 0 || col >= s->side)
                continue;
            int64_t from = ((p / o / o * s->side + row) * s->side + col) * s->c;
            for (int64_t e = 0; e < s->c * s->n; e++) {
                int64_t i = from + e / s->n, j = t * s->c * s->n + e, q = p * s->n + e % s->n;
                if (which == 0)
                    add_to(sum, size, q, x[i], w[j]);
                else if (which == 1)
                    add_to(sum, size, i, dy[q], w[j]);
                else
                    add_to(sum, size, j, x[i], dy[q]);
            }
        }
}

static void check_images(const images_of *s)
{
    static const char *const ops[] = {"conv2d", "conv2d_dx", "conv2d_dw"};
    const int64_t o = out_side(s);
    tt_shape shapes_of[] = {{4, {s->batch, s->side, s->side, s->c}},
                            {4, {s->k, s->k, s->c, s->n}},
                            {4, {s->batch, o, o, s->n}}};
    static const int parts[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; // inputs, output
    int64_t count[3];
    float *v[3];
    for (int i = 0; i < 3; i++) {
        count[i] = tt_shape_count(&shapes_of[i]);
        v[i] = numbers(count[i], (uint64_t)i + 1);
    }
    for (int i = 0; i < 3; i++) {
        const int *p = parts[i];
        const int64_t size_of = i == 0 ? 0 : i == 1 ? s->side : s->k, n = count[p[2]];
        float *y = convolve(ops[i], s, size_of, shapes_of[p[0]], shapes_of[p[1]], shapes_of[p[2]],
                            v[p[0]], v[p[1]]);
        double *sum = calloc((size_t)n, sizeof(double)), *size = calloc((size_t)n, sizeof(double));
        CHECK(sum != NULL && size != NULL);
        add_all(s, i, v[0], v[1], v[2], sum, size);
        for (int64_t e = 0; e < n; e++)
            ck_assert_msg(
                fabs((double)y[e] - sum[e]) <= BOUND * size[e],
                "%s of %lld channels: [%lld] is %g, not %g: off by %g of the sum of |a b|", ops[i],
                (long long)s->c, (long long)e, (double)y[e], sum[e],
                fabs((double)y[e] - sum[e]) / size[e]);
        if (i < 2 && s->batch > 1) { // the last image alone
            tt_shape first = shapes_of[p[0]], to = shapes_of[p[2]];
            first.dim[0] = to.dim[0] = 1;
            int64_t skip = count[p[0]] / s->batch * (s->batch - 1), one = n / s->batch;
            float *alone =
                convolve(ops[i], s, size_of, first, shapes_of[p[1]], to, v[p[0]] + skip, v[p[1]]);
            CHECK(memcmp(alone, y + n - one, sizeof(float) * (size_t)one) == 0);
        }
        free(sum);
        free(size);
    }
    for (int i = 0; i < 3; i++)
        free(v[i]);
    test_floats_clear();
}

TEST(cuda_f32_convolutions_are_as_accurate_as_f32)
{
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(images); i++)
        if (images[i].c < 100 || !test_gpu_is_emulated()) // it is slow
            check_images(&images[i]);
    test_device_close();
}

// An infinity, a NaN and both infinities under a window mean what they mean in f32.
TEST(cuda_f32_convolutions_keep_infinities)
{
    const images_of s = {4, 6, 8, 12, 3, 1};
    const int64_t per = 6 * 6 * 8, at = (2 * 6 + 2) * 8;
    tt_shape sx = {4, {4, 6, 6, 8}}, sw = {4, {3, 3, 8, 12}};
    test_device_open();
    float *x = numbers(4 * per, 1), *w = numbers(3 * 3 * 8 * 12, 2);
    for (int64_t i = 0; i < 3 * 3 * 8 * 12; i++)
        w[i] = 0.5f;
    x[at] = INFINITY;
    x[per + at] = INFINITY;
    x[per + at + 1] = -INFINITY;
    x[2 * per + at] = NAN;
    x[3 * per + at] = 3.4e38f;
    float *y = convolve("conv2d", &s, 0, sx, sw, (tt_shape){4, {4, 6, 6, 12}}, x, w);
    for (int64_t i = 0; i < 6 * 6 * 12; i++) {
        int64_t row = i / 12 / 6, col = i / 12 % 6;
        bool is_under = row >= 1 && row <= 3 && col >= 1 && col <= 3;
        CHECK(is_under ? y[i] == INFINITY : isfinite(y[i]));
        CHECK(is_under ? isnan(y[432 + i]) && isnan(y[864 + i])
                       : isfinite(y[432 + i]) && isfinite(y[864 + i]));
        CHECK(fabsf(y[1296 + i] - (is_under ? 1.7e38f : 0)) < 1e32f);
    }
    test_floats_clear();
    free(x);
    free(w);
    test_device_close();
}

// Places in a tile are 32-bit numbers: 127 rows that are 2^24 apart would not fit.
TEST(cuda_f32_convolutions_with_too_many_channels_are_left_to_others)
{
    tti_conv_dims d = {.batch = 1, .h = 1, .w = 1, .c_in = 1, .oh = 1, .ow = 1, .kh = 1, .kw = 1};
    static const struct {
        int64_t c_out, taps;
        bool fits;
    } cases[] = {{64, 9, true},
                 {(1 << 24) - 1, 1, true},
                 {1 << 24, 1, false},
                 {(int64_t)1 << 31, 1, false},
                 {1 << 20, 1 << 10, false},
                 {(1 << 20) - 1, 1 << 10, true}};
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        d.c_out = cases[i].c_out;
        d.kw = cases[i].taps;
        CHECK(tti_conv_tf32_fits(&d) == cases[i].fits);
    }
}
