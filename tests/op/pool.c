/*
 * pool.c - max and average pooling, over windows and over whole images.
 */
#include "window.h"

static tt_tensor *images(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return op_input(t, TT_SHAPE(window_batch(op_case_of(t)), p[H], p[W], p[C]), -1, 1);
}

static tt_pool_opts options(const op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_pool_opts o = {
        .opts_size = sizeof(o),
        .size = {(int)p[KH], (int)p[KW]},
        .stride = {(int)p[SH], (int)p[SW]},
        .padding = (tt_padding)p[RULE],
    };
    window_digits(p[PAD], o.pad);
    return o;
}

static tt_tensor *build_max(op_test *t)
{
    tt_pool_opts o = options(t);
    return tt_max_pool2d_with(op_graph(t), images(t), &o);
}

static tt_tensor *build_avg(op_test *t)
{
    tt_pool_opts o = options(t);
    return tt_avg_pool2d_with(op_graph(t), images(t), &o);
}

static tt_tensor *build_global_max(op_test *t)
{
    return tt_global_max_pool2d(op_graph(t), images(t));
}

static tt_tensor *build_global_avg(op_test *t)
{
    return tt_global_avg_pool2d(op_graph(t), images(t));
}

static void pool(const op_test *t, bool is_max, double *y)
{
    window z = window_of(t);
    const double *x = op_value(t, 0);
    int64_t r, q;
    for (int64_t i = 0; i < op_count(t); i++) {
        int64_t m = i / z.c, n = 0;
        double best = -INFINITY, sum = 0;
        for (int64_t k = 0; k < z.kh * z.kw; k++) {
            if (!window_tap(&z, m / z.ow % z.oh, m % z.ow, k / z.kw, k % z.kw, &r, &q))
                continue;
            double v = x[((m / (z.oh * z.ow) * z.h + r) * z.w + q) * z.c + i % z.c];
            best = v > best ? v : best;
            sum += v;
            n++;
        }
        y[i] = is_max ? best : sum / (double)n;
    }
}

static void oracle_max(const op_test *t, double *y)
{
    pool(t, true, y);
}

static void oracle_avg(const op_test *t, double *y)
{
    pool(t, false, y);
}

#define MAX .build = build_max, .oracle = oracle_max
OP_CASES(max_pool2d, //
         {"2x2", MAX, .rows = 5, .p = {6, 8, 5, 2, 2, 0, 2, 2}},
         {"wide", MAX, .rows = 9, .p = {5, 7, 83, 2, 3, 0, 2, 3}},
         {"overlapping", MAX, .rows = 3, .p = {7, 6, 17, 3, 3, 0, 2, 2, TT_SAME}},
         {"every pixel", MAX, .rows = 3, .p = {5, 6, 4, 3, 2, 0, 1, 1, TT_SAME}},
         {"gaps", MAX, .rows = 3, .p = {9, 10, 3, 2, 1, 0, 3, 4}},
         {"uneven", MAX, .rows = 3, .p = {6, 5, 2, 2, 4, 0, 2, 2, TT_EXPLICIT, 1032}},
         {"packs", MAX, .rows = 3, .p = {7, 6, 16, 3, 3, 0, 2, 2, TT_EXPLICIT, 1111}},
         {"packs, uneven", MAX, .rows = 2, .p = {6, 5, 8, 3, 3, 0, 2, 2, TT_EXPLICIT, 220}},
         {"packs, every pixel", MAX, .rows = 2, .p = {4, 5, 8, 3, 3, 0, 1, 1, TT_SAME}},
         {"packs, 2x2", MAX, .rows = 3, .p = {5, 6, 24, 2, 2, 0, 2, 2, TT_EXPLICIT, 1001}},
         {"one pixel", MAX, .rows = 1, .p = {1, 1, 1, 1, 1, 0, 1, 1}},
         {"closed batch", MAX, .p = {4, 4, 3, 2, 2, 0, 2, 2}},
         {"global", .build = build_global_max, .oracle = oracle_max, .rows = 5,
          .p = {4, 5, 19, 4, 5, 0, 1, 1}});

#define AVG .build = build_avg, .oracle = oracle_avg
OP_CASES(avg_pool2d, //
         {"2x2", AVG, .rows = 5, .p = {6, 8, 5, 2, 2, 0, 2, 2}},
         {"wide", AVG, .rows = 9, .p = {5, 7, 83, 2, 3, 0, 2, 3}},
         {"overlapping", AVG, .rows = 3, .p = {7, 6, 17, 3, 3, 0, 2, 2, TT_SAME}},
         {"every pixel", AVG, .rows = 3, .p = {5, 6, 4, 3, 2, 0, 1, 1, TT_SAME}},
         {"gaps", AVG, .rows = 3, .p = {9, 10, 3, 2, 1, 0, 3, 4}},
         {"uneven", AVG, .rows = 3, .p = {6, 5, 2, 2, 4, 0, 2, 2, TT_EXPLICIT, 1032}},
         {"one pixel", AVG, .rows = 1, .p = {1, 1, 1, 1, 1, 0, 1, 1}},
         {"closed batch", AVG, .p = {4, 4, 3, 2, 2, 0, 2, 2}},
         {"global", .build = build_global_avg, .oracle = oracle_avg, .rows = 5,
          .p = {4, 5, 19, 4, 5, 0, 1, 1}});

/*
 * The gradient of a tie goes to the lowest index alone, that of a window with a NaN to the first
 * NaN. Each channel has the same numbers.
 */
static void check_places(tt_dtype type, int channels)
{
    static const float x[16] = {1, 1, 0, 2, 1, 1, 2, 2, NAN, 0, 3, NAN, 5, 0, 4, 4};
    static const float want[16] = {1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0};
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float all[16 * 8], got[16 * 8];
    for (int i = 0; i < 16 * channels; i++)
        all[i] = x[i / channels];
    tt_tensor *in = tt_const(g, TT_F32, TT_SHAPE(1, 4, 4, channels), all), *dx = NULL;
    tt_tensor *y = tt_max_pool2d(g, tt_cast(g, in, type), .size = {2, 2});
    CHECK_OK(tt_grad(g, tt_sum(g, tt_cast(g, y, TT_F32)), NULL, 1, &in, &dx));
    CHECK_OK(tt_eval(g, dx, got, 16 * channels));
    for (int i = 0; i < 16 * channels; i++)
        CHECK(got[i] == want[i / channels]);
    CHECK_OK(tt_eval(g, tt_cast(g, y, TT_F32), got, 4 * channels));
    for (int i = 0; i < channels; i++)
        CHECK(got[i] == 1 && got[channels + i] == 2 && isnan(got[2 * channels + i]) &&
              isnan(got[3 * channels + i]));
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(max_pool2d_ties_take_the_first)
{
    check_places(TT_F32, 1);
    check_places(TT_F32, 8);
    check_places(TT_BF16, 8);
    check_places(TT_F16, 8);
}

static void check_refused(tt_pool_opts o, tt_status st, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 5, 6, 3));
    CHECK(tt_max_pool2d_with(g, x, &o) == NULL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == st);
}

TEST(max_pool2d_refuses_bad_windows)
{
    tt_pool_opts o = {.opts_size = sizeof(o)};
    check_refused(o, TT_EINVAL, "max_pool2d: the window is 0 x 0");
    o.size[0] = o.size[1] = 7;
    check_refused(o, TT_ESHAPE, "a window of 7 x 7 does not fit into x [b, 5, 6, 3]");
    o.size[0] = o.size[1] = 2;
    o.padding = TT_EXPLICIT;
    o.pad[3] = 2;
    check_refused(o, TT_EINVAL, "padding 0, 2 is not below the window's 2");
}

TEST(global_avg_pool2d_refuses_other_ranks)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_global_avg_pool2d(g, test_uniform(g, 1, TT_SHAPE(4, 4))) == NULL);
    CHECK_MESSAGE(ctx, "global_avg_pool2d: x is [4, 4]");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
