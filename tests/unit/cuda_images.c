/*
 * cuda_images.c - convolutions, pooling and batch norm of the CUDA module alone: against the CPU's
 * kernels of the same ops in f32, and between parts of the lanes to the bit.
 */
#include "base/base.h"
#include "comm/lane_tree.h"
#include "cuda_module.h"
#include "op/batch_norm.h"
#include "op/depthwise.h"
#include "op/pool.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const tt_op tti_op_conv2d, tti_op_conv2d_dx, tti_op_conv2d_dw, tti_op_depthwise_conv2d,
    tti_op_depthwise_conv2d_dx, tti_op_depthwise_conv2d_dw, tti_op_max_pool2d,
    tti_op_max_pool2d_grad, tti_op_avg_pool2d, tti_op_avg_pool2d_grad, tti_op_batch_norm_stats,
    tti_op_batch_norm_apply, tti_op_batch_norm_sums, tti_op_batch_norm_dx, tti_op_batch_norm_lane,
    tti_op_batch_norm_lane_grad;

#define ARGS 8

// ---- one call, on both -----------------------------------------------------------------------

typedef struct call {
    const tt_op *op;
    const void *attr;
    int n_in, n_out;
    tt_shape in[ARGS], out[ARGS]; // of all lanes
    bool in_open[ARGS];           // axis 0 is the batch's
    int out_kind[ARGS];           // 0: split as the batch is; 1: a lane sum; 2: moments
    int64_t rows;                 // of the batch
    int total;                    // lanes
    double bound;
    bool by_library; // one may run it, but not at odd addresses
} call;

// Numbers that bf16 has exactly.
static float value(int which, int64_t i)
{
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)which * 40503u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    int k = (int)(h % 97) - 48;
    return (float)k / 32 + (k == 0 ? 0.03125f : 0);
}

static tt_arg shaped(tt_shape shape, bool open, int64_t rows, int64_t all)
{
    if (open)
        shape.dim[0] = shape.dim[0] / all * rows;
    tt_arg a = test_arg(TT_F32, shape);
    if (open) {
        a.open = 0;
        a.per = rows > 0 ? shape.dim[0] / rows : 1;
    }
    return a;
}

// Inputs of lanes [first, last): rows of the whole, so that parts see what all lanes see.
static void fill(const call *c, const tt_lanes *ln, int i, tt_arg *a, float *data)
{
    int64_t skip = 0;
    if (c->in_open[i]) {
        int64_t per = 1;
        for (int k = 1; k < c->in[i].rank; k++)
            per *= c->in[i].dim[k];
        skip = ln->first_row * (c->in[i].dim[0] / c->rows) * per;
    }
    bool is_var = strstr(c->op->name, "batch_norm") != NULL && !c->in_open[i];
    for (int64_t j = 0; j < a->count; j++)
        data[j] = is_var ? fabsf(value(i, skip + j)) + 0.25f : value(i, skip + j);
}

static void run_cpu(const call *c, tt_launch l)
{
    tt_node node = {.op = c->op, .name = "alone"};
    tt_prep p = {.node = &node,
                 .attr = c->attr,
                 .in = l.in,
                 .out_args = l.out,
                 .n_in = c->n_in,
                 .n_out = c->n_out,
                 .lanes = l.lanes,
                 .n_threads = 1,
                 .isa = TT_ISA_PLAIN,
                 .n_phases = 1};
    CHECK(c->op->kernel[TT_CPU].prepare(&p) == TT_OK);
    l.node = &node;
    l.tune = p.tune;
    l.scratch = aligned_alloc(64, (p.scratch_bytes + 127) / 64 * 64);
    l.local = aligned_alloc(64, (p.local_bytes + 127) / 64 * 64);
    l.n_threads = 1;
    for (l.phase = 0; l.phase < p.n_phases; l.phase++) {
        l.begin = 0;
        l.end = p.units[l.phase];
        if (l.end > 0)
            CHECK(c->op->kernel[TT_CPU].fn[TT_ISA_PLAIN](&l) == TT_OK);
    }
    free(l.scratch);
    free(l.local);
}

static bool is_half(const call *c, bool is_out, int i, bool bf16)
{
    bool norm = strstr(c->op->name, "batch_norm") != NULL;
    if (!bf16 || (is_out && c->out_kind[i] != 0))
        return false;
    return !norm || (is_out ? i == 0 : c->in_open[i] && c->in[i].rank > 2);
}

/*
 * Outputs of lanes [first, last), by the CPU into want (unless NULL) and by the module into got,
 * each out_size numbers; skip elements in.
 */
static void run(const call *c, int first, int last, bool bf16, size_t skip, float **want,
                float **got, int64_t *sizes)
{
    const tt_lanes *ln = test_lanes(first, last, c->total, c->rows);
    int64_t rows = ln->bound[ln->n];
    tt_arg in[ARGS], out[ARGS], dev_in[ARGS], dev_out[ARGS];
    float *data[ARGS];
    for (int i = 0; i < c->n_in; i++) {
        in[i] = dev_in[i] = shaped(c->in[i], c->in_open[i], rows, c->rows);
        data[i] = calloc((size_t)in[i].count + 64, sizeof(float));
        fill(c, ln, i, &in[i], data[i]);
        in[i].data = data[i];
        bool half = is_half(c, false, i, bf16);
        uint16_t *narrow = calloc((size_t)in[i].count + 1, sizeof(uint16_t));
        for (int64_t j = 0; half && j < in[i].count; j++)
            narrow[j] = tti_to_bf16(data[i][j]);
        dev_in[i].dtype = half ? TT_BF16 : TT_F32;
        dev_in[i].data = test_device_arg(dev_in[i].dtype, in[i].count,
                                         half ? (void *)narrow : (void *)data[i], skip)
                             .data;
        free(narrow);
    }
    for (int i = 0; i < c->n_out; i++) {
        out[i] = shaped(c->out[i], c->out_kind[i] == 0, rows, c->rows);
        sizes[i] = out[i].count * (c->out_kind[i] == 0 ? 1 : ln->n_parts);
        dev_out[i] = out[i];
        dev_out[i].dtype = is_half(c, true, i, bf16) ? TT_BF16 : TT_F32;
        dev_out[i].data = test_device_arg(dev_out[i].dtype, sizes[i], NULL, skip).data;
        got[i] = calloc((size_t)sizes[i] + 64, sizeof(float));
        if (want != NULL)
            out[i].data = want[i] = calloc((size_t)sizes[i] + 64, sizeof(float));
    }
    tt_launch l = {.attr = c->attr, .n_in = c->n_in, .n_out = c->n_out, .lanes = ln};
    l.in = dev_in;
    l.out = dev_out;
    tt_status st = test_device_run(c->op->name, l);
    ck_assert_msg(st == TT_OK, "%s: %s", c->op->name, test_device_reason());
    for (int i = 0; i < c->n_out; i++) {
        tt_arg a = dev_out[i];
        a.count = sizes[i];
        if (a.dtype == TT_F32) {
            test_device_get(got[i], &a);
            continue;
        }
        uint16_t *narrow = calloc((size_t)sizes[i] + 1, sizeof(uint16_t));
        test_device_get(narrow, &a);
        for (int64_t j = 0; j < sizes[i]; j++)
            got[i][j] = tti_from_bf16(narrow[j]);
        free(narrow);
    }
    l.in = in;
    l.out = out;
    if (want != NULL)
        run_cpu(c, l);
    for (int i = 0; i < c->n_in; i++)
        free(data[i]);
    test_device_clear();
}

static void release(int n, float **p)
{
    for (int i = 0; i < n; i++)
        free(p[i]);
}

static void compare(const call *c, float **want, float **got, const int64_t *sizes, double bound)
{
    for (int i = 0; i < c->n_out; i++)
        for (int64_t j = 0; j < sizes[i]; j++)
            ck_assert_msg(fabs((double)got[i][j] - want[i][j]) <= bound * (1 + fabs(want[i][j])),
                          "%s: output %d [%lld] is %.9g, on the CPU %.9g", c->op->name, i,
                          (long long)j, got[i][j], want[i][j]);
}

// Against the CPU in both types and badly aligned; lanes alone against all of them to the bit.
static void try(const call *c)
{
    float *want[ARGS], *got[ARGS], *odd[ARGS];
    int64_t sizes[ARGS], same[ARGS];
    run(c, 0, c->total, false, 0, want, got, sizes);
    compare(c, want, got, sizes, c->bound);
    run(c, 0, c->total, false, 1, NULL, odd, same);
    if (c->by_library)
        compare(c, want, odd, sizes, c->bound);
    for (int i = 0; i < c->n_out && !c->by_library; i++)
        ck_assert_msg(memcmp(odd[i], got[i], sizeof(float) * (size_t)sizes[i]) == 0,
                      "%s: output %d has other bits where addresses are odd", c->op->name, i);
    release(c->n_out, odd);
    release(c->n_out, want);
    // each lane alone: its rows, or its own sum
    for (int k = 0; k < c->total && c->out_kind[0] == 0 && c->total > 1; k++) {
        run(c, k, k + 1, false, 0, NULL, odd, same);
        int64_t from = sizes[0] / c->rows * tti_lane_row(k, c->rows, c->total);
        ck_assert_msg(memcmp(odd[0], got[0] + from, sizeof(float) * (size_t)same[0]) == 0,
                      "%s: lane %d alone has other bits", c->op->name, k);
        release(c->n_out, odd);
    }
    release(c->n_out, got);
    if (c->total > 1) {
        run(c, 1, c->total, false, 0, want, got, sizes);
        compare(c, want, got, sizes, c->bound);
        release(c->n_out, want);
        release(c->n_out, got);
    }
    run(c, 0, c->total, true, 0, want, got, sizes);
    compare(c, want, got, sizes, 400 * c->bound > 0.02 ? 400 * c->bound : 0.02);
    release(c->n_out, want);
    release(c->n_out, got);
}

// ---- convolutions ----------------------------------------------------------------------------

typedef struct geometry {
    int64_t b, h, w, c, n, kh, kw, sh, sw, pt, pb, pl, pr;
    int lanes, act;
    bool bias;
} geometry;

static const geometry shapes[] = {
    {5, 9, 7, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 3, TT_RELU, true},
    {4, 8, 8, 3, 5, 5, 3, 2, 1, 2, 1, 0, 1, 2, TT_LINEAR, false},
    {3, 6, 5, 16, 8, 1, 1, 1, 1, 0, 0, 0, 0, 2, TT_GELU, true},
    {3, 7, 7, 17, 70, 1, 1, 2, 2, 0, 0, 0, 0, 3, TT_LINEAR, false},
    {2, 4, 9, 2, 3, 2, 2, 3, 5, 0, 0, 1, 1, 4, TT_TANH, true},      // lanes without rows, gaps
    {7, 20, 20, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, TT_LINEAR, false}, // several slices
};

static void try_convs(bool depthwise)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        geometry g = shapes[i];
        int64_t mult = g.n % 2 == 0 ? 1 : 2;
        if (depthwise)
            g.n = g.c * mult;
        tti_conv_attr a = {.stride = {2, {g.sh, g.sw}}, .pad = {4, {g.pt, g.pb, g.pl, g.pr}}};
        int64_t oh = (g.h + g.pt + g.pb - g.kh) / g.sh + 1;
        int64_t ow = (g.w + g.pl + g.pr - g.kw) / g.sw + 1;
        tt_shape x = TT_SHAPE(g.b, g.h, g.w, g.c), y = TT_SHAPE(g.b, oh, ow, g.n);
        tt_shape w = TT_SHAPE(g.kh, g.kw, g.c, depthwise ? mult : g.n);
        a.act = g.act;
        call c = {.op = depthwise ? &tti_op_depthwise_conv2d : &tti_op_conv2d,
                  .attr = &a,
                  .n_in = g.bias ? 3 : 2,
                  .n_out = g.act == TT_GELU ? 2 : 1,
                  .in = {x, w, TT_SHAPE(g.n)},
                  .out = {y, y},
                  .in_open = {true},
                  .rows = g.b,
                  .total = g.lanes,
                  .bound = 3e-5,
                  .by_library = !depthwise};
        try(&c);
        a.act = TT_LINEAR;
        a.size = (tt_ints){2, {g.h, g.w}};
        call dx = {.op = depthwise ? &tti_op_depthwise_conv2d_dx : &tti_op_conv2d_dx,
                   .attr = &a,
                   .n_in = 2,
                   .n_out = 1,
                   .in = {y, w},
                   .out = {x},
                   .in_open = {true},
                   .rows = g.b,
                   .total = g.lanes,
                   .bound = 3e-5,
                   .by_library = !depthwise};
        try(&dx);
        a.size = (tt_ints){2, {g.kh, g.kw}};
        a.wide = true;
        call dw = {.op = depthwise ? &tti_op_depthwise_conv2d_dw : &tti_op_conv2d_dw,
                   .attr = &a,
                   .n_in = 2,
                   .n_out = 1,
                   .in = {x, y},
                   .out = {w},
                   .in_open = {true, true},
                   .out_kind = {1},
                   .rows = g.b,
                   .total = g.lanes,
                   .bound = 5e-5,
                   .by_library = !depthwise};
        try(&dw);
    }
}

TEST(cuda_convolutions_are_those_of_the_cpu)
{
    test_device_open();
    try_convs(false);
    test_device_close();
}

TEST(cuda_depthwise_convolutions_are_those_of_the_cpu)
{
    test_device_open();
    try_convs(true);
    test_device_close();
}

/*
 * dw of bf16 in f32 sums: against the CPU, each lane alone and at odd addresses to the bit. Tiles
 * with several taps, taps over several tiles, steps over several images, slices with a tail. A card
 * may have a kernel for channels by 64 that is not for odd addresses.
 */
static void try_half_dw(geometry g)
{
    tti_conv_attr a = {.stride = {2, {g.sh, g.sw}},
                       .pad = {4, {g.pt, g.pb, g.pl, g.pr}},
                       .size = {2, {g.kh, g.kw}},
                       .wide = true};
    int64_t oh = (g.h + g.pt + g.pb - g.kh) / g.sh + 1;
    int64_t ow = (g.w + g.pl + g.pr - g.kw) / g.sw + 1;
    call c = {.op = &tti_op_conv2d_dw,
              .attr = &a,
              .n_in = 2,
              .n_out = 1,
              .in = {TT_SHAPE(g.b, g.h, g.w, g.c), TT_SHAPE(g.b, oh, ow, g.n)},
              .out = {TT_SHAPE(g.kh, g.kw, g.c, g.n)},
              .in_open = {true, true},
              .out_kind = {1},
              .rows = g.b,
              .total = 2};
    float *want, *all, *odd, *one, *two;
    int64_t n;
    run(&c, 0, 2, true, 0, &want, &all, &n);
    compare(&c, &want, &all, &n, 1e-4);
    run(&c, 0, 2, true, 1, NULL, &odd, &n);
    run(&c, 0, 1, true, 0, NULL, &one, &n);
    run(&c, 1, 2, true, 0, NULL, &two, &n);
    if (g.c % 64 == 0 && g.n % 64 == 0)
        compare(&c, &want, &odd, &n, 1e-4);
    else
        ck_assert_msg(memcmp(all, odd, sizeof(float) * (size_t)n) == 0,
                      "other bits at odd addresses");
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(all[i] == one[i] + two[i], "[%lld] of %d rows: %a, by lanes alone %a + %a",
                      (long long)i, (int)g.b, all[i], one[i], two[i]);
    release(5, (float *[]){want, all, odd, one, two});
}

TEST(cuda_dw_of_halves_depends_on_a_lanes_rows_alone)
{
    test_device_open();
    try_half_dw((geometry){3, 9, 8, 8, 72, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, false});
    try_half_dw((geometry){3, 5, 5, 72, 16, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, false});
    try_half_dw((geometry){9, 2, 3, 136, 136, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, false});
    try_half_dw((geometry){1, 6, 6, 16, 64, 3, 2, 1, 2, 2, 0, 1, 0, 0, 0, false});  // an empty lane
    try_half_dw((geometry){3, 36, 40, 8, 8, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, false});  // slices
    try_half_dw((geometry){3, 30, 37, 3, 10, 7, 7, 2, 1, 3, 3, 3, 3, 0, 0, false}); // a stem
    try_half_dw((geometry){5, 6, 7, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, false});
    try_half_dw((geometry){1, 9, 8, 64, 128, 3, 3, 2, 2, 0, 1, 0, 1, 0, 0, false});
    try_half_dw((geometry){2, 33, 32, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, false}); // slices
    try_half_dw((geometry){5, 3, 3, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, false});
    test_device_close();
}

// Images of few channels in bf16: against the CPU, each lane alone and at odd addresses to the bit.
static void try_few(geometry g)
{
    tti_conv_attr a = {.stride = {2, {g.sh, g.sw}}, .pad = {4, {g.pt, g.pb, g.pl, g.pr}}};
    int64_t oh = (g.h + g.pt + g.pb - g.kh) / g.sh + 1;
    int64_t ow = (g.w + g.pl + g.pr - g.kw) / g.sw + 1;
    tt_shape y = TT_SHAPE(g.b, oh, ow, g.n);
    call c = {.op = &tti_op_conv2d,
              .attr = &a,
              .n_in = g.bias ? 3 : 2,
              .n_out = g.act == TT_GELU ? 2 : 1,
              .in = {TT_SHAPE(g.b, g.h, g.w, g.c), TT_SHAPE(g.kh, g.kw, g.c, g.n), TT_SHAPE(g.n)},
              .out = {y, y},
              .in_open = {true},
              .rows = g.b,
              .total = 2};
    float *want[2], *all[2], *odd[2], *one[2];
    int64_t n[2], lane[2];
    a.act = g.act;
    run(&c, 0, 2, true, 0, want, all, n);
    compare(&c, want, all, n, 0.02);
    run(&c, 0, 2, true, 1, NULL, odd, n);
    run(&c, 1, 2, true, 0, NULL, one, lane);
    for (int i = 0; i < c.n_out; i++) {
        ck_assert_msg(memcmp(all[i], odd[i], sizeof(float) * (size_t)n[i]) == 0,
                      "output %d of %d channels: other bits at odd addresses", i, (int)g.c);
        ck_assert_msg(memcmp(all[i] + n[i] - lane[i], one[i], sizeof(float) * (size_t)lane[i]) == 0,
                      "output %d of %d channels: other bits alone", i, (int)g.c);
    }
    release(c.n_out, want);
    release(c.n_out, all);
    release(c.n_out, odd);
    release(c.n_out, one);
    try_half_dw(g);
}

TEST(cuda_images_of_few_channels_are_those_of_the_cpu)
{
    test_device_open();
    // a stem: tiles side by side and below each other, channels of y beyond one block's
    try_few((geometry){3, 23, 250, 3, 72, 7, 7, 2, 2, 3, 3, 3, 3, 0, TT_RELU, true});
    try_few((geometry){2, 19, 33, 1, 6, 5, 5, 1, 1, 2, 2, 2, 2, 0, TT_GELU, true});
    try_few((geometry){2, 30, 31, 3, 8, 11, 11, 4, 4, 2, 2, 2, 2, 0, TT_LINEAR, false});
    try_few((geometry){3, 9, 8, 7, 16, 3, 2, 1, 3, 1, 1, 1, 0, 0, TT_GELU, false});
    test_device_close();
}

// ---- pooling ---------------------------------------------------------------------------------

static void try_pool(int64_t b, int64_t h, int64_t c, int64_t k, int64_t s, int64_t pad, int lanes)
{
    tti_pool_attr a = {
        .size = {2, {k, k}}, .stride = {2, {s, s}}, .pad = {4, {pad, pad, pad, pad}}};
    int64_t oh = (h + 2 * pad - k) / s + 1;
    tt_shape x = TT_SHAPE(b, h, h, c), y = TT_SHAPE(b, oh, oh, c);
    call forward = {.op = &tti_op_max_pool2d,
                    .attr = &a,
                    .n_in = 1,
                    .n_out = 1,
                    .in = {x},
                    .out = {y},
                    .in_open = {true},
                    .rows = b,
                    .total = lanes,
                    .bound = 2e-6};
    try(&forward);
    forward.op = &tti_op_avg_pool2d;
    try(&forward);
    call grad = forward;
    grad.op = &tti_op_max_pool2d_grad;
    grad.n_in = 2;
    grad.in[1] = y;
    grad.in_open[1] = true;
    grad.out[0] = x;
    try(&grad);
    a.image = (tt_ints){2, {h, h}};
    grad.op = &tti_op_avg_pool2d_grad;
    grad.n_in = 1;
    grad.in[0] = y;
    try(&grad);
}

TEST(cuda_pooling_is_that_of_the_cpu)
{
    test_device_open();
    try_pool(3, 8, 8, 3, 2, 1, 2);
    try_pool(2, 7, 5, 2, 2, 0, 2);
    try_pool(2, 9, 16, 3, 1, 1, 1);
    try_pool(2, 9, 16, 3, 2, 2, 1);
    try_pool(3, 7, 4, 2, 2, 1, 2);
    try_pool(3, 6, 3, 2, 4, 0, 3);   // gaps
    try_pool(1, 20, 4, 20, 1, 0, 1); // all of it, places of 4 bytes
    test_device_close();
}

// ---- batch norm ------------------------------------------------------------------------------

static void try_batch_norm(int64_t b, int64_t hw, int64_t ch, int lanes, int act)
{
    bool relu = act == TT_RELU;
    tti_batch_norm_attr a = {.eps = 1e-3, .act = act, .has_residual = true};
    tti_batch_norm_attr back = {.eps = 1e-3, .act = relu ? TT_RELU : TT_LINEAR};
    tt_shape x = TT_SHAPE(b, hw, 1, ch), v = TT_SHAPE(ch), row = TT_SHAPE(b, ch);
    call stats = {.op = &tti_op_batch_norm_stats,
                  .n_in = 1,
                  .n_out = 3,
                  .in = {x},
                  .out = {v, v, v},
                  .in_open = {true},
                  .out_kind = {2, 2, 2},
                  .rows = b,
                  .total = lanes,
                  .bound = 3e-5};
    try(&stats);
    call apply = {.op = &tti_op_batch_norm_apply,
                  .attr = &a,
                  .n_in = 6,
                  .n_out = 1,
                  .in = {x, v, v, v, v, x},
                  .out = {x},
                  .in_open = {true, false, false, false, false, true},
                  .rows = b,
                  .total = lanes,
                  .bound = 1e-5};
    try(&apply);
    call sums = {.op = &tti_op_batch_norm_sums,
                 .attr = &back,
                 .n_in = relu ? 6 : 4,
                 .n_out = 2,
                 .in = {x, x, v, v, v, v},
                 .out = {v, v},
                 .in_open = {true, true},
                 .out_kind = {1, 1},
                 .rows = b,
                 .total = lanes,
                 .bound = 5e-5};
    try(&sums);
    call dx = {.op = &tti_op_batch_norm_dx,
               .attr = &back,
               .n_in = relu ? 8 : 7,
               .n_out = 1,
               .in = {x, x, v, v, v, v, v, v},
               .out = {x},
               .in_open = {true, true},
               .rows = b,
               .total = lanes,
               .bound = 2e-5};
    try(&dx);
    back.fixed = true;
    dx.n_in = relu ? 6 : 5;
    try(&dx);
    call lane = {.op = &tti_op_batch_norm_lane,
                 .attr = &a,
                 .n_in = 4,
                 .n_out = 6,
                 .in = {x, v, v, x},
                 .out = {x, row, row, v, v, TT_SHAPE(1)},
                 .in_open = {true, false, false, true},
                 .out_kind = {0, 0, 0, 1, 1, 1},
                 .rows = b,
                 .total = lanes,
                 .bound = 5e-5};
    try(&lane);
    call grad = {.op = &tti_op_batch_norm_lane_grad,
                 .n_in = 5,
                 .n_out = 3,
                 .in = {x, x, row, row, v},
                 .out = {x, v, v},
                 .in_open = {true, true, true, true},
                 .out_kind = {0, 1, 1},
                 .rows = b,
                 .total = lanes,
                 .bound = 5e-5};
    try(&grad);
}

TEST(cuda_batch_norm_is_that_of_the_cpu)
{
    test_device_open();
    try_batch_norm(6, 5, 16, 3, TT_RELU);
    try_batch_norm(5, 300, 8, 2, TT_LINEAR); // several slices
    try_batch_norm(3, 12100, 4, 1, TT_RELU); // many
    try_batch_norm(3, 2, 5, 8, TT_GELU);     // lanes without rows, odd channels
    try_batch_norm(4, 1, 72, 1, TT_RELU);
    try_batch_norm(70, 1, 4, 70, TT_RELU); // more lanes than a launch takes
    test_device_close();
}
