/*
 * batch_parts.c - one batch computed whole and in two parts: the gradient has the same bits. A part
 * gives one sum per sub-tree of its lanes; adding sub-trees in the order of the lanes is the tree.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

enum {
    ROWS = 61,
    IN = 500,
    OUT = 3,
    LANES = 8,
    HALF = ROWS * 4 / LANES // the first row of lane 4: floor(4 * 61 / 8)
};
static float xs[ROWS * IN], whole[IN * OUT], low[IN * OUT], high[IN * OUT];

int main(void)
{
    for (int i = 0; i < ROWS * IN; i++)
        xs[i] = (float)(i * 2654435761u >> 8) / 16777216.0f - 0.4f;
    tt_ctx *ctx = tt_open(.lanes = LANES);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, IN), .name = "x");
    tt_tensor *w =
        tt_variable(g, .shape = TT_SHAPE(IN, OUT), .name = "w", .init = {TT_INIT_NORMAL, 0, 0.1});
    tt_tensor *loss = tt_mean(g, tt_square(g, tt_tanh(g, tt_matmul(g, x, w)))), *dw = NULL;
    tt_grad(g, loss, NULL, 1, &w, &dw);
    tt_session *s = tt_session_new(g);

    tt_feed_value all = {x, xs, TT_SHAPE(ROWS, IN), TT_F32};
    tt_run(s, .feeds = &all, .n_feeds = 1, .n_fetches = 1,
           .fetches = &(tt_fetch){dw, whole, sizeof(whole)});

    tt_feed_value first = {x, xs, TT_SHAPE(HALF, IN), TT_F32};
    tt_feed_value second = {x, xs + HALF * IN, TT_SHAPE(ROWS - HALF, IN), TT_F32};
    tt_run(s, .feeds = &first, .n_feeds = 1, .batch = {.first_row = 0, .global_rows = ROWS},
           .n_fetches = 1, .fetches = &(tt_fetch){dw, low, sizeof(low)});
    tt_run(s, .feeds = &second, .n_feeds = 1, .batch = {.first_row = HALF, .global_rows = ROWS},
           .n_fetches = 1, .fetches = &(tt_fetch){dw, high, sizeof(high)});

    for (int i = 0; i < IN * OUT; i++)
        low[i] = low[i] + high[i]; // lanes 0 to 3, then lanes 4 to 7
    bool same = memcmp(whole, low, sizeof(whole)) == 0;
    printf("rows 0 to %d and %d to %d: %s\n", HALF, HALF, ROWS,
           same ? "the bits of the whole batch" : "other bits");
    return tt_close(ctx) == TT_OK && same ? 0 : 1;
}
