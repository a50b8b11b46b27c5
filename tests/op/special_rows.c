/*
 * special_rows.c - special values in rows: softmax and its like of infinities, norms of large
 * numbers, the gradients of what chooses an element, and which of several NaN argmax takes.
 */
#include "special.h"
#include <float.h>
#include <stdio.h>

// ---- rows of infinities ----------------------------------------------------------------------

#define WIDE 21 // of the rows below: these, then what fills them

static const struct soft_row {
    float x[3], fill;
    float lse;        // logsumexp; NaN: see try_soft
    float p0, log_p0; // softmax and its logarithm, of element 0
    float loss;       // cross entropy of label 0
} soft_rows[] = {
    {{-INF, -INF, -INF}, -INF, -INF, NAN, NAN, NAN},
    {{INF, 0, 1}, 0, INF, NAN, NAN, NAN},
    {{0, INF, -INF}, 0, INF, NAN, NAN, NAN},
    {{INF, INF, 0}, -INF, INF, NAN, NAN, NAN},
    {{-INF, 0, 0}, -INF, (float)M_LN2, 0, -INF, INF},
    {{3, -INF, -INF}, -INF, 3, 1, 0, 0},
    {{NAN, 0, 0}, 0, NAN, NAN, NAN, NAN},
    {{0, 0, NAN}, -INF, NAN, NAN, NAN, NAN},
    {{FLT_MAX, -FLT_MAX, 0}, 0, FLT_MAX, 1, 0, 0},
};
#define N_SOFT (int)(sizeof(soft_rows) / sizeof(soft_rows[0]))

static void check_soft(const char *where, const char *what, int row, float got, float want)
{
    bool is_near = isfinite(want) && fabsf(got - want) <= 1e-6f * (1 + fabsf(want));
    ck_assert_msg(is_near || (!isfinite(want) && is_same(got, want)),
                  "%s: %s of row %d is %g, not %g", where, what, row, (double)got, (double)want);
}

// Along the last axis and along the first, which other kernels take.
static void try_soft(tt_ctx *ctx, const char *where)
{
    static float x[N_SOFT][WIDE], across[WIDE][N_SOFT], y[N_SOFT][WIDE], z[N_SOFT];
    int32_t label[N_SOFT] = {0};
    tt_graph *g = tt_graph_new(ctx);
    for (int r = 0; r < N_SOFT; r++)
        for (int j = 0; j < WIDE; j++)
            x[r][j] = across[j][r] = j < 3 ? soft_rows[r].x[j] : soft_rows[r].fill;
    // The rows above are of three entries; those that fill with numbers have another sum.
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(N_SOFT, WIDE), x);
    tt_tensor *u = tt_const(g, TT_F32, TT_SHAPE(WIDE, N_SOFT), across);
    CHECK_OK(tt_eval(g, tt_logsumexp(g, t, .axis = -1), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "logsumexp", r, z[r], r == 4 ? (float)log(2) : soft_rows[r].lse);
    CHECK_OK(tt_eval(g, tt_logsumexp(g, u, .axes = TT_AXES(0)), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "logsumexp across", r, z[r], soft_rows[r].lse);
    CHECK_OK(tt_eval(g, tt_softmax(g, t), y, (int64_t)N_SOFT * WIDE));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "softmax", r, y[r][0], soft_rows[r].p0);
    CHECK_OK(tt_eval(g, tt_log_softmax(g, t), y, (int64_t)N_SOFT * WIDE));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "log_softmax", r, y[r][0], soft_rows[r].log_p0);
    tt_tensor *l = tt_const(g, TT_I32, TT_SHAPE(N_SOFT), label);
    CHECK_OK(tt_eval(g, tt_cross_entropy(g, t, l), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "cross_entropy", r, z[r], soft_rows[r].loss);
}
TEST_BOTH(rows_of_infinities)
{
    special_everywhere(try_soft);
}

// ---- norms of large numbers ------------------------------------------------------------------

static void norm_of(const float *x, int n, bool rms, double *y)
{
    long double mean = 0, v = 0;
    for (int j = 0; j < n; j++)
        mean += (long double)x[j] / n;
    if (rms)
        mean = 0;
    for (int j = 0; j < n; j++)
        v += ((long double)x[j] - mean) * ((long double)x[j] - mean) / n;
    for (int j = 0; j < n; j++)
        y[j] = (double)(((long double)x[j] - mean) / sqrtl(v + 1e-5L));
}

static void try_norms(tt_ctx *ctx, const char *where)
{
    static const int widths[] = {1, 7, 48, 53, 1024, 1100};
    static const double sizes[] = {1e18, 1e19, 1e20, 1e25, 1e30, 1e37};
    static float x[6 * 1100], y[6 * 1100], dx[6 * 1100];
    static double want[1100];
    for (int k = 0; k < 12; k++) {
        int n = widths[k / 2];
        bool rms = k % 2 != 0;
        tt_graph *g = tt_graph_new(ctx);
        for (int r = 0; r < 6; r++) {
            test_fill(x + r * n, n, (uint64_t)r + 9, -sizes[r], sizes[r]);
            for (int j = 0; j < n; j += 3) // not about zero
                x[r * n + j] += (float)(0.5 * sizes[r]);
        }
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(6, n), x), *d = NULL;
        tt_tensor *z = rms ? tt_rms_norm(g, t, NULL) : tt_layer_norm(g, t, NULL, NULL);
        CHECK_OK(tt_grad(g, z, test_uniform(g, 5, TT_SHAPE(6, n)), 1, &t, &d));
        CHECK_OK(tt_eval(g, z, y, 6 * n));
        CHECK_OK(tt_eval(g, d, dx, 6 * n));
        for (int r = 0; r < 6; r++) {
            norm_of(x + r * n, n, rms, want);
            for (int j = 0; j < n; j++) {
                ck_assert_msg(fabs((double)y[r * n + j] - want[j]) < 2e-5 * (1 + fabs(want[j])),
                              "%s: %s of %d numbers of size %g: %g is %g, not %g", where,
                              rms ? "rms_norm" : "layer_norm", n, sizes[r], (double)x[r * n + j],
                              (double)y[r * n + j], want[j]);
                ck_assert_msg(isfinite((double)dx[r * n + j]),
                              "%s: the gradient of %s of %d numbers of size %g is %g", where,
                              rms ? "rms_norm" : "layer_norm", n, sizes[r], (double)dx[r * n + j]);
            }
        }
        tt_graph_free(g);
    }
}
TEST_BOTH(norms_of_large_numbers)
{
    special_everywhere(try_norms);
}

// The gradient's size is that of 1 / deviation; all entries alike give 0; an infinity gives NaN.
static void try_norm_rows(tt_ctx *ctx, const char *where)
{
    enum {
        N = 53
    };
    static float x[4][N], y[4][N], w[4][N], d[4][N], small[4][N];
    for (int scale = 0; scale < 2; scale++) {
        tt_graph *g = tt_graph_new(ctx);
        test_fill(&x[0][0], 4 * N, 3, -1, 1);
        test_fill(&w[0][0], 4 * N, 4, -1, 1);
        for (int j = 0; j < N; j++) {
            for (int r = 0; r < 2; r++)
                x[r][j] = ldexpf(x[r][j], scale == 0 ? 10 : 100);
            x[2][j] = 3e38f;
            x[3][j] = j == 20 ? INFINITY : x[3][j];
        }
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(4, N), x), *dx = NULL;
        tt_tensor *seed = tt_const(g, TT_F32, TT_SHAPE(4, N), w);
        tt_tensor *z = tt_layer_norm(g, t, NULL, NULL);
        CHECK_OK(tt_grad(g, z, seed, 1, &t, &dx));
        CHECK_OK(tt_eval(g, z, y, 4 * N));
        CHECK_OK(tt_eval(g, dx, scale == 0 ? small : d, 4 * N));
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabsf(y[2][j]) <= 1.01f && isnan(y[3][j]), "%s: %g, %g", where,
                          (double)y[2][j], (double)y[3][j]);
        tt_graph_free(g);
    }
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabsf(ldexpf(d[r][j], 100) - ldexpf(small[r][j], 10)) < 1e-4f,
                          "%s: the gradient is %g, not %g", where, (double)ldexpf(d[r][j], 100),
                          (double)ldexpf(small[r][j], 10));
}
TEST_BOTH(norms_of_large_rows)
{
    special_everywhere(try_norm_rows);
}

// ---- gradients of what chooses ---------------------------------------------------------------

// dy of ones by x, through build().
static void gradient(tt_ctx *ctx, tt_tensor *(*build)(tt_graph *g, tt_tensor *x), const float *x,
                     tt_shape shape, float *dx)
{
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *t = tt_const(g, TT_F32, shape, x), *d = NULL;
    CHECK_OK(tt_grad(g, tt_sum(g, build(g, t)), NULL, 1, &t, &d));
    CHECK_OK(tt_eval(g, d, dx, tt_shape_count(&shape)));
}
static tt_tensor *row_max(tt_graph *g, tt_tensor *x)
{
    return tt_max(g, x, .axis = -1);
}
static tt_tensor *row_min(tt_graph *g, tt_tensor *x)
{
    return tt_min(g, x, .axis = -1);
}
static tt_tensor *column_max(tt_graph *g, tt_tensor *x)
{
    return tt_max(g, x, .axes = TT_AXES(0));
}
static tt_tensor *pool(tt_graph *g, tt_tensor *x)
{
    return tt_max_pool2d(g, tt_reshape(g, x, TT_SHAPE(1, 2, 3, 1)), .size = {2, 3});
}
static tt_tensor *all_pool(tt_graph *g, tt_tensor *x)
{
    return tt_global_max_pool2d(g, tt_reshape(g, x, TT_SHAPE(1, 2, 3, 1)));
}

// Ties go to the first, a NaN is what is chosen, of several the first.
static void try_choices(tt_ctx *ctx, const char *where)
{
    static const float ties[] = {1, 5, 5, 2, 5, 1}, lows[] = {3, 1, 2, 1, 4, 1};
    static const float nans[] = {1, 9, NAN, 2, NAN, 1};
    tt_tensor *(*const builds[])(tt_graph *, tt_tensor *) = {row_max, column_max, pool, all_pool,
                                                             row_min};
    float d[6];
    for (int k = 0; k < 5; k++)
        for (int is_nan = 0; is_nan < 2; is_nan++) {
            tt_shape shape = k == 1 ? TT_SHAPE(6, 1) : TT_SHAPE(1, 6);
            gradient(ctx, builds[k], is_nan ? nans : k == 4 ? lows : ties, shape, d);
            for (int i = 0; i < 6; i++)
                ck_assert_msg(d[i] == (float)(i == (is_nan ? 2 : 1)),
                              "%s: choice %d, %s: element %d gets %g", where, k,
                              is_nan ? "NaN" : "ties", i, (double)d[i]);
        }
    // maximum and minimum: a tie gives b all of it, a NaN gives a
    static const float a[] = {1, NAN, 1, NAN, 2}, b[] = {1, 1, NAN, NAN, 3};
    static const float da[2][5] = {{0, 1, 1, 1, 0}, {0, 1, 1, 1, 1}};
    for (int k = 0; k < 2; k++) {
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *x[2] = {tt_const(g, TT_F32, TT_SHAPE(5), a),
                           tt_const(g, TT_F32, TT_SHAPE(5), b)};
        tt_tensor *dx[2];
        float y[2][5];
        tt_tensor *top = k == 0 ? tt_maximum(g, x[0], x[1]) : tt_minimum(g, x[0], x[1]);
        CHECK_OK(tt_grad(g, tt_sum(g, top), NULL, 2, x, dx));
        for (int i = 0; i < 2; i++)
            CHECK_OK(tt_eval(g, dx[i], y[i], 5));
        for (int i = 0; i < 5; i++)
            ck_assert_msg(y[0][i] == da[k][i] && y[1][i] == 1 - da[k][i], "%s: %g and %g at %d",
                          where, (double)y[0][i], (double)y[1][i], i);
    }
}
TEST_BOTH(choices_of_gradients)
{
    special_everywhere(try_choices);
}

// ---- argmax ----------------------------------------------------------------------------------

static void try_argmax(tt_ctx *ctx, const char *where)
{
    enum {
        N = 83
    };
    static float x[N][N], across[N][N];
    int32_t y[N], z[N];
    test_fill(&x[0][0], N * N, 5, -1, 1);
    for (int r = 0; r < N; r++) { // NaN at r, and after it; before it the greatest number
        x[r][r] = NAN;
        if (r + 30 < N)
            x[r][r + 30] = NAN;
        if (r > 20)
            x[r][r - 20] = INFINITY;
        for (int j = 0; j < N; j++)
            across[j][r] = x[r][j];
    }
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_eval(g, tt_argmax(g, tt_const(g, TT_F32, TT_SHAPE(N, N), x), 1), y, N));
    CHECK_OK(tt_eval(g, tt_argmax(g, tt_const(g, TT_F32, TT_SHAPE(N, N), across), 0), z, N));
    for (int r = 0; r < N; r++)
        ck_assert_msg(y[r] == r && z[r] == r, "%s: the first NaN is at %d, argmax is %d and %d",
                      where, r, y[r], z[r]);
}
TEST_BOTH(argmax_is_the_first_nan)
{
    special_everywhere(try_argmax);
}
