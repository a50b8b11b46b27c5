/*
 * cuda_packs.c - kernels that move packs of 16 bytes against themselves on badly aligned data,
 * which other kernels or paths take element by element: bits are the same. Sums over rows also
 * against their order, written down here once more; updates made at once against one by one.
 */
#include "base/base.h"
#include "cuda_module.h"
#include "op/batch_norm.h"
#include "op/batched_calls.h"
#include "op/norm.h"
#include "op/reduce.h"
#include "op/update.h"
#include <stdio.h>

#define MAX 400000

// Numbers between -4 and 4 of which bf16 holds the first bits.
static void fill(tt_dtype t, int64_t n, uint64_t seed, void *to)
{
    for (int64_t i = 0; i < n; i++) {
        float x = (float)(int32_t)tti_philox4(seed, (uint64_t)i, 0).v[0] * 0x1p-29f;
        uint32_t u;
        memcpy(&u, &x, sizeof(u));
        if (t == TT_F32)
            ((float *)to)[i] = x;
        else
            ((uint16_t *)to)[i] = (uint16_t)(u >> 16);
    }
}

static tt_arg matrix(tt_dtype t, int64_t rows, int64_t cols, const void *data, size_t skip)
{
    tt_arg a = test_device_arg(t, rows * cols, data, skip);
    a.shape = TT_SHAPE(rows, cols);
    a.rows = rows;
    a.cols = cols;
    return a;
}

static void run(const char *name, tt_launch l)
{
    tt_status st = test_device_run(name, l);
    ck_assert_msg(st == TT_OK, "%s: %s", name, test_device_reason());
}

// Several calls of an op at once.
static void run_batched(const char *name, tt_launch l)
{
    tt_status st = test_device_run_key((tti_kernel_key){TTI_KERNEL_BATCHED, {name, NULL, NULL}}, l);
    ck_assert_msg(st == TT_OK, "batched %s: %s", name, test_device_reason());
}

static char in_data[2][MAX * 4], out_data[2][MAX * 4];
static const tt_dtype types[] = {TT_F32, TT_BF16};

// ---- pointwise -------------------------------------------------------------------------------

static void try_op(const char *name, int n_in, tt_dtype from, tt_dtype to, int64_t n)
{
    for (size_t skip = 0; skip < 2; skip++) {
        tt_arg in[2], out = test_device_arg(to, n, NULL, skip);
        for (int k = 0; k < n_in; k++) {
            fill(from, n, (uint64_t)k + 1, in_data[k]);
            in[k] = test_device_arg(from, n, in_data[k], skip);
        }
        run(name, (tt_launch){.in = in, .n_in = n_in, .out = &out, .n_out = 1});
        test_device_get(out_data[skip], &out);
        test_device_clear();
    }
    ck_assert_msg(memcmp(out_data[0], out_data[1], (size_t)n * tt_dtype_bytes(to)) == 0,
                  "%s: %lld elements differ by alignment", name, (long long)n);
}

TEST(packs_of_pointwise_ops_have_the_bits_of_elements)
{
    static const int64_t counts[] = {1, 8, 15, 4096, 4104, 20001};
    static const char *two[] = {"add", "mul", "relu_grad", "gelu_grad"};
    static const char *one[] = {"relu", "gelu"};
    test_device_open();
    for (int c = 0; c < 6; c++) {
        for (int t = 0; t < 2; t++) {
            for (int i = 0; i < 4; i++)
                try_op(two[i], 2, types[t], types[t], counts[c]);
            for (int i = 0; i < 2; i++)
                try_op(one[i], 1, types[t], types[t], counts[c]);
        }
        try_op("cast", 1, TT_F32, TT_BF16, counts[c]);
        try_op("cast", 1, TT_BF16, TT_F32, counts[c]);
    }
    test_device_close();
}

// ---- lanes -----------------------------------------------------------------------------------

// Four lanes, one of them without rows, one of several chunks, in two parts.
static const int64_t bound[] = {0, 5, 5, 205, 300};
static const uint8_t merges[] = {0, 1, 0, 1};
static const tt_lanes lanes = {.total = 8,
                               .n = 4,
                               .n_parts = 2,
                               .depth = 2,
                               .global_rows = 600,
                               .bound = bound,
                               .merges = merges};
#define ROWS 300

static void try_norm(tt_dtype t, int64_t n, bool rms)
{
    static char gradient[2][3][MAX * 4];
    tti_norm_attr attr = {.eps = 1e-5, .has_gamma = true, .has_beta = !rms};
    int n_stats = rms ? 1 : 2;
    for (size_t skip = 0; skip < 2; skip++) {
        fill(t, ROWS * n, 1, in_data[0]);
        fill(TT_F32, 2 * n, 2, in_data[1]);
        tt_arg in[5] = {matrix(t, ROWS, n, in_data[0], skip)}, out[3];
        in[0].open = 0;
        in[0].per = 1;
        in[1] = test_device_arg(TT_F32, n, in_data[1], skip);
        in[2] = test_device_arg(TT_F32, n, in_data[1] + 4 * n, skip);
        out[0] = matrix(t, ROWS, n, NULL, skip);
        out[1] = test_device_arg(TT_F32, ROWS, NULL, 0);
        out[2] = test_device_arg(TT_F32, ROWS, NULL, 0);
        run(rms ? "rms_norm" : "layer_norm", (tt_launch){.attr = &attr,
                                                         .in = in,
                                                         .n_in = rms ? 2 : 3,
                                                         .out = out,
                                                         .n_out = 1 + n_stats,
                                                         .lanes = &lanes});
        test_device_get(out_data[skip], &out[0]);
        in[2 + n_stats] = in[1];
        for (int k = 0; k < n_stats; k++)
            in[2 + k] = out[1 + k];
        fill(t, ROWS * n, 3, in_data[1]);
        in[1] = matrix(t, ROWS, n, in_data[1], skip);
        tt_arg grads[3] = {matrix(t, ROWS, n, NULL, skip), matrix(TT_F32, 2, n, NULL, 0),
                           matrix(TT_F32, 2, n, NULL, 0)};
        run(rms ? "rms_norm_grad" : "layer_norm_grad", (tt_launch){.attr = &attr,
                                                                   .in = in,
                                                                   .n_in = 3 + n_stats,
                                                                   .out = grads,
                                                                   .n_out = rms ? 2 : 3,
                                                                   .lanes = &lanes});
        for (int k = 0; k < (rms ? 2 : 3); k++)
            test_device_get(gradient[skip][k], &grads[k]);
        test_device_clear();
    }
    size_t bytes = (size_t)(ROWS * n) * tt_dtype_bytes(t);
    CHECK(memcmp(out_data[0], out_data[1], bytes) == 0);
    CHECK(memcmp(gradient[0][0], gradient[1][0], bytes) == 0);
    for (int k = 1; k < (rms ? 2 : 3); k++)
        CHECK(memcmp(gradient[0][k], gradient[1][k], (size_t)n * 8) == 0);
}

TEST(norms_of_short_rows_have_the_bits_of_rows_by_elements)
{
    static const int64_t cols[] = {8, 256, 520, 768, 1016, 1024};
    test_device_open();
    for (int t = 0; t < 2; t++)
        for (int c = 0; c < 6; c++) {
            try_norm(types[t], cols[c], false);
            try_norm(types[t], cols[c], true);
        }
    test_device_close();
}

// ---- sums over rows --------------------------------------------------------------------------

// A lane's sum of a column: chunks of 128 rows, each of eight sums in turn; chunks by 32 sums.
static float lane_sum(tt_dtype t, int64_t n, int64_t col, int64_t low, int64_t high)
{
    float of[32] = {0}, all;
    for (int64_t c = 0; low + c * 128 < high; c++) {
        float a[8] = {0}, chunk;
        for (int64_t i = low + c * 128; i < high && i < low + (c + 1) * 128; i++) {
            const char *row = in_data[0] + (size_t)(i * n) * tt_dtype_bytes(t);
            a[(i - low) % 8] += t == TT_F32 ? ((const float *)row)[col]
                                            : tti_from_bf16(((const uint16_t *)row)[col]);
        }
        chunk = a[0];
        for (int k = 1; k < 8; k++)
            chunk += a[k];
        of[c % 32] += chunk;
    }
    all = of[0];
    for (int k = 1; k < 32; k++)
        all += of[k];
    return all;
}

// x is [batch, time, n]: lanes are of the batch, `time` rows for each of its rows.
static void try_sum(tt_dtype t, int64_t n, int64_t time, size_t skip)
{
    static const int64_t axes[] = {0, 1};
    tti_reduce_attr attr = {.wide = true};
    attr.axes.n = 2;
    memcpy(attr.axes.v, axes, sizeof(axes));
    float *y = (float *)out_data[0];
    fill(t, ROWS * time * n, 1, in_data[0]);
    tt_arg in = matrix(t, ROWS * time, n, in_data[0], skip), out = matrix(TT_F32, 2, n, NULL, 0);
    in.shape = TT_SHAPE(ROWS, time, n);
    in.open = 0;
    in.per = 1;
    run("sum",
        (tt_launch){.attr = &attr, .in = &in, .n_in = 1, .out = &out, .n_out = 1, .lanes = &lanes});
    test_device_get(y, &out);
    for (int64_t j = 0; j < n; j++)
        for (int p = 0; p < 2; p++) {
            float a = lane_sum(t, n, j, bound[2 * p] * time, bound[2 * p + 1] * time);
            float b = lane_sum(t, n, j, bound[2 * p + 1] * time, bound[2 * p + 2] * time);
            float sum = a + b;
            CHECK(memcmp(&y[p * n + j], &sum, sizeof(sum)) == 0);
        }
    test_device_clear();
}

TEST(sums_over_rows_are_in_the_order_of_chunks_and_lanes)
{
    test_device_open();
    for (int t = 0; t < 2; t++)
        for (size_t skip = 0; skip < 2; skip++) {
            try_sum(types[t], 40, 1, skip);
            try_sum(types[t], 264, 1, skip);
            try_sum(types[t], 16, 7, skip);
            try_sum(types[t], 13, 7, skip);
        }
    test_device_close();
}

// ---- updates ---------------------------------------------------------------------------------

#define VARIABLES 80

static int64_t size_of(int i)
{
    return i % 50 == 49 ? 0 : i % 37 == 5 ? 3000 + i : (i * 7) % 100 + 1;
}

// n inputs of a variable's update in the device's memory, some badly aligned: variable, gradient,
// state, and the scale of all.
static void make_inputs(tt_arg *in, int n, int i, const tt_arg *scale)
{
    for (int k = 0; k < n; k++) {
        fill(TT_F32, size_of(i), (uint64_t)(i * 8 + k), in_data[0]);
        for (int64_t j = 0; k == 3 && j < size_of(i); j++) // a mean of squares
            ((float *)in_data[0])[j] *= ((float *)in_data[0])[j];
        in[k] = test_device_arg(TT_F32, size_of(i), in_data[0], i % 11 == 3 && k == 1);
    }
    in[n] = *scale;
}

// All updates at once, or one by one; the variables and states come after each other in `to`.
static size_t update_all(const char *name, int n_in, bool at_once, char *to)
{
    static tt_arg in[VARIABLES][5];
    static tt_launch one[VARIABLES];
    static const tt_launch *list[VARIABLES];
    tti_update_attr attr[6];
    tti_batch_norm_attr norm[6];
    bool is_norm = strcmp(name, "batch_norm_running") == 0;
    float half = 0.5f;
    tt_step step = {.step = 3, .lr = 0.01f, .grad_scale = 0.25f};
    tt_arg scale = test_device_arg(TT_F32, 1, &half, 0);
    tt_arg at = test_device_arg(TT_U8, sizeof(step), &step, 0);
    size_t bytes = 0;
    for (int k = 0; k < 6; k++) {
        attr[k] = (tti_update_attr){1, 0.01 * k, 0.9, 0.9, 0.99, 1e-8, 0, 1};
        norm[k] = (tti_batch_norm_attr){.momentum = 0.9 - 0.1 * k};
    }
    for (int i = 0; i < VARIABLES; i++) {
        make_inputs(in[i], n_in, i, &scale);
        // Two kinds; later more than a list has room for.
        int kind = i < 40 ? i % 2 : i % 6;
        one[i] = (tt_launch){.attr = is_norm ? (void *)&norm[kind] : &attr[kind],
                             .in = in[i],
                             .n_in = n_in + 1,
                             .out = in[i],
                             .n_out = 1,
                             .step = at.data};
        list[i] = &one[i];
        if (!at_once)
            run(name, one[i]);
    }
    tt_launch l = one[0];
    l.tune = &(tti_batched_calls){VARIABLES, list};
    if (at_once)
        run_batched(name, l);
    for (int i = 0; i < VARIABLES; i++)
        for (int k = 0; k < n_in; k++) {
            test_device_get(to + bytes, &in[i][k]);
            bytes += (size_t)size_of(i) * 4;
        }
    test_device_clear();
    return bytes;
}

TEST(updates_at_once_are_those_one_by_one)
{
    static const struct {
        const char *name;
        int n_in;
    } rules[] = {{"update_sgd", 2},
                 {"update_sgd", 3},
                 {"update_adam", 4},
                 {"update_adamw", 4},
                 {"batch_norm_running", 2}};
    test_device_open();
    for (int i = 0; i < 5; i++) {
        size_t bytes = update_all(rules[i].name, rules[i].n_in, false, out_data[0]);
        CHECK(bytes < sizeof(out_data[0]));
        CHECK(update_all(rules[i].name, rules[i].n_in, true, out_data[1]) == bytes);
        CHECK(memcmp(out_data[0], out_data[1], bytes) == 0);
    }
    test_device_close();
}

// Sums of squares of tensors of many sizes, some empty or badly aligned, all at once or one by one.
static void square_all(bool at_once, double *to)
{
    static tt_arg in[VARIABLES], out[VARIABLES];
    static tt_launch one[VARIABLES];
    static const tt_launch *list[VARIABLES];
    for (int i = 0; i < VARIABLES; i++) {
        int64_t n = i % 60 == 7 ? 40000 + i : i % 60 == 8 ? 16384 : size_of(i);
        fill(TT_F32, n, (uint64_t)i + 1, in_data[0]);
        in[i] = test_device_arg(TT_F32, n, in_data[0], i % 11 == 3);
        out[i] = test_device_arg(TT_F64, 1, NULL, 0);
        one[i] = (tt_launch){.in = &in[i], .n_in = 1, .out = &out[i], .n_out = 1};
        one[i].scratch = test_device_room(NULL, 64, 0);
        list[i] = &one[i];
        if (!at_once)
            run("square_sum", one[i]);
    }
    tt_launch l = one[0];
    l.tune = &(tti_batched_calls){VARIABLES, list};
    if (at_once)
        run_batched("square_sum", l);
    for (int i = 0; i < VARIABLES; i++)
        test_device_get(&to[i], &out[i]);
    test_device_clear();
}

TEST(squares_at_once_are_those_one_by_one)
{
    static double one_by_one[VARIABLES], at_once[VARIABLES];
    test_device_open();
    square_all(false, one_by_one);
    square_all(true, at_once);
    CHECK(one_by_one[0] > 0 && one_by_one[49] == 0 && one_by_one[7] > one_by_one[8]);
    CHECK(memcmp(one_by_one, at_once, sizeof(at_once)) == 0);
    test_device_close();
}
