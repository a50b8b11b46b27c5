/*
 * depthwise.c - depthwise_conv2d and its two gradients.
 */
#include "window.h"

static tt_tensor *images(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return op_input(t, TT_SHAPE(window_batch(op_case_of(t)), p[H], p[W], p[C]), -1, 1);
}

static tt_tensor *convolve(op_test *t, tt_tensor *x, tt_tensor *w)
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
        o.bias = op_input(t, TT_SHAPE(p[C] * p[N]), -1, 1);
    return tt_depthwise_conv2d_with(op_graph(t), x, w, &o);
}

static tt_tensor *build(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *x = images(t), *w = op_input(t, TT_SHAPE(p[KH], p[KW], p[C], p[N]), -1, 1);
    return convolve(t, x, w);
}

// out[at] += a b, over all products; which of x, w, dy is the output differs.
static void products(const op_test *t, int which, double *out)
{
    window z = window_of(t);
    const double *x = op_value(t, 0), *w = op_value(t, 1);
    const double *dy = which < 2 ? op_value(t, 2) : NULL;
    int64_t r, q, channels = z.c * z.n;
    for (int64_t i = 0; i < op_count(t); i++)
        out[i] = 0;
    for (int64_t m = 0; m < z.batch * z.oh * z.ow; m++)
        for (int64_t k = 0; k < z.kh * z.kw; k++) {
            if (!window_tap(&z, m / z.ow % z.oh, m % z.ow, k / z.kw, k % z.kw, &r, &q))
                continue;
            int64_t pixel = ((m / (z.oh * z.ow) * z.h + r) * z.w + q) * z.c;
            for (int64_t o = 0; o < channels; o++) {
                int64_t xi = pixel + o / z.n, wi = k * channels + o, yi = m * channels + o;
                if (which == 0)
                    out[xi] += w[wi] * dy[yi];
                else if (which == 1)
                    out[wi] += x[xi] * dy[yi];
                else
                    out[yi] += x[xi] * w[wi];
            }
        }
}

static void oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    products(t, 2, y);
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = test_act((tt_act)p[ACT], y[i] + (p[BIAS] ? op_value(t, 2)[i % (p[C] * p[N])] : 0));
}

#define CASE .build = build, .oracle = oracle
OP_CASES(depthwise_conv2d, //
         {"3x3", CASE, .rows = 5, .p = {7, 8, 5, 3, 3, 1}},
         {"same", CASE, .rows = 3, .p = {9, 11, 67, 3, 3, 1, [RULE] = TT_SAME, [BIAS] = 1}},
         {"relu", CASE, .rows = 3,
          .p = {5, 6, 17, 3, 3, 1, [RULE] = TT_SAME, [BIAS] = 1, [ACT] = TT_RELU},
          .skip = OP_NO_GRAD},
         {"stride 2", CASE, .rows = 3, .p = {9, 8, 16, 3, 3, 1, 2, 2, TT_SAME}},
         {"multiplier", CASE, .rows = 9, .p = {6, 7, 7, 3, 2, 3, [RULE] = TT_SAME, [BIAS] = 1}},
         {"multiplier stride", CASE, .rows = 3, .p = {9, 7, 2, 3, 3, 2, 3, 2}},
         {"gaps", CASE, .rows = 3, .p = {9, 10, 2, 2, 1, 1, 3, 4}},
         {"uneven", CASE, .rows = 3, .p = {6, 5, 2, 2, 4, 1, 1, 2, TT_EXPLICIT, 1032}},
         {"silu", CASE, .rows = 2, .p = {4, 4, 3, 2, 2, 1, [ACT] = TT_SILU}},
         {"one pixel", CASE, .rows = 1, .p = {1, 1, 1, 1, 1, 1}},
         {"closed batch", CASE, .p = {4, 4, 3, 2, 2, 2}});

static tt_tensor *build_grad(op_test *t, int which)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *in[2] = {images(t), op_input(t, TT_SHAPE(p[KH], p[KW], p[C], p[N]), -1, 1)};
    tt_tensor *y = convolve(t, in[0], in[1]), *out = NULL;
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

static void oracle_dx(const op_test *t, double *dx)
{
    products(t, 0, dx);
}

static void oracle_dw(const op_test *t, double *dw)
{
    products(t, 1, dw);
}

#define CASE_DX .build = build_dx, .oracle = oracle_dx
OP_CASES(depthwise_conv2d_dx, //
         {"same", CASE_DX, .rows = 3, .p = {6, 7, 18, 3, 3, 1, [RULE] = TT_SAME}},
         {"stride 2", CASE_DX, .rows = 3, .p = {7, 8, 4, 3, 3, 1, 2, 2, TT_SAME}},
         {"rows unused", CASE_DX, .rows = 3, .p = {8, 9, 2, 3, 2, 2, 3, 2, TT_EXPLICIT, 1003}},
         {"multiplier", CASE_DX, .rows = 3, .p = {5, 6, 3, 3, 3, 2, 2, 1, TT_SAME}});

#define CASE_DW .build = build_dw, .oracle = oracle_dw
OP_CASES(depthwise_conv2d_dw, //
         {"same", CASE_DW, .rows = 11, .p = {8, 9, 81, 3, 3, 1, [RULE] = TT_SAME}, .tol = 1e-4},
         {"stride 2", CASE_DW, .rows = 3, .p = {7, 8, 4, 3, 3, 1, 2, 2, TT_SAME}},
         {"uneven", CASE_DW, .rows = 3, .p = {6, 5, 2, 2, 4, 1, 1, 2, TT_EXPLICIT, 1032}},
         {"multiplier", CASE_DW, .rows = 9, .p = {5, 6, 23, 3, 3, 3, 2, 1, TT_SAME}},
         {"closed batch", CASE_DW, .p = {4, 4, 3, 2, 2, 2}});

TEST(depthwise_conv2d_refuses_other_channels)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(1, 5, 5, 4));
    CHECK(tt_depthwise_conv2d(g, x, test_uniform(g, 2, TT_SHAPE(3, 3, 3, 1))) == NULL);
    CHECK_MESSAGE(ctx, "depthwise_conv2d: x is [1, 5, 5, 4] but w is [3, 3, 3, 1]");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
