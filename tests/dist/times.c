/*
 * times.c - how devices spent a fit: the parts add up to the whole, whatever the spread.
 */
#include "test.h"
#include <math.h>

static tt_model *small_model(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 32, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    return m;
}

typedef struct heard {
    int devices, slowest;
} heard;

static void hear(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "device") != 0)
        return;
    h->devices++;
    for (int i = 0; i < ev->n_pairs; i++)
        h->slowest += strcmp(ev->pairs[i].name, "slowest") == 0 && ev->pairs[i].number == 1;
}

static void check_times(const char *devices, int n)
{
    heard h = {0};
    tt_ctx *ctx = tt_open(.devices = devices, .threads = 2, .strategy = "mirrored",
                          .on_event = hear, .user = &h);
    tt_model *m = small_model(ctx);
    tt_device_times t;
    tt_fit_report r;
    tt_data *d = tt_digits(ctx, .count = 300, .batch = 50);
    for (int fit = 0; fit < 2; fit++) { // the second one begins at zero again
        ck_assert_msg(tt_fit(m, d) == TT_OK, "%s", tt_last_error(ctx).message);
        CHECK_OK(tt_fit_report_get(m, &r));
        for (int i = 0; i < n; i++) {
            CHECK_OK(tt_fit_device_times(m, i, &t));
            double sum = t.compute + t.communication + t.waiting + t.data + t.idle, by_device = 0;
            for (int k = 0; k < n; k++)
                by_device += t.waiting_for[k];
            CHECK(t.compute > 0 && t.communication >= 0 && t.waiting >= 0 && t.idle >= 0);
            CHECK(n == 1 ? t.waiting == 0 && t.communication == 0 : t.waiting_for[i] == 0);
            CHECK_NEAR(t.seconds, r.compute_seconds + r.data_seconds, 1e-9);
            CHECK_NEAR(sum, t.seconds, 1e-6 + 1e-3 * t.seconds);
            CHECK_NEAR(by_device, t.waiting, 1e-9);
        }
        CHECK(n == 1 ? r.slowest == -1 : r.slowest >= 0 && r.slowest < n);
    }
    CHECK_INT(h.devices, n == 1 ? 0 : 2 * n);
    CHECK_INT(h.slowest, n == 1 ? 0 : 2);
    CHECK_OK(tt_close(ctx));
}

TEST(device_times_add_up)
{
    check_times("cpu:0", 1);
    check_times("cpu:0*2", 2);
    check_times("cpu:0*3", 3);
    check_times("cpu:0*8", 8);
}

TEST(device_times_need_a_fit_and_a_device)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = small_model(ctx);
    tt_device_times t;
    CHECK(tt_fit_device_times(m, 0, &t) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "has not been fitted");
    tt_clear_error(ctx);
    CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 8)));
    CHECK(tt_fit_device_times(m, 1, &t) == TT_EINVAL);
    CHECK(tt_fit_device_times(m, -1, &t) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "device 1 is not between 0 and 0");
    CHECK(tt_fit_device_times(NULL, 0, &t) == TT_EINVAL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
