/*
 * fit_watch.c - what a fit says while it watches: the best values, early stopping, plateaus, why it
 * ended; and when training counts as diverged.
 */
#include "../test.h"
#include <math.h>
#include <stdio.h>

// The kinds of events, one after another, and the message of the last that has one.
typedef struct heard {
    char kinds[4096], message[512];
    int n_best;
    char ended[32];
} heard;

static void on_event(void *user, const tt_event *ev)
{
    heard *h = user;
    size_t n = strlen(h->kinds);
    if (ev->n_pairs == 0 || strcmp(ev->kind, "step") == 0)
        return;
    snprintf(h->kinds + n, sizeof(h->kinds) - n, "%s ", ev->kind);
    for (int i = 0; i < ev->n_pairs; i++) {
        const tt_pair *p = &ev->pairs[i];
        h->n_best += strcmp(p->name, "best") == 0 && strcmp(ev->kind, "epoch") == 0;
        if (strcmp(p->name, "message") == 0)
            snprintf(h->message, sizeof(h->message), "%s", p->text);
        if (strcmp(p->name, "ended") == 0)
            snprintf(h->ended, sizeof(h->ended), "%s", p->text);
    }
}

// One weight w, which begins as 1; the loss of a record with target y is (w - y)^2.
static tt_model *one_weight(tt_ctx *ctx, double lr)
{
    tt_model *m = tt_sequential(ctx, .input = {1});
    tt_layer_dense(m, .units = 1, .no_bias = true, .init = {.kind = TT_INIT_CONSTANT, .a = 1});
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = lr));
    return m;
}

static tt_data *targets(tt_ctx *ctx, const float *y, int n)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    return tt_memory(ctx, .x = ones, .y = y, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                     .count = n, .batch = 1, .no_shuffle = true);
}

static const float zero[1];

// With a learning rate of 6 the weight is multiplied by -11 in each step, the loss by 121.
TEST(a_loss_that_explodes_is_divergence)
{
    static const struct {
        double factor;
        tt_nan nan;
        int fails_at; // step; 0: never
    } rows[] = {
        {0, TT_NAN_STOP, 3},        {1000, TT_NAN_STOP, 3},  {120, TT_NAN_STOP, 2},
        {121.5, TT_NAN_STOP, 3},    {2e6, TT_NAN_STOP, 5},   {TT_ZERO, TT_NAN_STOP, 0},
        {0, TT_NAN_SKIP, 3},        {0, TT_NAN_CONTINUE, 0}, {-1, TT_NAN_STOP, 0},
        {INFINITY, TT_NAN_STOP, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = one_weight(ctx, 6);
        char words[64];
        tt_status st = tt_fit(m, targets(ctx, zero, 1), .epochs = 6, .nan = rows[i].nan,
                              .divergence = rows[i].factor);
        ck_assert_msg(st == (rows[i].fails_at > 0 ? TT_ENAN : TT_OK), "row %zu: %s", i,
                      tt_last_error(ctx).message);
        snprintf(words, sizeof(words), "step %d: training has diverged", rows[i].fails_at);
        if (rows[i].fails_at > 0) {
            CHECK_MESSAGE(ctx, words);
            CHECK_MESSAGE(ctx, "was 1 at the first step; the learning rate is 6: lower it");
            CHECK_MESSAGE(ctx, "clip_global");
        }
        CHECK(tt_close(ctx) == st);
    }
}

// A spike that is over, a loss that was large from the start, and one that begins at nothing.
TEST(large_losses_are_no_divergence)
{
    static const float spike[3] = {0, 1000, 0}, large[3] = {3000, 3001, 3002};
    static const float nothing[3] = {1, 30, 30}, late[3] = {0, 1000, 1000};
    const struct {
        const float *y;
        tt_status st;
    } rows[] = {{spike, TT_OK}, {large, TT_OK}, {nothing, TT_OK}, {late, TT_ENAN}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tt_ctx *ctx = test_ctx();
        tt_status st =
            tt_fit(one_weight(ctx, 1e-9), targets(ctx, rows[i].y, 3), .epochs = 1, .batch = 1);
        ck_assert_msg(st == rows[i].st, "row %zu: %s", i, tt_last_error(ctx).message);
        CHECK(tt_close(ctx) == rows[i].st);
    }
}

// The loss of step 1 is the best; then it grows by a factor of 1.21.
TEST(early_stopping_says_so)
{
    heard h = {.kinds = ""};
    tt_fit_report r;
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = on_event, .user = &h);
    tt_model *m = one_weight(ctx, 1.05);
    CHECK_OK(tt_fit(m, targets(ctx, zero, 1), .epochs = 50, .early_stop = tt_watch(.patience = 3)));
    CHECK_STR(h.kinds, "begin epoch epoch epoch epoch early_stop end ");
    CHECK_STR(h.message, "early stopping after step 4: loss has not improved in 3 checks (best 1)");
    CHECK_INT(h.n_best, 1);
    CHECK_STR(h.ended, "early_stop");
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.ended == TT_FIT_EARLY_STOP && r.is_stopped && r.steps == 4 && r.total_steps == 50);
    CHECK_STR(r.best_name, "loss");
    CHECK(r.best == 1);
    CHECK_OK(tt_close(ctx));
}

// Only a rate that changes is told.
TEST(plateaus_say_so)
{
    heard h = {.kinds = ""};
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = on_event, .user = &h);
    tt_model *m = one_weight(ctx, 1.05);
    CHECK_OK(
        tt_fit(m, targets(ctx, zero, 1), .epochs = 5,
               .plateau = tt_watch(.patience = 1, .min_delta = 10, .factor = 0.5, .min_lr = 0.5)));
    CHECK_STR(h.kinds, "begin epoch epoch plateau epoch plateau epoch epoch end ");
    CHECK_STR(h.message, "plateau after step 3: loss has not improved in 1 check; the learning "
                         "rate goes from 0.525 to 0.5");
    CHECK_STR(h.ended, "finished");
    CHECK_OK(tt_close(ctx));
}

static char go_on;

// user: the context whose fits are to end; go_on: nothing happens; NULL: this fit ends.
static tt_status end_it(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    (void)p;
    if (user != NULL && user != &go_on)
        tt_request_end(user);
    return user != NULL ? TT_OK : TT_ESTOP;
}

TEST(a_fit_says_why_it_ended)
{
    char folder[400];
    snprintf(folder, sizeof(folder), "%s/c", test_folder());
    for (int i = 0; i < 4; i++) {
        static const char *const ends[] = {"callback", "request", "finished", "already"};
        static const tt_fit_end kinds[] = {TT_FIT_CALLBACK, TT_FIT_REQUESTED, TT_FIT_FINISHED,
                                           TT_FIT_ALREADY};
        static const int steps[] = {1, 2, 4, 4};
        heard h = {.kinds = ""};
        tt_fit_report r;
        tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = on_event, .user = &h);
        tt_model *m = one_weight(ctx, 0.1);
        void *user = i == 0 ? NULL : i == 1 ? (void *)ctx : &go_on;
        tt_status st =
            tt_fit(m, targets(ctx, zero, 1), .epochs = 4, .checkpoints = folder, .resume = true,
                   .callbacks = {tt_callback(TT_AT_STEP, 1, end_it, user)});
        CHECK(st == (i == 1 ? TT_ESTOP : TT_OK));
        CHECK_STR(h.ended, ends[i]);
        CHECK_OK(tt_fit_report_get(m, &r));
        CHECK(r.ended == kinds[i] && r.steps == steps[i]);
        CHECK(tt_close(ctx) == st);
    }
}
