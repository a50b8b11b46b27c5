/*
 * guard.c - a step that would write something that is not finite is not applied, as a whole: on any
 * strategy, with any optimizer, weights, optimizer state, averages and statistics keep their bits.
 * Steps that were not applied are not counted by Adam, and averages begin with the first that was.
 */
#include "../test.h"
#include "save/checkpoint.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    IN = 96,
    HIDDEN = 64,
    ROWS = 16
};

typedef struct way {
    const char *strategy, *devices;
    const tt_spread *spread;
    int64_t accumulate;
    const tt_optimizer *optimizer;
    tt_precision precision;
    bool no_norm; // without batch norm
} way;

static const way ways[] = {
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_ADAM, .ema = 0.5)},
    {"single", "cpu:0", .accumulate = 4, .optimizer = tt_optimizer(.kind = TT_SGD, .momentum = 0.9),
     .no_norm = true},
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_LION, .ema = 0.5)},
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_ADAGRAD, .clip_value = 1)},
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_RMSPROP, .clip_norm = 1)},
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_ADAMW, .clip_global = 1)},
    {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_ADAM), .precision = TT_PRECISION_BF16},
    {"mirrored", "cpu:0*2", .optimizer = tt_optimizer(.kind = TT_ADAM, .ema = 0.5)},
    {"mirrored", "cpu:0*3", .spread = tt_spread(.update = TT_UPDATE_SHARD),
     .optimizer = tt_optimizer(.kind = TT_ADAM, .ema = 0.5)},
    {"mirrored", "cpu:0*2", .spread = tt_spread(.update = TT_UPDATE_EACH),
     .optimizer = tt_optimizer(.kind = TT_SGD)},
    {"mirrored", "cpu:0*4", .accumulate = 2, .optimizer = tt_optimizer(.kind = TT_LION),
     .no_norm = true},
    {"central", "cpu:0*3", .optimizer = tt_optimizer(.kind = TT_ADAMW)},
    {"pipeline", "cpu:0*2", .optimizer = tt_optimizer(.kind = TT_ADAM), .no_norm = true},
};
#define N_WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

// sqrt((y^2 + 1) t): where t is 0 the loss is 0, but its gradient is infinity times 0.
static tt_tensor *cliff(void *user, tt_graph *g, tt_tensor *y, tt_tensor *t)
{
    (void)user;
    return tt_sqrt(g, tt_mul(g, tt_add(g, tt_mul(g, y, y), tt_scalar(g, 1)), t));
}

static tt_model *model(tt_ctx *ctx, const way *w)
{
    tt_model *m = tt_sequential(ctx, .input = {IN});
    tt_layer_dense(m, .units = HIDDEN, .act = TT_TANH, .name = "first");
    if (!w->no_norm)
        tt_layer_batch_norm(m, .name = "norm");
    tt_layer_dense(m, .units = 1, .name = "last");
    tt_optimizer o = *w->optimizer;
    o.lr = 1e-2;
    tt_compile(m, .losses = {tt_loss(.kind = TT_CUSTOM_LOSS, .fn = cliff)}, .optimizer = &o,
               .precision = w->precision);
    CHECK_OK(tt_status_of(ctx));
    return m;
}

static tt_ctx *open_way(const way *w)
{
    return tt_open(.strategy = w->strategy, .devices = w->devices, .spread = w->spread,
                   .threads = 2, .on_event = test_ignore_event);
}

// Every variable of the model and its optimizer, by value.
static tt_hash hash_all(tt_model *m)
{
    tti_snapshot s;
    CHECK_OK(tti_model_snapshot(m, &s));
    tt_hash all = {0};
    for (int64_t i = 0; i < s.n; i++) {
        tt_hash h = tti_hash128(s.tensors[i].data, s.tensors[i].bytes);
        all.low = all.low * 31 + h.low;
        all.high = all.high * 31 + h.high;
    }
    tti_snapshot_free(m->ctx, &s);
    return all;
}

static bool same(tt_hash a, tt_hash b)
{
    return a.low == b.low && a.high == b.high;
}

// Records with a target per step: bad[i] makes step i one whose gradients are not finite.
static tt_data *data(tt_ctx *ctx, int steps, const bool *bad)
{
    static float x[8 * ROWS * IN], y[8 * ROWS];
    test_fill(x, (int64_t)steps * ROWS * IN, 7, -1, 1);
    for (int i = 0; i < steps * ROWS; i++)
        y[i] = bad[i / ROWS] && i % ROWS == 11 ? 0 : 1; // one row of a batch is enough
    return tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(IN), .y_shape = TT_SHAPE(1),
                     .count = steps * ROWS, .batch = ROWS, .no_shuffle = true);
}

static tt_status fit(tt_model *m, const way *w, tt_data *d, tt_nan nan)
{
    int64_t parts = w->accumulate > 0 ? w->accumulate : 1;
    return tt_fit(m, d, .epochs = 1, .nan = nan, .batch = ROWS / parts, .accumulate = parts);
}

TEST(a_gradient_that_is_not_finite_is_never_applied)
{
    static const bool good[2] = {false, false}, bad[1] = {true};
    for (int i = 0; i < N_WAYS; i++) {
        tt_ctx *ctx = open_way(&ways[i]);
        tt_model *m = model(ctx, &ways[i]);
        CHECK_OK(fit(m, &ways[i], data(ctx, 2, good), TT_NAN_STOP));
        tt_hash before = hash_all(m);
        tt_status st = fit(m, &ways[i], data(ctx, 1, bad), TT_NAN_STOP);
        ck_assert_msg(st == TT_ENAN, "way %d: %s, %s", i, tt_status_name(st),
                      tt_last_error(ctx).message);
        CHECK_MESSAGE(ctx, "step 3: a gradient or statistic is NaN or infinite; ");
        CHECK_MESSAGE(ctx, "'last.bias'"); // the first from the output on
        CHECK_MESSAGE(ctx, "the step was not applied");
        tt_clear_error(ctx);
        ck_assert_msg(same(before, hash_all(m)), "way %d: something was written", i);
        CHECK_OK(fit(m, &ways[i], data(ctx, 1, good), TT_NAN_STOP)); // and it goes on
        ck_assert_msg(!same(before, hash_all(m)), "way %d: a good step did nothing", i);
        CHECK_OK(tt_close(ctx));
    }
}

// Let through, it is written: the guard is what stops it.
TEST(a_gradient_that_is_not_finite_goes_on_if_asked)
{
    static const bool bad[1] = {true};
    tt_ctx *ctx = open_way(&ways[0]);
    tt_model *m = model(ctx, &ways[0]);
    CHECK_OK(fit(m, &ways[0], data(ctx, 1, bad), TT_NAN_CONTINUE));
    tti_snapshot s;
    CHECK_OK(tti_model_snapshot(m, &s));
    bool any = false;
    for (int64_t i = 0; i < s.n_weights; i++)
        for (size_t k = 0; k < s.tensors[i].bytes / sizeof(float); k++)
            any |= !isfinite(((const float *)s.tensors[i].data)[k]);
    CHECK(any);
    tti_snapshot_free(ctx, &s);
    CHECK_OK(tt_close(ctx));
}

// ---- updates that would overflow -------------------------------------------------------------

static tt_status one_step(const tt_optimizer *o, float factor, const char *message)
{
    static float x[4], y[1];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 1, .init = {TT_INIT_CONSTANT, 0, 0}, .name = "only");
    tt_compile(m, .loss = TT_MAE, .optimizer = o);
    for (int i = 0; i < 4; i++)
        x[i] = factor; // the gradient of the weights, up to its sign
    y[0] = -1;
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                           .count = 1, .batch = 1);
    tt_hash before = hash_all(m);
    tt_status st = tt_fit(m, d, .epochs = 1);
    if (message != NULL) {
        ck_assert_msg(st == TT_ENAN, "%s: %s", message, tt_status_name(st));
        CHECK_MESSAGE(ctx, message);
        tt_clear_error(ctx);
        CHECK(same(before, hash_all(m)));
    } else {
        ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    }
    tt_close(ctx);
    return st;
}

TEST_BOTH(an_update_that_would_overflow_is_not_applied)
{
    const char *text = "the gradient of 'only.weight' has an element of 1e+25; the update would "
                       "overflow";
    one_step(tt_adam(), 1e25f, text);
    one_step(tt_adamw(), 1e25f, text);
    one_step(tt_rmsprop(), 1e25f, text);
    one_step(tt_adagrad(), 1e25f, text);
    one_step(tt_sgd(.lr = 1e20), 1e25f, text);
    // What stays finite is applied, however large it is.
    one_step(tt_sgd(.lr = 1e-3), 1e25f, NULL);
    one_step(tt_sgd(.lr = 1e-3, .momentum = 0.9), 1e25f, NULL);
    one_step(tt_lion(), 1e25f, NULL);
    one_step(tt_adam(), 1e18f, NULL);
    one_step(tt_adam(.clip_global = 1), 1e25f, NULL);
    one_step(tt_adam(.clip_norm = 1), 1e25f, NULL);
    one_step(tt_adam(.clip_value = 1), 1e25f, NULL);
}

// A target that is not finite: nothing is wrong with layers and gradients.
TEST(a_target_that_is_not_finite_is_named)
{
    static float x[4] = {1, 2, 3, 4}, y[1] = {INFINITY};
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MAE);
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                           .count = 1, .batch = 1);
    CHECK(tt_fit(m, d, .epochs = 1) == TT_ENAN);
    CHECK_MESSAGE(ctx, "step 1: the data has a value that is not a finite number: training data: "
                       "memory: record 0, field 'y', element [0] is infinity");
    CHECK(tt_close(ctx) == TT_ENAN);
}

// A weight can also grow until it is infinite; that is not saved.
TEST(nothing_that_is_not_finite_is_saved)
{
    static float x[4] = {0, 0, 0, 0}, y[1] = {0};
    tt_ctx *ctx = test_ctx();
    char folder[200], path[TTI_PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/checkpoints", test_folder());
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 1, .init = {TT_INIT_CONSTANT, 1, 0}, .name = "only");
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_adamw(.lr = 1, .weight_decay = 1e15));
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                           .count = 1, .batch = 1);
    CHECK(tt_fit(m, d, .steps = 6, .checkpoints = folder, .save_every = 1) == TT_ENAN);
    CHECK_MESSAGE(ctx, "step 3: element 0 of 'only.weight' is -inf, so no checkpoint is written");
    tt_clear_error(ctx);
    CHECK_OK(tti_checkpoint_newest(ctx, folder, path));
    ck_assert_msg(strstr(path, "step-2") != NULL, "the newest is %s", path);
    snprintf(folder, sizeof(folder), "%s/others", test_folder()); // let through, it is
    CHECK_OK(tt_fit(m, d, .steps = 1, .nan = TT_NAN_CONTINUE, .checkpoints = folder));
    CHECK_OK(tt_close(ctx));
}

// ---- steps that were not applied -------------------------------------------------------------

// With the first steps skipped, everything ends as if they had not been.
TEST(skipped_steps_are_not_counted)
{
    static const bool bad[6] = {true, true, true, false, false, false};
    const tt_optimizer *kinds[] = {tt_adam(.ema = 0.9), tt_adamw(.ema = 0.5), tt_sgd(.ema = 0.9)};
    const struct {
        const char *strategy, *devices;
        const tt_spread *spread;
    } on[] = {{"single", "cpu:0", NULL},
              {"mirrored", "cpu:0*2", NULL},
              {"mirrored", "cpu:0*3", tt_spread(.update = TT_UPDATE_SHARD)}};
    for (int k = 0; k < 9; k++) {
        way w = {on[k / 3].strategy, on[k / 3].devices, .spread = on[k / 3].spread,
                 .optimizer = kinds[k % 3]};
        tt_hash hash[2];
        for (int pass = 0; pass < 2; pass++) {
            tt_ctx *ctx = open_way(&w);
            tt_model *m = model(ctx, &w);
            tt_data *d = data(ctx, 6, bad);
            int64_t first = pass == 0 ? 0 : 3 * ROWS;
            if (pass == 0) {
                CHECK_OK(fit(m, &w, d, TT_NAN_SKIP));
                CHECK_INT(m->step->unapplied, 3);
            } else { // the good batches alone, by hand
                CHECK_OK(tt_data_start(d, ROWS, first));
                for (int i = 0; i < 3; i++) {
                    tt_batch_data b;
                    CHECK_OK(tt_data_next(d, &b));
                    CHECK_OK(tt_train_step(m, &b, NULL));
                }
            }
            hash[pass] = hash_all(m);
            CHECK_OK(tt_close(ctx));
        }
        ck_assert_msg(same(hash[0], hash[1]), "%s on %s, optimizer %d: skipped steps were counted",
                      w.strategy, w.devices, (int)w.optimizer->kind);
    }
}

// The count goes into checkpoints; those without one count every step.
TEST(the_count_of_applied_steps_is_in_checkpoints)
{
    static const bool bad[6] = {true, false, true, false, false, false};
    way w = {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_ADAM, .ema = 0.9)};
    tt_hash whole, resumed, old;
    char folder[200], path[TTI_PATH_MAX];
    for (int pass = 0; pass < 3; pass++) {
        snprintf(folder, sizeof(folder), "%s/pass-%d", test_folder(), pass);
        tt_ctx *ctx = open_way(&w);
        tt_model *m = model(ctx, &w);
        tt_data *d = data(ctx, 6, bad);
        if (pass > 0) {
            CHECK_OK(tt_fit(m, d, .steps = 4, .nan = TT_NAN_SKIP, .checkpoints = folder));
            tti_snapshot s;
            CHECK_OK(tti_checkpoint_newest(ctx, folder, path));
            CHECK_OK(tti_checkpoint_read(ctx, path, &s));
            CHECK_INT(s.state.unapplied, 2);
            s.state.unapplied = 0; // as an older version would have written it
            if (pass == 2)
                CHECK_OK(tti_checkpoint_write(ctx, path, &s));
            tti_snapshot_free(ctx, &s);
            CHECK_OK(tt_close(ctx)); // and again from the file alone
            ctx = open_way(&w);
            m = model(ctx, &w);
            d = data(ctx, 6, bad);
        }
        CHECK_OK(tt_fit(m, d, .steps = 6, .nan = TT_NAN_SKIP, .resume = pass > 0,
                        .checkpoints = pass > 0 ? folder : NULL));
        CHECK_INT(m->step->unapplied, pass == 2 ? 0 : 2);
        *(pass == 0 ? &whole : pass == 1 ? &resumed : &old) = hash_all(m);
        CHECK_OK(tt_close(ctx));
    }
    CHECK(same(whole, resumed));
    CHECK(!same(whole, old));
}

// An average that a trained model gets later begins with its weights, not with zeros.
TEST(averages_that_come_later_begin_with_the_weights)
{
    static const bool good[2] = {false, false};
    way w = {"single", "cpu:0", .optimizer = tt_optimizer(.kind = TT_SGD)};
    tt_ctx *ctx = open_way(&w);
    tt_model *m = model(ctx, &w);
    float weight[HIDDEN], average[HIDDEN];
    CHECK_OK(fit(m, &w, data(ctx, 2, good), TT_NAN_STOP));
    CHECK_OK(tt_compile(m, .losses = {tt_loss(.kind = TT_CUSTOM_LOSS, .fn = cliff)},
                        .optimizer = tt_sgd(.lr = 1e-6, .ema = 0.999)));
    CHECK_OK(fit(m, &w, data(ctx, 1, good), TT_NAN_STOP));
    tt_session *s = tt_model_get_session(m);
    tt_graph *g = tt_model_get_train_graph(m);
    CHECK_OK(tt_get_variable(s, tt_graph_find(g, "first.bias"), weight, sizeof(weight)));
    CHECK_OK(tt_get_variable(s, tt_graph_find(g, "first.bias/ema"), average, sizeof(average)));
    for (int i = 0; i < HIDDEN; i++)
        ck_assert_msg(fabsf(average[i] - weight[i]) <= 1e-3f * fabsf(weight[i]) + 1e-5f,
                      "average %g of weight %g", average[i], weight[i]);
    CHECK_OK(tt_close(ctx));
}
