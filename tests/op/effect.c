/*
 * effect.c - print and assert: what they tell, that they pass values and gradients on, and that
 * they are neither merged nor left out.
 */
#include "op_test.h"
#include <stdio.h>
#include <string.h>

OP_TESTED(effect, "print", "assert")

typedef struct heard {
    int n;
    char last[256];
} heard;

static void listen(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "print") != 0)
        return;
    h->n++;
    snprintf(h->last, sizeof(h->last), "%s", ev->text);
}

TEST(print_tells_and_passes_on)
{
    heard h = {0};
    tt_ctx *ctx = tt_open(.on_event = listen, .user = &h);
    tt_graph *g = tt_graph_new(ctx);
    const float v[3] = {1, -2.5f, 3};
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(3), v), *dx = NULL;
    tt_tensor *p = tt_print(g, x, "seen");
    float y[3] = {0}, d[3] = {0};
    CHECK_OK(tt_eval(g, p, y, 3));
    ck_assert_int_eq(h.n, 1);
    ck_assert_msg(strstr(h.last, "seen") != NULL && strstr(h.last, "-2.5") != NULL, "'%s'", h.last);
    ck_assert(memcmp(y, v, sizeof(v)) == 0);

    CHECK_OK(tt_grad(g, tt_sum(g, tt_square(g, p)), NULL, 1, &x, &dx));
    CHECK_OK(tt_eval(g, dx, d, 3));
    for (int i = 0; i < 3; i++)
        ck_assert(d[i] == 2 * v[i]);

    // Two alike are two, and constants do not make them vanish.
    h.n = 0;
    CHECK_OK(tt_eval(g, tt_add(g, tt_print(g, x, "a"), tt_print(g, x, "a")), y, 3));
    ck_assert_int_eq(h.n, 2);
    CHECK_OK(tt_close(ctx));
}

TEST(assert_fails_the_run)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2), .name = "x");
    tt_tensor *y = tt_assert(g, x, tt_greater(g, x, tt_scalar(g, 0)), "x is not positive");
    tt_session *s = tt_session_new(g);
    float v[4] = {1, 2, 3, 4}, out[4] = {0};
    tt_feed_value feed = {x, v, TT_SHAPE(2, 2), TT_F32};
    tt_fetch fetch = {y, out, sizeof(out)};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    ck_assert(memcmp(out, v, sizeof(v)) == 0);

    v[2] = -3;
    tt_status st = tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
    ck_assert_int_eq(st, TT_EASSERT);
    ck_assert_ptr_nonnull(strstr(tt_last_error(ctx).message, "x is not positive"));
    ck_assert_ptr_nonnull(strstr(tt_last_error(ctx).message, "element 2"));
    tt_clear_error(ctx);
    v[2] = 3; // the session goes on
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    CHECK_OK(tt_close(ctx));
}

TEST(assert_wants_a_condition)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(2), 1);
    ck_assert_ptr_null(tt_assert(g, x, x, "no bool"));
    ck_assert_int_ne(tt_status_of(ctx), TT_OK);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
