/*
 * max_abs.c - the largest magnitudes, by which a guarded step looks at its gradients.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>

#define BLOCK 65536

static tt_tensor *build(op_test *t)
{
    tt_tensor *x = op_input(t, TT_SHAPE(op_case_of(t)->p[0], op_case_of(t)->p[1]), -2, 1);
    return tt_max_abs(op_graph(t), &x, 1);
}

static void oracle(const op_test *t, double *y)
{
    const double *x = op_value(t, 0);
    tt_shape s = op_shape(t, 0);
    int64_t n = tt_shape_count(&s);
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = 0;
    for (int64_t i = 0; i < n; i++)
        y[i / BLOCK] = fmax(y[i / BLOCK], fabs(x[i]));
}

static tt_tensor *build_several(op_test *t)
{
    tt_tensor *x[7];
    int n = (int)op_case_of(t)->p[0];
    for (int i = 0; i < n; i++)
        x[i] = op_input(t, TT_SHAPE(3 + 100 * i), -1 - i, 1);
    return tt_max_abs(op_graph(t), x, n);
}

static void oracle_several(const op_test *t, double *y)
{
    y[0] = 0;
    for (int i = 0; i < op_case_of(t)->p[0]; i++) {
        tt_shape s = op_shape(t, i);
        for (int64_t k = 0; k < s.dim[0]; k++)
            y[0] = fmax(y[0], fabs(op_value(t, i)[k]));
    }
}

#define ONE(label_, rows_, cols_)                                                              \
    {                                                                                          \
        .label = label_, .build = build, .oracle = oracle, .p = {rows_, cols_}, .tol = 1e-300, \
        .skip = OP_NO_GRAD | OP_NO_HALF                                                        \
    }
#define SEVERAL(label_, n_)                                                           \
    {                                                                                 \
        .label = label_, .build = build_several, .oracle = oracle_several, .p = {n_}, \
        .tol = 1e-300, .skip = OP_NO_GRAD | OP_NO_HALF                                \
    }
OP_CASES(max_abs, ONE("one", 1, 1), ONE("odd", 3, 7), ONE("block", 64, 1024),
         ONE("block and one", 1, 65537), ONE("blocks", 389, 1031), SEVERAL("two", 2),
         SEVERAL("seven", 7))

// One element that is not finite is seen wherever it is; zero and subnormals are finite.
TEST_BOTH(max_abs_finds_what_is_not_finite)
{
    enum {
        COUNT = 2 * BLOCK + 37
    };
    static const int64_t places[] = {0, 1, 15, 16, 63, 64, 1023, BLOCK - 1, BLOCK, COUNT - 1};
    static float x[COUNT], y[3];
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        for (int k = 0; k < 4; k++) {
            const float values[] = {NAN, -NAN, INFINITY, -INFINITY};
            test_fill(x, COUNT, 3, -5, 4);
            x[places[i]] = values[k];
            tt_graph *g = tt_graph_new(ctx);
            tt_tensor *c = tt_const(g, TT_F32, TT_SHAPE(COUNT), x), *pair[] = {tt_scalar(g, 1), c};
            CHECK_OK(tt_eval(g, tt_max_abs(g, &c, 1), y, 3));
            for (int b = 0; b < 3; b++)
                CHECK(isfinite(y[b]) == (places[i] / BLOCK != b));
            CHECK(isnan(y[places[i] / BLOCK]) == (k < 2));
            float all = 0;
            CHECK_OK(tt_eval(g, tt_max_abs(g, pair, 2), &all, 1));
            CHECK(isnan(all) == (k < 2) && !isfinite(all));
            tt_graph_free(g);
        }
    }
    tt_graph *g = tt_graph_new(ctx);
    const float small[] = {-0.0f, 0, 1e-40f};
    tt_tensor *c = tt_const(g, TT_F32, TT_SHAPE(3), small);
    CHECK_OK(tt_eval(g, tt_max_abs(g, &c, 1), y, 1));
    CHECK(y[0] >= 0 && y[0] <= 1e-40f && !signbit(y[0]));
    CHECK(tt_max_abs(g, &c, 0) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
