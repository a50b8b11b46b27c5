/*
 * recurrent.c - rnn, gru and lstm against plain loops in double.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <tutti/recurrent.h>

// p: kind, steps, units, bias, reverse
static tt_tensor *build(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    int64_t wide = (p[0] == TT_RNN ? 1 : p[0] == TT_GRU ? 3 : 4) * p[2];
    tt_tensor *z = op_input(t, TT_SHAPE(op_case_of(t)->rows > 0 ? TT_BATCH : 2, p[1], wide), -2, 2);
    tt_tensor *w = op_input(t, TT_SHAPE(p[2], wide), -0.5, 0.5);
    tt_tensor *bias = p[3] ? op_input(t, TT_SHAPE(wide), -0.5, 0.5) : NULL;
    return tt_recurrent(op_graph(t), z, w, .kind = (tt_recurrent_kind)p[0], .bias = bias,
                        .reverse = p[4] != 0);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p, steps = p[1], h = p[2];
    int64_t wide = (p[0] == TT_RNN   ? 1
                    : p[0] == TT_GRU ? 3
                                     : 4) *
                   h,
            rows = op_count(t) / (steps * h);
    double *state = calloc((size_t)(3 * h + wide), sizeof(*state)), *c = state + h, *q = c + h;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < 2 * h; i++)
            state[i] = 0;
        for (int64_t s = 0; s < steps; s++) {
            int64_t at = r * steps + (p[4] ? steps - 1 - s : s);
            const double *z = op_value(t, 0) + at * wide;
            for (int64_t j = 0; j < wide; j++) {
                q[j] = p[3] ? op_value(t, 2)[j] : 0;
                for (int64_t k = 0; k < h; k++)
                    q[j] += state[k] * op_value(t, 1)[k * wide + j];
            }
            for (int64_t i = 0; i < h; i++) {
                if (p[0] == TT_RNN) {
                    state[i] = tanh(z[i] + q[i]);
                } else if (p[0] == TT_GRU) {
                    double reset = sigmoid(z[i] + q[i]), u = sigmoid(z[h + i] + q[h + i]);
                    double n = tanh(z[2 * h + i] + reset * q[2 * h + i]);
                    state[i] = (1 - u) * n + u * state[i];
                } else {
                    c[i] = sigmoid(z[h + i] + q[h + i]) * c[i] +
                           sigmoid(z[i] + q[i]) * tanh(z[2 * h + i] + q[2 * h + i]);
                    state[i] = sigmoid(z[3 * h + i] + q[3 * h + i]) * tanh(c[i]);
                }
                y[at * h + i] = state[i];
            }
        }
    }
    free(state);
}

#define CASE .build = build, .oracle = oracle
OP_CASES(recurrent, {"rnn", CASE, .rows = 5, .p = {TT_RNN, 4, 3, 1}},
         {"gru", CASE, .rows = 3, .p = {TT_GRU, 4, 5, 1}},
         {"lstm", CASE, .rows = 9, .p = {TT_LSTM, 3, 5, 1}},
         {"lstm backwards", CASE, .rows = 3, .p = {TT_LSTM, 4, 3, 0, 1}},
         {"gru backwards", CASE, .rows = 3, .p = {TT_GRU, 3, 3, 1, 1}},
         {"many units", CASE, .rows = 17, .p = {TT_LSTM, 2, 19}, .skip = OP_NO_GRAD},
         {"one step", CASE, .rows = 2, .p = {TT_GRU, 1, 2, 1}},
         {"closed batch", CASE, .p = {TT_RNN, 3, 17}})

TEST(recurrent_names_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *z = tt_fill(g, TT_F32, TT_SHAPE(2, 3, 8), 1),
              *w = tt_fill(g, TT_F32, TT_SHAPE(2, 8), 1);
    CHECK(tt_recurrent(g, z, w, .kind = TT_LSTM) != NULL);
    CHECK(tt_recurrent(g, z, w, .kind = TT_GRU) == NULL);
    CHECK_MESSAGE(ctx, "z is [2, 3, 8] and w is [2, 8]; for gru they must be [batch, time, 3 h]");
    tt_clear_error(ctx);
    CHECK(tt_recurrent(g, z, w, .kind = TT_LSTM, .bias = tt_fill(g, TT_F32, TT_SHAPE(4), 1)) ==
          NULL);
    CHECK_MESSAGE(ctx, "the bias is f32 [4], not f32 [8]");
    tt_clear_error(ctx);
    CHECK(tt_recurrent(g, z, w, .kind = (tt_recurrent_kind)7) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
