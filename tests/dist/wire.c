/*
 * wire.c - gradients sent to other replicas in a narrower type: what rounding takes is not lost.
 */
#include "test.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

typedef struct outcome {
    tt_hash hash;
    double loss;
} outcome;

static outcome train(const char *devices, tt_dtype wire, int64_t accumulate, int64_t epochs,
                     const char *checkpoints, bool resume)
{
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = "mirrored", .threads = 2,
                          .spread = tt_spread(.wire = wire, .reduce = TT_REDUCE_FAST),
                          .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 40, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1));
    outcome o = {.loss = 0};
    tt_status st = tt_fit(m, tt_digits(ctx, .count = 90), .epochs = epochs, .batch = 30,
                          .accumulate = accumulate, .checkpoints = checkpoints, .resume = resume);
    ck_assert_msg(st == TT_OK, "%s: %s", devices, tt_last_error(ctx).message);
    tt_fit_report r;
    CHECK_OK(tt_fit_report_get(m, &r));
    o.hash = r.weights;
    o.loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return o;
}

static bool same(const outcome *a, const outcome *b)
{
    return a->hash.low == b->hash.low && a->hash.high == b->hash.high;
}

// Rounded gradients alone would stand still where they are small; with what was left over they go
// where exact ones go. The same devices give the same bits, run after run.
TEST(narrow_gradients_train_as_wide_ones_do)
{
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3"};
    static const tt_dtype wires[] = {TT_BF16, TT_F16};
    for (int d = 0; d < 2; d++) {
        outcome wide = train(devices[d], TT_F32, 1, 8, NULL, false);
        for (int w = 0; w < 2; w++) {
            outcome a = train(devices[d], wires[w], 1, 8, NULL, false);
            outcome b = train(devices[d], wires[w], 1, 8, NULL, false);
            ck_assert_msg(same(&a, &b), "%s: two runs differ", devices[d]);
            ck_assert_msg(!same(&a, &wide), "%s: nothing was rounded", devices[d]);
            ck_assert_msg(fabs(a.loss - wide.loss) < 2e-3 * wide.loss, "%s: loss %g, wide %g",
                          devices[d], a.loss, wide.loss);
        }
        outcome parts = train(devices[d], TT_BF16, 2, 8, NULL, false);
        CHECK(isfinite(parts.loss));
    }
}

// One replica sends nothing.
TEST(one_replica_has_nothing_to_send)
{
    outcome wide = train("cpu:0", TT_F32, 1, 2, NULL, false);
    outcome narrow = train("cpu:0", TT_BF16, 1, 2, NULL, false);
    CHECK(same(&wide, &narrow));
}

// What is left over is in the checkpoint.
TEST(residuals_are_resumed)
{
    char folder[400];
    snprintf(folder, sizeof(folder), "%s/checkpoints", test_folder());
    outcome whole = train("cpu:0*2", TT_BF16, 1, 6, NULL, false);
    (void)train("cpu:0*2", TT_BF16, 1, 3, folder, false);
    outcome resumed = train("cpu:0*2", TT_BF16, 1, 6, folder, true);
    CHECK(same(&whole, &resumed));
}

// The plan halves what replicas receive of large gradients.
static double received(tt_dtype wire)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .strategy = "mirrored",
                          .spread = tt_spread(.wire = wire), .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 64, .no_bias = true);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 32), .batch = 32));
    char *text = tti_step_plan(m, 32, 1, TT_PLAN_JSON);
    const char *at = text == NULL ? NULL : strstr(text, "\"received\":");
    double bytes = at == NULL ? 0 : atof(at + 11);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
    return bytes;
}

TEST(narrow_gradients_are_half_the_traffic)
{
    double weights = 784 * 64 * 4, wide = received(TT_F32), narrow = received(TT_BF16);
    ck_assert_msg(wide - narrow > 0.2 * weights && wide - narrow < 0.3 * weights,
                  "%g bytes received, narrow %g", wide, narrow);
}
