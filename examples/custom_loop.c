/*
 * custom_loop.c - training without tt_fit(): the loss is built, gradients are asked for and applied
 * by hand, on the same devices and lanes.
 */
#include <stdio.h>
#include <tutti/tutti.h>

#define ROWS 64

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_data *digits = tt_digits(ctx, .count = 6400, .batch = ROWS);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 28, 28, 1), .name = "x");
    tt_tensor *y = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "y");

    tt_tensor *w[2] = {tt_variable(g, .shape = TT_SHAPE(784, 64), .name = "hidden",
                                   .init = {.kind = TT_INIT_GLOROT_UNIFORM}),
                       tt_variable(g, .shape = TT_SHAPE(64, 10), .name = "out",
                                   .init = {.kind = TT_INIT_GLOROT_UNIFORM})};
    tt_tensor *h = tt_matmul(g, tt_flatten(g, x), w[0], .act = TT_RELU);
    tt_tensor *logits = tt_matmul(g, h, w[1]);
    tt_tensor *loss = tt_mean(g, tt_cross_entropy(g, logits, y));

    tt_tensor *grads[2], *updates[2];
    tt_grad(g, loss, NULL, 2, w, grads);
    for (int i = 0; i < 2; i++)
        updates[i] = tt_update_sgd(g, w[i], grads[i], .momentum = 0.9);

    tt_session *s = tt_session_new(g);
    tt_data_start(digits, 0, 0);
    for (int64_t step = 0; step < 200 && tt_status_of(ctx) == TT_OK; step++) {
        tt_batch_data batch;
        float value = 0;
        if (tt_data_next(digits, &batch) != TT_OK)
            break;
        tt_feed_value feeds[] = {
            {x, batch.fields[0], TT_SHAPE(batch.rows, 28, 28, 1), TT_F32},
            {y, batch.fields[1], TT_SHAPE(batch.rows), TT_I32},
        };
        tt_fetch fetch = {loss, &value, sizeof(value)};
        tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1,
               .targets = updates, .n_targets = 2, .step = step, .lr = 0.05f);
        if (step % 50 == 49)
            printf("step %lld: loss %.4f\n", (long long)step + 1, value);
    }
    tt_data_stop(digits);
    if (tt_status_of(ctx) != TT_OK)
        fprintf(stderr, "%s\n", tt_last_error(ctx).message);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
