/*
 * dropout.c - dropout: the mask is that of the scalar generator, element by element, and depends on
 * row, step and name only.
 */
#include "op_test.h"

#include "base/base.h"
#include "op/cpu/philox.h"
#include <stdio.h>

// The word of element e of a row; cases run with seed 7, step 3.
static uint32_t word(uint64_t name, uint64_t row, uint64_t step, int64_t e)
{
    uint64_t number = (uint64_t)(e / 64 * 16 + e % 16);
    uint64_t low = (number & 0xffffffffu) | row << 32, high = step | number >> 32 << 32;
    return tti_philox4(tti_random_key(7, name), low, high).v[e % 64 / 16];
}

static uint64_t key; // of the node built last; the same in every trial

static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_shape s = {(int)c->p[0], {c->p[1], c->p[2], c->p[3]}};
    tt_tensor *y = tt_dropout(op_graph(t), op_input(t, s, 0.5, 1), c->f[0]);
    if (y != NULL)
        key = tt_tensor_get_node(y)->key;
    return y;
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t rows = c->rows > 0 ? c->rows : 1, per = op_count(t) / rows;
    for (int64_t i = 0; i < op_count(t); i++) {
        double w = word(key, (uint64_t)(i / per), 3, i % per);
        y[i] = w >= c->f[0] * 0x1p32 ? op_value(t, 0)[i] / (1 - c->f[0]) : 0;
    }
}

OP_CASES(
    dropout,
    {.label = "rows",
     .build = build,
     .oracle = oracle,
     .rows = 13,
     .f = {0.25},
     .p = {2, TT_BATCH, 97}},
    {.label = "one_per_row",
     .build = build,
     .oracle = oracle,
     .rows = 13,
     .f = {0.5},
     .p = {1, TT_BATCH}},
    {.label = "tokens", .build = build, .oracle = oracle, .rows = 9, .f = {0.1}, .p = {2, -5, 31}},
    {.label = "closed", .build = build, .oracle = oracle, .f = {0.9}, .p = {3, 3, 7, 11}},
    {.label = "empty", .build = build, .oracle = oracle, .f = {0.9}, .p = {2, 0, 11}})

static tt_tensor *build_moved(op_test *t)
{
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, 3, 23), 0.5, 1);
    return tt_dropout(op_graph(t), tt_transpose(op_graph(t), x, TT_AXES(1, 0, 2)), 0.3);
}

// The batch is not the first axis: rows still drop the same elements in any company.
OP_CASES(dropout_moved,
         {.label = "second_axis", .build = build_moved, .rows = 13, .skip = OP_NO_ORACLE})

TEST_BOTH(dropout_keeps_about_the_right_share)
{
    enum {
        N = 100000
    };
    static float y[N];
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    int kept = 0;

    CHECK_OK(tt_eval(g, tt_dropout(g, tt_fill(g, TT_F32, TT_SHAPE(N), 1), 0.2), y, N));
    for (int i = 0; i < N; i++) {
        CHECK(y[i] == 0 || y[i] == 1.25f);
        kept += y[i] != 0;
    }
    CHECK_NEAR(kept / (double)N, 0.8, 0.006); // five deviations
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(dropout_differs_by_step_and_name)
{
    enum {
        N = 256
    };
    float y[4][N];
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(N), 1);
    tt_tensor *a = tt_dropout(g, x, 0.5), *b = tt_dropout(g, x, 0.5);
    tt_session *s = tt_session_new(g);

    for (int step = 0; step < 2; step++) {
        tt_fetch out[2] = {{a, y[2 * step], sizeof(y[0])}, {b, y[2 * step + 1], sizeof(y[0])}};
        CHECK_OK(tt_run(s, .fetches = out, .n_fetches = 2, .step = step));
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            CHECK(memcmp(y[i], y[k], sizeof(y[0])) != 0);
    tt_fetch again = {a, y[1], sizeof(y[0])};
    CHECK_OK(tt_run(s, .fetches = &again, .n_fetches = 1));
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(dropout_checks_its_rate)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(3), 1);

    CHECK(tt_dropout(g, x, 0) == x);
    CHECK(tt_dropout(g, x, 1) == NULL);
    CHECK_MESSAGE(ctx, "rate is 1; it must be at least 0 and below 1");
    tt_clear_error(ctx);
    CHECK(tt_dropout(g, test_iota_i32(g, 3), 0.5) == NULL);
    CHECK(tt_close(ctx) == TT_EDTYPE);
}
