/*
 * share.c - share auto: a slow device gets fewer lanes after some steps, and no bit changes.
 */
#include "base/ctx.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct heard {
    int n;
    char lanes[64], was[64];
} heard;

static void hear(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "share") != 0)
        return;
    h->n++;
    for (int i = 0; i < ev->n_pairs; i++) {
        if (strcmp(ev->pairs[i].name, "lanes") == 0)
            snprintf(h->lanes, sizeof(h->lanes), "%s", ev->pairs[i].text);
        if (strcmp(ev->pairs[i].name, "was") == 0)
            snprintf(h->was, sizeof(h->was), "%s", ev->pairs[i].text);
    }
}

static tt_hash train(const char *devices, const char *strategy, const char *share, heard *h)
{
    tt_ctx *ctx = tt_open(.devices = devices, .threads = 2, .strategy = strategy,
                          .spread = tt_spread(.share = share), .on_event = hear, .user = h);
    for (int d = 0; d < ctx->top.n_devices; d++)
        ctx->top.speed[d] = 1; // as if measured: a busy machine may already have shown the slow one
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 65, .act = TT_RELU);
    tt_layer_dropout(m, .rate = 0.2f);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam());
    tt_fit_report r;
    ck_assert_msg(tt_fit(m, tt_digits(ctx, .count = 1500, .batch = 50), .check_every = 5) == TT_OK,
                  "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

TEST(a_slow_device_gets_fewer_lanes)
{
    heard h = {0};
    tt_hash want = train("cpu:0", "single", NULL, &h);
    setenv("TUTTI_FAULT_HOW", "slow", 1);
    setenv("TUTTI_FAULT_DEVICE", "cpu:1", 1);
    setenv("TUTTI_FAULT_TIMES", "40", 1);
    tt_hash got = train("cpu:0*2", "mirrored", "equal", &h);
    CHECK_INT(h.n, 0);
    CHECK(got.low == want.low && got.high == want.high);
    got = train("cpu:0*2", "mirrored", "auto", &h);
    CHECK_INT(h.n, 1); // once
    int fast, slow;
    CHECK_STR(h.was, "4, 4");
    CHECK_INT(sscanf(h.lanes, "%d, %d", &fast, &slow), 2);
    ck_assert_msg(fast > 4 && slow >= 1 && fast + slow == 8, "lanes are %s", h.lanes);
    CHECK(got.low == want.low && got.high == want.high);
}
