/*
 * fit_progress.c - what a step tells those who look: metrics of the step itself, whatever the
 * clock says, and the learning rate it used; loops by hand with schedules; checkpoints whose
 * numbers are too large.
 */
#include "fit_models.h"
#include "save/checkpoint.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>

#define STEPS 24
#define BATCH 8

typedef struct seen {
    double loss[STEPS], step_loss[STEPS], metric[STEPS], step_metric[STEPS];
    bool is_skipped[STEPS];
    int n;
} seen;

static tt_status look(void *user, tt_model *m, const tt_progress *p)
{
    seen *s = user;
    (void)m;
    CHECK(s->n < STEPS && p->n_metrics == 1);
    s->loss[s->n] = p->loss;
    s->step_loss[s->n] = p->step_loss;
    s->metric[s->n] = p->metrics[0];
    s->step_metric[s->n] = p->step_metrics[0];
    s->is_skipped[s->n++] = p->is_skipped;
    return TT_OK;
}

static tt_ctx *quiet(void)
{
    return test_ctx_on("cpu:0", NULL, 1);
}

// Batches have one size, so the epoch's metric is the mean of the steps' so far.
TEST(step_callbacks_get_the_metrics_of_their_step)
{
    tt_ctx *ctx = quiet();
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-2),
               .metrics = TT_ACCURACY);
    tt_data *d = tt_digits(ctx, .count = STEPS * BATCH, .batch = BATCH);
    seen s = {.n = 0};
    CHECK_OK(tt_fit(m, d, .epochs = 1, .callbacks = {tt_callback(TT_AT_STEP, 1, look, &s)}));
    CHECK_INT(s.n, STEPS);
    double sum = 0;
    int changes = 0;
    for (int i = 0; i < STEPS; i++) {
        sum += s.step_metric[i];
        ck_assert_msg(fabs(s.metric[i] - sum / (i + 1)) < 1e-9,
                      "step %d: accuracy %g, but of the steps so far it is %g", i + 1, s.metric[i],
                      sum / (i + 1));
        changes += i > 0 && s.step_metric[i] != s.step_metric[i - 1];
    }
    CHECK(changes > 3);
    CHECK_OK(tt_close(ctx));
}

// A step that is skipped adds nothing, and what is told is never the epoch before.
TEST(skipped_steps_begin_an_epoch_without_the_last_ones_sums)
{
    enum {
        COUNT = 8
    };
    float x[2 * COUNT], y[COUNT];
    tt_ctx *ctx = quiet();
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 1e-3), .metrics = TT_METRIC_MAE);
    test_fill(x, 2 * COUNT, 1, -1, 1);
    for (int i = 0; i < COUNT; i++)
        y[i] = (float)i;
    y[0] = NAN; // in the first of two steps of each epoch
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                           .count = COUNT, .batch = COUNT / 2, .no_shuffle = true);
    seen s = {.n = 0};
    CHECK_OK(tt_fit(m, d, .epochs = 2, .nan = TT_NAN_SKIP,
                    .callbacks = {tt_callback(TT_AT_STEP, 1, look, &s)}));
    CHECK_INT(s.n, 4);
    for (int i = 0; i < 4; i++) {
        CHECK(s.is_skipped[i] == (i % 2 == 0));
        ck_assert_msg(isnan(s.loss[i]) == (i % 2 == 0), "step %d: the epoch's loss is %g", i + 1,
                      s.loss[i]);
        CHECK(i % 2 == 0 || s.loss[i] == s.step_loss[i]);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- loops by hand ---------------------------------------------------------------------------

static tt_model *line(tt_ctx *ctx, const tt_schedule *schedule)
{
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.5, .schedule = schedule)));
    return m;
}

TEST(a_loop_by_hand_tells_its_learning_rate)
{
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {1, 2, 3, 4};
    tt_batch_data batch = {.rows = 4, .fields = {x, y}};
    const tt_schedule *list[] = {tt_schedule(.warmup = 2), tt_cosine(.steps = 6),
                                 tt_linear(.steps = 6, .final = 0.25), tt_one_cycle(.steps = 6)};
    for (int k = 0; k < 4; k++) {
        tt_ctx *ctx = quiet();
        tt_model *m = line(ctx, list[k]);
        for (int i = 0; i < 4; i++) {
            tt_progress p;
            CHECK_OK(tt_train_step(m, &batch, &p));
            float want = (float)(0.5 * tt_schedule_at(list[k], i, 0));
            ck_assert_msg(p.lr == want && want > 0, "schedule %d, step %d: lr %g, not %g", k, i,
                          p.lr, want);
        }
        CHECK_OK(tt_close(ctx));
    }
}

TEST(a_loop_by_hand_needs_the_end_of_its_schedule)
{
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {1, 2, 3, 4};
    tt_batch_data batch = {.rows = 4, .fields = {x, y}};
    const tt_schedule *list[] = {tt_cosine(), tt_linear(), tt_one_cycle(), tt_polynomial(),
                                 tt_wsd()};
    const char *const names[] = {"cosine", "linear", "one_cycle", "polynomial", "wsd"};
    for (int k = 0; k < 5; k++) {
        tt_ctx *ctx = quiet();
        tt_model *m = line(ctx, list[k]);
        tt_status st = tt_train_step(m, &batch, NULL);
        ck_assert_msg(st == TT_EINVAL, "%s: %s", names[k], tt_status_name(st));
        CHECK_MESSAGE(ctx, names[k]);
        CHECK_MESSAGE(ctx, ".steps = 1000");
        tt_clear_error(ctx);
        // A fit knows its end; a loop after it does not.
        tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(2), .y_shape = TT_SHAPE(1),
                               .count = 4, .batch = 4);
        CHECK_OK(tt_fit(m, d, .steps = 3, .divergence = TT_ZERO));
        CHECK(tt_train_step(m, &batch, NULL) == TT_EINVAL);
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}

static tt_status step_at(tt_model *m, const tt_batch_data *batch, tt_progress *out, double lr)
{
    return tt_train_step(m, batch, out, .lr = lr);
}

TEST(a_loop_by_hand_may_give_each_step_its_learning_rate)
{
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {1, 2, 3, 4};
    static const double rates[] = {0.25, TT_ZERO, 1e-3, 0};
    tt_batch_data batch = {.rows = 4, .fields = {x, y}};
    tt_ctx *ctx = quiet();
    tt_model *m = line(ctx, tt_cosine()); // its end is not known, and not asked for
    tt_hash hash[4];
    for (int i = 0; i < 3; i++) {
        tt_progress p;
        CHECK_OK(step_at(m, &batch, &p, rates[i]));
        CHECK(p.lr == (double)(float)rates[i] && !signbit(p.lr) && p.step == i + 1);
        CHECK_OK(tt_model_hash(m, &hash[i]));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high); // a rate of zero
    CHECK(hash[1].low != hash[2].low);
    CHECK(step_at(m, &batch, NULL, rates[3]) == TT_EINVAL); // the schedule's again
    CHECK_MESSAGE(ctx, "lr of tt_train_step()");
    tt_clear_error(ctx);
    CHECK_OK(step_at(m, &batch, NULL, 0.5));
    static const double bad[] = {-1e-3, INFINITY, NAN, 1e300};
    for (int i = 0; i < 4; i++) {
        CHECK(step_at(m, &batch, NULL, bad[i]) == TT_EINVAL);
        CHECK_MESSAGE(ctx, "train step: lr is ");
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(a_given_learning_rate_has_the_bits_of_the_optimizers)
{
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {1, 2, 3, 4};
    tt_batch_data batch = {.rows = 4, .fields = {x, y}};
    tt_hash hash[2];
    for (int k = 0; k < 2; k++) {
        tt_schedule *s = tt_cosine(.steps = 5);
        tt_ctx *ctx = quiet();
        tt_model *m = line(ctx, s);
        for (int i = 0; i < 5; i++)
            CHECK_OK(step_at(m, &batch, NULL, k == 0 ? 0 : 0.5 * tt_schedule_at(s, i, 0)));
        CHECK_OK(tt_model_hash(m, &hash[k]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}

// ---- numbers that are too large --------------------------------------------------------------

static tt_status resume_with(void (*change)(tti_train_state *s), const char *message)
{
    tt_ctx *ctx = quiet();
    tt_model *m = fit_model(ctx, FIT_MLP);
    char folder[200], path[TTI_PATH_MAX];
    static int n;
    snprintf(folder, sizeof(folder), "%s/checkpoints-%d", test_folder(), n++);
    tt_data *d = fit_data(ctx, FIT_MLP, 64);
    CHECK_OK(tt_fit(m, d, .steps = 1, .batch = 16, .accumulate = 2, .checkpoints = folder));
    tti_snapshot s;
    CHECK_OK(tti_checkpoint_newest(ctx, folder, path));
    CHECK_OK(tti_checkpoint_read(ctx, path, &s));
    change(&s.state);
    CHECK_OK(tti_checkpoint_write(ctx, path, &s));
    tti_snapshot_free(ctx, &s);
    tt_status st = tt_fit(m, d, .steps = 2, .batch = 16, .accumulate = 2, .checkpoints = folder,
                          .resume = true);
    ck_assert_msg(strstr(tt_last_error(ctx).message, message) != NULL, "'%s', not '%s'",
                  tt_last_error(ctx).message, message);
    CHECK(tt_close(ctx) == st);
    return st;
}

static void large_accumulate(tti_train_state *s)
{
    s->accumulate = INT64_MAX;
}
static void product_that_wraps(tti_train_state *s) // 3 times it is 2^64 + 32
{
    s->batch = 3;
    s->accumulate = 0x5555555555555560;
}
static void large_step(tti_train_state *s)
{
    s->step = INT64_MAX;
}
static void large_cursor(tti_train_state *s)
{
    s->cursor = INT64_MAX - 1;
}

TEST(checkpoints_with_numbers_too_large_are_refused)
{
    CHECK(resume_with(large_accumulate, "9223372036854775807 rows") == TT_EINVAL);
    CHECK(resume_with(product_that_wraps, "3 x 6148914691236517216 rows") == TT_EINVAL);
    CHECK(resume_with(large_step, "step 9223372036854775807") == TT_EPARSE);
    CHECK(resume_with(large_cursor, "cursor 9223372036854775806") == TT_EPARSE);
}

TEST(an_evaluation_with_numbers_too_large_is_refused)
{
    tt_ctx *ctx = quiet();
    tt_model *m = fit_model(ctx, FIT_MLP);
    tt_data *d = fit_data(ctx, FIT_MLP, 64);
    tt_evaluation e;
    CHECK(tt_evaluate(m, d, &e, .batch = 2, .accumulate = INT64_MAX) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "accumulate 9223372036854775807");
    tt_clear_error(ctx);
    CHECK(tt_evaluate(m, d, &e, .batch = INT64_MAX, .accumulate = 2) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_fit(m, d, .steps = 1, .profile = INT64_MAX));
    CHECK_OK(tt_close(ctx));
}
