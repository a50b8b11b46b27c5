/*
 * softmax.c - softmax, log-softmax and cross entropy against plain loops in double.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLS,
    MIDDLE,
    LEAD,
    LABELS
}; // p[]
enum {
    I32,
    I64,
    U8,
    DENSE
};

// [rows or LEAD, MIDDLE if any, COLS]
static tt_shape shape_of(const op_case *c)
{
    int64_t lead = c->rows > 0 ? TT_BATCH : c->p[LEAD];
    return c->p[MIDDLE] > 0 ? TT_SHAPE(lead, c->p[MIDDLE], c->p[COLS]) : TT_SHAPE(lead, c->p[COLS]);
}

static tt_tensor *build_softmax(op_test *t)
{
    return tt_softmax(op_graph(t), op_input(t, shape_of(op_case_of(t)), -4, 4));
}

static tt_tensor *build_log_softmax(op_test *t)
{
    return tt_log_softmax(op_graph(t), op_input(t, shape_of(op_case_of(t)), -4, 4));
}

// max + log(sum(exp(x - max)))
static double logsumexp(const double *x, int64_t n)
{
    double max = x[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        max = fmax(max, x[j]);
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - max);
    return max + log(sum);
}

static void oracle_log_softmax(const op_test *t, double *y)
{
    const double *x = op_value(t, 0);
    int64_t n = op_case_of(t)->p[COLS];
    for (int64_t r = 0; r < op_count(t) / n; r++)
        for (int64_t j = 0; j < n; j++)
            y[r * n + j] = x[r * n + j] - logsumexp(x + r * n, n);
}

static void oracle_softmax(const op_test *t, double *y)
{
    oracle_log_softmax(t, y);
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = exp(y[i]);
}

static tt_tensor *build_cross_entropy(op_test *t)
{
    static const tt_dtype types[] = {TT_I32, TT_I64, TT_U8};
    const op_case *c = op_case_of(t);
    tt_shape shape = shape_of(c), rows = shape;
    rows.rank--;
    tt_tensor *x = op_input(t, shape, -3, 3);
    tt_tensor *labels = c->p[LABELS] == DENSE
                            ? op_input(t, shape, 0, 1)
                            : op_indices(t, types[c->p[LABELS]], rows, c->p[COLS]);
    return tt_cross_entropy(op_graph(t), x, labels, .smoothing = c->f[0], .has_ignore = c->f[1] > 0,
                            .ignore = (int64_t)c->f[2]);
}

static void oracle_cross_entropy(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    const double *x = op_value(t, 0), *label = op_value(t, 1);
    int64_t n = c->p[COLS];
    for (int64_t r = 0; r < op_count(t); r++) {
        double lse = logsumexp(x + r * n, n);
        bool ignored = c->f[1] > 0 && label[r] == c->f[2];
        y[r] = 0;
        for (int64_t j = 0; j < n && !ignored; j++) {
            double target = c->p[LABELS] == DENSE ? label[r * n + j] : (double)(label[r] == j);
            y[r] += ((1 - c->f[0]) * target + c->f[0] / (double)n) * (lse - x[r * n + j]);
        }
    }
}

#define SOFTMAX     .build = build_softmax, .oracle = oracle_softmax
#define LOG_SOFTMAX .build = build_log_softmax, .oracle = oracle_log_softmax
OP_CASES(softmax, {.label = "open", SOFTMAX, .rows = 13, .p = {[COLS] = 37}},
         {.label = "rank 3", SOFTMAX, .rows = 5, .p = {[COLS] = 16, [MIDDLE] = 3}},
         {.label = "long", SOFTMAX, .rows = 3, .p = {[COLS] = 1031}},
         {.label = "one class", SOFTMAX, .p = {[COLS] = 1, [LEAD] = 4}},
         {.label = "no rows", SOFTMAX, .p = {[COLS] = 5, [LEAD] = 0}},
         {.label = "log", LOG_SOFTMAX, .rows = 11, .p = {[COLS] = 50}},
         {.label = "log, long", LOG_SOFTMAX, .p = {[COLS] = 997, [LEAD] = 2}})

#define LOSS .build = build_cross_entropy, .oracle = oracle_cross_entropy
OP_CASES(
    cross_entropy, {.label = "i32", LOSS, .rows = 13, .p = {[COLS] = 10}},
    {.label = "i64, rank 3", LOSS, .rows = 5, .p = {[COLS] = 33, [MIDDLE] = 7, [LABELS] = I64}},
    {.label = "u8", LOSS, .p = {[COLS] = 16, [LEAD] = 6, [LABELS] = U8}},
    {.label = "long", LOSS, .rows = 3, .p = {[COLS] = 2053}},
    {.label = "smoothed", LOSS, .rows = 9, .p = {[COLS] = 21}, .f = {0.1}},
    {.label = "ignore", LOSS, .rows = 37, .p = {[COLS] = 4}, .f = {0.2, 1, 2}},
    {.label = "dense", LOSS, .rows = 6, .p = {[COLS] = 19, [LABELS] = DENSE}},
    {.label = "dense, smoothed",
     LOSS,
     .rows = 5,
     .p = {[COLS] = 40, [MIDDLE] = 2, [LABELS] = DENSE},
     .f = {0.3}})

// exp(x) overflows, x - max does not.
TEST_BOTH(softmax_of_large_numbers)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float x[] = {1000, 1000, -1000, 999}, y[4], loss[1];
    int32_t label = 2;
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(1, 4), x);
    CHECK_OK(tt_eval(g, tt_softmax(g, t), y, 4));
    CHECK_NEAR(y[0] + y[1] + y[3], 1, 1e-6);
    CHECK(y[0] == y[1] && y[2] == 0);
    tt_tensor *k = tt_const(g, TT_I32, TT_SHAPE(1), &label);
    CHECK_OK(tt_eval(g, tt_cross_entropy(g, t, k), loss, 1));
    CHECK_NEAR(loss[0], 2000 + log(2 + exp(-1)), 1e-3);
    CHECK_OK(tt_close(ctx));
}

TEST(softmax_refuses_integers)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_softmax(g, test_iota_i32(g, 4)) == NULL);
    CHECK_MESSAGE(ctx, "softmax: x is i32");
    CHECK(tt_close(ctx) == TT_EDTYPE);
}

TEST(softmax_refuses_scalars)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_log_softmax(g, tt_scalar(g, 1)) == NULL);
    CHECK(tt_close(ctx) == TT_ESHAPE);
}

static void check_bad_label(int32_t value, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    int32_t labels[] = {0, 4, value, 1};
    float loss[4];
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(4, 5));
    tt_tensor *y = tt_cross_entropy(g, x, tt_const(g, TT_I32, TT_SHAPE(4), labels));
    CHECK(tt_eval(g, y, loss, 4) == TT_EINVAL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST_BOTH(cross_entropy_names_a_bad_label)
{
    check_bad_label(5, "label of row 2 is 5, which is not in [0, 5)");
    check_bad_label(-1, "label of row 2 is -1, which is not in [0, 5)");
}

TEST(cross_entropy_refuses_labels_that_do_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(4, 5));
    CHECK(tt_cross_entropy(g, x, test_iota_i32(g, 3)) == NULL);
    CHECK_MESSAGE(ctx, "logits are [4, 5] but integer labels are [3]");
    tt_clear_error(ctx);
    CHECK(tt_cross_entropy(g, x, test_uniform(g, 1, TT_SHAPE(4, 6))) == NULL);
    CHECK_MESSAGE(ctx, "dense labels are [4, 6]");
    tt_clear_error(ctx);
    CHECK(tt_cross_entropy(g, x, test_iota_i32(g, 4), .smoothing = 1.5) == NULL);
    CHECK_MESSAGE(ctx, "smoothing is 1.5");
    tt_clear_error(ctx);
    CHECK(tt_cross_entropy(g, x, x, .has_ignore = true) == NULL);
    CHECK_MESSAGE(ctx, "ignore wants integer labels");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
