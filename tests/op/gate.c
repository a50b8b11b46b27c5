/*
 * gate.c - glu and prelu, made of other ops: values, gradients and messages.
 */
#include "op_test.h"

static tt_tensor *glu_build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_tensor *x = op_input(t, TT_SHAPE(c->rows > 0 ? TT_BATCH : 2, 3, c->p[0]), -2, 2);
    return tt_glu(op_graph(t), x, (tt_act)c->p[1]);
}
static void glu_oracle(const op_test *t, double *y)
{
    int64_t n = op_case_of(t)->p[0] / 2;
    for (int64_t i = 0; i < op_count(t); i++) {
        const double *x = op_value(t, 0) + i / n * 2 * n + i % n;
        y[i] = x[0] * test_act((tt_act)op_case_of(t)->p[1], x[n]);
    }
}
#define GLU .build = glu_build, .oracle = glu_oracle
OP_CASES(glu, {"sigmoid", GLU, .rows = 5, .p = {14, TT_SIGMOID}},
         {"silu", GLU, .rows = 3, .p = {2, TT_SILU}}, {"closed", GLU, .p = {34, TT_GELU_ERF}})

static tt_tensor *prelu_build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_tensor *x = op_input(t, TT_SHAPE(c->rows > 0 ? TT_BATCH : 3, 4, c->p[0]), -1, 1);
    return tt_prelu(op_graph(t), x, op_input(t, TT_SHAPE(c->p[1]), 0.1, 1.5));
}
static void prelu_oracle(const op_test *t, double *y)
{
    for (int64_t i = 0; i < op_count(t); i++) {
        double x = op_value(t, 0)[i];
        y[i] = x > 0 ? x : x * op_value(t, 1)[i % op_case_of(t)->p[1]];
    }
}
#define PRELU .build = prelu_build, .oracle = prelu_oracle
OP_CASES(prelu, {"by channel", PRELU, .rows = 7, .p = {5, 5}},
         {"shared", PRELU, .rows = 3, .p = {19, 1}}, {"closed", PRELU, .p = {3, 3}})

TEST(gates_name_what_is_wrong)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_glu(g, tt_fill(g, TT_F32, TT_SHAPE(2, 5), 1), TT_SIGMOID) == NULL);
    CHECK_MESSAGE(ctx, "glu: x is [2, 5]; its last axis must have an even number of entries");
    tt_clear_error(ctx);
    CHECK(tt_activation(g, tt_fill(g, TT_F32, TT_SHAPE(2), 1), TT_SOFTMAX) == NULL);
    CHECK_MESSAGE(ctx, "there is no activation 10");
    tt_clear_error(ctx);
    CHECK(tt_activation(g, tt_fill(g, TT_F32, TT_SHAPE(2), 1), (tt_act)17) == NULL);
    CHECK_MESSAGE(ctx, "there is no activation 17");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
