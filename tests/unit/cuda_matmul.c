/*
 * cuda_matmul.c - products of the CUDA module alone, called as a plan calls them: against sums in
 * double; rows and lanes alone against together, to the bit. With TUTTI_CUDA_OWN=1 the module
 * leaves cuBLASLt alone, so two runs show whether the library or a kernel of ours is wrong.
 */
#include "base/base.h"
#include "comm/lane_tree.h"
#include "cuda_floats.h"
#include "op/gemm.h"
#include <math.h>
#include <stdlib.h>
#include <tutti/ops.h>

typedef struct product {
    tt_shape a, b;
    bool trans_a, trans_b, bias, wide;
    int act;
} product;

static const product products[] = {
    {{2, {1, 1}}, {2, {1, 1}}, false, false, false, false, TT_LINEAR},
    {{2, {70, 33}}, {2, {33, 130}}, false, false, true, false, TT_RELU},
    {{2, {64, 64}}, {2, {64, 64}}, false, true, true, false, TT_GELU},
    {{2, {96, 40}}, {2, {96, 72}}, true, false, false, false, TT_LINEAR},
    {{2, {17, 5}}, {2, {9, 17}}, true, true, true, false, TT_SILU},
    {{2, {24, 16}}, {2, {16, 40}}, false, false, true, true, TT_GELU_ERF},
    {{2, {24, 16}}, {2, {16, 40}}, false, false, false, true, TT_LINEAR},
    {{3, {3, 8, 24}}, {2, {24, 16}}, false, false, true, false, TT_TANH},
    {{4, {2, 3, 8, 16}}, {4, {2, 3, 16, 24}}, false, false, false, false, TT_LINEAR},
    {{4, {2, 1, 8, 16}}, {3, {3, 24, 16}}, false, true, true, false, TT_SIGMOID},
    {{3, {4, 8, 16}}, {4, {5, 1, 16, 8}}, false, false, false, false, TT_GELU},
    {{2, {8, 16}}, {3, {3, 16, 8}}, false, false, false, false, TT_LINEAR},
    {{2, {5, 1}}, {2, {1, 8}}, false, false, true, false, TT_SOFTPLUS},
    {{2, {5, 16}}, {2, {16, 8}}, false, false, false, false, TT_ELU},
};

static int64_t lead(const tt_shape *s, int i)
{
    return i < s->rank - 2 ? s->dim[s->rank - 3 - i] : 1;
}

static tt_shape result_of(const product *p)
{
    tt_shape y = {.rank = TTI_MAX(p->a.rank, p->b.rank)};
    for (int i = 0; i < y.rank - 2; i++)
        y.dim[y.rank - 3 - i] = TTI_MAX(lead(&p->a, i), lead(&p->b, i));
    y.dim[y.rank - 2] = p->a.dim[p->a.rank - (p->trans_a ? 1 : 2)];
    y.dim[y.rank - 1] = p->b.dim[p->b.rank - (p->trans_b ? 2 : 1)];
    return y;
}

// z of all products; k from k0 to k1.
static void multiply(const product *p, const float *a, const float *b, const float *bias,
                     int64_t k0, int64_t k1, double *z)
{
    tt_shape y = result_of(p);
    int64_t m = y.dim[y.rank - 2], n = y.dim[y.rank - 1];
    int64_t k = p->a.dim[p->a.rank - (p->trans_a ? 2 : 1)], batch = 1;
    for (int i = 0; i < y.rank - 2; i++)
        batch *= y.dim[i];
    for (int64_t u = 0; u < batch; u++) {
        int64_t at_a = 0, at_b = 0, rest = u, by_a = 1, by_b = 1;
        for (int i = 0; i < y.rank - 2; i++) {
            int64_t d = y.dim[y.rank - 3 - i];
            at_a += lead(&p->a, i) == 1 ? 0 : rest % d * by_a;
            at_b += lead(&p->b, i) == 1 ? 0 : rest % d * by_b;
            by_a *= lead(&p->a, i);
            by_b *= lead(&p->b, i);
            rest /= d;
        }
        for (int64_t i = 0; i < m * n; i++) {
            double sum = bias != NULL ? (double)bias[i % n] : 0;
            for (int64_t q = k0; q < k1; q++) {
                double x = a[at_a * m * k + (p->trans_a ? q * m + i / n : i / n * k + q)];
                sum += x * (double)b[at_b * k * n + (p->trans_b ? i % n * k + q : q * n + i % n)];
            }
            z[u * m * n + i] = sum;
        }
    }
}

static void try_product(const product *p, tt_dtype t, int skip)
{
    tti_matmul_attr attr = {p->trans_a, p->trans_b, p->act, p->wide};
    tt_shape s = result_of(p);
    tt_dtype out_type = p->wide ? TT_F32 : t;
    float *a, *b, *bias = NULL;
    bool has_z =
        p->act == TT_GELU || p->act == TT_GELU_ERF || p->act == TT_SILU || p->act == TT_SOFTPLUS;
    tt_arg in[3] = {test_floats_random(t, p->a, 1, &a, skip),
                    test_floats_random(t, p->b, 2, &b, skip)};
    tt_arg out[2] = {test_floats_put(out_type, s, NULL, skip),
                     test_floats_put(out_type, s, NULL, skip)};
    if (p->bias)
        in[2] = test_floats_random(t, (tt_shape){1, {s.dim[s.rank - 1]}}, 3, &bias, skip);
    test_floats_run("matmul", &attr, in, p->bias ? 3 : 2, out, has_z ? 2 : 1, NULL);
    double *z = calloc((size_t)out[0].count, sizeof(double));
    CHECK(z != NULL);
    multiply(p, a, b, bias, 0, p->a.dim[p->a.rank - (p->trans_a ? 2 : 1)], z);
    tt_dtype near = t == TT_F32 ? TT_F32 : t;
    if (has_z)
        test_floats_near("z", near, test_floats_get(&out[1]), z, out[0].count);
    for (int64_t i = 0; i < out[0].count; i++)
        z[i] = test_act((tt_act)p->act, z[i]);
    test_floats_near("y", near, test_floats_get(&out[0]), z, out[0].count);
    free(z);
    test_floats_clear();
}

TEST(cuda_matmul_is_the_product)
{
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(products); i++)
        for (int t = 0; t < 3; t++)
            for (int skip = 0; skip < 2; skip++)
                try_product(&products[i], test_float_types[t], skip);
    test_device_close();
}

static void try_lanes(tt_dtype t, int first, int last, int total, int64_t global, int64_t per)
{
    const tt_lanes *ln = test_lanes(first, last, total, global);
    int64_t k = ln->bound[ln->n] * per, m = 20, n = 36, ends[TTI_MAX_PARTS + 1] = {0};
    product p = {{2, {k, m}}, {2, {k, n}}, true, false, false, false, TT_LINEAR};
    tti_matmul_attr attr = {true, false, TT_LINEAR, false};
    tti_part parts[TTI_MAX_PARTS];
    float *a, *b;
    tt_arg in[2] = {test_floats_random(t, p.a, 4, &a, 0), test_floats_random(t, p.b, 5, &b, 0)};
    in[0].open = in[1].open = 0;
    in[0].per = in[1].per = per;
    bool is_whole = ln->n == total;
    tt_shape whole = {2, {m, n}}, some = {3, {ln->n_parts, m, n}};
    tt_arg out = test_floats_put(is_whole ? t : TT_F32, is_whole ? whole : some, NULL, 0);
    test_floats_run("matmul", &attr, in, 2, &out, 1, ln);
    int n_parts = tti_lane_range_parts(first, last, total, parts);
    CHECK(ln->n == 0 || n_parts == ln->n_parts);
    for (int i = 0; i < ln->n_parts && ln->n > 0; i++)
        ends[i + 1] = ln->bound[TTI_MIN(parts[i].first + parts[i].size, last) - first] * per;
    double *z = calloc((size_t)(m * n * ln->n_parts), sizeof(double));
    CHECK(z != NULL);
    for (int i = 0; i < ln->n_parts; i++)
        multiply(&p, a, b, NULL, ends[i], ends[i + 1], z + i * m * n);
    test_floats_near("lanes", t, test_floats_get(&out), z, m * n * ln->n_parts);
    free(z);
    test_floats_clear();
}

TEST(cuda_matmul_sums_lanes)
{
    static const int deals[][5] = {{0, 1, 1, 7, 1},  {0, 8, 8, 16, 3}, {0, 8, 8, 21, 1},
                                   {1, 6, 8, 21, 2}, {2, 3, 8, 8, 4},  {0, 16, 16, 16, 1},
                                   {3, 8, 8, 5, 1},  {0, 5, 5, 40, 2}, {0, 40, 40, 90, 1},
                                   {0, 4, 8, 8, 8},  {5, 5, 8, 16, 1}};
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int t = 0; t < 3; t++)
            try_lanes(test_float_types[t], deals[i][0], deals[i][1], deals[i][2], deals[i][3],
                      deals[i][4]);
    test_device_close();
}

TEST(cuda_matmul_rows_are_free)
{
    static const int64_t some[] = {1, 3, 8, 63, 65};
    float *a, *b, *bias;
    test_device_open();
    for (int t = 0; t < 3; t++) {
        tti_matmul_attr attr = {false, false, TT_GELU, false};
        tt_shape sa = {2, {130, 520}}, sb = {2, {520, 72}}, sy = {2, {130, 72}};
        tt_arg in[3] = {test_floats_random(test_float_types[t], sa, 1, &a, 0),
                        test_floats_random(test_float_types[t], sb, 2, &b, 0),
                        test_floats_random(test_float_types[t], (tt_shape){1, {72}}, 3, &bias, 0)};
        tt_arg out[2] = {test_floats_put(test_float_types[t], sy, NULL, 0),
                         test_floats_put(test_float_types[t], sy, NULL, 0)};
        test_floats_run("matmul", &attr, in, 3, out, 2, NULL);
        float *y = test_floats_get(&out[0]), *z = test_floats_get(&out[1]);
        for (int i = 0; i < (int)TTI_COUNT(some); i++) {
            sa.dim[0] = sy.dim[0] = some[i];
            tt_arg part[3] = {test_arg(test_float_types[t], sa), in[1], in[2]};
            tt_arg to[2] = {test_floats_put(test_float_types[t], sy, NULL, 0),
                            test_floats_put(test_float_types[t], sy, NULL, 0)};
            part[0].data = (char *)in[0].data + 8 * 520 * tt_dtype_bytes(test_float_types[t]);
            test_floats_run("matmul", &attr, part, 3, to, 2, NULL);
            CHECK(memcmp(test_floats_get(&to[0]), y + 8 * 72, (size_t)some[i] * 72 * 4) == 0);
            CHECK(memcmp(test_floats_get(&to[1]), z + 8 * 72, (size_t)some[i] * 72 * 4) == 0);
        }
        test_floats_clear();
    }
    test_device_close();
}

// A weight and what its product does.
typedef struct weight {
    int64_t k, n;
    bool trans_b, bias;
    int act;
} weight;

static const weight weights_of_rows[] = {
    {784, 128, false, true, TT_RELU},   {128, 10, false, true, TT_LINEAR},
    {10, 128, true, false, TT_LINEAR},  {5, 7, false, false, TT_ELU},
    {33, 130, false, true, TT_GELU},    {1031, 67, true, false, TT_LINEAR},
    {64, 256, false, true, TT_GELU},    {520, 72, true, true, TT_RELU},
    {768, 2304, false, true, TT_GELU},  {1024, 1024, true, false, TT_LINEAR},
    {1023, 1025, false, true, TT_RELU}, {2048, 520, false, true, TT_SILU},
    {700, 1002, true, true, TT_LINEAR}, {300, 200, false, true, TT_LINEAR},
};

#define EMULATED ((int64_t)110000) // largest weight on the emulation

static void check_rows(const weight *w, tt_dtype t)
{
    static const int64_t cuts[][2] = {{0, 1}, {7, 1}, {1, 2}, {3, 3}, {5, 8}, {0, 33}, {1, 64}};
    const int64_t rows = 70, item = (int64_t)tt_dtype_bytes(t);
    tti_matmul_attr attr = {false, w->trans_b, w->act, false};
    tt_shape sb = {2, {w->trans_b ? w->n : w->k, w->trans_b ? w->k : w->n}};
    tt_shape sa = {2, {rows, w->k}}, sy = {2, {rows, w->n}};
    int n_in = w->bias ? 3 : 2, n_out = w->act == TT_GELU || w->act == TT_SILU ? 2 : 1;
    float *x;
    tt_arg in[3] = {test_floats_random(t, sa, 1, &x, 0), test_floats_random(t, sb, 2, &x, 0),
                    test_floats_random(t, (tt_shape){1, {w->n}}, 3, &x, 0)};
    tt_arg out[2] = {test_floats_put(t, sy, NULL, 0), test_floats_put(t, sy, NULL, 0)};
    test_floats_run("matmul", &attr, in, n_in, out, n_out, NULL);
    float *y[2] = {test_floats_get(&out[0]), test_floats_get(&out[n_out - 1])};
    for (int i = 0; i < (int)TTI_COUNT(cuts); i++) {
        int64_t first = cuts[i][0], n = cuts[i][1] * w->n;
        sa.dim[0] = sy.dim[0] = cuts[i][1];
        tt_arg part[3] = {test_arg(t, sa), in[1], in[2]};
        tt_arg to[2] = {test_floats_put(t, sy, NULL, (int)(first * w->n)),
                        test_floats_put(t, sy, NULL, 0)};
        part[0].data = (char *)in[0].data + first * w->k * item;
        test_floats_run("matmul", &attr, part, n_in, to, n_out, NULL);
        for (int j = 0; j < n_out; j++)
            ck_assert_msg(memcmp(test_floats_get(&to[j]), y[j] + first * w->n, (size_t)n * 4) == 0,
                          "[%lld, %lld], %s, activation %d: output %d of rows %lld to %lld differs",
                          (long long)w->k, (long long)w->n, tt_dtype_name(t), w->act, j,
                          (long long)first, (long long)(first + cuts[i][1]));
    }
    test_floats_clear();
}

TEST(cuda_matmul_rows_alone_are_rows_together)
{
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(weights_of_rows); i++) {
        const weight *w = &weights_of_rows[i];
        for (int t = 0; t < 3 && (w->k * w->n < EMULATED || !test_gpu_is_emulated()); t++)
            check_rows(w, test_float_types[t]);
    }
    test_device_close();
}

// Lanes first to last of 8 with all their rows in a and b; f32 parts, as a plan's are.
static float *sum_lanes(const tt_arg *all, int first, int last, int64_t global, int64_t per)
{
    tti_matmul_attr attr = {true, false, TT_LINEAR, false};
    const tt_lanes *ln = test_lanes(first, last, 8, global);
    int64_t skip = ln->first_row * per;
    tt_arg in[2];
    for (int i = 0; i < 2; i++) {
        int64_t width = all[i].shape.dim[1];
        in[i] = test_arg(all[i].dtype, (tt_shape){2, {ln->bound[ln->n] * per, width}});
        in[i].data = (char *)all[i].data + skip * width * (int64_t)tt_dtype_bytes(all[i].dtype);
        in[i].open = 0;
        in[i].per = per;
    }
    tt_shape s = {2, {all[0].shape.dim[1], all[1].shape.dim[1]}};
    tt_arg out = test_floats_put(TT_F32, s, NULL, 0);
    CHECK_INT(ln->n_parts, 1);
    test_floats_run("matmul", &attr, in, 2, &out, 1, ln);
    return test_floats_get(&out);
}

static void check_lanes(tt_dtype t, int64_t m, int64_t n, int64_t global, int64_t per)
{
    float *x, *one[15];
    tt_arg in[2] = {test_floats_random(t, (tt_shape){2, {global * per, m}}, 4, &x, 0),
                    test_floats_random(t, (tt_shape){2, {global * per, n}}, 5, &x, 0)};
    for (int i = 0; i < 8; i++)
        one[i] = sum_lanes(in, i, i + 1, global, per);
    for (int i = 0; i < 7; i++) { // the tree, by twos, fours and eights
        int size = i < 4 ? 2 : i < 6 ? 4 : 8, first = i < 4 ? 2 * i : i < 6 ? 4 * (i - 4) : 0;
        one[8 + i] = sum_lanes(in, first, first + size, global, per);
        for (int64_t j = 0; j < m * n; j++) {
            float want = one[2 * i][j] + one[2 * i + 1][j];
            ck_assert_msg(one[8 + i][j] == want,
                          "[%lld, %lld], %s, %lld rows by %lld: element %lld of lanes %d to %d is "
                          "%a, from its halves %a",
                          (long long)m, (long long)n, tt_dtype_name(t), (long long)global,
                          (long long)per, (long long)j, first, first + size, (double)one[8 + i][j],
                          (double)want);
        }
    }
    test_floats_clear();
}

TEST(cuda_matmul_lanes_alone_are_lanes_together)
{
    static const int64_t deals[][4] = {{784, 128, 32, 1},  {128, 10, 32, 1},  {20, 36, 21, 3},
                                       {5, 7, 1200, 1},    {2, 17, 13, 130},  {64, 256, 19, 5},
                                       {768, 1024, 16, 8}, {768, 1001, 19, 5}};
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int t = 0; t < 3 && (deals[i][0] * deals[i][1] < EMULATED || !test_gpu_is_emulated());
             t++)
            check_lanes(test_float_types[t], deals[i][0], deals[i][1], deals[i][2], deals[i][3]);
    test_device_close();
}

TEST(cuda_relu_of_a_product_keeps_nan)
{
    float a[2] = {NAN, 1}, b[2] = {1, -1}, *y;
    test_device_open();
    for (int t = 0; t < 3; t++) {
        tti_matmul_attr attr = {false, false, TT_RELU, false};
        tt_arg in[2] = {test_floats_put(test_float_types[t], (tt_shape){2, {2, 1}}, a, 0),
                        test_floats_put(test_float_types[t], (tt_shape){2, {1, 2}}, b, 0)};
        tt_arg out = test_floats_put(test_float_types[t], (tt_shape){2, {2, 2}}, NULL, 0);
        test_floats_run("matmul", &attr, in, 2, &out, 1, NULL);
        y = test_floats_get(&out);
        CHECK(isnan(y[0]) && isnan(y[1]) && y[2] == 1 && y[3] == 0);
        test_floats_clear();
    }
    test_device_close();
}
