/*
 * model_parallel.c - a model that is split over two devices by hand: the first half of the layers
 * and their weights on cpu:0, the second half on cpu:1. The result is that of one device, to the
 * bit.
 */
#include <stdio.h>
#include <tutti/tutti.h>

enum {
    STEPS = 30,
    BATCH = 64,
    WEIGHTS = 4
};

// y = relu(x w), with a weight of its own on the device that is open.
static tt_tensor *layer(tt_graph *g, tt_tensor *x, int in, int out, const char *name)
{
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(in, out), .name = name,
                               .init = {.kind = TT_INIT_HE_UNIFORM});
    return tt_matmul(g, x, w, .act = out > 10 ? TT_RELU : TT_LINEAR);
}

static tt_hash train(const char *devices, const char *first, const char *second)
{
    tt_ctx *ctx = tt_open(.devices = devices, .seed = 1, .soft = TT_SOFT_OFF);
    tt_data *digits = tt_digits(ctx, .count = 6400, .batch = BATCH);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 28, 28, 1), .name = "x");
    tt_tensor *y = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "y");

    tt_device_push(g, first);
    tt_tensor *h = layer(g, tt_flatten(g, x), 28 * 28, 256, "a");
    h = layer(g, h, 256, 256, "b");
    tt_device_pop(g);
    tt_device_push(g, second);
    h = layer(g, h, 256, 256, "c");
    tt_tensor *logits = layer(g, h, 256, 10, "d");
    tt_tensor *loss = tt_mean(g, tt_cross_entropy(g, logits, y));
    tt_device_pop(g);

    tt_tensor *w[WEIGHTS], *grads[WEIGHTS], *updates[WEIGHTS];
    tt_trainable(g, w, WEIGHTS);
    tt_grad(g, loss, NULL, WEIGHTS, w, grads); // a gradient is made where its layer is
    for (int i = 0; i < WEIGHTS; i++)
        updates[i] = tt_update_adam(g, w[i], grads[i]);
    tt_session *s = tt_session_new(g);
    float value = 0;
    tt_data_start(digits, 0, 0);
    for (int64_t step = 0; step < STEPS && tt_status_of(ctx) == TT_OK; step++) {
        tt_batch_data batch;
        if (tt_data_next(digits, &batch) != TT_OK)
            break;
        tt_feed_value feeds[] = {{x, batch.fields[0], TT_SHAPE(batch.rows, 28, 28, 1), TT_F32},
                                 {y, batch.fields[1], TT_SHAPE(batch.rows), TT_I32}};
        tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = &(tt_fetch){loss, &value, sizeof(value)},
               .n_fetches = 1, .targets = updates, .n_targets = WEIGHTS, .step = step, .lr = 1e-3f);
    }
    tt_data_stop(digits);
    tt_hash hash = {0, 0};
    tt_weight_hash(s, &hash);
    printf("%s and %s: loss %.4f, weights %016llx%016llx\n", first, second, value,
           (unsigned long long)hash.high, (unsigned long long)hash.low);
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        if (tt_device_get(ctx, i, &d) == TT_OK)
            printf("  %s holds %zu bytes of variables\n", d.name, d.variables);
    }
    return tt_close(ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

int main(void)
{
    tt_hash one = train("cpu:0", "cpu:0", "cpu:0"), two = train("cpu:0*2", "cpu:0", "cpu:1");
    return one.low != 0 && one.low == two.low && one.high == two.high ? 0 : 1;
}
