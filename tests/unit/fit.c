/*
 * fit.c - the training loop: it learns, counts every row once, stops, skips, calls back.
 */
#include "fit_models.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tt_ctx *quiet(const char *devices, int threads, const char *isa, const char *strategy)
{
    return tt_open(.devices = devices, .threads = threads, .isa = isa, .strategy = strategy,
                   .seed = 7, .on_event = test_ignore_event);
}

static tt_hash hash_of(tt_model *m)
{
    tt_hash h = {0, 0};
    CHECK_OK(tt_model_hash(m, &h));
    return h;
}

#define CHECK_SAME(a, b, ...) ck_assert_msg((a).low == (b).low && (a).high == (b).high, __VA_ARGS__)

TEST(fit_learns_digits)
{
    tt_ctx *ctx = quiet(NULL, 2, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_CNN);
    tt_data *train = fit_data(ctx, FIT_CNN, 2000);
    tt_data *test = tt_digits(ctx, .count = 500, .set = 2, .batch = 100);
    tt_evaluation before, after;
    ck_assert_msg(m != NULL, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_evaluate(m, test, &before));
    ck_assert_msg(tt_fit(m, train, .epochs = 3, .validate = test) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    CHECK_OK(tt_evaluate(m, test, &after));
    CHECK_INT(after.rows, 500);
    CHECK_INT(after.n_metrics, 2);
    CHECK_STR(after.names[0], "accuracy");
    CHECK(before.metrics[0] < 0.3);
    ck_assert_msg(after.metrics[0] > 0.6 && after.loss < before.loss, "accuracy %g, loss %g",
                  after.metrics[0], after.loss);
    CHECK(after.metrics[1] > after.metrics[0]);
    tt_fit_report r;
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.steps, 3 * 84); // 2000 records in batches of 24
    CHECK_INT(r.epochs, 3);
    CHECK(r.last->has_validation && r.last->validation[0] == after.metrics[0]);
    CHECK(r.seconds >= r.compute_seconds && r.step_ms_median > 0 && r.first_step_seconds > 0);
    CHECK_OK(tt_close(ctx));
}

// Loss and metrics are of sums over all rows, whatever the batch: the last one is short.
TEST(evaluate_counts_every_row_once)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_MLP);
    tt_data *d = fit_data(ctx, FIT_MLP, 103);
    tt_evaluation a, b, c;
    CHECK_OK(tt_evaluate(m, d, &a, .batch = 103));
    CHECK_OK(tt_evaluate(m, d, &b, .batch = 10));
    CHECK_OK(tt_evaluate(m, d, &c, .batch = 10, .rows = 41));
    CHECK_INT(a.rows, 103);
    CHECK_INT(b.rows, 103);
    CHECK_INT(c.rows, 41);
    CHECK_NEAR(a.loss, b.loss, 1e-6);
    CHECK(a.metrics[0] == b.metrics[0]);
    CHECK_OK(tt_close(ctx));
}

static tt_hash accumulated(fit_kind kind, int64_t batch, int64_t accumulate, int64_t count,
                           const char *devices, double *loss)
{
    tt_ctx *ctx = quiet(devices, 2, NULL, devices == NULL ? NULL : "mirrored");
    tt_model *m = fit_model(ctx, kind);
    tt_data *d = fit_data(ctx, kind, count);
    tt_fit_report r;
    ck_assert_msg(tt_fit(m, d, .epochs = 2, .batch = batch, .accumulate = accumulate) == TT_OK,
                  "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    *loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

TEST(accumulation_equals_one_big_batch)
{
    for (int k = 0; k < FIT_N_KINDS; k++) {
        static const struct {
            int64_t batch, accumulate;
            const char *devices;
        } ways[] = {
            {32, 2, NULL}, {16, 4, NULL}, {8, 8, NULL}, {16, 4, "cpu:0*2"}, {64, 1, "cpu:0*3"}};
        double want_loss, loss;
        tt_hash want = accumulated((fit_kind)k, 64, 1, 150, NULL, &want_loss);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            tt_hash got = accumulated((fit_kind)k, ways[i].batch, ways[i].accumulate, 150,
                                      ways[i].devices, &loss);
            CHECK_SAME(got, want, "%s: %lld x %lld rows on %s: other weights, loss %a and %a",
                       fit_name((fit_kind)k), (long long)ways[i].batch,
                       (long long)ways[i].accumulate,
                       ways[i].devices == NULL ? "one device" : ways[i].devices, loss, want_loss);
            CHECK(loss == want_loss);
        }
    }
}

TEST(accumulate_must_divide_the_lanes)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_MLP);
    CHECK(tt_fit(m, fit_data(ctx, FIT_MLP, 50), .accumulate = 3) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "accumulate is 3, which does not divide the 8 lanes; use one of 1, 2, 4, 8");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// One record; fewer rows than lanes; a last batch of one row.
TEST(tiny_data_sets_train)
{
    static const int64_t counts[] = {1, 3, 7, 25};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        tt_hash got[3];
        for (int way = 0; way < 3; way++) {
            double loss;
            got[way] = accumulated(FIT_MLP, way == 1 ? 6 : 24, way == 1 ? 4 : 1, counts[i],
                                   way == 2 ? "cpu:0*4" : NULL, &loss);
            CHECK(isfinite(loss));
        }
        CHECK_SAME(got[0], got[1], "%lld records: accumulating differs", (long long)counts[i]);
        CHECK_SAME(got[0], got[2], "%lld records: four devices differ", (long long)counts[i]);
    }
}

// ---- a softmax written last ------------------------------------------------------------------

TEST(softmax_written_last_gives_the_bits_of_logits)
{
    tt_hash hashes[2];
    float x[3 * 20], y[2][3 * 4];
    int32_t labels[20];
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
        tt_model *m = tt_sequential(ctx, .input = {3});
        tt_layer_dense(m, .units = 4, .act = i == 0 ? TT_LINEAR : TT_SOFTMAX);
        tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 0.01));
        test_fill(x, 60, 3, -1, 1);
        for (int k = 0; k < 20; k++)
            labels[k] = k % 4;
        tt_data *d = tt_memory(ctx, .x = x, .y = labels, .x_shape = TT_SHAPE(3), .y_dtype = TT_I32,
                               .count = 20, .batch = 5);
        ck_assert_msg(tt_fit(m, d, .epochs = 3) == TT_OK, "%s", tt_last_error(ctx).message);
        hashes[i] = hash_of(m);
        CHECK_OK(tt_predict(m, x, 3, y[i]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK_SAME(hashes[0], hashes[1], "other weights");
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += y[1][k];
    CHECK_NEAR(sum, 1, 1e-6);
    CHECK_NEAR(y[1][0] / y[1][1], exp((double)y[0][0] - (double)y[0][1]), 1e-4);
}

// ---- several losses --------------------------------------------------------------------------

TEST(two_outputs_have_a_loss_each)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = tt_model_new(ctx);
    tt_tensor *x = tt_input(m, .shape = {3});
    tt_tensor *h = tt_layer_dense(m, .units = 8, .act = TT_TANH, .from = {x});
    tt_output(m, tt_layer_dense(m, .units = 4, .from = {h}), "class");
    tt_output(m, tt_layer_dense(m, .units = 1, .from = {h}), "size");
    tt_compile(m,
               .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .output = "class", .target = "y"),
                          tt_loss(.kind = TT_MSE, .weight = 0.5, .output = "size", .target = "z")},
               .optimizer = tt_sgd(.lr = 0.1));
    float xs[3 * 8], z[8];
    int32_t y[8];
    test_fill(xs, 24, 9, -1, 1);
    test_fill(z, 8, 11, -1, 1);
    for (int i = 0; i < 8; i++)
        y[i] = i % 4;
    double first = 0, last = 0;
    for (int i = 0; i < 300; i++) {
        tt_progress p;
        tt_batch_data batch = {.rows = 8, .fields = {xs, y, z}};
        ck_assert_msg(tt_train_step(m, &batch, &p) == TT_OK, "%s", tt_last_error(ctx).message);
        first = i == 0 ? p.loss : first;
        last = p.loss;
    }
    ck_assert_msg(last < 0.7 * first, "loss %g, then %g", first, last);
    CHECK_OK(tt_close(ctx));
}

// What a fit writes to stderr where nobody listens.
static off_t told(tt_level level)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/err", test_folder());
    int old = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(old >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    tt_ctx *ctx = tt_open(.level = level);
    tt_status st = tt_fit(fit_model(ctx, FIT_MLP), fit_data(ctx, FIT_MLP, 16));
    tt_status closed = tt_close(ctx);
    CHECK(dup2(old, STDERR_FILENO) >= 0 && st == TT_OK && closed == TT_OK);
    off_t n = lseek(file, 0, SEEK_END);
    close(old);
    close(file);
    return n;
}

TEST(a_program_that_wants_errors_alone_is_told_no_epochs)
{
    CHECK(told(TT_LOG_DEFAULT) > 0);
    CHECK(told(TT_ERROR) == 0);
}

// ---- stopping --------------------------------------------------------------------------------

static tt_status stop_at_five(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    (*(int *)user)++;
    return p->step >= 5 ? TT_ESTOP : TT_OK;
}

TEST(callbacks_come_as_often_as_asked_and_may_stop)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_MLP);
    int steps = 0, epochs = 0;
    tt_fit_report r;
    CHECK_OK(tt_fit(m, fit_data(ctx, FIT_MLP, 72), .epochs = 2,
                    .callbacks = {tt_callback(TT_AT_STEP, 1, stop_at_five, &steps),
                                  tt_callback(TT_AT_EPOCH, 1, stop_at_five, &epochs)}));
    CHECK_INT(steps, 5);
    CHECK_INT(epochs, 1);
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.is_stopped && r.steps == 5);
    CHECK_OK(tt_close(ctx));
}

TEST(early_stopping_stops_and_restores)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 50)); // gets worse at once
    tt_data *d = fit_data(ctx, FIT_MLP, 48), *v = fit_data(ctx, FIT_MLP, 40);
    tt_fit_report r;
    tt_evaluation e;
    CHECK_OK(tt_fit(m, d, .epochs = 50, .validate = v,
                    .early_stop = tt_watch(.patience = 2, .restore = true)));
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.is_stopped && r.epochs < 50);
    CHECK_OK(tt_evaluate(m, v, &e));
    CHECK(e.loss <= r.last->validation_loss);
    CHECK(tt_fit(m, d, .early_stop = tt_watch(.patience = 2, .value = "acuracy")) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "early_stop watches 'acuracy'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// A metric is no loss: their numbers differ, so a mix-up is told.
TEST(a_loss_given_as_metric_is_refused)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = tt_sequential(ctx, .input = {3});
    tt_layer_dense(m, .units = 1);
    CHECK(tt_compile(m, .loss = TT_MSE, .metrics = (int)TT_MAE) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "which is not a set of metrics");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// Every gradient is put down to a layer, the first three steps are not measured.
TEST(a_profile_names_layers_and_steps)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_CNN);
    CHECK_OK(tt_fit(m, fit_data(ctx, FIT_CNN, 240), .steps = 9, .profile = 5));
    char *text = tt_fit_profile(m, false);
    ck_assert_msg(text != NULL && strstr(text, "5 steps measured") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "The bottleneck is ") != NULL, "%s", text);
    const char *layers = strstr(text, "layer  "), *conv = strstr(layers, "conv2d_2");
    const char *rest = strstr(layers, "loss, metrics");
    ck_assert_msg(conv != NULL && (rest == NULL || conv < rest), "%s", text);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

static tt_status note_lr(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    ((double *)user)[p->epoch - 1] = p->lr;
    return TT_OK;
}

TEST(plateau_lowers_the_learning_rate)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 1e-12));
    double lr[6] = {0};
    CHECK_OK(
        tt_fit(m, fit_data(ctx, FIT_MLP, 24), .epochs = 6, .batch = 24,
               .plateau = tt_watch(.patience = 2, .factor = 0.5, .min_delta = 0.5, .min_lr = 4e-13),
               .callbacks = {tt_callback(TT_AT_EPOCH, 1, note_lr, lr)}));
    CHECK_NEAR(lr[0], 1e-12, 1e-18);
    CHECK_NEAR(lr[3], 5e-13, 1e-18); // two looks without a better value after the first
    CHECK_NEAR(lr[5], 4e-13, 1e-18);
    CHECK_OK(tt_close(ctx));
}

// ---- what is not finite ----------------------------------------------------------------------

static tt_status fit_nan(tt_ctx *ctx, tt_nan policy, tt_model **out, tt_hash *before)
{
    static float x[2 * 8];
    static float y[8];
    tt_model *m = *out = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 4, .act = TT_TANH, .name = "first");
    tt_layer_batch_norm(m); // its running statistics stay as they are too
    tt_layer_dense(m, .units = 1, .name = "second");
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_adam(.lr = 0.1));
    test_fill(x, 16, 1, -1, 1);
    for (int i = 0; i < 8; i++)
        y[i] = (float)i;
    x[7] = INFINITY; // record 3 of 8
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                           .count = 8, .batch = 8, .no_shuffle = true);
    x[7] = NAN;
    *before = hash_of(m);
    return tt_fit(m, d, .epochs = 2, .nan = policy);
}

TEST(data_that_is_not_finite_stops_with_step_and_record)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m;
    tt_hash before;
    CHECK(fit_nan(ctx, TT_NAN_STOP, &m, &before) == TT_ENAN);
    CHECK_MESSAGE(ctx, "step 1: the data has a value that is not a finite number: training data: "
                       "memory: record 3, field 'x', element [1] is NaN; replace such values");
    tt_clear_error(ctx);
    CHECK_SAME(hash_of(m), before, "the step was applied");
    CHECK_OK(tt_close(ctx));
}

TEST(a_loss_that_is_not_finite_can_be_skipped_or_ignored)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m;
    tt_hash before;
    tt_fit_report r;
    CHECK_OK(fit_nan(ctx, TT_NAN_SKIP, &m, &before));
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.skipped, 2);
    CHECK_SAME(hash_of(m), before, "a skipped step was applied");
    CHECK_OK(fit_nan(ctx, TT_NAN_CONTINUE, &m, &before));
    CHECK(hash_of(m).low != before.low);
    CHECK_OK(tt_close(ctx));
}

// ---- one fit after another -------------------------------------------------------------------

// Two fits of one epoch are one of two: step numbers, optimizer state and order go on.
TEST(another_fit_goes_on_where_the_first_ended)
{
    for (int kind = 0; kind < FIT_N_KINDS - 1; kind++) { // the GPT has a schedule, which is a fit's
        tt_hash h[2];
        for (int n = 1; n <= 2; n++) {
            tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
            tt_model *m = fit_model(ctx, (fit_kind)kind);
            tt_data *d = fit_data(ctx, (fit_kind)kind, 70);
            tt_fit_report r;
            for (int i = 0; i < n; i++)
                CHECK_OK(tt_fit(m, d, .epochs = 3 - n, .batch = 24));
            CHECK_OK(tt_fit_report_get(m, &r));
            CHECK_INT(r.steps, 3 * (3 - n));
            CHECK_INT(r.epochs, 3 - n);
            h[n - 1] = hash_of(m);
            CHECK_OK(tt_close(ctx));
        }
        CHECK_SAME(h[0], h[1], "%s: two fits of one epoch are not one of two",
                   fit_name((fit_kind)kind));
    }
}

// ---- bad input -------------------------------------------------------------------------------

TEST(fit_names_what_does_not_fit)
{
    tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
    tt_model *m = fit_model(ctx, FIT_MLP);
    CHECK(tt_fit(m, fit_data(ctx, FIT_GPT, 8)) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "field 'x' of the training data has shape [12] per record, but the model's "
                       "input 'x' has shape [28, 28, 1]");
    tt_clear_error(ctx);
    tt_model *raw = tt_sequential(ctx, .input = {2});
    CHECK(tt_fit(raw, fit_data(ctx, FIT_MLP, 8)) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "the model is not compiled");
    tt_clear_error(ctx);
    CHECK(tt_compile(raw, .loss = TT_MSE) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_fit_with(NULL, NULL, NULL) == TT_EINVAL);
    CHECK_OK(tt_close(ctx));
}

// ---- memory ----------------------------------------------------------------------------------

static tt_status count_allocations(void *user, tt_model *m, const tt_progress *p)
{
    int64_t *calls = user;
    tt_ctx *ctx = tt_graph_get_ctx(tt_model_get_graph(m));
    int64_t now = tt_alloc_stats_get(ctx).calls;
    if (p->step == 3)
        calls[0] = now;
    calls[1] = now;
    return TT_OK;
}

TEST(a_step_allocates_nothing_after_the_first_ones)
{
    for (int accumulate = 1; accumulate <= 4; accumulate *= 4) {
        tt_ctx *ctx = quiet(NULL, 2, NULL, NULL);
        tt_model *m = fit_model(ctx, FIT_CNN);
        int64_t calls[2] = {0, 0};
        CHECK_OK(tt_fit(m, fit_data(ctx, FIT_CNN, 960), .batch = 24, .accumulate = accumulate,
                        .steps = 9,
                        .callbacks = {tt_callback(TT_AT_STEP, 1, count_allocations, calls)}));
        CHECK(calls[0] > 0);
        CHECK_INT(calls[1], calls[0]);
        CHECK_OK(tt_close(ctx));
    }
}

static tt_status train_a_little(tt_ctx *ctx)
{
    tt_model *m = fit_model(ctx, FIT_CNN);
    tt_data *d = fit_data(ctx, FIT_CNN, 20);
    if (m == NULL || d == NULL)
        return tt_status_of(ctx);
    return tt_fit(m, d, .epochs = 1, .batch = 4, .accumulate = 2, .validate = d);
}

TEST(training_survives_every_failing_allocation)
{
    tt_status st = TT_ENOMEM;
    int64_t n = 1;
    for (; st == TT_ENOMEM && n < 20000; n += 1 + n / 12) {
        tt_ctx *ctx = quiet(NULL, 1, NULL, NULL);
        tti_fail_alloc_at(ctx, n);
        st = train_a_little(ctx);
        if (st == TT_OK)
            tti_fail_alloc_at(ctx, 0);
        ck_assert_msg(st == TT_OK || st == TT_ENOMEM, "allocation %lld: %s", (long long)n,
                      tt_last_error(ctx).message);
        CHECK(tt_close(ctx) == st);
    }
    CHECK(st == TT_OK && n > 100);
}
