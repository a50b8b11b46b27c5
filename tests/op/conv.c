/*
 * conv.c - conv2d and its two gradients, each also as an op of its own (so that gradients of
 * gradients are checked).
 */
#include "window.h"

static tt_conv2d_opts options(op_test *t, int64_t channels)
{
    const int64_t *p = op_case_of(t)->p;
    tt_conv2d_opts o = {
        .opts_size = sizeof(o),
        .stride = {(int)p[SH], (int)p[SW]},
        .padding = (tt_padding)p[RULE],
        .act = (tt_act)p[ACT],
    };
    window_digits(p[PAD], o.pad);
    if (p[BIAS])
        o.bias = op_input(t, TT_SHAPE(channels), -1, 1);
    return o;
}

static tt_tensor *images(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return op_input(t, TT_SHAPE(window_batch(op_case_of(t)), p[H], p[W], p[C]), -1, 1);
}

static tt_tensor *weights(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return op_input(t, TT_SHAPE(p[KH], p[KW], p[C], p[N]), -1, 1);
}

static tt_tensor *build(op_test *t)
{
    tt_tensor *x = images(t), *w = weights(t);
    tt_conv2d_opts o = options(t, op_case_of(t)->p[N]);
    return tt_conv2d_with(op_graph(t), x, w, &o);
}

// y += x w for each pair of output and tap; what is added where tells the three apart.
typedef void (*add_fn)(const double *a, const double *b, int64_t x, int64_t w, int64_t y,
                       double *out);

static void each_product(const op_test *t, const double *a, const double *b, add_fn add,
                         double *out)
{
    window z = window_of(t);
    int64_t r, q;
    for (int64_t m = 0; m < z.batch * z.oh * z.ow; m++)
        for (int64_t k = 0; k < z.kh * z.kw; k++) {
            if (!window_tap(&z, m / z.ow % z.oh, m % z.ow, k / z.kw, k % z.kw, &r, &q))
                continue;
            int64_t pixel = (m / (z.oh * z.ow) * z.h + r) * z.w + q;
            for (int64_t c = 0; c < z.c; c++)
                for (int64_t n = 0; n < z.n; n++)
                    add(a, b, pixel * z.c + c, (k * z.c + c) * z.n + n, m * z.n + n, out);
        }
}

static void zero(const op_test *t, double *y)
{
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = 0;
}

static void add_y(const double *x, const double *w, int64_t i, int64_t k, int64_t m, double *y)
{
    y[m] += x[i] * w[k];
}

static void oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    zero(t, y);
    each_product(t, op_value(t, 0), op_value(t, 1), add_y, y);
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = test_act((tt_act)p[ACT], y[i] + (p[BIAS] ? op_value(t, 2)[i % p[N]] : 0));
}

#define CASE .build = build, .oracle = oracle
OP_CASES(conv2d, //
         {"3x3", CASE, .rows = 5, .p = {7, 8, 5, 3, 3, 7}},
         {"3x3 same relu", CASE, .rows = 3,
          .p = {9, 9, 3, 3, 3, 35, [RULE] = TT_SAME, [BIAS] = 1, [ACT] = TT_RELU},
          .skip = OP_NO_GRAD},
         {"one channel", CASE, .rows = 11, .p = {8, 8, 1, 3, 3, 32, [BIAS] = 1}},
         {"stem", CASE, .rows = 2, .p = {13, 15, 3, 7, 7, 17, 2, 2, TT_SAME}},
         {"1x1", CASE, .rows = 9, .p = {5, 3, 20, 1, 1, 33, [BIAS] = 1}},
         {"1x1 stride 2", CASE, .rows = 3, .p = {5, 6, 9, 1, 1, 5, 2, 2}},
         {"stride beyond kernel", CASE, .rows = 3, .p = {9, 10, 2, 2, 1, 3, 3, 4}},
         {"uneven", CASE, .rows = 3, .p = {6, 5, 2, 2, 4, 3, 1, 2, TT_EXPLICIT, 1032}},
         {"long chain", CASE, .rows = 9, .p = {4, 3, 67, 3, 3, 31, [RULE] = TT_SAME}, .tol = 1e-4},
         {"far apart", CASE, .rows = 2, .p = {3, 4, 512, 1, 1, 6}, .tol = 1e-4},
         {"one pixel", CASE, .rows = 1, .p = {1, 1, 1, 1, 1, 1}},
         {"closed batch", CASE, .p = {4, 4, 3, 2, 2, 3, [BIAS] = 1}},
         {"eights", CASE, .rows = 3, .p = {6, 7, 16, 3, 3, 24, [RULE] = TT_SAME, [ACT] = TT_RELU}},
         {"gelu", CASE, .rows = 3, .p = {4, 4, 2, 3, 3, 3, [RULE] = TT_SAME, [ACT] = TT_GELU}},
         {"silu", CASE, .rows = 2, .p = {3, 4, 2, 2, 2, 18, [BIAS] = 1, [ACT] = TT_SILU}},
         {"tanh", CASE, .rows = 2, .p = {3, 4, 2, 2, 2, 5, [ACT] = TT_TANH}});

// ---- dx and dw as the output -----------------------------------------------------------------

// The gradient of sum(dy conv(x, w)) by input which (0: x, 1: w).
static tt_tensor *build_grad(op_test *t, int which)
{
    tt_tensor *in[2] = {images(t), weights(t)}, *out = NULL;
    tt_conv2d_opts o = options(t, op_case_of(t)->p[N]);
    tt_tensor *y = tt_conv2d_with(op_graph(t), in[0], in[1], &o);
    tt_tensor *dy = op_input(t, tt_tensor_shape(y), -1, 1);
    CHECK_OK(tt_grad(op_graph(t), y, dy, 1, &in[which], &out));
    return out;
}

static tt_tensor *build_dx(op_test *t)
{
    return build_grad(t, 0);
}

static tt_tensor *build_dw(op_test *t)
{
    return build_grad(t, 1);
}

static void add_dx(const double *w, const double *dy, int64_t i, int64_t k, int64_t m, double *dx)
{
    dx[i] += w[k] * dy[m];
}

static void add_dw(const double *x, const double *dy, int64_t i, int64_t k, int64_t m, double *dw)
{
    dw[k] += x[i] * dy[m];
}

static void oracle_dx(const op_test *t, double *dx)
{
    zero(t, dx);
    each_product(t, op_value(t, 1), op_value(t, 2), add_dx, dx);
}

static void oracle_dw(const op_test *t, double *dw)
{
    zero(t, dw);
    each_product(t, op_value(t, 0), op_value(t, 2), add_dw, dw);
}

#define CASE_DX .build = build_dx, .oracle = oracle_dx
OP_CASES(conv2d_dx, //
         {"3x3", CASE_DX, .rows = 5, .p = {7, 8, 5, 3, 3, 7}},
         {"same", CASE_DX, .rows = 3, .p = {6, 7, 33, 3, 3, 4, [RULE] = TT_SAME}},
         {"stride 2", CASE_DX, .rows = 3, .p = {7, 8, 4, 3, 3, 5, 2, 2, TT_SAME}},
         {"gaps", CASE_DX, .rows = 3, .p = {9, 10, 2, 2, 1, 3, 3, 4}},
         {"rows unused", CASE_DX, .rows = 3, .p = {8, 9, 2, 3, 2, 3, 3, 2, TT_EXPLICIT, 1003}},
         {"one channel", CASE_DX, .rows = 2, .p = {8, 8, 1, 3, 3, 32}},
         {"1x1", CASE_DX, .rows = 3, .p = {4, 5, 20, 1, 1, 35}},
         {"long chain", CASE_DX, .rows = 2, .p = {4, 3, 5, 3, 3, 67}, .tol = 1e-4},
         {"eights", CASE_DX, .rows = 3, .p = {6, 7, 16, 3, 3, 24, 2, 2, TT_SAME}, .tol = 1e-4},
         {"closed batch", CASE_DX, .p = {4, 4, 3, 2, 2, 3}});

#define CASE_DW .build = build_dw, .oracle = oracle_dw
OP_CASES(conv2d_dw, //
         {"3x3", CASE_DW, .rows = 11, .p = {7, 8, 5, 3, 3, 7}, .tol = 1e-4},
         {"same", CASE_DW, .rows = 9, .p = {6, 7, 33, 3, 3, 4, [RULE] = TT_SAME}, .tol = 1e-4},
         {"one channel", CASE_DW, .rows = 19, .p = {8, 8, 1, 3, 3, 32}, .tol = 1e-4},
         {"stem", CASE_DW, .rows = 3, .p = {13, 11, 3, 7, 7, 5, 2, 2, TT_SAME}, .tol = 1e-4},
         {"stride 2", CASE_DW, .rows = 3, .p = {7, 8, 17, 3, 3, 5, 2, 2, TT_SAME}},
         {"gaps", CASE_DW, .rows = 3, .p = {9, 10, 2, 2, 1, 3, 3, 4}},
         {"uneven", CASE_DW, .rows = 3, .p = {6, 5, 2, 2, 4, 3, 1, 2, TT_EXPLICIT, 1032}},
         {"padding only", CASE_DW, .rows = 3, .p = {3, 3, 9, 2, 2, 3, 4, 4, TT_EXPLICIT, 3333}},
         {"1x1", CASE_DW, .rows = 9, .p = {9, 7, 20, 1, 1, 35}, .tol = 1e-4},
         {"eights", CASE_DW, .rows = 9, .p = {6, 7, 16, 3, 3, 24, [RULE] = TT_SAME}, .tol = 1e-4},
         {"eights, wide", CASE_DW, .rows = 5, .p = {5, 6, 16, 2, 2, 136, 2, 1}, .tol = 1e-4},
         // the sizes that matrix units which read shared memory take
         {"64 channels", CASE_DW, .rows = 3, .p = {5, 6, 64, 3, 3, 64, [RULE] = TT_SAME},
          .tol = 1e-4, .skip = OP_NO_GRAD},
         {"64 channels, stride 2", CASE_DW, .rows = 9, .p = {7, 8, 64, 3, 3, 64, 2, 2, TT_SAME},
          .tol = 1e-4, .skip = OP_NO_GRAD},
         {"64 channels, a band and more", CASE_DW, .rows = 1,
          .p = {7, 60, 64, 3, 3, 64, [RULE] = TT_SAME}, .tol = 1e-4, .skip = OP_NO_GRAD},
         {"128 channels, uneven", CASE_DW, .rows = 2,
          .p = {7, 9, 128, 3, 3, 64, 1, 1, TT_EXPLICIT, 1002}, .tol = 1e-4, .skip = OP_NO_GRAD},
         {"128 channels, uneven, stride 2", CASE_DW, .rows = 1,
          .p = {11, 8, 64, 3, 3, 128, 2, 2, TT_EXPLICIT, 1021}, .tol = 1e-4, .skip = OP_NO_GRAD},
         {"one row", CASE_DW, .rows = 1, .p = {3, 3, 2, 2, 2, 2}},
         {"closed batch", CASE_DW, .p = {4, 4, 3, 2, 2, 3}});

// ---- edges and errors ------------------------------------------------------------------------

TEST_BOTH(conv2d_of_no_images)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(0, 5, 5, 3), 0), *dw = NULL;
    tt_tensor *w = test_uniform(g, 1, TT_SHAPE(3, 3, 3, 4));
    tt_tensor *y = tt_conv2d(g, x, w), *seed = tt_fill(g, TT_F32, TT_SHAPE(0, 3, 3, 4), 0);
    float out[3 * 3 * 3 * 4];

    CHECK_OK(tt_grad(g, y, seed, 1, &w, &dw));
    CHECK_OK(tt_eval(g, dw, out, 108));
    for (int i = 0; i < 108; i++)
        CHECK(out[i] == 0);
    CHECK_OK(tt_close(ctx));
}

static void check_refused(tt_shape x, tt_shape w, tt_conv2d_opts o, tt_status st, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_conv2d_with(g, tt_feed(g, .shape = x), tt_feed(g, .shape = w), &o) == NULL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == st);
}

TEST(conv2d_refuses_what_does_not_fit)
{
    tt_shape x = TT_SHAPE(TT_BATCH, 5, 6, 3), w = TT_SHAPE(3, 3, 3, 4);
    tt_conv2d_opts o = {.opts_size = sizeof(o)}, bad = o;
    check_refused(TT_SHAPE(TT_BATCH, 5, 6), w, o, TT_ESHAPE, "conv2d: x is [b, 5, 6]");
    check_refused(x, TT_SHAPE(3, 3, 3), o, TT_ESHAPE, "conv2d: w is [3, 3, 3]");
    check_refused(x, TT_SHAPE(3, 3, 2, 4), o, TT_ESHAPE,
                  "conv2d: x is [b, 5, 6, 3] but w is [3, 3, 2, 4]");
    check_refused(x, TT_SHAPE(6, 3, 3, 4), o, TT_ESHAPE, "a kernel of 6 x 3 does not fit");
    check_refused(TT_SHAPE(4, 5, 6, TT_BATCH), w, o, TT_ESHAPE, "only the batch");
    bad.stride[1] = -1;
    check_refused(x, w, bad, TT_EINVAL, "stride -1");
    bad = o;
    bad.padding = TT_EXPLICIT;
    bad.pad[2] = -2;
    check_refused(x, w, bad, TT_EINVAL, "padding -2");
    bad = o;
    bad.act = (tt_act)99;
    check_refused(x, w, bad, TT_EINVAL, "activation 99");
}

TEST(conv2d_refuses_other_types)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(1, 5, 5, 1));
    CHECK(tt_conv2d(g, x, test_uniform(g, 1, TT_SHAPE(3, 3, 1, 1))) == NULL);
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

TEST(conv2d_refuses_a_bias_of_another_width)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(1, 5, 5, 1));
    tt_tensor *w = test_uniform(g, 2, TT_SHAPE(3, 3, 1, 4));
    CHECK(tt_conv2d(g, x, w, .bias = test_uniform(g, 3, TT_SHAPE(3))) == NULL);
    CHECK_MESSAGE(ctx, "the bias is [3] but there are 4 channels");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
