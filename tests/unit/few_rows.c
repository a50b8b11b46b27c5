/*
 * few_rows.c - batch norm of batches that give it one value per channel: a warning, once, that
 * names the layer, the rows and what to do.
 */
#include "../test.h"
#include <stdio.h>
#include <string.h>

typedef struct heard {
    int warnings;
    char last[1000];
} heard;

static void hear(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "log") != 0 || ev->level != TT_WARN)
        return;
    h->warnings++;
    snprintf(h->last, sizeof(h->last), "%s", ev->text);
}

// Trains records of [side, side, 4] in such batches; two batch norms.
static heard train(int side, tt_over over, int64_t count, int64_t batch, int64_t accumulate)
{
    heard h = {0};
    static float x[64 * 2 * 2 * 4], y[64];
    test_fill(x, (int64_t)(sizeof(x) / sizeof(x[0])), 3, -1, 1);
    tt_ctx *ctx = tt_open(.threads = 1, .on_event = hear, .user = &h);
    tt_model *m = tt_sequential(ctx, .input = {side, side, 4});
    tt_layer_batch_norm(m, .over = over);
    tt_layer_conv2d(m, .filters = 4, .kernel = {1});
    tt_layer_batch_norm(m, .over = over);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1)));
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(side, side, 4),
                           .y_shape = TT_SHAPE(1), .count = count);
    tt_status st = tt_fit(m, d, .epochs = 2, .batch = batch, .accumulate = accumulate);
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
    return h;
}

static void check_warned(heard h, const char *words)
{
    ck_assert_msg(h.warnings == 1 && strstr(h.last, words) != NULL, "%d warnings, '%s'", h.warnings,
                  h.last);
}

TEST(batch_norm_over_one_row_warns)
{
    check_warned(train(1, TT_OVER_BATCH, 4, 1, 1),
                 "batch_norm_1 and 1 other layer: a batch of 1 row gives one value per channel");
    check_warned(train(1, TT_OVER_BATCH, 9, 4, 1), "the last of an epoch too"); // 4, 4 and 1
    CHECK_INT(train(1, TT_OVER_BATCH, 8, 4, 1).warnings, 0);
    CHECK_INT(train(1, TT_OVER_BATCH, 4, 2, 1).warnings, 0);
    CHECK_INT(train(2, TT_OVER_BATCH, 4, 1, 1).warnings, 0); // four values per channel
}

TEST(batch_norm_over_lanes_of_one_row_warns)
{
    check_warned(train(1, TT_OVER_LANE, 16, 8, 1),
                 "of a batch of 8 rows 8 of the 8 lanes have one value per channel");
    check_warned(train(1, TT_OVER_LANE, 24, 12, 1), "4 of the 8 lanes have one value");
    check_warned(train(1, TT_OVER_LANE, 24, 12, 1), "give batches 16 rows or more");
    check_warned(train(1, TT_OVER_LANE, 16, 4, 2), "of a batch of 8 rows 8 of the 8 lanes");
    check_warned(train(1, TT_OVER_LANE, 19, 16, 1), "of a batch of 3 rows 3 of the 8 lanes");
    CHECK_INT(train(1, TT_OVER_LANE, 32, 16, 1).warnings, 0);
    CHECK_INT(train(1, TT_OVER_LANE, 32, 8, 2).warnings, 0);
    CHECK_INT(train(2, TT_OVER_LANE, 16, 8, 1).warnings, 0);
}

TEST(batch_norm_over_one_row_warns_by_hand_too)
{
    heard h = {0};
    float x[2] = {1, 2}, y = 0;
    tt_ctx *ctx = tt_open(.threads = 1, .on_event = hear, .user = &h);
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_batch_norm(m, .name = "norm");
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1)));
    for (int i = 0; i < 3; i++) {
        tt_batch_data b = {.rows = 1, .fields = {x, &y}};
        CHECK_OK(tt_train_step(m, &b, NULL));
    }
    check_warned(h, "norm: a batch of 1 row");
    CHECK_OK(tt_close(ctx));
}
