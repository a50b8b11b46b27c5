/*
 * layer_lambda.c - expressions as layers: values, gradients through a training step, messages.
 */
#include "layer.h"
#include <math.h>
#include <stdio.h>
#include <tutti/models.h>

static double sum4(const double *x)
{
    return x[0] + x[1] + x[2] + x[3];
}
static double gate(const double *x, int i)
{
    return x[i] / (1 + exp(-1.7 * x[i]));
}
static double signs(const double *x, int i)
{
    return -(x[i] * x[i]) + 2 * -3.5e-1 - (x[i] - 1) / 4;
}
static double share(const double *x, int i)
{
    return exp(x[i]) / (exp(x[0]) + exp(x[1]) + exp(x[2]) + exp(x[3])) + sum4(x) / 4;
}
static double chosen(const double *x, int i)
{
    return x[i] > 0 ? pow(fabs(x[i]), 1.5) : fmax(x[i], -0.5);
}

static void check(const char *expr, double (*want)(const double *x, int i))
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_lambda_opts o = {.opts_size = sizeof(o)};
    snprintf(o.expr, sizeof(o.expr), "%s", expr);
    ck_assert_msg(tt_layer_lambda_with(m, &o) != NULL, "%s", tt_last_error(ctx).message);
    memset(&o, '!', sizeof(o)); // the layer has a copy
    float *x = test_input(4 * ROWS);
    const double *y = test_run(m, x);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 4; i++) {
            double row[4] = {(double)x[4 * r], (double)x[4 * r + 1], (double)x[4 * r + 2],
                             (double)x[4 * r + 3]};
            ck_assert_msg(fabs(y[4 * r + i] - want(row, i)) < 2e-6, "%s: %g, not %g", expr,
                          y[4 * r + i], want(row, i));
        }
    CHECK_OK(tt_close(ctx));
}

TEST(expressions_have_their_values)
{
    check("x * sigmoid(1.7 * x)", gate);
    check(" -x^2+2*-3.5e-1 - (x-1)/4", signs);
    check("softmax(x) + sum(x) / 4", share);
    check("exp(x) / exp(logsumexp(x)) + mean(x)", share);
    check("where(greater(x, 0), abs(x)^1.5, maximum(x, -0.5))", chosen);
}

// w x through an expression: its gradient is that of the layers it replaces, bit for bit.
TEST(expressions_are_trained_through)
{
    double loss[2];
    for (int way = 0; way < 2; way++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {4});
        tt_tensor *a = tt_layer_dense(m, .units = 3);
        tt_tensor *b = tt_layer_dense(m, .units = 3, .from = {m->inputs[0]->out});
        if (way == 0)
            tt_layer_lambda(m, .expr = "x * tanh(x2)", .from = {a, b});
        else
            tt_layer_multiply(m, .from = {a, tt_layer_activation(m, .act = TT_TANH, .from = {b})});
        CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1)));
        tt_batch_data batch = {.rows = ROWS, .fields = {test_input(4 * ROWS), test_input(9)}};
        tt_progress p;
        for (int i = 0; i < 3; i++)
            CHECK_OK(tt_train_step(m, &batch, &p));
        loss[way] = p.step_loss;
        CHECK_OK(tt_close(ctx));
    }
    CHECK(loss[0] == loss[1] && loss[0] > 0);
}

TEST(expressions_that_do_not_fit_are_named)
{
    static const char *const bad[][2] = {
        {"", "expr must be given"},
        {"x + sigmod(x)", "expr 'x + sigmod(x)', character 5: unknown name 'sigmod'; did you mean "
                          "'sigmoid'?"},
        {"x +", "character 4: the expression ends here"},
        {"(x", "character 3: ')' is missing"},
        {"x x", "character 3: an operator must follow"},
        {"where(x, 1)", "',' is missing"},
        {"x + x2", "the layer has fewer inputs"},
        {"2 * 3", "is a number, the same for all records; use x"},
        {"x $ 2", "an operator must follow"},
        {"1.2.3 * x", "not a number"},
        {"((((((((((((((((((((((((((((((((((x))))))))))))))))))))))))))))))))))",
         "too many brackets"},
    };
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_layer_lambda_opts o = {.opts_size = sizeof(o)};
        snprintf(o.expr, sizeof(o.expr), "%s", bad[i][0]);
        CHECK(tt_layer_lambda_with(m, &o) == NULL);
        ck_assert_msg(strstr(tt_last_error(ctx).message, bad[i][1]) != NULL, "%s: %s", bad[i][0],
                      tt_last_error(ctx).message);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}
