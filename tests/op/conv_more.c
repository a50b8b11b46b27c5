/*
 * conv_more.c - conv2d with dilation and groups, and conv2d_transpose, against plain loops.
 */
#include "op_test.h"

// Places in op_case.p: image, channels, window, filters, strides, padding of all sides, dilation,
// groups (of a transposed one: extra rows and columns).
enum {
    H,
    W,
    C,
    KH,
    KW,
    N,
    SH,
    SW,
    PAD,
    DH,
    DW,
    GROUPS,
};

static tt_tensor *images(op_test *t, int64_t c)
{
    const int64_t *p = op_case_of(t)->p;
    return op_input(t, TT_SHAPE(op_case_of(t)->rows > 0 ? TT_BATCH : 2, p[H], p[W], c), -1, 1);
}

static tt_tensor *conv_build(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *x = images(t, p[C]);
    tt_tensor *w = op_input(t, TT_SHAPE(p[KH], p[KW], p[C] / p[GROUPS], p[N]), -1, 1);
    tt_tensor *bias = op_input(t, TT_SHAPE(p[N]), -1, 1);
    int pad = (int)p[PAD];
    return tt_conv2d(op_graph(t), x, w, .stride = {(int)p[SH], (int)p[SW]}, .padding = TT_EXPLICIT,
                     .pad = {pad, pad, pad, pad}, .dilation = {(int)p[DH], (int)p[DW]},
                     .groups = (int)p[GROUPS], .bias = bias, .act = TT_TANH);
}

static void conv_oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape s = op_out_shape(t);
    const double *x = op_value(t, 0), *w = op_value(t, 1);
    int64_t in = p[C] / p[GROUPS], out = p[N] / p[GROUPS];
    for (int64_t k = 0; k < op_count(t); k++) {
        int64_t o = k % p[N], j = k / p[N] % s.dim[2], i = k / p[N] / s.dim[2] % s.dim[1];
        int64_t b = k / p[N] / s.dim[2] / s.dim[1];
        double sum = op_value(t, 2)[o];
        for (int64_t u = 0; u < p[KH] * p[KW]; u++) {
            int64_t r = i * p[SH] - p[PAD] + u / p[KW] * p[DH];
            int64_t q = j * p[SW] - p[PAD] + u % p[KW] * p[DW];
            if (r < 0 || r >= p[H] || q < 0 || q >= p[W])
                continue;
            for (int64_t c = 0; c < in; c++)
                sum += x[((b * p[H] + r) * p[W] + q) * p[C] + o / out * in + c] *
                       w[(u * in + c) * p[N] + o];
        }
        y[k] = test_act(TT_TANH, sum);
    }
}

#define CONV .build = conv_build, .oracle = conv_oracle
OP_CASES(conv2d_more, //
         {"dilated", CONV, .rows = 3, .p = {5, 6, 2, 3, 3, 3, 1, 1, 2, 2, 2, 1}},
         {"dilated unequally", CONV, .rows = 3, .p = {9, 6, 2, 3, 2, 3, 1, 1, 0, 3, 2, 1}},
         {"dilated columns", CONV, .rows = 2, .p = {1, 9, 2, 1, 3, 3, 1, 1, 1, 1, 4, 1}},
         {"dilated with a stride", CONV, .rows = 3, .p = {7, 8, 3, 3, 3, 4, 2, 1, 1, 2, 2, 1}},
         {"groups", CONV, .rows = 3, .p = {5, 4, 6, 3, 2, 9, 1, 1, 1, 1, 1, 3}},
         {"a group for each channel", CONV, .rows = 3, .p = {5, 4, 3, 3, 2, 6, 2, 1, 1, 1, 1, 3}},
         {"dilated groups", CONV, .rows = 3, .p = {6, 6, 4, 3, 3, 4, 1, 1, 0, 2, 2, 2}},
         {"closed batch", CONV, .p = {5, 5, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2}})

static tt_tensor *transpose_build(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *x = images(t, p[C]);
    tt_tensor *w = op_input(t, TT_SHAPE(p[KH], p[KW], p[N], p[C]), -1, 1);
    tt_tensor *bias = op_input(t, TT_SHAPE(p[N]), -1, 1);
    int pad = (int)p[PAD];
    return tt_conv2d_transpose(op_graph(t), x, w, .stride = {(int)p[SH], (int)p[SW]},
                               .padding = TT_EXPLICIT, .pad = {pad, pad, pad, pad},
                               .extra = {(int)p[DH], (int)p[DW]}, .bias = bias);
}

static void transpose_oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape s = op_out_shape(t);
    const double *x = op_value(t, 0), *w = op_value(t, 1);
    for (int64_t k = 0; k < op_count(t); k++)
        y[k] = op_value(t, 2)[k % p[N]];
    for (int64_t m = 0; m < s.dim[0] * p[H] * p[W]; m++)
        for (int64_t u = 0; u < p[KH] * p[KW]; u++) {
            int64_t r = m / p[W] % p[H] * p[SH] - p[PAD] + u / p[KW];
            int64_t q = m % p[W] * p[SW] - p[PAD] + u % p[KW];
            if (r < 0 || r >= s.dim[1] || q < 0 || q >= s.dim[2])
                continue;
            int64_t at = ((m / (p[H] * p[W]) * s.dim[1] + r) * s.dim[2] + q) * p[N];
            for (int64_t o = 0; o < p[N]; o++)
                for (int64_t c = 0; c < p[C]; c++)
                    y[at + o] += x[m * p[C] + c] * w[(u * p[N] + o) * p[C] + c];
        }
}

#define TRANSPOSE .build = transpose_build, .oracle = transpose_oracle
OP_CASES(conv2d_transpose, //
         {"stride 2", TRANSPOSE, .rows = 5, .p = {3, 4, 5, 3, 3, 4, 2, 2, 1, 1, 1}},
         {"stride beyond kernel", TRANSPOSE, .rows = 3, .p = {3, 2, 2, 2, 1, 3, 3, 2}},
         {"stride 1", TRANSPOSE, .rows = 3, .p = {3, 4, 2, 3, 2, 3, 1, 1, 1}},
         {"closed batch", TRANSPOSE, .p = {2, 2, 3, 4, 4, 2, 2, 2, 1}})

TEST(conv2d_more_names_what_is_wrong)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(2, 5, 5, 6), 1);
    tt_tensor *w = tt_fill(g, TT_F32, TT_SHAPE(3, 3, 3, 4), 1);
    static const struct {
        tt_conv2d_opts o;
        const char *message;
    } bad[] = {
        {{.groups = 4}, "4 groups do not divide 6 input and 4 output channels"},
        {{.groups = -1}, "-1 groups"},
        {{.groups = 2, .dilation = {-2}}, "dilation -2 is not in 1 to"},
        {{.groups = 2, .dilation = {3}},
         "a kernel of 7 x 3, with its dilation, does not fit into x [2, 5, 5, 6]"},
        {{.dilation = {2}}, "with 1 groups w must be [height, width, 6, out]"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_conv2d_opts o = bad[i].o;
        o.opts_size = sizeof(o);
        CHECK(tt_conv2d_with(g, x, w, &o) == NULL);
        CHECK_MESSAGE(ctx, bad[i].message);
        tt_clear_error(ctx);
    }
    CHECK(tt_depthwise_conv2d(g, x, tt_fill(g, TT_F32, TT_SHAPE(3, 3, 6, 1), 1), .groups = 2) ==
          NULL);
    CHECK_MESSAGE(ctx, "conv2d with groups = channels");
    tt_clear_error(ctx);
    CHECK(tt_conv2d_transpose(g, x, w) == NULL);
    CHECK_MESSAGE(ctx, "not [height, width, out, 6]");
    tt_clear_error(ctx);
    w = tt_fill(g, TT_F32, TT_SHAPE(3, 3, 4, 6), 1);
    CHECK(tt_conv2d_transpose(g, x, w, .stride = {2, 2}, .extra = {2, 0}) == NULL);
    CHECK_MESSAGE(ctx, "extra is 2; it must be at least 0 and below the stride, 2");
    tt_clear_error(ctx);
    CHECK(tt_conv2d_transpose(g, x, w, .padding = TT_EXPLICIT, .pad = {4, 4, 0, 0}) == NULL);
    CHECK_MESSAGE(ctx, "7 rows less padding of 4 and 4 has nothing left");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
