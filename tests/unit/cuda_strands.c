/*
 * cuda_strands.c - sums over long lanes of the CUDA module (src/cuda/strands.cuh), called alone:
 * near sums in double, a lane's bits the same alone and among others, and a job of 1, 2 or 4 lanes
 * with the bits of one of 8 where the batch divides by 8.
 */
#include "base/base.h"
#include "comm/lane_tree.h"
#include "cuda_floats.h"
#include "cuda_module.h"
#include "op/batch_norm.h"
#include "op/conv.h"
#include "op/gemm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/ops.h>

#define MOST_LANES 16

// An op that sums over rows: inputs 0 and 1 are split, any others [channels].
typedef struct sum {
    const char *op;
    union {
        tti_matmul_attr product;
        tti_conv_attr conv;
        tti_batch_norm_attr norm;
    } attr;
    int64_t rows, per; // of the batch, and on axis 0 for each
    tt_shape in[2];    // axis 0 is filled in
    int n_in, n_out;
    int64_t count; // numbers of an output
} sum;

typedef struct batch {
    tt_dtype type;
    tt_arg in[4]; // all rows
} batch;

static batch make_batch(sum *s, tt_dtype t)
{
    batch b = {.type = t};
    float *x;
    for (int i = 0; i < 2; i++) {
        s->in[i].dim[0] = s->rows * s->per;
        b.in[i] = test_floats_random(t, s->in[i], (uint64_t)i + 1, &x, 0);
    }
    for (int i = 2; i < s->n_in; i++) { // a mean and a variance
        x = test_floats(s->count);
        test_fill(x, s->count, 9, 0.25f, 1);
        b.in[i] = test_floats_put(TT_F32, (tt_shape){1, {s->count}}, x, 0);
    }
    return b;
}

// Output which of lanes first to last of total, all parts of it.
static float *run(const sum *s, const batch *b, int first, int last, int total, int which)
{
    const tt_lanes *ln = test_lanes(first, last, total, s->rows);
    tt_arg in[4], out[3];
    memcpy(in, b->in, sizeof(in));
    for (int i = 0; i < TTI_MIN(s->n_in, 2); i++) {
        tt_shape shape = s->in[i];
        int64_t row = b->in[i].count / s->rows * (int64_t)tt_dtype_bytes(b->type);
        shape.dim[0] = ln->bound[ln->n] * s->per;
        in[i] = test_arg(b->type, shape);
        in[i].data = (char *)b->in[i].data + ln->first_row * row;
        in[i].open = 0;
        in[i].per = s->per;
    }
    for (int i = 0; i < s->n_out; i++)
        out[i] = test_floats_put(TT_F32, (tt_shape){2, {ln->n_parts, s->count}}, NULL, 0);
    test_floats_run(s->op, &s->attr, in, s->n_in, out, s->n_out, ln);
    return test_floats_get(&out[which]);
}

static void same(const sum *s, const batch *b, const char *what, int lanes, const float *got,
                 const float *want)
{
    for (int64_t i = 0; i < s->count; i++)
        ck_assert_msg(got[i] == want[i], "%s, %s: %s of %d lanes: [%lld] is %a, not %a", s->op,
                      tt_dtype_name(b->type), what, lanes, (long long)i, (double)got[i],
                      (double)want[i]);
}

// The tree over lanes, each of which runs alone; for outputs that are sums.
static void check_alone(const sum *s, const batch *b, int total)
{
    const tt_lanes *ln = test_lanes(0, total, total, s->rows);
    float *stack[MOST_LANES], *all = run(s, b, 0, total, total, s->n_out - 1);
    int depth = 0;
    for (int i = 0; i < total; i++) {
        stack[depth++] = run(s, b, i, i + 1, total, s->n_out - 1);
        for (int m = 0; m < ln->merges[i]; m++, depth--)
            for (int64_t k = 0; k < s->count; k++)
                stack[depth - 2][k] += stack[depth - 1][k];
    }
    same(s, b, "the tree", total, all, stack[0]);
}

// The last two lanes have parts of their own if their number is odd: those of either alone.
static void check_parts(const sum *s, const batch *b, int total)
{
    for (int i = 0; i < s->n_out; i++) {
        float *two = run(s, b, total - 2, total, total, i);
        same(s, b, "the last but one", total, two, run(s, b, total - 2, total - 1, total, i));
        same(s, b, "the last", total, two + s->count, run(s, b, total - 1, total, total, i));
    }
}

static void check_few(const sum *s, const batch *b)
{
    for (int i = 0; i < s->n_out; i++) {
        float *eight = run(s, b, 0, 8, 8, i);
        for (int total = 1; total < 8; total *= 2)
            same(s, b, "all", total, run(s, b, 0, total, total, i), eight);
    }
}

// ---- products --------------------------------------------------------------------------------

static sum product_of(int64_t rows, int64_t per, int64_t m, int64_t n)
{
    return (sum){.op = "matmul",
                 .attr.product = {true, false, TT_LINEAR, true},
                 .rows = rows,
                 .per = per,
                 .in = {{2, {0, m}}, {2, {0, n}}},
                 .n_in = 2,
                 .n_out = 1,
                 .count = m * n};
}

TEST(cuda_products_of_few_lanes_are_those_of_eight)
{
    test_device_open();
    for (int t = 0; t < 2; t++) {
        sum s = product_of(16, 1100, 17, 8);
        batch b = make_batch(&s, test_float_types[t]);
        check_few(&s, &b);
        test_floats_clear();
    }
    test_device_close();
}

TEST(cuda_products_of_long_lanes_depend_on_their_rows_alone)
{
    static const struct {
        int64_t rows, per;
        int lanes;
    } deals[] = {{3, 2111, 1},  {7, 1100, 2},  {10, 1777, 3},  {1, 5000, 3}, {8, 10000, 8},
                 {17, 2111, 5}, {9, 16400, 9}, {16, 9000, 16}, {40000, 1, 3}};
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int t = 0; t < 2; t++) {
            sum s = product_of(deals[i].rows, deals[i].per, 3, 8);
            batch b = make_batch(&s, test_float_types[t]);
            check_alone(&s, &b, deals[i].lanes);
            if (deals[i].lanes % 2 == 1 && deals[i].lanes > 1)
                check_parts(&s, &b, deals[i].lanes);
            test_floats_clear();
        }
    test_device_close();
}

TEST(cuda_products_of_long_lanes_are_right)
{
    static const int lanes[] = {1, 2, 3, 8, 16};
    float *a, *b;
    test_device_open();
    for (int k = 0; k < (int)TTI_COUNT(lanes); k++) {
        sum s = product_of(19, 1000, 4, 5);
        tt_arg in[2] = {test_floats_random(TT_F32, (tt_shape){2, {19000, 4}}, 1, &a, 0),
                        test_floats_random(TT_F32, (tt_shape){2, {19000, 5}}, 2, &b, 0)};
        double want[20] = {0};
        for (int64_t i = 0; i < 19000 * 20; i++)
            want[i % 20] += (double)a[i / 20 * 4 + i % 20 / 5] * (double)b[i / 20 * 5 + i % 5];
        s.in[0].dim[0] = s.in[1].dim[0] = 19000;
        batch all = {.type = TT_F32, .in = {in[0], in[1]}};
        test_floats_near("long lanes", TT_F32, run(&s, &all, 0, lanes[k], lanes[k], 0), want, 20);
        test_floats_clear();
    }
    test_device_close();
}

// ---- images ----------------------------------------------------------------------------------

// Channels of x and dy, and the side of the window, which leaves images as large as they are.
typedef struct image_op {
    const char *name;
    int64_t c, n, k;
    int n_in, n_out;
} image_op;

static const image_op image_ops[] = {
    {"conv2d_dw", 8, 8, 3, 2, 1},         {"conv2d_dw", 8, 16, 1, 2, 1},
    {"conv2d_dw", 3, 5, 3, 2, 1},         {"depthwise_conv2d_dw", 8, 8, 3, 2, 1},
    {"batch_norm_sums", 24, 24, 0, 4, 2}, {"batch_norm_stats", 5, 5, 0, 1, 3},
};

static sum sum_of_images(const image_op *o, int64_t rows, int64_t side)
{
    sum s = {.op = o->name,
             .rows = rows,
             .per = 1,
             .in = {{4, {0, side, side, o->c}}, {4, {0, side, side, o->n}}},
             .n_in = o->n_in,
             .n_out = o->n_out,
             .count = o->n};
    if (o->k == 0) {
        s.attr.norm = (tti_batch_norm_attr){.eps = 1e-3};
        return s;
    }
    int64_t pad = o->k / 2;
    s.attr.conv = (tti_conv_attr){.stride = {2, {1, 1}},
                                  .pad = {4, {pad, pad, pad, pad}},
                                  .size = {2, {o->k, o->k}},
                                  .wide = true};
    s.count *= o->k * o->k * (strcmp(o->name, "conv2d_dw") == 0 ? o->c : 1);
    return s;
}

TEST(cuda_images_of_few_lanes_are_those_of_eight)
{
    test_device_open();
    for (int i = 0; i < 2 * (int)TTI_COUNT(image_ops); i++) {
        sum s = sum_of_images(&image_ops[i / 2], 16, 24);
        batch b = make_batch(&s, test_float_types[i % 2]);
        check_few(&s, &b);
        test_floats_clear();
    }
    test_device_close();
}

TEST(cuda_images_of_long_lanes_depend_on_their_rows_alone)
{
    static const struct {
        int64_t rows, side;
        int lanes;
    } deals[] = {{7, 18, 1},  {11, 20, 2}, {31, 32, 3}, {2, 50, 3},
                 {330, 8, 8}, {35, 9, 16}, {70, 5, 2}};
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int k = 0; k < (int)TTI_COUNT(image_ops); k++) {
            if (test_gpu_is_emulated() && deals[i].rows * deals[i].side * deals[i].side > 6000)
                continue; // it is slow
            const image_op *o = &image_ops[k];
            sum s = sum_of_images(o, deals[i].rows, deals[i].side);
            batch b = make_batch(&s, test_float_types[(i + k) % 2]);
            if (o->n_out != 3) // not of moments
                check_alone(&s, &b, deals[i].lanes);
            if (deals[i].lanes % 2 == 1 && deals[i].lanes > 1)
                check_parts(&s, &b, deals[i].lanes);
            test_floats_clear();
        }
    test_device_close();
}
