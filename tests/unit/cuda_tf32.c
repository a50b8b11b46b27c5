/*
 * cuda_tf32.c - products of f32 by large weights on the matrix units (src/op/gpu/gemm_tf32.cuh): how
 * far they are from sums in double, infinities and NaN, and rows alone against rows together where
 * k is cut into strands.
 */
#include "base/base.h"
#include "cuda_floats.h"
#include "op/gemm.h"
#include <math.h>
#include <stdlib.h>
#include <tutti/ops.h>

// Of the sum of |a b|: what cutting into two parts leaves out, and rounding chunks of 32 terms.
#define BOUND (6.0 / (1 << 24))

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
