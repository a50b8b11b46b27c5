/*
 * label_rank.c - classes ranked above a row's label.
 */
#include "op_test.h"
#include <math.h>

// p: rows (0: the batch), classes, limit of labels; f: values are below this in steps of 1/4: ties.
static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, c->p[0], c->p[1]), -2, 2);
    tt_tensor *k = op_indices(t, (tt_dtype)c->p[3], TT_SHAPE(TT_BATCH, c->p[0]), c->p[2]);
    if (c->f[0] > 0) // ties
        x = tt_cast(op_graph(t), tt_cast(op_graph(t), x, TT_I32), op_dtype(t));
    return tt_label_rank(op_graph(t), x, k);
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t n = c->p[1], rows = op_count(t);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = op_value(t, 0) + r * n;
        int64_t k = (int64_t)op_value(t, 1)[r];
        y[r] = k < n ? 0 : (double)n;
        for (int64_t j = 0; k < n && j < n; j++) {
            double a = c->f[0] > 0 ? trunc(x[j]) : x[j], b = c->f[0] > 0 ? trunc(x[k]) : x[k];
            y[r] += a > b || (a == b && j < k);
        }
    }
}

#define CASE(label_, rows_, n_, limit_, dtype_, ties_)                \
    {                                                                 \
        .label = label_, .build = build, .oracle = oracle, .rows = 9, \
        .p = {rows_, n_, limit_, dtype_}, .f = {ties_}, .tol = 1e-12, \
        .skip = OP_NO_GRAD | OP_NO_HALF                               \
    }
OP_CASES(label_rank, CASE("one_class", 1, 1, 1, TT_I32, 0), CASE("ten", 3, 10, 10, TT_I32, 0),
         CASE("ties", 5, 37, 37, TT_I64, 1), CASE("no_class", 4, 16, 20, TT_U8, 0),
         CASE("long", 1, 1003, 1003, TT_I32, 1))

TEST_BOTH(label_rank_of_nan_and_labels_outside)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float x[5][3] = {{NAN, 1, 2}, {1, NAN, 2}, {NAN, NAN, NAN}, {3, 3, 3}, {1, 2, 3}};
    int32_t k[5] = {2, 1, 0, 1, -7}, y[5];
    tt_tensor *t = tt_label_rank(g, tt_const(g, TT_F32, TT_SHAPE(5, 3), x),
                                 tt_const(g, TT_I32, TT_SHAPE(5), k));
    CHECK_OK(tt_eval(g, t, y, 5));
    CHECK_INT(y[0], 1);
    CHECK_INT(y[1], 2);
    CHECK_INT(y[2], 2);
    CHECK_INT(y[3], 1);
    CHECK_INT(y[4], 3);
    CHECK(tt_label_rank(g, tt_const(g, TT_F32, TT_SHAPE(3, 5), x),
                        tt_const(g, TT_I32, TT_SHAPE(5), k)) == NULL);
    CHECK_MESSAGE(ctx, "x is [3, 5] but labels are [5]");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
