/*
 * fit_callbacks.c - when a fit calls the program, and what progress says then.
 */
#include "fit_models.h"
#include <math.h>
#include <stdio.h>

// ---- moments ---------------------------------------------------------------------------------

typedef struct diary {
    char text[1024];
    tt_progress last; // at the last call
} diary;
typedef struct entry {
    diary *d;
    char letter;
} entry;

static tt_status note(void *user, tt_model *m, const tt_progress *p)
{
    const entry *e = user;
    (void)m;
    size_t n = strlen(e->d->text);
    snprintf(e->d->text + n, sizeof(e->d->text) - n, "%c%d ", e->letter, (int)p->step);
    e->d->last = *p;
    return TT_OK;
}

#define ALL_MOMENTS(every_)                                            \
    {                                                                  \
        tt_callback(TT_AT_STEP, every_, note, &entries[0]),            \
            tt_callback(TT_AT_EPOCH, every_, note, &entries[1]),       \
            tt_callback(TT_AT_VALIDATION, every_, note, &entries[2]),  \
            tt_callback(TT_AT_END, every_, note, &entries[3]),         \
            tt_callback(TT_AT_STEP_BEGIN, every_, note, &entries[4]),  \
            tt_callback(TT_AT_EPOCH_BEGIN, every_, note, &entries[5]), \
            tt_callback(TT_AT_BEGIN, every_, note, &entries[6]),       \
    }
#define ENTRIES(d_)                                                                  \
    {                                                                                \
        {d_, 's'}, {d_, 'e'}, {d_, 'v'}, {d_, 'X'}, {d_, '('}, {d_, 'E'}, {d_, 'B'}, \
    }

TEST(callbacks_come_before_and_after_batches_and_epochs)
{
    tt_ctx *ctx = test_ctx();
    diary d = {.text = ""};
    entry entries[] = ENTRIES(&d);
    CHECK_OK(tt_fit(fit_line(ctx), fit_points(ctx), .epochs = 2, .validate = fit_points(ctx),
                    .callbacks = ALL_MOMENTS(0)));
    CHECK_STR(d.text, "B0 E0 (0 s1 (1 s2 v2 e2 E2 (2 s3 (3 s4 v4 e4 X4 ");
    CHECK_OK(tt_close(ctx));
}

TEST(callbacks_come_every_so_often)
{
    tt_ctx *ctx = test_ctx();
    diary d = {.text = ""};
    entry entries[] = ENTRIES(&d);
    CHECK_OK(tt_fit(fit_line(ctx), fit_points(ctx), .epochs = 4, .validate = fit_points(ctx),
                    .callbacks = ALL_MOMENTS(2)));
    CHECK_STR(d.text, "B0 E0 (0 s2 (2 s4 v4 e4 E4 (4 s6 (6 s8 v8 e8 X8 ");
    CHECK_OK(tt_close(ctx));
}

// With validations by steps, epochs have their callbacks too.
TEST(epochs_end_for_callbacks_where_validations_count_steps)
{
    tt_ctx *ctx = test_ctx();
    diary d = {.text = ""};
    entry entries[] = ENTRIES(&d);
    CHECK_OK(tt_fit(fit_line(ctx), fit_points(ctx), .epochs = 2, .validate = fit_points(ctx),
                    .validate_every = 3,
                    .callbacks = {tt_callback(TT_AT_EPOCH, 1, note, &entries[1]),
                                  tt_callback(TT_AT_VALIDATION, 1, note, &entries[2]),
                                  tt_callback(TT_AT_EPOCH_BEGIN, 1, note, &entries[5])}));
    CHECK_STR(d.text, "E0 e2 E2 v3 v4 e4 ");
    CHECK_OK(tt_close(ctx));
}

typedef struct before {
    int n;
    double lr[8], loss[8], metric[8];
    int64_t rows[8], epoch[8];
} before;

static tt_status look_before(void *user, tt_model *m, const tt_progress *p)
{
    before *b = user;
    (void)m;
    b->lr[b->n] = p->lr;
    b->loss[b->n] = p->loss;
    b->metric[b->n] = p->metrics[0];
    b->rows[b->n] = p->rows;
    b->epoch[b->n++] = p->epoch;
    CHECK(p->n_metrics == 1 && p->steps == 4 && p->epochs == 2 && p->epoch_rows == 8);
    CHECK_STR(p->names[0], "mae");
    return TT_OK;
}

TEST(before_a_batch_progress_is_of_the_batches_before_it)
{
    tt_ctx *ctx = test_ctx();
    before b = {.n = 0};
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    tt_schedule *halves = tt_step_decay(.every = 1, .factor = 0.5);
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.25, .schedule = halves),
               .metrics = TT_METRIC_MAE);
    CHECK_OK(tt_fit(m, fit_points(ctx), .epochs = 2,
                    .callbacks = {tt_callback(TT_AT_STEP_BEGIN, 1, look_before, &b)}));
    CHECK_INT(b.n, 4);
    for (int i = 0; i < 4; i++) {
        CHECK(b.lr[i] == 0.25 / (1 << i)); // of the step to come
        CHECK(b.epoch[i] == i / 2 + 1 && b.rows[i] == i % 2 * 4);
        CHECK(isnan(b.loss[i]) == (i % 2 == 0)); // an epoch begins with nothing
        CHECK((b.metric[i] > 0) == (i % 2 == 1));
    }
    CHECK_OK(tt_close(ctx));
}

static tt_status stop(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    return p->step == *(const int *)user ? TT_ESTOP : TT_OK;
}

TEST(a_callback_before_a_batch_may_stop_the_fit_after_it)
{
    static const int at = 1;
    tt_ctx *ctx = test_ctx();
    tt_model *m = fit_line(ctx);
    tt_fit_report r;
    CHECK_OK(tt_fit(m, fit_points(ctx), .epochs = 3,
                    .callbacks = {tt_callback(TT_AT_STEP_BEGIN, 1, stop, (void *)&at)}));
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.is_stopped && r.steps == 2);
    CHECK_OK(tt_close(ctx));
}

static tt_status refuse(void *user, tt_model *m, const tt_progress *p)
{
    (void)user;
    (void)m;
    (void)p;
    return TT_EIO;
}

TEST(callbacks_that_cannot_be_called_are_refused)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = fit_line(ctx);
    tt_data *d = fit_points(ctx);
    CHECK(tt_fit(m, d, .callbacks = {tt_callback(TT_AT_STEP, 1, NULL, NULL)}) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "callback 0 of 1 has no function");
    tt_clear_error(ctx);
    CHECK(tt_fit(m, d, .callbacks = {tt_callback((tt_moment)7, 1, refuse, NULL)}) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "at is 7");
    tt_clear_error(ctx);
    CHECK(tt_fit(m, d, .callbacks = {tt_callback(TT_AT_STEP, -1, refuse, NULL)}) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_fit(m, d, .callbacks = {tt_callback(TT_AT_STEP_BEGIN, 1, refuse, NULL)}) == TT_EIO);
    CHECK_MESSAGE(ctx, "a callback failed at step 0");
    CHECK(tt_close(ctx) == TT_EIO);
}

// Called at every step, they leave steps without allocations.
TEST(callbacks_before_batches_change_no_bit)
{
    tt_hash hash[2];
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = test_ctx();
        diary d = {.text = ""};
        entry entries[] = ENTRIES(&d);
        tt_model *m = fit_model(ctx, FIT_MLP);
        CHECK_OK(tt_fit(
            m, fit_data(ctx, FIT_MLP, 72), .epochs = 2,
            .callbacks = {i == 0 ? NULL : tt_callback(TT_AT_STEP_BEGIN, 1, note, &entries[4])}));
        CHECK_OK(tt_model_hash(m, &hash[i]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}
